//! External programs: each is started with its command line printed first.

use std::{
    ffi::OsStr,
    io::{BufRead as _, BufReader, ErrorKind, Write},
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
    pub(crate) fn run(self) -> Result<()> {
        println!("$ {}", self.words.join(" "));
        self.run_quietly()
    }

    /// The same, without its command line.
    pub(crate) fn run_quietly(mut self) -> Result<()> {
        let status = self.command.status();
        let status = self.explained(status)?;
        if !status.success() {
            bail!("`{}` failed: {status}", self.words.join(" "));
        }
        Ok(())
    }

    /// Runs `cargo test` to its end. The error repeats the output of the tests that failed, because a log of CI is often
    /// cut to its last lines.
    pub(crate) fn run_tests(self) -> Result<()> {
        self.run_tests_into(&mut std::io::stdout())
    }

    /// The same, with the output of the tests in place of this terminal's.
    pub(crate) fn run_tests_into(mut self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "$ {}", self.words.join(" "))?;
        let child = self.command.stdout(Stdio::piped()).spawn();
        let mut child = self.explained(child)?;
        let output = child.stdout.take().context("the output of the tests is not a pipe")?;
        let mut failures = Failures::default();
        for line in BufReader::new(output).split(b'\n') {
            let line = line?;
            out.write_all(&[&line, &b"\n"[..]].concat())?;
            failures.read(&String::from_utf8_lossy(&line));
        }
        let status = child.wait()?;
        if !status.success() {
            bail!("`{}` failed: {status}{}", self.words.join(" "), failures.text);
        }
        Ok(())
    }

    /// Runs the program to its end and returns its output.
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

/// The last lines about failed tests in the output of `cargo test`: from `failures:` to the result of each test program.
#[derive(Default)]
struct Failures {
    text: String,
    inside: bool,
}

impl Failures {
    /// Bytes of the report. A test that prints more does not hide the others' results.
    const LIMIT: usize = 32 << 10;

    fn read(&mut self, line: &str) {
        self.inside = (self.inside || line == "failures:") && !line.starts_with("test result:");
        if self.inside && self.text.len() < Failures::LIMIT {
            self.text.push('\n');
            self.text.push_str(line);
        }
    }
}

fn shown(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    if word.contains(' ') { format!("'{word}'") } else { word.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_the_lines_between_their_heading_and_the_result() {
        let mut failures = Failures::default();
        for line in ["running 2 tests", "test a ... ok", "test b ... FAILED", "", "failures:", "", "---- b stdout ----"]
        {
            failures.read(line);
        }
        for line in ["it broke", "failures:", "    b", "test result: FAILED. 1 passed; 1 failed", "running 0 tests"] {
            failures.read(line);
        }
        assert_eq!(failures.text, "\nfailures:\n\n---- b stdout ----\nit broke\nfailures:\n    b");
    }
}
