//! `promptshelf fmt`: front matter, laid out in one way.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use promptshelf_author::format;
use promptshelf_core::SourceText;
use promptshelf_source::prompt_files;

use crate::{
    args::author::FmtArguments,
    exit::{Exit, Failure},
    output::{Output, count},
};

pub(crate) fn run(arguments: &FmtArguments) -> Result<(), Failure> {
    let here = [PathBuf::from(".")];
    let named = if arguments.paths.is_empty() { &here[..] } else { &arguments.paths };
    let mut files = Vec::new();
    for path in named {
        match path.is_dir() {
            true => files.extend(
                prompt_files(path).map_err(promptshelf_server::OpenError::Source)?.iter().map(|file| join(path, file)),
            ),
            false => files.push(path.clone()),
        }
    }
    let mut paper = Output::stdout();
    let mut changed = 0;
    let mut unreadable = 0;
    for file in &files {
        let shown = paper.line(&file.display().to_string()).into_owned();
        match one(file, arguments.check)? {
            Outcome::Same => {}
            Outcome::Other => {
                changed += 1;
                let word = if arguments.check { "would change" } else { "changed" };
                writeln!(paper.out, "{word} {shown}")?;
            }
            Outcome::Unreadable => {
                unreadable += 1;
                writeln!(paper.out, "left {shown} as it is: `promptshelf check` says what is wrong with it")?;
            }
        }
    }
    let verb = if arguments.check { "would change" } else { "changed" };
    writeln!(paper.out, "{}: {changed} {verb}", count(files.len(), "prompt file"))?;
    paper.out.flush()?;
    if unreadable > 0 || (arguments.check && changed > 0) { Err(Failure::said(Exit::Failed)) } else { Ok(()) }
}

fn join(folder: &Path, file: &str) -> PathBuf {
    if folder == Path::new(".") { PathBuf::from(file) } else { folder.join(file) }
}

enum Outcome {
    Same,
    Other,
    /// There is no telling what its front matter means.
    Unreadable,
}

fn one(file: &Path, only_look: bool) -> Result<Outcome, Failure> {
    let cannot = |verb: &str, error: std::io::Error| {
        Failure::new(Exit::Failed, format!("{} cannot be {verb}: {error}", file.display()))
    };
    let bytes = fs::read(file).map_err(|error| cannot("read", error))?;
    let Ok(text) = String::from_utf8(bytes) else { return Ok(Outcome::Unreadable) };
    let source = SourceText::new(file.display().to_string(), text);
    match format(&source) {
        Ok(laid_out) if *laid_out == *source.text => Ok(Outcome::Same),
        Ok(laid_out) => {
            if !only_look {
                fs::write(file, laid_out).map_err(|error| cannot("written", error))?;
            }
            Ok(Outcome::Other)
        }
        Err(_) => Ok(Outcome::Unreadable),
    }
}
