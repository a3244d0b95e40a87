//! Changes of messages.

use promptshelf_core::{Annotations, ContentBlock, Message, ResourceBody, ResourceContents, ResourceLink, Role, Text};

use crate::role_mark::{mark, marked};

pub(super) fn inline(messages: &mut [Message]) {
    for message in messages {
        let text = match &message.content {
            ContentBlock::Resource(resource) => of_contents(&resource.contents),
            ContentBlock::Link(link) => of_link(link),
            _ => continue,
        };
        message.content = ContentBlock::text(text);
    }
}

fn of_link(link: &ResourceLink) -> String {
    match &link.target {
        Some(target) => of_contents(target),
        None => format!("[{}]({})", link.title.as_deref().unwrap_or(&link.name), link.uri),
    }
}

/// Returns a text between fences that it cannot close, below its URI.
fn of_contents(contents: &ResourceContents) -> String {
    let ResourceBody::Text(text) = &contents.body else {
        let (uri, mime_type, bytes) = (&contents.uri, contents.mime_type.as_str(), contents.body.len());
        return format!("[{uri}: {mime_type}, {bytes} bytes]");
    };
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{}:\n{fence}\n{text}{end}{fence}", contents.uri)
}

/// Makes every message one of the user. With several roles, each is below a line with its role.
pub(super) fn flatten(messages: &mut Vec<Message>) {
    if messages.iter().all(|message| message.role == Role::User) {
        return;
    }
    let mut flat = Vec::with_capacity(messages.len());
    for message in messages.drain(..) {
        match message.content {
            ContentBlock::Text(text) => {
                let text = Text { text: marked(message.role, &text.text), annotations: text.annotations };
                flat.push(Message { role: Role::User, content: ContentBlock::Text(text) });
            }
            content => {
                flat.push(Message::user(mark(message.role)));
                flat.push(Message { role: Role::User, content });
            }
        }
    }
    *messages = flat;
}

pub(super) fn merge(messages: Vec<Message>) -> Vec<Message> {
    let mut merged: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        if let (Some(last), ContentBlock::Text(text)) = (merged.last_mut(), &message.content)
            && last.role == message.role
            && let ContentBlock::Text(before) = &mut last.content
        {
            before.text.push_str("\n\n");
            before.text.push_str(&text.text);
            // Annotations of a part do not apply to the whole.
            before.annotations = Annotations::default();
            continue;
        }
        merged.push(message);
    }
    merged
}

/// Leaves out empty texts; a prompt without any other message has `name` as its text.
pub(super) fn fill(mut messages: Vec<Message>, name: &str) -> Vec<Message> {
    messages.retain(|message| !matches!(&message.content, ContentBlock::Text(text) if text.text.trim().is_empty()));
    if messages.is_empty() {
        messages.push(Message::user(name));
    }
    messages
}
