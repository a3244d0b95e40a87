//! A prompt server without files: two prompts defined in code, served on stdio.
//!
//! MCP clients start it as `cargo run --example code_prompts`.

use promptshelf::{About, ArgumentDefinition, ArgumentType, Library, Message, PromptDefinition};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let about = About { name: Some("code-prompts".to_owned()), ..About::default() };
    Library::builder().about(about).prompt(git_commit()).prompt(explain_code()).build()?.serve_stdio().await?;
    Ok(())
}

fn git_commit() -> PromptDefinition {
    PromptDefinition::new("git-commit", |arguments| {
        let changes = arguments.text("changes");
        Ok(vec![Message::user(format!("Write a short commit message for these changes:\n\n{changes}"))])
    })
    .title("Commit message")
    .description("Writes a commit message")
    .argument(
        ArgumentDefinition::new("changes")
            .description("The output of git diff, for example of git diff --staged")
            .kind(ArgumentType::Text)
            .required(),
    )
}

/// A conversation. The messages that a closure returns are sent to the client unchanged.
fn explain_code() -> PromptDefinition {
    PromptDefinition::new("explain-code", |arguments| {
        let (code, language) = (arguments.text("code"), arguments.text("language"));
        Ok(vec![
            Message::user(format!("Explain how this {language} code works:\n\n{code}")),
            Message::assistant("I start with the purpose, and then follow the values. How much do you know already?"),
            Message::user("I can program, but I have never seen this code."),
        ])
    })
    .title("Explain code")
    .description("Explains how code works")
    .argument(ArgumentDefinition::new("code").description("The code").kind(ArgumentType::Text).required())
    .argument(
        ArgumentDefinition::new("language")
            .description("Its programming language, for example rust")
            .choices(["rust", "python", "typescript"])
            .default_value("rust"),
    )
}
