//! Formats messages as a Markdown document.

use std::path::Path;

use promptshelf_client::{ContentBlock, Message, ResourceBody, Role};

use super::{model_api::longest_run, saved::Saved};

/// Formats messages: a single text of the user verbatim, everything else with a heading per role.
pub(crate) fn document(messages: &[Message], saved: &Saved) -> String {
    if let [Message { role: Role::User, content: ContentBlock::Text(text) }] = messages {
        return terminated(&text.text);
    }
    let mut document = String::new();
    let mut role = None;
    for (index, message) in messages.iter().enumerate() {
        if role != Some(message.role) {
            role = Some(message.role);
            let name = if message.role == Role::User { "User" } else { "Assistant" };
            document.push_str(&format!("## {name}\n\n"));
        }
        document.push_str(&block(&message.content, saved.file(index)));
        document.push('\n');
    }
    document.truncate(document.trim_end_matches('\n').len());
    terminated(&document)
}

fn block(content: &ContentBlock, file: Option<&Path>) -> String {
    match content {
        ContentBlock::Text(text) => terminated(&text.text),
        ContentBlock::Image(media) => media_line("!", "image", &media.mime_type, media.data.len(), file),
        ContentBlock::Audio(media) => media_line("", "audio", &media.mime_type, media.data.len(), file),
        ContentBlock::Resource(resource) => {
            let contents = &resource.contents;
            match &contents.body {
                ResourceBody::Text(text) => {
                    // Longer than any fence in the text, so that the text cannot end it.
                    let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
                    format!("{}\n\n{fence}\n{}{fence}\n", link(&contents.uri, &contents.uri), terminated(text))
                }
                ResourceBody::Blob(blob) => {
                    let bang = if contents.mime_type.starts_with("image/") { "!" } else { "" };
                    media_line(bang, &contents.uri, &contents.mime_type, blob.len(), file)
                }
            }
        }
        ContentBlock::Link(resource) => {
            format!("{}\n", link(resource.title.as_deref().unwrap_or(&resource.name), &resource.uri))
        }
        other => format!("*[{}]*\n", escaped(other.kind())),
    }
}

fn media_line(bang: &str, what: &str, mime_type: &str, bytes: usize, file: Option<&Path>) -> String {
    let named = format!("{what}, {mime_type}, {bytes} bytes");
    match file {
        Some(file) => format!("{bang}{}\n", link(&named, &file.display().to_string())),
        None => format!("*[{}]*\n", escaped(&named)),
    }
}

fn link(text: &str, target: &str) -> String {
    let target: String = target
        .chars()
        .map(|c| match c {
            '<' => "%3C".to_owned(),
            '>' => "%3E".to_owned(),
            c if c.is_control() => " ".to_owned(),
            c => c.to_string(),
        })
        .collect();
    format!("[{}](<{target}>)", escaped(text))
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '\\' | '[' | ']' | '*' | '_' | '`' | '<' => escaped.extend(['\\', c]),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Adds a line break at the end, unless there is one.
fn terminated(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversation_has_a_heading_per_role() {
        let messages = [Message::user("one"), Message::user("two\n"), Message::assistant("three")];
        let document = document(&messages, &Saved::default());
        assert_eq!(document, "## User\n\none\n\ntwo\n\n## Assistant\n\nthree\n");
    }

    #[test]
    fn single_text_is_verbatim() {
        assert_eq!(document(&[Message::user("# Hi\n")], &Saved::default()), "# Hi\n");
    }

    #[test]
    fn link_parts_are_escaped() {
        assert_eq!(link("a](x)\n# b", "x> [y"), "[a\\](x) # b](<x%3E [y>)");
    }
}
