//! What can be attached and read: resources, their URIs and URI templates.
//!
//! How a file is opened is not here: a source brings a [`ReadResource`].

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::{
    argument::{self, Argument, Problem, RawArguments},
    content::{Annotations, Icon, MimeType, ResourceBody, ResourceContents},
    definition::{BoxFuture, LibraryFile, ResourceDefinition},
    template::{RenderError, Template},
    timestamp::Timestamp,
    uri_template::UriTemplate,
};

/// Values of a URI template's variables, or of arguments filled in so far.
pub type Variables = BTreeMap<String, String>;

/// The URI scheme of files that a library serves without declaring them.
pub const LIBRARY_SCHEME: &str = "library";

/// The URI of a library's file.
pub(crate) fn library_uri(path: &str) -> String {
    let mut uri = format!("{LIBRARY_SCHEME}:///");
    let path = percent_encoding::utf8_percent_encode(path, PATH);
    uri.extend(path);
    uri
}

/// What RFC 3986 does not allow to stand in a path as it is.
const PATH: &percent_encoding::AsciiSet =
    &percent_encoding::NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Reads a resource when it is asked for.
pub trait ReadResource: fmt::Debug + Send + Sync {
    /// The body behind a URI whose template variables have these values.
    ///
    /// A reader decides by itself what it opens: `variables` come from callers
    /// and can be anything that the template lets through.
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

/// What a reader found.
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
    /// Something failed that is no caller's business; the text is for the log.
    #[error("{0}")]
    Failed(String),
}

/// One checked resource, or a family of resources behind a URI template.
#[derive(Debug)]
pub struct Resource {
    pub(crate) definition: ResourceDefinition,
    pub(crate) address: Address,
    pub(crate) variables: Vec<Argument>,
    pub(crate) mime_type: MimeType,
    pub(crate) content: CheckedContent,
}

#[derive(Debug)]
pub(crate) enum Address {
    Uri(Arc<str>),
    Template(UriTemplate),
}

#[derive(Debug)]
pub(crate) enum CheckedContent {
    Fixed(ResourceBody),
    File(Arc<LibraryFile>),
    Template(Box<Template>),
    Reader(Arc<dyn ReadResource>),
}

impl Resource {
    /// The URI, or the URI template.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.definition.uri
    }

    /// Whether it is a template with variables.
    #[must_use]
    pub fn is_template(&self) -> bool {
        matches!(self.address, Address::Template(_))
    }

    /// The programmatic name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// The name for people.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.definition.title.as_deref()
    }

    /// What it is.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.definition.description.as_deref()
    }

    /// Its MIME type, where it is known without reading.
    #[must_use]
    pub fn mime_type(&self) -> Option<&MimeType> {
        match &self.content {
            CheckedContent::Reader(_) => self.definition.mime_type.as_ref(),
            _ => Some(&self.mime_type),
        }
    }

    /// Its size in bytes, where it is known without reading.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        match &self.content {
            CheckedContent::Fixed(body) => Some(body.len() as u64),
            CheckedContent::File(file) => Some(file.body.len() as u64),
            CheckedContent::Template(_) => None,
            CheckedContent::Reader(_) => self.definition.size,
        }
    }

    /// Pictures for it.
    #[must_use]
    pub fn icons(&self) -> &[Icon] {
        &self.definition.icons
    }

    /// Whom it concerns and how much.
    #[must_use]
    pub fn annotations(&self) -> &Annotations {
        &self.definition.annotations
    }

    /// The template's variables, in the order in which they stand in it.
    #[must_use]
    pub fn variables(&self) -> &[Argument] {
        &self.variables
    }

    /// The variables that a URI gives, if it is one of this resource's.
    #[must_use]
    pub fn matches(&self, uri: &str) -> Option<Variables> {
        match &self.address {
            Address::Uri(own) => (**own == *uri).then(Variables::new),
            Address::Template(template) => template.matches(uri),
        }
    }

    /// The library's file that a URI with these variables reads, if it is one.
    pub(crate) fn library_path(&self, variables: &Variables) -> Option<String> {
        match &self.content {
            CheckedContent::File(file) => Some(file.path.clone()),
            CheckedContent::Reader(reader) => reader.library_path(&self.bind(variables).ok()?),
            CheckedContent::Fixed(_) | CheckedContent::Template(_) => None,
        }
    }

    /// Checks variables and fills in defaults.
    fn bind(&self, variables: &Variables) -> Result<Variables, Vec<Problem>> {
        let given = RawArguments::from(variables);
        let bound = argument::bind(&self.variables, &given, usize::MAX)?;
        Ok(bound.to_variables())
    }

    /// Reads it, under a URI for which [`matches`](Resource::matches) gave the variables.
    ///
    /// # Errors
    ///
    /// [`ReadError`]; a variable that its constraints do not allow is `NotFound`.
    pub async fn read(&self, uri: &str, variables: &Variables) -> Result<ResourceContents, ReadError> {
        let variables = self.bind(variables).map_err(|_| ReadError::NotFound)?;
        let contents = |body, mime_type| ResourceContents { uri: uri.into(), mime_type, body };
        match &self.content {
            CheckedContent::Fixed(body) => Ok(contents(body.clone(), self.mime_type.clone())),
            CheckedContent::File(file) => Ok(contents(file.body.clone(), self.mime_type.clone())),
            CheckedContent::Template(template) => {
                let text = template.render_text(&variables).map_err(|error| match error {
                    RenderError::OverBudget(_) => ReadError::TooLarge { limit: template.budget().output_bytes as u64 },
                    other => ReadError::Failed(other.to_string()),
                })?;
                Ok(contents(ResourceBody::Text(text.into()), self.mime_type.clone()))
            }
            CheckedContent::Reader(reader) => {
                let found = reader.read(&variables).await?;
                let declared = self.definition.mime_type.clone();
                let mime_type = declared.or(found.mime_type).unwrap_or_else(|| self.mime_type.clone());
                Ok(contents(found.body, mime_type))
            }
        }
    }

    /// A number that differs when what the URI holds does.
    pub async fn version(&self, variables: &Variables) -> Option<u64> {
        let variables = self.bind(variables).ok()?;
        match &self.content {
            CheckedContent::Fixed(body) => Some(body.digest()),
            CheckedContent::File(file) => Some(file.body.digest()),
            CheckedContent::Template(template) => {
                template.render_text(&variables).ok().map(|text| hash(text.as_bytes()))
            }
            CheckedContent::Reader(reader) => reader.version(&variables).await,
        }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

impl ResourceBody {
    /// A number that differs when the body does, within one run of a program.
    #[must_use]
    pub fn digest(&self) -> u64 {
        match self {
            ResourceBody::Text(text) => hash(text.as_bytes()),
            ResourceBody::Blob(blob) => hash(blob.bytes()),
        }
    }
}
