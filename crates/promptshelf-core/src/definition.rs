//! What a source hands in: prompts, files and resources as they were written,
//! unchecked.
//!
//! A definition says what an author wants. Whether it can be served is decided
//! by [`check`](crate::check), which turns definitions into a
//! [`Catalog`](crate::Catalog) and diagnostics.

use std::{collections::BTreeMap, future::Future, pin::Pin, sync::Arc, time::Duration};

use crate::{
    access::AccessRule,
    content::{Annotations, Blob, Icon, MimeType, ResourceBody, ResourceContents},
    diagnostic::{Diagnostic, SourceText},
    invisible::InvisiblePolicy,
    resource::ReadResource,
    timestamp::Timestamp,
};

mod argument;
mod body;
mod broken;
mod origin;
mod prompt;
mod test;

pub use argument::{ArgumentDefinition, ArgumentType, CompletionFunction, CompletionSource};
pub use body::{Body, BodyPiece, PromptFunction};
pub use broken::{BrokenFile, Requirements};
pub use origin::{Origin, Spans};
pub use prompt::PromptDefinition;
pub use test::{CompletionTest, TestDefinition};

/// A future that can be sent to another thread; what closures in definitions return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Everything that a source, or several, define.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// What the server says of itself.
    pub about: About,
    /// Bounds and quirks.
    pub policy: Policy,
    /// Prompts, in any order.
    pub prompts: Vec<Arc<PromptDefinition>>,
    /// Templates to include, by their path inside the library.
    pub partials: BTreeMap<String, Arc<SourceText>>,
    /// Files to attach, link and complete from, by their path inside the library.
    pub files: BTreeMap<String, Arc<LibraryFile>>,
    /// Resources, in any order.
    pub resources: Vec<ResourceDefinition>,
    /// What is asked of callers, by patterns.
    pub access: Vec<AccessRule>,
    /// Files that should define a prompt and cannot be understood.
    pub broken: Vec<BrokenFile>,
    /// What the source found wrong while reading.
    pub diagnostics: Vec<Diagnostic>,
}

impl<P: Into<Arc<PromptDefinition>>> FromIterator<P> for Definitions {
    fn from_iter<I: IntoIterator<Item = P>>(prompts: I) -> Definitions {
        Definitions { prompts: prompts.into_iter().map(Into::into).collect(), ..Definitions::default() }
    }
}

impl Definitions {
    /// Adds a prompt.
    ///
    /// ```
    /// use promptshelf_core::{Definitions, PromptDefinition};
    ///
    /// let definitions = Definitions::default().prompt(PromptDefinition::template("hello", "Say hello."));
    /// # assert_eq!(definitions.prompts.len(), 1);
    /// ```
    #[must_use]
    pub fn prompt(mut self, prompt: impl Into<Arc<PromptDefinition>>) -> Definitions {
        self.prompts.push(prompt.into());
        self
    }

    /// Adds what another source defines. Its `about` and `policy` are left out:
    /// the first source speaks for the server.
    pub fn merge(&mut self, other: Definitions) {
        self.prompts.extend(other.prompts);
        self.partials.extend(other.partials);
        self.files.extend(other.files);
        self.resources.extend(other.resources);
        self.access.extend(other.access);
        self.broken.extend(other.broken);
        self.diagnostics.extend(other.diagnostics);
    }

    /// Says which of several sources these are from: files of two of them can
    /// have the same path and are different files.
    #[must_use]
    pub fn of_source(mut self, number: usize) -> Definitions {
        // A definition is copied only where its number changes.
        for prompt in self.prompts.iter_mut().filter(|prompt| prompt.origin.from != number) {
            Arc::make_mut(prompt).origin.from = number;
        }
        self.broken.iter_mut().for_each(|broken| broken.from = number);
        self
    }
}

/// What the server says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The programmatic name; empty means the server's default.
    pub name: Option<String>,
    /// The name for people.
    pub title: Option<String>,
    /// The library's version.
    pub version: Option<String>,
    /// What the library is.
    pub description: Option<String>,
    /// Where to read about it.
    pub website_url: Option<String>,
    /// Pictures for it.
    pub icons: Vec<Icon>,
    /// How a client should use the server, for the model to read.
    pub instructions: Option<String>,
}

/// Bounds and quirks of a library.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Prompts or resources a page. Common clients read one page only, so the
    /// default of 1,000 is meant to hold the whole list.
    pub page_size: usize,
    /// For how long clients may reuse a list (`ttlMs` of revision 2026-07-28).
    pub ttl: Duration,
    /// The most bytes that one argument value can have.
    pub value_bytes: usize,
    /// What becomes of invisible characters in values, where an argument does
    /// not say so itself.
    pub invisible: InvisiblePolicy,
    /// What one rendering may use.
    pub budget: Budget,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            page_size: 1_000,
            ttl: Duration::from_secs(60),
            value_bytes: 1 << 20,
            invisible: InvisiblePolicy::default(),
            budget: Budget::default(),
        }
    }
}

/// What one rendering may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Steps of the template engine. Each may make 64 bytes of text on the way,
    /// taken over the whole rendering; 16 MiB in all are always free.
    pub fuel: u64,
    /// Bytes of text that come out.
    pub output_bytes: usize,
    /// Bytes of attachments that come out, before encoding.
    pub attachment_bytes: usize,
    /// Messages that come out.
    pub messages: usize,
    /// How deep partials may include each other; never more than 40.
    pub include_depth: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            fuel: 1_000_000,
            output_bytes: 8 << 20,
            attachment_bytes: 32 << 20,
            messages: 1_000,
            include_depth: 16,
        }
    }
}

/// A file of the library that prompts can attach, link and complete from.
#[derive(Clone, Debug)]
pub struct LibraryFile {
    /// Its path inside the library, with `/` between its parts.
    pub path: String,
    /// Its MIME type.
    pub mime_type: MimeType,
    /// What it holds.
    pub body: ResourceBody,
    /// When it last changed, where known.
    pub modified: Option<Timestamp>,
}

impl LibraryFile {
    /// The URI under which the file is read as a resource, unless the library
    /// declares another one for it.
    #[must_use]
    pub fn uri(&self) -> String {
        crate::resource::library_uri(&self.path)
    }

    /// The bytes, for an image or a sound.
    #[must_use]
    pub fn blob(&self) -> Blob {
        match &self.body {
            ResourceBody::Blob(blob) => blob.clone(),
            ResourceBody::Text(text) => Blob::new(text.as_bytes().to_vec()),
        }
    }

    /// The file as a resource under a URI.
    #[must_use]
    pub fn contents(&self, uri: impl Into<Arc<str>>) -> ResourceContents {
        ResourceContents { uri: uri.into(), mime_type: self.mime_type.clone(), body: self.body.clone() }
    }
}

/// A resource as its author declared it.
#[derive(Clone, Debug)]
pub struct ResourceDefinition {
    /// A URI, or a URI template (RFC 6570) with variables.
    pub uri: String,
    /// The programmatic name.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Its MIME type, where it is not taken from the file.
    pub mime_type: Option<MimeType>,
    /// Its size in bytes, where known.
    pub size: Option<u64>,
    /// Pictures for it.
    pub icons: Vec<Icon>,
    /// Whom it concerns and how much.
    pub annotations: Annotations,
    /// The template's variables that have constraints, a default or completion.
    pub variables: Vec<ArgumentDefinition>,
    /// What it holds.
    pub content: ResourceContent,
    /// Where it comes from.
    pub origin: Origin,
}

impl ResourceDefinition {
    /// A resource of which no more is known than its URI, what it holds, and
    /// where it comes from: what a source begins with. Its name is its URI.
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

/// What a resource holds.
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
