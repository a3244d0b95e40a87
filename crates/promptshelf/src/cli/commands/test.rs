//! `promptshelf test`: runs the tests of prompt files and prints their outcomes.

use std::{fs, io::Write};

use anstyle::{AnsiColor, Style};
use promptshelf_author::testing::{TestOutcome, TestSuite, junit};
use promptshelf_core::nearest;
use promptshelf_server::ServiceTarget;

use super::diagnostics::path_from_here;
use crate::{
    args::TestArguments,
    exit::{Exit, Failure},
    library::note_errors,
    output::{Output, count},
};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

pub(crate) async fn run(arguments: &TestArguments) -> Result<(), Failure> {
    let folder = arguments.library.folder();
    let library = crate::library::open(folder)?;
    note_errors(&library, folder);
    let is_broken = library.diagnostics().iter().any(promptshelf_core::Diagnostic::is_error);

    let mut output = Output::stdout();
    let catalog = library.catalog();
    let mut suite = TestSuite::new(&catalog, folder).update_golden_files(arguments.update);
    if let Some(text) = &arguments.filter {
        suite = suite.filter(text);
    }
    let target = ServiceTarget::new(library.service());
    let mut outcomes = Vec::new();
    for case in suite.cases() {
        let outcome = suite.run(&case, &target).await.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        if let Some(path) = &outcome.updated {
            let path = output.line(&path.display().to_string()).into_owned();
            writeln!(output.out, "wrote  {path}")?;
        }
        let word = if outcome.is_passed() { output.styled(GOOD, "ok    ") } else { output.styled(BAD, "FAILED") };
        let line = output.line(&case.full_name()).into_owned();
        writeln!(output.out, "{word} {line}")?;
        outcomes.push(outcome);
    }
    for unused in suite.unused_golden_files() {
        let unused = output.line(&unused.display().to_string()).into_owned();
        writeln!(output.out, "unused {unused}: no test names it")?;
    }
    let show_path = |path: &str| path_from_here(folder, path);
    let failed: Vec<&TestOutcome> = outcomes.iter().filter(|outcome| !outcome.is_passed()).collect();
    for outcome in &failed {
        describe(&mut output, outcome, &show_path(&outcome.location.to_string()))?;
    }
    summary(&mut output, outcomes.len(), failed.len(), suite.prompts_without_tests())?;
    if let Some(path) = &arguments.junit {
        fs::write(path, junit(&outcomes, show_path))
            .map_err(|error| Failure::new(Exit::Failed, format!("cannot write {}: {error}", path.display())))?;
    }
    output.out.flush()?;
    if let Some(filter) = arguments.filter.as_ref().filter(|_| outcomes.is_empty()) {
        let failure = Failure::new(Exit::NotFound, format!("no test has `{filter}` in its name, so none was run"));
        let all = TestSuite::new(&catalog, folder);
        let names: Vec<String> = all.cases().map(|case| case.full_name()).collect();
        return Err(match nearest(filter, names.iter().map(String::as_str)) {
            Some(name) => failure.help(format!("did you mean `{name}`?")),
            None => failure.help("`promptshelf test` without `--filter` runs and lists all tests"),
        });
    }
    if !failed.is_empty() || is_broken { Err(Failure::reported(Exit::Failed)) } else { Ok(()) }
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
    writeln!(output.out, "\n{outcome}{others}")?;
    Ok(())
}
