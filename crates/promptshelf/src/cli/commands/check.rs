//! `promptshelf check`: reports every mistake in a library.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use anstyle::{AnsiColor, Style};
use promptshelf_author::{clients, findings, sarif};
use promptshelf_core::{AccessRule, Catalog, Checked, Code, Definitions, Diagnostic, Location, Severity, SourceText};
use promptshelf_git::GitAddress;
use promptshelf_server::{Library, OpenError};
use promptshelf_source::{Files, Fixed, Source};

use super::{
    clients::find,
    diagnostics::{DiagnosticFormat, path_from_here, to_json},
    to_github,
};
use crate::{
    args::{CheckArguments, CheckFormat, Deny},
    exit::{Exit, Failure},
    library::{self, granted_roots},
    output::{Output, count, count_all, pretty_json},
    settings::{self, ServerFileLocation},
};

pub(crate) fn run(arguments: &CheckArguments) -> Result<(), Failure> {
    let folder = arguments.library.folder();
    let clients = selected_clients(&arguments.clients)?;
    let environment = crate::environment::variable;
    // Diagnostics show paths relative to the library, and this file is outside of it.
    let config = arguments.config.as_deref().map(std::path::absolute).transpose()?;
    let location = ServerFileLocation::find(config.as_deref(), &environment);
    let named = arguments.library.explicit_folder().filter(|folder| !GitAddress::is_meant(&folder.to_string_lossy()));
    let settings = config.is_some().then(|| settings::check_file(&location, named, &environment)).transpose()?;
    let is_here = arguments.library.explicit_folder().is_none();
    let (prompts, mut diagnostics) = match settings.as_ref().filter(|settings| settings.has_sources) {
        // Without a library on the command line `serve` serves the sources, and not the working directory.
        Some(settings) if is_here => check_sources(&settings.folders, &granted_roots(config.as_deref()), &clients)?,
        // With `[[source]]` the rules are about names that this library does not have.
        Some(_) => check(folder, granted_roots(config.as_deref()), Vec::new(), &clients)?,
        None => {
            let rules = settings.iter().flat_map(|settings| settings.access.clone()).collect();
            check(folder, granted_roots(config.as_deref()), rules, &clients)?
        }
    };
    diagnostics.extend(settings.into_iter().flat_map(|settings| settings.diagnostics));
    diagnostics.sort_by(|a, b| position(a).cmp(&position(b)));

    let mut output = Output::stdout();
    match arguments.format {
        CheckFormat::Json => writeln!(output.out, "{}", pretty_json(&to_json(&diagnostics, folder)))?,
        CheckFormat::Sarif => {
            writeln!(output.out, "{}", pretty_json(&sarif(&diagnostics, |path| path_from_here(folder, path))))?;
        }
        CheckFormat::Github => write!(output.out, "{}", to_github(&diagnostics, folder))?,
        CheckFormat::Human => print_findings(&mut output, &diagnostics, prompts, folder)?,
    }
    output.out.flush()?;
    let of_settings = |found: &Diagnostic| config.as_deref() == Some(Path::new(&*found.location.source.path));
    if diagnostics.iter().any(|found| found.is_error() && of_settings(found)) {
        return Err(Failure::reported(Exit::Settings));
    }
    let threshold = if arguments.deny == Some(Deny::Warnings) { Severity::Warning } else { Severity::Error };
    if diagnostics.iter().any(|diagnostic| diagnostic.severity >= threshold) {
        Err(Failure::reported(Exit::Failed))
    } else {
        Ok(())
    }
}

/// Checks the folders of `[[source]]`. Other sources are not read: they can be away, and are other people's.
fn check_sources(
    folders: &[PathBuf],
    roots: &[PathBuf],
    clients: &[&clients::Client],
) -> Result<(usize, Vec<Diagnostic>), Failure> {
    let (mut prompts, mut all) = (0, Vec::new());
    for folder in folders {
        let (count, found) = check(folder, roots.to_vec(), Vec::new(), clients)?;
        prompts += count;
        // Paths are relative to the library, and there are several.
        let moved = |location: &Location| {
            let path = path_from_here(folder, &location.source.path);
            Location::new(&SourceText::new(path, &*location.source.text), location.span())
        };
        all.extend(found.into_iter().map(|mut diagnostic| {
            diagnostic.location = moved(&diagnostic.location);
            diagnostic.related.iter_mut().for_each(|(location, _)| *location = moved(location));
            diagnostic
        }));
    }
    Ok((prompts, all))
}

/// Checks a library with the operator's access rules. Returns the number of its prompts, and all findings.
fn check(
    folder: &Path,
    roots: Vec<PathBuf>,
    rules: Vec<AccessRule>,
    clients: &[&clients::Client],
) -> Result<(usize, Vec<Diagnostic>), Failure> {
    let mut builder = Library::builder().source(library::source(folder, roots.clone())?);
    if !rules.is_empty() {
        builder = builder.source(Fixed::new(Definitions { access: rules, ..Definitions::default() }));
    }
    match builder.build() {
        Ok(library) => {
            let catalog = library.catalog();
            Ok((catalog.prompts().len(), all_findings(&catalog, &library.diagnostics(), clients)))
        }
        // An invalid manifest is an author's mistake and is reported with the others. The operator's rules are left out:
        // they can be about resources of the manifest.
        Err(OpenError::Source(error)) if error.is_invalid_manifest() && !error.diagnostics().is_empty() => {
            without_manifest(folder, roots, clients)
        }
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn all_findings(catalog: &Catalog, found: &[Diagnostic], clients: &[&clients::Client]) -> Vec<Diagnostic> {
    let mut all = findings(catalog, found);
    all.extend(clients.iter().flat_map(|client| clients::lint(catalog, client)));
    all
}

/// Checks a library without its invalid manifest, so that one run reports the mistakes in all files.
fn without_manifest(
    folder: &Path,
    roots: Vec<PathBuf>,
    clients: &[&clients::Client],
) -> Result<(usize, Vec<Diagnostic>), Failure> {
    let directory = Files::folder(folder).lenient();
    directory.grant_roots(roots);
    let library = directory.read().map_err(OpenError::Source)?;
    let Checked { catalog, diagnostics } = promptshelf_core::check(library.into_definitions(), None);
    let mut findings = all_findings(&catalog, &diagnostics, clients);
    // The resource may be declared in the part of the manifest that is invalid.
    findings.retain(|finding| finding.code != Code::UnknownResource);
    Ok((catalog.prompts().len(), findings))
}

/// Returns the clients of `--client`. `all` leaves out clients without support for prompts, since no edit of a prompt
/// could resolve such a finding.
fn selected_clients(names: &[String]) -> Result<Vec<&'static clients::Client>, Failure> {
    if names.iter().any(|name| name == "all") {
        return Ok(clients::CLIENTS.iter().filter(|client| client.shows_prompts()).collect());
    }
    names.iter().map(|name| find(name)).collect()
}

fn position(diagnostic: &Diagnostic) -> (&str, usize) {
    (&diagnostic.location.source.path, diagnostic.location.span().start)
}

fn print_findings<W: Write>(
    output: &mut Output<W>,
    diagnostics: &[Diagnostic],
    prompts: usize,
    folder: &Path,
) -> Result<(), Failure> {
    const GOOD: Style = AnsiColor::Green.on_default().bold();
    const BAD: Style = AnsiColor::Red.on_default().bold();
    let format = DiagnosticFormat { folder, colours: output.colours, width: output.width };
    for diagnostic in diagnostics {
        writeln!(output.out, "{}\n", format.format(diagnostic))?;
    }
    if let Some(first) = diagnostics.first().filter(|_| output.terminal) {
        let hint =
            format!("`promptshelf explain {}` explains the first finding; every code has such a page", first.code);
        writeln!(output.out, "{hint}\n")?;
    }
    let found = count_all(diagnostics);
    let errors = diagnostics.iter().any(Diagnostic::is_error);
    let style = if errors { BAD } else { GOOD };
    let library = output.line(&folder.display().to_string()).into_owned();
    let summary = format!("{library}: {}, {found}", count(prompts, "prompt"));
    let summary = output.styled(style, &summary);
    writeln!(output.out, "{summary}")?;
    Ok(())
}
