//! The whole server of `promptshelf serve`: from [`Settings`] to a running server, and the reload of settings.

mod check;
mod metrics;
mod reload;
mod rollouts;
mod served;
mod supervisor;

use std::{
    io,
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use jiff::SignedDuration;
use promptshelf_core::{AccessRule, Definitions};
use promptshelf_mcp::StateKey;
use promptshelf_service::{AuditFile, Observer, Service, TraceContext, Usage};
use promptshelf_source::{EditableFolder, Fixed as FixedSource, SourceState};
use tokio::{
    net::{TcpListener, TcpSocket, lookup_host},
    task::JoinSet,
    time::{interval, timeout},
};
use tracing::Span;

use self::{
    metrics::{Metrics, MetricsServer},
    reload::Reloads,
    served::{Finished, Following, Served},
};
use crate::{
    api::{Api, FolderApi, Versions},
    channels::{LibraryChecker, StoreHandle, TokenFollower},
    deliveries::Deliveries,
    failure::{Exit, Failure},
    http::{
        self, App,
        auth::{SharedTokens, SignIn, SignInOptions},
        tls::Tls,
    },
    library::{Builder, Library},
    settings::{Address, Live, Settings, UsageSettings},
    usage::UsageLog,
    words::count,
};

pub use self::check::{CheckedSetting, check as check_settings};
pub use self::reload::{Hangups, ReadSettings};

const STDIO_SHUTDOWN: Duration = Duration::from_secs(2);

const REFUSALS_RECORDED: Duration = Duration::from_secs(10);

const MIN_SECRET_BYTES: usize = 16;

/// The least jump of the clock that is logged.
const CLOCK_JUMP: SignedDuration = SignedDuration::from_secs(5);
/// The time in which rollouts and tokens are read before the first request; afterwards they follow.
const FIRST_READ: Duration = Duration::from_secs(5);

/// The time for requests to webhooks that have begun, at the end of the server. An event without a record is sent again.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// How a server is started, in addition to its settings.
#[derive(Default)]
#[must_use = "nothing is served before `Server::start`"]
pub struct Start {
    /// Whether it listens on HTTP; otherwise it serves one client on stdio.
    pub over_http: bool,
    /// Whether people change the files of the folder on the page.
    pub edits: bool,
    /// Whether a library with errors is not served.
    pub strict: bool,
    /// The key that signs the state of guided prompts; random by default.
    pub state_key: Option<StateKey>,
    /// Continues the traces of requests.
    pub traces: Option<Arc<dyn Observer>>,
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Start").field("over_http", &self.over_http).finish_non_exhaustive()
    }
}

/// A server whose library has been read, and which listens if it serves HTTP.
///
/// ```
/// use promptshelf_server::{Server, Start, settings::{Address, ServedLibrary, Settings}};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), promptshelf_server::Failure> {
/// # let folder = std::env::temp_dir().join("promptshelf-doc-server");
/// # std::fs::create_dir_all(&folder).expect("a folder");
/// let mut settings = Settings::default();
/// settings.fixed.library = ServedLibrary::Folder(folder);
/// settings.fixed.address = Address { port: 0, ..Address::default() };
/// let server = Server::start(settings, Start { over_http: true, ..Start::default() }).await?;
/// assert!(server.address().is_some_and(|address| address.ip().is_loopback()));
/// server.serve(std::future::ready(())).await
/// # }
/// ```
#[must_use = "a server serves only while `serve` runs"]
pub struct Server {
    settings: Settings,
    served: Served,
    rules: FixedSource,
    audit: Option<Arc<AuditFile>>,
    usage: Option<UsageLog>,
    http: Option<Listening>,
    reloads: Arc<Reloads>,
    tasks: JoinSet<()>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("settings", &self.settings).finish_non_exhaustive()
    }
}

struct Listening {
    /// `None` once it accepts connections.
    listener: Option<TcpListener>,
    bound: SocketAddr,
    app: App,
    tls: Option<Tls>,
    shared_tokens: Option<SharedTokens>,
    deliveries: Option<Deliveries>,
    _metrics: Option<MetricsServer>,
    /// Whether all connections are refused because the settings cannot be read.
    is_suspended: bool,
}

impl Server {
    /// Reads the library, and listens if HTTP is asked for.
    ///
    /// # Errors
    ///
    /// Settings that do not fit each other, a library that cannot be read, and an address that cannot be bound.
    pub async fn start(mut settings: Settings, start: Start) -> Result<Server, Failure> {
        check_editing(&settings, &start)?;
        let deliveries = if start.over_http { deliveries(&settings)? } else { None };
        if !start.over_http {
            settings.live.limits = None;
        }
        let audit = open_audit(&settings)?;
        // Clients can start any number of servers on stdio, but there is only one port.
        let metrics = match settings.fixed.metrics.as_ref().filter(|_| start.over_http) {
            Some(address) => Some(MetricsServer::start(address).await?),
            None => None,
        };
        let rules = FixedSource::new(rules_source(&settings.live.access));
        let (counters, usage) = count_usage(&settings, start.over_http).unzip();
        let observer =
            RequestObserver::if_needed(metrics.as_ref().map(|it| Arc::clone(&it.metrics)), start.traces.clone());
        // The source comes first: the server's name and instructions are those of the library.
        let (own_rules, state_key, limits, own_audit) =
            (rules.clone(), start.state_key.clone(), settings.live.limits, audit.clone());
        let finished: Finished = Arc::new(move |builder: Builder| {
            let builder = builder.source(own_rules.clone());
            let builder = state_key.iter().cloned().fold(builder, Builder::state_key);
            let builder = observer.iter().cloned().fold(builder, Builder::observer);
            let builder = counters.iter().cloned().fold(builder, Builder::usage);
            let builder = limits.iter().copied().fold(builder, Builder::limits);
            own_audit.iter().cloned().fold(builder, |builder, audit| builder.audit(audit))
        });
        let served = Served::open(&settings, &finished).await?;
        if start.strict {
            refuse_errors(&served, &settings)?;
        }
        let mut server = Server {
            settings,
            served,
            rules,
            audit,
            usage,
            http: None,
            reloads: Arc::default(),
            tasks: JoinSet::new(),
        };
        server.apply_to_requests();
        server.begin_tasks().await;
        if start.over_http {
            server.listen(&start, deliveries, metrics).await?;
        }
        Ok(server)
    }

    async fn begin_tasks(&mut self) {
        self.served.log_changes(&mut self.tasks);
        let service = self.library().service().clone();
        self.tasks.spawn(async move {
            let mut interval = interval(REFUSALS_RECORDED);
            let mut clocks = Clocks::now();
            loop {
                interval.tick().await;
                service.record_refusals(false);
                let now = Clocks::now();
                if let Some(jump) = now.jump_since(clocks) {
                    tracing::warn!(
                        "the clock of this machine jumped {}: ends of tokens, times of records and periods of usage follow \
                         it",
                        jumped(jump)
                    );
                }
                clocks = now;
            }
        });
        if let Some(log) = self.usage.clone() {
            log.begin().await;
            self.tasks.spawn(async move { log.run().await });
        }
    }

    async fn listen(
        &mut self,
        start: &Start,
        deliveries: Option<Deliveries>,
        metrics: Option<MetricsServer>,
    ) -> Result<(), Failure> {
        let settings = &self.settings;
        let connections = http::raise_open_files();
        if connections < settings.live.http.limits.connections {
            tracing::info!(
                "at most {connections} connections: the system limits the open files of this process (ulimit -n)"
            );
        }
        let (listener, bound) = bind(settings).await?;
        let shared_tokens = self.follow_tokens().await;
        let settings = &self.settings;
        let mut options = live_options(settings, bound, api(settings, &self.rules, bound)?);
        options.sign_in = sign_in_options(settings, shared_tokens.as_ref()).map(SignIn::new);
        options.sign_in.iter().for_each(SignIn::follow_keys);
        options.versions = store(settings).map(|store| Versions::new(store, settings.live.granted_roots.clone()));
        options.folder = folder_api(settings, start, bound)?;
        options.usage.clone_from(&self.usage);
        if let Some(sources) = self.served.open_sources() {
            options.webhooks = sources.webhooks.clone();
            // Problems of sources can name folders and hosts: they are for operators.
            if settings.live.sign_in.is_some() || bound.ip().is_loopback() {
                options.sources = Some(sources.set.clone());
            }
        }
        let app = self.served.app(&options);
        let tls = settings.live.tls.as_ref().map(Tls::open).transpose();
        let tls = tls.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        if let Some(mut rollouts) = self.served.rollouts(settings) {
            // Callers keep their versions over a restart.
            let _ = timeout(FIRST_READ, rollouts.exchange()).await;
            if let Some(metrics) = &metrics {
                metrics.metrics.observe_rollouts(&rollouts.monitor());
            }
            self.tasks.spawn(rollouts.run());
        }
        if let Some(metrics) = &metrics {
            self.observe(&metrics.metrics, &app, deliveries.as_ref());
            tls.iter().for_each(|tls| metrics.metrics.observe_tls(tls));
            metrics.set_ready(&app);
        }
        let listener = Some(listener);
        let is_suspended = false;
        self.http =
            Some(Listening { listener, bound, app, tls, shared_tokens, deliveries, _metrics: metrics, is_suspended });
        Ok(())
    }

    async fn follow_tokens(&mut self) -> Option<SharedTokens> {
        let store = store(&self.settings)?;
        let tokens = self.settings.fixed.has_store_tokens.then(SharedTokens::default)?;
        let mut follower = TokenFollower::new(store, tokens.clone());
        // A proxy leaves out a server that refuses callers because it has just started.
        let _ = timeout(FIRST_READ, follower.read()).await;
        self.tasks.spawn(follower.run());
        Some(tokens)
    }

    fn observe(&self, metrics: &Metrics, app: &App, deliveries: Option<&Deliveries>) {
        metrics.observe_reloads(&self.reloads);
        metrics.observe(self.library(), app, self.audit.as_ref(), self.served.monitors());
        if let Some(sources) = self.served.open_sources() {
            metrics.observe_sources(&sources.set);
        }
        self.usage.iter().for_each(|log| metrics.observe_usage(log));
        deliveries.iter().for_each(|deliveries| metrics.observe_deliveries(deliveries));
    }

    /// Returns the library at `/mcp` and on stdio.
    #[must_use]
    pub fn library(&self) -> &Library {
        &self.served.library
    }

    /// Returns the names of the other channels that are served.
    #[must_use]
    pub fn other_channels(&self) -> Vec<String> {
        self.served.other_channels()
    }

    /// Returns the settings that are in effect.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the address that it listens on. Port 0 has become the port that the system chose.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(|http| http.bound)
    }

    /// Serves until `shutdown` completes, or on stdio until the client ends.
    ///
    /// # Errors
    ///
    /// On stdio, if the client cannot be served.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> Result<(), Failure> {
        self.serve_and_reload(shutdown, None::<(fn(Option<&Path>) -> _, _)>).await
    }

    /// Serves like [`serve`](Server::serve). Over HTTP, settings are read again when their files change and at SIGHUP.
    ///
    /// # Errors
    ///
    /// On stdio, if the client cannot be served.
    pub async fn serve_and_reload<R: ReadSettings>(
        mut self,
        shutdown: impl Future<Output = ()>,
        reload: Option<(R, Hangups)>,
    ) -> Result<(), Failure> {
        let service = self.library().service().clone();
        let (audit, usage) = (self.audit.clone(), self.usage.clone());
        let ended = if self.http.is_some() {
            self.serve_http(shutdown, reload).await;
            Ok(())
        } else {
            // The transport itself follows a folder, after its first answer.
            let _following: Option<Following> = (!self.served.is_folder()).then(|| self.served.follow());
            on_stdio(self.library().clone(), shutdown).await
        };
        if let Some(log) = usage {
            log.finish().await;
        }
        flush(&service, audit).await;
        ended
    }

    async fn serve_http<R: ReadSettings>(mut self, shutdown: impl Future<Output = ()>, reload: Option<(R, Hangups)>) {
        let Some(http) = &mut self.http else { return };
        let Some(listener) = http.listener.take() else { return };
        let (app, tls, deliveries) = (http.app.clone(), http.tls.clone(), http.deliveries.clone());
        let _following = self.served.follow();
        let delivering = deliveries.clone().map(|deliveries| {
            let replicas = self.served.monitors();
            tokio::spawn(async move { deliveries.run(&replicas).await })
        });
        supervisor::ready();
        let shutdown = async {
            shutdown.await;
            supervisor::stopping();
        };
        let serving = async {
            match &tls {
                Some(tls) => app.serve_tls(listener, tls, shutdown).await,
                None => app.serve(listener, shutdown).await,
            }
        };
        match reload {
            Some((read, hangups)) => tokio::select! {
                () = serving => {}
                () = self.reload_forever(&read, hangups) => {}
            },
            None => serving.await,
        }
        if let (Some(deliveries), Some(delivering)) = (deliveries, delivering) {
            deliveries.stop();
            let _ = timeout(LAST_REQUESTS, delivering).await;
        }
    }
}

/// The clock of the machine, and one that never jumps.
#[derive(Clone, Copy)]
struct Clocks(SystemTime, Instant);

/// Tells the direction and the length of a jump, in the largest unit of which it has two.
fn jumped(jump: SignedDuration) -> String {
    let seconds = jump.unsigned_abs().as_secs();
    let units = [(86_400, "days"), (3_600, "hours"), (60, "minutes")];
    let (size, unit) = units.into_iter().find(|(size, _)| seconds >= 2 * size).unwrap_or((1, "seconds"));
    format!("{} by {} {unit}", if jump.is_negative() { "back" } else { "forward" }, seconds / size)
}

impl Clocks {
    fn now() -> Clocks {
        Clocks(SystemTime::now(), Instant::now())
    }

    /// Returns the difference of both since an earlier time, unless it is one that is corrected all the time.
    fn jump_since(self, before: Clocks) -> Option<SignedDuration> {
        let passed = SignedDuration::try_from(self.1.saturating_duration_since(before.1)).ok()?;
        let shown = SignedDuration::system_until(before.0, self.0).ok()?;
        let jump = shown.checked_sub(passed)?;
        (jump.abs() >= CLOCK_JUMP).then(|| SignedDuration::from_secs(jump.as_secs()))
    }
}

fn live_options(settings: &Settings, bound: SocketAddr, api: Option<Api>) -> http::Options {
    let mut options = settings.live.http.clone();
    let unpublished_bytes = settings.live.unpublished_bytes.unwrap_or(Api::UNPUBLISHED_BYTES);
    options.api = api.map(|api| api.unpublished_bytes(unpublished_bytes).rollout(settings.fixed.rollout));
    options.mcp.allowed_hosts = hosts(&settings.live, bound);
    options.source_access = settings.fixed.library.source_access().map(Arc::new);
    options.reserved_names = settings.live.access.iter().flat_map(|rule| rule.access.users.clone()).collect();
    options
}

fn sign_in_options(settings: &Settings, shared_tokens: Option<&SharedTokens>) -> Option<SignInOptions> {
    let mut options = settings.live.sign_in.clone()?;
    options.shared_tokens = shared_tokens.cloned();
    Some(options)
}

fn store(settings: &Settings) -> Option<StoreHandle> {
    Some(StoreHandle::new(settings.fixed.library.channels()?.default.store.clone()))
}

/// A source without prompts, whose access rules bind those of all other sources.
fn rules_source(rules: &[AccessRule]) -> Definitions {
    Definitions { access: rules.to_vec(), ..Definitions::default() }
}

fn check_editing(settings: &Settings, start: &Start) -> Result<(), Failure> {
    if !start.edits {
        return Ok(());
    }
    if settings.fixed.library.folder().is_none() {
        let message = format!("--edit is for folders, and this library is {}", settings.fixed.library);
        return Err(Failure::new(Exit::Usage, message).help(
            "leave --edit out: the page edits channels of a store through proposals, where the API is on (--api, or [auth])",
        ));
    }
    if settings.live.sign_in.is_none() && !settings.live.http.proxies.trusted.is_empty() {
        let message = "--edit without sign-in is for this machine only, and a proxy is configured";
        return Err(Failure::new(Exit::Address, message)
            .help("configure [auth] (see --help), or leave --edit or --trust-proxy out"));
    }
    Ok(())
}

/// Returns the API of the folder, if it is edited.
fn folder_api(settings: &Settings, start: &Start, bound: SocketAddr) -> Result<Option<FolderApi>, Failure> {
    let Some(folder) = settings.fixed.library.folder().filter(|_| start.edits) else { return Ok(None) };
    if settings.live.sign_in.is_none() && !bound.ip().is_loopback() {
        let address = &settings.fixed.address;
        let message = format!("other machines can reach {address}, and --edit is on without sign-in");
        return Err(Failure::new(Exit::Address, message).help(
            "configure [auth] (see --help), or listen on 127.0.0.1: everyone who reaches the port could change the files",
        ));
    }
    let files = EditableFolder::open(folder).map_err(|error| {
        Failure::new(Exit::Library, format!("the folder {} cannot be opened: {error}", folder.display()))
    })?;
    Ok(Some(FolderApi::new(files, settings.live.granted_roots.iter().cloned())))
}

/// Refuses the API of a store without sign-in at an address that other machines reach.
fn must_be_private(settings: &Settings, bound: SocketAddr) -> Result<(), Failure> {
    let has_api = settings.fixed.has_api && store(settings).is_some();
    if !has_api || settings.live.sign_in.is_some() || bound.ip().is_loopback() {
        return Ok(());
    }
    let message = format!("other machines can reach {bound}, and the API is on without sign-in");
    Err(Failure::new(Exit::Address, message)
        .help("configure [auth], or turn the API off: it would let everyone publish"))
}

fn api(settings: &Settings, rules: &FixedSource, bound: SocketAddr) -> Result<Option<Api>, Failure> {
    let Some(store) = store(settings).filter(|_| settings.fixed.has_api) else { return Ok(None) };
    must_be_private(settings, bound)?;
    tokio::spawn(store.clone().remove_uploads());
    let checker = LibraryChecker::new().grant_roots(settings.live.granted_roots.clone()).rules(rules.clone());
    Ok(Some(Api::new(store, Arc::new(checker)).evaluations(settings.fixed.evaluations.iter().cloned())))
}

/// Counts into the store; in memory for a folder, if the counts can be read: over HTTP.
fn count_usage(settings: &Settings, over_http: bool) -> Option<(Usage, UsageLog)> {
    let UsageSettings { retention, min_callers } = settings.fixed.usage.clone()?;
    let store = store(settings);
    if store.is_none() && !over_http {
        return None;
    }
    let usage = Usage::new();
    let log = UsageLog::new(&usage, store, retention, min_callers);
    Some((usage, log))
}

fn open_audit(settings: &Settings) -> Result<Option<Arc<AuditFile>>, Failure> {
    let Some(options) = &settings.live.audit else { return Ok(None) };
    let audit = AuditFile::open(options.clone()).map_err(|error| {
        Failure::new(Exit::Failed, format!("cannot write the audit file {}: {error}", options.path.display()))
    })?;
    Ok(Some(Arc::new(audit)))
}

fn needs_store(settings: &Settings) -> Failure {
    let message = format!("[[webhook]] needs a store, and {} is not a channel of one", settings.fixed.library);
    Failure::new(Exit::Settings, message).help(
        "serve a channel, such as sqlite:team.db or postgres://…, add one as a [[source]] of the kind `store`, or remove \
         [[webhook]] from server.toml",
    )
}

/// Opens the deliveries to webhooks, if there are any.
fn deliveries(settings: &Settings) -> Result<Option<Deliveries>, Failure> {
    if settings.fixed.webhooks.is_empty() {
        return Ok(None);
    }
    let store = store(settings).ok_or_else(|| needs_store(settings))?;
    let mut targets = Vec::new();
    for webhook in &settings.fixed.webhooks {
        let target = webhook.target.clone();
        targets.push(match &webhook.secret {
            Some(file) => target.secret(webhook_secret(webhook.target.label(), file)?),
            None => target,
        });
    }
    let deliveries = Deliveries::new(store, targets).map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    Ok(Some(deliveries))
}

fn webhook_secret(label: &str, file: &Path) -> Result<String, Failure> {
    let failed = |reason: String| {
        let message = format!("`secret` of the webhook {label}: the file {} {reason}", file.display());
        Failure::new(Exit::Settings, message)
    };
    let text = std::fs::read_to_string(file).map_err(|error| failed(format!("cannot be read: {error}")))?;
    let secret = text.lines().next().unwrap_or_default().trim();
    match secret.len() {
        MIN_SECRET_BYTES.. => Ok(secret.to_owned()),
        length => Err(failed(format!("has {length} bytes in its first line: expected at least {MIN_SECRET_BYTES}"))
            .help("`openssl rand -hex 32` prints a secret")),
    }
}

fn refuse_errors(served: &Served, settings: &Settings) -> Result<(), Failure> {
    for status in served.open_sources().iter().flat_map(|sources| sources.set.statuses()) {
        if status.state != SourceState::Current {
            let reason = status.problem.unwrap_or_else(|| "it has not been read in time".to_owned());
            let message = format!("the source {} is {}, and --strict needs all: {reason}", status.name, status.state);
            return Err(Failure::new(Exit::Strict, message));
        }
    }
    for (channel, library) in served.libraries() {
        let errors = library.diagnostics().iter().filter(|diagnostic| diagnostic.is_error()).count();
        if errors == 0 {
            continue;
        }
        let place = &settings.fixed.library;
        let name = channel.map_or_else(|| place.to_string(), |channel| format!("channel {channel}"));
        let message = format!("{name} has {}, and --strict allows none", count(errors, "error"));
        return Err(Failure::new(Exit::Strict, message).help("the log shows each with its line"));
    }
    Ok(())
}

/// Counts every request and continues its trace.
#[derive(Debug)]
struct RequestObserver {
    metrics: Option<Arc<Metrics>>,
    traces: Option<Arc<dyn Observer>>,
}

impl RequestObserver {
    fn if_needed(metrics: Option<Arc<Metrics>>, traces: Option<Arc<dyn Observer>>) -> Option<Arc<dyn Observer>> {
        let is_needed = metrics.is_some() || traces.is_some();
        is_needed.then(|| Arc::new(RequestObserver { metrics, traces }) as Arc<dyn Observer>)
    }
}

impl Observer for RequestObserver {
    fn answered(&self, method: &'static str, outcome: &'static str, took: Duration) {
        if let Some(metrics) = &self.metrics {
            metrics.answered(method, outcome, took);
        }
    }

    fn rendered(&self, outcome: &'static str, took: Duration) {
        if let Some(metrics) = &self.metrics {
            metrics.rendered(outcome, took);
        }
    }

    fn set_parent(&self, span: &Span, trace: &TraceContext<'_>) {
        if let Some(traces) = &self.traces {
            traces.set_parent(span, trace);
        }
    }
}

async fn on_stdio(library: Library, shutdown: impl Future<Output = ()>) -> Result<(), Failure> {
    let server = library.server().clone();
    let serving = library.serve_stdio();
    tokio::pin!(serving);
    tokio::select! {
        ended = &mut serving => return Ok(ended?),
        () = shutdown => server.shutdown(),
    }
    // The program ends even if an answer is not complete by then.
    let _ = timeout(STDIO_SHUTDOWN, serving).await;
    Ok(())
}

/// Waits until all records are written to disk.
async fn flush(service: &Service, audit: Option<Arc<AuditFile>>) {
    service.record_refusals(true);
    if let Some(audit) = audit {
        let _ = tokio::task::spawn_blocking(move || audit.flush()).await;
    }
}

/// Connections that the system keeps until they are accepted; it has a limit of its own, often 4,096 too. A crowd fills
/// the usual 1,024 while the processor is busy, and a dropped connection is tried again by its client after a second.
const BACKLOG: u32 = 4_096;

/// Listens on the address and returns the bound one: port 0 becomes the port that the system chose.
async fn bind(settings: &Settings) -> Result<(TcpListener, SocketAddr), Failure> {
    let addresses = addresses(settings).await?;
    let bound = async {
        let listener = listen(&addresses)?;
        let bound = listener.local_addr()?;
        Ok((listener, bound))
    };
    bound.await.map_err(|error| unusable(&settings.fixed.address, &error))
}

/// Resolves the address to listen on, which other machines may reach with sign-in only.
async fn addresses(settings: &Settings) -> Result<Vec<SocketAddr>, Failure> {
    let address = &settings.fixed.address;
    let addresses: Vec<SocketAddr> = match lookup_host((address.host.as_str(), address.port)).await {
        Ok(found) => found.collect(),
        Err(error) => return Err(cannot(address, &error.to_string())),
    };
    if addresses.is_empty() {
        return Err(cannot(address, "the host name has no address"));
    }
    if !settings.fixed.allow_remote
        && settings.live.sign_in.is_none()
        && addresses.iter().any(|address| !address.ip().is_loopback())
    {
        let message = format!("other machines can reach {address}, and sign-in is not configured");
        return Err(Failure::new(Exit::Address, message).help(format!(
            "configure [auth] (see --help), add --allow-remote if anyone who reaches the port may read every prompt, or listen on 127.0.0.1:{}",
            address.port
        )));
    }
    Ok(addresses)
}

fn unusable(address: &Address, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AddrInUse => cannot(address, "the address is in use by another program")
            .help("end that program, or use a free port with --http 127.0.0.1:0"),
        io::ErrorKind::PermissionDenied => {
            cannot(address, "permission denied").help("ports below 1024 are reserved on many systems: use a larger one")
        }
        io::ErrorKind::AddrNotAvailable => cannot(address, "the address does not belong to this machine"),
        _ => cannot(address, &error.to_string()),
    }
}

fn listen(addresses: &[SocketAddr]) -> io::Result<TcpListener> {
    socket(addresses)?.listen(BACKLOG)
}

/// Binds the first of the addresses that can be bound.
fn socket(addresses: &[SocketAddr]) -> io::Result<TcpSocket> {
    let mut last = io::Error::from(io::ErrorKind::InvalidInput);
    for address in addresses {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // On Windows, the option would allow other programs to take over the port.
        #[cfg(not(windows))]
        socket.set_reuseaddr(true)?;
        match socket.bind(*address) {
            Ok(()) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The accepted values of the `Host` header: names of the loopback interface, the bound address, and those that the
/// operator configures.
fn hosts(live: &Live, bound: SocketAddr) -> Vec<String> {
    let own = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
    let address = match bound.ip() {
        ip if ip.is_unspecified() || ip.is_loopback() => None,
        IpAddr::V4(ip) => Some(ip.to_string()),
        IpAddr::V6(ip) => Some(format!("[{ip}]")),
    };
    own.into_iter().chain(address).chain(live.hosts()).collect()
}

fn cannot(address: &Address, reason: &str) -> Failure {
    Failure::new(Exit::Address, format!("cannot listen on {address}: {reason}"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{net::TcpStream, time::Duration};

    use super::*;

    const ROOM: Duration = Duration::from_secs(30);

    /// More than the usual backlog. Connections that are not accepted have no descriptor in this process.
    const CROWD: usize = 1_100;

    // req: S-58
    #[tokio::test]
    async fn connections_wait_until_the_server_accepts() {
        crate::http::raise_open_files();
        let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").expect("a setting of the system");
        let crowd = CROWD.min(allowed.trim().parse().expect("a number"));
        let listener = listen(&[SocketAddr::from(([127, 0, 0, 1], 0))]).expect("a free port");
        let address = listener.local_addr().expect("it listens");
        // Without room, the system drops the connection, and the client tries in vain again.
        let connect = |_| TcpStream::connect_timeout(&address, ROOM);
        let clients: Vec<TcpStream> = (0..crowd).map(connect).collect::<Result<_, _>>().expect("there is room");
        assert_eq!(clients.len(), crowd);
    }

    // req: S-432
    #[test]
    fn jumps_of_the_clock_in_both_directions_are_noticed_and_its_corrections_are_not() {
        let before = Clocks::now();
        let after = |shown: Duration, passed: Duration| Clocks(before.0 + shown, before.1 + passed);
        let seconds = Duration::from_secs;
        assert_eq!(after(seconds(10), seconds(10)).jump_since(before), None);
        assert_eq!(after(seconds(12), seconds(10)).jump_since(before), None);
        let hours = |hours: i64| Some(SignedDuration::from_hours(hours));
        assert_eq!(after(seconds(3 * 3_600 + 10), seconds(10)).jump_since(before), hours(3));
        let back = Clocks(before.0 - seconds(3 * 3_600), before.1 + seconds(10));
        assert_eq!(back.jump_since(before).map(|jump| jump.as_hours()), Some(-3));
        assert_eq!(after(seconds(20 * 365 * 86_400), seconds(0)).jump_since(before), hours(20 * 365 * 24));
        for (jump, told) in
            [(-6 * 3_600, "back by 6 hours"), (7_300 * 86_400, "forward by 7300 days"), (7, "forward by 7 seconds")]
        {
            assert_eq!(jumped(SignedDuration::from_secs(jump)), told);
        }
    }
}
