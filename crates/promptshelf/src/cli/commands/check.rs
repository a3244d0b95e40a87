//! `promptshelf check`: reports every mistake in a library.

use std::{
    collections::{BTreeMap, HashMap},
    io::Write,
    path::{Path, PathBuf},
};

use anstyle::{AnsiColor, Style};
use promptshelf_author::{Change, clients, findings, only_fixes, sarif};
use promptshelf_core::{AccessRule, Catalog, Checked, Code, Definitions, Diagnostic, Location, Severity, SourceText};
use promptshelf_git::GitAddress;
use promptshelf_server::{Library, OpenError};
use promptshelf_source::{Files, Fixed, Source};

use super::{
    channels::{print_unified, unified},
    diagnostics::{DiagnosticFormat, path_from_here, to_json},
    known_clients, to_github,
};
use crate::{
    args::{CheckArguments, CheckFormat, Deny},
    command_line,
    exit::{Exit, Failure},
    library::{self, Selection, granted_roots},
    output::{Output, count, count_all, pretty_json, shortened},
    settings::{self, ServerFileLocation},
    source::HERE,
    whole_file,
};

/// The findings of one kind that are printed with their lines; the others are listed.
const MOST_OF_A_KIND: usize = 5;
/// How often a library is checked again after its files were corrected.
const MOST_ROUNDS: usize = 10;
const MOST_LISTED: usize = 20;
/// The most rows of the table of clients.
const MOST_ROWS: usize = 100;

/// What a client does with a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Treatment {
    Ok,
    Changed,
    Hidden,
}

impl Treatment {
    fn as_str(self) -> &'static str {
        match self {
            Treatment::Ok => "ok",
            Treatment::Changed => "changed",
            Treatment::Hidden => "hidden",
        }
    }
}

/// The result of the check of one or several libraries.
#[derive(Default)]
struct Found {
    prompts: usize,
    findings: Vec<Diagnostic>,
    /// Each prompt with its treatment by each client.
    treatments: Vec<(String, Vec<Treatment>)>,
}

impl Found {
    /// Reviews a checked library.
    fn of(catalog: &Catalog, diagnostics: &[Diagnostic], clients: &[&'static clients::Client]) -> Found {
        let mut found = Found { prompts: catalog.prompts().len(), ..Found::default() };
        found.findings = findings(catalog, diagnostics);
        let mut columns = Vec::new();
        for client in clients {
            let lint = clients::lint(catalog, client);
            let mut column: HashMap<&str, Treatment> = HashMap::new();
            for finding in &lint {
                let treatment = if finding.code == Code::ClientHides { Treatment::Hidden } else { Treatment::Changed };
                let known = column.entry(&finding.location.source.path).or_insert(treatment);
                *known = treatment.max(*known);
            }
            let hides = |quirk: clients::Quirk| client.facts.iter().any(|fact| fact.quirk == quirk);
            let first_page = catalog.policy().page_size;
            let treatments = catalog.prompts().iter().enumerate().map(|(index, prompt)| {
                let is_hidden = hides(clients::Quirk::NoPrompts)
                    || hides(clients::Quirk::NeverGets)
                    || (hides(clients::Quirk::FirstPage) && index >= first_page);
                let treatment = column.get(&*prompt.source().path).copied().unwrap_or(Treatment::Ok);
                if is_hidden { Treatment::Hidden } else { treatment }
            });
            columns.push(treatments.collect::<Vec<_>>());
            found.findings.extend(lint);
        }
        found.treatments = (catalog.prompts().iter().enumerate())
            .map(|(row, prompt)| (prompt.name().to_string(), columns.iter().map(|column| column[row]).collect()))
            .collect();
        found
    }

    /// Adds those of another library, whose paths become those from here.
    fn extend(&mut self, folder: &Path, other: Found) {
        let moved = |location: &Location| {
            let path = path_from_here(folder, &location.source.path);
            Location::new(&SourceText::new(path, &*location.source.text), location.span())
        };
        self.prompts += other.prompts;
        self.treatments.extend(other.treatments);
        self.findings.extend(other.findings.into_iter().map(|mut finding| {
            finding.location = moved(&finding.location);
            finding.related.iter_mut().for_each(|(location, _)| *location = moved(location));
            finding
        }));
    }
}

pub(crate) fn run(arguments: &CheckArguments) -> Result<(), Failure> {
    let paths = arguments.library.paths();
    if arguments.fix {
        for selection in Selection::of(&paths)? {
            fix(&selection, arguments.dry_run)?;
        }
    }
    let mut selections = Selection::of(&paths)?;
    let clients = selected_clients(&arguments.clients)?;
    let environment = crate::environment::variable;
    // Diagnostics show paths relative to the library, and this file is outside of it.
    let config = arguments.config.as_deref().map(std::path::absolute).transpose()?;
    let roots = || granted_roots(config.as_deref());
    let location = ServerFileLocation::find(config.as_deref(), &environment);
    let (mut found, folder) = match selections.pop().filter(|_| selections.is_empty()) {
        Some(only) => {
            let folder = only.folder.clone();
            let is_git = GitAddress::is_meant(&folder.to_string_lossy());
            let named = Some(folder.as_path()).filter(|_| !paths.is_empty() && !is_git);
            let settings =
                config.is_some().then(|| settings::check_file(&location, named, &environment)).transpose()?;
            let mut found = match settings.as_ref().filter(|settings| settings.has_sources) {
                // Without a library on the command line `serve` serves the sources, and not the working directory.
                // Other sources are not read: they can be away, and are other people's.
                Some(settings) if paths.is_empty() => {
                    let mut all = Found::default();
                    for folder in &settings.folders {
                        all.extend(folder, check(folder, roots(), Vec::new(), &clients)?);
                    }
                    all
                }
                // With `[[source]]` the rules are about names that this library does not have.
                Some(_) => check(&folder, roots(), Vec::new(), &clients)?,
                None => {
                    let rules = settings.iter().flat_map(|settings| settings.access.clone()).collect();
                    check(&folder, roots(), rules, &clients)?
                }
            };
            keep_selected(&mut found, &only);
            found.findings.extend(settings.into_iter().flat_map(|settings| settings.diagnostics));
            (found, folder)
        }
        None if config.is_some() => {
            return Err(Failure::new(Exit::Usage, "--config needs a single library").help("name one library"));
        }
        None => {
            let mut all = Found::default();
            for selection in Selection::of(&paths)? {
                let mut found = check(&selection.folder, roots(), Vec::new(), &clients)?;
                keep_selected(&mut found, &selection);
                all.extend(&selection.folder, found);
            }
            (all, PathBuf::from(HERE))
        }
    };
    found.findings.sort_by(|a, b| position(a).cmp(&position(b)));
    let diagnostics = &found.findings;

    let mut output = Output::stdout();
    let format = if arguments.json { CheckFormat::Json } else { arguments.format };
    match format {
        CheckFormat::Json => {
            let mut json = to_json(diagnostics, &folder);
            if !clients.is_empty() {
                let treatments = found.treatments.iter().map(|(prompt, treatments)| {
                    let of = clients.iter().zip(treatments);
                    (prompt, of.map(|(client, it)| (client.id, it.as_str())).collect::<BTreeMap<_, _>>())
                });
                json["clients"] = serde_json::json!(treatments.collect::<BTreeMap<_, _>>());
            }
            writeln!(output.out, "{}", pretty_json(&json))?;
        }
        CheckFormat::Sarif => {
            writeln!(output.out, "{}", pretty_json(&sarif(diagnostics, |path| path_from_here(&folder, path))))?;
        }
        CheckFormat::Github => write!(output.out, "{}", to_github(diagnostics, &folder))?,
        CheckFormat::Human => {
            let is_table = clients.len() > 1 && !arguments.details;
            let shown: Vec<&Diagnostic> =
                diagnostics.iter().filter(|found| !(is_table && is_of_client(found.code))).collect();
            print_findings(&mut output, &shown, found.prompts, &folder)?;
            if is_table {
                print_table(&mut output, &clients, &found.treatments)?;
            }
        }
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

/// Checks a library with the operator's access rules.
fn check(
    folder: &Path,
    roots: Vec<PathBuf>,
    rules: Vec<AccessRule>,
    clients: &[&'static clients::Client],
) -> Result<Found, Failure> {
    let mut builder = Library::builder().source(library::source(folder, roots.clone())?);
    if !rules.is_empty() {
        builder = builder.source(Fixed::new(Definitions { access: rules, ..Definitions::default() }));
    }
    match builder.build() {
        Ok(library) => {
            let catalog = library.catalog();
            Ok(Found::of(&catalog, &library.diagnostics(), clients))
        }
        // An invalid manifest is an author's mistake and is reported with the others. The operator's rules are left out:
        // they can be about resources of the manifest.
        Err(OpenError::Source(error)) if error.is_invalid_manifest() && !error.diagnostics().is_empty() => {
            without_manifest(folder, roots, clients)
        }
        Err(error) => Err(error.into()),
    }
}

/// Checks a library without its invalid manifest, so that one run reports the mistakes in all files.
fn without_manifest(
    folder: &Path,
    roots: Vec<PathBuf>,
    clients: &[&'static clients::Client],
) -> Result<Found, Failure> {
    let directory = Files::folder(folder).lenient();
    directory.grant_roots(roots);
    let library = directory.read().map_err(OpenError::Source)?;
    let Checked { catalog, diagnostics } = promptshelf_core::check(library.into_definitions(), None);
    let mut found = Found::of(&catalog, &diagnostics, clients);
    // The resource may be declared in the part of the manifest that is invalid.
    found.findings.retain(|finding| finding.code != Code::UnknownResource);
    Ok(found)
}

/// Returns the clients of `--client`. `all` leaves out clients without support for prompts, since no edit of a prompt
/// could resolve such a finding.
fn selected_clients(names: &[String]) -> Result<Vec<&'static clients::Client>, Failure> {
    if names.iter().any(|name| name == "all") {
        return Ok(clients::CLIENTS.iter().filter(|client| client.shows_prompts()).collect());
    }
    names.iter().map(|name| known_clients::find(name)).collect()
}

/// Corrects the findings of one library that have one answer, until there are none.
fn fix(selection: &Selection, dry_run: bool) -> Result<(), Failure> {
    let folder = &selection.folder;
    if GitAddress::is_meant(&folder.to_string_lossy()) {
        return Err(Failure::new(Exit::Usage, "--fix changes files, and a git repository is only read")
            .help("clone it, and name the folder"));
    }
    let mut output = Output::stdout();
    let mut before: BTreeMap<String, String> = BTreeMap::new();
    let mut corrected = 0;
    let source = Files::folder(folder).lenient();
    source.grant_roots(granted_roots(None));
    for _ in 0..MOST_ROUNDS {
        let checked = promptshelf_core::check(source.read().map_err(OpenError::Source)?.into_definitions(), None);
        let mut findings = findings(&checked.catalog, &checked.diagnostics);
        findings.retain(|finding| selection.has(&finding.location.source.path));
        let fixed = only_fixes(&findings);
        if fixed.is_empty() {
            break;
        }
        let mut is_done = true;
        for file in fixed {
            let path = folder.join(&file.path);
            let failed = |error: std::io::Error| {
                Failure::new(Exit::Failed, format!("{} cannot be changed: {error}", path.display()))
            };
            let text = match &file.change {
                Change::Rename(to) => {
                    let to = folder.join(to);
                    if to.exists() {
                        continue;
                    }
                    let line = format!("renamed {} to {}", path.display(), to.display());
                    let line = output.line(&line).into_owned();
                    writeln!(output.out, "{line}")?;
                    if !dry_run {
                        std::fs::rename(&path, &to).map_err(failed)?;
                        is_done = false;
                    }
                    corrected += file.count;
                    continue;
                }
                Change::Decode => {
                    let bytes = std::fs::read(&path).map_err(failed)?;
                    let Some(text) = promptshelf_author::decoded(&bytes) else { continue };
                    before.entry(file.path.clone()).or_insert_with(|| String::from_utf8_lossy(&bytes).into_owned());
                    text
                }
                Change::Edits(edits) => {
                    let text = std::fs::read_to_string(&path).map_err(failed)?;
                    let after = promptshelf_author::edited(&text, edits);
                    before.entry(file.path.clone()).or_insert(text);
                    after
                }
                _ => continue,
            };
            corrected += file.count;
            if dry_run {
                print_change(&mut output, &file.path, &before[&file.path], &text)?;
            } else {
                whole_file::replace(&path, text.as_bytes()).map_err(failed)?;
                is_done = false;
            }
        }
        if is_done {
            break;
        }
    }
    for (path, before) in before.iter().filter(|_| !dry_run) {
        // It may have been renamed since.
        if let Ok(after) = std::fs::read_to_string(folder.join(path)) {
            print_change(&mut output, path, before, &after)?;
        }
    }
    let verb = if dry_run { "would be corrected" } else { "corrected" };
    writeln!(output.out, "{} {verb}\n", count(corrected, "finding"))?;
    Ok(output.out.flush()?)
}

fn print_change<W: Write>(output: &mut Output<W>, path: &str, before: &str, after: &str) -> Result<(), Failure> {
    print_unified(output, &unified(before, after, path, path))
}

fn keep_selected(found: &mut Found, selection: &Selection) {
    if !selection.is_whole() {
        found.findings.retain(|finding| {
            let related = finding.related.iter().map(|(location, _)| location);
            std::iter::once(&finding.location).chain(related).any(|location| selection.has(&location.source.path))
        });
    }
}

fn position(diagnostic: &Diagnostic) -> (&str, usize) {
    (&diagnostic.location.source.path, diagnostic.location.span().start)
}

fn is_of_client(code: Code) -> bool {
    code.as_str().starts_with("client-")
}

fn print_findings<W: Write>(
    output: &mut Output<W>,
    diagnostics: &[&Diagnostic],
    prompts: usize,
    folder: &Path,
) -> Result<(), Failure> {
    const GOOD: Style = AnsiColor::Green.on_default().bold();
    const BAD: Style = AnsiColor::Red.on_default().bold();
    let format = DiagnosticFormat { folder, colours: output.colours, width: output.width };
    let mut kinds: BTreeMap<(Severity, Code), Vec<&Diagnostic>> = BTreeMap::new();
    for diagnostic in diagnostics {
        kinds.entry((diagnostic.severity, diagnostic.code)).or_default().push(diagnostic);
    }
    let is_shown = |diagnostic: &Diagnostic| {
        let kind = &kinds[&(diagnostic.severity, diagnostic.code)];
        kind.iter().take(MOST_OF_A_KIND).any(|shown| std::ptr::eq(*shown, diagnostic))
    };
    for diagnostic in diagnostics.iter().filter(|diagnostic| is_shown(diagnostic)) {
        writeln!(output.out, "{}\n", format.format(diagnostic))?;
    }
    for ((severity, code), kind) in kinds.iter().rev().filter(|(_, kind)| kind.len() > MOST_OF_A_KIND) {
        writeln!(output.out, "{}[{code}] also:", severity.as_str())?;
        let others = &kind[MOST_OF_A_KIND..];
        for other in others.iter().take(MOST_LISTED) {
            let (line, column) = other.location.line_column();
            let place = path_from_here(folder, &other.location.source.path);
            let text = output.line(&format!("{place}:{line}:{column}: {}", other.message)).into_owned();
            writeln!(output.out, "  {text}")?;
        }
        if others.len() > MOST_LISTED {
            writeln!(output.out, "  … and {} more; --json has all", others.len() - MOST_LISTED)?;
        }
        writeln!(output.out)?;
    }
    let owned: Vec<Diagnostic> = diagnostics.iter().map(|found| (*found).clone()).collect();
    let found = count_all(&owned);
    let errors = diagnostics.iter().any(|found| found.is_error());
    let style = if errors { BAD } else { GOOD };
    let library = output.line(&folder.display().to_string()).into_owned();
    let summary = format!("{library}: {}, {found}", count(prompts, "prompt"));
    let summary = output.styled(style, &summary);
    writeln!(output.out, "{summary}")?;
    if kinds.len() > 1 && diagnostics.len() > MOST_OF_A_KIND {
        let counts: Vec<String> =
            kinds.iter().rev().map(|((_, code), kind)| format!("{} {code}", kind.len())).collect();
        writeln!(output.out, "{}", counts.join(", "))?;
    }
    let corrigible: usize = only_fixes(&owned).iter().map(|file| file.count).sum();
    if corrigible > 0 {
        let folder = output.line(&command_line::path(folder)).into_owned();
        writeln!(output.out, "first: `promptshelf check {folder} --fix` corrects {corrigible} of them")?;
        return Ok(());
    }
    // Errors come first: their prompts are not served.
    if let Some(first) = diagnostics.iter().find(|found| found.is_error()).or(diagnostics.first()) {
        writeln!(
            output.out,
            "first: {}; `promptshelf explain {}` explains it",
            place_of(first, folder, output),
            first.code
        )?;
    }
    Ok(())
}

fn place_of<W: Write>(found: &Diagnostic, folder: &Path, output: &Output<W>) -> String {
    let place = path_from_here(folder, &found.location.source.path);
    output.line(&format!("{place}, line {}", found.location.line_column().0)).into_owned()
}

/// Prints what each client does with each prompt. Prompts that all clients show unchanged are only counted.
fn print_table<W: Write>(
    output: &mut Output<W>,
    clients: &[&'static clients::Client],
    treatments: &[(String, Vec<Treatment>)],
) -> Result<(), Failure> {
    let is_changed = |(_, row): &&(String, Vec<Treatment>)| row.iter().any(|treatment| *treatment != Treatment::Ok);
    let rows: Vec<&(String, Vec<Treatment>)> = treatments.iter().filter(is_changed).collect();
    writeln!(output.out)?;
    for (number, client) in clients.iter().enumerate() {
        writeln!(output.out, "{:>3} {}", number + 1, client.id)?;
    }
    let longest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let name_width = longest.min(output.width.saturating_sub(3 * clients.len() + 1).max(12));
    let heading: String = (1..=clients.len()).map(|number| format!("{number:>3}")).collect();
    if !rows.is_empty() {
        writeln!(output.out, "\n{:name_width$}{heading}", "")?;
    }
    for (name, row) in rows.iter().take(MOST_ROWS) {
        let name = shortened(&output.line(name), name_width);
        let cells: String = row
            .iter()
            .map(|treatment| match treatment {
                Treatment::Ok => "  ·",
                Treatment::Changed => "  ~",
                Treatment::Hidden => "  x",
            })
            .collect();
        writeln!(output.out, "{name:name_width$}{cells}")?;
    }
    if rows.len() > MOST_ROWS {
        writeln!(output.out, "… and {} more; --json has all", rows.len() - MOST_ROWS)?;
    }
    let unchanged = treatments.len() - rows.len();
    if unchanged > 0 {
        writeln!(output.out, "{} ok in every client", count(unchanged, "prompt"))?;
    }
    if !rows.is_empty() {
        writeln!(output.out, "· ok   ~ changed   x hidden; one `--client NAME`, or --details, tells why")?;
    }
    Ok(())
}
