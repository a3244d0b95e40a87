//! Connects a command to a library or a server.
//!
//! Both are used through `promptshelf-client`. A library is served by this process over a pipe in memory, so that a
//! command shows the same results as a client.

use std::{
    env,
    fs::{self, File},
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use promptshelf_author::add_samples;
use promptshelf_client::{
    Arguments, BrowserOpener, Client, ClientError, CompletionTarget, ConnectOptions, CredentialError, CredentialStore,
    ElicitationHandler, Endpoint, SignIn, SignInPage,
};
use promptshelf_core::Variables;
use promptshelf_server::Library;
use serde_json::Value;

use crate::{
    command_line::shell_word,
    exit::{Exit, Failure},
    launcher, library,
    output::{Output, note, visible_line},
    source::Source,
    state::{self, digest},
    terminal::{self, Progress},
};

/// The capacity of the pipe to a library, in bytes.
const PIPE_BYTES: usize = 64 << 10;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Options {
    pub(crate) timeout: Duration,
    pub(crate) elicitation: Option<Arc<dyn ElicitationHandler>>,
    pub(crate) sign_in: Option<SignIn>,
    pub(crate) legacy_servers: LegacyServers,
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

pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) source: Source,
    /// The library, for diagnostics and for checks that the protocol does not offer.
    pub(crate) library: Option<OpenLibrary>,
}

pub(crate) struct OpenLibrary {
    pub(crate) library: Library,
    pub(crate) folder: PathBuf,
}

impl OpenLibrary {
    pub(crate) fn note_errors(&self) {
        library::note_errors(&self.library, &self.folder);
    }

    /// Returns the name of the prompt in a file of the library.
    pub(crate) fn prompt_of(&self, path: &str) -> Option<String> {
        let catalog = self.library.catalog();
        let prompt = catalog.prompts().iter().find(|prompt| prompt.source().path == path)?;
        Some(prompt.name().to_string())
    }
}

impl Connection {
    /// Converts an error of a request, with a hint on what to do about it.
    pub(crate) fn failure(&self, error: ClientError) -> Failure {
        failure(error, self.source.endpoint())
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

    /// Returns the names of the arguments that an error is about, as promptshelf sends them.
    pub(crate) fn problems<'e>(&self, error: &'e ClientError) -> Vec<&'e str> {
        let ClientError::ErrorResponse { data: Some(data), .. } = error else { return Vec::new() };
        let problems = data["problems"].as_array().into_iter().flatten();
        problems.filter_map(|problem| problem["argument"].as_str()).collect()
    }

    /// Returns a value for an argument of a prompt: one that the library or the server suggests, or a placeholder.
    pub(crate) async fn sample(&self, prompt: &str, argument: &str) -> String {
        if let Some(OpenLibrary { library, .. }) = &self.library
            && let Some(found) = library.catalog().find(prompt)
        {
            let mut samples = Variables::new();
            add_samples(found, &mut samples);
            if let Some(sample) = samples.remove(argument) {
                return sample;
            }
        }
        self.suggested(prompt, argument).await.unwrap_or_else(|| placeholder(argument))
    }

    /// Returns the first value that the server suggests for an argument.
    pub(crate) async fn suggested(&self, prompt: &str, argument: &str) -> Option<String> {
        if !self.client.has_completions() {
            return None;
        }
        let suggested = self.client.complete(CompletionTarget::Prompt(prompt), argument, "", &Arguments::new()).await;
        suggested.ok()?.values.into_iter().next()
    }

    /// Whether an argument accepts a value of [`sample`](Connection::sample), as far as is known here: what another
    /// server accepts is unknown, but it suggested the values that are not placeholders.
    pub(crate) fn accepts(&self, prompt: &str, argument: &str, value: &str) -> bool {
        let found = self.library.as_ref().and_then(|open| open.library.catalog().find(prompt).cloned());
        found.map_or_else(|| value != placeholder(argument), |prompt| library::accepts(&prompt, argument, value))
    }
}

fn placeholder(argument: &str) -> String {
    format!("‹{argument}›")
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

pub(crate) async fn connect(source: &Source, options: Options, progress: &Progress) -> Result<Connection, Failure> {
    match source {
        Source::Folder(folder) => connect_folder(folder, options).await,
        Source::Server(endpoint) | Source::Configured { endpoint, .. } => {
            let (client, found) = connect_server(endpoint, options, progress).await?;
            let source = found.map_or_else(|| source.clone(), Source::Server);
            Ok(Connection { client, source, library: None })
        }
    }
}

/// Returns a folder by its name where the path has none, such as `.`.
fn named(folder: &Path) -> PathBuf {
    let name = || Some(PathBuf::from(folder.canonicalize().ok()?.file_name()?));
    folder.file_name().map(|_| folder.to_owned()).or_else(name).unwrap_or_else(|| folder.to_owned())
}

async fn connect_folder(folder: &Path, options: Options) -> Result<Connection, Failure> {
    let library = library::open(folder)?;
    let client = connect_library(&library, &options.label(named(folder).display().to_string())).await?;
    let source = Source::Folder(folder.to_owned());
    Ok(Connection { client, source, library: Some(OpenLibrary { library, folder: folder.to_owned() }) })
}

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

/// Connects to a server, and shows the progress on a terminal. Returns the endpoint too if it is not the one that was
/// asked for: a URL without a path is also tried with `/mcp`.
async fn connect_server(
    endpoint: &Endpoint,
    options: Options,
    progress: &Progress,
) -> Result<(Client, Option<Endpoint>), Failure> {
    if let Endpoint::Command { .. } = endpoint {
        let mut stderr = Output::stderr();
        if stderr.terminal {
            // A server in a configuration file can be any command, so the user has to see it.
            writeln!(stderr.out, "starting {}", visible_line(&endpoint.to_string())).ok();
        }
    }
    terminal::close_on_signals();
    let legacy_servers = options.legacy_servers;
    let mut connecting = ConnectOptions::new().timeout(options.timeout);
    if let Some(elicitation) = options.elicitation {
        connecting = connecting.elicitation_handler(elicitation);
    }
    if let Some(sign_in) = options.sign_in {
        connecting = connecting.sign_in(sign_in);
    }
    let connect = async |endpoint: &Endpoint| {
        let connecting = connecting.clone().legacy(legacy_servers.contains(endpoint));
        let connected = progress.during(connecting.connect(endpoint)).await;
        // A server that fails may be another one by now.
        legacy_servers.record(endpoint, connected.as_ref().is_ok_and(Client::prefers_legacy));
        connected
    };
    let error = match connect(endpoint).await {
        Ok(client) => return Ok((client, None)),
        Err(error) => error,
    };
    if !matches!(error, ClientError::NotAnEndpoint { .. }) {
        return Err(failure(error, Some(endpoint)));
    }
    let often = match endpoint {
        Endpoint::Url { url, .. } if usual_url(url).is_none() => other_endpoint(url),
        _ => None,
    };
    match usual_endpoint(endpoint) {
        Some(usual) => match connect(&usual).await {
            Ok(client) => {
                note(&[format!("using {usual}, the MCP endpoint of this server")]);
                Ok((client, Some(usual)))
            }
            Err(ClientError::NotAnEndpoint { .. }) => {
                let often = often.map_or_else(String::new, |often| format!("; often it is {often}"));
                Err(failure(error, Some(endpoint)).help(format!(
                    "expected the URL of the server's MCP endpoint; {usual} does not answer as one either{often}"
                )))
            }
            Err(other) => Err(failure(other, Some(&usual))),
        },
        None => {
            let failure = failure(error, Some(endpoint));
            Err(match often {
                Some(often) => failure.help(format!("expected the URL of the server's MCP endpoint, often {often}")),
                None => failure,
            })
        }
    }
}

/// Returns the usual endpoint of the server at a URL, unless the URL is one.
fn usual_endpoint(endpoint: &Endpoint) -> Option<Endpoint> {
    let Endpoint::Url { url, headers } = endpoint else { return None };
    Some(Endpoint::Url { url: usual_below(url)?, headers: headers.clone() })
}

/// Returns a URL without a path with the usual one.
pub(crate) fn usual_url(url: &str) -> Option<String> {
    let (origin, rest) = origin(url)?;
    matches!(rest, "" | "/").then(|| format!("{origin}/mcp"))
}

/// Returns the URL of the usual endpoint of the server at a URL, which may be below a path of its host.
fn usual_below(url: &str) -> Option<String> {
    let (origin, rest) = origin(url)?;
    let path = rest.trim_end_matches('/');
    let is_server = !path.contains(['?', '#']) && !path.ends_with("/mcp");
    is_server.then(|| format!("{origin}{path}/mcp"))
}

/// Returns the usual URL of the MCP endpoint in the origin of a URL, unless it is this one.
fn other_endpoint(url: &str) -> Option<String> {
    let usual = format!("{}/mcp", origin(url)?.0);
    (usual != url).then_some(usual)
}

fn origin(url: &str) -> Option<(&str, &str)> {
    let authority = url.find("://")? + "://".len();
    let end = url[authority..].find(['/', '?', '#']).map_or(url.len(), |end| authority + end);
    Some(url.split_at(end))
}

/// Converts an error of a connection, with a hint on what to do about it.
pub(crate) fn failure(error: ClientError, endpoint: Option<&Endpoint>) -> Failure {
    if let (ClientError::AuthenticationRequired, Some(origin)) = (&error, endpoint.and_then(token_origin)) {
        return Failure::new(Exit::SignIn, format!("the server did not accept {origin}"))
            .help("the token may have expired, or belong to another server");
    }
    let help = match (&error, endpoint.and_then(Endpoint::sign_in_url)) {
        (ClientError::AuthenticationRequired, Some(url)) => {
            Some(format!("`{} sign-in {}`, or a token in PROMPTSHELF_TOKEN", launcher::command(), shell_word(url)))
        }
        // The server chose the scopes: only harmless ones are part of a line that the user may paste into a shell.
        (ClientError::Forbidden { scope: Some(scopes) }, Some(url)) if scopes.chars().all(is_harmless) => {
            let flags: String = scopes.split_whitespace().map(|scope| format!(" --scope {scope}")).collect();
            Some(format!("{} sign-in {}{flags}", launcher::command(), shell_word(url)))
        }
        (ClientError::SignInFailed { .. }, _) => sign_in_help(),
        _ => None,
    };
    let failure = Failure::from(error);
    match help {
        Some(help) => failure.help(help),
        None => failure,
    }
}

/// Returns the place that the token of an endpoint comes from, if it has one.
fn token_origin(endpoint: &Endpoint) -> Option<&'static str> {
    let Endpoint::Url { headers, .. } = endpoint else { return None };
    let (_, value) = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("authorization"))?;
    let from_environment =
        crate::environment::variable("PROMPTSHELF_TOKEN").is_some_and(|token| *value == format!("Bearer {token}"));
    Some(if from_environment {
        "the token in PROMPTSHELF_TOKEN"
    } else {
        "the Authorization header of its configuration"
    })
}

fn is_harmless(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ' ' | ':' | '.' | '_' | '/' | '-')
}

// Remembers servers of revisions before 2026-07-28, so that a connection begins with `initialize`. Some of these
// servers reject `server/discover` slowly, or end when they receive it.

/// How long an observation is valid: servers are updated.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// An empty file per server, whose modification time is the time of the observation.
pub(crate) struct LegacyServers(Option<PathBuf>);

impl LegacyServers {
    pub(crate) fn open() -> LegacyServers {
        LegacyServers(state::folder().map(|folder| folder.join("older")))
    }

    /// Creates a list that remembers nothing.
    pub(crate) fn disabled() -> LegacyServers {
        LegacyServers(None)
    }

    fn file(&self, endpoint: &Endpoint) -> Option<PathBuf> {
        self.0.as_ref().map(|folder| folder.join(digest(&endpoint.to_string())))
    }

    pub(crate) fn contains(&self, endpoint: &Endpoint) -> bool {
        let modified = self.file(endpoint).and_then(|file| fs::metadata(file).ok()?.modified().ok());
        modified.and_then(|modified| modified.elapsed().ok()).is_some_and(|age| age < LIFETIME)
    }

    /// Records an observation. A failure to write is ignored: the next connection observes it again.
    pub(crate) fn record(&self, endpoint: &Endpoint, is_legacy: bool) {
        let Some(file) = self.file(endpoint) else { return };
        match is_legacy {
            true if self.contains(endpoint) => {}
            true => drop(state::write(&file, "")),
            false => drop(fs::remove_file(file)),
        }
    }
}

pub(crate) struct CredentialFiles;

fn file(server: &str) -> Option<PathBuf> {
    state::folder().map(|folder| folder.join("sign-in").join(format!("{}.json", digest(server))))
}

fn file_error(file: &Path, action: &str, error: io::Error) -> CredentialError {
    CredentialError::new(format!("{} cannot be {action}: {error}", file.display())).with_source(error)
}

impl CredentialStore for CredentialFiles {
    fn load(&self, server: &str) -> Result<Option<String>, CredentialError> {
        let Some(file) = file(server) else { return Ok(None) };
        match fs::read_to_string(&file) {
            Ok(secret) => Ok(Some(secret)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file_error(&file, "read", error)),
        }
    }

    fn save(&self, server: &str, secret: &str) -> Result<(), CredentialError> {
        let file = file(server).ok_or_else(|| {
            CredentialError::new(
                "the credentials cannot be stored: set XDG_STATE_HOME to a folder that you can write to",
            )
        })?;
        state::write(&file, secret).map_err(|error| file_error(&file, "written", error))
    }

    fn clear(&self, server: &str) -> Result<bool, CredentialError> {
        let Some(file) = file(server) else { return Ok(false) };
        match fs::remove_file(&file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(file_error(&file, "removed", error)),
        }
    }

    fn lock(&self, server: &str) -> Result<Option<Box<dyn Send>>, CredentialError> {
        let Some(file) = file(server).map(|file| file.with_extension("lock")) else { return Ok(None) };
        let lock = || -> io::Result<File> {
            state::write_new(&file)?;
            let lock = File::open(&file)?;
            lock.lock()?;
            Ok(lock)
        };
        // Without a lock the token is renewed anyway.
        Ok(lock().ok().map(|lock| Box::new(lock) as Box<dyn Send>))
    }
}

const CLIENT_ISSUER: &str = "PROMPTSHELF_CLIENT_ISSUER";

/// Configures sign-in for a command: with stored credentials, and interactively at a terminal after a confirmation.
pub(crate) fn sign_in(progress: &Progress) -> SignIn {
    let sign_in = stored(env::var("PROMPTSHELF_CLIENT_ID").ok());
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        sign_in.browser(Arc::new(PageOpener { progress: progress.clone(), confirms: true }))
    } else {
        sign_in
    }
}

/// Configures sign-in for `promptshelf sign-in`, which the user has confirmed by typing it.
pub(crate) fn explicit_sign_in(client_id: Option<String>, scopes: Vec<String>, progress: &Progress) -> SignIn {
    stored(client_id).scopes(scopes).browser(Arc::new(PageOpener { progress: progress.clone(), confirms: false }))
}

fn stored(client_id: Option<String>) -> SignIn {
    let sign_in = SignIn::new(Arc::new(CredentialFiles));
    let Some(id) = client_id.filter(|id| !id.is_empty()) else { return sign_in };
    let sign_in = sign_in.client(id);
    match variable("PROMPTSHELF_CLIENT_SECRET") {
        Some(secret) => sign_in.client_secret(secret, variable(CLIENT_ISSUER)),
        None => sign_in,
    }
}

/// Returns what to do if a sign-in may have failed because the client secret has no issuer.
fn sign_in_help() -> Option<String> {
    let lacks_issuer = variable("PROMPTSHELF_CLIENT_SECRET").is_some() && variable(CLIENT_ISSUER).is_none();
    lacks_issuer
        .then(|| format!("{CLIENT_ISSUER} names the authorization server that receives PROMPTSHELF_CLIENT_SECRET"))
}

fn variable(name: &str) -> Option<String> {
    crate::environment::variable(name)
}

struct PageOpener {
    progress: Progress,
    /// Whether the user has to confirm that the page is opened.
    confirms: bool,
}

impl BrowserOpener for PageOpener {
    fn open(&self, page: SignInPage) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async move {
            let _paused = self.progress.pause();
            let confirms = self.confirms;
            tokio::task::spawn_blocking(move || open(&page, confirms)).await.unwrap_or(false)
        })
    }
}

fn open(page: &SignInPage, confirms: bool) -> bool {
    const TITLE: Style = AnsiColor::Cyan.on_default().bold();
    let mut stderr = Output::stderr();
    let title = format!("{} requires sign-in at {}.", visible_line(&page.server), visible_line(&page.host));
    writeln!(stderr.out, "{}", stderr.styled(TITLE, &title)).ok();
    // Reading a line writes to the terminal as well.
    drop(stderr);
    if confirms && !terminal::confirm("Enter opens the page in your browser, Ctrl-D cancels: ") {
        return false;
    }
    let opened = webbrowser::open(&page.url);
    let mut stderr = Output::stderr();
    let note = match opened {
        Ok(()) => "The page opens in your browser. Otherwise open it yourself:",
        Err(_) => "Cannot start a browser. Open this page:",
    };
    writeln!(stderr.out, "{note}\n\n  {}\n", visible_line(&page.url)).ok();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_servers_are_completed() {
        let usual = |url: &str| usual_endpoint(&Endpoint::url(url)).map(|endpoint| endpoint.to_string());
        for url in ["http://localhost:8080", "http://localhost:8080/"] {
            assert_eq!(usual(url).as_deref(), Some("http://localhost:8080/mcp"), "{url}");
        }
        assert_eq!(usual("https://a.example/prompts/").as_deref(), Some("https://a.example/prompts/mcp"));
        assert_eq!(usual_url("https://a.example/prompts"), None, "what is written to files is never guessed");
        for url in ["http://localhost/x/mcp", "http://localhost/mcp", "http://localhost?a=/", "http://localhost#/"] {
            assert_eq!(usual(url), None, "{url}");
        }
        assert_eq!(other_endpoint("https://example.com/sse").as_deref(), Some("https://example.com/mcp"));
        assert_eq!(other_endpoint("https://example.com/mcp"), None);
    }
}
