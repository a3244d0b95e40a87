//! `promptshelf fmt`: formats the front matter of prompt files.

use std::{
    fs,
    io::{self, Read as _, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use promptshelf_author::format;
use promptshelf_core::SourceText;
use promptshelf_source::{is_foreign_file, prompt_files};
use serde_json::json;

use super::channels::diff::{print_unified, unified};
use crate::{
    exit::{Exit, Failure},
    library::{refuse_device, require_files},
    output::{Output, count, list_json, pretty_json, report_failure},
    terminal::Interrupted,
    whole_file,
};

const FMT_EXAMPLES: &str = "\
Sorts the keys of prompt files and writes them in one style. Comments and the
body stay unchanged. Parts that cannot be changed safely stay unchanged too.

Examples:
  promptshelf fmt prompts
  promptshelf fmt prompts --check          for CI
  promptshelf fmt - < code_review.md";

#[derive(Debug, Args)]
#[command(after_help = FMT_EXAMPLES)]
pub(crate) struct FmtArguments {
    /// Folders of prompt files, or single files; `-` formats stdin to stdout [default: the current folder]
    #[arg(value_name = "LIBRARY|FILE")]
    pub(crate) paths: Vec<PathBuf>,

    /// Change nothing; exit with code 1 if a file would change
    #[arg(long)]
    pub(crate) check: bool,

    /// Change nothing; print the changes, and exit with code 1 if there are any
    #[arg(long)]
    pub(crate) diff: bool,

    /// Print JSON
    #[arg(long, conflicts_with = "diff")]
    pub(crate) json: bool,
}

const STDIN: &str = "-";

pub(crate) fn run(arguments: &FmtArguments) -> Result<(), Failure> {
    if arguments.paths == [Path::new(STDIN)] {
        return format_stdin(arguments);
    }
    let default = [PathBuf::from(".")];
    let paths = if arguments.paths.is_empty() { &default[..] } else { &arguments.paths };
    let mut files = Vec::new();
    for path in paths {
        require_files(path, "fmt")?;
        refuse_device(path)?;
        let unread =
            |error: io::Error| Failure::new(Exit::Library, format!("{} cannot be read: {error}", path.display()));
        if fs::metadata(path).map_err(unread)?.is_dir() {
            fs::read_dir(path).map_err(unread)?;
            let found = prompt_files(path).map_err(promptshelf_server::OpenError::Source)?;
            files.extend(found.iter().map(|file| join(path, file)));
        } else {
            files.push(path.clone());
        }
    }
    let only_reports = arguments.check || arguments.diff;
    let mut output = Output::stdout();
    let (mut changed, mut invalid, mut failed, mut items) = (0, 0, 0, Vec::new());
    let interrupted = Interrupted::noticed();
    for file in files.iter().take_while(|_| !interrupted.is_so()) {
        let shown = output.line(&file.display().to_string()).into_owned();
        let outcome = format_file(file, only_reports).unwrap_or_else(|failure| {
            report_failure(&failure);
            Outcome::Failed
        });
        let (word, line) = match outcome {
            Outcome::Failed => {
                failed += 1;
                ("failed", None)
            }
            Outcome::Unchanged => ("unchanged", None),
            Outcome::Foreign => ("skipped", Some(format!("skipped {shown}: it has the format of another program"))),
            Outcome::Invalid => {
                invalid += 1;
                ("invalid", Some(format!("skipped {shown}: invalid, see `promptshelf check`")))
            }
            Outcome::Changed { before, after } => {
                changed += 1;
                if arguments.diff {
                    print_unified(&mut output, &unified(&before.text, &after, &before.path, &before.path))?;
                }
                let word = if only_reports { "would change" } else { "changed" };
                ("changed", (!arguments.diff).then(|| format!("{word} {shown}")))
            }
        };
        items.push(json!({ "path": file, "outcome": word }));
        if let Some(line) = line.filter(|_| !arguments.json) {
            writeln!(output.out, "{line}")?;
        }
    }
    if arguments.json {
        writeln!(output.out, "{}", pretty_json(&list_json(items.into_iter())))?;
    } else if !arguments.diff {
        let verb = if only_reports { "would change" } else { "changed" };
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        writeln!(output.out, "{}: {changed} {verb}{failed}", count(files.len(), "prompt file"))?;
    }
    output.out.flush()?;
    interrupted.end();
    if invalid > 0 || failed > 0 || (only_reports && changed > 0) {
        Err(Failure::reported(Exit::Failed))
    } else {
        Ok(())
    }
}

fn format_stdin(arguments: &FmtArguments) -> Result<(), Failure> {
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text).map_err(|error| failure(Path::new("stdin"), "read", &error))?;
    let source = SourceText::new("stdin", text);
    let formatted = format(&source).map_err(|found| {
        let reasons: Vec<String> = found.iter().map(ToString::to_string).collect();
        Failure::new(Exit::Failed, reasons.join("\n"))
    })?;
    let is_same = *formatted == *source.text;
    let mut output = Output::stdout();
    if arguments.diff && !is_same {
        print_unified(&mut output, &unified(&source.text, &formatted, "stdin", "stdin"))?;
    } else if !arguments.check && !arguments.diff {
        output.out.write_all(formatted.as_bytes())?;
    }
    output.out.flush()?;
    let only_reports = arguments.check || arguments.diff;
    if only_reports && !is_same { Err(Failure::reported(Exit::Failed)) } else { Ok(()) }
}

fn join(folder: &Path, file: &str) -> PathBuf {
    if folder == Path::new(".") { PathBuf::from(file) } else { folder.join(file) }
}

enum Outcome {
    Unchanged,
    Changed {
        before: Arc<SourceText>,
        after: String,
    },
    Foreign,
    /// The file is not UTF-8, or its front matter is invalid.
    Invalid,
    /// The file was not read or written, which was reported.
    Failed,
}

fn failure(file: &Path, verb: &str, error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("{} cannot be {verb}: {error}", file.display()))
}

/// Formats a file, and writes it unless `only_reports`.
fn format_file(file: &Path, only_reports: bool) -> Result<Outcome, Failure> {
    if is_foreign_file(file) {
        return Ok(Outcome::Foreign);
    }
    let bytes = fs::read(file).map_err(|error| failure(file, "read", &error))?;
    let Ok(text) = String::from_utf8(bytes) else { return Ok(Outcome::Invalid) };
    let before = SourceText::new(file.display().to_string(), text);
    Ok(match format(&before) {
        Ok(after) if *after == *before.text => Outcome::Unchanged,
        Ok(after) => {
            if !only_reports {
                whole_file::replace(file, after.as_bytes()).map_err(|error| failure(file, "written", &error))?;
            }
            Outcome::Changed { before, after }
        }
        Err(_) => Outcome::Invalid,
    })
}
