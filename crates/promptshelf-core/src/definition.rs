//! Definitions: prompts, files and resources as a source provides them, unchecked.
//!
//! [`check`](crate::check) validates definitions and returns a [`Catalog`](crate::Catalog) and diagnostics.

mod access;
mod argument;
mod body;
mod library;
mod origin;
mod prompt;
mod remote;
mod resource;

pub use access::{Access, AccessRule, AccessSet};
pub use argument::{
    ArgumentDefinition, ArgumentType, Choice, CompletionFunction, CompletionSource, Constraints, RemoteCompletion,
};
pub use body::{AsyncPromptFunction, Body, BodyPiece, PromptFunction, Select, SyncPromptFunction, Words};
pub use library::{About, BrokenFile, Budget, Definitions, LIBRARY_SCHEME, LibraryFile, Links, Policy, Requirements};
pub(crate) use library::{encoded_path, library_uri};
pub use origin::{Origin, Spans};
pub use prompt::{
    CompletionTest, Decline, Deprecation, Grouping, PromptDefinition, SkillSource, StepDefinition, TestDefinition,
};
pub use remote::{RemoteAnswer, RemoteForm, RemoteInput, RemoteOrigin, RemotePrompt, RemoteQuestion, RemoteResources};
pub use resource::{ReadBody, ReadError, ReadResource, ResourceContent, ResourceDefinition};
