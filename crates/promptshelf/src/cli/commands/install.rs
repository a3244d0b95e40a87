//! `promptshelf install` and `uninstall`: change the configuration of MCP clients.

mod change;
mod endpoint;
mod report;

use promptshelf_author::clients::{CONFIGURATIONS, Client, Configuration, Quirk};
use serde_json::Value;

use self::{
    change::Change,
    report::{Outcome, Report},
};
use super::clients;
use crate::{
    args::reach::{EntryArguments, InstallArguments, UninstallArguments},
    client_config::{Places, Records, Scope, configuration_file, is_present},
    exit::{Exit, Failure},
    output::note,
};

const ALL: &str = "all";

pub(crate) async fn install(arguments: &InstallArguments) -> Result<(), Failure> {
    let places = places()?;
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
    each(&arguments.entry, &places()?, |change, _| change.uninstall())
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
    let is_all = arguments.client == ALL;
    let selected: Vec<(&Client, &'static Configuration)> = match is_all {
        true => CONFIGURATIONS
            .iter()
            .filter(|configuration| is_present(configuration, places))
            .map(|configuration| Ok((clients::find(configuration.client)?, configuration)))
            .collect::<Result<_, Failure>>()?,
        false => {
            let client = clients::find(&arguments.client)?;
            vec![(client, client.configuration().ok_or_else(|| unknown_format(client))?)]
        }
    };
    if selected.is_empty() {
        let message = "no client is found on this machine";
        return Err(Failure::new(Exit::NotFound, message)
            .help("`--client NAME` creates the file of a client; `promptshelf clients` lists the names"));
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

/// Returns whether an entry starts this program as a server, so that it was not written for another one.
fn is_own(entry: &Value) -> bool {
    let command = ["command", "cmd"].iter().find_map(|key| entry.get(*key));
    let (program, arguments) = match command {
        Some(Value::String(program)) => (Some(program.as_str()), entry.get("args").and_then(Value::as_array)),
        Some(Value::Array(line)) => (line.first().and_then(Value::as_str), Some(line)),
        _ => (None, None),
    };
    let name = program.map(|program| program.rsplit(['/', '\\']).next().unwrap_or(program));
    let serves = arguments.is_some_and(|arguments| arguments.iter().any(|argument| argument == "serve"));
    serves && matches!(name, Some("promptshelf" | "promptshelf.exe"))
}
