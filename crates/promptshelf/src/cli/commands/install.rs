//! `promptshelf install` and `uninstall`: change the configuration of MCP clients.

mod change;
mod endpoint;
mod report;

use std::io::Write as _;

use promptshelf_author::clients::{CONFIGURATIONS, Client, Configuration, Quirk};
use serde_json::{Value, json};

use self::{
    change::Change,
    report::{Outcome, Report},
};
use super::clients;
use crate::{
    args::reach::{EntryArguments, InstallArguments, UninstallArguments},
    client_config::{Places, Records, Scope, configuration_file, is_present},
    command_line::{self, shell_word},
    exit::{Exit, Failure},
    launcher,
    output::{Output, note, pretty_json},
};

const ALL: &str = "all";

pub(crate) async fn install(arguments: &InstallArguments) -> Result<(), Failure> {
    let places = places()?;
    if arguments.entry.client.is_none() {
        let place = match (&arguments.library, &arguments.url) {
            (Some(library), _) => command_line::path(library),
            (_, Some(url)) => format!("--url {}", shell_word(url)),
            _ => String::new(),
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
    let client = clients::find(client)?;
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
    if arguments.entry.client.is_none() {
        return list(&arguments.entry, &places, "uninstall", "");
    }
    each(&arguments.entry, &places, |change, _| change.uninstall())
}

/// Prints the clients that are found on this machine, and the commands for them.
fn list(arguments: &EntryArguments, places: &Places, verb: &str, place: &str) -> Result<(), Failure> {
    let mut found = Vec::new();
    for configuration in CONFIGURATIONS.iter().filter(|configuration| is_present(configuration, places)) {
        if let Some(file) = configuration_file(configuration, arguments.scope, places) {
            found.push((clients::find(configuration.client)?, file));
        }
    }
    let mut output = Output::stdout();
    if arguments.json {
        let clients: Vec<Value> = found
            .iter()
            .map(|(client, file)| json!({ "client": client.id, "name": client.name, "file": file }))
            .collect();
        writeln!(output.out, "{}", pretty_json(&json!({ "clients": clients })))?;
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
    let line = |client: &str| format!("{} {verb} --client {client}{scope} {place}", launcher::command());
    writeln!(output.out, "\nnext:\n  {}\n  {}", line(found[0].0.id).trim_end(), line(ALL).trim_end())?;
    Ok(output.out.flush()?)
}

fn nothing_found() -> Failure {
    Failure::new(Exit::NotFound, "no client is found on this machine")
        .help("`--client NAME` creates the file of a client; `promptshelf clients` lists the names")
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
    let client = arguments.client.as_deref().unwrap_or(ALL);
    let is_all = client == ALL;
    let selected: Vec<(&Client, &'static Configuration)> = match is_all {
        true => CONFIGURATIONS
            .iter()
            .filter(|configuration| is_present(configuration, places))
            .map(|configuration| Ok((clients::find(configuration.client)?, configuration)))
            .collect::<Result<_, Failure>>()?,
        false => {
            let client = clients::find(client)?;
            vec![(client, client.configuration().ok_or_else(|| unknown_format(client))?)]
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
            match is_all {
                true => report.add(client, configuration, Outcome::skipped(failure.message)),
                false => return Err(failure),
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
