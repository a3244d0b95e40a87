//! What servers offer, as a client sees it.

use rmcp::model as wire;
use serde_json::Value;

use super::ClientError;
use promptshelf_core::{Message, ResourceContents};

/// The longest name that is taken, in bytes: it has to be typed by somebody.
const LONGEST_NAME: usize = 1024;
/// The longest address that is taken, in bytes.
const LONGEST_URI: usize = 64 << 10;
/// As much of a title or description as is kept, in bytes.
const LONGEST_TEXT: usize = 16 << 10;
/// The most arguments that a prompt can have.
const MOST_ARGUMENTS: usize = 256;
/// The most suggestions that a server may send at once (specification, *Completion*).
const MOST_VALUES: usize = 100;

/// A prompt in a server's list. Icons are not kept: they would have to be fetched.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OfferedPrompt {
    /// What it is asked for by.
    pub name: String,
    /// What people call it.
    pub title: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// What it asks for.
    pub arguments: Vec<OfferedArgument>,
    /// The entry as it came.
    pub raw: Value,
}

/// An argument of a prompt in a server's list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfferedArgument {
    /// What it is given by.
    pub name: String,
    /// What people call it.
    pub title: Option<String>,
    /// What is expected.
    pub description: Option<String>,
    /// Whether the prompt needs it. A server that does not say does not need it.
    pub required: bool,
}

/// A resource or a resource template in a server's list.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OfferedResource {
    /// Its address, or a URI template.
    pub uri: String,
    /// Whether the address is a template.
    pub is_template: bool,
    /// Its name.
    pub name: String,
    /// What people call it.
    pub title: Option<String>,
    /// What it holds.
    pub description: Option<String>,
    /// Its MIME type, as the server wrote it.
    pub mime_type: Option<String>,
    /// Its size in bytes, as the server says.
    pub size: Option<u64>,
    /// The entry as it came.
    pub raw: Value,
}

/// A prompt, filled in.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PromptResult {
    /// What the prompt says of itself.
    pub description: Option<String>,
    /// Its messages, with their roles as they came.
    pub messages: Vec<Message>,
    /// The answer as it came.
    pub raw: Value,
}

/// A resource that was read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Read {
    /// Its contents.
    pub contents: Vec<ResourceContents>,
    /// The answer as it came.
    pub raw: Value,
}

/// Suggested values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// The values, best first.
    pub values: Vec<String>,
    /// How many there are, when the server says.
    pub total: Option<u32>,
    /// Whether there are more than these.
    pub has_more: bool,
}

impl Completion {
    pub(super) fn from_wire(completion: wire::CompletionInfo) -> Completion {
        let mut values = completion.values;
        let cut = values.len() > MOST_VALUES;
        values.truncate(MOST_VALUES);
        Completion { values, total: completion.total, has_more: cut || completion.has_more.unwrap_or(false) }
    }
}

impl OfferedPrompt {
    pub(super) fn from_wire(prompt: wire::Prompt) -> Result<OfferedPrompt, ClientError> {
        let raw = serde_json::to_value(&prompt).unwrap_or_default();
        let arguments = prompt.arguments.unwrap_or_default();
        if arguments.len() > MOST_ARGUMENTS {
            let many = arguments.len();
            return Err(ClientError::Unreasonable(format!("a prompt of the server has {many} arguments")));
        }
        let arguments = arguments.into_iter().map(|argument| {
            Ok(OfferedArgument {
                name: name(argument.name, "an argument")?,
                title: argument.title.map(cut),
                description: argument.description.map(cut),
                required: argument.required.unwrap_or(false),
            })
        });
        Ok(OfferedPrompt {
            name: name(prompt.name, "a prompt")?,
            title: prompt.title.map(cut),
            description: prompt.description.map(cut),
            arguments: arguments.collect::<Result<_, ClientError>>()?,
            raw,
        })
    }
}

impl OfferedResource {
    pub(super) fn from_resource(resource: wire::Resource) -> Result<OfferedResource, ClientError> {
        Ok(OfferedResource {
            raw: serde_json::to_value(&resource).unwrap_or_default(),
            uri: uri(resource.uri)?,
            is_template: false,
            name: name(resource.name, "a resource")?,
            title: resource.title.map(cut),
            description: resource.description.map(cut),
            mime_type: resource.mime_type.map(cut),
            size: resource.size,
        })
    }

    pub(super) fn from_template(template: wire::ResourceTemplate) -> Result<OfferedResource, ClientError> {
        Ok(OfferedResource {
            raw: serde_json::to_value(&template).unwrap_or_default(),
            uri: uri(template.uri_template)?,
            is_template: true,
            name: name(template.name, "a resource template")?,
            title: template.title.map(cut),
            description: template.description.map(cut),
            mime_type: template.mime_type.map(cut),
            size: None,
        })
    }
}

fn name(name: String, what: &str) -> Result<String, ClientError> {
    bounded(name, LONGEST_NAME, &format!("the name of {what}"))
}

fn uri(uri: String) -> Result<String, ClientError> {
    bounded(uri, LONGEST_URI, "the address of a resource")
}

fn bounded(text: String, most: usize, what: &str) -> Result<String, ClientError> {
    match text.len() {
        length if length > most => {
            Err(ClientError::Unreasonable(format!("{what} has {length} bytes, and at most {most} are taken")))
        }
        _ => Ok(text),
    }
}

/// As much of a text as anybody reads in a list.
fn cut(mut text: String) -> String {
    if text.len() > LONGEST_TEXT {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        text.push('…');
    }
    text
}

impl OfferedArgument {
    /// An optional argument of which nothing but the name is known.
    #[must_use]
    pub fn named(name: &str) -> OfferedArgument {
        OfferedArgument { name: name.to_owned(), title: None, description: None, required: false }
    }
}
