//! Definitions: prompts, files and resources as a source provides them, unchecked.
//!
//! [`check`](crate::check) validates definitions and returns a [`Catalog`](crate::Catalog) and diagnostics.

mod access;
mod argument;
mod body;
mod broken;
mod deprecation;
mod file;
mod grouping;
mod library;
mod links;
mod origin;
mod policy;
mod prompt;
mod remote;
mod resource;
mod skill;
mod step;
mod test;

pub use access::{Access, AccessRule, AccessSet};
pub use argument::{
    ArgumentDefinition, ArgumentType, Choice, CompletionFunction, CompletionSource, Constraints, RemoteCompletion,
};
pub use body::{AsyncPromptFunction, Body, BodyPiece, PromptFunction, Select, SyncPromptFunction, Words};
pub use broken::{BrokenFile, Requirements};
pub use deprecation::Deprecation;
pub use file::{LIBRARY_SCHEME, LibraryFile};
pub(crate) use file::{encoded_path, library_uri};
pub use grouping::Grouping;
pub use library::{About, Definitions};
pub use links::Links;
pub use origin::{Origin, Spans};
pub use policy::{Budget, Policy};
pub use prompt::PromptDefinition;
pub use remote::{RemoteAnswer, RemoteForm, RemoteInput, RemoteOrigin, RemotePrompt, RemoteQuestion, RemoteResources};
pub use resource::{ReadBody, ReadError, ReadResource, ResourceContent, ResourceDefinition};
pub use skill::SkillSource;
pub use step::{Decline, StepDefinition};
pub use test::{CompletionTest, TestDefinition};
