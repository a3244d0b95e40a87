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
//! let parts = futures_executor::block_on(prompt.render(&catalog, arguments)).expect("it renders");
//! assert_eq!(parts, [Part::Message(promptshelf_core::Message::user("Say hello to Ada."))]);
//! ```
//!
//! What is deliberately not here: files, sockets, clocks, an async runtime, and
//! any wire format.

mod access;
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
mod name;
mod prompt;
mod resource;
mod template;
mod timestamp;
mod uri_template;
mod workflow;

pub use access::{Access, AccessRule, AccessSet};
pub use argument::{Argument, Bindings, Choice, Problem, RawArgumentValue, RawArguments, Value, bind};
pub use catalog::{Catalog, Change, Page, PromptList};
pub use check::{Checked, check, check_edited};
pub use content::{
    Annotations, Blob, ContentBlock, EmbeddedResource, Icon, Media, Message, Meta, MimeType, ResourceBody,
    ResourceContents, ResourceLink, Role, Text, Theme,
};
pub use definition::{
    About, ArgumentDefinition, ArgumentType, Body, BodyPiece, BoxFuture, BrokenFile, Budget, CompletionFunction,
    CompletionSource, CompletionTest, Definitions, LibraryFile, Origin, Policy, PromptDefinition, PromptFunction,
    Requirements, ResourceContent, ResourceDefinition, Spans, TestDefinition,
};
pub use diagnostic::{Code, Diagnostic, Location, Severity, SourceText, nearest};
pub use handle::CatalogHandle;
pub use name::{MAX_NAME_BYTES, NameError, PromptName};
pub use prompt::{Part, Prompt};
pub use resource::{LIBRARY_SCHEME, ReadBody, ReadError, ReadResource, Resource, Variables};
pub use template::{Outline, RenderError, TemplateAnalysis, TemplateUse, TemplateWords};
pub use timestamp::{Timestamp, TimestampError};
pub use uri_template::expand_uri_template;
pub use workflow::{Answers, Decline, Form, StepDefinition};
