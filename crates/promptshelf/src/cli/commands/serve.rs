//! `promptshelf serve`: serves a library to MCP clients, on stdio or over HTTP.

mod announce;
mod listen;
mod reload;
mod signals;
mod supervisor;

use std::{sync::Arc, time::Duration};

use promptshelf_server::{
    Builder, Library,
    http::{self, App, auth::SignIn, tls::Tls},
};
use promptshelf_service::{AuditFile, AuditFileOptions, Service};
use promptshelf_source::{Directory, Fixed, Loader};

use self::{
    announce::Announcement,
    reload::{Hangups, Reloader, known_files, rules_source},
    signals::Signals,
};
use crate::{
    args::{LogFormat, ServeArguments},
    command_line,
    exit::{Exit, Failure},
    observe::{MetricsServer, RequestObserver},
    output::{count, count_findings},
    settings::{self, HttpSettings, ServerFileLocation, Settings, Traces},
};

/// The time for pending answers after a signal ends a server on stdio.
const STDIO_SHUTDOWN: Duration = Duration::from_secs(2);

/// The time between two looks at refusals that were counted.
const REFUSALS_RECORDED: Duration = Duration::from_secs(10);

/// Facts about the process, found out before the server starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessContext {
    pub(crate) stdin_is_terminal: bool,
    pub(crate) log_format: LogFormat,
    /// Whether spans are sent.
    pub(crate) has_traces: bool,
}

/// Reads the settings of traces, which start before the first log line.
pub(crate) fn traces(
    arguments: &ServeArguments,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<Traces>, Failure> {
    let location = ServerFileLocation::find(arguments.config.as_deref(), &environment);
    settings::read_traces(&location, arguments.traces.as_deref(), &environment)
}

pub(crate) async fn run(
    arguments: &ServeArguments,
    context: ProcessContext,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<(), Failure> {
    let ProcessContext { stdin_is_terminal, log_format, has_traces } = context;
    let folder = arguments.library.folder();
    let key = settings::state_key(&environment)?;
    let location = ServerFileLocation::find(arguments.config.as_deref(), &environment);
    let mut settings = Settings::read(&location, arguments, &environment)?;
    let over_http = !arguments.stdio && (settings.http.is_requested || stdin_is_terminal);
    let known = known_files(&settings, &location)?;
    // On stdio settings are not reloaded: a client starts another server.
    if over_http {
        // Only settings that are read after the files were hashed are known to be as new as the hashes.
        settings = Settings::read(&location, arguments, &environment)?;
    }
    settings.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let audit = open_audit(settings.audit.take())?;
    // Clients can start any number of servers on stdio, but there is only one port.
    let metrics = match settings.metrics.as_ref().filter(|_| over_http) {
        Some(address) => Some(MetricsServer::start(address).await?),
        None => None,
    };
    let counters = metrics.as_ref().map(|metrics| Arc::clone(&metrics.metrics));
    let rules = Fixed::new(rules_source(&settings.access));
    let directory = Directory::new(folder);
    directory.grant_roots(settings.granted_roots.clone());
    let builder = Library::builder().source(directory.clone()).source(rules.clone()).tools(settings.has_tools);
    let builder = key.into_iter().fold(builder, Builder::state_key);
    let builder = RequestObserver::if_configured(counters, has_traces).into_iter().fold(builder, Builder::observer);
    let recorder = audit.as_ref().map(|(file, _)| Arc::clone(file));
    let library = open(builder, &settings.http, over_http, recorder.clone())?;
    if arguments.strict {
        refuse_errors(&library, arguments)?;
    }
    let announcement = Announcement { library: &library, folder, log_format };
    let signals = Signals::listen()?;
    tokio::spawn(log_changes(library.loader().clone()));
    let service = library.service().clone();
    tokio::spawn(record_refusals(service.clone()));

    // Clients start a server with pipes and no flags; a person at a terminal cannot use a pipe.
    if !over_http {
        announcement.on_stdio(stdin_is_terminal);
        let ended = on_stdio(library, signals).await;
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
    options.sign_in = settings.http.sign_in.clone().map(SignIn::new);
    let app = App::new(&library, &options);
    let opened = settings.http.tls.as_ref().map(Tls::open).transpose();
    let tls = opened.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    announcement.over_http(bound, &settings.http);
    let _following = library.loader().spawn();
    if let Some(metrics) = &metrics {
        metrics.metrics.observe(&library, &app, recorder.as_ref());
        metrics.set_ready(library.server());
    }
    let reloader = Reloader {
        arguments: arguments.clone(),
        environment,
        location,
        bound,
        settings,
        audit,
        directory,
        rules,
        library: library.clone(),
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
    flush(&service, recorder).await;
    Ok(())
}

/// Opens the library, with limits for callers over a network.
fn open(
    library: Builder,
    http: &HttpSettings,
    over_http: bool,
    audit: Option<Arc<AuditFile>>,
) -> Result<Library, Failure> {
    let limits = http.effective_limits().filter(|_| over_http);
    let library = limits.into_iter().fold(library, Builder::limits);
    Ok(audit.into_iter().fold(library, |library, audit| library.audit(audit)).build()?)
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

/// Records repeated refusals, which are counted first, soon after their minute.
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

fn refuse_errors(library: &Library, arguments: &ServeArguments) -> Result<(), Failure> {
    let errors = library.diagnostics().iter().filter(|diagnostic| diagnostic.is_error()).count();
    if errors == 0 {
        return Ok(());
    }
    let folder = arguments.library.folder();
    let message = format!("{} has {}, and --strict allows none", folder.display(), count(errors, "error"));
    Err(Failure::new(Exit::Strict, message)
        .help(format!("`promptshelf check {}` shows each with its line", command_line::path(folder))))
}

/// Logs a summary of the library after each load that changed it. The loader itself logs each new diagnostic.
async fn log_changes(loader: Loader) {
    let mut reports = loader.reports();
    let mut known = reports.borrow_and_update().generation;
    while reports.changed().await.is_ok() {
        let report = reports.borrow_and_update().clone();
        if report.generation == known {
            continue;
        }
        known = report.generation;
        let errors = report.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
        let findings = count_findings(errors, report.diagnostics.len() - errors);
        let prompts = count(loader.handle().current().prompts().len(), "prompt");
        tracing::info!("library changed: {prompts}, {findings}");
    }
}
