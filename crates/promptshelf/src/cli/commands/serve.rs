//! `promptshelf serve`: serves a library to MCP clients, on stdio or over HTTP.

mod accident;
mod announce;
mod editing;
mod followed;
mod git;
mod listen;
mod reload;
mod served;
mod signals;
mod supervisor;
mod webhooks;

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use promptshelf_server::{
    Builder, Library,
    api::{Api, Versions},
    channels::{LibraryChecker, StoreHandle, TokenFollower},
    http::{
        self,
        auth::{SharedTokens, SignIn, SignInOptions},
        tls::Tls,
    },
    usage::UsageLog,
};
use promptshelf_service::{AuditFile, AuditFileOptions, Service, Usage};
use promptshelf_source::{Fixed, SourceState};

use self::{
    announce::Announcement,
    reload::{Hangups, Reloader, known_files, rules_source},
    served::Served,
    signals::Signals,
};
use crate::{
    args::{LogFormat, ServeArguments},
    command_line,
    exit::{Exit, Failure},
    observe::{MetricsServer, RequestObserver},
    output::{count, count_all},
    settings::{self, ServedLibrary, ServerFileLocation, Settings, Traces, UsageSettings},
    sources::{OpenSources, SharedSettings, StateFolder},
};

const STDIO_SHUTDOWN: Duration = Duration::from_secs(2);

/// The time that the start waits for sources. Others appear when they have been read.
const START_WAIT: Duration = Duration::from_secs(2);

const REFUSALS_RECORDED: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessContext {
    pub(crate) stdin_is_terminal: bool,
    pub(crate) log_format: LogFormat,
    pub(crate) has_traces: bool,
}

pub(crate) fn traces(
    arguments: &ServeArguments,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<Traces>, Failure> {
    let location = ServerFileLocation::find(arguments.config.as_deref(), &environment);
    settings::read_traces(&location, arguments, &environment)
}

pub(crate) async fn run(
    arguments: &ServeArguments,
    context: ProcessContext,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<(), Failure> {
    let ProcessContext { stdin_is_terminal, log_format, has_traces } = context;
    let key = settings::state_key(&environment)?;
    let location = ServerFileLocation::find(arguments.config.as_deref(), &environment);
    let mut settings = Settings::read(&location, arguments, &environment)?;
    editing::check(arguments, &settings)?;
    let over_http = !arguments.stdio && (settings.http.is_requested || stdin_is_terminal || arguments.edit);
    for variable in crate::environment::unknown() {
        tracing::warn!("{variable}");
    }
    let home = environment("HOME").or_else(|| environment("USERPROFILE")).map(PathBuf::from);
    accident::refuse(arguments, &settings, over_http, stdin_is_terminal, home)?;
    let deliveries = if over_http { webhooks::open(&settings)? } else { None };
    let known = known_files(&settings, &location)?;
    // On stdio settings are not reloaded: a client starts another server.
    if over_http {
        // Only settings that are read after the files were hashed are known to be as new as the hashes.
        settings = Settings::read(&location, arguments, &environment)?;
    }
    settings.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    if let Some(variable) = settings::ignored_variable(arguments, &environment) {
        // Its value is not logged: it can contain a password.
        tracing::warn!("{variable} in the environment is ignored, because LIBRARY is given: {}", settings.library);
    }
    if !over_http {
        // The local user always has the channel itself.
        settings.rollouts.clear();
    } else if !settings.rollouts.is_empty() && settings.http.sign_in.is_none() {
        tracing::warn!("[[rollout]] has no effect without [auth]: only signed-in callers are divided");
    }
    let audit = open_audit(settings.audit.take())?;
    // Clients can start any number of servers on stdio, but there is only one port.
    let metrics = match settings.metrics.as_ref().filter(|_| over_http) {
        Some(address) => Some(MetricsServer::start(address).await?),
        None => None,
    };
    let counters = metrics.as_ref().map(|metrics| Arc::clone(&metrics.metrics));
    let rules = Fixed::new(rules_source(&settings.access));
    let observer = RequestObserver::if_configured(counters, has_traces);
    let recorder = audit.as_ref().map(|(file, _)| Arc::clone(file));
    let limits = settings.http.effective_limits().filter(|_| over_http);
    let counting = Counting::new(&settings, over_http);
    // The source comes first: the server's name and instructions are those of the library.
    let finished = |builder: Builder| {
        let builder = builder.source(rules.clone()).tools(settings.tools);
        let builder = key.iter().cloned().fold(builder, Builder::state_key);
        let builder = observer.iter().cloned().fold(builder, Builder::observer);
        let builder = counting.iter().fold(builder, |builder, counting| builder.usage(counting.usage.clone()));
        let builder = limits.iter().cloned().fold(builder, Builder::limits);
        recorder.iter().cloned().fold(builder, |builder, audit| builder.audit(audit))
    };
    let mut served = open(&settings, finished).await?;
    if arguments.strict {
        refuse_errors(&served, &settings.library)?;
    }
    let library = served.library.clone();
    let channels = served.other_channels();
    let place = settings.library.to_string();
    let announcement = Announcement { library: &library, place, channels, log_format };
    let signals = Signals::listen()?;
    served.log_changes();
    let service = library.service().clone();
    tokio::spawn(record_refusals(service.clone()));
    let counted = counting.map(|counting| counting.log);
    if let Some(log) = counted.clone() {
        log.begin().await;
        tokio::spawn(async move { log.run().await });
    }

    // Clients start a server with pipes and no flags; a person at a terminal cannot use a pipe.
    if !over_http {
        announcement.on_stdio(stdin_is_terminal);
        // The transport itself follows a folder, after its first answer.
        let _following = (!served.is_folder()).then(|| served.follow());
        let ended = on_stdio(library, signals).await;
        finish(counted.as_ref()).await;
        flush(&service, recorder).await;
        return ended;
    }
    let connections = http::raise_open_files();
    if connections < settings.http.options.limits.connections {
        tracing::info!(
            "at most {connections} connections: the system limits the open files of this process (ulimit -n)"
        );
    }
    let (listener, bound) = listen::bind(&settings.http).await?;
    let mut options = settings.http.options.clone();
    options.mcp.allowed_hosts = listen::hosts(&settings.http, bound);
    let shared_tokens = shared_tokens(&settings);
    options.sign_in = sign_in_options(&settings, shared_tokens.as_ref()).map(SignIn::new);
    options.sign_in.iter().for_each(SignIn::follow_keys);
    options.api = api(&settings, bound)?;
    options.versions = versions(&settings);
    options.folder = editing::api(arguments, &settings, bound)?;
    options.usage.clone_from(&counted);
    if let Some(sources) = served.open_sources() {
        options.webhooks = sources.webhooks.clone();
        // Problems of sources can name folders and hosts: they are for operators.
        if settings.http.sign_in.is_some() || bound.ip().is_loopback() {
            options.sources = Some(sources.set.clone());
        }
    }
    let app = served.app(&options);
    let opened = settings.http.tls.as_ref().map(Tls::open).transpose();
    let tls = opened.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    announcement.over_http(bound, &settings.http);
    let _following = served.follow();
    let delivering = deliveries.map(|deliveries| webhooks::Delivering::start(deliveries, served.monitors()));
    if let Some(metrics) = &metrics {
        metrics.metrics.observe(&library, &app, recorder.as_ref(), served.monitors());
        if let Some(sources) = served.open_sources() {
            metrics.metrics.observe_sources(&sources.set);
        }
        counted.iter().for_each(|log| metrics.metrics.observe_usage(log));
        delivering.iter().for_each(|delivering| metrics.metrics.observe_deliveries(&delivering.deliveries));
        metrics.set_ready(&app);
    }
    let reloader = Reloader {
        arguments: arguments.clone(),
        environment,
        location,
        bound,
        settings,
        audit,
        served,
        rules,
        shared_tokens,
        app: app.clone(),
        tls: tls.clone(),
        is_suspended: false,
    };
    let hangups = Hangups::listen(stdin_is_terminal);
    supervisor::ready();
    let shutdown = async {
        signals.first().await;
        supervisor::stopping();
    };
    let serving = async {
        match &tls {
            Some(tls) => app.serve_tls(listener, tls, shutdown).await,
            None => app.serve(listener, shutdown).await,
        }
    };
    tokio::select! {
        () = serving => {}
        () = reloader.run(hangups, known) => {}
    }
    if let Some(delivering) = delivering {
        delivering.finish().await;
    }
    finish(counted.as_ref()).await;
    flush(&service, recorder).await;
    Ok(())
}

fn shared_tokens(settings: &Settings) -> Option<SharedTokens> {
    let ServedLibrary::Channels(channels) = &settings.library else { return None };
    let tokens = settings.http.has_store_tokens.then(SharedTokens::default)?;
    let store = StoreHandle::new(channels.default.store.clone());
    tokio::spawn(TokenFollower::new(store, tokens.clone()).run());
    Some(tokens)
}

fn sign_in_options(settings: &Settings, shared_tokens: Option<&SharedTokens>) -> Option<SignInOptions> {
    let mut options = settings.http.sign_in.clone()?;
    options.shared_tokens = shared_tokens.cloned();
    Some(options)
}

/// Opens the library. `finished` adds everything but its source to a builder.
async fn open(settings: &Settings, finished: impl Fn(Builder) -> Builder) -> Result<Served, Failure> {
    match &settings.library {
        ServedLibrary::Folder(folder) => Served::folder(folder.clone(), &settings.granted_roots, finished),
        ServedLibrary::Git(address) => Served::git(git::open(address.clone(), settings).await?, finished),
        ServedLibrary::Channels(channels) => {
            let followed = followed::open(channels, settings, finished).await?;
            Served::channels(followed).ok_or_else(|| Failure::new(Exit::Failed, "no channel is served"))
        }
        ServedLibrary::Sources(configured) => {
            let state = settings.file.as_deref().and_then(StateFolder::of);
            let shared = SharedSettings {
                granted_roots: settings.granted_roots.clone(),
                shows_provenance: settings.shows_provenance,
                cache: settings.cache.clone(),
                rules: settings.access.clone(),
                is_server: true,
            };
            let open = OpenSources::open(configured, &shared, state.as_ref())?;
            open.set.settled(START_WAIT).await;
            if let Some(state) = state {
                tokio::spawn(state.serve(open.set.clone()));
            }
            Served::sources(open, finished)
        }
    }
}

fn api(settings: &Settings, bound: SocketAddr) -> Result<Option<Api>, Failure> {
    let ServedLibrary::Channels(channels) = &settings.library else { return Ok(None) };
    if !settings.http.has_api {
        return Ok(None);
    }
    if settings.http.sign_in.is_none() && !bound.ip().is_loopback() {
        let message = format!("other machines can reach {bound}, and the API is on without sign-in");
        return Err(Failure::new(Exit::Address, message)
            .help("configure [auth], or turn the API off: it would let everyone publish"));
    }
    let checker = LibraryChecker::new().grant_roots(settings.granted_roots.clone());
    let store = StoreHandle::new(channels.default.store.clone());
    tokio::spawn(store.clone().remove_uploads());
    let api = Api::new(store, Arc::new(checker)).unpublished_bytes(settings.http.unpublished_bytes);
    Ok(Some(api.evaluations(settings.evaluations.iter().cloned())))
}

struct Counting {
    usage: Usage,
    log: UsageLog,
}

impl Counting {
    /// Counts into the store; in memory for a folder, if its figures can be read: over HTTP.
    fn new(settings: &Settings, over_http: bool) -> Option<Counting> {
        let UsageSettings { retention, min_callers } = settings.usage.clone()?;
        let store = match &settings.library {
            ServedLibrary::Channels(channels) => Some(StoreHandle::new(channels.default.store.clone())),
            _ if !over_http => return None,
            _ => None,
        };
        let usage = Usage::new();
        let log = UsageLog::new(&usage, store, retention, min_callers);
        Some(Counting { usage, log })
    }
}

async fn finish(counted: Option<&UsageLog>) {
    if let Some(log) = counted {
        log.finish().await;
    }
}

fn versions(settings: &Settings) -> Option<Versions> {
    let ServedLibrary::Channels(channels) = &settings.library else { return None };
    let store = StoreHandle::new(channels.default.store.clone());
    Some(Versions::new(store, settings.granted_roots.clone()))
}

fn open_audit(options: Option<AuditFileOptions>) -> Result<Option<(Arc<AuditFile>, AuditFileOptions)>, Failure> {
    let Some(options) = options else { return Ok(None) };
    match AuditFile::open(options.clone()) {
        Ok(audit) => Ok(Some((Arc::new(audit), options))),
        Err(error) => {
            let message = format!("cannot write the audit file {}: {error}", options.path.display());
            Err(Failure::new(Exit::Failed, message))
        }
    }
}

async fn record_refusals(service: Service) {
    let mut interval = tokio::time::interval(REFUSALS_RECORDED);
    loop {
        interval.tick().await;
        service.record_refusals(false);
    }
}

/// Waits until all records are written to disk.
async fn flush(service: &Service, audit: Option<Arc<AuditFile>>) {
    service.record_refusals(true);
    if let Some(audit) = audit {
        tokio::task::spawn_blocking(move || audit.flush()).await.ok();
    }
}

async fn on_stdio(library: Library, signals: Signals) -> Result<(), Failure> {
    let server = library.server().clone();
    let serving = library.serve_stdio();
    tokio::pin!(serving);
    tokio::select! {
        ended = &mut serving => return Ok(ended?),
        () = signals.first() => server.shutdown(),
    }
    // The program ends even if an answer is not complete by then.
    tokio::time::timeout(STDIO_SHUTDOWN, serving).await.ok();
    Ok(())
}

fn refuse_errors(served: &Served, place: &ServedLibrary) -> Result<(), Failure> {
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
        let name = channel.map_or_else(|| place.to_string(), |channel| format!("channel {channel}"));
        let failure =
            Failure::new(Exit::Strict, format!("{name} has {}, and --strict allows none", count(errors, "error")));
        return Err(match place.folder() {
            Some(folder) => {
                failure.help(format!("`promptshelf check {}` shows each with its line", command_line::path(folder)))
            }
            None => failure.help("the log shows each with its line"),
        });
    }
    Ok(())
}

/// Logs a summary of a library after each load that changed it. The loader itself logs each new diagnostic.
async fn log_changes(channel: Option<String>, library: Library) {
    let loader = library.loader().clone();
    let mut reports = loader.reports();
    let mut known = reports.borrow_and_update().serial;
    while reports.changed().await.is_ok() {
        let serial = reports.borrow_and_update().serial;
        if serial == known {
            continue;
        }
        known = serial;
        let reviewed = library.clone();
        let findings = tokio::task::spawn_blocking(move || reviewed.findings()).await.unwrap_or_default();
        let findings = count_all(&findings);
        let prompts = count(loader.handle().current().prompts().len(), "prompt");
        match &channel {
            None => tracing::info!("library changed: {prompts}, {findings}"),
            Some(channel) => tracing::info!("channel {channel} changed: {prompts}, {findings}"),
        }
    }
}
