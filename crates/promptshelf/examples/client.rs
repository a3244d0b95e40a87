//! Lists the prompts of a library or a server, and gets each of them with suggested values.
//!
//! `cargo run --example client prompts`, or with the URL of any server.

#![expect(clippy::print_stdout, reason = "the example prints its results")]

use std::{error::Error, path::Path};

use futures_util::TryStreamExt;
use promptshelf::{
    Library,
    client::{Arguments, Client, CompletionTarget, ContentBlock, Endpoint},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let source = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let client = if Path::new(&source).is_dir() {
        connect_in_process(Library::builder().folder(&source).build()?).await?
    } else {
        Client::connect(&Endpoint::parse(&source)?).await?
    };
    let mut prompts = std::pin::pin!(client.prompts());
    while let Some(prompt) = prompts.try_next().await? {
        println!("{}: {}", prompt.name, prompt.description.unwrap_or_default());
        let mut values = Arguments::new();
        for argument in &prompt.arguments {
            let target = CompletionTarget::Prompt(&prompt.name);
            let suggested = client.complete(target, &argument.name, "", &values).await?;
            let value = suggested.values.into_iter().next().unwrap_or_else(|| "something".to_owned());
            values.insert(argument.name.clone(), value);
        }
        for message in client.get(&prompt.name, &values).await?.messages {
            match message.content {
                ContentBlock::Text(text) => println!("{}: {}", message.role.as_str(), text.text),
                other => println!("{}: ({})", message.role.as_str(), other.kind()),
            }
        }
    }
    Ok(())
}

/// Serves a library in this process, at the other end of a pipe in memory.
async fn connect_in_process(library: Library) -> Result<Client, Box<dyn Error>> {
    let (client_end, server_end) = tokio::io::duplex(64 << 10);
    tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(server_end);
        library.server().serve_stdio(reader, writer).await
    });
    let (reader, writer) = tokio::io::split(client_end);
    Ok(Client::from_io(reader, writer).await?)
}
