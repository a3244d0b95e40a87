//! `promptshelf clients`: what is known of MCP clients and their prompts.

use std::io::Write;

use anstyle::Style;
use promptshelf_author::clients;
use promptshelf_core::nearest;
use serde_json::{Value, json};

use crate::{
    args::author::ClientsArguments,
    exit::{Exit, Failure},
    output::{Output, pretty_json},
};

pub(crate) fn run(arguments: &ClientsArguments) -> Result<(), Failure> {
    let shown: Vec<&clients::Client> = match &arguments.name {
        Some(name) => vec![find(name)?],
        None => clients::CLIENTS.iter().collect(),
    };
    let mut paper = Output::stdout();
    if arguments.json {
        writeln!(
            paper.out,
            "{}",
            pretty_json(&json!({ "clients": shown.iter().map(to_json).collect::<Vec<Value>>() }))
        )?;
        return Ok(paper.out.flush()?);
    }
    const NAME: Style = Style::new().bold();
    for (index, client) in shown.iter().enumerate() {
        if index > 0 {
            writeln!(paper.out)?;
        }
        let name = paper.styled(NAME, client.name);
        let shown_as = if client.shown_as.is_empty() { "" } else { "; a prompt is " };
        writeln!(paper.out, "{name} ({}){shown_as}{}", client.id, client.shown_as)?;
        if client.facts.is_empty() {
            writeln!(paper.out, "  nothing is known that a prompt would stumble over")?;
        }
        for fact in client.facts {
            let source = paper.quiet(&format!("{}, {}", fact.source, fact.read));
            writeln!(paper.out, "  - {}\n    {source}", fact.quirk)?;
        }
    }
    Ok(paper.out.flush()?)
}

/// The client of a name that somebody typed.
pub(crate) fn find(name: &str) -> Result<&'static clients::Client, Failure> {
    clients::find(name).ok_or_else(|| {
        let known = clients::CLIENTS.iter().map(|client| client.id);
        let help = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`promptshelf clients` lists those that are known".to_owned(),
        };
        Failure::new(Exit::Usage, format!("nothing is known of a client `{name}`")).help(help)
    })
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
        "facts": facts.collect::<Vec<Value>>(),
    })
}
