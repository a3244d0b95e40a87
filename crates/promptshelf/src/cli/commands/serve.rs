//! `promptshelf serve`: serves a library to MCP clients, on stdio or over HTTP.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anstyle::Style;
use promptshelf_server::{CheckedSetting, Hangups, Library, Server, Start, check_settings};

use crate::{
    args::{LogFormat, ServeArguments},
    command_line, environment,
    exit::{Exit, Failure},
    launcher, observe,
    output::{Output, count, count_all},
    settings::{self, Live, ServedLibrary, ServerFileLocation, Settings},
};

#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessContext {
    pub(crate) stdin_is_terminal: bool,
    pub(crate) log_format: LogFormat,
    pub(crate) has_traces: bool,
}

/// Checks everything that a server with these arguments opens. Without a terminal it is meant to listen, too.
pub(crate) async fn check(
    arguments: &ServeArguments,
    environment: &impl Fn(&str) -> Option<String>,
) -> Result<(), Failure> {
    let location = ServerFileLocation::find(arguments.config.as_deref(), environment);
    let (settings, unusable) = Settings::read_for_check(&location, &arguments.settings(), environment)?;
    warn(arguments, &settings, environment);
    let start = Start {
        over_http: !arguments.stdio,
        edits: arguments.edit,
        strict: arguments.strict,
        state_key: settings::state_key(environment)?,
        ..Start::default()
    };
    print_check(&check_settings(&settings, &unusable, &start).await?)
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
    refuse_accident(arguments, &settings, over_http, stdin_is_terminal, home)?;
    let place = settings.fixed.library.to_string();
    let folder = settings.fixed.library.folder().map(Path::to_owned);
    let server = Server::start(settings, start).await.map_err(|failure| match folder {
        Some(folder) if failure.exit == Exit::Strict => {
            let folder = command_line::path(&folder);
            failure.help(format!("`promptshelf check {folder}` shows each with its line"))
        }
        _ => failure,
    })?;
    if arguments.tools && !has_tools(server.library()) {
        tracing::warn!("{NO_TOOLS}");
    }
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

fn print_check(found: &[CheckedSetting]) -> Result<(), Failure> {
    let mut output = Output::stdout();
    let width = found.iter().map(|setting| setting.what.len()).max().unwrap_or_default();
    for setting in found {
        let (word, reason) = match &setting.outcome {
            Ok(reason) => ("ok", reason),
            Err(reason) => ("FAILED", reason),
        };
        let place = if setting.place.is_empty() { String::new() } else { format!("{}: ", setting.place) };
        let line = format!("{word:6}  {:width$}  {place}{reason}", setting.what);
        let line = output.line(&line).into_owned();
        writeln!(output.out, "{line}")?;
    }
    output.out.flush()?;
    match found.iter().filter(|setting| setting.outcome.is_err()).count() {
        0 => Ok(()),
        failed => {
            let of = found.len();
            Err(Failure::new(Exit::Settings, format!("{failed} of {of} things that the settings name cannot be used")))
        }
    }
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

/// What `--tools` says about a library for which it does nothing.
pub(in crate::commands) const NO_TOOLS: &str =
    "no prompt has `tool: true`, so that models find none: write it in the prompts that they may use";

pub(in crate::commands) fn has_tools(library: &Library) -> bool {
    library.catalog().prompts().iter().any(|prompt| prompt.definition().tool)
}

struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    fn listen() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    #[cfg(not(unix))]
    fn listen() -> io::Result<Signals> {
        Ok(Signals {})
    }

    #[cfg(unix)]
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for the first signal. The next one then ends the program without waiting for pending requests.
    async fn first(mut self) {
        self.next().await;
        tracing::info!("shutting down");
        tokio::spawn(async move {
            self.next().await;
            std::process::exit(Exit::Failed as i32);
        });
    }
}

const MANIFEST: &str = "promptshelf.toml";

/// Refuses a folder that was named nowhere, over HTTP without a person at a terminal; and the file system's root and home
/// folders, unless they are libraries or a server over HTTP was given their path.
fn refuse_accident(
    arguments: &ServeArguments,
    settings: &Settings,
    over_http: bool,
    is_terminal: bool,
    home: Option<PathBuf>,
) -> Result<(), Failure> {
    let ServedLibrary::Folder(folder) = &settings.fixed.library else { return Ok(()) };
    let is_named = !arguments.library.is_omitted();
    if folder.join(MANIFEST).exists() || (is_named && over_http) {
        return Ok(());
    }
    let shown = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let shown = shown.display();
    let failure = match () {
        () if is_too_wide(folder, home.as_deref()) => {
            Failure::new(Exit::Usage, format!("{shown} is not served: it is the root of a disk, or has home folders"))
        }
        () if is_named || !over_http || is_terminal => return Ok(()),
        () => Failure::new(
            Exit::Usage,
            format!(
                "nothing says what to serve: there is no LIBRARY, no PROMPTSHELF_STORE, no [[source]] in server.toml, and no \
                 {MANIFEST} in {shown}"
            ),
        ),
    };
    let mistyped = environment::unknown().into_iter().find(|variable| variable.nearest.is_some());
    Err(match mistyped {
        Some(variable) => failure.help(variable.to_string()),
        None => failure.help("name the folder or the store: `promptshelf serve FOLDER`"),
    })
}

/// Whether a folder is the file system's root, a home folder, or contains the home folder.
pub(in crate::commands) fn is_too_wide(folder: &Path, home: Option<&Path>) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    let home = home.and_then(|home| home.canonicalize().ok());
    let homes = ["/home", "/Users", "/root"].map(Path::new);
    folder.parent().is_none()
        || home.is_some_and(|home| home.starts_with(&folder))
        || homes.contains(&folder.as_path())
        || folder.parent().is_some_and(|parent| homes[..2].contains(&parent))
}

/// The name for clients if the library has none.
const DEFAULT_NAME: &str = "promptshelf";

struct Announcement<'a> {
    library: &'a Library,
    /// The library's place, without a password.
    place: String,
    channels: Vec<String>,
    log_format: LogFormat,
}

#[derive(Clone, Copy)]
enum SignInHint {
    /// Sign-in is not configured.
    None,
    Token,
    Browser,
}

impl SignInHint {
    fn of(http: &Live) -> SignInHint {
        match &http.sign_in {
            None => SignInHint::None,
            Some(sign_in) if sign_in.issuer.is_some() => SignInHint::Browser,
            Some(_) => SignInHint::Token,
        }
    }
}

impl Announcement<'_> {
    fn on_stdio(&self, terminal: bool) {
        let mut block = format!("  serving on stdio: {}\n", self.summary());
        if terminal {
            // Writing into a string cannot fail.
            let _ = writeln!(
                block,
                "  MCP clients start this mode. To use it in a browser: {} serve --open {}",
                launcher::command(),
                command_line::path(Path::new(&self.place))
            );
        }
        self.print("serving on stdio", &block);
    }

    /// Returns the URL of the page.
    fn over_http(&self, bound: SocketAddr, http: &Live) -> String {
        let url = url(bound, http);
        let name = self.name();
        let listening = format!("listening on {url}");
        let mut block = format!("  {}\n  {listening}\n\n", self.summary());
        // Clients use the public URL of the endpoint. With several channels `resource` is the origin instead.
        let public = http.sign_in.as_ref().and_then(|sign_in| sign_in.resource.clone());
        let url = public.filter(|public| public.ends_with("/mcp")).unwrap_or(url);
        let page = url.trim_end_matches("mcp");
        let header = SignInHint::of(http);
        let (flag, vs_code, json) = match header {
            SignInHint::Token => (
                " --header \"Authorization: Bearer $PROMPTSHELF_TOKEN\"",
                ",\"headers\":{\"Authorization\":\"Bearer ${env:PROMPTSHELF_TOKEN}\"}",
                ",\"headers\":{\"Authorization\":\"Bearer ${PROMPTSHELF_TOKEN}\"}",
            ),
            SignInHint::None | SignInHint::Browser => ("", "", ""),
        };
        // Writing into a string cannot fail.
        let _ = write!(
            block,
            "  in a browser:   {page}\n  \
               Claude Code:    claude mcp add --transport http {name} {url}{flag}\n  \
               VS Code:        code --add-mcp '{{\"name\":\"{name}\",\"type\":\"http\",\"url\":\"{url}\"{vs_code}}}'\n  \
               other clients:  {{\"mcpServers\":{{\"{name}\":{{\"type\":\"http\",\"url\":\"{url}\"{json}}}}}}}\n"
        );
        match header {
            SignInHint::None => {}
            SignInHint::Token => block.push_str(
                "  sign-in:        set PROMPTSHELF_TOKEN to a token of `promptshelf token new`, or write it in its place\n",
            ),
            SignInHint::Browser => {
                let _ = writeln!(
                    block,
                    "  sign-in:        clients open it in a browser (Claude Code: /mcp); in a terminal: {} sign-in {url}",
                    launcher::command()
                );
            }
        }
        for channel in &self.channels {
            let _ = writeln!(block, "  channel:        {page}channels/{channel}/mcp");
        }
        self.print(&listening, &block);
        if bound.ip().is_unspecified() && http.hosts().is_empty() {
            tracing::warn!(
                "only requests to localhost are accepted: set the host name of this server with --allow-host"
            );
        }
        page.to_owned()
    }

    fn print(&self, line: &str, block: &str) {
        match self.log_format {
            LogFormat::Json => tracing::info!(summary = self.summary(), "{line}"),
            LogFormat::Text => {
                let mut output = Output::stderr();
                let title = output.styled(Style::new().bold(), concat!("promptshelf ", env!("CARGO_PKG_VERSION")));
                let place = output.line(&self.place).into_owned();
                // A closed stderr does not keep the server from starting.
                write!(output.out, "{title} serves {place}\n{block}").ok();
                output.out.flush().ok();
            }
        }
    }

    fn summary(&self) -> String {
        let catalog = self.library.catalog();
        let resources = catalog.resources().len() + catalog.templates().len();
        format!(
            "{}, {}, {}",
            count(catalog.prompts().len(), "prompt"),
            count(resources, "resource"),
            count_all(&self.library.findings())
        )
    }

    /// The library's name, reduced to characters that need no quoting in a shell.
    fn name(&self) -> String {
        let catalog = self.library.catalog();
        let named = catalog.about().name.as_deref().unwrap_or_default();
        let name: String = named.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).collect();
        let name = name.trim_start_matches('-');
        if name.is_empty() { DEFAULT_NAME.to_owned() } else { name.to_owned() }
    }
}

/// The URL for clients. An unspecified address such as 0.0.0.0 is replaced by a host name.
fn url(bound: SocketAddr, http: &Live) -> String {
    let scheme = if http.tls.is_some() { "https" } else { "http" };
    if !bound.ip().is_unspecified() {
        return format!("{scheme}://{bound}/mcp");
    }
    let host = http.hosts().into_iter().next().unwrap_or_else(|| "localhost".to_owned());
    format!("{scheme}://{host}:{}/mcp", bound.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-324
    #[test]
    fn root_and_home_folders_are_too_wide_and_folders_in_them_are_not() {
        let home = tempfile::tempdir().expect("a folder");
        let prompts = home.path().join("prompts");
        std::fs::create_dir(&prompts).expect("a folder");
        let wide = |folder: &Path| is_too_wide(folder, Some(home.path()));
        assert!(wide(Path::new("/")) && wide(home.path()) && wide(&prompts.join("..")));
        assert!(home.path().parent().is_none_or(wide), "it has the home folder");
        assert!(!wide(&prompts) && !wide(Path::new("no-such-folder")));
    }
}
