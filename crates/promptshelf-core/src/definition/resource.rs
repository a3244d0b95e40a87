//! Declarations of resources, and the interface that reads them.

use std::{fmt, sync::Arc};

use super::{argument::ArgumentDefinition, origin::Origin};
use crate::{
    content::{Annotations, Icon, MimeType, ResourceBody},
    timestamp::Timestamp,
    value::{BoxFuture, Variables},
};

/// A resource as its author declared it.
#[derive(Clone, Debug)]
pub struct ResourceDefinition {
    /// A URI, or a URI template (RFC 6570) with variables.
    pub uri: String,
    /// The programmatic name.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// Its MIME type, where it is not taken from the file.
    pub mime_type: Option<MimeType>,
    /// Its size in bytes, where known.
    pub size: Option<u64>,
    /// Pictures for it.
    pub icons: Vec<Icon>,
    /// Audience and priority (MCP `annotations`).
    pub annotations: Annotations,
    /// The template's variables that have constraints, a default or completion.
    pub variables: Vec<ArgumentDefinition>,
    /// The content.
    pub content: ResourceContent,
    /// Where it comes from.
    pub origin: Origin,
}

impl ResourceDefinition {
    /// Creates a resource from its URI, content and origin. Its name is its URI.
    #[must_use]
    pub fn from_source(uri: impl Into<String>, content: ResourceContent, origin: Origin) -> ResourceDefinition {
        let uri = uri.into();
        ResourceDefinition {
            name: uri.clone(),
            uri,
            title: None,
            description: None,
            mime_type: None,
            size: None,
            icons: Vec::new(),
            annotations: Annotations::default(),
            variables: Vec::new(),
            content,
            origin,
        }
    }
}

/// The content of a resource.
#[derive(Clone, Debug)]
pub enum ResourceContent {
    /// Always this.
    Fixed(ResourceBody),
    /// Text in template syntax over the URI's variables.
    Template(String),
    /// A file of the library, by its path.
    LibraryFile(String),
    /// Whatever a reader finds when it is asked.
    Reader(Arc<dyn ReadResource>),
}

/// Reads a resource when it is asked for.
pub trait ReadResource: fmt::Debug + Send + Sync {
    /// Reads the body of a URI whose template variables have these values.
    ///
    /// The reader decides what it opens: `variables` come from callers and can be any text that the template matches.
    fn read<'a>(&'a self, variables: &'a Variables) -> BoxFuture<'a, Result<ReadBody, ReadError>>;

    /// A number that differs when the body does; `None` where nothing is there.
    /// Cheaper than reading; asked for every subscribed URI after each change.
    fn version<'a>(&'a self, variables: &'a Variables) -> BoxFuture<'a, Option<u64>>;

    /// The path inside the library of the file that would be read, if it is one
    /// of the library's: rules for its folder hold for it then.
    fn library_path(&self, _variables: &Variables) -> Option<String> {
        None
    }
}

/// The result of a reader.
#[derive(Clone, Debug)]
pub struct ReadBody {
    /// Text or bytes.
    pub body: ResourceBody,
    /// Its MIME type, as far as the reader knows.
    pub mime_type: Option<MimeType>,
    /// When it last changed, where known.
    pub modified: Option<Timestamp>,
}

/// Why a resource could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Nothing is there, or nothing that may be read: the two look the same.
    #[error("there is no such resource")]
    NotFound,
    /// It is larger than the library allows.
    #[error("the resource is larger than {limit} bytes")]
    TooLarge {
        /// The most bytes allowed.
        limit: u64,
    },
    /// An internal failure; the text is for the log and not for callers.
    #[error("{0}")]
    Failed(String),
}
