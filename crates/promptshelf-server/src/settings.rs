//! The operator's settings: flags of `serve`, else environment variables, else `server.toml`, else defaults.
//!
//! They are read once. A reload reads them again, compares what is [`Fixed`] while a server runs, and applies what is
//! [`Live`]. Settings of a library (`promptshelf.toml`) belong to its authors and are read by `promptshelf-source`.

mod file;
mod lists;
mod sections;
#[cfg(test)]
mod tests;
mod value;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use promptshelf_core::{Access, AccessRule, Diagnostic, SourceText};
use promptshelf_git::GitAddress;
use promptshelf_mcp::{RequestOptions, StateKey};
use promptshelf_service::{AuditFileOptions, Limits};
use promptshelf_source::settings::{FilePath, SettingsFile};
use promptshelf_store::{ChannelAddress, ChannelName, RolloutPlan, StoreUrl};
use serde::Deserialize;

pub(crate) use self::lists::McpEndpoint;
use self::{
    file::PublicFolders,
    sections::{BlockedSubjects, ServerSettings, Token},
    value::HttpsUrl,
};
pub use self::{
    file::{KnownFiles, ServerFile, ServerFileLocation, UnusableFile},
    lists::{ConfiguredEvaluation, ConfiguredSource, ConfiguredWebhook, GitPlace, McpPlace, SourcePlace},
    sections::{FLAGS, Flag, descriptions, schema},
    value::{Address, Day, InvalidValue, is_scope},
};
use crate::{
    failure::{Exit, Failure},
    http::{
        self,
        auth::{IssuerOptions, KeySet, SignInOptions, StaticToken},
        tls::TlsFiles,
    },
};

/// The settings of a server.
#[derive(Debug, Default)]
pub struct Settings {
    /// What a change of needs a restart.
    pub fixed: Fixed,
    /// What a running server can change.
    pub live: Live,
    /// Whether a flag, a variable or the file names the address of HTTP.
    pub asks_for_http: bool,
    /// The `server.toml` that was read.
    pub file: Option<PathBuf>,
    /// All files that settings were read from.
    pub files: KnownFiles,
    /// Mistakes that are not errors.
    pub warnings: Vec<Diagnostic>,
}

/// Declares settings that a running server cannot change, each with its name in messages and its place in `server.toml`.
macro_rules! fixed {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty = $key:literal at $place:literal,)* }) => {
        $(#[$meta])*
        pub struct $name { $($(#[$doc])* pub $field: $type,)* }

        impl $name {
            /// The section or the key of each, in `server.toml`.
            const PLACES: &[&str] = &[$($place),*];

            /// Returns the names of the settings that differ.
            #[must_use]
            pub fn changed(&self, other: &$name) -> Vec<&'static str> {
                let fields = [$(($key, self.$field != other.$field)),*];
                fields.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
            }
        }
    };
}

fixed! {
    /// The settings that are fixed while a server runs.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Fixed {
        /// The library.
        library: ServedLibrary = "[[source]] or [channels]" at "source",
        /// The folder of copies of channels.
        cache: Option<PathBuf> = "`cache` in [store]" at "store.cache",
        /// The address to listen on.
        address: Address = "`address` in [http]" at "http.address",
        /// Whether other machines can connect without sign-in.
        allow_remote: bool = "`allow-remote` in [http]" at "http.allow-remote",
        /// The address of metrics.
        metrics: Option<Address> = "`listen` in [metrics]" at "metrics.listen",
        /// Where traces are sent to.
        traces: Option<Traces> = "[traces]" at "traces",
        /// Whether the API of a store is served.
        has_api: bool = "`enabled` in [api], or a setting that it depends on," at "api.enabled",
        /// Whether the tokens of the store are accepted.
        has_store_tokens: bool = "`store-tokens` in [auth], or a setting that it depends on," at "auth.store-tokens",
        /// The count of usage, unless it is off.
        usage: Option<UsageSettings> = "[usage]" at "usage",
        /// Receivers of events.
        webhooks: Vec<ConfiguredWebhook> = "[[webhook]]" at "webhook",
        /// What new rollouts have if nobody decides otherwise.
        rollout: RolloutPlan = "[rollout]" at "rollout",
        /// The names of evaluations that policies can require.
        evaluations: Vec<String> = "`name` in [[evaluation]]" at "evaluation",
    }
}

/// The settings that a running server can change. Sign-in, TLS and the audit can be changed, but neither added nor removed.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Hosts, origins, bounds, timeouts, profiles and trusted proxies.
    pub http: http::Options,
    /// Sign-in, if callers have to sign in.
    pub sign_in: Option<SignInOptions>,
    /// The certificate, if the server uses TLS.
    pub tls: Option<TlsFiles>,
    /// The limits of callers, if they are configured.
    pub limits: Option<Limits>,
    /// The bytes that a caller of the API may store in a day without publishing them, if they are configured.
    pub unpublished_bytes: Option<u64>,
    /// The audit file, if requests are recorded.
    pub audit: Option<AuditFileOptions>,
    /// Rules that bind every library.
    pub access: Vec<AccessRule>,
    /// Folders outside of libraries that they may read.
    pub granted_roots: Vec<PathBuf>,
    /// What single requests depend on.
    pub requests: RequestOptions,
    /// Whether clients do not see the provenance of prompts.
    pub hides_provenance: bool,
}

impl Live {
    /// Takes newer settings, apart from the presence of those that a running server cannot add or remove. Returns the names
    /// of these.
    pub(crate) fn keep_presence(mut self, before: &Live) -> (Live, Vec<&'static str>) {
        let mut kept = Vec::new();
        let mut keep = |name, before: bool, after: bool| {
            if before != after {
                kept.push(name);
            }
            before != after
        };
        if keep("[auth]", before.sign_in.is_some(), self.sign_in.is_some()) {
            self.sign_in.clone_from(&before.sign_in);
            self.limits = self.limits.or(before.limits);
        }
        if keep("[tls]", before.tls.is_some(), self.tls.is_some()) {
            self.tls.clone_from(&before.tls);
            self.http.strict_transport_security = before.http.strict_transport_security;
        }
        if keep("[audit]", before.audit.is_some(), self.audit.is_some()) {
            self.audit.clone_from(&before.audit);
        }
        (self, kept)
    }

    /// Returns the host names that the operator gives the server, among them the one of its resource URL.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        let resource = self.sign_in.as_ref().and_then(|sign_in| sign_in.resource.as_deref());
        self.http.mcp.allowed_hosts.iter().cloned().chain(resource.and_then(value::host)).collect()
    }
}

/// The count of the use of prompts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageSettings {
    /// The age at which counts are removed.
    pub retention: Duration,
    /// The least number of distinct callers that is shown.
    pub min_callers: u64,
}

/// Where traces are sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traces {
    /// The URL of the collector.
    pub endpoint: String,
    /// The percentage of traces started here that are sent. A trace that a caller started follows the caller's decision.
    pub percent: u8,
}

/// What the command line of `serve` sets.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// LIBRARY, if it is given.
    pub library: Option<PathBuf>,
    /// The channels that are served next to the default one.
    pub channels: Vec<String>,
    /// Whether models can search for prompts.
    pub tools: bool,
    /// The values of [`FLAGS`], by name.
    pub flags: BTreeMap<&'static str, Vec<String>>,
}

/// The lists of `server.toml` and its access rules, whose mistakes have been reported in the file.
struct Lists {
    access: Vec<AccessRule>,
    sources: Vec<ConfiguredSource>,
    webhooks: Vec<ConfiguredWebhook>,
}

impl Lists {
    fn read(file: &mut ServerFile) -> Lists {
        let written = file.read();
        file.check_sections(&written);
        lists::evaluations(file, &written.evaluation.0);
        Lists {
            access: file.file.access_rules(),
            sources: lists::sources(file, &written.source.0),
            webhooks: lists::webhooks(file, &written.webhook.0),
        }
    }
}

impl ServerFile {
    /// Returns the sources. [`check`](ServerFile::check) has their mistakes.
    pub fn sources(&mut self) -> Vec<ConfiguredSource> {
        let written = self.read();
        lists::sources(self, &written.source.0)
    }

    /// Returns the evaluations. [`check`](ServerFile::check) has their mistakes.
    pub fn evaluations(&mut self) -> Vec<ConfiguredEvaluation> {
        let written = self.read();
        lists::evaluations(self, &written.evaluation.0)
    }
}

/// The settings that hold for commands on a store, too.
#[derive(Clone, Debug)]
pub struct LocalSettings {
    /// The audit file. A server that writes to the same file rotates it.
    pub audit: Option<AuditFileOptions>,
    /// The evaluations that policies can require; `None` without a `server.toml`.
    pub evaluations: Option<Vec<String>>,
    /// What new rollouts have if nobody decides otherwise.
    pub rollout: RolloutPlan,
    /// The rules that bind every library: what leaves them is an opening.
    pub access: Vec<AccessRule>,
}

impl LocalSettings {
    /// Combines the environment and `server.toml`.
    ///
    /// # Errors
    ///
    /// All mistakes of `server.toml`, else the first invalid variable.
    pub fn read(
        location: &ServerFileLocation,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Result<LocalSettings, Failure> {
        let mut file = location.load()?;
        let flags = FLAGS.iter().filter(|flag| ["audit", "max-body-bytes"].contains(&flag.name));
        file.give(flags.filter_map(|flag| flag.given(&BTreeMap::new(), environment)).collect());
        file.read();
        let access = file.file.access_rules();
        file.check()?;
        let written = file.merged()?;
        let mut audit = written.audit.settings();
        if let Some(options) = &mut audit {
            options.max_bytes = u64::MAX;
        }
        let names = || written.evaluation.0.iter().map(|section| section.name.0.clone()).collect();
        let evaluations = file.path().is_some().then(names);
        Ok(LocalSettings { audit, evaluations, rollout: written.rollout.plan(), access })
    }
}

impl Settings {
    /// Combines flags, environment and `server.toml`.
    ///
    /// # Errors
    ///
    /// All mistakes of `server.toml`, else the first invalid flag or variable, else settings that exclude each other, else
    /// the first file that they name and that cannot be used.
    pub fn read(
        location: &ServerFileLocation,
        arguments: &Arguments,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Result<Settings, Failure> {
        let (settings, unusable) = Settings::read_for_check(location, arguments, environment)?;
        unusable.into_iter().next().map_or(Ok(settings), |file| Err(file.failure))
    }

    /// Reads settings as [`read`](Settings::read) does, with all files that they name and that cannot be used. If there are
    /// some, the settings lack a part, such as the sign-in, and must not be served.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Settings::read), apart from files.
    pub fn read_for_check(
        location: &ServerFileLocation,
        arguments: &Arguments,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Result<(Settings, Vec<UnusableFile>), Failure> {
        let mut file = location.load()?;
        file.give(FLAGS.iter().filter_map(|flag| flag.given(&arguments.flags, environment)).collect());
        let Lists { access, sources, webhooks } = Lists::read(&mut file);
        file.check()?;
        let mut written = file.merged()?;
        let cache = written.store.cache.clone().map(|FilePath(folder)| folder);
        let library = ServedLibrary::resolve(arguments, &written, sources, environment)?;
        let granted_roots: Vec<PathBuf> = written.grants.roots.iter().map(|root| root.0.clone()).collect();
        let serves_sources = !library.sources().is_empty();
        let folders = lists::folders(library.sources());
        let public = PublicFolders { library: library.folder(), sources: &folders, granted: &granted_roots };
        file.check_private(&written, serves_sources, &public)?;
        let mut warnings = file.check()?;
        if !serves_sources {
            let help = "start the server without LIBRARY to serve all sources";
            warnings.extend(file.ignored("source", "the command line names a library", help));
        }
        let (sign_in, has_store_tokens) = sign_in(&mut written, &mut file, library.has_store())?;
        let tls = tls(&written, &mut file)?;
        let allow_remote = written.http.allow_remote;
        let is_shared = allow_remote || sign_in.is_some();
        let http = written.http_options(sign_in.as_ref(), tls.is_some(), is_shared);
        let unusable = std::mem::take(&mut file.unusable);
        let requests = written.requests(arguments.tools);
        let settings = Settings {
            asks_for_http: file.has(&["http", "address"]),
            file: file.path().map(Path::to_path_buf),
            files: file.files,
            warnings,
            fixed: Fixed {
                library,
                cache,
                address: written.http.address.unwrap_or_default(),
                allow_remote,
                metrics: written.metrics.listen,
                traces: written.traces.settings(),
                has_api: written.api.enabled.unwrap_or(sign_in.is_some()),
                has_store_tokens,
                usage: written.usage.settings(),
                webhooks,
                rollout: written.rollout.plan(),
                evaluations: written.evaluation.0.into_iter().map(|section| section.name.0).collect(),
            },
            live: Live {
                http,
                // If other machines or several people can call, callers are limited in any case.
                limits: written.limits.to_limits().or_else(|| is_shared.then(Limits::default)),
                unpublished_bytes: written.api.unpublished_bytes.map(|bytes| bytes.0),
                sign_in,
                tls,
                audit: written.audit.settings(),
                access,
                granted_roots,
                requests,
                hides_provenance: !written.provenance.enabled,
            },
        };
        Ok((settings, unusable))
    }
}

fn tls(written: &ServerSettings, file: &mut ServerFile) -> Result<Option<TlsFiles>, Failure> {
    match (&written.tls.certificate, &written.tls.key) {
        (None, None) => Ok(None),
        (Some(FilePath(certificate)), Some(FilePath(key))) => {
            file.files.note(certificate);
            file.files.note(key);
            Ok(Some(TlsFiles { certificate: certificate.clone(), key: key.clone() }))
        }
        _ => Err(Failure::new(Exit::Usage, "TLS needs both a certificate and its key")
            .help("set --tls-certificate and --tls-key, or `certificate` and `key` in [tls] of server.toml")),
    }
}

/// Returns the options of the sign-in, and whether the tokens of the store are accepted.
fn sign_in(
    written: &mut ServerSettings,
    file: &mut ServerFile,
    has_store: bool,
) -> Result<(Option<SignInOptions>, bool), Failure> {
    let auth = &mut written.auth;
    let exit = if file.is_given(&["auth", "tokens-file"]) { Exit::Usage } else { Exit::Settings };
    let mut tokens: Vec<StaticToken> = std::mem::take(&mut auth.tokens).into_iter().map(Token::into).collect();
    if let Some(FilePath(path)) = &auth.tokens_file {
        let read = read_tokens(path, exit, &mut file.files).and_then(|read| {
            // An empty file of tokens must not switch sign-in off.
            if read.is_empty() && tokens.is_empty() && auth.issuer.is_none() && auth.store_tokens != Some(true) {
                return Err(Failure::new(exit, format!("{} contains no tokens", path.display())));
            }
            Ok(read)
        });
        tokens.extend(file.usable("tokens", path, read).unwrap_or_default());
    }
    let mut names = std::collections::HashMap::new();
    for StaticToken { name, sha256, .. } in &tokens {
        if let Some(other) = names.insert(sha256, name) {
            let message =
                format!("the tokens `{other}` and `{name}` in [auth] are one token: whose requests are they?");
            return Err(Failure::new(exit, message).help("make one for each, with `promptshelf token new NAME`"));
        }
    }
    if auth.store_tokens == Some(true) && !has_store {
        let message = "`store-tokens` in [auth] needs a store, and the library is another one";
        return Err(Failure::new(Exit::Settings, message));
    }
    let is_configured = auth.issuer.is_some() || !tokens.is_empty();
    let has_store_tokens = has_store && auth.store_tokens.unwrap_or(is_configured);
    let blocked_subjects = match std::mem::take(&mut auth.blocked_subjects) {
        BlockedSubjects::List(subjects) => subjects,
        BlockedSubjects::File(secret) => {
            let path = &secret.file.0;
            let text = read_file(path, "blocked-subjects", &mut file.files);
            let text = file.usable("blocked subjects", path, text).unwrap_or_default();
            // A name with a remark after it is meant without the remark.
            let remark = |line: &'_ str| line.find(" #").or_else(|| line.find("\t#"));
            let names = lines(&text).flat_map(|(_, line)| [Some(line), remark(line).map(|at| &line[..at])]);
            names.flatten().map(str::to_owned).collect()
        }
    };
    let issuer = issuer(auth, file)?;
    if issuer.is_none() && tokens.is_empty() && !has_store_tokens {
        return Ok((None, has_store_tokens));
    }
    let options = SignInOptions {
        resource: auth.resource.take().map(|url| url.0),
        tokens,
        issuer,
        blocked_subjects,
        required_scopes: std::mem::take(&mut auth.required_scopes),
        scopes_supported: std::mem::take(&mut auth.scopes_supported),
        implies: std::mem::take(&mut auth.implies),
        page_client_id: auth.page_client_id.take(),
        shared_tokens: None,
    };
    Ok((Some(options), has_store_tokens))
}

fn issuer(auth: &mut sections::Auth, file: &mut ServerFile) -> Result<Option<IssuerOptions>, Failure> {
    let Some(HttpsUrl(issuer)) = auth.issuer.take() else { return Ok(None) };
    if auth.resource.is_none() {
        let message = format!("tokens of {issuer} need the URL that they are issued for");
        return Err(Failure::new(Exit::Usage, message)
            .help("set the exact URL that clients use, with --resource https://prompts.example.com/mcp"));
    }
    let mut options = IssuerOptions::new(issuer);
    options.audiences = std::mem::take(&mut auth.audiences);
    options.jwks_uri = auth.jwks_uri.take().map(|url| url.0);
    let invalid = |path: &Path, reason: String| Failure::new(Exit::Settings, format!("{}: {reason}", path.display()));
    if let Some(FilePath(path)) = &auth.jwks_file {
        if options.jwks_uri.is_some() {
            let message = "`jwks-file` and `jwks-uri` in [auth] both name the keys of the issuer";
            return Err(Failure::new(Exit::Settings, message).help("keep one of them"));
        }
        let keys = read_file(path, "jwks-file", &mut file.files)
            .and_then(|text| text.parse::<KeySet>().map_err(|reason| invalid(path, reason)));
        options.keys = file.usable("keys of the issuer", path, keys);
    }
    if let Some(FilePath(path)) = &auth.ca_file {
        let trusted = read_file(path, "ca-file", &mut file.files)
            .and_then(|text| options.trust(text.into_bytes()).map_err(|reason| invalid(path, reason)));
        file.usable("authorities of the issuer", path, trusted);
    }
    if let Some(algorithms) = auth.algorithms.take() {
        options.algorithms = algorithms.into_iter().map(|algorithm| algorithm.0).collect();
    }
    if let Some(seconds) = auth.leeway {
        options.leeway = Duration::from_secs(seconds.0);
    }
    options.user_claim = auth.user_claim.take().unwrap_or(options.user_claim);
    options.roles_claim = auth.roles_claim.take().unwrap_or(options.roles_claim);
    Ok(Some(options))
}

fn read_text(path: &Path, files: &mut KnownFiles) -> std::io::Result<String> {
    let invalid = |error| std::io::Error::new(std::io::ErrorKind::InvalidData, error);
    files.read(path).and_then(|bytes| String::from_utf8(bytes).map_err(invalid))
}

fn read_file(path: &Path, key: &str, files: &mut KnownFiles) -> Result<String, Failure> {
    let text = read_text(path, files).map_err(|error| {
        let message = format!("{}, which `{key}` in [auth] names, cannot be read: {error}", path.display());
        Failure::new(Exit::Settings, message)
    })?;
    // Editors on Windows begin a text with it.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Returns the lines of a file that are neither empty nor comments, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Reads a file with one token a line, each an inline table; lines that begin with `#` are comments. A file that cannot be
/// read and an invalid line end the program with the code `exit`.
fn read_tokens(path: &Path, exit: Exit, files: &mut KnownFiles) -> Result<Vec<StaticToken>, Failure> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Line {
        token: Option<Token>,
    }

    let shown = path.display();
    let text = read_text(path, files)
        .map_err(|error| Failure::new(exit, format!("the tokens file {shown} cannot be read: {error}")))?;
    let mut tokens = Vec::new();
    for (number, line) in lines(&text) {
        let line = line.trim_end_matches(',');
        let mut file = SettingsFile::parse(SourceText::new(shown.to_string(), format!("token = {line}")));
        let read: Line = file.read();
        let invalid = |reason: &str| Failure::new(exit, format!("{shown}:{number}: {reason}"));
        match (read.token, file.diagnostics().first()) {
            (Some(token), None) if token.name.is_empty() => return Err(invalid("a token has an empty name")),
            (Some(token), None) => tokens.push(token.into()),
            (_, Some(found)) => return Err(invalid(&found.message)),
            (None, None) => return Err(invalid("expected a line of `promptshelf token new`")),
        }
    }
    Ok(tokens)
}

impl From<Token> for StaticToken {
    fn from(token: Token) -> StaticToken {
        let Token { name, sha256, scopes, roles, expires } = token;
        StaticToken { name, sha256: sha256.0, scopes, roles, expires: expires.map(|day| day.0) }
    }
}

/// The variable with the library of `serve`, if it is a store and the command line names none.
const STORE_VARIABLE: &str = "PROMPTSHELF_STORE";

/// Returns the variable that would select the library, if it is set to another one than the command line names.
pub fn ignored_variable(arguments: &Arguments, environment: &impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    let store = environment(STORE_VARIABLE).filter(|store| !store.is_empty())?;
    arguments.library.as_ref().filter(|library| **library != Path::new(&store)).map(|_| STORE_VARIABLE)
}

/// The library that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedLibrary {
    /// A folder of prompt files.
    Folder(PathBuf),
    /// A git repository.
    Git(GitAddress),
    /// Channels of a store.
    Channels(Box<ServedChannels>),
    /// The sources of `server.toml`.
    Sources(Arc<[ConfiguredSource]>),
}

/// The channels of a store that are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedChannels {
    /// The store, and the channel at `/mcp`.
    pub default: ChannelAddress,
    /// The channels next to it.
    pub others: Vec<ChannelName>,
    /// The name of the source that the default channel is, if it is one of them.
    pub source: Option<String>,
    /// The sources that are served together with each channel.
    pub sources: Arc<[ConfiguredSource]>,
}

impl Default for ServedLibrary {
    fn default() -> ServedLibrary {
        ServedLibrary::Folder(".".into())
    }
}

impl ServedLibrary {
    /// Takes LIBRARY, else `PROMPTSHELF_STORE`, else the configured sources, else the current folder. The first channel
    /// among the sources is the default one.
    fn resolve(
        arguments: &Arguments,
        written: &ServerSettings,
        sources: Vec<ConfiguredSource>,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Result<ServedLibrary, Failure> {
        let variable = |name: &str| environment(name).filter(|text| !text.is_empty());
        let store = if arguments.library.is_none() { variable(STORE_VARIABLE) } else { None };
        let folder = arguments.library.as_deref().unwrap_or(Path::new("."));
        let word = store.as_deref().or_else(|| folder.to_str()).unwrap_or_default();
        let invalid = |error: promptshelf_store::StoreError| Failure::new(Exit::Usage, error.to_string());
        let is_omitted = arguments.library.is_none();
        let channel = if store.is_some() || StoreUrl::is_meant(word) {
            Some((None, word.parse::<ChannelAddress>().map_err(invalid)?))
        } else {
            sources.iter().filter(|_| is_omitted).find_map(|source| match &source.place {
                SourcePlace::Store(address) => Some((Some(source.name.clone()), (**address).clone())),
                _ => None,
            })
        };
        if let Some((source, default)) = channel {
            let names: Vec<String> = match (arguments.channels.as_slice(), variable("PROMPTSHELF_CHANNELS")) {
                ([], None) => written.channels.keys().cloned().collect(),
                ([], Some(names)) => names.split(',').map(|name| name.trim().to_owned()).collect(),
                (names, _) => names.to_vec(),
            };
            return ServedChannels::resolve(default, &names, source, sources);
        }
        if is_omitted && !sources.is_empty() {
            if !arguments.channels.is_empty() {
                return Err(Failure::new(Exit::Usage, "--channel needs a store, and [[source]] has none"));
            }
            return Ok(ServedLibrary::Sources(sources.into()));
        }
        if !arguments.channels.is_empty() {
            return Err(Failure::new(Exit::Usage, "--channel needs a store, and the library is another one")
                .help("serve a store, such as sqlite:team.db or postgres://…"));
        }
        if GitAddress::is_meant(word) {
            return Ok(ServedLibrary::Git(word.parse::<GitAddress>()?));
        }
        Ok(ServedLibrary::Folder(folder.to_owned()))
    }

    /// Returns whether channels of a store are served.
    #[must_use]
    pub fn has_store(&self) -> bool {
        self.channels().is_some()
    }

    /// Returns the folder, if one is served.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        match self {
            ServedLibrary::Folder(folder) => Some(folder),
            _ => None,
        }
    }

    /// Returns the sources, if these are served.
    #[must_use]
    pub fn sources(&self) -> &[ConfiguredSource] {
        match self {
            ServedLibrary::Sources(sources) => sources,
            ServedLibrary::Channels(channels) => &channels.sources,
            _ => &[],
        }
    }

    /// Returns the requirements of the source that the default channel is.
    pub(crate) fn source_access(&self) -> Option<Access> {
        let channels = self.channels()?;
        let source = channels.source.as_ref()?;
        channels.sources.iter().find(|configured| configured.name == *source)?.access.clone()
    }

    pub(crate) fn channels(&self) -> Option<&ServedChannels> {
        match self {
            ServedLibrary::Channels(channels) => Some(channels),
            _ => None,
        }
    }
}

impl ServedChannels {
    fn resolve(
        default: ChannelAddress,
        names: &[String],
        source: Option<String>,
        sources: Vec<ConfiguredSource>,
    ) -> Result<ServedLibrary, Failure> {
        let invalid = |error: promptshelf_store::StoreError| Failure::new(Exit::Usage, error.to_string());
        if default.revision.is_some() {
            return Err(Failure::new(
                Exit::Usage,
                "a server follows the newest revision of a channel, not a fixed one",
            )
            .help("leave out @REVISION; `promptshelf rollback` makes an earlier revision the newest one"));
        }
        let names: Result<BTreeSet<ChannelName>, _> = names.iter().map(|name| name.parse()).collect();
        let others = names.map_err(invalid)?.into_iter().filter(|name| *name != default.channel).collect();
        Ok(ServedLibrary::Channels(Box::new(ServedChannels { default, others, source, sources: sources.into() })))
    }
}

impl fmt::Display for ServedLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServedLibrary::Folder(folder) => folder.display().fmt(f),
            ServedLibrary::Git(address) => address.fmt(f),
            // The URL of a store is shown without its password.
            ServedLibrary::Channels(channels) if channels.source.is_none() => {
                write!(f, "{}#{}", channels.default.store, channels.default.channel)?;
                if channels.sources.is_empty() { Ok(()) } else { write!(f, " and {}", named(&channels.sources)) }
            }
            _ => named(self.sources()).fmt(f),
        }
    }
}

fn named(sources: &[ConfiguredSource]) -> String {
    let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    format!("the sources {}", names.join(", "))
}

/// The result of a check of `server.toml`.
#[derive(Debug)]
pub struct FileReport {
    /// All mistakes.
    pub diagnostics: Vec<Diagnostic>,
    /// The access rules.
    pub access: Vec<AccessRule>,
    /// The valid ones of `[[source]]`; `None` if there are none, valid or not.
    pub sources: Option<Vec<ConfiguredSource>>,
}

/// Checks `server.toml` as `serve` does before it starts, without opening other files. Private files are compared with
/// the folder that the command line names, else with those of `[[source]]`.
///
/// # Errors
///
/// If the file cannot be read.
pub fn check_file(
    location: &ServerFileLocation,
    library: Option<&Path>,
    environment: &impl Fn(&str) -> Option<String>,
) -> Result<FileReport, Failure> {
    let mut file = location.load()?;
    let flags = BTreeMap::new();
    file.give(FLAGS.iter().filter_map(|flag| flag.given(&flags, environment)).collect());
    let Lists { access, sources, .. } = Lists::read(&mut file);
    let written = file.read();
    let folders = lists::folders(&sources);
    let granted: Vec<PathBuf> = written.grants.roots.iter().map(|root| root.0.clone()).collect();
    let of_sources: &[PathBuf] = if library.is_none() { &folders } else { &[] };
    let public = PublicFolders { library, sources: of_sources, granted: &granted };
    let written = file.merged().unwrap_or(written);
    file.check_private(&written, library.is_none(), &public)?;
    let sources = file.file.is_written(&["source"]).then_some(sources);
    Ok(FileReport { diagnostics: file.file.diagnostics(), access, sources })
}

const MIN_SECRET_BYTES: usize = 16;

const STATE_KEYS: [&str; 2] = ["PROMPTSHELF_STATE_KEY", "PROMPTSHELF_STATE_KEY_PREVIOUS"];

/// The keys that several servers share: the one that signs, and during a rotation the one before, which still verifies. They
/// come from the environment alone, because others can read files of the library and command lines.
///
/// # Errors
///
/// A key that is too short, and a previous key without the new one.
pub fn state_key(environment: impl Fn(&str) -> Option<String>) -> Result<Option<StateKey>, Failure> {
    let read = |variable: &str| {
        let Some(secret) = environment(variable).filter(|secret| !secret.is_empty()) else { return Ok(None) };
        if secret.len() < MIN_SECRET_BYTES {
            let length = secret.len();
            let message =
                format!("{variable} in the environment: expected at least {MIN_SECRET_BYTES} bytes, got {length}");
            return Err(Failure::new(Exit::Usage, message).help("create one with `openssl rand -hex 32`"));
        }
        Ok(Some(StateKey::from_secret(secret.as_bytes())))
    };
    let [key, previous] = STATE_KEYS;
    match (read(key)?, read(previous)?) {
        (None, None) => Ok(None),
        (Some(key), None) => Ok(Some(key)),
        (Some(key), Some(previous)) => Ok(Some(key.with_previous(previous))),
        (None, Some(_)) => Err(Failure::new(Exit::Usage, format!("{previous} is set without {key}"))
            .help("the previous key only verifies; set the new one, too")),
    }
}
