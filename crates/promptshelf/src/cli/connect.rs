//! Connects a command to a library or a server.
//!
//! Both are used through `promptshelf-client`. A library is served by this process over a pipe in memory, so that a
//! command shows the same results as a client.

mod browser;
mod keyring;
mod legacy_servers;

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use promptshelf_client::{Client, ClientError, ConnectOptions, ElicitationHandler, Endpoint, SignIn};
use promptshelf_server::Library;
use serde_json::Value;

pub(crate) use self::{
    browser::{explicit_sign_in, sign_in},
    keyring::Keyring,
    legacy_servers::LegacyServers,
};
use crate::{
    exit::{Exit, Failure},
    library,
    output::{Output, visible_line},
    source::Source,
    terminal::Progress,
};

/// The capacity of the pipe to a library, in bytes.
const PIPE_BYTES: usize = 64 << 10;
/// The default time limit of an answer.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Options of a connection.
pub(crate) struct Options {
    pub(crate) timeout: Duration,
    pub(crate) elicitation: Option<Arc<dyn ElicitationHandler>>,
    pub(crate) sign_in: Option<SignIn>,
    pub(crate) legacy_servers: LegacyServers,
    /// Whether a library is reloaded when its files change.
    pub(crate) watch: bool,
    /// The name of the connection in forms; by default the endpoint.
    pub(crate) label: Option<String>,
}

impl Options {
    /// Creates the options of a command that prints a result and ends: no elicitation; sign-in only at a terminal.
    pub(crate) fn new(timeout: Duration, progress: &Progress) -> Options {
        let legacy_servers = LegacyServers::open();
        Options { timeout, sign_in: Some(sign_in(progress)), legacy_servers, ..Options::plain() }
    }

    /// Creates options without interaction and without state of earlier runs.
    pub(crate) fn plain() -> Options {
        Options {
            timeout: DEFAULT_TIMEOUT,
            elicitation: None,
            sign_in: None,
            legacy_servers: LegacyServers::disabled(),
            watch: false,
            label: None,
        }
    }

    fn label(mut self, label: String) -> Options {
        self.label = Some(label);
        self
    }
}

/// A connected library or server.
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// The endpoint of a server.
    endpoint: Option<Endpoint>,
    /// The library, for diagnostics and for checks that the protocol does not offer.
    pub(crate) library: Option<OpenLibrary>,
}

/// A library that this process serves to the command.
pub(crate) struct OpenLibrary {
    pub(crate) library: Library,
    pub(crate) folder: PathBuf,
}

impl OpenLibrary {
    /// Notes on stderr that the library has errors.
    pub(crate) fn note_errors(&self) {
        library::note_errors(&self.library, &self.folder);
    }
}

impl Connection {
    /// Converts an error of a request, with a hint on what to do about it.
    pub(crate) fn failure(&self, error: ClientError) -> Failure {
        failure(error, self.endpoint.as_ref())
    }

    /// Converts an error about the name or the arguments of a request: without the preface about a server for a
    /// library, and with each problem on a line of its own where the server lists them.
    pub(crate) fn rejection(&self, exit: Exit, error: &ClientError) -> Failure {
        let ClientError::ErrorResponse { message, data, .. } = error else {
            return Failure::new(exit, error.to_string());
        };
        if let Some(problems) = data.as_ref().and_then(problems)
            && let Some((summary, _)) = message.split_once(": ")
        {
            return Failure::new(exit, format!("{summary}:{problems}"));
        }
        if self.library.is_some() { Failure::new(exit, message) } else { Failure::new(exit, error.to_string()) }
    }
}

/// Formats `problems` of an error's data, as promptshelf sends them for invalid arguments.
fn problems(data: &Value) -> Option<String> {
    let line = |problem: &Value| {
        let (argument, reason) = (problem["argument"].as_str()?, problem["reason"].as_str()?);
        Some(format!("\n  `{argument}` {reason}"))
    };
    let lines: Option<String> = data["problems"].as_array()?.iter().map(line).collect();
    lines.filter(|lines| !lines.is_empty())
}

/// Connects to a library or a server.
pub(crate) async fn connect(source: &Source, options: Options, progress: &Progress) -> Result<Connection, Failure> {
    match source {
        Source::Folder(folder) => connect_folder(folder, options).await,
        Source::Server(endpoint) => connect_server(endpoint, options, progress).await,
    }
}

/// Opens a library and connects to it.
async fn connect_folder(folder: &Path, options: Options) -> Result<Connection, Failure> {
    let library = library::open(folder)?;
    let client = connect_library(&library, &options.label(folder.display().to_string())).await?;
    Ok(Connection { client, endpoint: None, library: Some(OpenLibrary { library, folder: folder.to_owned() }) })
}

/// Connects to a library over a pipe in memory.
pub(crate) async fn connect_library(library: &Library, options: &Options) -> Result<Client, ClientError> {
    let following = options.watch.then(|| library.loader().spawn());
    let (client_end, server_end) = tokio::io::duplex(PIPE_BYTES);
    let server = library.server().clone();
    tokio::spawn(async move {
        let _following = following;
        let (reader, writer) = tokio::io::split(server_end);
        // The pipe is closed together with the client, so the error carries no information.
        server.serve_stdio(reader, writer).await.ok();
    });
    // The limit protects from foreign servers.
    let mut connecting = ConnectOptions::new().timeout(options.timeout).max_list_entries(usize::MAX);
    if let Some(label) = &options.label {
        connecting = connecting.label(label);
    }
    if let Some(elicitation) = &options.elicitation {
        connecting = connecting.elicitation_handler(Arc::clone(elicitation));
    }
    let (reader, writer) = tokio::io::split(client_end);
    connecting.connect_io(reader, writer).await
}

/// Connects to a server, and shows the progress on a terminal.
async fn connect_server(endpoint: &Endpoint, options: Options, progress: &Progress) -> Result<Connection, Failure> {
    if let Endpoint::Command { .. } = endpoint {
        let mut stderr = Output::stderr();
        if stderr.terminal {
            // A server in a configuration file can be any command, so the user has to see it.
            writeln!(stderr.out, "starting {}", visible_line(&endpoint.to_string())).ok();
        }
    }
    let is_legacy = options.legacy_servers.contains(endpoint);
    let mut connecting = ConnectOptions::new().timeout(options.timeout).legacy(is_legacy);
    if let Some(elicitation) = options.elicitation {
        connecting = connecting.elicitation_handler(elicitation);
    }
    if let Some(sign_in) = options.sign_in {
        connecting = connecting.sign_in(sign_in);
    }
    let connected = progress.during(connecting.connect(endpoint)).await;
    let client = connected.map_err(|error| failure(error, Some(endpoint)))?;
    options.legacy_servers.record(endpoint, client.is_legacy());
    Ok(Connection { client, endpoint: Some(endpoint.clone()), library: None })
}

fn failure(error: ClientError, endpoint: Option<&Endpoint>) -> Failure {
    let help = match (&error, endpoint.and_then(Endpoint::sign_in_url)) {
        (ClientError::AuthenticationRequired, Some(url)) => {
            Some(format!("`promptshelf sign-in {url}`, or a token in PROMPTSHELF_TOKEN"))
        }
        // The server chose the scopes: only harmless ones are part of a line that the user may paste into a shell.
        (ClientError::Forbidden { scope: Some(scopes) }, Some(url)) if scopes.chars().all(is_harmless) => {
            let flags: String = scopes.split_whitespace().map(|scope| format!(" --scope {scope}")).collect();
            Some(format!("promptshelf sign-in {url}{flags}"))
        }
        (ClientError::SignInFailed { .. }, _) => browser::sign_in_help(),
        _ => None,
    };
    let failure = Failure::from(error);
    match help {
        Some(help) => failure.help(help),
        None => failure,
    }
}

fn is_harmless(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ' ' | ':' | '.' | '_' | '/' | '-')
}
