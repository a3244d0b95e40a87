//! `promptshelf install` and `uninstall`: change the configuration of MCP clients.

mod endpoint;

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use promptshelf_author::clients::{CONFIGURATIONS, Client, Configuration, Quirk};
use promptshelf_git::GitAddress;
use promptshelf_store::StoreUrl;
use serde_json::{Value, json};

use super::known_clients;
use crate::{
    client_config::{
        ConfigFile, EditError, Places, Records, Replaced, Scope, configuration_file, entries, find_entry, is_present,
        parse, with_entry, without_empty_container,
    },
    command_line::{self, shell_word},
    exit::{Exit, Failure},
    launcher,
    output::{Output, list_json, note, pretty_json, report_failure},
    source::{is_url, unknown_scheme},
};

const INSTALL_EXAMPLES: &str = "\
Comments and other entries of the file stay, and a backup is kept. An entry of
the same name that was written by hand is not replaced. `uninstall` restores
the file.

Examples:
  promptshelf install prompts
  promptshelf install prompts --client claude-code
  promptshelf install https://example.com/mcp --client all
  promptshelf install prompts --client vscode --scope project --dry-run
  promptshelf install prompts --client codex --tools
  promptshelf install sqlite:team.db#production --client zed
  promptshelf uninstall --client claude-code";

const DEFAULT_ENTRY: &str = "promptshelf";

/// The longest name of an entry: clients make names of tools from it, which have at most 64 characters.
const MAX_ENTRY_CHARS: usize = 32;

#[derive(Debug, Args)]
#[command(after_help = INSTALL_EXAMPLES)]
pub(crate) struct InstallArguments {
    /// The library that the client serves to itself on stdio: a folder, a git repository, or a store and its channel, as
    /// for `serve`; or the URL of a server [default: the current folder]
    #[arg(value_name = "LIBRARY", conflicts_with = "url")]
    library: Option<PathBuf>,

    /// The operator's settings of that server; its [[source]] replace the default library
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub(crate) config: Option<PathBuf>,

    /// Let models find and use the prompts with `tool: true`, for clients that show no prompts
    #[arg(long, conflicts_with = "url")]
    pub(crate) tools: bool,

    /// The same as LIBRARY
    #[arg(long, value_name = "URL", hide = true)]
    url: Option<String>,

    /// The environment variable from which the client reads a token for the URL [default: the client signs in]
    #[arg(long, value_name = "VARIABLE", value_parser = variable)]
    pub(crate) token_env: Option<String>,

    #[command(flatten)]
    pub(crate) entry: EntryArguments,
}

impl InstallArguments {
    /// Returns the URL of a server that is installed in place of a library.
    pub(crate) fn url(&self) -> Option<&str> {
        let word = self.library.as_deref().and_then(Path::to_str).filter(|word| is_url(word));
        word.or(self.url.as_deref())
    }

    pub(crate) fn library(&self) -> Option<&Path> {
        self.library.as_deref().filter(|_| self.url().is_none())
    }
}

#[derive(Debug, Args)]
pub(crate) struct UninstallArguments {
    #[command(flatten)]
    pub(crate) entry: EntryArguments,
}

/// The entry that is installed or removed.
#[derive(Debug, Args)]
pub(crate) struct EntryArguments {
    /// A client as `promptshelf known-clients` names it, or `all` for those that are found on this machine; repeatable
    /// [default: list those that are found]
    #[arg(long = "client", value_name = "NAME")]
    pub(crate) clients: Vec<String>,

    /// The file to change
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    pub(crate) scope: Scope,

    /// The name of the entry: letters, digits, `-` and `_`
    #[arg(long, value_name = "ENTRY", default_value = DEFAULT_ENTRY, value_parser = entry_name)]
    pub(crate) name: String,

    /// Print the change without writing anything
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn entry_name(text: &str) -> Result<String, String> {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_safe);
    if is_name && text.len() <= MAX_ENTRY_CHARS {
        Ok(text.to_owned())
    } else {
        Err(format!("expected at most {MAX_ENTRY_CHARS} letters, digits, `-` and `_`, such as team-prompts"))
    }
}

fn variable(text: &str) -> Result<String, String> {
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_name {
        Ok(text.to_owned())
    } else {
        Err("expected the name of a variable, such as PROMPTSHELF_TOKEN, not a token".to_owned())
    }
}

const ALL: &str = "all";

pub(crate) async fn install(arguments: &InstallArguments) -> Result<(), Failure> {
    let places = places()?;
    let is_address =
        |word: &Path| word.to_str().is_some_and(|word| StoreUrl::is_meant(word) || GitAddress::is_meant(word));
    if let Some(folder) = arguments.library().filter(|folder| !is_address(folder) && !folder.exists()) {
        let failure = Failure::new(Exit::Library, format!("there is no folder {}", folder.display()));
        return Err(match folder.to_str().and_then(known_clients::nearest_client) {
            Some(client) => failure.help(format!("a client is named after `--client`: `--client {client}`")),
            None => folder.to_str().and_then(unknown_scheme).unwrap_or(failure),
        });
    }
    if arguments.entry.clients.is_empty() {
        let place = match (arguments.url(), arguments.library()) {
            (Some(url), _) => shell_word(url),
            (None, library) => library.map(command_line::path).unwrap_or_default(),
        };
        return list(&arguments.entry, &places, "install", &place);
    }
    let endpoint = endpoint::endpoint(arguments, &places).await?;
    each(&arguments.entry, &places, |change, configuration| {
        let Some(entry) = configuration.entry(change.name, &endpoint.for_client(configuration)) else {
            return Err(unsupported(configuration, arguments));
        };
        let outcome = change.install(&entry)?;
        if !arguments.tools && outcome.status.is_new() {
            note_unused(configuration.client)?;
        }
        Ok(outcome)
    })
}

/// Notes that a client shows no prompts, with other ways to them.
fn note_unused(client: &str) -> Result<(), Failure> {
    let client = known_clients::find(client)?;
    if client.facts.iter().any(|fact| fact.quirk == Quirk::NoPrompts) {
        let ways = match client.native_files() {
            Some(_) => format!(", and `promptshelf sync --client {}` writes files that it reads", client.id),
            None => String::new(),
        };
        note(&[format!("{} shows no prompts: `--tools` serves those with `tool: true` as tools{ways}", client.name)]);
    }
    Ok(())
}

pub(crate) fn uninstall(arguments: &UninstallArguments) -> Result<(), Failure> {
    let places = places()?;
    if arguments.entry.clients.is_empty() {
        return list(&arguments.entry, &places, "uninstall", "");
    }
    each(&arguments.entry, &places, |change, _| change.uninstall())
}

/// Prints the clients that are found on this machine, and the commands for them.
fn list(arguments: &EntryArguments, places: &Places, verb: &str, place: &str) -> Result<(), Failure> {
    let mut found = Vec::new();
    for configuration in CONFIGURATIONS.iter().filter(|configuration| is_present(configuration, places)) {
        if let Some(file) = configuration_file(configuration, arguments.scope, places) {
            found.push((known_clients::find(configuration.client)?, file));
        }
    }
    let mut output = Output::stdout();
    if arguments.json {
        let clients: Vec<Value> = found
            .iter()
            .map(|(client, file)| json!({ "client": client.id, "name": client.name, "file": file }))
            .collect();
        writeln!(output.out, "{}", pretty_json(&list_json(clients.into_iter())))?;
        return Ok(output.out.flush()?);
    }
    if found.is_empty() {
        return Err(nothing_found());
    }
    writeln!(output.out, "clients on this machine:")?;
    for (client, file) in &found {
        let file = output.line(&file.display().to_string()).into_owned();
        writeln!(output.out, "  {:<16} {} ({file})", client.id, client.name)?;
    }
    let scope = if arguments.scope == Scope::Project { " --scope project" } else { "" };
    let place = if place.is_empty() { String::new() } else { format!(" {place}") };
    let line = |client: &str| format!("{} {verb}{place} --client {client}{scope}", launcher::command());
    writeln!(output.out, "\nnext:\n  {}\n  {}", line(found[0].0.id), line(ALL))?;
    Ok(output.out.flush()?)
}

fn nothing_found() -> Failure {
    Failure::new(Exit::NotFound, "no client is found on this machine")
        .help("`--client NAME` creates the file of a client; `promptshelf known-clients` lists the names")
}

fn places() -> Result<Places, Failure> {
    Places::of_environment().ok_or_else(|| {
        Failure::new(Exit::Failed, "the home folder is unknown")
            .help("set HOME to the folder of your configuration files")
    })
}

/// Changes the files of one client or of all that are found, and prints the outcomes.
fn each(
    arguments: &EntryArguments,
    places: &Places,
    change: impl Fn(Change<'_>, &'static Configuration) -> Result<Outcome, Failure>,
) -> Result<(), Failure> {
    let is_all = arguments.clients.iter().any(|client| client == ALL);
    let selected: Vec<(&Client, &'static Configuration)> = match is_all {
        true => CONFIGURATIONS
            .iter()
            .filter(|configuration| is_present(configuration, places))
            .map(|configuration| Ok((known_clients::find(configuration.client)?, configuration)))
            .collect::<Result<_, Failure>>()?,
        false => {
            let named = arguments.clients.iter().map(|name| {
                let client = known_clients::find(name)?;
                Ok((client, client.configuration().ok_or_else(|| unknown_format(client))?))
            });
            named.collect::<Result<_, Failure>>()?
        }
    };
    if selected.is_empty() {
        return Err(nothing_found());
    }
    let records = Records::open(!arguments.dry_run)?;
    let mut report = Report::new(arguments);
    for (client, configuration) in selected {
        let Some(file) = configuration_file(configuration, arguments.scope, places) else {
            let failure = Failure::new(Exit::Usage, format!("{} has no configuration file of a project", client.name))
                .help("`--scope user` changes the user's file");
            if is_all {
                report.add(client, configuration, Outcome::skipped(failure.message));
            } else {
                return Err(failure);
            }
            continue;
        };
        let within = (arguments.scope == Scope::Project).then_some(places.project.as_path());
        let one = Change { configuration, file: &file, within, name: &arguments.name, records: &records };
        match change(one, configuration) {
            Ok(outcome) => report.add(client, configuration, outcome),
            Err(failure) if is_all => report.fail(client, configuration, &file, failure),
            Err(failure) => return Err(failure),
        }
    }
    report.print()
}

fn unknown_format(client: &Client) -> Failure {
    let names: Vec<&str> = CONFIGURATIONS.iter().map(|configuration| configuration.client).collect();
    let message = format!("{} has no configuration file of a known format", client.name);
    Failure::new(Exit::Usage, message).help(format!("supported clients are {}", names.join(", ")))
}

fn unsupported(configuration: &Configuration, arguments: &InstallArguments) -> Failure {
    let client = configuration.client;
    let (message, help) = match arguments.token_env {
        Some(_) if !configuration.url.is_empty() => (
            format!("{client} cannot read a token from an environment variable"),
            "without --token-env, the client signs in if it can",
        ),
        _ => (format!("the configuration file of {client} cannot have a URL"), configuration.notice),
    };
    Failure::new(Exit::Usage, message).help(help)
}

/// Returns whether an entry starts this program as a server, directly or by a package manager, so that it was not written
/// for another one.
fn is_own(entry: &Value) -> bool {
    let command = ["command", "cmd"].iter().find_map(|key| entry.get(*key));
    let words: Vec<&str> = match command {
        Some(Value::String(program)) => {
            let arguments = entry.get("args").and_then(Value::as_array).into_iter().flatten();
            std::iter::once(program.as_str()).chain(arguments.filter_map(Value::as_str)).collect()
        }
        Some(Value::Array(line)) => line.iter().filter_map(Value::as_str).collect(),
        _ => return false,
    };
    let name = |word: &&str| {
        word.rsplit(['/', '\\']).next().is_some_and(|it| ["promptshelf", "promptshelf.exe"].contains(&it))
    };
    let is_starter = |word: &&str| ["npx", "-y", "uvx", "cmd", "/c"].contains(word);
    let program = words.iter().position(|word| !is_starter(word)).filter(|at| name(&words[*at]));
    program.is_some_and(|at| words[at + 1..].contains(&"serve"))
}

const MAX_ATTEMPTS: usize = 5;

struct Change<'c> {
    configuration: &'static Configuration,
    file: &'c Path,
    /// The folder that symbolic links may not leave.
    within: Option<&'c Path>,
    name: &'c str,
    records: &'c Records,
}

impl Change<'_> {
    fn install(&self, entry: &Value) -> Result<Outcome, Failure> {
        self.repeated(|file| {
            let text = file.text()?;
            let whole = parse(self.configuration.format, text).map_err(|error| self.broken(&error))?;
            let found = find_entry(self.configuration, &whole, self.name).map(|found| found.value);
            let entry = &self.with_foreign_keys(entry, found.as_ref());
            if found.as_ref() == Some(entry) {
                return Ok(Some(self.outcome(Status::Unchanged, Some(entry))));
            }
            if found.as_ref().is_some_and(|found| !self.is_installed(found)) {
                return Err(self.taken("was not written by promptshelf", "`--name ENTRY` selects another name"));
            }
            let new =
                with_entry(self.configuration, text, self.name, Some(entry)).map_err(|error| self.broken(&error))?;
            if !self.records.for_changes() {
                let preview = with_entry(self.configuration, "", self.name, Some(entry)).unwrap_or_default();
                return Ok(Some(Outcome { preview, ..self.outcome(Status::WouldWrite, Some(entry)) }));
            }
            let change = (file.bytes.as_deref(), new.as_bytes());
            self.records
                .keep(self.file, self.name, change, (entry, found.is_some()), self.makes_container(&whole))
                .map_err(|error| Failure::new(Exit::Failed, format!("the backup cannot be written: {error}")))?;
            let backup = file.bytes.is_some().then(|| self.records.backup(self.file, self.name));
            let replaced = file.replace(Some(new.as_bytes()), self.within.is_none());
            if replaced.is_err() && found.is_none() {
                self.records.forget(self.file, self.name);
            }
            match replaced? {
                Replaced::Done => Ok(Some(Outcome { backup, ..self.outcome(Status::Written, Some(entry)) })),
                Replaced::Changed => Ok(None),
            }
        })
    }

    fn uninstall(&self) -> Result<Outcome, Failure> {
        self.repeated(|file| {
            let text = file.text()?;
            let whole = parse(self.configuration.format, text).map_err(|error| self.broken(&error))?;
            let Some(found) = find_entry(self.configuration, &whole, self.name).map(|found| found.value) else {
                return Ok(Some(self.outcome(Status::Absent, None)));
            };
            if !self.is_installed(&found) {
                return Err(self.taken("was not written by promptshelf", "remove it by hand, or name another one"));
            }
            if !self.records.for_changes() {
                return Ok(Some(self.outcome(Status::WouldRemove, Some(&found))));
            }
            let record = self.records.find(self.file, self.name);
            let now = file.bytes.as_deref().unwrap_or_default();
            let original = record.as_ref().and_then(|record| self.records.original(record, now));
            let new = match original {
                Some(original) => original,
                None => {
                    let new = with_entry(self.configuration, text, self.name, None);
                    let mut new = new.map_err(|error| self.broken(&error))?;
                    if record.as_ref().is_some_and(|record| record.made_container) {
                        new = without_empty_container(self.configuration, &new);
                    }
                    Some(new.into_bytes())
                }
            };
            match file.replace(new.as_deref(), self.within.is_none())? {
                Replaced::Done => {
                    if let (None, Some(record)) = (&new, &record) {
                        record.remove_folders();
                    }
                    self.records.forget(self.file, self.name);
                    Ok(Some(self.outcome(Status::Removed, Some(&found))))
                }
                Replaced::Changed => Ok(None),
            }
        })
    }

    /// Returns whether the file has no container of entries, or one that was made for an installed entry.
    fn makes_container(&self, whole: &Value) -> bool {
        let Some(entries) = entries(self.configuration, whole) else { return true };
        let records = |name: &String| self.records.find(self.file, name);
        entries
            .as_object()
            .is_some_and(|entries| entries.keys().filter_map(records).any(|record| record.made_container))
    }

    /// Adds the keys of the present entry that `install` never writes: a person did.
    fn with_foreign_keys(&self, entry: &Value, present: Option<&Value>) -> Value {
        let own = [self.configuration.stdio, self.configuration.url];
        let is_own = |key: &String| own.iter().any(|keys| keys.iter().any(|(own, _)| own == key));
        let mut entry = entry.clone();
        if let (Some(members), Some(present)) = (entry.as_object_mut(), present.and_then(Value::as_object)) {
            let foreign = present.iter().filter(|(key, _)| !is_own(key));
            foreign.for_each(|(key, value)| {
                members.entry(key).or_insert_with(|| value.clone());
            });
        }
        entry
    }

    /// Reads the file and changes it, again if another program changed it meanwhile (`None`).
    fn repeated(&self, change: impl Fn(&ConfigFile) -> Result<Option<Outcome>, Failure>) -> Result<Outcome, Failure> {
        for _ in 0..MAX_ATTEMPTS {
            if let Some(outcome) = change(&ConfigFile::read(self.file, self.within)?)? {
                return Ok(outcome);
            }
        }
        let message = format!("another program keeps changing {}; it was left as it is", self.file.display());
        Err(Failure::new(Exit::Conflict, message).help("quit the client, and try again"))
    }

    /// Returns whether an entry comes from `install`.
    fn is_installed(&self, entry: &Value) -> bool {
        is_own(entry) || self.records.find(self.file, self.name).is_some_and(|record| record.is_of(entry))
    }

    fn taken(&self, reason: &str, help: &str) -> Failure {
        let message = format!("the entry `{}` in {} {reason}", self.name, self.file.display());
        Failure::new(Exit::Conflict, message).help(help)
    }

    fn broken(&self, error: &EditError) -> Failure {
        Failure::new(Exit::Failed, format!("{}: {error}", self.file.display()))
            .help("nothing was changed; correct the file in its client or an editor, and try again")
    }

    fn outcome(&self, status: Status, entry: Option<&Value>) -> Outcome {
        Outcome {
            status,
            file: Some(self.file.to_owned()),
            entry: entry.cloned(),
            backup: None,
            preview: String::new(),
            reason: None,
        }
    }
}

#[derive(Clone, Debug)]
struct Outcome {
    status: Status,
    file: Option<PathBuf>,
    entry: Option<Value>,
    backup: Option<PathBuf>,
    preview: String,
    reason: Option<String>,
}

impl Outcome {
    fn skipped(reason: String) -> Outcome {
        Outcome {
            status: Status::Skipped,
            file: None,
            entry: None,
            backup: None,
            preview: String::new(),
            reason: Some(reason),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Written,
    Unchanged,
    WouldWrite,
    Removed,
    Absent,
    WouldRemove,
    Skipped,
    Failed,
}

impl Status {
    fn is_new(self) -> bool {
        matches!(self, Status::Written | Status::WouldWrite)
    }

    fn as_str(self) -> &'static str {
        match self {
            Status::Written => "written",
            Status::Unchanged => "unchanged",
            Status::WouldWrite => "would-write",
            Status::Removed => "removed",
            Status::Absent => "absent",
            Status::WouldRemove => "would-remove",
            Status::Skipped => "skipped",
            Status::Failed => "failed",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Status::Written => "installed in",
            Status::Unchanged => "already installed in",
            Status::WouldWrite => "would be written to",
            Status::Removed => "removed from",
            Status::Absent => "not installed in",
            Status::WouldRemove => "would be removed from",
            Status::Skipped => "skipped",
            Status::Failed => "failed:",
        }
    }
}

struct Report<'a> {
    arguments: &'a EntryArguments,
    outcomes: Vec<(&'a Client, &'static Configuration, Outcome)>,
    failures: Vec<Failure>,
}

impl<'a> Report<'a> {
    fn new(arguments: &'a EntryArguments) -> Report<'a> {
        Report { arguments, outcomes: Vec::new(), failures: Vec::new() }
    }

    fn add(&mut self, client: &'a Client, configuration: &'static Configuration, outcome: Outcome) {
        self.outcomes.push((client, configuration, outcome));
    }

    fn fail(&mut self, client: &'a Client, configuration: &'static Configuration, file: &Path, failure: Failure) {
        let outcome = Outcome {
            status: Status::Failed,
            file: Some(file.to_owned()),
            reason: Some(failure.message.clone()),
            ..Outcome::skipped(String::new())
        };
        self.add(client, configuration, outcome);
        self.failures.push(failure);
    }

    fn print(self) -> Result<(), Failure> {
        let mut output = Output::stdout();
        if self.arguments.json {
            let clients: Vec<Value> = self.outcomes.iter().map(|outcome| self.json(outcome)).collect();
            writeln!(output.out, "{}", pretty_json(&list_json(clients.into_iter())))?;
        } else {
            for (client, configuration, outcome) in &self.outcomes {
                self.write(&mut output, client, configuration, outcome)?;
            }
        }
        output.out.flush()?;
        for failure in &self.failures {
            report_failure(failure);
        }
        match self.failures.first() {
            Some(first) => Err(Failure::reported(first.exit)),
            None => Ok(()),
        }
    }

    fn write<W: Write>(
        &self,
        output: &mut Output<W>,
        client: &Client,
        configuration: &Configuration,
        outcome: &Outcome,
    ) -> Result<(), Failure> {
        let about = outcome.status.about();
        let file = outcome.file.as_ref().map(|file| output.line(&file.display().to_string()).into_owned());
        let reason = outcome.reason.as_deref().map(|reason| output.line(reason).into_owned());
        match (&file, &reason) {
            (_, Some(reason)) => writeln!(output.out, "{}: {about} {reason}", client.name)?,
            (Some(file), None) => writeln!(output.out, "{}: `{}` {about} {file}", client.name, self.arguments.name)?,
            (None, None) => writeln!(output.out, "{}: {about}", client.name)?,
        }
        if !outcome.preview.is_empty() {
            writeln!(output.out, "{}", outcome.preview.trim_end())?;
        }
        if let Some(backup) = &outcome.backup {
            let backup = output.line(&backup.display().to_string()).into_owned();
            writeln!(output.out, "  backup: {backup}")?;
        }
        if outcome.status == Status::Written {
            writeln!(output.out, "  {}", configuration.notice)?;
        }
        Ok(())
    }

    fn json(&self, (client, configuration, outcome): &(&Client, &'static Configuration, Outcome)) -> Value {
        json!({
            "client": client.id,
            "status": outcome.status.as_str(),
            "scope": self.arguments.scope.as_str(),
            "file": outcome.file,
            "name": self.arguments.name,
            "entry": outcome.entry,
            "backup": outcome.backup,
            "notice": configuration.notice,
            "reason": outcome.reason,
        })
    }
}
