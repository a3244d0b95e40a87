//! `promptshelf serve`: serves a library to MCP clients, on stdio or over HTTP.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anstyle::Style;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use promptshelf_server::{CheckedSetting, Hangups, Library, Server, Start, check_settings};

use crate::{
    args::LogFormat,
    command_line, environment,
    exit::{Exit, Failure},
    launcher, observe,
    output::{Output, count, count_all},
    settings::{self, Arguments, FLAGS, Flag, Live, ServedLibrary, ServerFileLocation, Settings, descriptions},
    source::HERE,
};

const SERVE_EXAMPLES: &str = "\
Examples:
  promptshelf serve prompts                       HTTP on a terminal or by settings, else stdio
  promptshelf serve prompts --stdio               the mode that clients start
  promptshelf serve prompts --http 127.0.0.1:0    on a free port
  promptshelf serve prompts --http 0.0.0.0:80 --allow-remote \\
    --allow-host prompts.example.com
  promptshelf serve sqlite:team.db#staging        a channel of a store
  promptshelf serve prompts --edit                the page edits the folder
  promptshelf serve prompts --open                opens the page in a browser
  promptshelf serve 'git+https://git.example.com/prompts.git#main:team'";

const SERVE_SETTINGS: &str = "\
Settings are keys of server.toml, and some also flags and variables. A flag
overrides the variable, and the variable overrides the file. Paths in the file
are relative to its folder. `promptshelf schema server` prints the JSON Schema
of the file, with a description of each key.

Clients can occupy at most 128 KiB of memory for each connection, twice
request-bytes, and response-bytes (768 MiB by default), in addition to the
library and the prompts that are rendered at the time. There are fewer
connections if the system permits fewer open files.

Environment only:
  PROMPTSHELF_STORE             the store, if LIBRARY is left out; keeps its
                                password out of the list of processes
  PROMPTSHELF_CHANNELS          the channels next to the default one
  PROMPTSHELF_CONFIG            the path of server.toml
  PROMPTSHELF_STATE_KEY         a secret of at least 16 bytes that several
                                servers share, so that a guided prompt can start
                                on one and end on another
  PROMPTSHELF_STATE_KEY_PREVIOUS
                                a key that is accepted too, during a rotation
A secret can be in a file: PROMPTSHELF_STORE_FILE, PROMPTSHELF_STATE_KEY_FILE,
PROMPTSHELF_STATE_KEY_PREVIOUS_FILE; for other commands PROMPTSHELF_TOKEN_FILE
and PROMPTSHELF_CLIENT_SECRET_FILE";

/// Returns the keys of `server.toml` that a variable replaces, one a line.
fn keys() -> String {
    let line = |flag: &settings::Flag| format!("  {:<30}{}\n", flag.key.join("."), flag.variable());
    format!("Variables in place of keys:\n{}", settings::FLAGS.iter().map(line).collect::<String>())
}

pub(super) fn serve_long_help() -> String {
    format!("{SERVE_EXAMPLES}\n\n{SERVE_SETTINGS}\n\n{}", keys())
}

#[derive(Clone, Debug, Default, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    pub(crate) library: ServedObject,

    /// The operator's settings [env: PROMPTSHELF_CONFIG] [default: ~/.config/promptshelf/server.toml, else
    /// /etc/promptshelf/server.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Serve a single client on stdin and stdout; the default unless stdin is a terminal or the settings name an address
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,

    /// Let people change the files of the folder on the page: on this machine only, or after sign-in with the scope
    /// `library:publish`
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) edit: bool,

    /// Open the page in the browser of this machine
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) open: bool,

    /// Open everything that the settings name (library, sources, store, certificates, keys of the issuer, names of hosts),
    /// print what was found, and exit: with 0 if a server can start, else with 4
    #[arg(long, conflicts_with_all = ["stdio", "edit", "open"])]
    pub(crate) check: bool,

    /// Exit if the library has errors, instead of serving the valid prompts
    #[arg(long)]
    pub(crate) strict: bool,

    /// Let models find and use the prompts with `tool: true` through the tools find_prompt and use_prompt
    #[arg(long)]
    pub(crate) tools: bool,

    /// Also serve this channel of the store, at /channels/NAME/mcp; can be repeated
    #[arg(long = "channel", value_name = "NAME", help_heading = "Channels of a store")]
    pub(crate) channels: Vec<String>,

    #[command(flatten)]
    pub(crate) flags: SettingFlags,
}

impl ServeArguments {
    pub(crate) fn settings(&self) -> Arguments {
        let library = (!self.library.is_omitted()).then(|| self.library.word().to_owned());
        Arguments { library, channels: self.channels.clone(), tools: self.tools, flags: self.flags.0.clone() }
    }
}

/// The flags of settings in `server.toml`.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingFlags(BTreeMap<&'static str, Vec<String>>);

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        command.args(FLAGS.iter().map(|flag| {
            let argument = Arg::new(flag.name).long(flag.name).help_heading(flag.heading);
            match (flag.value, flag.is_list) {
                ("", _) => argument.action(ArgAction::SetTrue),
                (value, false) => argument.value_name(value).action(ArgAction::Set),
                (value, true) => argument.value_name(value).action(ArgAction::Append),
            }
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        SettingFlags::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<SettingFlags, clap::Error> {
        let words = |flag: &Flag| match flag.value {
            "" => matches.get_flag(flag.name).then(|| vec!["true".to_owned()]),
            _ => Some(matches.get_many::<String>(flag.name)?.cloned().collect()),
        };
        Ok(SettingFlags(FLAGS.iter().filter_map(|flag| Some((flag.name, words(flag)?))).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = SettingFlags::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Adds the descriptions of settings to the help of `serve`. They are derived from the schema of `server.toml`, which takes
/// a part of the time to the first response of a server that a client starts.
pub(crate) fn describe(command: Command) -> Command {
    command.mut_subcommand("serve", |serve| {
        let described = descriptions().into_iter();
        let serve = described.fold(serve, |serve, (name, text)| serve.mut_arg(name, |argument| argument.help(text)));
        serve.after_long_help(serve_long_help())
    })
}

/// The library of `serve`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServedObject {
    /// The folder of prompt files, a git repository: git+https://…[#REF[:PATH]] (or git+ssh, git+file), or a store and its
    /// channel: sqlite:FILE[#CHANNEL] or postgres://…[#CHANNEL]
    /// [env: PROMPTSHELF_STORE] [default: the current folder]
    #[arg(value_name = "LIBRARY", conflicts_with = "named")]
    folder: Option<PathBuf>,

    /// The same as LIBRARY
    #[arg(id = "named", short = 'l', long = "library", value_name = "LIBRARY", hide = true)]
    named: Option<PathBuf>,
}

impl ServedObject {
    fn word(&self) -> &Path {
        self.folder.as_deref().or(self.named.as_deref()).unwrap_or(Path::new(HERE))
    }

    pub(crate) fn is_omitted(&self) -> bool {
        self.folder.is_none() && self.named.is_none()
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessContext {
    pub(crate) stdin_is_terminal: bool,
    pub(crate) log_format: LogFormat,
    pub(crate) has_traces: bool,
}

/// Checks everything that a server with these arguments opens. Without a terminal it is meant to listen, too.
async fn check(arguments: &ServeArguments, environment: &impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
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
    if arguments.check {
        return check(arguments, &environment).await;
    }
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
