//! `promptshelf use`: an interactive session with the prompts of several servers.
//!
//! Text of servers is printed only through `output::visible`. Nothing of a server is run, opened or fetched unless the
//! user types the command for it.

mod actions;
mod assist;
mod call;
mod preview;
mod session;
mod updates;

use std::{
    collections::{BTreeMap, HashMap},
    env,
    ffi::OsStr,
    fs,
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use clap::Args;
use futures_util::future::join_all;
use parking_lot::RwLock;
use promptshelf_client::{Arguments, Client, ClientError, ElicitationHandler, Endpoint, PromptInfo, PromptResult};
use serde_json::{Value, json};
use similar::TextDiff;

use crate::{
    args::client::{Timeout, with_token},
    commands::{markdown, saved::Saved},
    connect::{LegacyServers, Options, connect},
    exit::{Exit, Failure},
    output::visible_line,
    source::{HERE, Source, is_url},
    state::{self, digest},
    terminal::{Progress, TerminalForms},
};

pub(crate) use self::session::chat;

const USE_EXAMPLES: &str = "\
Examples:
  promptshelf use prompts
  promptshelf use prompts https://example.com/mcp github
  promptshelf use -- npx -y @modelcontextprotocol/server-everything";

const CHAT_INPUT: &str = "\
Input:
  /name                       use a prompt; a form requests missing values
  /name language=rust code='fn main() {}'
  /name code=@src/main.rs     read a value from a file; quotes: use it verbatim
  show N, follow N            show a whole message, or read a link's resource
  copy, save FILE, | COMMAND  copy, save or pipe the messages
  prompts, resources, read URI, servers, help, quit

Keys: Tab completes, Ctrl-X Ctrl-E opens $EDITOR, Enter inside quotes begins a
new line. In a form, Shift-Tab goes back, Ctrl-D declines and Ctrl-C cancels.

History is stored in $XDG_STATE_HOME/promptshelf, by default in
~/.local/state/promptshelf.";

pub(super) fn use_long_help() -> String {
    format!("{USE_EXAMPLES}\n\n{CHAT_INPUT}")
}

#[derive(Debug, Args)]
#[command(after_help = USE_EXAMPLES, after_long_help = use_long_help())]
pub(crate) struct UseArguments {
    /// Libraries, URLs, or names of servers in the configuration of Claude Code (.mcp.json) or VS Code [default: the current folder]
    #[arg(value_name = "LIBRARY")]
    pub(crate) targets: Vec<String>,

    /// A command that starts a server; last, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,

    #[command(flatten)]
    pub(crate) timeout: Timeout,

    /// Store nothing: no history, and no differences of changed prompts
    #[arg(long)]
    pub(crate) forget: bool,
}

impl UseArguments {
    /// Returns the sources with short names. A token of the environment is added only if there is a single URL, so that
    /// no other server receives it.
    pub(crate) fn sources(&self) -> Result<Vec<(String, Source)>, Failure> {
        let mut sources = Vec::new();
        for word in &self.targets {
            sources.push((name_of(word), Source::parse(OsStr::new(word))?));
        }
        if let [program, ..] = self.command.as_slice() {
            // After a launcher such as npx, the last word names the server.
            let named = self.command.iter().rev().find(|word| !word.starts_with('-')).unwrap_or(program);
            sources.push((name_of(named), Source::Server(Endpoint::command(&self.command))));
        }
        if sources.is_empty() {
            sources.push(("here".to_owned(), Source::Folder(PathBuf::from(HERE))));
        }
        if let [url] = self.targets.iter().filter(|word| is_url(word)).collect::<Vec<_>>().as_slice() {
            for (_, source) in &mut sources {
                if let Source::Server(endpoint) = source
                    && endpoint.to_string() == **url
                {
                    *endpoint = with_token(endpoint.clone())?;
                }
            }
        }
        Ok(sources)
    }
}

fn name_of(word: &str) -> String {
    let inner = word.split_once("://").map_or(word, |(_, rest)| rest.split('/').next().unwrap_or(rest));
    let last = inner.trim_end_matches('/').rsplit('/').next().unwrap_or(inner);
    let name: String =
        last.chars().map(|c| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' }).collect();
    if name.trim_matches(['.', '-']).is_empty() { "here".to_owned() } else { name }
}

#[derive(Clone)]
struct Server {
    /// The name in this chat, which the server cannot choose.
    name: String,
    client: Client,
    /// The library, if it is one of this machine: it knows more than the protocol tells.
    library: Option<promptshelf_server::Library>,
    forms: Arc<TerminalForms>,
    progress: Progress,
}

/// Connects to all servers at the same time. Returns the connected ones, and a message for each of the others.
async fn connect_all(arguments: &UseArguments) -> Result<(Vec<Server>, Vec<String>), Failure> {
    let sources = with_unique_names(arguments.sources()?);
    let connecting = sources.iter().map(async |(name, source)| {
        let progress = Progress::new(visible_line(name).into_owned());
        let forms = Arc::new(TerminalForms::new(progress.clone()));
        let elicitation: Arc<dyn ElicitationHandler> = Arc::clone(&forms) as _;
        let usual = Options::new(arguments.timeout.get(), &progress);
        let mut options = Options { elicitation: Some(elicitation), watch: true, ..usual };
        if arguments.forget {
            options.legacy_servers = LegacyServers::disabled();
        }
        let connection = connect(source, options, &progress).await?;
        let library = connection.library.map(|open| open.library);
        Ok::<_, Failure>(Server { name: name.clone(), client: connection.client, library, forms, progress })
    });
    let (mut servers, mut failures) = (Vec::new(), Vec::new());
    for ((name, _), connected) in sources.iter().zip(join_all(connecting).await) {
        match connected {
            Ok(server) => servers.push(server),
            Err(failure) => failures.push((name, failure)),
        }
    }
    if servers.is_empty() {
        let none = || Failure::new(Exit::Usage, "expected a server to connect to");
        return Err(failures.into_iter().next().map_or_else(none, |(_, failure)| failure));
    }
    Ok((servers, failures.into_iter().map(|(name, failure)| format!("{name}: {failure}")).collect()))
}

/// Numbers names that occur more than once. `a-` counts as an occurrence of `a`, so that no number clashes.
fn with_unique_names(sources: Vec<(String, Source)>) -> Vec<(String, Source)> {
    let mut unique: Vec<(String, Source)> = Vec::new();
    for (name, source) in sources {
        let prefix = format!("{name}-");
        let count = unique.iter().filter(|(known, _)| *known == name || known.starts_with(&prefix)).count();
        unique.push((if count == 0 { name } else { format!("{name}-{}", count + 1) }, source));
    }
    unique
}

// Images in terminals that support them.
// The output is an escape sequence around base64 that is encoded here, so that an image cannot contain control
// characters.

/// The largest image that is shown, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// The longest chunk of kitty's protocol, in bytes.
const CHUNK_BYTES: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// kitty and Ghostty: PNG only.
    Kitty,
    /// iTerm2 and WezTerm.
    Iterm,
}

impl Protocol {
    /// Detects the protocol of this terminal. None inside of a multiplexer, which would forward only a part.
    fn of_terminal() -> Option<Protocol> {
        let is = |name: &str, value: &str| env::var(name).is_ok_and(|set| set == value);
        let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        if set("TMUX") || set("STY") {
            return None;
        }
        if is("TERM", "xterm-kitty") || is("TERM", "xterm-ghostty") || is("TERM_PROGRAM", "ghostty") {
            return Some(Protocol::Kitty);
        }
        (is("TERM_PROGRAM", "iTerm.app") || is("TERM_PROGRAM", "WezTerm")).then_some(Protocol::Iterm)
    }

    /// Prints an image if the protocol supports its format; returns whether it did.
    fn show(self, out: &mut impl Write, bytes: &[u8]) -> io::Result<bool> {
        let png = bytes.starts_with(b"\x89PNG\r\n\x1a\n");
        let known = png || bytes.starts_with(b"\xff\xd8\xff") || bytes.starts_with(b"GIF8");
        if bytes.len() > MAX_BYTES || !known || (self == Protocol::Kitty && !png) {
            return Ok(false);
        }
        let base64 = STANDARD.encode(bytes);
        match self {
            Protocol::Iterm => {
                write!(out, "\x1b]1337;File=inline=1;size={};preserveAspectRatio=1:{base64}\x07", bytes.len())?;
            }
            Protocol::Kitty => {
                let mut chunks = base64.as_bytes().chunks(CHUNK_BYTES).peekable();
                let mut first = "a=T,f=100,q=2,";
                while let Some(chunk) = chunks.next() {
                    write!(out, "\x1b_G{first}m={};", u8::from(chunks.peek().is_some()))?;
                    out.write_all(chunk)?;
                    out.write_all(b"\x1b\\")?;
                    first = "";
                }
            }
        }
        out.write_all(b"\n")?;
        Ok(true)
    }
}

// State of chats between runs: the values typed for a prompt, its definition and its results.
// One file per prompt in the user's state folder, readable only by the user. Input to forms of servers and values of
// sensitive arguments are never stored.

const MAX_VALUES: usize = 50;

/// The longest stored value or text, in bytes.
const MAX_TEXT_BYTES: usize = 256 << 10;

const MAX_RESULTS: usize = 20;

/// The folder of the state; `None` stores nothing.
#[derive(Clone, Debug)]
struct Memory(Option<PathBuf>);

#[derive(Debug, Default)]
struct PromptHistory {
    definition: String,
    values: BTreeMap<String, Vec<String>>,
    /// The result for each set of arguments, by the digest of the arguments; the last used one is last.
    results: Vec<(String, String)>,
}

impl Memory {
    fn open(forget: bool) -> Memory {
        if forget {
            return Memory(None);
        }
        Memory(state::folder())
    }

    fn lines(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|folder| folder.join("chat-history"))
    }

    fn file(&self, target: &str, prompt: &str) -> Option<PathBuf> {
        let name = digest(&format!("{target}\0{prompt}"));
        self.0.as_ref().map(|folder| folder.join("prompts").join(format!("{name}.json")))
    }

    fn load(&self, target: &str, prompt: &str) -> PromptHistory {
        let text = self.file(target, prompt).and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        PromptHistory::parse(&text).unwrap_or_default()
    }

    /// Stores the state of a prompt. A failure to write is ignored.
    fn save(&self, target: &str, prompt: &str, history: &PromptHistory) {
        let Some(file) = self.file(target, prompt) else { return };
        state::write(&file, &history.to_json(target, prompt).to_string()).ok();
    }
}

impl PromptHistory {
    fn parse(text: &str) -> Option<PromptHistory> {
        let value: Value = serde_json::from_str(text).ok()?;
        let strings = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let values = value["values"].as_object()?.iter().map(|(name, values)| (name.clone(), strings(values)));
        let result = |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned()));
        Some(PromptHistory {
            definition: value["definition"].as_str()?.to_owned(),
            values: values.collect(),
            results: value["results"].as_array()?.iter().filter_map(result).collect(),
        })
    }

    fn to_json(&self, target: &str, prompt: &str) -> Value {
        json!({
            "target": target, "prompt": prompt, "definition": self.definition,
            "values": self.values, "results": self.results,
        })
    }

    fn values(&self, argument: &str) -> &[String] {
        self.values.get(argument).map_or(&[], Vec::as_slice)
    }

    /// Forgets an argument: it is sensitive, perhaps only since the last use.
    fn forget(&mut self, argument: &str) {
        self.values.remove(argument);
    }

    /// Records a use of which nothing but the definition is stored, because the result contains sensitive values.
    fn record_definition(&mut self, prompt: &PromptInfo) -> Option<String> {
        let definition = serde_json::to_string_pretty(&prompt.raw).unwrap_or_default();
        self.results.clear();
        self.replace_definition(definition)
    }

    fn replace_definition(&mut self, definition: String) -> Option<String> {
        let is_changed = !self.definition.is_empty() && digest(&self.definition) != digest(&definition);
        let difference = is_changed.then(|| diff(&self.definition, &definition));
        self.definition = Some(definition).filter(|text| text.len() <= MAX_TEXT_BYTES).unwrap_or_default();
        difference
    }

    /// Records a use. Returns the differences from the last one: in the prompt's definition, and in its result for the
    /// same arguments.
    fn record(&mut self, prompt: &PromptInfo, values: &Arguments, result: &PromptResult) -> Option<String> {
        let definition = serde_json::to_string_pretty(&prompt.raw).unwrap_or_default();
        let text = markdown::document(&result.messages, &Saved::default());
        let key = digest(&serde_json::to_string(values).unwrap_or_default());
        let mut differences = self.replace_definition(definition).unwrap_or_default();
        if let Some(index) = self.results.iter().position(|(known, _)| *known == key) {
            let (_, before) = self.results.remove(index);
            if digest(&before) != digest(&text) {
                differences.push_str(&diff(&before, &text));
            }
        }
        if text.len() <= MAX_TEXT_BYTES {
            self.results.push((key, text));
        }
        let surplus = self.results.len().saturating_sub(MAX_RESULTS);
        self.results.drain(..surplus);
        for (name, value) in values.iter().filter(|(_, value)| value.len() <= MAX_TEXT_BYTES) {
            let values = self.values.entry(name.clone()).or_default();
            values.retain(|known| known != value);
            values.push(value.clone());
            let surplus = values.len().saturating_sub(MAX_VALUES);
            values.drain(..surplus);
        }
        Some(differences).filter(|differences| !differences.is_empty())
    }
}

const PATIENCE: Duration = Duration::from_secs(2);

fn diff(before: &str, after: &str) -> String {
    TextDiff::configure()
        .timeout(PATIENCE)
        .diff_lines(before, after)
        .unified_diff()
        .context_radius(2)
        .header("before", "now")
        .to_string()
}

#[derive(Clone)]
struct ChatPrompt {
    /// The command after the slash. Safe to print.
    command: String,
    server: Server,
    info: Arc<PromptInfo>,
}

impl ChatPrompt {
    /// Returns whether the server marks an argument as sensitive, as promptshelf does: its values are not stored.
    fn is_sensitive(&self, argument: &str) -> bool {
        self.sensitive().any(|name| name == argument)
    }

    fn has_sensitive(&self) -> bool {
        self.sensitive().next().is_some()
    }

    fn sensitive(&self) -> impl Iterator<Item = &str> {
        let names = self.info.raw["_meta"]["promptshelf/sensitive"].as_array();
        names.into_iter().flatten().filter_map(serde_json::Value::as_str)
    }
}

/// The current prompts of all servers. Clones share them.
#[derive(Clone)]
struct PromptList {
    servers: Arc<Vec<Server>>,
    prompts: Arc<RwLock<Arc<Vec<ChatPrompt>>>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct ListChange {
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
}

impl ListChange {
    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

impl PromptList {
    fn new(servers: Vec<Server>) -> PromptList {
        PromptList { servers: Arc::new(servers), prompts: Arc::default() }
    }

    fn servers(&self) -> &[Server] {
        &self.servers
    }

    fn all(&self) -> Arc<Vec<ChatPrompt>> {
        Arc::clone(&self.prompts.read())
    }

    fn find(&self, command: &str) -> Option<ChatPrompt> {
        self.all().iter().find(|prompt| prompt.command == command).cloned()
    }

    async fn refresh(&self, server: &Server) -> Result<ListChange, ClientError> {
        let listed = server.client.all_prompts().await?;
        let mut current = self.prompts.write();
        let before: BTreeMap<&str, &PromptInfo> = current
            .iter()
            .filter(|prompt| prompt.server.name == server.name)
            .map(|prompt| (prompt.info.name.as_str(), &*prompt.info))
            .collect();
        let change = change(&before, &listed);
        let mut prompts: Vec<(Server, Arc<PromptInfo>)> = Vec::new();
        for known in self.servers.iter() {
            if known.name == server.name {
                prompts.extend(listed.iter().map(|prompt| (known.clone(), Arc::new(prompt.clone()))));
            } else {
                let of_known = current.iter().filter(|prompt| prompt.server.name == known.name);
                prompts.extend(of_known.map(|prompt| (known.clone(), Arc::clone(&prompt.info))));
            }
        }
        *current = Arc::new(with_commands(prompts));
        Ok(change)
    }
}

fn change(before: &BTreeMap<&str, &PromptInfo>, after: &[PromptInfo]) -> ListChange {
    let mut change = ListChange::default();
    for prompt in after {
        match before.get(prompt.name.as_str()) {
            None => change.added.push(prompt.name.clone()),
            Some(old) if **old != *prompt => change.changed.push(prompt.name.clone()),
            Some(_) => {}
        }
    }
    let is_removed = |name: &&&str| !after.iter().any(|prompt| prompt.name == ***name);
    change.removed = before.keys().filter(is_removed).map(|name| (*name).to_owned()).collect();
    change
}

/// Assigns a command to every prompt: its name, prefixed with the server's name if several prompts have the same one.
fn with_commands(prompts: Vec<(Server, Arc<PromptInfo>)>) -> Vec<ChatPrompt> {
    let commands = commands(prompts.iter().map(|(server, prompt)| (server.name.as_str(), prompt.name.as_str())));
    let prompt = |((server, info), command)| ChatPrompt { command, server, info };
    prompts.into_iter().zip(commands).map(prompt).collect()
}

fn commands<'a>(prompts: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Vec<String> {
    let mut count: HashMap<String, usize> = HashMap::new();
    for (_, name) in prompts.clone() {
        *count.entry(word(name)).or_default() += 1;
    }
    let mut taken: HashMap<String, usize> = HashMap::new();
    let mut commands = Vec::new();
    for (server, name) in prompts {
        let plain = word(name);
        let mut command = if count[&plain] > 1 { format!("{server}:{plain}") } else { plain };
        let times = taken.entry(command.clone()).or_default();
        *times += 1;
        if *times > 1 {
            command = format!("{command}~{times}");
        }
        commands.push(command);
    }
    commands
}

fn word(name: &str) -> String {
    let visible = visible_line(name);
    let word: String = visible.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
    if word.is_empty() { "_".to_owned() } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_images_are_shown_as_base64() {
        let shown = |protocol: Protocol, bytes: &[u8]| {
            let mut out = Vec::new();
            let is_shown = protocol.show(&mut out, bytes).expect("writing to memory succeeds");
            (is_shown, out)
        };
        assert_eq!(shown(Protocol::Iterm, b"\x1b]0;evil\x07"), (false, Vec::new()));
        assert_eq!(shown(Protocol::Kitty, b"GIF89a"), (false, Vec::new()));
        let (is_shown, out) = shown(Protocol::Kitty, &[b"\x89PNG\r\n\x1a\n".as_slice(), &[0x1b; 5000]].concat());
        assert!(is_shown && out.iter().filter(|byte| **byte == 0x1b).count() == 4, "two chunks, begun and ended");
    }
}

#[cfg(test)]
mod prompts_tests {
    use super::*;

    #[test]
    fn only_clashing_names_have_a_prefix() {
        let prompts =
            [("a", "review"), ("b", "review"), ("b", "two words"), ("b", "evil\u{1b}[2J"), ("b", "two_words")];
        assert_eq!(
            commands(prompts.into_iter()),
            ["a:review", "b:review", "b:two_words", "evil\\u{1b}[2J", "b:two_words~2"]
        );
    }
}
