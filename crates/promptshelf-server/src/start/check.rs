//! `serve --check`: opens everything that the settings name, as a start does, and serves and changes nothing.

use std::{fs::OpenOptions, path::Path, time::Duration};

use jiff::Timestamp;
use promptshelf_git::{GitOptions, GitSource};
use promptshelf_source::{Files, SourceState};
use promptshelf_store::ChannelName;
use tokio::time::{Instant, sleep, timeout};

use super::{served::shared_settings, webhook_secret};
use crate::{
    channels::StoreHandle,
    failure::Failure,
    http::{auth::SignIn, tls::Tls},
    library::Library,
    settings::{Address, ConfiguredSource, ServedLibrary, Settings},
    sources::{OpenSources, StateFolder},
    words::{count, count_all},
};

/// The time for each thing that is elsewhere.
const LIMIT: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

/// Something that the settings name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckedSetting {
    /// What it is, such as `store`.
    pub what: &'static str,
    /// Its place, without secrets.
    pub place: String,
    /// What was found; otherwise why it cannot be used.
    pub outcome: Result<String, String>,
}

impl CheckedSetting {
    fn new(what: &'static str, place: impl Into<String>, outcome: Result<String, String>) -> CheckedSetting {
        CheckedSetting { what, place: place.into(), outcome }
    }
}

/// Opens everything that the settings name: files, libraries, sources and stores, the issuer's keys, and the names of hosts.
///
/// # Errors
///
/// Without a temporary folder for copies.
pub async fn check(settings: &Settings) -> Result<Vec<CheckedSetting>, Failure> {
    let mut found = Vec::new();
    if let Some(file) = &settings.file {
        found.push(CheckedSetting::new("settings", file.display().to_string(), Ok("read".to_owned())));
    }
    library(settings, &mut found).await?;
    let live = &settings.live;
    if let Some(files) = &live.tls {
        let opened = Tls::open(files).map_err(|error| error.to_string());
        let outcome = opened.and_then(|tls| expiry(tls.expires(), Timestamp::now()));
        found.push(CheckedSetting::new("certificate", files.certificate.display().to_string(), outcome));
    }
    if let Some(options) = &live.sign_in {
        if !options.tokens.is_empty() {
            found.push(CheckedSetting::new("tokens", "", Ok(count(options.tokens.len(), "token"))));
        }
        if let Some(issuer) = &options.issuer {
            let (sign_in, name) = (SignIn::new(options.clone()), issuer.issuer.clone());
            found.push(CheckedSetting::new("issuer", name, keys(&sign_in).await));
        }
    }
    if let Some(audit) = &live.audit {
        found.push(CheckedSetting::new("audit", audit.path.display().to_string(), writable(&audit.path)));
    }
    if let Some(cache) = &settings.fixed.cache {
        found.push(CheckedSetting::new("cache", cache.display().to_string(), folder(cache)));
    }
    for webhook in &settings.fixed.webhooks {
        let label = webhook.target.label().to_owned();
        let secret = webhook.secret.as_deref().map(|file| webhook_secret(&label, file)).transpose();
        let outcome = match (secret, webhook.target.host()) {
            (Err(failure), _) => Err(failure.message),
            (Ok(_), Some((host, port))) => resolved(host, port).await,
            (Ok(_), None) => Ok("its name is resolved by the proxy".to_owned()),
        };
        found.push(CheckedSetting::new("webhook", label, outcome));
    }
    if let Some(traces) = &settings.fixed.traces {
        let url = url::Url::parse(&traces.endpoint).ok();
        let host = url.as_ref().and_then(|url| Some((url.host_str()?, url.port_or_known_default()?)));
        let outcome = match host {
            Some((host, port)) => resolved(host, port).await,
            None => Err("it has no host".to_owned()),
        };
        found.push(CheckedSetting::new("traces", traces.endpoint.clone(), outcome));
    }
    let listening = [("address", Some(&settings.fixed.address)), ("metrics", settings.fixed.metrics.as_ref())];
    for (what, address) in listening.into_iter().filter_map(|(what, address)| Some((what, address?))) {
        let Address { host, port, .. } = address;
        found.push(CheckedSetting::new(what, address.to_string(), resolved(host, *port).await));
    }
    Ok(found)
}

async fn library(settings: &Settings, found: &mut Vec<CheckedSetting>) -> Result<(), Failure> {
    let copies = tempfile::tempdir()?;
    let loaded = |files: Files| {
        files.grant_roots(settings.live.granted_roots.iter().cloned());
        let library = Library::builder().source(files).quiet().build().map_err(|error| error.to_string())?;
        let prompts = count(library.catalog().prompts().len(), "prompt");
        Ok(format!("{prompts}, {}", count_all(&library.findings())))
    };
    match &settings.fixed.library {
        ServedLibrary::Folder(folder) => {
            found.push(CheckedSetting::new("library", folder.display().to_string(), loaded(Files::folder(folder))));
        }
        ServedLibrary::Git(address) => {
            let read = async {
                let git = GitSource::new(GitOptions::new(address.clone(), copies.path().join("git")))?;
                git.refresh().await?;
                Ok::<_, Failure>(git)
            };
            let outcome = match timeout(LIMIT, read).await {
                Ok(Ok(git)) => loaded(git.source().clone()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err(silent()),
            };
            found.push(CheckedSetting::new("library", address.to_string(), outcome));
        }
        ServedLibrary::Channels(channels) => {
            let store = StoreHandle::reading(channels.default.store.clone());
            for name in [&channels.default.channel].into_iter().chain(&channels.others) {
                let place = format!("{}#{name}", channels.default.store);
                found.push(CheckedSetting::new("channel", place, channel(&store, name).await));
            }
            sources(settings, &channels.sources, &copies, found).await?;
        }
        ServedLibrary::Sources(configured) => sources(settings, configured, &copies, found).await?,
    }
    Ok(())
}

async fn channel(store: &StoreHandle, name: &ChannelName) -> Result<String, String> {
    let read = async { store.get().await?.channel(name).await };
    match timeout(LIMIT, read).await {
        Ok(Ok(info)) => Ok(format!("revision {}", info.head.revision)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(silent()),
    }
}

async fn sources(
    settings: &Settings,
    configured: &[ConfiguredSource],
    copies: &tempfile::TempDir,
    found: &mut Vec<CheckedSetting>,
) -> Result<(), Failure> {
    let shared = crate::sources::SharedSettings { cache: None, ..shared_settings(settings, None, false) };
    let open = OpenSources::open(configured, &shared, Some(&StateFolder::at(copies.path())))?;
    open.set.settled(LIMIT).await;
    for status in open.set.statuses() {
        let outcome = match (status.state, status.problem) {
            (SourceState::Current, _) => Ok(count(status.prompts, "prompt")),
            (_, Some(problem)) => Err(problem),
            (_, None) => Err(silent()),
        };
        found.push(CheckedSetting::new("source", format!("{} ({})", status.name, status.kind), outcome));
    }
    Ok(())
}

async fn keys(sign_in: &SignIn) -> Result<String, String> {
    sign_in.fetch_keys();
    let end = Instant::now() + LIMIT;
    while sign_in.key_fetches().is_some_and(|fetches| fetches.succeeded + fetches.failed == 0) && Instant::now() < end {
        sleep(PAUSE).await;
    }
    sign_in.missing_keys().map_or(Ok("its keys can be used".to_owned()), Err)
}

/// Whether the audit can be written. Only a file that exists is opened.
fn writable(path: &Path) -> Result<String, String> {
    match OpenOptions::new().append(true).open(path) {
        Ok(_) => Ok("it can be written".to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            folder(parent).map(|_| "it will be created".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn folder(path: &Path) -> Result<String, String> {
    match path.metadata() {
        Ok(found) if found.is_dir() => Ok("it exists".to_owned()),
        Ok(_) => Err("it is not a folder".to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
                Err(format!("the folder {} does not exist", parent.display()))
            }
            _ => Ok("it will be created".to_owned()),
        },
        Err(error) => Err(error.to_string()),
    }
}

async fn resolved(host: &str, port: u16) -> Result<String, String> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match timeout(LIMIT, tokio::net::lookup_host((host, port))).await {
        Ok(Ok(mut addresses)) => match addresses.next() {
            Some(address) => Ok(format!("it is {}", address.ip())),
            None => Err("the name has no address".to_owned()),
        },
        Ok(Err(error)) => Err(format!("the name cannot be resolved: {error}")),
        Err(_) => Err(silent()),
    }
}

fn expiry(expires: Option<Timestamp>, now: Timestamp) -> Result<String, String> {
    match expires {
        Some(expires) if expires <= now => Err(format!("it has expired at {expires}")),
        Some(expires) => Ok(format!("it is valid until {expires}")),
        None => Ok("it has no end".to_owned()),
    }
}

fn silent() -> String {
    format!("no answer within {} s", LIMIT.as_secs())
}
