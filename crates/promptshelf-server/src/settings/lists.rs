//! The lists of `server.toml`, checked: `[[source]]`, `[[webhook]]` and `[[evaluation]]`.

use std::{
    collections::{BTreeMap, HashSet},
    path::PathBuf,
    time::Duration,
};

use promptshelf_client::is_secure_url;
use promptshelf_core::{Access, Diagnostic};
use promptshelf_git::GitAddress;
use promptshelf_source::settings::FilePath;
use promptshelf_store::ChannelAddress;
use promptshelf_upstream::{OAuthClient, UpstreamCredentials};

use super::{
    file::ServerFile,
    is_scope,
    sections::{
        EvaluationSection, Format, Kind, OAuthSection, Prompts, Requirements, SecretFile, Source, WebhookSection,
    },
};
use crate::deliveries::{WebhookFormat, WebhookTarget};

const MAX_SOURCES: usize = 100;
const MAX_WEBHOOKS: usize = 50;
const INTERVAL: Duration = Duration::from_secs(60);
const EVALUATION_TIMEOUT: Duration = Duration::from_secs(60);
const MCP_TIMEOUT: Duration = Duration::from_secs(10);
const MCP_PROMPTS: usize = 10_000;

struct Item<'f> {
    file: &'f mut ServerFile,
    list: &'static str,
    index: usize,
    /// The key at which a mistake is reported if the item lacks the one that it is about.
    usual: &'static str,
}

impl Item<'_> {
    fn error(&mut self, key: &str, message: impl Into<String>) -> &mut Diagnostic {
        self.file.table_error((self.list, self.index), (key, self.usual), message)
    }
}

/// A source of `[[source]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredSource {
    /// Its name in records and metrics.
    pub name: String,
    /// The text before the names of its prompts.
    pub prefix: String,
    /// Requirements for everything in it.
    pub access: Option<Access>,
    /// The largest number of prompts.
    pub max_prompts: Option<usize>,
    /// Where it is.
    pub place: SourcePlace,
}

/// The place of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourcePlace {
    /// A folder of prompt files.
    Folder(PathBuf),
    /// A channel of a store.
    Store(Box<ChannelAddress>),
    /// A git repository.
    Git(Box<GitPlace>),
    /// Another MCP server.
    Mcp(McpPlace),
}

/// A source in a git repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitPlace {
    pub(crate) address: GitAddress,
    pub(crate) credentials: Option<PathBuf>,
    pub(crate) signers: Option<PathBuf>,
    pub(crate) webhook_secret: Option<PathBuf>,
    pub(crate) interval: Duration,
    pub(crate) timeout: Option<Duration>,
}

/// A source that is another MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpPlace {
    pub(crate) endpoint: McpEndpoint,
    pub(crate) credentials: UpstreamCredentials,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    /// Whether a new or changed definition waits for approval.
    pub approves_changes: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum McpEndpoint {
    Url(String),
    Command(Vec<String>),
}

pub(super) fn folders(sources: &[ConfiguredSource]) -> Vec<PathBuf> {
    let folder = |source: &ConfiguredSource| match &source.place {
        SourcePlace::Folder(folder) => Some(folder.clone()),
        _ => None,
    };
    sources.iter().filter_map(folder).collect()
}

fn path(secret: Option<&SecretFile>) -> Option<PathBuf> {
    secret.map(|SecretFile { file: FilePath(path) }| path.clone())
}

pub(super) fn sources(file: &mut ServerFile, sources: &[Source]) -> Vec<ConfiguredSource> {
    let mut names = HashSet::new();
    let mut resolved = Vec::with_capacity(sources.len());
    for (index, source) in sources.iter().enumerate() {
        let mut item = Item { file, list: "source", index, usual: "name" };
        if index == MAX_SOURCES {
            item.error("name", format!("expected at most {MAX_SOURCES} sources"));
            break;
        }
        let name = &source.name.0;
        if !names.insert(name) {
            let message = format!("another source has the name `{name}` already");
            item.error("name", message).help = Some("give each source a name of its own".to_owned());
            continue;
        }
        refuse_unused(&mut item, source);
        let place = match source.kind {
            Kind::Folder => folder(&mut item, source),
            Kind::Store => store(&mut item, source),
            Kind::Mcp => mcp(&mut item, source),
            Kind::Git => git(&mut item, source),
        };
        let Some(place) = place else { continue };
        let is_foreign = source.kind == Kind::Mcp;
        resolved.push(ConfiguredSource {
            name: name.clone(),
            prefix: source.prefix.as_ref().map_or_else(|| format!("{name}-"), |prefix| prefix.0.clone()),
            access: source.access.as_ref().and_then(Requirements::access),
            max_prompts: source.max_prompts.map(Prompts::to_usize).or(is_foreign.then_some(MCP_PROMPTS)),
            place,
        });
    }
    resolved
}

/// Reports keys that the kind of a source does not use.
fn refuse_unused(item: &mut Item<'_>, source: &Source) {
    let used: &[&str] = match source.kind {
        Kind::Folder => &["path"],
        Kind::Git => &["url", "ref", "path", "interval", "timeout", "webhook-secret", "credentials", "signers"],
        Kind::Store => &["url"],
        Kind::Mcp => &["url", "command", "interval", "timeout", "credentials", "oauth", "approve-changes"],
    };
    let given = [
        ("url", source.url.is_some()),
        ("path", source.path.is_some()),
        ("ref", source.r#ref.is_some()),
        ("command", source.command.is_some()),
        ("interval", source.interval.is_some()),
        ("timeout", source.timeout.is_some()),
        ("webhook-secret", source.webhook_secret.is_some()),
        ("credentials", source.credentials.is_some()),
        ("oauth", source.oauth.is_some()),
        ("signers", source.signers.is_some()),
        ("approve-changes", source.approve_changes.is_some()),
    ];
    for (key, _) in given.iter().filter(|(key, is_given)| *is_given && !used.contains(key)) {
        let message = format!("a source of the kind `{}` does not use `{key}`", source.kind.as_str());
        let known: Vec<String> = used.iter().map(|key| format!("`{key}`")).collect();
        item.error(key, message).help = Some(format!("it uses {}", known.join(", ")));
    }
}

fn missing(item: &mut Item<'_>, kind: &str, key: &str, expected: &str) {
    let message = format!("a source of the kind `{kind}` needs `{key}`");
    item.error("kind", message).help = Some(format!("`{key}` is {expected}"));
}

fn folder(item: &mut Item<'_>, source: &Source) -> Option<SourcePlace> {
    let path = source.path.as_deref().filter(|path| !path.is_empty());
    if path.is_none() {
        missing(item, "folder", "path", "the folder of prompt files");
    }
    Some(SourcePlace::Folder(item.file.resolve(path?)))
}

fn store(item: &mut Item<'_>, source: &Source) -> Option<SourcePlace> {
    let Some(url) = &source.url else {
        missing(item, "store", "url", "a store and its channel, such as sqlite:team.db#production");
        return None;
    };
    // A path in the file is relative to its folder.
    let url = match url.strip_prefix("sqlite:") {
        Some(path) if !path.is_empty() && !path.starts_with('/') => {
            format!("sqlite:{}", item.file.resolve(path).display())
        }
        _ => url.clone(),
    };
    match url.parse::<ChannelAddress>() {
        Ok(address) if address.revision.is_some() => {
            let message = "a source follows the newest revision of a channel, not a fixed one";
            item.error("url", message).help = Some("leave out @REVISION".to_owned());
            None
        }
        Ok(address) => Some(SourcePlace::Store(Box::new(address))),
        Err(error) => {
            item.error("url", error.to_string());
            None
        }
    }
}

fn mcp(item: &mut Item<'_>, source: &Source) -> Option<SourcePlace> {
    let endpoint = match (&source.url, &source.command) {
        (Some(url), None) if is_endpoint(url) => McpEndpoint::Url(url.clone()),
        (Some(_), None) => {
            // The text is not repeated: it may contain a password.
            item.error("url", "expected an http or https URL without user, password, query and fragment").help =
                Some("a token belongs in a file: credentials = { file = \"…\" }".to_owned());
            return None;
        }
        (None, Some(line)) if line.first().is_some_and(|program| !program.is_empty()) => {
            let given = [("credentials", source.credentials.is_some()), ("oauth", source.oauth.is_some())];
            for (key, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
                item.error(key, "a token is sent to a URL only, and this source is a command");
            }
            McpEndpoint::Command(line.clone())
        }
        (None, Some(_)) => {
            item.error("command", "expected a program and its arguments");
            return None;
        }
        (Some(_), Some(_)) => {
            item.error("command", "`url` and `command` exclude each other");
            return None;
        }
        (None, None) => {
            missing(item, "mcp", "url", "the URL of the server; or `command`, a program and its arguments");
            return None;
        }
    };
    let credentials = credentials(item, source);
    if let McpEndpoint::Url(url) = &endpoint
        && credentials != UpstreamCredentials::None
        && !is_secure_url(url)
    {
        item.error("url", "a token is sent over https only").help =
            Some("use https, or leave out the credentials".to_owned());
    }
    Some(SourcePlace::Mcp(McpPlace {
        endpoint,
        credentials,
        interval: source.interval.as_ref().map_or(INTERVAL, |interval| interval.0),
        timeout: source.timeout.as_ref().map_or(MCP_TIMEOUT, |timeout| timeout.0),
        approves_changes: source.approve_changes.unwrap_or_default(),
    }))
}

fn credentials(item: &mut Item<'_>, source: &Source) -> UpstreamCredentials {
    let oauth = match (&source.credentials, &source.oauth) {
        (None, None) => return UpstreamCredentials::None,
        (Some(token), None) => return UpstreamCredentials::Token(token.file.0.clone()),
        (token, Some(oauth)) => {
            if token.is_some() {
                item.error("oauth", "`credentials` and `oauth` exclude each other");
            }
            oauth
        }
    };
    let OAuthSection { issuer, client_id, client_secret, scopes } = oauth;
    if !is_endpoint(issuer) || !is_secure_url(issuer) {
        item.error("oauth", "expected the issuer of the authorization server, an https URL");
    }
    if client_id.is_empty() {
        item.error("oauth", "`client-id` is empty");
    }
    if let Some(scope) = scopes.iter().find(|scope| !is_scope(scope)) {
        item.error("oauth", format!("expected a scope without spaces, got {scope:?}"));
    }
    UpstreamCredentials::Client(OAuthClient {
        issuer: issuer.clone(),
        id: client_id.clone(),
        secret: client_secret.file.0.clone(),
        scopes: scopes.clone(),
    })
}

fn git(item: &mut Item<'_>, source: &Source) -> Option<SourcePlace> {
    let Some(url) = &source.url else {
        missing(item, "git", "url", "a repository, such as git+https://git.example.com/prompts.git");
        return None;
    };
    let (mut key, mut address) = ("url", url.parse::<GitAddress>());
    if let (Ok(parsed), Some(reference)) = (&address, &source.r#ref) {
        if parsed.reference().is_some() {
            item.error("ref", "`url` has a reference already, after `#`");
            return None;
        }
        (key, address) = ("ref", parsed.clone().with_reference(reference));
    }
    if let (Ok(parsed), Some(path)) = (&address, &source.path) {
        (key, address) = ("path", parsed.clone().with_folder(path));
    }
    let address = match address {
        Ok(address) => address,
        Err(error) => {
            item.error(key, error.to_string());
            return None;
        }
    };
    Some(SourcePlace::Git(Box::new(GitPlace {
        address,
        credentials: path(source.credentials.as_ref()),
        signers: path(source.signers.as_ref()),
        webhook_secret: path(source.webhook_secret.as_ref()),
        interval: source.interval.as_ref().map_or(INTERVAL, |interval| interval.0),
        timeout: source.timeout.as_ref().map(|timeout| timeout.0),
    })))
}

/// Whether a text is the URL of an MCP server, without anything that could be a secret.
fn is_endpoint(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let is_plain = !url.contains(['#', '?', '@', '"', '\\', '{', '}']) && !url.contains(char::is_whitespace);
    is_plain && rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.starts_with(':'))
}

/// A receiver of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredWebhook {
    pub(crate) target: WebhookTarget,
    pub(crate) secret: Option<PathBuf>,
}

pub(super) fn webhooks(file: &mut ServerFile, sections: &[WebhookSection]) -> Vec<ConfiguredWebhook> {
    let mut resolved: Vec<ConfiguredWebhook> = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        let mut item = Item { file, list: "webhook", index, usual: "url" };
        if index == MAX_WEBHOOKS {
            item.error("url", format!("expected at most {MAX_WEBHOOKS} webhooks"));
            break;
        }
        let target = WebhookTarget::new(&section.url.0, section.events.iter().copied(), section.allow_private);
        let mut target = match target {
            Ok(target) => target.through_proxy(section.proxy),
            Err(error) => {
                // The URL is not repeated: it may be secret.
                item.error("url", error.to_string());
                continue;
            }
        };
        if section.events.is_empty() {
            item.error("events", "expected at least one event").help =
                Some("the events are published, rolled-back, proposed, reviewed, broken, policy-changed, rollout-started, rollout-step, rollout-stopped and rollout-finished".to_owned());
        }
        if resolved.iter().any(|other| other.target.id() == target.id()) {
            item.error("url", "another webhook has this URL already").help =
                Some("name all events in one [[webhook]]".to_owned());
        }
        if section.format == Format::Slack {
            target = target.format(WebhookFormat::Slack);
        } else if section.secret.is_none() {
            item.error("secret", "a webhook needs `secret`, with which its receiver verifies events").help =
                Some("write `openssl rand -hex 32` to a file, and name it: secret = { file = \"…\" }".to_owned());
        }
        if let Some(time) = &section.retry_for {
            target = target.retry_for(time.0);
        }
        resolved.push(ConfiguredWebhook { target, secret: path(section.secret.as_ref()) });
    }
    resolved
}

/// A program that judges the messages of prompts.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfiguredEvaluation {
    /// Its name in policies and results.
    pub name: String,
    /// The program: a path, or a name that is looked up in `PATH`.
    pub program: PathBuf,
    /// The arguments of the program.
    pub arguments: Vec<String>,
    /// The folder in which it runs: that of `server.toml`.
    pub folder: PathBuf,
    /// The variables of the environment that it gets.
    pub environment: Vec<String>,
    /// The time for one prompt.
    pub timeout: Duration,
    /// The least score that passes, by name.
    pub thresholds: BTreeMap<String, f64>,
    /// The amount by which a score can be lower than that of the served version.
    pub tolerance: f64,
}

pub(super) fn evaluations(file: &mut ServerFile, sections: &[EvaluationSection]) -> Vec<ConfiguredEvaluation> {
    let mut names = HashSet::new();
    let mut resolved = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        let mut item = Item { file, list: "evaluation", index, usual: "name" };
        let name = &section.name.0;
        if !names.insert(name) {
            let message = format!("another evaluation has the name `{name}` already");
            item.error("name", message).help = Some("give each a name of its own".to_owned());
        }
        if section.thresholds.keys().any(|score| score.trim().is_empty()) {
            item.error("thresholds", "expected the name of a score, got an empty one");
        }
        if section.tolerance < 0.0 {
            item.error("tolerance", format!("expected a number of at least 0, got `{}`", section.tolerance));
        }
        if let Some(name) = section.environment.iter().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            let message = format!("expected the name of a variable such as `OPENAI_API_KEY`, got `{name}`");
            item.error("environment", message).help =
                Some("write the value into the environment of `promptshelf evaluate`".to_owned());
        }
        let Some((program, arguments)) = section.program.split_first().filter(|(program, _)| !program.is_empty())
        else {
            item.error("program", "expected a program and its arguments, got none").help =
                Some("write for instance program = [\"python3\", \"judge.py\"]".to_owned());
            continue;
        };
        // The program runs in another folder than this one. Without a separator it is a name that is looked up in PATH.
        let absolute = |path: &str| {
            let path = item.file.resolve(path);
            let path = if path.as_os_str().is_empty() { PathBuf::from(".") } else { path };
            std::path::absolute(&path).unwrap_or(path)
        };
        let has_separator = program.contains(std::path::is_separator);
        resolved.push(ConfiguredEvaluation {
            name: name.clone(),
            program: if has_separator { absolute(program) } else { program.into() },
            arguments: arguments.to_vec(),
            folder: absolute(""),
            environment: section.environment.clone(),
            timeout: section.timeout.as_ref().map_or(EVALUATION_TIMEOUT, |timeout| timeout.0),
            thresholds: section.thresholds.clone(),
            tolerance: section.tolerance,
        });
    }
    resolved
}
