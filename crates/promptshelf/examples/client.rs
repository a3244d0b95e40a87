//! Lists the prompts of a server and prints the first one, filled in.
//!
//! `cargo run --example client prompts`, or with the address of any server.

#![expect(clippy::print_stdout, reason = "printing is what this example does")]

use futures_util::TryStreamExt;
use promptshelf::{
    ContentBlock, Variables,
    client::{Client, ClientError, Of, Target},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ClientError> {
    let target = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let client = Client::connect(&Target::parse(&target)?).await?;
    let mut prompts = std::pin::pin!(client.prompts());
    while let Some(prompt) = prompts.try_next().await? {
        println!("{}: {}", prompt.name, prompt.description.unwrap_or_default());
        let mut values = Variables::new();
        for argument in &prompt.arguments {
            let suggested = client.complete(Of::Prompt(&prompt.name), &argument.name, "", &values).await?;
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
