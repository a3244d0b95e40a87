//! `promptshelf test`: the tests that stand in prompt files.

mod expect;
mod golden;
mod junit;

use std::{
    collections::HashSet,
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anstyle::{AnsiColor, Style};
use promptshelf_core::{Prompt, TestDefinition};
use promptshelf_server::Library;

use self::{expect::Fault, golden::Golden};
use super::diagnostics::path_from_here;
use crate::{
    args::author::TestArguments,
    exit::{Exit, Failure},
    library::note_errors,
    output::{Output, count},
};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// What came of one test.
struct Outcome {
    prompt: String,
    test: String,
    /// Where the test stands, as `prompts/code_review.md:30:5`.
    place: String,
    faults: Vec<Fault>,
    took: Duration,
}

pub(crate) async fn run(arguments: &TestArguments) -> Result<(), Failure> {
    let folder = arguments.library.folder();
    let library = crate::library::open(folder)?;
    note_errors(&library, folder);
    let is_broken = library.diagnostics().iter().any(promptshelf_core::Diagnostic::is_error);

    let mut paper = Output::stdout();
    let mut outcomes = Vec::new();
    let mut without = 0;
    for prompt in library.catalog().prompts().iter() {
        let tests = &prompt.definition().tests;
        without += usize::from(tests.is_empty());
        for (index, test) in tests.iter().enumerate() {
            let name = test.name.clone().unwrap_or_else(|| (index + 1).to_string());
            let full = format!("{} / {name}", prompt.name());
            if arguments.filter.as_ref().is_some_and(|wanted| !full.contains(wanted.as_str())) {
                continue;
            }
            let started = Instant::now();
            let faults = perform(&library, prompt, test, folder, arguments.update, &mut paper).await?;
            let word = if faults.is_empty() { paper.styled(GOOD, "ok    ") } else { paper.styled(BAD, "FAILED") };
            let line = paper.line(&full).into_owned();
            writeln!(paper.out, "{word} {line}")?;
            let place = prompt.definition().origin.locate(&format!("tests.{index}")).to_string();
            let place = path_from_here(folder, &place);
            outcomes.push(Outcome {
                prompt: prompt.name().to_string(),
                test: name,
                place,
                faults,
                took: started.elapsed(),
            });
        }
    }
    for stray in golden::strays(folder, &golden_files(&library, folder)) {
        let stray = paper.line(&stray.display().to_string()).into_owned();
        writeln!(paper.out, "unused {stray}: no test names it")?;
    }
    let failed = outcomes.iter().filter(|outcome| !outcome.faults.is_empty()).count();
    for outcome in outcomes.iter().filter(|outcome| !outcome.faults.is_empty()) {
        tell(&mut paper, outcome)?;
    }
    summary(&mut paper, outcomes.len(), failed, without)?;
    if let Some(path) = &arguments.junit {
        fs::write(path, junit::report(&outcomes))
            .map_err(|error| Failure::new(Exit::Failed, format!("{} cannot be written: {error}", path.display())))?;
    }
    paper.out.flush()?;
    if failed > 0 || is_broken { Err(Failure::said(Exit::Failed)) } else { Ok(()) }
}

/// Every golden file that a test of the library names.
fn golden_files(library: &Library, folder: &Path) -> HashSet<PathBuf> {
    let catalog = library.catalog();
    let named = catalog.prompts().iter().flat_map(|prompt| {
        let names = prompt.definition().tests.iter().filter_map(|test| test.golden.as_deref());
        names.map(|name| Golden::beside(folder, &prompt.source().path, name).path)
    });
    named.collect()
}

/// Runs one test; with `update`, its golden file is written instead of compared.
async fn perform<W: Write>(
    library: &Library,
    prompt: &Prompt,
    test: &TestDefinition,
    folder: &Path,
    update: bool,
    paper: &mut Output<W>,
) -> Result<Vec<Fault>, Failure> {
    let mut faults = Vec::new();
    if let Some(complete) = &test.complete {
        faults.extend(expect::completion(library, prompt, complete));
    }
    if !expect::asks_for_messages(test) {
        return Ok(faults);
    }
    let messages = match expect::ask(library, prompt, test).await {
        Ok(messages) => messages,
        Err(fault) => {
            faults.extend(fault);
            return Ok(faults);
        }
    };
    faults.extend(expect::messages(test, &messages));
    if let Some(name) = &test.golden {
        let golden = Golden::beside(folder, &prompt.source().path, name);
        let now = golden::transcript(&messages);
        if update {
            if golden.write(&now)? {
                let path = paper.line(&golden.path.display().to_string()).into_owned();
                writeln!(paper.out, "wrote  {path}")?;
            }
        } else {
            faults.extend(golden.compare(&now));
        }
    }
    Ok(faults)
}

fn tell<W: Write>(paper: &mut Output<W>, outcome: &Outcome) -> Result<(), Failure> {
    const REMOVED: Style = AnsiColor::Red.on_default();
    const ADDED: Style = AnsiColor::Green.on_default();
    let heading = paper.line(&format!("{} / {}", outcome.prompt, outcome.test)).into_owned();
    let place = paper.line(&outcome.place).into_owned();
    let heading = paper.styled(Style::new().bold(), &heading);
    writeln!(paper.out, "\n{heading} ({place})")?;
    for fault in &outcome.faults {
        let sentence = paper.line(&fault.sentence).into_owned();
        writeln!(paper.out, "  {sentence}")?;
        for line in fault.details.lines() {
            let style = match line.as_bytes().first() {
                Some(b'-') => REMOVED,
                Some(b'+') => ADDED,
                _ => Style::new(),
            };
            let line = paper.line(line).into_owned();
            let line = paper.styled(style, &line);
            writeln!(paper.out, "    {line}")?;
        }
    }
    Ok(())
}

fn summary<W: Write>(paper: &mut Output<W>, tests: usize, failed: usize, without: usize) -> Result<(), Failure> {
    let outcome = match (tests, failed) {
        (0, _) => "no tests".to_owned(),
        (tests, 0) => format!("{} passed", count(tests, "test")),
        (tests, failed) => format!("{failed} of {} failed", count(tests, "test")),
    };
    let outcome = paper.styled(if failed > 0 { BAD } else { GOOD }, &outcome);
    let others = match without {
        0 => String::new(),
        1 => "; 1 prompt has no test".to_owned(),
        others => format!("; {others} prompts have no test"),
    };
    writeln!(paper.out, "\n{outcome}{others}")?;
    Ok(())
}
