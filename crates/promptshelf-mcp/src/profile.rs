//! Delivery profiles: pure functions over results, for clients that show only a part of the protocol.
//!
//! A profile is chosen by the path of an endpoint and never by `clientInfo`, on which the protocol forbids behaviour to
//! depend.
//!
//! Elsewhere: the changes of messages (`messages`), and of arguments (`one_argument`).

mod messages;
mod one_argument;

use promptshelf_core::{Argument, Message, Prompt, RawArguments};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

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
            messages::inline(&mut messages);
        }
        if self.flatten_roles {
            messages::flatten(&mut messages);
        }
        if self.merge_blocks {
            messages = messages::merge(messages);
        }
        messages
    }

    /// Changes the messages of this prompt; the prompt names what fills blanks.
    pub(crate) fn messages_of(&self, prompt: &Prompt, messages: Vec<Message>) -> Vec<Message> {
        let messages = self.messages(messages);
        match self.fill_blanks {
            true => messages::fill(messages, prompt.title().unwrap_or(prompt.name().as_str())),
            false => messages,
        }
    }

    /// Changes an entry of `prompts/list`.
    pub(crate) fn entry(&self, entry: &mut Map<String, Value>, prompt: &Prompt) {
        if self.short_names {
            entry.insert("name".to_owned(), self.name(prompt).into());
        }
        if self.one_argument {
            one_argument::list(entry, prompt);
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
        match self.one_argument {
            true => one_argument::split(prompt, given),
            false => given.clone(),
        }
    }
}

/// Returns the argument that a client with one argument shows: the first one without which the prompt cannot be used,
/// otherwise the first one.
fn main_argument(prompt: &Prompt) -> Option<&Argument> {
    let arguments = prompt.arguments();
    arguments.iter().find(|argument| argument.required()).or(arguments.first())
}

#[cfg(test)]
mod tests;
