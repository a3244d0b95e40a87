//! Messages as one Markdown document.

use std::path::Path;

use promptshelf_core::{ContentBlock, Message, ResourceBody, Role};

use super::{model_api::longest_run, saved::Saved};

/// The document. A single text of the user stands as it is; everything else
/// has a heading a speaker.
pub(crate) fn document(messages: &[Message], saved: &Saved) -> String {
    if let [Message { role: Role::User, content: ContentBlock::Text(text) }] = messages {
        return ended(&text.text);
    }
    let mut document = String::new();
    let mut speaker = None;
    for (place, message) in messages.iter().enumerate() {
        if speaker != Some(message.role) {
            speaker = Some(message.role);
            let role = if message.role == Role::User { "User" } else { "Assistant" };
            document.push_str(&format!("## {role}\n\n"));
        }
        document.push_str(&block(&message.content, saved.of(place)));
        document.push('\n');
    }
    document.truncate(document.trim_end_matches('\n').len());
    ended(&document)
}

fn block(content: &ContentBlock, file: Option<&Path>) -> String {
    match content {
        ContentBlock::Text(text) => ended(&text.text),
        ContentBlock::Image(media) => media_line("!", "image", media.mime_type.as_str(), media.data.len(), file),
        ContentBlock::Audio(media) => media_line("", "audio", media.mime_type.as_str(), media.data.len(), file),
        ContentBlock::Resource(resource) => {
            let contents = &resource.contents;
            match &contents.body {
                ResourceBody::Text(text) => {
                    // Longer than any fence in the text, so that the text cannot leave it.
                    let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
                    format!("{}\n\n{fence}\n{}{fence}\n", link(&contents.uri, &contents.uri), ended(text))
                }
                ResourceBody::Blob(blob) => {
                    let bang = if contents.mime_type.is_image() { "!" } else { "" };
                    media_line(bang, &contents.uri, contents.mime_type.as_str(), blob.len(), file)
                }
            }
        }
        ContentBlock::Link(resource) => {
            format!("{}\n", link(resource.title.as_deref().unwrap_or(&resource.name), &resource.uri))
        }
    }
}

fn media_line(bang: &str, what: &str, mime_type: &str, bytes: usize, file: Option<&Path>) -> String {
    let named = format!("{what}, {mime_type}, {bytes} bytes");
    match file {
        Some(file) => format!("{bang}{}\n", link(&named, &file.display().to_string())),
        None => format!("*[{}]*\n", escaped(&named)),
    }
}

/// A link whose parts cannot end it.
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

/// A text that ends with a line break.
fn ended(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_has_a_heading_a_speaker() {
        let messages = [Message::user("one"), Message::user("two\n"), Message::assistant("three")];
        let document = document(&messages, &Saved::default());
        assert_eq!(document, "## User\n\none\n\ntwo\n\n## Assistant\n\nthree\n");
    }

    #[test]
    fn a_single_text_stands_as_it_is() {
        assert_eq!(document(&[Message::user("# Hi\n")], &Saved::default()), "# Hi\n");
    }

    #[test]
    fn a_link_cannot_be_left() {
        assert_eq!(link("a](x)\n# b", "x> [y"), "[a\\](x) # b](<x%3E [y>)");
    }
}
