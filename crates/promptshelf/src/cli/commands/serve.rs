//! `promptshelf serve`: serves a library to MCP clients, on stdio or over HTTP.

mod accident;
mod announce;
mod signals;

use std::path::{Path, PathBuf};

use promptshelf_server::{Hangups, Server, Start};

pub(super) use self::accident::is_too_wide;
use self::{announce::Announcement, signals::Signals};
use crate::{
    args::{LogFormat, ServeArguments},
    command_line,
    exit::{Exit, Failure},
    observe,
    settings::{self, ServerFileLocation, Settings},
};

#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessContext {
    pub(crate) stdin_is_terminal: bool,
    pub(crate) log_format: LogFormat,
    pub(crate) has_traces: bool,
}

/// Reads the settings, before everything else because the log needs those of traces.
pub(crate) fn read(
    arguments: &ServeArguments,
    environment: &impl Fn(&str) -> Option<String>,
) -> Result<Settings, Failure> {
    let location = ServerFileLocation::find(arguments.config.as_deref(), environment);
    Settings::read(&location, &arguments.settings(), environment)
}

pub(crate) async fn run(
    arguments: &ServeArguments,
    settings: Settings,
    context: ProcessContext,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<(), Failure> {
    let ProcessContext { stdin_is_terminal, log_format, has_traces } = context;
    let over_http =
        !arguments.stdio && (settings.asks_for_http || stdin_is_terminal || arguments.edit || arguments.open);
    let start = Start {
        over_http,
        edits: arguments.edit,
        strict: arguments.strict,
        state_key: settings::state_key(&environment)?,
        traces: has_traces.then(observe::traces),
    };
    warn(arguments, &settings, &environment);
    let home = environment("HOME").or_else(|| environment("USERPROFILE")).map(PathBuf::from);
    accident::refuse(arguments, &settings, over_http, stdin_is_terminal, home)?;
    let place = settings.fixed.library.to_string();
    let folder = settings.fixed.library.folder().map(Path::to_owned);
    let server = Server::start(settings, start).await.map_err(|failure| match folder {
        Some(folder) if failure.exit == Exit::Strict => {
            let folder = command_line::path(&folder);
            failure.help(format!("`promptshelf check {folder}` shows each with its line"))
        }
        _ => failure,
    })?;
    let signals = Signals::listen()?;
    let announcement = Announcement { library: server.library(), place, channels: server.other_channels(), log_format };
    match server.address() {
        Some(bound) => {
            let page = announcement.over_http(bound, &server.settings().live);
            if arguments.open {
                // Not waited for: a browser of a terminal ends when its user ends it.
                std::thread::spawn(move || {
                    if webbrowser::open(&page).is_err() {
                        tracing::warn!("no browser can be started: open {page} yourself");
                    }
                });
            }
        }
        None => announcement.on_stdio(stdin_is_terminal),
    }
    let location = ServerFileLocation::find(arguments.config.as_deref(), &environment);
    let arguments = arguments.settings();
    let read = |file: Option<&Path>| Settings::read(&location.keep(file), &arguments, &environment);
    // On stdio settings are not reloaded: a client starts another server.
    let reload = over_http.then(|| (read, Hangups::listen(stdin_is_terminal)));
    server.serve_and_reload(signals.first(), reload).await
}

fn warn(arguments: &ServeArguments, settings: &Settings, environment: &impl Fn(&str) -> Option<String>) {
    for variable in crate::environment::unknown() {
        tracing::warn!("{variable}");
    }
    settings.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    if let Some(variable) = settings::ignored_variable(&arguments.settings(), environment) {
        // Its value is not logged: it can contain a password.
        let library = &settings.fixed.library;
        tracing::warn!("{variable} in the environment is ignored, because LIBRARY is given: {library}");
    }
}
