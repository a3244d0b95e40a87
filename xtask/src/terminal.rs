//! External programs: each is started with its command line printed first.

use std::{
    ffi::OsStr,
    io::ErrorKind,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// A program to run, without input. Its output goes to this terminal.
pub(crate) struct Program {
    command: Command,
    words: Vec<String>,
    when_missing: &'static str,
}

impl Program {
    pub(crate) fn new(name: impl AsRef<OsStr>, folder: &Path) -> Program {
        let mut command = Command::new(name.as_ref());
        command.current_dir(folder).stdin(Stdio::null());
        Program { command, words: vec![shown(name.as_ref())], when_missing: "" }
    }

    /// Returns the cargo that runs this program, so that toolchains are not mixed.
    pub(crate) fn cargo(folder: &Path) -> Program {
        let mut cargo = Program::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), folder);
        cargo.words = vec!["cargo".to_owned()];
        cargo
    }

    /// Sets the advice to print when the program is not installed.
    pub(crate) fn when_missing(mut self, advice: &'static str) -> Program {
        self.when_missing = advice;
        self
    }

    pub(crate) fn arg(mut self, word: impl AsRef<OsStr>) -> Program {
        self.words.push(shown(word.as_ref()));
        self.command.arg(word);
        self
    }

    pub(crate) fn args(self, words: &[&str]) -> Program {
        words.iter().fold(self, Program::arg)
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Program {
        self.command.env(name, value);
        self
    }

    /// Runs the program to its end.
    ///
    /// # Errors
    ///
    /// When it cannot be started or fails.
    pub(crate) fn run(mut self) -> Result<()> {
        println!("$ {}", self.words.join(" "));
        let status = self.command.status();
        let status = self.explained(status)?;
        if !status.success() {
            bail!("`{}` failed: {status}", self.words.join(" "));
        }
        Ok(())
    }

    /// Runs the program to its end and returns its output.
    ///
    /// # Errors
    ///
    /// As [`run`](Program::run), and when the output is not UTF-8.
    pub(crate) fn read(mut self) -> Result<String> {
        self.command.stderr(Stdio::inherit());
        let output = self.command.output();
        let output = self.explained(output)?;
        if !output.status.success() {
            bail!("`{}` failed: {}", self.words.join(" "), output.status);
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{}` printed text that is not UTF-8", self.words[0]))
    }

    fn explained<T>(&self, started: std::io::Result<T>) -> Result<T> {
        match started {
            Err(error) if error.kind() == ErrorKind::NotFound && !self.when_missing.is_empty() => {
                bail!("{} is not installed. {}", self.words[0], self.when_missing)
            }
            other => other.with_context(|| format!("`{}` could not be started", self.words.join(" "))),
        }
    }
}

fn shown(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    if word.contains(' ') { format!("'{word}'") } else { word.into_owned() }
}
