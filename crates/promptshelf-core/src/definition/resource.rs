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
    /// The MIME type, if it is not taken from the file.
    pub mime_type: Option<MimeType>,
    /// The size in bytes, if known.
    pub size: Option<u64>,
    /// The icons.
    pub icons: Vec<Icon>,
    /// Audience and priority (MCP `annotations`).
    pub annotations: Annotations,
    /// The template's variables that have constraints, a default or completion.
    pub variables: Vec<ArgumentDefinition>,
    /// The content.
    pub content: ResourceContent,
    /// The text that the definition was read from.
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
    /// A fixed body.
    Fixed(ResourceBody),
    /// Text in template syntax over the URI's variables.
    Template(String),
    /// A file of the library, by its path.
    LibraryFile(String),
    /// The result of a reader, on each request.
    Reader(Arc<dyn ReadResource>),
}

/// Reads a resource on request.
pub trait ReadResource: fmt::Debug + Send + Sync {
    /// Reads the body of a URI whose template variables have these values.
    ///
    /// The reader validates `variables`: they come from callers and can be any text that the template matches.
    fn read<'a>(&'a self, variables: &'a Variables) -> BoxFuture<'a, Result<ReadBody, ReadError>>;

    /// Returns a number that changes with the body; `None` if nothing exists at the URI. Must be cheaper than
    /// reading: it is called for every subscribed URI after each change.
    fn version<'a>(&'a self, variables: &'a Variables) -> BoxFuture<'a, Option<u64>>;

    /// Returns the place ([`Links`](crate::Links)) of the file that would be read, if it is a file: access rules apply
    /// to it under all its names. Must not read anything, and [`read`](ReadResource::read) must read this file.
    fn place(&self, _variables: &Variables) -> Option<String> {
        None
    }

    /// Returns the values of variables with which the file of this path would be read. A variable that is missing can
    /// have any value.
    fn variables_of(&self, _path: &str) -> Vec<Variables> {
        Vec::new()
    }

    /// Returns the place of the folder that contains all files that can be read; empty for the library itself.
    fn folder(&self) -> Option<String> {
        None
    }
}

/// The result of a reader.
#[derive(Clone, Debug)]
pub struct ReadBody {
    /// Text or bytes.
    pub body: ResourceBody,
    /// The MIME type, if the reader can determine it.
    pub mime_type: Option<MimeType>,
    /// The time of the last change, if known.
    pub modified: Option<Timestamp>,
}

/// The reason why a resource could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Nothing exists at the URI, or nothing that may be read; callers cannot distinguish the two.
    #[error("resource not found")]
    NotFound,
    /// The resource is larger than the library allows.
    #[error("the resource is larger than {limit} bytes")]
    TooLarge {
        /// The largest number of bytes allowed.
        limit: u64,
    },
    /// An internal failure; the text is for the log and not for callers.
    #[error("{0}")]
    Failed(String),
}
