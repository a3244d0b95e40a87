//! `promptshelf check`: reports every mistake in a library.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use promptshelf_author::{Corrected, Texts, Verdict, clients, findings, fix_all, fixes, renamed_to, sarif};
use promptshelf_core::{AccessRule, Catalog, Checked, Code, Definitions, Diagnostic, Location, Severity, SourceText};
use promptshelf_server::{
    Library, OpenError,
    settings::{ConfiguredSource, SourcePlace},
    sources::{OpenSources, SharedSettings},
};
use promptshelf_source::{
    EditError, EditableFolder, Files, Fixed, Mark, Source, SourceState, decoded, folded_path, is_prompt_path,
    syntax::{GOLDEN_ENDING, LIBRARY_FILE},
};

use super::{
    channels::diff::{print_unified, unified},
    diagnostics::{DiagnosticFormat, path_from_here, to_github, to_json},
    known_clients,
};
use crate::{
    args::PathArguments,
    command_line,
    exit::{Exit, Failure},
    library::{self, Selection, granted_roots},
    output::{Output, count, count_all, note, pretty_json, shortened},
    settings::{self, ServerFileLocation},
    source::HERE,
    terminal::Interrupted,
};

const CHECK_EXAMPLES: &str = "\
Examples:
  promptshelf check prompts
  promptshelf check prompts --deny warnings    exit code 1 for any finding
  promptshelf check prompts/code_review.md     one file
  promptshelf check prompts --client all       a table of prompts and clients
  promptshelf check prompts --client zed       what Zed would hide, and why
  promptshelf check prompts --config server.toml
  promptshelf check prompts --format sarif > check.sarif
  promptshelf check prompts --json | jq '.items[].message'";

#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) library: PathArguments,

    /// Also check the operator's settings in this server.toml, and its access rules with the library unless it has
    /// `[[source]]`
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Treat warnings as errors
    #[arg(long, value_name = "SEVERITY")]
    pub(crate) deny: Option<Deny>,

    /// Also report prompts that this client hides, changes or breaks; `all` for every client; can be repeated. Of several
    /// clients, a table is printed
    #[arg(long = "client", value_name = "NAME")]
    pub(crate) clients: Vec<String>,

    /// Correct what has one answer, and show the changes; what needs a decision stays
    #[arg(long, conflicts_with_all = ["format", "json", "config"])]
    pub(crate) fix: bool,

    /// With --fix: show the changes without writing them
    #[arg(long, requires = "fix")]
    pub(crate) dry_run: bool,

    /// With several clients, print each finding too
    #[arg(long, requires = "clients")]
    pub(crate) details: bool,

    /// Format of the findings
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: CheckFormat,

    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Deny {
    /// Warnings, in addition to errors
    Warnings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// Text, with the source lines
    Human,
    /// One JSON object
    Json,
    /// SARIF 2.1.0, for code hosting platforms
    Sarif,
    /// Workflow commands of GitHub Actions, displayed next to the source lines
    Github,
}

/// The findings of one kind that are printed with their lines; the others are listed.
const MOST_OF_A_KIND: usize = 5;

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
    /// The names of sources that were not read.
    unread: Vec<String>,
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

    /// Adds those of another library, with other paths.
    fn extend(&mut self, other: Found, path: impl Fn(&str) -> String) {
        let moved = |location: &Location| {
            Location::new(&SourceText::new(path(&location.source.path), &*location.source.text), location.span())
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

pub(crate) async fn run(arguments: &CheckArguments) -> Result<(), Failure> {
    let paths = arguments.library.paths();
    let clients = selected_clients(&arguments.clients)?;
    let environment = crate::environment::variable;
    // Diagnostics show paths relative to the library, and this file is outside of it.
    let config = arguments.config.as_deref().map(std::path::absolute).transpose()?;
    let roots = || granted_roots(config.as_deref());
    let location = ServerFileLocation::find(config.as_deref(), &environment);
    let mut selections = Selection::of(&paths)?;
    if config.is_some() && selections.len() > 1 {
        return Err(Failure::new(Exit::Usage, "--config needs a single library").help("name one library"));
    }
    let is_git = library::is_address;
    let named = selections.first().map(|only| only.folder.clone());
    let named = named.filter(|folder| !paths.is_empty() && !is_git(folder));
    let settings =
        config.is_some().then(|| settings::check_file(&location, named.as_deref(), &environment)).transpose()?;
    // Without a library on the command line `serve` serves the sources, and not the working directory.
    let of_settings = settings.as_ref().and_then(|settings| settings.sources.as_deref());
    let sources = of_settings.filter(|_| paths.is_empty());
    let mut unwritten: BTreeMap<PathBuf, Unwritten> = BTreeMap::new();
    if arguments.fix {
        for selection in &selections {
            unwritten.insert(selection.folder.clone(), fix(selection, roots(), arguments.dry_run)?);
        }
        // Files may have other names now.
        selections = Selection::of(&paths)?;
    }
    let check_selected = |selection: &Selection, rules| -> Result<Found, Failure> {
        let none = Unwritten::default();
        let unwritten = unwritten.get(&selection.folder).unwrap_or(&none);
        let mut found = check(&selection.folder, roots(), rules, &clients, &unwritten.texts)?;
        let is_renamed =
            |found: &Diagnostic| unwritten.renamed.contains(&found.location.source.path) && renamed_to(found).is_some();
        found.findings.retain(|found| !is_renamed(found));
        keep_selected(&mut found, selection);
        Ok(found)
    };
    let (mut found, folder) = match (sources, selections.as_slice()) {
        (Some(sources), _) => {
            let rules = settings.iter().flat_map(|settings| settings.access.clone()).collect();
            let are_all_valid = !settings.iter().flat_map(|settings| &settings.diagnostics).any(Diagnostic::is_error);
            (check_sources(sources, are_all_valid, roots(), rules, &clients).await?, PathBuf::from(HERE))
        }
        (None, [only]) => {
            // With `[[source]]` the rules are about names that this library does not have.
            let rules = settings.iter().filter(|_| of_settings.is_none());
            let rules = rules.flat_map(|settings| settings.access.clone()).collect();
            (check_selected(only, rules)?, only.folder.clone())
        }
        (None, selections) => {
            let mut all = Found::default();
            for selection in selections {
                all.extend(check_selected(selection, Vec::new())?, |path| path_from_here(&selection.folder, path));
            }
            (all, PathBuf::from(HERE))
        }
    };
    let of_settings: Vec<Diagnostic> = settings.iter().flat_map(|settings| settings.diagnostics.clone()).collect();
    found.findings.extend(of_settings.iter().cloned());
    let fixable = match sources {
        Some(sources) => sources.iter().filter_map(folder_of).collect(),
        None if paths.is_empty() => vec![folder.clone()],
        None => paths.clone(),
    };
    found.findings.sort_by(|a, b| position(a).cmp(&position(b)));
    let diagnostics = &found.findings;

    let print = || -> Result<(), Failure> {
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
                // Neither a store nor the settings of a server are corrected.
                let has_files = !arguments.fix && fixable.iter().all(|path| path.exists());
                let is_corrigible = |found: &Diagnostic| {
                    has_files && fixes(found).iter().any(|fix| fix.is_only) && !of_settings.contains(found)
                };
                let is_shown = |finding: &&Diagnostic| !is_table || !is_of_client(finding.code);
                let shown: Vec<&Diagnostic> = diagnostics.iter().filter(is_shown).collect();
                let about = match selections.as_slice() {
                    [only] if sources.is_none() && !only.is_whole() => only.files().join(", "),
                    _ => folder.display().to_string(),
                };
                let corrigible = shown.iter().filter(|found| is_corrigible(found)).count();
                let first = First { corrigible, fixable: &fixable };
                print_findings(&mut output, &shown, (found.prompts, &about), &folder, &first)?;
                if !found.unread.is_empty() {
                    let names = output.line(&found.unread.join(", ")).into_owned();
                    writeln!(output.out, "not read: {names}; `promptshelf serve --check` opens every source")?;
                }
                if is_table {
                    print_table(&mut output, &clients, &found.treatments)?;
                }
            }
        }
        Ok(output.out.flush()?)
    };
    // A reader that stops early, such as `head`, changes nothing about the findings.
    let printed = print();
    let of_settings = |found: &Diagnostic| config.as_deref() == Some(Path::new(&*found.location.source.path));
    if diagnostics.iter().any(|found| found.is_error() && of_settings(found)) {
        return Err(Failure::reported(Exit::Settings));
    }
    let threshold = if arguments.deny == Some(Deny::Warnings) { Severity::Warning } else { Severity::Error };
    if diagnostics.iter().any(|diagnostic| diagnostic.severity >= threshold) {
        Err(Failure::reported(Exit::Failed))
    } else {
        printed
    }
}

/// Checks a library with the operator's access rules, and with other texts than some files have.
fn check(
    folder: &Path,
    roots: Vec<PathBuf>,
    rules: Vec<AccessRule>,
    clients: &[&'static clients::Client],
    texts: &BTreeMap<String, String>,
) -> Result<Found, Failure> {
    let source = library::source(folder, roots.clone())?;
    texts.iter().for_each(|(path, text)| source.set_unsaved(path, Some(text)));
    let mut builder = Library::builder().source(source);
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

fn folder_of(source: &ConfiguredSource) -> Option<PathBuf> {
    match &source.place {
        SourcePlace::Folder(folder) => Some(folder.clone()),
        _ => None,
    }
}

/// Checks the folders among the sources together, as they are served: under one list of names, with the operator's rules.
/// Other sources are not read: they can be away, and are other people's.
async fn check_sources(
    sources: &[ConfiguredSource],
    are_all_valid: bool,
    roots: Vec<PathBuf>,
    rules: Vec<AccessRule>,
    clients: &[&'static clients::Client],
) -> Result<Found, Failure> {
    let (folders, unread): (Vec<_>, Vec<_>) = sources.iter().cloned().partition(|source| folder_of(source).is_some());
    let shared = SharedSettings { granted_roots: roots.clone(), rules: rules.clone(), ..SharedSettings::default() };
    let open = OpenSources::open(&folders, &shared, None)?;
    open.set.settled(Duration::MAX).await;
    let rules = Fixed::new(Definitions { access: rules, ..Definitions::default() });
    let library = Library::builder().source(open.set.clone()).source(rules).build()?;
    let together = Found::of(&library.catalog(), &library.diagnostics(), clients);
    let mut all = Found { unread: unread.into_iter().map(|source| source.name).collect(), ..Found::default() };
    all.extend(together, |path| {
        let inside = folders.iter().find_map(|source| {
            let path = path.strip_prefix(&source.name)?.strip_prefix(':')?;
            Some(path_from_here(&folder_of(source)?, path))
        });
        inside.unwrap_or_else(|| path.to_owned())
    });
    if !all.unread.is_empty() || !are_all_valid {
        all.findings.retain(|finding| finding.code != Code::UnmatchedRule);
    }
    // What keeps a folder from being served says it better alone.
    for status in open.set.statuses().iter().filter(|status| status.state != SourceState::Current) {
        for folder in folders.iter().filter(|source| source.name == status.name).filter_map(folder_of) {
            let alone = check(&folder, roots.clone(), Vec::new(), clients, &BTreeMap::new())?;
            all.extend(alone, |path| path_from_here(&folder, path));
        }
    }
    Ok(all)
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

/// What a dry run of the corrections of a library leaves undone, by path.
#[derive(Default)]
struct Unwritten {
    texts: BTreeMap<String, String>,
    renamed: BTreeSet<String>,
}

/// Corrects the findings of one library that have one answer, until there are none.
fn fix(selection: &Selection, roots: Vec<PathBuf>, dry_run: bool) -> Result<Unwritten, Failure> {
    let folder = &selection.folder;
    library::require_files(folder, "check --fix")?;
    let source = Files::folder(folder).lenient();
    source.grant_roots(roots);
    let files = EditableFolder::open(folder)?;
    let interrupted = Interrupted::noticed();
    let check = |texts: &Texts| -> Result<Verdict, Failure> {
        interrupted.end();
        texts.iter().for_each(|(path, text)| source.set_unsaved(path, text.as_deref()));
        let checked = promptshelf_core::check(source.read().map_err(OpenError::Source)?.into_definitions(), None);
        Ok(Verdict::new(findings(&checked.catalog, &checked.diagnostics), &checked.catalog))
    };
    let mut present: BTreeMap<String, Result<Vec<u8>, EditError>> = BTreeMap::new();
    let read = |path: &str| {
        let bytes = present.entry(path.to_owned()).or_insert_with(|| files.read(path)).as_ref().ok()?;
        std::str::from_utf8(bytes).map_or_else(|_| decoded(bytes), |text| Some(text.to_owned()))
    };
    let is_wanted = |found: &Diagnostic| selection.has(&found.location.source.path);
    let corrections = fix_all(check, read, is_wanted)?;
    let unwritten = dry_run.then(Unwritten::default);
    let mut correction =
        Correction { folder, files, unwritten, interrupted, output: Output::stdout(), kept: BTreeSet::new(), count: 0 };
    for (found, reason) in &corrections.refused {
        let message = format!("stays as it is: with the correction of \u{201c}{}\u{201d}, {reason}", found.message);
        correction.keep(&found.location.source.path, &message);
    }
    for (path, present) in &present {
        match (present, corrections.files.get(path)) {
            (Err(error), _) => correction.keep(path, &format!("cannot be changed: {error}")),
            (Ok(present), Some(corrected)) => correction.write(path, present, corrected)?,
            (Ok(_), None) => {}
        }
    }
    correction.rename(&corrections.verdict, is_wanted)?;
    correction.end()
}

/// The changes of a folder.
struct Correction<'a, W> {
    folder: &'a Path,
    files: EditableFolder,
    /// Of a dry run.
    unwritten: Option<Unwritten>,
    interrupted: Interrupted,
    output: Output<W>,
    /// Files that stay as they are.
    kept: BTreeSet<String>,
    /// Of findings.
    count: usize,
}

impl<W: Write> Correction<'_, W> {
    fn shown(&self, path: &str) -> String {
        self.folder.join(path).display().to_string()
    }

    fn keep(&mut self, path: &str, reason: &str) {
        note(&[format!("{} {reason}", self.shown(path))]);
        self.kept.insert(path.to_owned());
    }

    /// Writes a file, if it still has the content that was checked. The path is resolved below the open folder.
    fn write(&mut self, path: &str, present: &[u8], corrected: &Corrected) -> Result<(), Failure> {
        if self.interrupted.is_so() {
            return Ok(());
        }
        let new = corrected.text.as_str();
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.texts.insert(path.to_owned(), new.to_owned());
        } else if let Err(error) = self.files.replace(path, new.as_bytes(), |now| now == present) {
            self.keep(path, &format!("cannot be changed: {error}"));
            return Ok(());
        }
        self.count += corrected.count;
        print_unified(&mut self.output, &unified(&String::from_utf8_lossy(present), new, path, path))
    }

    /// Renames files whose names have one answer, with which their prompts keep theirs, and that no other file refers to.
    fn rename(&mut self, verdict: &Verdict, is_wanted: impl Fn(&Diagnostic) -> bool) -> Result<(), Failure> {
        let mut renames: BTreeMap<&str, (&Arc<SourceText>, String)> = BTreeMap::new();
        for found in verdict.findings().iter().filter(|found| is_wanted(found)) {
            if let Some(to) = renamed_to(found) {
                renames.entry(&found.location.source.path).or_insert((&found.location.source, to));
            }
        }
        // Without a list it is unknown what refers to a file.
        let Ok(listed) = self.files.list() else { return Ok(()) };
        let all: Vec<String> = listed.into_iter().map(|file| file.path).collect();
        let mut present: BTreeSet<String> = all.iter().map(|path| folded_path(path)).collect();
        for (path, (source, to)) in renames {
            if self.interrupted.is_so() {
                break;
            }
            if self.kept.contains(path) {
                continue;
            }
            let objection = if is_named(&self.files, &all, path) {
                Some("other files refer to it")
            } else {
                Some("that file is there").filter(|_| !present.insert(folded_path(&to)))
            };
            if let Some(objection) = objection {
                self.keep(path, &format!("keeps its name, because {objection}: rename it to {to} by hand"));
                continue;
            }
            let is_checked = |now: &[u8]| now == source.text.as_bytes();
            let verb = if let Some(unwritten) = &mut self.unwritten {
                unwritten.renamed.insert(path.to_owned());
                "would rename"
            } else if let Err(error) = self.files.rename(path, &to, is_checked) {
                self.keep(path, &format!("cannot be changed: {error}"));
                continue;
            } else {
                "renamed"
            };
            let line = format!("{verb} {} to {}", self.shown(path), self.shown(&to));
            writeln!(self.output.out, "{}", self.output.line(&line).into_owned())?;
            self.count += 1;
        }
        Ok(())
    }

    /// Reports the number of corrected findings, and returns what is undone.
    fn end(mut self) -> Result<Unwritten, Failure> {
        let verb = if self.unwritten.is_some() { "would be corrected" } else { "corrected" };
        writeln!(self.output.out, "{} {verb}\n", count(self.count, "finding"))?;
        self.output.out.flush()?;
        self.interrupted.end();
        Ok(self.unwritten.unwrap_or_default())
    }
}

/// Whether one of the other files has the path of a file in it.
fn is_named(files: &EditableFolder, all: &[String], path: &str) -> bool {
    all.iter().filter(|other| *other != path).any(|other| {
        let text = files.read(other).unwrap_or_default();
        String::from_utf8_lossy(&text).contains(path)
    })
}

fn keep_selected(found: &mut Found, selection: &Selection) {
    if !selection.is_whole() {
        found.findings.retain(|finding| {
            let related = finding.related.iter().map(|(location, _)| location);
            std::iter::once(&finding.location).chain(related).any(|location| selection.has(&location.source.path))
        });
        let is_broken = |path: &String| {
            found.findings.iter().any(|finding| finding.is_error() && finding.location.source.path == **path)
        };
        let is_prompt = |path: &&String| is_prompt_path(&selection.folder, path) && !is_broken(path);
        found.prompts = selection.files().iter().filter(is_prompt).count();
        // Of a whole library, one line counts such files.
        found.findings.extend(selection.files().iter().filter_map(|path| left_out(&selection.folder, path)));
    }
}

/// Says why a file on the command line is none of the library's prompts.
fn left_out(folder: &Path, path: &str) -> Option<Diagnostic> {
    let is_prompt = is_prompt_path(folder, path);
    let text = std::fs::read_to_string(folder.join(path)).unwrap_or_default();
    let is_private = path.split('/').any(|part| part.starts_with('_'));
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    let is_markdown = ending == "markdown" || ending.starts_with("md") || ending.starts_with("mk");
    // Prompts refer to files, and tests to those with the expected messages.
    let is_of_library = || {
        path == LIBRARY_FILE
            || path.ends_with(GOLDEN_ENDING)
            || library::open(folder).is_ok_and(|library| {
                library.catalog().prompts().iter().any(|prompt| prompt.source().text.contains(path))
            })
    };
    let (reason, help) = if is_prompt && Mark::find(&text).is_some() {
        ("`sync` or `export` wrote this file, and it is no prompt", "change the prompt that it comes from")
    } else if !is_prompt && !is_private && !is_markdown && !is_of_library() {
        (
            "this file is not read as a prompt, by its ending",
            "save it as text with the ending `.md`, such as `reply.md`",
        )
    } else if !is_prompt && !is_private && is_markdown {
        (
            "this file is not read as a prompt, by its name or ending",
            "name a prompt in small letters, with the ending `.md`",
        )
    } else {
        return None;
    };
    let place = Location::file(&SourceText::new(path, ""));
    Some(Diagnostic::hint(Code::LeftOut, place, reason).help(help))
}

fn position(diagnostic: &Diagnostic) -> (&str, usize) {
    (&diagnostic.location.source.path, diagnostic.location.span().start)
}

fn is_of_client(code: Code) -> bool {
    code.as_str().starts_with("client-")
}

/// What `--fix` could do.
struct First<'a> {
    corrigible: usize,
    fixable: &'a [PathBuf],
}

fn print_findings<W: Write>(
    output: &mut Output<W>,
    diagnostics: &[&Diagnostic],
    (prompts, about): (usize, &str),
    folder: &Path,
    &First { corrigible, fixable }: &First<'_>,
) -> Result<(), Failure> {
    const GOOD: Style = AnsiColor::Green.on_default().bold();
    const BAD: Style = AnsiColor::Red.on_default().bold();
    let (colours, width, is_broken) = (output.colours, output.width, output.terminal);
    let format = DiagnosticFormat { folder, colours, width, is_broken };
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
            let text = output.filled("  ", "    ", &text);
            writeln!(output.out, "{text}")?;
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
    let library = output.line(about).into_owned();
    let summary = format!("{library}: {}, {found}", count(prompts, "prompt"));
    let summary = output.styled(style, &summary);
    writeln!(output.out, "{summary}")?;
    if kinds.len() > 1 && diagnostics.len() > MOST_OF_A_KIND {
        for severity in [Severity::Error, Severity::Warning, Severity::Hint] {
            let of_severity = kinds.iter().filter(|((of, _), _)| *of == severity);
            let counts: Vec<String> = of_severity.map(|((_, code), kind)| format!("{} {code}", kind.len())).collect();
            if !counts.is_empty() {
                writeln!(output.out, "{}s: {}", severity.as_str(), counts.join(", "))?;
            }
        }
    }
    if corrigible > 0 {
        let words: Vec<String> = fixable.iter().map(|folder| command_line::path(folder)).collect();
        let words = output.line(&words.join(" ")).into_owned();
        writeln!(output.out, "first: `promptshelf check {words} --fix` corrects {corrigible} of them")?;
        return Ok(());
    }
    // Errors come first: their prompts are not served.
    let worst = diagnostics.iter().map(|found| found.severity).max();
    if let Some(first) = diagnostics.iter().find(|found| Some(found.severity) == worst) {
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
    // A narrow terminal has the columns in several blocks.
    let columns = (output.width.saturating_sub(name_width) / 3).max(1);
    for first in (0..clients.len()).step_by(columns).take_while(|_| !rows.is_empty()) {
        let block = first..clients.len().min(first + columns);
        let heading: String = block.clone().map(|number| format!("{:>3}", number + 1)).collect();
        writeln!(output.out, "\n{:name_width$}{heading}", "")?;
        for (name, row) in rows.iter().take(MOST_ROWS) {
            let name = shortened(&output.line(name), name_width);
            let cells = row[block.clone()].iter().map(|treatment| match treatment {
                Treatment::Ok => "  ·",
                Treatment::Changed => "  ~",
                Treatment::Hidden => "  x",
            });
            writeln!(output.out, "{name:name_width$}{}", cells.collect::<String>())?;
        }
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    // req: S-551
    #[tokio::test]
    async fn files_are_corrected_below_the_folder_and_as_they_were_checked() {
        let around = tempfile::tempdir().expect("a folder");
        let (library, outside) = (around.path().join("library"), around.path().join("outside"));
        for folder in [&library, &outside] {
            std::fs::create_dir(folder).expect("a folder");
            std::fs::write(folder.join("v.md"), "titel").expect("a file");
        }
        // What the folder `d` was when the library was checked.
        std::os::unix::fs::symlink(&outside, library.join("d")).expect("a link");
        let output = Output { out: Vec::new(), terminal: false, escapes: false, colours: false, width: 80 };
        let mut correction = Correction {
            folder: &library,
            files: EditableFolder::open(&library).expect("a folder"),
            unwritten: None,
            interrupted: Interrupted::noticed(),
            output,
            kept: BTreeSet::new(),
            count: 0,
        };
        let mut fix = |path: &str, text: &str| {
            let corrected = Corrected { text: text.replace("titel", "title"), count: 1 };
            correction.write(path, text.as_bytes(), &corrected).expect("a standard output");
            correction.kept.contains(path)
        };
        assert!(fix("d/v.md", "titel"));
        assert!(fix("v.md", "titel: "));
        let read = |folder: &Path| std::fs::read_to_string(folder.join("v.md")).expect("a file");
        assert_eq!((read(&library), read(&outside)), ("titel".to_owned(), "titel".to_owned()));
        fix("v.md", "titel");
        assert_eq!((read(&library), read(&outside)), ("title".to_owned(), "titel".to_owned()));
    }
}
