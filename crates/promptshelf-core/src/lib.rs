//! Prompts of the Model Context Protocol, without I/O.
//!
//! A source hands in [`Definitions`]; [`check`] makes a [`Catalog`] of them and
//! says what is wrong; a [`CatalogHandle`] is where the current catalog stands.
//! A [`Prompt`] of the catalog binds what a caller sent and renders messages.
//!
//! ```
//! use promptshelf_core::{ArgumentDefinition, Definitions, RawArguments, Part, PromptDefinition, check};
//!
//! let hello = PromptDefinition::template("hello", "Say hello to {{ name }}.")
//!     .description("Greets somebody")
//!     .argument(ArgumentDefinition::new("name").description("Whom to greet").required());
//! let checked = check(Definitions::from_iter([hello]), None);
//! assert!(checked.diagnostics.is_empty());
//!
//! let catalog = checked.catalog;
//! let prompt = catalog.find("hello").expect("it is there");
//! let arguments = prompt.bind(&RawArguments::from_iter([("name", "Ada")]), 1_000).expect("it is complete");
//! let parts = prompt.render(catalog.render_context(), &arguments).expect("it renders");
//! assert_eq!(parts, [Part::Message(promptshelf_core::Message::user("Say hello to Ada."))]);
//! ```
//!
//! What is deliberately not here: files, sockets, clocks, an async runtime, and
//! any wire format.

mod argument;
mod catalog;
mod check;
pub mod completion;
mod content;
pub mod cursor;
mod definition;
mod diagnostic;
mod handle;
pub mod invisible;
mod library_files;
mod name;
mod prompt;
mod render_error;
mod resource;
mod template;
mod template_outline;
mod timestamp;
mod uri_template;
mod value;
mod workflow;

pub use argument::{Argument, Problem, RawArgumentValue, RawArguments, bind};
pub use catalog::{Catalog, Change, Page, PromptList};
pub use check::{Checked, check, check_edited};
pub use content::{
    Annotations, Blob, ContentBlock, EmbeddedResource, Icon, Media, Message, Meta, MimeType, ResourceBody,
    ResourceContents, ResourceLink, Role, Text, Theme,
};
pub use definition::{
    About, Access, AccessRule, AccessSet, ArgumentDefinition, ArgumentType, AsyncPromptFunction, Body, BodyPiece,
    BrokenFile, Budget, Choice, CompletionFunction, CompletionSource, CompletionTest, Decline, Definitions,
    LIBRARY_SCHEME, LibraryFile, Origin, Policy, PromptDefinition, PromptFunction, ReadBody, ReadError, ReadResource,
    Requirements, ResourceContent, ResourceDefinition, Spans, StepDefinition, SyncPromptFunction, TestDefinition,
};
pub use diagnostic::{Code, Diagnostic, Location, Severity, SourceText, nearest};
pub use handle::CatalogHandle;
pub use name::{MAX_NAME_BYTES, NameError, PromptName};
pub use prompt::{Part, Prompt, RenderContext};
pub use render_error::RenderError;
pub use resource::Resource;
pub use template::{TemplateAnalysis, TemplateUse, TemplateWords};
pub use template_outline::Outline;
pub use timestamp::{Timestamp, TimestampError};
pub use uri_template::expand_uri_template;
pub use value::{Bindings, BoxFuture, Value, Variables};
pub use workflow::{Answers, Form};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
