//! `promptshelf check`: everything that is wrong with a library.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use anstyle::{AnsiColor, Style};
use promptshelf_author::{clients, review, sarif};
use promptshelf_core::{Catalog, Checked, Code, Diagnostic, Severity};
use promptshelf_server::{Library, OpenError};
use promptshelf_source::{Directory, Source};

use super::{
    clients::find,
    diagnostics::{Drawing, path_from_here, to_json},
    github::to_github,
};
use crate::{
    args::{CheckArguments, CheckFormat, Deny},
    exit::{Exit, Failure},
    library::granted_roots,
    output::{Output, pretty_json},
    settings::ServerFileLocation,
};

pub(crate) fn run(arguments: &CheckArguments) -> Result<(), Failure> {
    let folder = arguments.library.folder();
    let clients = asked_for(&arguments.clients)?;
    let environment = |name: &str| std::env::var(name).ok();
    // Diagnostics show paths relative to the library, and this file is outside of it.
    let config = arguments.config.as_deref().map(std::path::absolute).transpose()?;
    let roots = granted_roots(config.as_deref());
    let directory = Directory::new(folder);
    directory.grant_roots(roots.clone());
    let (prompts, mut diagnostics) = match Library::builder().source(directory).build() {
        Ok(library) => {
            let catalog = library.catalog();
            (catalog.prompts().len(), everything(&catalog, &library.diagnostics(), &clients))
        }
        // A manifest that cannot be understood is an author's mistake like any other here.
        Err(OpenError::Source(error)) if error.is_invalid_manifest() && !error.diagnostics().is_empty() => {
            without_manifest(folder, roots, &clients)?
        }
        Err(other) => return Err(other.into()),
    };
    if arguments.config.is_some() {
        diagnostics.extend(ServerFileLocation::find(config.as_deref(), &environment).load()?.diagnostics());
    }
    diagnostics.sort_by(|a, b| place(a).cmp(&place(b)));

    let mut paper = Output::stdout();
    match arguments.format {
        CheckFormat::Json => writeln!(paper.out, "{}", pretty_json(&to_json(&diagnostics, folder)))?,
        CheckFormat::Sarif => {
            writeln!(paper.out, "{}", pretty_json(&sarif(&diagnostics, |path| path_from_here(folder, path))))?
        }
        CheckFormat::Github => write!(paper.out, "{}", to_github(&diagnostics, folder))?,
        CheckFormat::Human => draw(&mut paper, &diagnostics, prompts, folder)?,
    }
    paper.out.flush()?;
    let least = if arguments.deny == Some(Deny::Warnings) { Severity::Warning } else { Severity::Error };
    if diagnostics.iter().any(|diagnostic| diagnostic.severity >= least) {
        Err(Failure::said(Exit::Failed))
    } else {
        Ok(())
    }
}

/// What checking found, what a review adds, and what clients stumble over.
pub(crate) fn everything(catalog: &Catalog, found: &[Diagnostic], clients: &[&clients::Client]) -> Vec<Diagnostic> {
    let mut all = found.to_vec();
    all.extend(review(catalog, found));
    all.extend(clients.iter().flat_map(|client| clients::lint(catalog, client)));
    all
}

/// Everything that is wrong with a library whose manifest is: that must not
/// keep its author from hearing of the rest.
fn without_manifest(
    folder: &Path,
    roots: Vec<PathBuf>,
    clients: &[&clients::Client],
) -> Result<(usize, Vec<Diagnostic>), Failure> {
    let directory = Directory::lenient(folder);
    directory.grant_roots(roots);
    let reading = directory.read(None).map_err(OpenError::Source)?;
    let Some(reading) = reading else { return Ok((0, Vec::new())) };
    let Checked { catalog, diagnostics } =
        promptshelf_core::check(reading.into_definitions().map_err(OpenError::Source)?, None);
    let mut found = everything(&catalog, &diagnostics, clients);
    // The declaration may stand where the manifest could not be understood.
    found.retain(|found| found.code != Code::UnknownResource);
    Ok((catalog.prompts().len(), found))
}

/// The clients of `--client`. Among all, those without prompts are left out:
/// what no prompt can change is no lint.
fn asked_for(names: &[String]) -> Result<Vec<&'static clients::Client>, Failure> {
    if names.iter().any(|name| name == "all") {
        return Ok(clients::CLIENTS.iter().filter(|client| client.shows_prompts()).collect());
    }
    names.iter().map(|name| find(name)).collect()
}

fn place(diagnostic: &Diagnostic) -> (&str, usize) {
    (&diagnostic.location.source.path, diagnostic.location.span().start)
}

fn draw<W: Write>(
    paper: &mut Output<W>,
    diagnostics: &[Diagnostic],
    prompts: usize,
    folder: &Path,
) -> Result<(), Failure> {
    const GOOD: Style = AnsiColor::Green.on_default().bold();
    const BAD: Style = AnsiColor::Red.on_default().bold();
    let drawing = Drawing { folder, colours: paper.colours, width: paper.width };
    for diagnostic in diagnostics {
        writeln!(paper.out, "{}\n", drawing.draw(diagnostic))?;
    }
    if let Some(first) = diagnostics.first().filter(|_| paper.terminal) {
        let hint = format!("`promptshelf explain {}` says more of the first; each code has such a page", first.code);
        writeln!(paper.out, "{hint}\n")?;
    }
    let of = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
    let (errors, hints) = (of(Severity::Error), of(Severity::Hint));
    let mut found = crate::output::count_findings(errors, of(Severity::Warning));
    if hints > 0 {
        found.push_str(&format!("; {}", crate::output::count(hints, "hint")));
    }
    let style = if errors > 0 { BAD } else { GOOD };
    let library = paper.line(&folder.display().to_string()).into_owned();
    let summary = format!("{library}: {}, {found}", crate::output::count(prompts, "prompt"));
    let summary = paper.styled(style, &summary);
    writeln!(paper.out, "{summary}")?;
    Ok(())
}
