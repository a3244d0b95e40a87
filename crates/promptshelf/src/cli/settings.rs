//! How to serve over HTTP: what the command line says, else the environment,
//! else `[http]` of `promptshelf.toml`, else the default.
//!
//! Everything else in `promptshelf.toml` is the library's and read by its source.

pub(crate) mod audit;
mod given;
mod limits;
mod manifest;
pub(crate) mod observe;
mod proxy;
mod schema;
mod sign_in;
mod tls;

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use promptshelf_core::Diagnostic;
use promptshelf_mcp::StateKey;
use promptshelf_server::http::{self, auth::SignInOptions, tls::TlsFiles};
use promptshelf_service::Limits;

use self::given::Given;
pub(crate) use self::{
    manifest::{Manifest, ManifestFile},
    schema::schemas,
    sign_in::parse_day,
};
use crate::{
    args::HttpArguments,
    commands::diagnostics::path_from_here,
    exit::{Exit, Failure},
};

/// Where to listen when nothing else is said.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8080";

/// The most bytes and seconds that anybody can ask for.
const MOST_BODY_BYTES: u64 = 1 << 30;
const MOST_SECONDS: u64 = 24 * 60 * 60;

/// Where to listen, not yet looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    /// Reads `host:port`, `[::1]:port`, `:port` or `port`; without a host it is this machine alone.
    pub(crate) fn parse(text: &str) -> Result<Address, String> {
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let host = if host.is_empty() { "127.0.0.1" } else { host };
        match port.parse() {
            Ok(port) if !host.contains('/') => Ok(Address { host: host.to_owned(), port }),
            _ => Err(format!("`{text}` is no address to listen on: write it as {DEFAULT_ADDRESS}")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// How to serve over HTTP.
#[derive(Clone, Debug)]
pub(crate) struct HttpConfig {
    pub(crate) address: Address,
    /// Whether somebody asked for HTTP where nothing on the command line does.
    pub(crate) wanted: bool,
    pub(crate) allow_remote: bool,
    /// Everything else about requests, but for how callers sign in.
    pub(crate) options: http::Options,
    /// How callers sign in, if they have to.
    pub(crate) sign_in: Option<SignInOptions>,
    /// A file that tokens are read from.
    pub(crate) tokens_file: Option<PathBuf>,
    /// Whether there is a `promptshelf.toml`.
    pub(crate) has_manifest: bool,
    /// The certificate to serve with, if it is not without TLS.
    pub(crate) tls: Option<TlsFiles>,
    /// How much callers may ask, where the operator says it.
    pub(crate) limits: Option<Limits>,
}

/// What one place says; the rest is left to the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Layer {
    address: Option<Address>,
    allow_remote: Option<bool>,
    allowed_hosts: Option<Vec<String>>,
    allowed_origins: Option<Vec<String>>,
    max_body_bytes: Option<usize>,
    request_timeout: Option<Duration>,
    shutdown_timeout: Option<Duration>,
}

/// The settings by their names in the manifest. In the environment each is
/// `PROMPTSHELF_` and the name in capitals; the flags' help says the same.
const SETTINGS: &[&str] = &[
    "address",
    "allow-remote",
    "allow-hosts",
    "allow-origins",
    "max-body-bytes",
    "request-timeout",
    "shutdown-timeout",
];

impl HttpConfig {
    /// Reads every place.
    ///
    /// # Errors
    ///
    /// The first value that cannot be, and where it stands.
    pub(crate) fn read(
        manifest: &Manifest<'_>,
        http: Option<&str>,
        arguments: &HttpArguments,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<HttpConfig, Failure> {
        let typed = Layer::from_arguments(http, arguments)?;
        let set = Layer::from_environment(&environment)?;
        let written = manifest::read(manifest).map_err(|found| manifest.failure(&found))?;
        let wanted = typed.address.is_some() || set.address.is_some();
        let mut config = typed.or(set).or(written).into_config(wanted);
        config.limits = limits::read(manifest).map_err(|found| manifest.failure(&found))?;
        (config.sign_in, config.tokens_file) = sign_in::read(manifest, arguments, &environment)?;
        config.options.proxies = proxy::read(manifest, arguments, &environment)?;
        config.tls = tls::read(manifest, arguments, &environment)?;
        config.has_manifest = manifest.is_there();
        Ok(config)
    }

    /// The host names that the operator says the server has: the one under which
    /// clients know it is among them.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let resource = self.sign_in.as_ref().and_then(|sign_in| sign_in.resource.as_deref());
        self.options.mcp.allowed_hosts.iter().cloned().chain(resource.and_then(sign_in::host)).collect()
    }

    /// Limits for callers: the operator's, or the usual ones where others than
    /// this machine's own people may ask.
    pub(crate) fn limits_in_force(&self) -> Option<Limits> {
        let is_shared = self.sign_in.is_some() || self.allow_remote;
        self.limits.or_else(|| is_shared.then(Limits::default))
    }

    /// The files that settings are in, besides flags and the environment.
    pub(crate) fn files(&self, folder: &Path) -> Vec<PathBuf> {
        let tls = self.tls.iter().flat_map(|tls| [&tls.certificate, &tls.key]);
        let manifest = folder.join(manifest::MANIFEST);
        std::iter::once(manifest).chain(self.tokens_file.iter().chain(tls).cloned()).collect()
    }
}

/// The fewest bytes that a secret can have to be one.
const LEAST_SECRET_BYTES: usize = 16;

/// The key that servers share. It is a secret, and so it comes from the
/// environment alone: what is in a file of the library, or on a command line,
/// others can read.
pub(crate) fn state_key(environment: impl Fn(&str) -> Option<String>) -> Result<Option<StateKey>, Failure> {
    const VARIABLE: &str = "PROMPTSHELF_STATE_KEY";
    let Some(secret) = environment(VARIABLE).filter(|secret| !secret.is_empty()) else { return Ok(None) };
    if secret.len() < LEAST_SECRET_BYTES {
        let sentence = format!("{VARIABLE} in the environment: a secret needs at least {LEAST_SECRET_BYTES} bytes");
        return Err(Failure::new(Exit::Usage, sentence).help("make one with `openssl rand -hex 32`"));
    }
    Ok(Some(StateKey::from_secret(secret.as_bytes())))
}

/// What is wrong with the sections that only this program reads, if anything is.
pub(crate) fn check_manifest(folder: &Path) -> Vec<Diagnostic> {
    let file = ManifestFile::read(folder);
    let manifest = file.parse();
    let found = [
        manifest::read(&manifest).err(),
        sign_in::check_manifest(&manifest).err(),
        limits::read(&manifest).err(),
        audit::check_manifest(&manifest).err(),
        observe::check_manifest(&manifest).err(),
        tls::check_manifest(&manifest).err(),
        proxy::check_manifest(&manifest).err(),
    ];
    found.into_iter().flatten().map(|found| *found).collect()
}

/// Whether the manifest is there, if it was, and TOML at all. Who starts hears
/// that from the source, and with it everything else that is wrong; who runs must
/// not take a file that cannot be read for one that says nothing.
///
/// # Errors
///
/// What is wrong, and where.
pub(crate) fn check_toml(folder: &Path, was_there: bool) -> Result<(), Failure> {
    manifest::check_toml(folder, was_there).map_err(|found| in_manifest(folder, &found))
}

fn in_manifest(folder: &Path, found: &Diagnostic) -> Failure {
    let place = path_from_here(folder, &found.location.to_string());
    Failure::new(Exit::Manifest, format!("{place}: {}", found.message))
}

impl Layer {
    fn from_arguments(http: Option<&str>, arguments: &HttpArguments) -> Result<Layer, Failure> {
        let usage = |flag: &str, reason: String| Failure::new(Exit::Usage, format!("--{flag}: {reason}"));
        let some = |values: &[String]| (!values.is_empty()).then(|| values.to_vec());
        let number = |flag, text: &Option<String>, most| match text {
            Some(text) => given::parse_number(text, most).map(Some).map_err(|reason| usage(flag, reason)),
            None => Ok(None),
        };
        Ok(Layer {
            address: http.map(Address::parse).transpose().map_err(|reason| usage("http", reason))?,
            allow_remote: arguments.allow_remote.then_some(true),
            allowed_hosts: some(&arguments.allowed_hosts),
            allowed_origins: some(&arguments.allowed_origins),
            max_body_bytes: number("max-body-bytes", &arguments.max_body_bytes, MOST_BODY_BYTES)?.map(to_size),
            request_timeout: number("request-timeout", &arguments.request_timeout, MOST_SECONDS)?
                .map(Duration::from_secs),
            shutdown_timeout: number("shutdown-timeout", &arguments.shutdown_timeout, MOST_SECONDS)?
                .map(Duration::from_secs),
        })
    }

    fn from_environment(environment: impl Fn(&str) -> Option<String>) -> Result<Layer, Failure> {
        let mut layer = Layer::default();
        for setting in SETTINGS {
            // The flag is `--http`, and so it is here.
            let name = if *setting == "address" { "http" } else { setting };
            let variable = format!("PROMPTSHELF_{}", name.replace('-', "_").to_uppercase());
            let Some(text) = environment(&variable).filter(|text| !text.is_empty()) else { continue };
            layer
                .set(setting, &Given::Text(&text))
                .map_err(|reason| Failure::new(Exit::Usage, format!("{variable} in the environment: {reason}")))?;
        }
        Ok(layer)
    }

    /// Reads a setting by its name.
    fn set(&mut self, setting: &str, given: &Given<'_>) -> Result<(), String> {
        match setting {
            "address" => self.address = Some(Address::parse(&given.text()?)?),
            "allow-remote" => self.allow_remote = Some(given.boolean()?),
            "allow-hosts" => self.allowed_hosts = Some(given.texts()?),
            "allow-origins" => self.allowed_origins = Some(given.texts()?),
            "max-body-bytes" => self.max_body_bytes = Some(to_size(given.number(MOST_BODY_BYTES)?)),
            "request-timeout" => self.request_timeout = Some(Duration::from_secs(given.number(MOST_SECONDS)?)),
            "shutdown-timeout" => self.shutdown_timeout = Some(Duration::from_secs(given.number(MOST_SECONDS)?)),
            unknown => return Err(format!("`{unknown}` means nothing in [http]")),
        }
        Ok(())
    }

    /// What this layer says, and where it says nothing, what the next one does.
    fn or(self, next: Layer) -> Layer {
        Layer {
            address: self.address.or(next.address),
            allow_remote: self.allow_remote.or(next.allow_remote),
            allowed_hosts: self.allowed_hosts.or(next.allowed_hosts),
            allowed_origins: self.allowed_origins.or(next.allowed_origins),
            max_body_bytes: self.max_body_bytes.or(next.max_body_bytes),
            request_timeout: self.request_timeout.or(next.request_timeout),
            shutdown_timeout: self.shutdown_timeout.or(next.shutdown_timeout),
        }
    }

    fn into_config(self, wanted: bool) -> HttpConfig {
        let mut options = http::Options::default();
        options.mcp.allowed_hosts = self.allowed_hosts.unwrap_or_default();
        options.mcp.allowed_origins = self.allowed_origins.unwrap_or_default();
        options.mcp.max_body_bytes = self.max_body_bytes.unwrap_or(options.mcp.max_body_bytes);
        options.request_timeout = self.request_timeout.unwrap_or(options.request_timeout);
        options.shutdown_timeout = self.shutdown_timeout.unwrap_or(options.shutdown_timeout);
        let default = Address { host: "127.0.0.1".to_owned(), port: 8080 };
        let address = self.address.unwrap_or(default);
        HttpConfig {
            address,
            wanted,
            allow_remote: self.allow_remote.unwrap_or(false),
            options,
            sign_in: None,
            tokens_file: None,
            has_manifest: false,
            tls: None,
            limits: None,
        }
    }
}

/// Bounded by [`MOST_BODY_BYTES`], so it fits on every machine.
fn to_size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
