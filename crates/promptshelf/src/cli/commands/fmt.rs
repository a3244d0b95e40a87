//! `promptshelf fmt`: formats the front matter of prompt files.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use promptshelf_author::format;
use promptshelf_core::SourceText;
use promptshelf_source::{is_foreign_file, prompt_files};

use crate::{
    args::FmtArguments,
    exit::{Exit, Failure},
    output::{Output, count},
};

pub(crate) fn run(arguments: &FmtArguments) -> Result<(), Failure> {
    let default = [PathBuf::from(".")];
    let paths = if arguments.paths.is_empty() { &default[..] } else { &arguments.paths };
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(
                prompt_files(path).map_err(promptshelf_server::OpenError::Source)?.iter().map(|file| join(path, file)),
            )
        } else {
            files.push(path.clone())
        }
    }
    let mut output = Output::stdout();
    let mut changed = 0;
    let mut invalid = 0;
    for file in &files {
        let shown = output.line(&file.display().to_string()).into_owned();
        match format_file(file, arguments.check)? {
            Outcome::Unchanged => {}
            Outcome::Changed => {
                changed += 1;
                let word = if arguments.check { "would change" } else { "changed" };
                writeln!(output.out, "{word} {shown}")?;
            }
            Outcome::Invalid => {
                invalid += 1;
                writeln!(output.out, "skipped {shown}: invalid, see `promptshelf check`")?;
            }
            Outcome::Foreign => writeln!(output.out, "skipped {shown}: it has the format of another program")?,
        }
    }
    let verb = if arguments.check { "would change" } else { "changed" };
    writeln!(output.out, "{}: {changed} {verb}", count(files.len(), "prompt file"))?;
    output.out.flush()?;
    if invalid > 0 || (arguments.check && changed > 0) { Err(Failure::reported(Exit::Failed)) } else { Ok(()) }
}

fn join(folder: &Path, file: &str) -> PathBuf {
    if folder == Path::new(".") { PathBuf::from(file) } else { folder.join(file) }
}

enum Outcome {
    Unchanged,
    Changed,
    Foreign,
    /// The file is not UTF-8, or its front matter is invalid.
    Invalid,
}

fn format_file(file: &Path, check_only: bool) -> Result<Outcome, Failure> {
    if is_foreign_file(file) {
        return Ok(Outcome::Foreign);
    }
    let failure = |verb: &str, error: std::io::Error| {
        Failure::new(Exit::Failed, format!("{} cannot be {verb}: {error}", file.display()))
    };
    let bytes = fs::read(file).map_err(|error| failure("read", error))?;
    let Ok(text) = String::from_utf8(bytes) else { return Ok(Outcome::Invalid) };
    let source = SourceText::new(file.display().to_string(), text);
    match format(&source) {
        Ok(formatted) if *formatted == *source.text => Ok(Outcome::Unchanged),
        Ok(formatted) => {
            if !check_only {
                fs::write(file, formatted).map_err(|error| failure("written", error))?;
            }
            Ok(Outcome::Changed)
        }
        Err(_) => Ok(Outcome::Invalid),
    }
}
