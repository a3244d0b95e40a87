//! `promptshelf list` of any server.

use std::io::Write;

use promptshelf_client::{OfferedPrompt, Target};
use serde_json::{Value, json};

use super::{ConnectOptions, Waiting, connect, failure};
use crate::{
    args::ListArguments,
    commands::list::{Row, placeholder, print},
    exit::Failure,
    output::{Output, pretty_json, visible_line},
};

impl<'a> From<&'a OfferedPrompt> for Row<'a> {
    fn from(prompt: &'a OfferedPrompt) -> Row<'a> {
        let usage = prompt.arguments.iter().map(|argument| placeholder(&argument.name, argument.required));
        Row {
            name: &prompt.name,
            title: prompt.title.as_deref(),
            description: prompt.description.as_deref(),
            usage: usage.collect::<Vec<_>>().join(" "),
        }
    }
}

pub(crate) async fn run(target: &Target, arguments: &ListArguments) -> Result<(), Failure> {
    let waiting = Waiting::new(visible_line(&target.to_string()).into_owned());
    let client = connect(target, arguments.server.timeout(), ConnectOptions::usual(&waiting), &waiting).await?;
    let prompts: Vec<OfferedPrompt> =
        waiting.during(client.all_prompts()).await.map_err(|error| failure(error, target))?;
    let mut paper = Output::stdout();
    if arguments.json {
        let prompts: Vec<&Value> = prompts.iter().map(|prompt| &prompt.raw).collect();
        writeln!(paper.out, "{}", pretty_json(&json!({ "prompts": prompts })))?;
    } else {
        let rows: Vec<Row<'_>> = prompts.iter().map(Row::from).collect();
        print(&mut paper, &rows)?;
    }
    Ok(paper.out.flush()?)
}
