//! `promptshelf serve`: a library for MCP clients, on stdio or over HTTP.

mod announce;
mod listen;
mod reload;
mod signals;
mod supervisor;

use std::{sync::Arc, time::Duration};

use promptshelf_server::{
    Builder, Library,
    http::{App, auth::SignIn, tls::Tls},
};
use promptshelf_service::{AuditFile, AuditFileOptions};
use promptshelf_source::Loader;

use self::{
    announce::Announcement,
    reload::{Hangups, Said, Settings, Stamps},
    signals::Signals,
};
use crate::{
    args::ServeArguments,
    exit::{Exit, Failure},
    observe::{Listening, Watch},
    settings::{self, HttpConfig, ManifestFile, observe::Traces},
    telemetry::LogFormat,
};

/// How long answers may take that are on their way when a signal ends stdio.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// What the program has found out before it serves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around {
    pub(crate) stdin_is_terminal: bool,
    pub(crate) log_format: LogFormat,
    /// Whether spans are sent.
    pub(crate) has_traces: bool,
}

/// Where traces are sent to, which has to be known before the first log line.
pub(crate) fn traces(
    arguments: &ServeArguments,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<Traces>, Failure> {
    let file = ManifestFile::read(arguments.library.folder());
    settings::observe::traces(&file.parse(), arguments.traces.as_deref(), environment)
}

pub(crate) async fn run(
    arguments: &ServeArguments,
    around: Around,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<(), Failure> {
    let Around { stdin_is_terminal, log_format, has_traces } = around;
    let folder = arguments.library.folder();
    let key = settings::state_key(&environment)?;
    let said = Said::read(arguments, &environment)?;
    let over_http = !arguments.stdio && (said.config.wanted || stdin_is_terminal);
    // On stdio nothing follows the files: a client starts another server.
    let (said, known) = if over_http { said.again(arguments, &environment)? } else { (said, Stamps::new()) };
    let Said { config, audit, observed } = said;
    let audit = open_audit(audit)?;
    // Clients start as many servers on stdio as they like, and there is one port.
    let metrics = match observed.0.as_ref().filter(|_| over_http) {
        Some(address) => Some(Listening::start(address).await?),
        None => None,
    };
    let figures = metrics.as_ref().map(|metrics| Arc::clone(&metrics.figures));
    let builder = key.into_iter().fold(Library::builder().folder(folder), Builder::state_key);
    let builder = Watch::wanted(figures, has_traces).into_iter().fold(builder, Builder::observer);
    let recorder = audit.as_ref().map(|(file, _)| Arc::clone(file));
    let library = open(builder, &config, over_http, recorder.clone())?;
    if arguments.strict {
        refuse_errors(&library, arguments)?;
    }
    let announcement = Announcement { library: &library, folder, log_format };
    let signals = Signals::listen()?;
    tokio::spawn(tell_changes(library.loader().clone()));

    // Clients start a server with pipes and tell it nothing; a person at a
    // terminal has nothing to type into a pipe.
    if !over_http {
        announcement.on_stdio(stdin_is_terminal);
        let ended = on_stdio(library, signals).await;
        flush(recorder).await;
        return ended;
    }
    let (listener, bound) = listen::bind(&config).await?;
    let mut options = config.options.clone();
    options.mcp.allowed_hosts = listen::hosts(&config, bound);
    options.sign_in = config.sign_in.clone().map(SignIn::new);
    let app = App::new(&library, &options);
    let opened = config.tls.as_ref().map(Tls::open).transpose();
    let tls = opened.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    announcement.over_http(bound, &config);
    let _following = library.loader().spawn();
    if let Some(metrics) = &metrics {
        metrics.figures.of(&library, recorder.as_ref());
        metrics.ready(library.server());
    }
    let arguments = arguments.clone();
    let settings = Settings {
        arguments,
        environment,
        bound,
        config,
        audit,
        observed,
        library: library.clone(),
        app: app.clone(),
        tls: tls.clone(),
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
        () = settings.follow(hangups, known) => {}
    }
    flush(recorder).await;
    Ok(())
}

/// Opens the library, with limits where callers over a network need some.
fn open(
    library: Builder,
    config: &HttpConfig,
    over_http: bool,
    audit: Option<Arc<AuditFile>>,
) -> Result<Library, Failure> {
    let limits = config.limits_in_force().filter(|_| over_http);
    let library = limits.into_iter().fold(library, Builder::limits);
    Ok(audit.into_iter().fold(library, |library, audit| library.audit(audit)).build()?)
}

fn open_audit(options: Option<AuditFileOptions>) -> Result<Option<(Arc<AuditFile>, AuditFileOptions)>, Failure> {
    let Some(options) = options else { return Ok(None) };
    match AuditFile::open(options.clone()) {
        Ok(audit) => Ok(Some((Arc::new(audit), options))),
        Err(error) => {
            let sentence = format!("the audit cannot be written to {}: {error}", options.path.display());
            Err(Failure::new(Exit::Failed, sentence))
        }
    }
}

/// Waits until everything that was recorded is on the disk.
async fn flush(audit: Option<Arc<AuditFile>>) {
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
    // Whether it ends by itself or not, the program does.
    tokio::time::timeout(LAST_ANSWERS, serving).await.ok();
    Ok(())
}

fn refuse_errors(library: &Library, arguments: &ServeArguments) -> Result<(), Failure> {
    let errors = library.diagnostics().iter().filter(|diagnostic| diagnostic.is_error()).count();
    if errors == 0 {
        return Ok(());
    }
    let folder = arguments.library.folder().display();
    Err(Failure::new(
        Exit::Strict,
        format!("{folder} has {}, and --strict serves none", crate::output::count(errors, "error")),
    )
    .help(format!("`promptshelf check {folder}` shows each with its line")))
}

/// Logs what the library has become after each load that changed something.
/// The loader itself logs each new diagnostic.
async fn tell_changes(loader: Loader) {
    let mut reports = loader.reports();
    let mut known = reports.borrow_and_update().generation;
    while reports.changed().await.is_ok() {
        let report = reports.borrow_and_update().clone();
        if report.generation == known {
            continue;
        }
        known = report.generation;
        let errors = report.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
        let found = crate::output::count_findings(errors, report.diagnostics.len() - errors);
        let prompts = crate::output::count(loader.handle().current().prompts().len(), "prompt");
        tracing::info!("the library has changed: {prompts}, {found}");
    }
}
