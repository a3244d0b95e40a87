//! `promptshelf test`: runs the tests of prompt files and prints their outcomes.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use anstyle::{AnsiColor, Style};
use clap::Args;
use promptshelf_author::testing::{TestOutcome, TestSuite, junit};
use promptshelf_core::nearest;
use promptshelf_server::ServiceTarget;
use serde_json::json;

use super::diagnostics::path_from_here;
use crate::{
    args::PathArguments,
    exit::{Exit, Failure},
    library::{Selection, note_errors},
    output::{Output, count, list_json, pretty_json},
    whole_file,
};

const TEST_EXAMPLES: &str = "\
Tests are in the front matter of prompt files, under `tests`.

Examples:
  promptshelf test prompts
  promptshelf test prompts/code_review.md
  promptshelf test prompts --filter fence
  promptshelf test prompts --update            accept the current messages
  promptshelf test prompts --junit report.xml";

#[derive(Debug, Args)]
#[command(after_help = TEST_EXAMPLES)]
pub(crate) struct TestArguments {
    #[command(flatten)]
    pub(crate) library: PathArguments,

    /// Run only tests whose full name (such as `code_review / python`) contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,

    /// Write the current messages to the golden files
    #[arg(long)]
    pub(crate) update: bool,

    /// Also write a report in the JUnit XML format
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const GOOD: Style = AnsiColor::Green.on_default().bold();

const BAD: Style = AnsiColor::Red.on_default().bold();

/// The outcomes of one library.
struct Tested {
    folder: PathBuf,
    outcomes: Vec<TestOutcome>,
    without_tests: usize,
    is_broken: bool,
}

pub(crate) async fn run(arguments: &TestArguments) -> Result<(), Failure> {
    let mut all = Vec::new();
    let mut names = Vec::new();
    for selection in Selection::of(&arguments.library.paths())? {
        all.push(run_selected(arguments, selection, &mut names).await?);
    }
    let shown = |tested: &Tested, outcome: &TestOutcome| path_from_here(&tested.folder, &outcome.location.to_string());
    let outcomes = || all.iter().flat_map(|tested| tested.outcomes.iter().map(move |outcome| (tested, outcome)));
    let failed: Vec<(&Tested, &TestOutcome)> = outcomes().filter(|(_, outcome)| !outcome.is_passed()).collect();
    let mut output = Output::stdout();
    if arguments.json {
        let items = outcomes().map(|(tested, outcome)| {
            let mismatches = outcome.mismatches.iter();
            let mismatches = mismatches.map(|it| json!({ "message": it.message, "details": it.details }));
            json!({
                "prompt": outcome.prompt,
                "test": outcome.test,
                "passed": outcome.is_passed(),
                "location": shown(tested, outcome),
                "mismatches": mismatches.collect::<Vec<_>>(),
            })
        });
        writeln!(output.out, "{}", pretty_json(&list_json(items)))?;
    } else {
        for (tested, outcome) in &failed {
            describe(&mut output, outcome, &shown(tested, outcome))?;
        }
        let without = all.iter().map(|tested| tested.without_tests).sum();
        summary(&mut output, outcomes().count(), failed.len(), without)?;
    }
    if let Some(path) = &arguments.junit {
        let report = match all.as_slice() {
            [tested] => junit(&tested.outcomes, |path| path_from_here(&tested.folder, path)),
            _ => junit(&outcomes().map(|(_, outcome)| outcome.clone()).collect::<Vec<_>>(), str::to_owned),
        };
        write_report(path, &report)?;
    }
    output.out.flush()?;
    if let Some(filter) = arguments.filter.as_ref().filter(|_| outcomes().next().is_none()) {
        let failure = Failure::new(Exit::NotFound, format!("no test has `{filter}` in its name, so none was run"));
        return Err(match nearest(filter, names.iter().map(String::as_str)) {
            Some(name) => failure.help(format!("did you mean `{name}`?")),
            None => failure.help("`promptshelf test` without `--filter` runs and lists all tests"),
        });
    }
    let is_broken = all.iter().any(|tested| tested.is_broken);
    if !failed.is_empty() || is_broken { Err(Failure::reported(Exit::Failed)) } else { Ok(()) }
}

/// Writes a report of JUnit in place of an earlier one, and of no other file.
fn write_report(path: &Path, report: &str) -> Result<(), Failure> {
    let failure = |reason: &dyn std::fmt::Display| {
        Failure::new(Exit::Failed, format!("cannot write {}: {reason}", path.display()))
    };
    if path.exists() && !path.is_file() {
        // Such as /dev/stdout.
        return fs::write(path, report).map_err(|error| failure(&error));
    }
    if fs::read(path).is_ok_and(|before| !before.is_empty() && !before.starts_with(b"<?xml")) {
        return Err(failure(&"a file that is no report has this name").help("name another file, or remove it"));
    }
    whole_file::replace(path, report.as_bytes()).map_err(|error| failure(&error))
}

/// Runs the tests of one library, or of some of its files, and prints a line for each. Collects the names of all tests.
async fn run_selected(
    arguments: &TestArguments,
    selection: Selection,
    names: &mut Vec<String>,
) -> Result<Tested, Failure> {
    let folder = selection.folder.as_path();
    let library = crate::library::open(folder)?;
    note_errors(&library, folder);
    let is_broken =
        library.diagnostics().iter().any(|found| found.is_error() && selection.has(&found.location.source.path));
    let mut output = Output::stdout();
    let catalog = library.catalog();
    let mut suite = TestSuite::new(&catalog, folder).update_golden_files(arguments.update);
    names.extend(suite.cases().map(|case| case.full_name()));
    if let Some(text) = &arguments.filter {
        suite = suite.filter(text);
    }
    let target = ServiceTarget::new(library.service());
    let mut outcomes = Vec::new();
    for case in suite.cases().filter(|case| selection.has(&case.prompt().source().path)) {
        let outcome = suite.run(&case, &target).await;
        if !arguments.json {
            if let Some(path) = &outcome.updated {
                let path = output.line(&path.display().to_string()).into_owned();
                writeln!(output.out, "wrote  {path}")?;
            }
            let word = if outcome.is_passed() { output.styled(GOOD, "ok    ") } else { output.styled(BAD, "FAILED") };
            let line = output.line(&case.full_name()).into_owned();
            writeln!(output.out, "{word} {line}")?;
        }
        outcomes.push(outcome);
    }
    if selection.is_whole() && !arguments.json {
        for unused in suite.unused_golden_files() {
            let unused = output.line(&unused.display().to_string()).into_owned();
            writeln!(output.out, "unused {unused}: no test names it")?;
        }
    }
    let prompts = catalog.prompts().iter().filter(|prompt| selection.has(&prompt.source().path));
    let without_tests = prompts.filter(|prompt| prompt.definition().tests.is_empty()).count();
    Ok(Tested { folder: selection.folder, outcomes, without_tests, is_broken })
}

fn describe<W: Write>(output: &mut Output<W>, outcome: &TestOutcome, location: &str) -> Result<(), Failure> {
    const REMOVED: Style = AnsiColor::Red.on_default();
    const ADDED: Style = AnsiColor::Green.on_default();
    let heading = output.line(&format!("{} / {}", outcome.prompt, outcome.test)).into_owned();
    let location = output.line(location).into_owned();
    let heading = output.styled(Style::new().bold(), &heading);
    writeln!(output.out, "\n{heading} ({location})")?;
    for mismatch in &outcome.mismatches {
        let message = output.line(&mismatch.message).into_owned();
        writeln!(output.out, "  {message}")?;
        for line in mismatch.details.lines() {
            let style = match line.as_bytes().first() {
                Some(b'-') => REMOVED,
                Some(b'+') => ADDED,
                _ => Style::new(),
            };
            let line = output.line(line).into_owned();
            let line = output.styled(style, &line);
            writeln!(output.out, "    {line}")?;
        }
    }
    Ok(())
}

fn summary<W: Write>(output: &mut Output<W>, tests: usize, failed: usize, without: usize) -> Result<(), Failure> {
    let outcome = match (tests, failed) {
        (0, _) => "no tests".to_owned(),
        (tests, 0) => format!("{} passed", count(tests, "test")),
        (tests, failed) => format!("{failed} of {} failed", count(tests, "test")),
    };
    let outcome = output.styled(if failed > 0 { BAD } else { GOOD }, &outcome);
    let others = match without {
        0 => String::new(),
        1 => "; 1 prompt has no test".to_owned(),
        others => format!("; {others} prompts have no test"),
    };
    // Below the lines of the tests.
    let distance = if tests > 0 { "\n" } else { "" };
    writeln!(output.out, "{distance}{outcome}{others}")?;
    Ok(())
}
