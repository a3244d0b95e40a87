//! Prompts of other servers, which can ask the user for input before they answer.

use std::fmt;

use serde_json::{Map, Value};

use super::{
    argument::ArgumentDefinition,
    resource::{ReadBody, ReadError},
};
use crate::{
    content::Message,
    render_error::RenderError,
    value::{BoxFuture, Variables},
};

/// A prompt of another server.
pub trait RemotePrompt: Send + Sync {
    /// Gets the messages, or the input that the other server asks for. An implementation asks only in ways that the
    /// caller has, and bounds and checks everything that the other server sends.
    fn get(&self, arguments: Variables, input: RemoteInput) -> BoxFuture<'_, Result<RemoteAnswer, RenderError>>;
}

impl fmt::Debug for dyn RemotePrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemotePrompt")
    }
}

/// The ways in which a caller can be asked, and the results of an earlier question.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RemoteInput {
    /// Whether the caller can show forms.
    pub forms: bool,
    /// Whether the caller can open pages.
    pub pages: bool,
    /// The state that came with the question; `None` for a first request. Verified to be unchanged.
    pub state: Option<String>,
    /// The user's results by key, as the objects of the protocol (`ElicitResult`). Their contents are not validated.
    pub responses: Map<String, Value>,
}

impl fmt::Debug for RemoteInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RemoteInput { forms, pages, .. } = self;
        f.debug_struct("RemoteInput").field("forms", forms).field("pages", pages).finish_non_exhaustive()
    }
}

/// The answer of another server.
#[derive(Debug)]
#[non_exhaustive]
pub enum RemoteAnswer {
    /// The messages of the prompt.
    Messages(Vec<Message>),
    /// A question to the user.
    InputRequired(RemoteQuestion),
}

/// A question of another server to the user of the caller.
#[derive(Clone)]
pub struct RemoteQuestion {
    /// The forms and pages, at least one.
    pub forms: Vec<RemoteForm>,
    /// The state that has to come back with the results ([`RemoteInput::state`]).
    pub state: String,
}

impl fmt::Debug for RemoteQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteQuestion").field("forms", &self.forms.len()).finish_non_exhaustive()
    }
}

/// A form or a page of another server.
#[derive(Clone, Debug)]
pub struct RemoteForm {
    /// The key of its result.
    pub key: String,
    /// The text above the form.
    pub message: String,
    /// The page to open; `None` for a form.
    pub url: Option<String>,
    /// The fields of a form.
    pub fields: Vec<ArgumentDefinition>,
}

/// The resources of another server. They are not listed: a caller reads those that prompts link to.
pub trait RemoteResources: fmt::Debug + Send + Sync {
    /// Returns how a URI is known, from memory; `None` for a URI that must not be read.
    fn origin(&self, uri: &str) -> Option<RemoteOrigin>;

    /// Reads the resource of a known URI. An implementation bounds and checks everything that the other server sends.
    fn read(&self, uri: &str) -> BoxFuture<'_, Result<ReadBody, ReadError>>;
}

/// The reason why a URI of another server may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoteOrigin {
    /// Answers of these prompts have linked to it, by their own names.
    Linked(Vec<String>),
    /// The other server lists it.
    Listed,
}
