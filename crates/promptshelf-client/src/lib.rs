//! A client for the prompts and resources of any [MCP](https://modelcontextprotocol.io) server.
//!
//! ```no_run
//! use futures_util::TryStreamExt;
//! use promptshelf_client::{Client, Endpoint};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), promptshelf_client::ClientError> {
//!     let client = Client::connect(&Endpoint::url("https://example.com/mcp")).await?;
//!     let mut prompts = std::pin::pin!(client.prompts());
//!     while let Some(prompt) = prompts.try_next().await? {
//!         println!("{}: {}", prompt.name, prompt.description.unwrap_or_default());
//!     }
//!     let arguments = [("code".to_owned(), "fn main() {}".to_owned())].into();
//!     for message in client.get("code_review", &arguments).await?.messages {
//!         println!("{}: {:?}", message.role.as_str(), message.content);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! On top of the official SDK (`rmcp`) this crate negotiates the protocol revision, follows and bounds paginated lists,
//! passes elicitations to an [`ElicitationHandler`], signs in with OAuth ([`SignIn`]), and limits the time and the size
//! of every answer. A server in the same process is connected over a pipe with [`Client::from_io`].
//!
//! [`PromptCache`] reads prompts from the HTTP API of promptshelf, and returns the last known version while the server is
//! away.
//!
//! Text of a server is returned verbatim. A program that prints it to a terminal has to escape control characters.

mod api;
mod backoff;
mod challenge;
mod changes;
mod client;
mod client_config;
mod client_handler;
mod closing;
mod content;
mod elicitation;
mod endpoint;
mod error;
mod events;
mod http;
mod model;
mod multi_round;
mod options;
mod pagination;
mod pipe;
mod process;
mod prompt_cache;
mod prompt_request;
mod read_request;
mod reconnection;
mod sdk_error;
mod secure_url;
mod sign_in;
mod skills;
mod tolerance;
mod transport;

pub use self::{
    api::{ApiClient, ApiRequest, ApiResponse, ServerUrl},
    changes::Changes,
    client::Client,
    client_config::{ConfigScope, ConfiguredServer},
    closing::closed,
    content::{
        Annotations, ContentBlock, EmbeddedResource, Media, Message, ResourceBody, ResourceContents, ResourceLink,
        Role, Text,
    },
    elicitation::{
        Choice, Elicitation, ElicitationHandler, ElicitationMode, ElicitationResponse, FOREIGN_FORM_NOTICE, FieldKind,
        FormField, FormValues,
    },
    endpoint::Endpoint,
    error::ClientError,
    model::{
        Arguments, Completion, CompletionTarget, PromptArgument, PromptInfo, PromptResult, ReadResult, ResourceInfo,
    },
    multi_round::PromptRound,
    options::ConnectOptions,
    pagination::PromptListing,
    prompt_cache::{CachedPrompt, Confirmation, PromptCache, PromptQuery},
    secure_url::{is_loopback_url, is_secure_url},
    sign_in::{BrowserOpener, CredentialError, CredentialStore, SignIn, SignInPage},
    skills::{SkillFile, SkillInfo},
};
