//! The sources of `[[source]]`, checked: the keys that each kind uses, and their values.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use promptshelf_client::is_secure_url;
use promptshelf_core::Access;
use promptshelf_git::GitAddress;
use promptshelf_store::ChannelAddress;
use promptshelf_upstream::{OAuthClient, UpstreamCredentials};

use super::{
    file::ServerFile,
    requirements::Requirements,
    sections::ServerSettings,
    source_sections::{Kind, OAuthSection, Prompts, SecretFile, Source},
};

const MAX_SOURCES: usize = 100;

const INTERVAL: Duration = Duration::from_secs(60);

const MCP_TIMEOUT: Duration = Duration::from_secs(10);

const MCP_PROMPTS: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfiguredSource {
    pub(crate) name: String,
    pub(crate) prefix: String,
    pub(crate) access: Option<Access>,
    pub(crate) max_prompts: Option<usize>,
    pub(crate) place: SourcePlace,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SourcePlace {
    Folder(PathBuf),
    Store(Box<ChannelAddress>),
    Git(Box<GitPlace>),
    Mcp(McpPlace),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GitPlace {
    pub(crate) address: GitAddress,
    pub(crate) credentials: Option<PathBuf>,
    pub(crate) signers: Option<PathBuf>,
    pub(crate) webhook_secret: Option<PathBuf>,
    pub(crate) interval: Duration,
    pub(crate) timeout: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct McpPlace {
    pub(crate) endpoint: McpEndpoint,
    pub(crate) credentials: UpstreamCredentials,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    pub(crate) approves_changes: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum McpEndpoint {
    Url(String),
    Command(Vec<String>),
}

impl ServerFile {
    pub(crate) fn sources(&mut self) -> Vec<ConfiguredSource> {
        let settings = self.read();
        resolve(self, &settings)
    }
}

pub(super) fn resolve(file: &mut ServerFile, written: &ServerSettings) -> Vec<ConfiguredSource> {
    let sources = &written.source.0;
    if sources.len() > MAX_SOURCES {
        file.source_error(MAX_SOURCES, "name", format!("expected at most {MAX_SOURCES} sources"));
    }
    let mut names = HashSet::new();
    let mut resolved = Vec::with_capacity(sources.len());
    for (index, source) in sources.iter().enumerate().take(MAX_SOURCES) {
        let name = &source.name.0;
        if !names.insert(name) {
            let message = format!("another source has the name `{name}` already");
            file.source_error(index, "name", message).help = Some("give each source a name of its own".to_owned());
            continue;
        }
        refuse_unused(file, index, source);
        let place = match source.kind {
            Kind::Folder => folder(file, index, source),
            Kind::Store => store(file, index, source),
            Kind::Mcp => mcp(file, index, source),
            Kind::Git => git(file, index, source),
        };
        let Some(place) = place else { continue };
        let access = source.access.clone().map(|access| {
            let Requirements { scopes, roles, users } = access;
            Access { scopes, roles, users, visible: false }
        });
        let is_open = |access: &Access| access.scopes.is_empty() && access.roles.is_empty() && access.users.is_empty();
        let is_foreign = source.kind == Kind::Mcp;
        resolved.push(ConfiguredSource {
            name: name.clone(),
            prefix: source.prefix.as_ref().map_or_else(|| format!("{name}-"), |prefix| prefix.0.clone()),
            access: access.filter(|access| !is_open(access)),
            max_prompts: source.max_prompts.map(Prompts::to_usize).or(is_foreign.then_some(MCP_PROMPTS)),
            place,
        });
    }
    resolved
}

/// Reports keys that the kind of a source does not use.
fn refuse_unused(file: &mut ServerFile, index: usize, source: &Source) {
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
        let kind = source.kind.as_str();
        let message = format!("a source of the kind `{kind}` does not use `{key}`");
        let known: Vec<String> = used.iter().map(|key| format!("`{key}`")).collect();
        file.source_error(index, key, message).help = Some(format!("it uses {}", known.join(", ")));
    }
}

fn folder(file: &mut ServerFile, index: usize, source: &Source) -> Option<SourcePlace> {
    let path = source.path.as_deref().filter(|path| !path.as_os_str().is_empty());
    if path.is_none() {
        missing(file, index, "folder", "path", "the folder of prompt files");
    }
    Some(SourcePlace::Folder(file.resolve(path?)))
}

fn store(file: &mut ServerFile, index: usize, source: &Source) -> Option<SourcePlace> {
    let Some(url) = &source.url else {
        missing(file, index, "store", "url", "a store and its channel, such as sqlite:team.db#production");
        return None;
    };
    // A path in the file is relative to its folder.
    let url = match url.strip_prefix("sqlite:") {
        Some(path) if !path.is_empty() && !path.starts_with('/') => {
            format!("sqlite:{}", file.resolve(Path::new(path)).display())
        }
        _ => url.clone(),
    };
    match url.parse::<ChannelAddress>() {
        Ok(address) if address.revision.is_some() => {
            let message = "a source follows the newest revision of a channel, not a fixed one";
            file.source_error(index, "url", message).help = Some("leave out @REVISION".to_owned());
            None
        }
        Ok(address) => Some(SourcePlace::Store(Box::new(address))),
        Err(error) => {
            file.source_error(index, "url", error.to_string());
            None
        }
    }
}

fn mcp(file: &mut ServerFile, index: usize, source: &Source) -> Option<SourcePlace> {
    let endpoint = match (&source.url, &source.command) {
        (Some(url), None) => match is_endpoint(url) {
            true => McpEndpoint::Url(url.clone()),
            false => {
                // The text is not repeated: it may contain a password.
                let message = "expected an http or https URL without user, password, query and fragment";
                file.source_error(index, "url", message).help =
                    Some("a token belongs in a file: credentials = { file = \"…\" }".to_owned());
                return None;
            }
        },
        (None, Some(line)) if line.first().is_some_and(|program| !program.is_empty()) => {
            let given = [("credentials", source.credentials.is_some()), ("oauth", source.oauth.is_some())];
            for (key, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
                file.source_error(index, key, "a token is sent to a URL only, and this source is a command");
            }
            McpEndpoint::Command(line.clone())
        }
        (None, Some(_)) => {
            file.source_error(index, "command", "expected a program and its arguments");
            return None;
        }
        (Some(_), Some(_)) => {
            file.source_error(index, "command", "`url` and `command` exclude each other");
            return None;
        }
        (None, None) => {
            missing(file, index, "mcp", "url", "the URL of the server; or `command`, a program and its arguments");
            return None;
        }
    };
    let credentials = credentials(file, index, source);
    if let McpEndpoint::Url(url) = &endpoint
        && credentials != UpstreamCredentials::None
        && !is_secure_url(url)
    {
        file.source_error(index, "url", "a token is sent over https only").help =
            Some("use https, or leave out the credentials".to_owned());
    }
    Some(SourcePlace::Mcp(McpPlace {
        endpoint,
        credentials,
        interval: source.interval.map_or(INTERVAL, |interval| interval.0),
        timeout: source.timeout.map_or(MCP_TIMEOUT, |timeout| timeout.0),
        approves_changes: source.approve_changes.unwrap_or_default(),
    }))
}

fn credentials(file: &mut ServerFile, index: usize, source: &Source) -> UpstreamCredentials {
    let oauth = match (&source.credentials, &source.oauth) {
        (None, None) => return UpstreamCredentials::None,
        (Some(token), None) => return UpstreamCredentials::Token(file.resolve(&token.file)),
        (token, Some(oauth)) => {
            if token.is_some() {
                file.source_error(index, "oauth", "`credentials` and `oauth` exclude each other");
            }
            oauth
        }
    };
    let OAuthSection { issuer, client_id, client_secret, scopes } = oauth;
    if !is_endpoint(issuer) || !is_secure_url(issuer) {
        let message = "expected the issuer of the authorization server, an https URL";
        file.source_error(index, "oauth", message);
    }
    if client_id.is_empty() {
        file.source_error(index, "oauth", "`client-id` is empty");
    }
    if let Some(scope) = scopes.iter().find(|scope| !is_scope(scope)) {
        file.source_error(index, "oauth", format!("expected a scope without spaces, got {scope:?}"));
    }
    UpstreamCredentials::Client(OAuthClient {
        issuer: issuer.clone(),
        id: client_id.clone(),
        secret: file.resolve(&client_secret.file),
        scopes: scopes.clone(),
    })
}

/// Returns whether a text is one scope (RFC 6749, 3.3: printable ASCII without space, `"` and `\`).
pub(crate) fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}

fn git(file: &mut ServerFile, index: usize, source: &Source) -> Option<SourcePlace> {
    let Some(url) = &source.url else {
        missing(file, index, "git", "url", "a repository, such as git+https://git.example.com/prompts.git");
        return None;
    };
    let mut address = match url.parse::<GitAddress>() {
        Ok(address) => address,
        Err(error) => {
            file.source_error(index, "url", error.to_string());
            return None;
        }
    };
    if let Some(reference) = &source.r#ref {
        if address.reference().is_some() {
            file.source_error(index, "ref", "`url` has a reference already, after `#`");
            return None;
        }
        match address.with_reference(reference) {
            Ok(changed) => address = changed,
            Err(error) => {
                file.source_error(index, "ref", error.to_string());
                return None;
            }
        }
    }
    if let Some(path) = &source.path {
        match address.with_folder(&path.to_string_lossy()) {
            Ok(changed) => address = changed,
            Err(error) => {
                file.source_error(index, "path", error.to_string());
                return None;
            }
        }
    }
    let path = |secret: &Option<SecretFile>| secret.as_ref().map(|secret| file.resolve(&secret.file));
    Some(SourcePlace::Git(Box::new(GitPlace {
        address,
        credentials: path(&source.credentials),
        signers: path(&source.signers),
        webhook_secret: path(&source.webhook_secret),
        interval: source.interval.map_or(INTERVAL, |interval| interval.0),
        timeout: source.timeout.map(|timeout| timeout.0),
    })))
}

/// Whether a text is the URL of an MCP server, without anything that could be a secret.
fn is_endpoint(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let is_plain = !url.contains(['#', '?', '@', '"', '\\', '{', '}']) && !url.contains(char::is_whitespace);
    is_plain && rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.starts_with(':'))
}

fn missing(file: &mut ServerFile, index: usize, kind: &str, key: &str, expected: &str) {
    let message = format!("a source of the kind `{kind}` needs `{key}`");
    file.source_error(index, "kind", message).help = Some(format!("`{key}` is {expected}"));
}

pub(super) fn folders(sources: &[ConfiguredSource]) -> impl Iterator<Item = PathBuf> {
    sources.iter().filter_map(|source| match &source.place {
        SourcePlace::Folder(folder) => Some(folder.clone()),
        _ => None,
    })
}

pub(crate) type ConfiguredSources = Arc<[ConfiguredSource]>;
