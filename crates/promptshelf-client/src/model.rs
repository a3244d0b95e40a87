//! Prompts, resources and completions as a server lists and returns them.

use rmcp::model as wire;
use serde_json::Value;

use crate::{
    content::{Message, ResourceContents},
    error::ClientError,
};

/// The longest name, in bytes: people have to type it.
const MAX_NAME_BYTES: usize = 1024;
/// The longest URI, in bytes.
const MAX_URI_BYTES: usize = 64 << 10;
/// The longest title or description, in bytes; longer ones are truncated.
const MAX_TEXT_BYTES: usize = 16 << 10;
/// The values of a prompt's arguments, or of the variables of a resource template.
pub type Arguments = std::collections::BTreeMap<String, String>;

/// The object of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompletionTarget<'a> {
    /// An argument of the prompt with this name.
    Prompt(&'a str),
    /// A variable of this resource template.
    ResourceTemplate(&'a str),
}

const MAX_ARGUMENTS: usize = 256;
/// The most values of one completion (specification, *Completion*); further ones are dropped.
const MAX_VALUES: usize = 100;

/// A prompt in a server's list. Icons are only in `raw`: they would have to be fetched.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PromptInfo {
    /// Its name, which identifies it.
    pub name: String,
    /// Its title, for people.
    pub title: Option<String>,
    /// Its description, for people.
    pub description: Option<String>,
    /// Its arguments, in the server's order.
    pub arguments: Vec<PromptArgument>,
    /// The entry as JSON.
    pub raw: Value,
}

/// An argument of a prompt in a server's list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptArgument {
    /// Its name, which identifies it.
    pub name: String,
    /// Its title, for people.
    pub title: Option<String>,
    /// Its description, for people.
    pub description: Option<String>,
    /// Whether a value is required; `false` by default.
    pub required: bool,
}

/// A resource or a resource template in a server's list.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResourceInfo {
    /// Its URI or URI template (RFC 6570).
    pub uri: String,
    /// Whether `uri` is a template.
    pub is_template: bool,
    /// Its name.
    pub name: String,
    /// Its title, for people.
    pub title: Option<String>,
    /// Its description, for people.
    pub description: Option<String>,
    /// Its media type, as the server wrote it.
    pub mime_type: Option<String>,
    /// Its size in bytes, as the server declared it.
    pub size: Option<u64>,
    /// The entry as JSON.
    pub raw: Value,
}

/// The result of [`Client::get`](crate::Client::get).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PromptResult {
    /// The prompt's description, for people.
    pub description: Option<String>,
    /// Its messages, in order.
    pub messages: Vec<Message>,
    /// The result as JSON.
    pub raw: Value,
}

/// The result of [`Client::read`](crate::Client::read).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReadResult {
    /// The contents; a server can return several for one URI.
    pub contents: Vec<ResourceContents>,
    /// The result as JSON.
    pub raw: Value,
}

/// The result of [`Client::complete`](crate::Client::complete).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// The values, best first.
    pub values: Vec<String>,
    /// The total number of values, if the server sends it.
    pub total: Option<u32>,
    /// Whether there are further values.
    pub has_more: bool,
}

impl Completion {
    pub(crate) fn from_wire(completion: wire::CompletionInfo) -> Completion {
        let mut values = completion.values;
        let is_truncated = values.len() > MAX_VALUES;
        values.truncate(MAX_VALUES);
        Completion { values, total: completion.total, has_more: is_truncated || completion.has_more.unwrap_or(false) }
    }
}

impl PromptInfo {
    pub(crate) fn from_wire(prompt: wire::Prompt) -> Result<PromptInfo, ClientError> {
        let raw = serde_json::to_value(&prompt).unwrap_or_default();
        let arguments = prompt.arguments.unwrap_or_default();
        if arguments.len() > MAX_ARGUMENTS {
            let count = arguments.len();
            return Err(ClientError::LimitExceeded(format!(
                "a prompt of the server has {count} arguments; the limit is {MAX_ARGUMENTS}"
            )));
        }
        let arguments = arguments.into_iter().map(|argument| {
            Ok(PromptArgument {
                name: name(argument.name, "an argument")?,
                title: argument.title.map(truncated),
                description: argument.description.map(truncated),
                required: argument.required.unwrap_or(false),
            })
        });
        Ok(PromptInfo {
            name: name(prompt.name, "a prompt")?,
            title: prompt.title.map(truncated),
            description: prompt.description.map(truncated),
            arguments: arguments.collect::<Result<_, ClientError>>()?,
            raw,
        })
    }
}

impl ResourceInfo {
    pub(crate) fn from_resource(resource: wire::Resource) -> Result<ResourceInfo, ClientError> {
        Ok(ResourceInfo {
            raw: serde_json::to_value(&resource).unwrap_or_default(),
            uri: uri(resource.uri)?,
            is_template: false,
            name: name(resource.name, "a resource")?,
            title: resource.title.map(truncated),
            description: resource.description.map(truncated),
            mime_type: resource.mime_type.map(truncated),
            size: resource.size,
        })
    }

    pub(crate) fn from_template(template: wire::ResourceTemplate) -> Result<ResourceInfo, ClientError> {
        Ok(ResourceInfo {
            raw: serde_json::to_value(&template).unwrap_or_default(),
            uri: uri(template.uri_template)?,
            is_template: true,
            name: name(template.name, "a resource template")?,
            title: template.title.map(truncated),
            description: template.description.map(truncated),
            mime_type: template.mime_type.map(truncated),
            size: None,
        })
    }
}

fn name(name: String, what: &str) -> Result<String, ClientError> {
    bounded(name, MAX_NAME_BYTES, &format!("the name of {what}"))
}

fn uri(uri: String) -> Result<String, ClientError> {
    bounded(uri, MAX_URI_BYTES, "the URI of a resource")
}

fn bounded(text: String, limit: usize, what: &str) -> Result<String, ClientError> {
    match text.len() {
        length if length > limit => {
            Err(ClientError::LimitExceeded(format!("{what} has {length} bytes; the limit is {limit}")))
        }
        _ => Ok(text),
    }
}

fn truncated(mut text: String) -> String {
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text.push('…');
    }
    text
}

impl PromptArgument {
    /// Creates an optional argument without title and description.
    #[must_use]
    pub fn new(name: &str) -> PromptArgument {
        PromptArgument { name: name.to_owned(), title: None, description: None, required: false }
    }
}
