//! Checked resources: content with a URI or a URI template.
//!
//! Files are opened by a [`ReadResource`], which a source provides.

use std::sync::Arc;

use crate::{
    argument::{self, Argument, Problem, RawArguments},
    content::{Annotations, Icon, MimeType, ResourceBody, ResourceContents},
    definition::{LibraryFile, ReadError, ReadResource, ResourceDefinition},
    interrupt::Interrupt,
    render_error::RenderError,
    template::{Remaining, Template},
    uri_template::UriTemplate,
    value::Variables,
};

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

    /// Returns whether the URI is a template with variables.
    #[must_use]
    pub fn is_template(&self) -> bool {
        matches!(self.address, Address::Template(_))
    }

    /// The programmatic name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// The display name.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.definition.title.as_deref()
    }

    /// The description.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.definition.description.as_deref()
    }

    /// Its MIME type, if it is known without reading.
    #[must_use]
    pub fn mime_type(&self) -> Option<&MimeType> {
        match &self.content {
            CheckedContent::Reader(_) => self.definition.mime_type.as_ref(),
            _ => Some(&self.mime_type),
        }
    }

    /// Its size in bytes, if it is known without reading.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        match &self.content {
            CheckedContent::Fixed(body) => Some(body.len() as u64),
            CheckedContent::File(file) => Some(file.body.len() as u64),
            CheckedContent::Template(_) => None,
            CheckedContent::Reader(_) => self.definition.size,
        }
    }

    /// The icons.
    #[must_use]
    pub fn icons(&self) -> &[Icon] {
        &self.definition.icons
    }

    /// Audience and priority (MCP `annotations`).
    #[must_use]
    pub fn annotations(&self) -> &Annotations {
        &self.definition.annotations
    }

    /// The variables of the URI template, in its order.
    #[must_use]
    pub fn variables(&self) -> &[Argument] {
        &self.variables
    }

    /// Returns the template's variables that a URI can lack; `None` for a fixed URI.
    pub(crate) fn query_variables(&self) -> Option<&[String]> {
        match &self.address {
            Address::Uri(_) => None,
            Address::Template(template) => Some(template.query()),
        }
    }

    /// Returns the variables of a URI, if it belongs to this resource.
    #[must_use]
    pub fn matches(&self, uri: &str) -> Option<Variables> {
        match &self.address {
            Address::Uri(own) => (**own == *uri).then(Variables::new),
            Address::Template(template) => template.matches(uri),
        }
    }

    /// Returns the path of the file that is read with these bound variables, if it is a file.
    pub(crate) fn path(&self, bound: &Variables) -> Option<String> {
        match &self.content {
            CheckedContent::File(file) => Some(file.path.clone()),
            CheckedContent::Reader(reader) => reader.place(bound),
            CheckedContent::Fixed(_) | CheckedContent::Template(_) => None,
        }
    }

    pub(crate) fn folder(&self) -> Option<String> {
        match &self.content {
            CheckedContent::Reader(reader) => reader.folder(),
            _ => None,
        }
    }

    pub(crate) fn variables_of(&self, path: &str) -> Vec<Variables> {
        match &self.content {
            CheckedContent::Reader(reader) => reader.variables_of(path),
            _ => Vec::new(),
        }
    }

    pub(crate) fn bind(&self, variables: &Variables) -> Result<Variables, Vec<Problem>> {
        let raw = RawArguments::from(variables);
        let bound = argument::bind(&self.variables, &raw, usize::MAX)?;
        Ok(bound.to_variables())
    }

    /// Reads the content of a URI for which [`matches`](Resource::matches) returned the variables.
    ///
    /// # Errors
    ///
    /// [`ReadError`]; a variable that violates its constraints is `NotFound`.
    pub async fn read(&self, uri: &str, variables: &Variables) -> Result<ResourceContents, ReadError> {
        let variables = self.bind(variables).map_err(|_| ReadError::NotFound)?;
        let contents = |body, mime_type| ResourceContents { uri: uri.into(), mime_type, body };
        match &self.content {
            CheckedContent::Fixed(body) => Ok(contents(body.clone(), self.mime_type.clone())),
            CheckedContent::File(file) => Ok(contents(file.body.clone(), self.mime_type.clone())),
            CheckedContent::Template(template) => {
                self.rendered(template, uri, &variables, Remaining::of(template.budget()))
            }
            CheckedContent::Reader(reader) => {
                let found = reader.read(&variables).await?;
                let declared = self.definition.mime_type.clone();
                let mime_type = declared.or(found.mime_type).unwrap_or_else(|| self.mime_type.clone());
                Ok(contents(found.body, mime_type))
            }
        }
    }

    /// Returns whether reading computes no longer than a few milliseconds, judged by the template and the size of the
    /// values.
    #[must_use]
    pub fn is_quick(&self, variables: &Variables) -> bool {
        match &self.content {
            CheckedContent::Template(template) => template.is_quick(variables.values().map(String::len).sum()),
            _ => true,
        }
    }

    /// Reads a resource whose text is a template, unless `interrupt` is set meanwhile; `None` for others.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Resource::read).
    pub fn render_interruptible(
        &self,
        uri: &str,
        variables: &Variables,
        interrupt: &Interrupt,
    ) -> Option<Result<ResourceContents, ReadError>> {
        let CheckedContent::Template(template) = &self.content else { return None };
        let left = Remaining { interrupt: Some(interrupt.clone()), ..Remaining::of(template.budget()) };
        let bound = self.bind(variables).map_err(|_| ReadError::NotFound);
        Some(bound.and_then(|bound| self.rendered(template, uri, &bound, left)))
    }

    fn rendered(
        &self,
        template: &Template,
        uri: &str,
        variables: &Variables,
        mut left: Remaining,
    ) -> Result<ResourceContents, ReadError> {
        let text = template.render_text(variables, &mut left).map_err(|error| match error {
            RenderError::OverBudget(_) => ReadError::TooLarge { limit: template.budget().output_bytes as u64 },
            other => ReadError::Failed(other.to_string()),
        })?;
        let body = ResourceBody::Text(text.into());
        Ok(ResourceContents { uri: uri.into(), mime_type: self.mime_type.clone(), body })
    }

    /// Returns a number that changes with the content of the URI.
    pub async fn version(&self, variables: &Variables) -> Option<u64> {
        let variables = self.bind(variables).ok()?;
        match &self.content {
            CheckedContent::Fixed(body) => Some(body.digest()),
            CheckedContent::File(file) => Some(file.body.digest()),
            CheckedContent::Template(template) => {
                let mut left = Remaining::of(template.budget());
                template.render_text(&variables, &mut left).ok().map(|text| ResourceBody::Text(text.into()).digest())
            }
            CheckedContent::Reader(reader) => reader.version(&variables).await,
        }
    }
}

impl Resource {
    /// Whether lists show the same of both. Size and time of change are ignored: an edit of a file changes the
    /// content of a resource, which its subscribers are notified of, and not the list.
    pub(crate) fn is_listed_like(self: &Arc<Self>, other: &Arc<Resource>) -> bool {
        let (ours, theirs) = (self.annotations(), other.annotations());
        Arc::ptr_eq(self, other)
            || (self.uri() == other.uri()
                && self.name() == other.name()
                && self.title() == other.title()
                && self.description() == other.description()
                && self.mime_type() == other.mime_type()
                && self.icons() == other.icons()
                && (&ours.audience, ours.priority) == (&theirs.audience, theirs.priority))
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Resources {
    pub(crate) fixed: Arc<[Arc<Resource>]>,
    pub(crate) templates: Arc<[Arc<Resource>]>,
}

impl Resources {
    pub(crate) fn find(&self, uri: &str) -> Option<(&Arc<Resource>, Variables)> {
        if let Some(resource) = self.find_fixed(uri) {
            return Some((resource, Variables::new()));
        }
        self.templates.iter().find_map(|resource| Some((resource, resource.matches(uri)?)))
    }

    /// Returns the resource with exactly this URI or URI template.
    pub(crate) fn find_declared(&self, uri: &str) -> Option<&Arc<Resource>> {
        self.find_fixed(uri).or_else(|| self.templates.iter().find(|template| template.uri() == uri))
    }

    fn find_fixed(&self, uri: &str) -> Option<&Arc<Resource>> {
        let index = self.fixed.binary_search_by(|resource| resource.uri().cmp(uri)).ok()?;
        self.fixed.get(index)
    }
}
