//! The operator's settings: flags of `serve`, else environment variables, else `server.toml`, else defaults.
//!
//! One reader for all of them. Settings of a library (`promptshelf.toml`) belong to its authors and are read by
//! `promptshelf-source`.

mod checked;
mod dependencies;
mod evaluation_section;
mod evaluations;
mod file;
mod library;
mod overrides;
mod private_files;
mod requirements;
mod rollout_section;
mod rollouts;
mod sections;
mod sign_in;
mod source_sections;
mod sources;
mod value;
mod webhook_sections;
mod webhooks;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use promptshelf_core::{AccessRule, Diagnostic};
use promptshelf_mcp::{StateKey, ToolMode};
use promptshelf_server::{
    api::Api,
    http::{
        self,
        auth::SignInOptions,
        proxy::{IpNet, Proxies},
        tls::TlsFiles,
    },
};
use promptshelf_service::{AuditFileOptions, Limits, OnLoss};

use self::{
    checked::Checked,
    overrides::Overrides,
    private_files::{PrivateFile, PublicFolders},
    sections::{Http, MIN_CALLERS, RETENTION_DAYS, ServerSettings, TRACES_PERCENT, Tls},
    sign_in::ResolvedSignIn,
    value::{CollectorUrl, Network, Switch},
};
pub(crate) use self::{
    checked::check_file,
    file::{ServerFile, ServerFileLocation},
    library::{ServedLibrary, ignored_variable},
    rollouts::ConfiguredRollout,
    sections::schema,
    sources::{ConfiguredSource, McpEndpoint, McpPlace, SourcePlace, is_scope},
    value::{Address, Day, InvalidValue},
    webhooks::ConfiguredWebhook,
};
pub(crate) use self::{evaluations::ConfiguredEvaluation, library::ServedChannels};
use crate::{
    args::ServeArguments,
    exit::{Exit, Failure},
};

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) library: ServedLibrary,
    pub(crate) http: HttpSettings,
    /// The audit file, if requests are recorded.
    pub(crate) audit: Option<AuditFileOptions>,
    pub(crate) metrics: Option<Address>,
    pub(crate) traces: Option<Traces>,
    pub(crate) access: Vec<AccessRule>,
    pub(crate) granted_roots: Vec<PathBuf>,
    pub(crate) tools: ToolMode,
    pub(crate) shows_provenance: bool,
    pub(crate) cache: Option<PathBuf>,
    /// The count of usage, unless it is off.
    pub(crate) usage: Option<UsageSettings>,
    pub(crate) webhooks: Vec<ConfiguredWebhook>,
    pub(crate) rollouts: Vec<ConfiguredRollout>,
    pub(crate) evaluations: Vec<String>,
    /// The `server.toml` that was read.
    pub(crate) file: Option<PathBuf>,
    /// Its mistakes that are not errors.
    pub(crate) warnings: Vec<Diagnostic>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UsageSettings {
    pub(crate) retention: Duration,
    pub(crate) min_callers: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct HttpSettings {
    pub(crate) address: Address,
    pub(crate) is_requested: bool,
    pub(crate) allow_remote: bool,
    /// Hosts, origins, bounds, timeouts and trusted proxies. Sign-in is in `sign_in`.
    pub(crate) options: http::Options,
    /// Sign-in, if callers have to sign in.
    pub(crate) sign_in: Option<SignInOptions>,
    /// The files that `sign_in` was read from.
    pub(crate) sign_in_files: Vec<PathBuf>,
    pub(crate) has_store_tokens: bool,
    /// The certificate, if the server uses TLS.
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) has_api: bool,
    /// The bytes that a caller of the API may store in a day without publishing them.
    pub(crate) unpublished_bytes: u64,
    /// Limits for callers, if they are configured.
    pub(crate) limits: Option<Limits>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Traces {
    pub(crate) endpoint: String,
    /// The percentage of traces started here that are sent. A trace that a caller started follows the caller's decision.
    pub(crate) percent: u8,
}

impl Settings {
    /// Combines flags, environment and `server.toml`.
    ///
    /// # Errors
    ///
    /// All mistakes of `server.toml`, else the first invalid flag or variable, else settings that exclude each other.
    pub(crate) fn read(
        location: &ServerFileLocation,
        arguments: &ServeArguments,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Result<Settings, Failure> {
        let overrides = Overrides::new(environment);
        let mut file = location.load()?;
        let Checked { written, access, sources, webhooks, rollouts } = Checked::read(&mut file, arguments, &overrides);
        file.check()?;
        let channel_access = library::access(&written.channels);
        let cache = written.store.cache.as_ref().map(|folder| file.resolve(folder));
        let cache = overrides.path("cache", arguments.cache.as_deref()).or(cache);
        let library = ServedLibrary::resolve(arguments, &written.channels, sources, cache.clone(), &overrides)?;
        let granted_roots = file.granted_roots();
        let sources: Vec<PathBuf> = sources::folders(library.sources()).collect();
        let folders = PublicFolders { library: library.folder(), sources: &sources, granted: &granted_roots };
        let private = PrivateFile::all(&file, &written, !library.sources().is_empty(), arguments, &overrides);
        folders.refuse(&private, &mut file)?;
        let mut warnings = file.check()?;
        warnings.extend(file.ignored_sources(!library.sources().is_empty()));
        warnings.extend(file.ignored_rollouts(matches!(library, ServedLibrary::Channels(_))));
        let metrics: Option<Address> = overrides.value("metrics", arguments.over_http.metrics.as_deref())?;
        let audit = audit(&written, &file, arguments, &overrides)?;
        let traces = traces(&written, arguments.traces.as_deref(), &overrides)?;
        let metrics = metrics.or(written.metrics.listen.clone());
        let tools = written.tools.effective(arguments.tools);
        let shows_provenance = written.provenance.enabled;
        let profiles = written.profiles.iter().map(|(name, profile)| (name.clone(), (*profile).into())).collect();
        let discovery = written.discovery.clone();
        let evaluations = written.evaluation.0.iter().map(|section| section.name.0.clone()).collect();
        let retention_days = written.usage.retention_days.map_or(RETENTION_DAYS, |days| days.0);
        let usage = written.usage.enabled.then(|| UsageSettings {
            retention: Duration::from_secs(retention_days * 24 * 60 * 60),
            min_callers: written.usage.min_callers.map_or(MIN_CALLERS, |callers| callers.0),
        });
        let mut http = HttpSettings::new(written, &file, arguments, &overrides, library.has_store())?;
        http.options.channel_access = channel_access;
        http.options.profiles = profiles;
        let resource = http.sign_in.as_ref().and_then(|sign_in| sign_in.resource.clone());
        http.options.discovery = http::Discovery {
            server_card: discovery.server_card,
            catalog: discovery.catalog,
            url: discovery.url.map(|url| url.0).or(resource),
            is_tls: http.tls.is_some(),
        };
        Ok(Settings {
            library,
            audit,
            metrics,
            traces,
            access,
            granted_roots,
            tools,
            shows_provenance,
            cache,
            usage,
            webhooks,
            rollouts,
            evaluations,
            http,
            warnings,
            file: file.path().map(Path::to_path_buf),
        })
    }

    /// The files that contain settings, or would if they existed.
    pub(crate) fn files(&self, location: &ServerFileLocation) -> Vec<PathBuf> {
        let tls = self.http.tls.iter().flat_map(|tls| [&tls.certificate, &tls.key]);
        location.candidates().iter().chain(self.http.sign_in_files.iter().chain(tls)).cloned().collect()
    }
}

/// The settings of traces, which start before everything else.
///
/// # Errors
///
/// All mistakes of `server.toml`, else an invalid flag or variable.
pub(crate) fn read_traces(
    location: &ServerFileLocation,
    arguments: &ServeArguments,
    environment: &impl Fn(&str) -> Option<String>,
) -> Result<Option<Traces>, Failure> {
    let overrides = Overrides::new(environment);
    let mut file = location.load()?;
    let Checked { written, .. } = Checked::read(&mut file, arguments, &overrides);
    file.check()?;
    traces(&written, arguments.traces.as_deref(), &overrides)
}

impl HttpSettings {
    fn new<E: Fn(&str) -> Option<String>>(
        written: ServerSettings,
        file: &ServerFile,
        arguments: &ServeArguments,
        overrides: &Overrides<'_, E>,
        has_store: bool,
    ) -> Result<HttpSettings, Failure> {
        let flags = &arguments.over_http;
        let Http {
            address,
            allow_remote,
            allow_hosts,
            allow_origins,
            max_body_bytes,
            request_timeout,
            progress_timeout,
            shutdown_timeout,
        } = written.http;
        let requested: Option<Address> = overrides.value("http", arguments.http.as_deref())?;
        let remote: Option<Switch> = overrides.value("allow-remote", flags.allow_remote.then_some("true"))?;
        let mut options = http::Options::default();
        let mcp = &mut options.mcp;
        mcp.allowed_hosts = overrides.list("allow-host", "ALLOW_HOSTS", &flags.allowed_hosts)?.unwrap_or(allow_hosts);
        mcp.allowed_origins =
            overrides.list("allow-origin", "ALLOW_ORIGINS", &flags.allowed_origins)?.unwrap_or(allow_origins);
        if let Some(bytes) = overrides.value("max-body-bytes", flags.max_body_bytes.as_deref())?.or(max_body_bytes) {
            mcp.max_body_bytes = bytes.to_usize();
        }
        if let Some(seconds) = overrides.value("request-timeout", flags.request_timeout.as_deref())?.or(request_timeout)
        {
            options.request_timeout = Duration::from_secs(seconds.0);
        }
        let shutdown = overrides.value("shutdown-timeout", flags.shutdown_timeout.as_deref())?.or(shutdown_timeout);
        if let Some(seconds) = shutdown {
            options.shutdown_timeout = Duration::from_secs(seconds.0);
        }
        let trusted: Option<Vec<Network>> = overrides.list("trust-proxy", "TRUST_PROXY", &flags.trusted_proxies)?;
        let trusted: Vec<IpNet> =
            trusted.unwrap_or(written.proxy.trusted).into_iter().map(|network| network.0).collect();
        options.proxies = Proxies { trusted, header: written.proxy.header.into() };
        let sign_in = sign_in::resolve(written.auth, file, flags, overrides, has_store)?;
        let ResolvedSignIn { options: sign_in, files: sign_in_files, has_store_tokens } = sign_in;
        let is_tls_only = written.tls.strict_transport_security.unwrap_or(true);
        let tls = tls(written.tls, file, arguments, overrides)?;
        options.strict_transport_security = tls.is_some() && is_tls_only;
        let allow_remote = remote.map_or(allow_remote, |remote| remote.0);
        let api: Option<Switch> = overrides.value("api", flags.api.then_some("true"))?;
        let has_api = api.map(|api| api.0).or(written.api.enabled).unwrap_or(sign_in.is_some());
        options.limits = written.limits.to_connection_limits(allow_remote || sign_in.is_some());
        if let Some(seconds) = progress_timeout {
            options.limits.progress_timeout = Duration::from_secs(seconds.0);
        }
        Ok(HttpSettings {
            is_requested: requested.is_some(),
            address: requested.or(address).unwrap_or_default(),
            allow_remote,
            options,
            sign_in,
            sign_in_files,
            has_store_tokens,
            tls,
            has_api,
            unpublished_bytes: written.api.unpublished_bytes.map_or(Api::UNPUBLISHED_BYTES, |bytes| bytes.0),
            limits: written.limits.to_limits(),
        })
    }

    /// The host names that the operator gives the server, among them the one of its resource URL.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let resource = self.sign_in.as_ref().and_then(|sign_in| sign_in.resource.as_deref());
        self.options.mcp.allowed_hosts.iter().cloned().chain(resource.and_then(value::host)).collect()
    }

    /// The limits for callers: the configured ones, else the defaults if other machines or several people can call.
    pub(crate) fn effective_limits(&self) -> Option<Limits> {
        let is_shared = self.sign_in.is_some() || self.allow_remote;
        self.limits.or_else(|| is_shared.then(Limits::default))
    }
}

fn tls<E: Fn(&str) -> Option<String>>(
    written: Tls,
    file: &ServerFile,
    arguments: &ServeArguments,
    overrides: &Overrides<'_, E>,
) -> Result<Option<TlsFiles>, Failure> {
    let flags = &arguments.over_http;
    let path = |name, flag: &Option<PathBuf>, written: Option<PathBuf>| {
        overrides.path(name, flag.as_deref()).or(written.map(|path| file.resolve(&path)))
    };
    let certificate = path("tls-certificate", &flags.tls_certificate, written.certificate);
    let key = path("tls-key", &flags.tls_key, written.key);
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        _ => Err(Failure::new(Exit::Usage, "TLS needs both a certificate and its key")
            .help("set --tls-certificate and --tls-key, or `certificate` and `key` in [tls] of server.toml")),
    }
}

fn audit<E: Fn(&str) -> Option<String>>(
    written: &ServerSettings,
    file: &ServerFile,
    arguments: &ServeArguments,
    overrides: &Overrides<'_, E>,
) -> Result<Option<AuditFileOptions>, Failure> {
    let written = &written.audit;
    let configured = || written.file.as_ref().map(|path| file.resolve(path));
    let Some(path) = overrides.path("audit", arguments.audit.as_deref()).or_else(configured) else { return Ok(None) };
    let mut options = AuditFileOptions::new(path);
    if let Some(bytes) = written.max_bytes {
        options.max_bytes = bytes.0;
    }
    if let Some(keep) = written.keep {
        options.keep = keep.to_u32();
    }
    options.keep_for = written.keep_days.map(|days| Duration::from_secs(days.0 * 24 * 60 * 60));
    options.on_loss = match written.on_loss {
        sections::OnLoss::Count => OnLoss::Count,
        sections::OnLoss::Refuse => OnLoss::Refuse,
    };
    Ok(Some(options))
}

fn traces<E: Fn(&str) -> Option<String>>(
    written: &ServerSettings,
    flag: Option<&str>,
    overrides: &Overrides<'_, E>,
) -> Result<Option<Traces>, Failure> {
    let endpoint: Option<CollectorUrl> = overrides.value("traces", flag)?;
    let percent = written.traces.percent.map_or(TRACES_PERCENT, |percent| u8::try_from(percent.0).unwrap_or(100));
    let endpoint = endpoint.or_else(|| written.traces.endpoint.clone());
    Ok(endpoint.map(|endpoint| Traces { endpoint: endpoint.0, percent }))
}

const MIN_SECRET_BYTES: usize = 16;

const STATE_KEYS: [&str; 2] = ["PROMPTSHELF_STATE_KEY", "PROMPTSHELF_STATE_KEY_PREVIOUS"];

/// The keys that several servers share: the one that signs, and during a rotation the one before, which still verifies. They
/// come from the environment alone, because others can read files of the library and command lines.
pub(crate) fn state_key(environment: impl Fn(&str) -> Option<String>) -> Result<Option<StateKey>, Failure> {
    let read = |variable: &str| {
        let Some(secret) = environment(variable).filter(|secret| !secret.is_empty()) else { return Ok(None) };
        if secret.len() < MIN_SECRET_BYTES {
            let message = format!(
                "{variable} in the environment: expected at least {MIN_SECRET_BYTES} bytes, got {}",
                secret.len()
            );
            return Err(Failure::new(Exit::Usage, message).help("create one with `openssl rand -hex 32`"));
        }
        Ok(Some(secret))
    };
    let [key, previous] = STATE_KEYS;
    match (read(key)?, read(previous)?) {
        (None, None) => Ok(None),
        (Some(secret), None) => Ok(Some(StateKey::from_secret(secret.as_bytes()))),
        (Some(secret), Some(old)) => {
            Ok(Some(StateKey::from_secret(secret.as_bytes()).with_previous(StateKey::from_secret(old.as_bytes()))))
        }
        (None, Some(_)) => Err(Failure::new(Exit::Usage, format!("{previous} is set without {key}"))
            .help("the previous key only verifies; set the new one, too")),
    }
}

#[cfg(test)]
mod tests;
