//! The library of prompts and its builder.

#[cfg(any(feature = "web", feature = "testing"))]
use parking_lot::Mutex;
use std::{collections::BTreeSet, fmt, path::PathBuf, sync::Arc};

use promptshelf_core::{
    About, Catalog, Definitions, Diagnostic, Location, Policy, PromptDefinition, ResourceDefinition,
};
use promptshelf_mcp::{RequestOptions, Server, StateKey, ToolMode};
use promptshelf_service::{Limits, Observer, Present, Recorder, Service, Usage};
use promptshelf_source::{Files, Fixed, Loader, Source, SourceError, syntax::prompt_name};

/// Folders of prompt files and prompts defined in code, loaded and checked.
///
/// Cheap to clone; clones are the same library. See [`Library::builder`] for an example.
#[derive(Clone, Debug)]
pub struct Library {
    loader: Loader,
    server: Server,
    #[cfg(any(feature = "web", feature = "testing"))]
    reviewed: Arc<Mutex<Reviewed>>,
}

#[cfg(any(feature = "web", feature = "testing"))]
#[derive(Debug, Default)]
struct Reviewed {
    /// The load that the findings are about; 0 before the first one.
    load: u64,
    findings: Arc<[Diagnostic]>,
    reviewer: promptshelf_author::Reviewer,
}

/// Builds a [`Library`].
#[derive(Default)]
#[must_use = "nothing is read before `build`"]
pub struct Builder {
    sources: Vec<Box<dyn Source>>,
    defined: Definitions,
    state_key: Option<StateKey>,
    limits: Option<Limits>,
    limits_of: Option<Service>,
    records_of: Option<Service>,
    present: Option<Present>,
    is_quiet: bool,
    audit: Option<Arc<dyn Recorder>>,
    observer: Option<Arc<dyn Observer>>,
    usage: Option<Usage>,
    channel: String,
    tools: ToolMode,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Builder({} sources, {:?})", self.sources.len(), self.defined)
    }
}

impl Builder {
    /// Adds a folder of prompt files. The server's name, instructions and policy come from the
    /// `promptshelf.toml` of the first folder.
    pub fn folder(self, path: impl Into<PathBuf>) -> Builder {
        self.source(Files::folder(path))
    }

    /// Adds a source of prompts. The server's name, instructions and policy come from the first source; access rules of
    /// each source bind all sources.
    pub fn source(mut self, source: impl Source + 'static) -> Builder {
        self.sources.push(Box::new(source));
        self
    }

    /// Adds a prompt defined in code.
    pub fn prompt(mut self, prompt: PromptDefinition) -> Builder {
        self.defined.prompts.push(prompt.into());
        self
    }

    /// Adds a resource defined in code.
    pub fn resource(mut self, resource: ResourceDefinition) -> Builder {
        self.defined.resources.push(resource);
        self
    }

    /// Sets the server's name, title and instructions, in a library without a folder.
    pub fn about(mut self, about: About) -> Builder {
        self.defined.about = about;
        self
    }

    /// Sets bounds and cache lifetimes, in a library without a folder.
    pub fn policy(mut self, policy: Policy) -> Builder {
        self.defined.policy = policy;
        self
    }

    /// Sets the key that signs the state of guided prompts. Replicas with the same key can continue
    /// each other's prompts; the default is a random key, which only this process has.
    pub fn state_key(mut self, key: StateKey) -> Builder {
        self.state_key = Some(key);
        self
    }

    /// Sets rate and concurrency limits for callers over a network. Unlimited by default.
    pub fn limits(mut self, limits: Limits) -> Builder {
        self.limits = Some(limits);
        self
    }

    /// Counts requests together with those of another library: a caller has the limits once for both.
    pub fn limits_of(mut self, library: &Library) -> Builder {
        self.limits_of = Some(library.service().clone());
        self
    }

    /// Counts requests together with those of another library, and reports them to its audit and its observer.
    pub fn records_of(mut self, library: &Library) -> Builder {
        self.records_of = Some(library.service().clone());
        self
    }

    /// Makes the library an earlier revision of another one, whose access rules of today hold too.
    #[cfg(feature = "channels")]
    pub(crate) fn earlier_than(mut self, present: Present) -> Builder {
        let access = present.catalog.access_rules().to_vec();
        (self.present, self.is_quiet) = (Some(present), true);
        self.source(Fixed::new(Definitions { access, ..Definitions::default() }))
    }

    /// Logs no findings: a caller asks for this library, and chooses what is in it.
    #[cfg(feature = "channels")]
    pub(crate) fn quiet(mut self) -> Builder {
        self.is_quiet = true;
        self
    }

    /// Records every request in an audit log.
    pub fn audit(mut self, recorder: Arc<dyn Recorder>) -> Builder {
        self.audit = Some(recorder);
        self
    }

    /// Notifies `observer` of every request, for metrics and traces.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Builder {
        self.observer = Some(observer);
        self
    }

    /// Counts the use of prompts.
    pub fn usage(mut self, usage: Usage) -> Builder {
        self.usage = Some(usage);
        self
    }

    /// Sets the name of the channel that the library follows, for the usage metrics.
    pub fn channel(mut self, name: impl Into<String>) -> Builder {
        self.channel = name.into();
        self
    }

    /// Sets how models reach prompts through tools. Off by default: the capability `tools` is declared with an empty
    /// list, because agent frameworks fail as a whole if one server does not.
    pub fn tools(mut self, mode: ToolMode) -> Builder {
        self.tools = mode;
        self
    }

    /// Loads and checks everything. Blocks while files are read.
    ///
    /// Mistakes in prompt files are not errors: a broken prompt is left out, and
    /// [`Library::diagnostics`] reports why.
    ///
    /// # Errors
    ///
    /// [`OpenError::Source`] when a folder cannot be read; [`OpenError::Prompts`] when a prompt or a resource defined
    /// in code is invalid, or a prompt file has its name.
    pub fn build(self) -> Result<Library, OpenError> {
        let names: Vec<_> = self.defined.prompts.iter().map(|prompt| prompt.name.clone()).collect();
        let uris: Vec<_> = self.defined.resources.iter().map(|resource| resource.uri.clone()).collect();
        let mut sources = self.sources;
        sources.push(Box::new(Fixed::new(self.defined)));
        let open = if self.is_quiet { Loader::open_quietly } else { Loader::open };
        let loader = open(sources).map_err(OpenError::Source)?;
        let catalog = loader.handle().current();
        let is_missing = |uri: &String| catalog.find_declared(uri).is_none();
        if names.iter().any(|name| catalog.find(name).is_none()) || uris.iter().any(is_missing) {
            let errors = loader.diagnostics().iter().filter(|diagnostic| diagnostic.is_error()).cloned().collect();
            return Err(OpenError::Prompts(errors));
        }
        let key = self.state_key.unwrap_or_else(StateKey::random);
        let service = Service::new(loader.handle());
        let service = self.limits.iter().fold(service, Service::with_limits);
        let service = self.limits_of.iter().fold(service, Service::with_limits_of);
        let service = self.records_of.iter().fold(service, Service::with_records_of);
        let service = self.present.into_iter().map(Arc::new).fold(service, Service::with_present);
        let service = self.audit.into_iter().fold(service, Service::with_audit);
        let service = self.observer.into_iter().fold(service, Service::with_observer);
        let service = self.usage.iter().fold(service, |service, usage| service.with_usage(usage, &self.channel));
        let server = Server::with_state_key(service, key);
        server.set_request_options(RequestOptions::with_tools(self.tools));
        Ok(Library {
            server,
            loader,
            #[cfg(any(feature = "web", feature = "testing"))]
            reviewed: Arc::default(),
        })
    }
}

impl Library {
    /// Starts building a library.
    ///
    /// ```
    /// use promptshelf_core::PromptDefinition;
    /// use promptshelf_server::Library;
    ///
    /// # fn main() -> Result<(), promptshelf_server::OpenError> {
    /// let library = Library::builder().prompt(PromptDefinition::template("greet", "Say hello.")).build()?;
    /// assert!(library.catalog().find("greet").is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns everything that is wrong with the library: the diagnostics of the last load, and those of its review. The
    /// first call after a load reviews what has changed.
    #[cfg(any(feature = "web", feature = "testing"))]
    #[must_use]
    pub fn findings(&self) -> Arc<[Diagnostic]> {
        let mut reviewed = self.reviewed.lock();
        let report = self.loader.reports().borrow().clone();
        if reviewed.load != report.loads {
            reviewed.findings = reviewed.reviewer.findings(&self.catalog(), &report.diagnostics).into();
            reviewed.load = report.loads;
        }
        Arc::clone(&reviewed.findings)
    }

    /// Returns the first error in the file of a prompt that is not served because of it, for people who may see
    /// diagnostics.
    #[must_use]
    pub fn error_of(&self, prompt: &str) -> Option<Diagnostic> {
        let diagnostics = self.diagnostics();
        let is_of = |place: &Location| prompt_name(&place.source).is_some_and(|name| name == prompt);
        let mut errors = diagnostics.iter().filter(|found| found.is_error());
        // An error in a partial is also one of the prompts that include it.
        errors.find(|found| is_of(&found.location) || found.related.iter().any(|(place, _)| is_of(place))).cloned()
    }

    /// Returns the names of the prompts that are not served because of an error in their files or partials.
    #[must_use]
    pub fn broken(&self) -> BTreeSet<String> {
        let diagnostics = self.diagnostics();
        let errors = diagnostics.iter().filter(|found| found.is_error());
        let places = errors
            .flat_map(|found| std::iter::once(&found.location).chain(found.related.iter().map(|(place, _)| place)));
        let names = places.filter_map(|place| prompt_name(&place.source));
        let served = self.catalog();
        names.filter(|name| served.find(name).is_none()).collect()
    }

    /// Returns the errors and warnings of the last load, by file and position.
    #[must_use]
    pub fn diagnostics(&self) -> Arc<[Diagnostic]> {
        self.loader.diagnostics()
    }

    /// Returns the current catalog. A later load replaces it; the returned one does not change.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.loader.handle().current()
    }

    /// Returns the service, which lists, renders and completes prompts without a protocol.
    #[must_use]
    pub fn service(&self) -> &Service {
        self.server.service()
    }

    /// Returns the MCP server, for instance to shut it down.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Returns the loader, which follows changes of the folders and reports every load.
    #[must_use]
    pub fn loader(&self) -> &Loader {
        &self.loader
    }
}

/// Why a library cannot be built. `Debug` is the message, because a `main` that returns it prints that.
#[derive(Clone)]
#[non_exhaustive]
pub enum OpenError {
    /// A folder cannot be read.
    Source(SourceError),
    /// Prompts or resources defined in code are invalid. Holds every error of the library.
    Prompts(Vec<Diagnostic>),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Source(error) => error.fmt(f),
            OpenError::Prompts(errors) => {
                f.write_str("a prompt or resource defined in code is invalid")?;
                errors.iter().try_for_each(|error| write!(f, "; {error}"))
            }
        }
    }
}

impl fmt::Debug for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // The message is already that of the inner error.
            OpenError::Source(error) => std::error::Error::source(error),
            OpenError::Prompts(_) => None,
        }
    }
}
