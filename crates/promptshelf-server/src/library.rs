//! A library of prompts, ready to be asked and to be served.

use std::{
    convert::Infallible,
    fmt, io,
    path::PathBuf,
    sync::Arc,
    task::{Context, Poll},
};

use ::http::Request;
use promptshelf_core::{
    About, BoxFuture, Catalog, Definitions, Diagnostic, Policy, PromptDefinition, ResourceDefinition,
};
use promptshelf_mcp::{HttpOptions, HttpService, Server, StateKey};
use promptshelf_service::{Limits, Observer, Recorder, Service};
use promptshelf_source::{Directory, Fixed, Loader, ReloadTask, Source, SourceError};
use tokio::{net::TcpListener, sync::oneshot};
use tower_service::Service as TowerService;

use crate::{http, stdio};

/// Folders of prompt files and prompts defined in code, checked and ready.
#[derive(Clone, Debug)]
pub struct Library {
    loader: Loader,
    server: Server,
}

/// Says what a [`Library`] is made of.
#[derive(Debug, Default)]
#[must_use = "nothing is read before `build`"]
pub struct Builder {
    folders: Vec<PathBuf>,
    defined: Definitions,
    state_key: Option<StateKey>,
    limits: Option<Limits>,
    audit: Option<Arc<dyn Recorder>>,
    observer: Option<Arc<dyn Observer>>,
}

impl Builder {
    /// Adds a folder of prompt files. The first folder's `promptshelf.toml`
    /// speaks for the server.
    pub fn folder(mut self, path: impl Into<PathBuf>) -> Builder {
        self.folders.push(path.into());
        self
    }

    /// Adds a prompt that is defined in code.
    pub fn prompt(mut self, prompt: PromptDefinition) -> Builder {
        self.defined.prompts.push(prompt);
        self
    }

    /// Adds a resource that is defined in code.
    pub fn resource(mut self, resource: ResourceDefinition) -> Builder {
        self.defined.resources.push(resource);
        self
    }

    /// What the server says of itself, in a library without a folder.
    pub fn about(mut self, about: About) -> Builder {
        self.defined.about = about;
        self
    }

    /// Bounds and quirks, in a library without a folder.
    pub fn policy(mut self, policy: Policy) -> Builder {
        self.defined.policy = policy;
        self
    }

    /// The key that guided prompts sign what has been answered with. Servers
    /// that share one can take each other's next step; without, only this one
    /// can go on with what it began.
    pub fn state_key(mut self, key: StateKey) -> Builder {
        self.state_key = Some(key);
        self
    }

    /// Limits how much callers over a network may ask.
    pub fn limits(mut self, limits: Limits) -> Builder {
        self.limits = Some(limits);
        self
    }

    /// Records every question.
    pub fn audit(mut self, recorder: Arc<dyn Recorder>) -> Builder {
        self.audit = Some(recorder);
        self
    }

    /// Tells somebody of every request, for figures and traces.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Builder {
        self.observer = Some(observer);
        self
    }

    /// Reads and checks everything. Blocks while files are read.
    ///
    /// Mistakes in prompt files are no errors here: what is broken is left out,
    /// and [`Library::diagnostics`] says why.
    ///
    /// # Errors
    ///
    /// When a folder cannot be read, or a prompt that is defined in code cannot
    /// be served.
    pub fn build(self) -> Result<Library, OpenError> {
        let names: Vec<_> = self.defined.prompts.iter().map(|prompt| prompt.name.clone()).collect();
        let folders = self.folders.into_iter().map(|path| Box::new(Directory::new(path)) as Box<dyn Source>);
        let sources = folders.chain([Box::new(Fixed::new(self.defined)) as Box<dyn Source>]).collect();
        let loader = Loader::open(sources).map_err(OpenError::Source)?;
        let catalog = loader.handle().current();
        if names.iter().any(|name| catalog.find(name).is_none()) {
            let errors = loader.diagnostics().iter().filter(|diagnostic| diagnostic.is_error()).cloned().collect();
            return Err(OpenError::Prompts(errors));
        }
        let key = self.state_key.unwrap_or_else(StateKey::random);
        let service = Service::new(loader.handle());
        let service = self.limits.iter().fold(service, Service::with_limits);
        let service = self.audit.into_iter().fold(service, Service::with_audit);
        let service = self.observer.into_iter().fold(service, Service::with_observer);
        Ok(Library { server: Server::with_state_key(service, key), loader })
    }
}

impl Library {
    /// Begins to say what a library is made of.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Everything that is wrong with the prompts, by file and place.
    #[must_use]
    pub fn diagnostics(&self) -> Arc<[Diagnostic]> {
        self.loader.diagnostics()
    }

    /// The catalog as it stands now.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.loader.handle().current()
    }

    /// To list, fill in and complete prompts without any protocol in between.
    #[must_use]
    pub fn service(&self) -> &Service {
        self.server.service()
    }

    /// The MCP server, for instance to shut it down.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// What keeps the catalog up to date, for instance to hear of every load.
    #[must_use]
    pub fn loader(&self) -> &Loader {
        &self.loader
    }

    /// Serves the client at the other end of stdin and stdout, until it goes.
    ///
    /// From here on stdout is the protocol's alone: on Unix, whatever else this
    /// program prints there comes out on stderr. Needs a Tokio runtime with I/O enabled.
    ///
    /// # Errors
    ///
    /// When stdin cannot be read or stdout cannot be written.
    pub fn serve_stdio(self) -> BoxFuture<'static, io::Result<()>> {
        // An `async fn` would be compiled in the crate that calls it, as that one is to be optimised.
        Box::pin(async move {
            // Nobody has to hear of a change who has asked nothing, and the first answer should not
            // wait while folders are watched and looked at.
            let (answered, has_answered) = oneshot::channel();
            let _following = self.loader.spawn_after(async { drop(has_answered.await) });
            stdio::serve(&self.server, answered).await
        })
    }

    /// Serves `/mcp` on a listener, and at `/` the page for people, until the future is dropped.
    ///
    /// Only requests that name this machine as their host are answered, as a
    /// local server should; [`http::serve`] takes options, and a signal to end.
    pub fn serve_http(self, listener: TcpListener) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let _following = self.loader.spawn();
            http::serve(listener, &self, &http::Options::default(), std::future::pending()).await;
        })
    }

    /// The MCP endpoint as a tower service, to be mounted in an application.
    /// Needs a Tokio runtime to follow changes of folders, and follows them
    /// until the last clone of the service is dropped.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    #[must_use]
    pub fn into_service(self) -> McpService {
        self.into_service_with(HttpOptions::default())
    }

    /// Like [`into_service`](Library::into_service), for an application that
    /// is reached under names of its own.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    #[must_use]
    pub fn into_service_with(self, options: HttpOptions) -> McpService {
        McpService { http: self.server.http(options), following: Arc::new(self.loader.spawn()) }
    }
}

/// The MCP endpoint of a [`Library`] as a tower service.
#[derive(Clone, Debug)]
pub struct McpService {
    http: HttpService,
    #[expect(dead_code, reason = "held, so that changes are followed")]
    following: Arc<ReloadTask>,
}

impl<B> TowerService<Request<B>> for McpService
where
    HttpService: TowerService<Request<B>, Error = Infallible>,
{
    type Response = <HttpService as TowerService<Request<B>>>::Response;
    type Error = Infallible;
    type Future = <HttpService as TowerService<Request<B>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.http.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.http.call(request)
    }
}

/// Why a library cannot be opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// A folder cannot be read at all.
    Source(SourceError),
    /// Prompts that are defined in code cannot be served; these are all errors there are.
    Prompts(Vec<Diagnostic>),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Source(error) => error.fmt(f),
            OpenError::Prompts(errors) => {
                f.write_str("a prompt that is defined in code cannot be served")?;
                errors.iter().try_for_each(|error| write!(f, "; {error}"))
            }
        }
    }
}

impl std::error::Error for OpenError {}
