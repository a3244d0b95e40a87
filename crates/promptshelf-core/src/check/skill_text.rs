//! The `SKILL.md` of a prompt: its text with placeholders, and a description of each argument.

use serde_json::Value;

use crate::{
    argument::Argument,
    content::{Meta, Role},
    definition::BodyPiece,
    diagnostic::Diagnostic,
    prompt::Prompt,
};

pub(super) const MAX_DESCRIPTION: usize = 1_024;

/// The reason why something cannot be a skill, and what to do.
pub(super) struct Fault(pub(super) String, pub(super) &'static str);

/// Returns the text and its front matter. Parts of the template that the text cannot express are added to `found`.
pub(super) fn of(prompt: &Prompt, name: &str, found: &mut Vec<Diagnostic>) -> Result<(String, Meta), Fault> {
    if !prompt.steps().is_empty() || prompt.arguments().iter().any(Argument::is_asked) {
        let message = "it asks the user questions, and a skill cannot".to_owned();
        return Err(Fault(message, "remove `skill: true`, or `ask` and `steps`"));
    }
    let description = prompt.description().or(prompt.title()).map(str::trim).unwrap_or_default();
    if description.is_empty() {
        return Err(Fault("it has no description".to_owned(), "write a `description`"));
    }
    let description: String = description.chars().take(MAX_DESCRIPTION).collect();
    let outline = prompt.outline();
    if let Some(error) = outline.losses.iter().find(|loss| loss.is_error()) {
        return Err(Fault(error.message.clone(), "remove `skill: true`"));
    }
    let mut body = String::new();
    for piece in &outline.pieces {
        match piece {
            BodyPiece::Text(text) => body.push_str(text),
            BodyPiece::Argument(argument) => body.push_str(&format!("<{argument}>")),
            BodyPiece::Words(words) => body.push_str(&format!("{}<{}>", words.before, words.argument)),
            BodyPiece::Role(Role::User) => {}
            BodyPiece::Role(_) => {
                let message = "it has messages of several roles, and a skill is one text".to_owned();
                return Err(Fault(message, "remove `skill: true`, or the other roles"));
            }
            BodyPiece::Attach { path, .. } => {
                let message = format!("it attaches `{path}`, and a skill made of a prompt is one text");
                return Err(Fault(message, "write a folder with a SKILL.md and the file"));
            }
        }
    }
    let in_skill = |loss: Diagnostic| Diagnostic { message: format!("as a skill: {}", loss.message), ..loss };
    found.extend(outline.losses.into_iter().map(in_skill));
    let frontmatter = Meta::from_iter([
        ("name".to_owned(), Value::from(name)),
        ("description".to_owned(), Value::from(description.as_str())),
    ]);
    // JSON strings are strings of YAML 1.2 too.
    let mut text = format!("---\nname: {name}\ndescription: {}\n---\n\n{}\n", Value::from(description), body.trim());
    let is_printed =
        |argument: &&Argument| outline.pieces.iter().any(|piece| piece.argument() == Some(argument.name()));
    let lines: String = prompt.arguments().iter().filter(is_printed).map(line).collect();
    if !lines.is_empty() {
        text.push_str(
            "\n## Placeholders\n\nReplace each placeholder by its value before you follow the text above.\n\n",
        );
        text.push_str(&lines);
    }
    Ok((text, frontmatter))
}

fn line(argument: &Argument) -> String {
    let need = if argument.is_indispensable() { "required" } else { "optional" };
    let mut line = format!("- `<{}>` ({}, {need})", argument.name(), argument.kind().as_str());
    let mut sentence = |text: &str| {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        line.push_str(&format!(" {}.", text.trim_end_matches('.')));
    };
    if let Some(description) = argument.description().or(argument.title()) {
        sentence(&format!("– {description}"));
    }
    if !argument.choices().is_empty() {
        let choices: Vec<&str> = argument.choices().iter().map(|choice| &*choice.value).collect();
        sentence(&format!("One of: {}", choices.join(", ")));
    }
    if let Some(default) = argument.default_value().filter(|default| !default.is_empty()) {
        sentence(&format!("Without a value: {default}"));
    } else if let Some(example) = argument.examples().first() {
        sentence(&format!("For example: {example}"));
    }
    line.push('\n');
    line
}
