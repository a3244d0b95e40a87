//! `promptshelf source`: the state of the sources in `server.toml`, and commands about them.

use std::{
    io::Write as _,
    path::PathBuf,
    time::{Duration, Instant},
};

use anstyle::Style;
use clap::{Args, Subcommand};
use promptshelf_upstream::{Definition, DefinitionChange};
use serde_json::Value;

use crate::{
    commands::channels::{refresh_remote_source, remote_sources},
    exit::{Exit, Failure},
    output::{Output, count, list_json, pretty_json},
    settings::{ConfiguredSource, ServerFileLocation, SourcePlace},
    sources::{OpenSources, SharedSettings, StateFolder, approvals, git_source, to_json},
};

const SOURCE_EXAMPLES: &str = "\
Examples:
  promptshelf source list --config server.toml --json
  promptshelf source refresh platform --config server.toml
  promptshelf source list --url https://prompts.example.com
  promptshelf source approve partner --config server.toml

A server and these commands share a folder of state below XDG_STATE_HOME: run
both as the same user on one machine. Without a running server, `list` reads
all sources itself.";

/// Commands about the sources of `server.toml`.
#[derive(Debug, Subcommand)]
pub(crate) enum SourceCommand {
    /// List the sources with their state: that of the running server, or else read now
    #[command(after_help = SOURCE_EXAMPLES)]
    List(SourceListArguments),
    /// Let a running server read a source again
    Refresh(SourceRefreshArguments),
    /// Show the definitions of another MCP server that wait, and approve them
    Approve(SourceArguments),
    /// Stay at a commit of a git source, or follow its reference again
    Pin(SourcePinArguments),
    /// Return to the commit of a git source that was served before
    Rollback(SourceNameArguments),
}

/// The settings with the sources.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourceConfig {
    /// The operator's settings [env: PROMPTSHELF_CONFIG] [default: ~/.config/promptshelf/server.toml, else
    /// /etc/promptshelf/server.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// The settings with the sources, or a server that serves them.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServerPlace {
    #[command(flatten)]
    pub(crate) config: SourceConfig,

    /// A running server, such as https://prompts.example.com; a token comes from PROMPTSHELF_TOKEN
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    pub(crate) url: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SourceListArguments {
    #[command(flatten)]
    pub(crate) place: ServerPlace,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SourceRefreshArguments {
    /// The name of the source
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) place: ServerPlace,
}

#[derive(Debug, Args)]
pub(crate) struct SourceNameArguments {
    /// The name of the source
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) config: SourceConfig,
}

#[derive(Debug, Args)]
pub(crate) struct SourceArguments {
    /// The name of the source
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) config: SourceConfig,

    /// Show the differences without approving them
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SourcePinArguments {
    /// The name of the source
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The full id of the commit [default: follow the reference again]
    #[arg(value_name = "COMMIT")]
    pub(crate) commit: Option<String>,

    #[command(flatten)]
    pub(crate) config: SourceConfig,
}

/// The time that a source may take to answer, if no server runs.
const READ_TIME: Duration = Duration::from_secs(10);

/// The time until a running server has taken a request.
const REQUEST_TIME: Duration = Duration::from_secs(10);

pub(crate) async fn run(command: &SourceCommand) -> Result<(), Failure> {
    match command {
        SourceCommand::List(arguments) => {
            if let Some(url) = &arguments.place.url {
                return print_states(&remote_sources(url).await?, arguments.json);
            }
            list(&Configured::read(&arguments.place.config)?, arguments.json).await
        }
        SourceCommand::Refresh(arguments) => {
            let name = &arguments.name;
            if let Some(url) = &arguments.place.url {
                refresh_remote_source(url, name).await?;
                return say(&format!("The server reads the source {name} again."));
            }
            refresh(&Configured::read(&arguments.place.config)?, name).await
        }
        SourceCommand::Approve(arguments) => approve(arguments),
        SourceCommand::Pin(arguments) => {
            let configured = Configured::read(&arguments.config)?;
            let git = git_source(configured.find(&arguments.name)?, configured.state.as_ref())?;
            git.pin(arguments.commit.as_deref()).await.map_err(git_failure)?;
            configured.request_refresh(&arguments.name)?;
            match &arguments.commit {
                Some(commit) => say(&format!("The source {} stays at commit {commit}.", arguments.name)),
                None => say(&format!("The source {} follows its reference.", arguments.name)),
            }
        }
        SourceCommand::Rollback(arguments) => {
            let configured = Configured::read(&arguments.config)?;
            let git = git_source(configured.find(&arguments.name)?, configured.state.as_ref())?;
            let commit = git.rollback().await.map_err(git_failure)?;
            configured.request_refresh(&arguments.name)?;
            let name = &arguments.name;
            say(&format!("The source {name} stays at commit {commit}. `promptshelf source pin {name}` ends this."))
        }
    }
}

fn git_failure(error: promptshelf_git::GitError) -> Failure {
    Failure::new(Exit::Failed, error.to_string())
}

fn say(line: &str) -> Result<(), Failure> {
    let mut output = Output::stdout();
    let line = output.line(line).into_owned();
    writeln!(output.out, "{line}")?;
    output.out.flush()?;
    Ok(())
}

/// The sources of a `server.toml`.
struct Configured {
    sources: Vec<ConfiguredSource>,
    state: Option<StateFolder>,
    place: String,
}

impl Configured {
    fn read(config: &SourceConfig) -> Result<Configured, Failure> {
        let environment = crate::environment::variable;
        let location = ServerFileLocation::find(config.config.as_deref(), &environment);
        let mut file = location.load()?;
        let sources = file.sources();
        file.check()?;
        let Some(place) = file.path().map(|path| path.display().to_string()) else {
            let candidates: Vec<_> = location.candidates().iter().map(|path| path.display().to_string()).collect();
            let message = format!("no settings file at {}", candidates.join(" or "));
            return Err(Failure::new(Exit::NotFound, message).help("name the file with --config"));
        };
        if sources.is_empty() {
            return Err(Failure::new(Exit::NotFound, format!("{place} has no sources"))
                .help("add them as [[source]], or name another file with --config"));
        }
        let state = file.path().and_then(StateFolder::of);
        Ok(Configured { sources, state, place })
    }

    fn find(&self, name: &str) -> Result<&ConfiguredSource, Failure> {
        self.sources.iter().find(|source| source.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.sources.iter().map(|source| source.name.as_str()).collect();
            Failure::new(Exit::NotFound, format!("{} has no source with the name {name}", self.place))
                .help(format!("its sources are {}", known.join(", ")))
        })
    }

    /// Asks a running server to look at a source at once. It would see the change at its next poll.
    fn request_refresh(&self, name: &str) -> Result<(), Failure> {
        match self.state.as_ref().filter(|_| self.served().is_some()) {
            Some(state) => Ok(state.request_refresh(name)?),
            None => Ok(()),
        }
    }

    fn served(&self) -> Option<Value> {
        self.state.as_ref().and_then(StateFolder::served)
    }
}

/// Prints the states that a running server has, or else those that reading the sources now gives.
async fn list(configured: &Configured, is_json: bool) -> Result<(), Failure> {
    let states = match configured.served() {
        Some(states) => states,
        None => {
            let shared = SharedSettings { shows_provenance: true, ..SharedSettings::default() };
            let open = OpenSources::open(&configured.sources, &shared, configured.state.as_ref())?;
            open.set.settled(READ_TIME).await;
            to_json(&open.set.statuses())
        }
    };
    print_states(&states, is_json)
}

fn print_states(states: &Value, is_json: bool) -> Result<(), Failure> {
    let mut output = Output::stdout();
    if is_json {
        let sources = states["sources"].as_array().into_iter().flatten().cloned();
        writeln!(output.out, "{}", pretty_json(&list_json(sources)))?;
    } else {
        let empty = Vec::new();
        for source in states["sources"].as_array().unwrap_or(&empty) {
            let text = |key: &str| source[key].as_str().unwrap_or_default();
            let name = output.styled(Style::new().bold(), &output.line(text("name")));
            let prompts = usize::try_from(source["prompts"].as_u64().unwrap_or_default()).unwrap_or(usize::MAX);
            let mut facts = vec![text("kind").to_owned(), text("state").to_owned(), count(prompts, "prompt")];
            facts.extend(source["revision"].as_u64().map(|revision| format!("revision {revision}")));
            facts.extend(source["commit"].as_str().map(|commit| format!("commit {}", &commit[..commit.len().min(12)])));
            facts.extend(source["behindSince"].as_str().map(|since| format!("since {since}")));
            let facts = output.line(&facts.join(", ")).into_owned();
            writeln!(output.out, "{name} {}", output.dimmed(&facts))?;
            if let Some(problem) = source["problem"].as_str() {
                let problem = output.line(problem).into_owned();
                writeln!(output.out, "    {problem}")?;
            }
            if let Some(warning) = source["warning"].as_str() {
                let warning = output.line(&format!("warning: {warning}")).into_owned();
                writeln!(output.out, "    {warning}")?;
            }
            for left_out in source["leftOut"].as_array().unwrap_or(&empty).iter().filter_map(Value::as_str) {
                let line = output.line(&format!("left out: {left_out}")).into_owned();
                writeln!(output.out, "    {line}")?;
            }
        }
    }
    output.out.flush()?;
    Ok(())
}

/// Asks the running server to read a source again, and waits until it has taken the request.
async fn refresh(configured: &Configured, name: &str) -> Result<(), Failure> {
    configured.find(name)?;
    let state = configured.state.as_ref().filter(|_| configured.served().is_some());
    let Some(state) = state else {
        let message = format!("no server with the settings {} runs here as this user", configured.place);
        return Err(Failure::new(Exit::NotFound, message).help("a server reads all sources when it starts"));
    };
    state.request_refresh(name)?;
    let (request, deadline) = (state.path("refresh").join(name), Instant::now() + REQUEST_TIME);
    while request.exists() {
        if Instant::now() > deadline {
            return Err(Failure::new(Exit::TimedOut, "the server did not take the request"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    say(&format!("The server reads the source {name} again."))
}

fn approve(arguments: &SourceArguments) -> Result<(), Failure> {
    let configured = Configured::read(&arguments.config)?;
    let source = configured.find(&arguments.name)?;
    match &source.place {
        SourcePlace::Mcp(place) if place.approves_changes => {}
        SourcePlace::Mcp(_) => {
            let message = format!("changes of the source {} need no approval", source.name);
            return Err(Failure::new(Exit::Usage, message).help("add `approve-changes = true` to it"));
        }
        _ => {
            let message = format!("the source {} is not another MCP server", source.name);
            return Err(Failure::new(Exit::Usage, message));
        }
    }
    let approvals = approvals(source, configured.state.as_ref())?;
    let failed = |error: std::io::Error| Failure::new(Exit::Failed, format!("cannot read or write approvals: {error}"));
    let changes = approvals.pending().map_err(failed)?;
    if changes.is_empty() {
        return say(&format!("No definition of the source {} waits for an approval.", source.name));
    }
    let mut output = Output::stdout();
    for change in &changes {
        let shown = output.text(&difference(change)).into_owned();
        write!(output.out, "{shown}")?;
    }
    output.out.flush()?;
    if arguments.dry_run {
        return say(&format!("{} would be approved.", count(changes.len(), "definition")));
    }
    approvals.approve(&changes).map_err(failed)?;
    say(&format!("Approved {}.", count(changes.len(), "definition")))
}

fn difference(change: &DefinitionChange) -> String {
    let lines = |definition: &Definition| pretty_json(&serde_json::to_value(definition).unwrap_or_default()) + "\n";
    let before = change.before.as_ref().map(lines).unwrap_or_default();
    let after = lines(&change.after);
    let kind = if change.before.is_some() { "changed" } else { "new" };
    let difference = similar::TextDiff::configure().timeout(Duration::from_secs(2)).diff_lines(&before, &after);
    format!("{} ({kind})\n{}", change.name, difference.unified_diff().context_radius(2))
}
