//! `promptshelf known-clients`: shows how MCP clients treat prompts.

use std::io::{self, Write};

use anstyle::Style;
use clap::Args;
use promptshelf_author::clients;
use promptshelf_core::nearest;
use serde_json::{Value, json};

use crate::{
    exit::{Exit, Failure},
    output::{Output, list_json, pretty_json},
};

const KNOWN_CLIENTS_EXAMPLES: &str = "\
Clients change, so each entry has a source and a date.

Examples:
  promptshelf known-clients
  promptshelf known-clients zed
  promptshelf check prompts --client zed               affected prompts";

#[derive(Debug, Args)]
#[command(after_help = KNOWN_CLIENTS_EXAMPLES)]
pub(crate) struct KnownClientsArguments {
    /// A client [default: show all]
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(arguments: &KnownClientsArguments) -> Result<(), Failure> {
    let selected: Vec<&clients::Client> = match &arguments.name {
        Some(name) => vec![find(name)?],
        None => clients::CLIENTS.iter().collect(),
    };
    let mut output = Output::stdout();
    if arguments.json {
        writeln!(output.out, "{}", pretty_json(&list_json(selected.iter().map(to_json))))?;
        return Ok(output.out.flush()?);
    }
    const NAME: Style = Style::new().bold();
    for (index, client) in selected.iter().enumerate() {
        if index > 0 {
            writeln!(output.out)?;
        }
        let name = output.styled(NAME, client.name);
        let shown_as = if client.shown_as.is_empty() { "" } else { "; a prompt is " };
        let about = output.filled("", "  ", &format!("{name} ({}){shown_as}{}", client.id, client.shown_as));
        writeln!(output.out, "{about}")?;
        if !client.note.is_empty() {
            let note = output.filled("  ", "  ", client.note);
            writeln!(output.out, "{note}")?;
        }
        if client.facts.is_empty() {
            writeln!(output.out, "  no known restrictions")?;
        }
        for fact in client.facts {
            print_fact(&mut output, "  - ", &fact.quirk.to_string(), (fact.source, fact.read))?;
        }
        if let Some(configuration) = client.configuration() {
            let user = configuration.user.unix.first().copied().unwrap_or_default().replace("$CONFIG/", "~/.config/");
            let project = configuration.project.map(|path| format!(", or {path} of a project")).unwrap_or_default();
            let text = format!("install: {user}{project}");
            print_fact(&mut output, "  ", &text, (configuration.source, configuration.read))?;
        }
        if let Some(files) = client.native_files() {
            let skills =
                if files.skills == files.folder { String::new() } else { format!(", skills in {}", files.skills) };
            print_fact(&mut output, "  ", &format!("sync: {}{skills}", files.folder), (files.source, files.read))?;
        }
    }
    Ok(output.out.flush()?)
}

/// Prints what is known, with its source and the day on which that was read.
fn print_fact<W: Write>(
    output: &mut Output<W>,
    first: &str,
    text: &str,
    (source, read): (&str, &str),
) -> io::Result<()> {
    let text = output.filled(first, "    ", text);
    let source = output.dimmed(&output.filled("    ", "    ", &format!("{source}, {read}")));
    writeln!(output.out, "{text}\n{source}")
}

pub(crate) fn find(name: &str) -> Result<&'static clients::Client, Failure> {
    clients::find(name).ok_or_else(|| {
        let help = match nearest_client(name) {
            _ if name.contains(',') => {
                let names: Vec<String> = name.split(',').map(|name| format!("--client {}", name.trim())).collect();
                format!("repeat the option: `{}`", names.join(" "))
            }
            Some(near) => format!("did you mean `{near}`?"),
            None => "`promptshelf known-clients` lists the known clients".to_owned(),
        };
        Failure::new(Exit::Usage, format!("unknown client `{name}`")).help(help)
    })
}

/// Returns the id of the client that a word may mean.
pub(crate) fn nearest_client(name: &str) -> Option<&'static str> {
    let known = || clients::CLIENTS.iter().map(|client| client.id);
    let begins = || known().find(|known| name.len() > 2 && known.starts_with(&name.to_lowercase()));
    clients::find(name).map(|client| client.id).or_else(|| nearest(name, known())).or_else(begins)
}

fn to_json(client: &&clients::Client) -> Value {
    let facts = client
        .facts
        .iter()
        .map(|fact| json!({ "quirk": fact.quirk.to_string(), "source": fact.source, "read": fact.read }));
    json!({
        "id": client.id,
        "name": client.name,
        "shownAs": client.shown_as,
        "showsPrompts": client.shows_prompts(),
        "note": client.note,
        "facts": facts.collect::<Vec<Value>>(),
        "configuration": client.configuration().map(|configuration| json!({
            "user": {
                "unix": configuration.user.unix,
                "macos": configuration.user.macos,
                "windows": configuration.user.windows,
            },
            "project": configuration.project,
            "url": !configuration.url.is_empty(),
            "source": configuration.source,
            "read": configuration.read,
        })),
        "files": client.native_files().map(|files| json!({
            "folder": files.folder,
            "skills": files.skills,
            "source": files.source,
            "read": files.read,
        })),
    })
}
