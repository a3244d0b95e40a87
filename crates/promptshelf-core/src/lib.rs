//! Prompts of the Model Context Protocol, without I/O.
//!
//! A source provides [`Definitions`]. [`check`] validates them and returns a [`Catalog`] and diagnostics; a
//! [`CatalogHandle`] holds the current catalog. A [`Prompt`] of the catalog binds the arguments of a call and renders
//! messages.
//!
//! ```
//! use promptshelf_core::{ArgumentDefinition, Definitions, RawArguments, Part, PromptDefinition, check};
//!
//! let hello = PromptDefinition::template("hello", "Say hello to {{ name }}.")
//!     .description("Greets a person")
//!     .argument(ArgumentDefinition::new("name").description("The person to greet").required());
//! let checked = check(Definitions::from_iter([hello]), None);
//! assert!(checked.diagnostics.is_empty());
//!
//! let catalog = checked.catalog;
//! let prompt = catalog.find("hello").expect("the prompt exists");
//! let arguments = prompt.bind(&RawArguments::from_iter([("name", "Ada")]), 1_000).expect("the arguments are valid");
//! let parts = prompt.render(catalog.render_context(), &arguments).expect("it renders");
//! assert_eq!(parts, [Part::Message(promptshelf_core::Message::user("Say hello to Ada."))]);
//! ```
//!
//! Files, sockets, clocks, an async runtime and all wire formats are deliberately elsewhere.

mod argument;
mod catalog;
mod check;
pub mod completion;
mod content;
pub mod cursor;
mod definition;
mod diagnostic;
mod glob;
mod handle;
mod identity;
mod interrupt;
pub mod invisible;
mod library_files;
mod name;
mod prompt;
mod provenance;
mod render_error;
mod resource;
pub mod rollout;
mod skill;
mod template;
mod template_outline;
mod timestamp;
mod uri_template;
pub mod usage;
mod value;
mod workflow;

pub use argument::{Argument, Problem, RawArgumentValue, RawArguments, bind};
pub use catalog::{Catalog, CatalogPart, CatalogProvenance, Change, Content, ContentAccess, Page, RulePart};
pub use check::{Checked, check, is_variable_name, join};
pub use content::{
    Annotations, Blob, ContentBlock, EmbeddedResource, Icon, Media, Message, Meta, MimeType, ResourceBody,
    ResourceContents, ResourceLink, Role, Text, Theme,
};
pub use definition::{
    About, Access, AccessRule, AccessSet, ArgumentDefinition, ArgumentType, AsyncPromptFunction, Body, BodyPiece,
    BrokenFile, Budget, Choice, CompletionFunction, CompletionSource, CompletionTest, Constraints, Decline,
    Definitions, Deprecation, LABELS, LIBRARY_SCHEME, Label, Labels, LibraryFile, Links, MAX_LABEL_CHARS, Origin,
    Policy, PromptDefinition, PromptFunction, ReadBody, ReadError, ReadResource, RemoteAnswer, RemoteCompletion,
    RemoteForm, RemoteInput, RemoteOrigin, RemotePrompt, RemoteQuestion, RemoteResources, Requirements,
    ResourceContent, ResourceDefinition, Select, SkillSource, Spans, StepDefinition, SyncPromptFunction,
    TestDefinition, Words,
};
pub use diagnostic::{Code, Diagnostic, Location, Severity, SourceText, is_slip, nearest};
pub use glob::{Glob, GlobError, escape_glob};
pub use handle::CatalogHandle;
pub use identity::identity;
pub use interrupt::{Interrupt, is_interrupted};
pub use name::{MAX_NAME_BYTES, NameError, PromptName};
pub use prompt::{ContentName, Part, Prompt, ReadPermission, RenderContext};
pub use provenance::{CommitProvenance, PromptProvenance, Provenance};
pub use render_error::RenderError;
pub use resource::Resource;
pub use skill::{Skill, SkillChild, SkillFile, Skills};
pub use template::{TemplateAnalysis, TemplateUse, TemplateWord, TemplateWords};
pub use template_outline::Outline;
pub use timestamp::{Timestamp, TimestampError};
pub use uri_template::expand_uri_template;
pub use value::{Bindings, BoxFuture, Value, Variables};
pub use workflow::{Answers, Form};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
