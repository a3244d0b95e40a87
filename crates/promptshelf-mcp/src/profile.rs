//! Delivery profiles: pure functions over results, for clients that show only a part of the protocol.
//!
//! A profile is chosen by the path of an endpoint and never by `clientInfo`, on which the protocol forbids behaviour to
//! depend.
//!
//! Elsewhere: the changes of messages (`messages`), and of arguments (`one_argument`).

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use promptshelf_core::{
    Annotations, Argument, ContentBlock, Message, Prompt, RawArgumentValue, RawArguments, ResourceBody,
    ResourceContents, ResourceLink, Role, Text,
};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::role_mark::{mark, marked};

/// The largest length of a name after [`short_names`](Profile::short_names), in bytes.
const MAX_NAME: usize = 32;

/// The changes that a profile makes to results. Access, limits and audit are those of `/mcp`.
///
/// ```
/// use promptshelf_mcp::Profile;
///
/// let profile = Profile { flatten_roles: true, merge_blocks: true, ..Profile::default() };
/// let messages = vec![promptshelf_core::Message::user("Hi"), promptshelf_core::Message::assistant("Hello")];
/// assert_eq!(profile.messages(messages), [promptshelf_core::Message::user("[user]\nHi\n\n[assistant]\nHello")]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a change of its own")]
pub struct Profile {
    /// Every message becomes one of the user, below a line with its role if there are several roles.
    pub flatten_roles: bool,
    /// Consecutive texts of one role become one message.
    pub merge_blocks: bool,
    /// Embedded resources and links become text.
    pub inline_resources: bool,
    /// Missing descriptions are filled in, and a prompt without any text has its title as text.
    pub fill_blanks: bool,
    /// Names of prompts have at most 32 of the characters `a-z`, `0-9`, `_` and `-`.
    pub short_names: bool,
    /// Prompts have one argument. Others are written before its value, as `name=value`.
    pub one_argument: bool,
}

impl Profile {
    /// Changes the messages of a prompt.
    #[must_use]
    pub fn messages(&self, mut messages: Vec<Message>) -> Vec<Message> {
        if self.inline_resources {
            inline_messages(&mut messages);
        }
        if self.flatten_roles {
            flatten_messages(&mut messages);
        }
        if self.merge_blocks {
            messages = merge_messages(messages);
        }
        messages
    }

    /// Changes the messages of this prompt; the prompt names what fills blanks.
    pub(crate) fn messages_of(&self, prompt: &Prompt, messages: Vec<Message>) -> Vec<Message> {
        let messages = self.messages(messages);
        if self.fill_blanks {
            fill_messages(messages, prompt.title().unwrap_or(prompt.name().as_str()))
        } else {
            messages
        }
    }

    /// Changes an entry of `prompts/list`.
    pub(crate) fn entry(&self, entry: &mut Map<String, Value>, prompt: &Prompt) {
        if self.short_names {
            entry.insert("name".to_owned(), self.name(prompt).into());
        }
        if self.one_argument {
            list_one_argument(entry, prompt);
        }
        if self.fill_blanks {
            let own = prompt.title().unwrap_or(prompt.name().as_str());
            entry.entry("description").or_insert_with(|| own.into());
            for argument in entry.get_mut("arguments").and_then(Value::as_array_mut).into_iter().flatten() {
                let Some(argument) = argument.as_object_mut() else { continue };
                let name = argument.get("title").or(argument.get("name")).cloned().unwrap_or_default();
                argument.entry("description").or_insert(name);
            }
        }
    }

    pub(crate) fn name(&self, prompt: &Prompt) -> String {
        let name = prompt.name().as_str();
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        if !self.short_names || (name.len() <= MAX_NAME && name.chars().all(is_plain)) {
            return name.to_owned();
        }
        // The digest keeps names apart that differ only in replaced or removed characters.
        let digest: String = Sha256::digest(name).iter().take(3).map(|byte| format!("{byte:02x}")).collect();
        let plain = name.chars().map(|c| c.to_ascii_lowercase()).map(|c| if is_plain(c) { c } else { '-' });
        let plain: String = plain.take(MAX_NAME - digest.len() - 1).collect();
        format!("{plain}-{digest}")
    }

    pub(crate) fn arguments<'a>(&self, prompt: &Prompt, given: &RawArguments<'a>) -> RawArguments<'a> {
        if self.one_argument { split_one_argument(prompt, given) } else { given.clone() }
    }
}

/// Returns the argument that a client with one argument shows: the first one without which the prompt cannot be used,
/// otherwise the first one.
fn main_argument(prompt: &Prompt) -> Option<&Argument> {
    let arguments = prompt.arguments();
    arguments.iter().find(|argument| argument.required()).or(arguments.first())
}

fn list_one_argument(entry: &mut Map<String, Value>, prompt: &Prompt) {
    let Some(main) = main_argument(prompt).filter(|_| prompt.arguments().len() > 1) else { return };
    let others = prompt.arguments().iter().filter(|argument| argument.name() != main.name());
    let others: Vec<String> = others.map(shown).collect();
    let Some(arguments) = entry.get_mut("arguments").and_then(Value::as_array_mut) else { return };
    arguments.retain(|argument| argument["name"] == main.name());
    if let Some(argument) = arguments.first_mut().and_then(Value::as_object_mut) {
        let own = argument.get("description").and_then(Value::as_str).unwrap_or(main.name()).trim_end_matches('.');
        let text = format!("{own}. Write other values before it: {}", others.join(", "));
        argument.insert("description".to_owned(), text.into());
    }
}

/// Returns `name=…`, with a `*` for an argument without which the prompt cannot be used.
fn shown(argument: &Argument) -> String {
    let choices: Vec<&str> = argument.choices().iter().map(|choice| &*choice.value).collect();
    let values = if choices.is_empty() || choices.len() > 8 { "…".to_owned() } else { choices.join("|") };
    format!("{}={values}{}", argument.name(), if argument.required() { " (required)" } else { "" })
}

/// Reads `name=value` before the value of the shown argument. A value with spaces is between quotation marks. Everything
/// from the first other word on is the value itself, whatever it contains.
fn split_one_argument<'a>(prompt: &Prompt, given: &RawArguments<'a>) -> RawArguments<'a> {
    let Some(main) = main_argument(prompt).filter(|_| prompt.arguments().len() > 1) else { return given.clone() };
    let Some(RawArgumentValue::Text(text)) = given.get(main.name()) else { return given.clone() };
    let (mut rest, mut found) = (&**text, Vec::new());
    while let Some((name, value, after)) = pair(rest, prompt) {
        found.push((name.to_owned(), value.to_owned()));
        rest = after;
    }
    if found.is_empty() {
        return given.clone();
    }
    let own = (!rest.is_empty()).then(|| (main.name().to_owned(), rest.to_owned()));
    let others = given.iter().filter(|(name, _)| *name != main.name());
    let others = others.map(|(name, value)| (Cow::Owned(name.to_owned()), value.clone()));
    let pairs = found.into_iter().chain(own);
    let pairs = pairs.map(|(name, value)| (Cow::Owned(name), RawArgumentValue::Text(Cow::Owned(value))));
    others.chain(pairs).collect()
}

/// Reads one `name=value` at the beginning. Returns the rest without the spaces after it.
fn pair<'t, 'p>(text: &'t str, prompt: &'p Prompt) -> Option<(&'p str, &'t str, &'t str)> {
    let text = text.trim_start();
    let (name, rest) = text.split_once('=')?;
    let name = prompt.argument(name)?.name();
    let (value, after) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
    };
    Some((name, value, after.trim_start()))
}

fn inline_messages(messages: &mut [Message]) {
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
fn flatten_messages(messages: &mut Vec<Message>) {
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

fn merge_messages(messages: Vec<Message>) -> Vec<Message> {
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
fn fill_messages(mut messages: Vec<Message>, name: &str) -> Vec<Message> {
    messages.retain(|message| !matches!(&message.content, ContentBlock::Text(text) if text.text.trim().is_empty()));
    if messages.is_empty() {
        messages.push(Message::user(name));
    }
    messages
}
