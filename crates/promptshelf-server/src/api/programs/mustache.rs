//! Conversion of prompts to Langfuse's form: one text, or messages with roles, with `{{variable}}` for values.
//!
//! Clients insert the values, so everything else of the template language is refused: a condition that is dropped would
//! be another prompt, and a fence that a client does not apply would protect nothing.

use promptshelf_core::{BodyPiece, Outline, Prompt, Role, Words};

const MAX_REASONS: usize = 5;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Converted {
    Text(String),
    Chat(Vec<(Role, String)>),
}

pub(super) fn convert(prompt: &Prompt) -> Result<Converted, String> {
    let Outline { pieces, losses } = prompt.outline();
    if !losses.is_empty() {
        let reasons = losses.iter().take(MAX_REASONS).map(|loss| {
            let (line, _) = loss.location.line_column();
            format!("line {line}: {}", loss.message)
        });
        return Err(reasons.collect::<Vec<_>>().join("; "));
    }
    messages(pieces)
}

/// Returns whether the form has several messages or another role than the user's, also for a prompt that cannot be
/// converted.
pub(super) fn is_chat(prompt: &Prompt) -> bool {
    match convert(prompt) {
        Ok(converted) => matches!(converted, Converted::Chat(_)),
        Err(_) => prompt.outline().pieces.iter().any(|piece| matches!(piece, BodyPiece::Role(_))),
    }
}

fn messages(pieces: Vec<BodyPiece>) -> Result<Converted, String> {
    let mut messages = Vec::new();
    let (mut role, mut text) = (Role::User, String::new());
    let mut end = |role: Role, text: &mut String| {
        let content = trimmed(text);
        if !content.is_empty() {
            messages.push((role, content.to_owned()));
        }
        text.clear();
    };
    for piece in pieces {
        match piece {
            BodyPiece::Text(piece) if piece.contains("{{") => {
                return Err("its text contains `{{`, which begins a variable for Langfuse's clients".to_owned());
            }
            BodyPiece::Text(piece) => text.push_str(&piece),
            BodyPiece::Argument(name) | BodyPiece::Words(Words { argument: name, .. }) => {
                if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') || text.ends_with('{') {
                    return Err(format!("the argument `{name}` cannot be written as a variable there"));
                }
                text.push_str(&format!("{{{{{name}}}}}"));
            }
            BodyPiece::Role(next) => {
                end(role, &mut text);
                role = next;
            }
            BodyPiece::Attach { path, .. } => return Err(format!("it attaches the file `{path}`")),
        }
    }
    end(role, &mut text);
    match &mut *messages {
        [] => Ok(Converted::Text(String::new())),
        [(Role::User, text)] => Ok(Converted::Text(std::mem::take(text))),
        _ => Ok(Converted::Chat(messages)),
    }
}

/// Removes the layout of the file, as rendering does: blank lines at the beginning, and white space at the end.
fn trimmed(text: &str) -> &str {
    let text = text.trim_end();
    let blank = text.len() - text.trim_start().len();
    &text[text[..blank].rfind('\n').map_or(0, |newline| newline + 1)..]
}

#[cfg(test)]
mod tests {
    use promptshelf_core::{ArgumentDefinition, Definitions, PromptDefinition, check};

    use super::*;

    fn converted(template: &str) -> Result<Converted, String> {
        let prompt = PromptDefinition::template("it", template);
        let prompt = prompt.argument(ArgumentDefinition::new("name")).argument(ArgumentDefinition::new("two"));
        let checked = check(Definitions { prompts: vec![prompt.into()], ..Definitions::default() }, None);
        convert(checked.catalog.find("it").expect("a valid prompt"))
    }

    #[test]
    fn texts_and_chats_are_converted_and_other_templates_refused() {
        let text = |text: &str| Ok(Converted::Text(text.to_owned()));
        assert_eq!(converted("\n\n  Hello, {{ name }}!\n\n{{ two }}\n"), text("  Hello, {{name}}!\n\n{{two}}"));
        assert_eq!(
            converted("Hi {{ name }}\n{{ role('assistant') }}\nHello {{ two }}\n"),
            Ok(Converted::Chat(vec![
                (Role::User, "Hi {{name}}".to_owned()),
                (Role::Assistant, "Hello {{two}}".to_owned()),
            ]))
        );
        for (template, reason) in [
            ("{% if name %}{{ two }}{% endif %}", "condition"),
            ("{{ name | upper }}{{ two }}", "upper"),
            ("{{ name | fence }}{{ two }}", "fence"),
            ("{% raw %}{{ x }}{% endraw %}{{ name }}{{ two }}", "`{{`"),
            ("{{ '{' }}{{ name }}{{ two }}", "`name`"),
        ] {
            let refusal = converted(template).expect_err(template);
            assert!(refusal.contains(reason), "{template}: {refusal}");
        }
    }
}
