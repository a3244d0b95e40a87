//! `serve --check`: opens everything that a start opens, and serves and changes nothing.

use std::{
    fs::OpenOptions,
    io,
    net::SocketAddr,
    path::Path,
    time::{Duration, SystemTime},
};

use jiff::Timestamp;
use promptshelf_git::{GitOptions, GitSource};
use promptshelf_source::{Files, SourceState};
use promptshelf_store::ChannelName;
use tokio::time::{Instant, sleep, timeout};

use super::{
    Start, addresses, check_editing, must_be_private, needs_store, served::shared_settings, socket, unusable,
    webhook_secret,
};
use crate::{
    channels::{StoreHandle, revision_of_copy},
    failure::{Exit, Failure},
    http::{auth::SignIn, tls::Tls},
    library::Library,
    settings::{Address, ConfiguredSource, ServedLibrary, Settings, SourcePlace, UnusableFile},
    sources::{OpenSources, StateFolder, webhook_secret as source_webhook_secret},
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

/// Opens everything that a start with these settings opens: files, libraries, sources and stores, the issuer's keys, the
/// addresses to listen on, and the names of hosts. `files` could not be read with the settings.
///
/// # Errors
///
/// Without a temporary folder for copies.
pub async fn check(settings: &Settings, files: &[UnusableFile], start: &Start) -> Result<Vec<CheckedSetting>, Failure> {
    let mut found = Vec::new();
    if let Some(file) = &settings.file {
        found.push(CheckedSetting::new("settings", file.display().to_string(), Ok("read".to_owned())));
    }
    let unread = |file: &UnusableFile| {
        CheckedSetting::new(file.what, file.path.display().to_string(), Err(reason(file.failure.clone())))
    };
    found.extend(files.iter().map(unread));
    library(settings, start.strict, &mut found).await?;
    let live = &settings.live;
    if let Some(audit) = &live.audit {
        found.push(CheckedSetting::new("audit", audit.path.display().to_string(), appendable(&audit.path)));
    }
    if let Some(cache) = &settings.fixed.cache {
        found.push(CheckedSetting::new("cache", cache.display().to_string(), folder(cache)));
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
    if start.over_http {
        over_http(settings, !files.is_empty(), start, &mut found).await;
    }
    Ok(found)
}

async fn over_http(settings: &Settings, lacks_files: bool, start: &Start, found: &mut Vec<CheckedSetting>) {
    let live = &settings.live;
    if let Some(files) = &live.tls {
        let opened = Tls::open(files).map_err(|error| error.to_string());
        let outcome = opened.and_then(|tls| expiry(tls.expires(), Timestamp::now()));
        found.push(CheckedSetting::new("certificate", files.certificate.display().to_string(), outcome));
    }
    if let Some(options) = &live.sign_in {
        if !options.tokens.is_empty() {
            let now = SystemTime::now();
            let expired = options.tokens.iter().filter(|token| token.expires.is_some_and(|at| at <= now)).count();
            let all = count(options.tokens.len(), "token");
            let all = if expired == 0 { all } else { format!("{all}, of which {expired} expired") };
            found.push(CheckedSetting::new("tokens", "", Ok(all)));
        }
        if let Some(issuer) = &options.issuer {
            let (sign_in, name) = (SignIn::new(options.clone()), issuer.issuer.clone());
            found.push(CheckedSetting::new("issuer", name, keys(&sign_in).await));
        }
    }
    for webhook in &settings.fixed.webhooks {
        let label = webhook.target.label().to_owned();
        let secret = webhook.secret.as_deref().map(|file| webhook_secret(&label, file)).transpose();
        let outcome = match (secret, webhook.target.host()) {
            _ if !settings.fixed.library.has_store() => Err(reason(needs_store(settings))),
            (Err(failure), _) => Err(reason(failure)),
            (Ok(_), Some((host, port))) => resolved(host, port).await,
            (Ok(_), None) => Ok("its name is resolved by the proxy".to_owned()),
        };
        found.push(CheckedSetting::new("webhook", label, outcome));
    }
    let address = &settings.fixed.address;
    let outcome = match check_editing(settings, start) {
        Ok(()) => listening(settings, lacks_files).await,
        Err(failure) => Err(failure),
    };
    found.push(CheckedSetting::new("address", address.to_string(), outcome.map_err(reason)));
    if let Some(address) = &settings.fixed.metrics {
        let resolved = async |address: &Address| {
            let found = tokio::net::lookup_host((address.host.as_str(), address.port)).await;
            found.map(Iterator::collect::<Vec<SocketAddr>>)
        };
        let served = resolved(&settings.fixed.address).await.unwrap_or_default();
        let outcome = match resolved(address).await {
            Ok(addresses) if addresses.iter().any(|one| served.iter().any(|other| overlap(one, other))) => {
                let message = format!("{address} is the address of `[http]` too");
                Err(Failure::new(Exit::Settings, message).help("choose another port for `[metrics]`"))
            }
            Ok(addresses) => bindable(address, &addresses).map(|(outcome, _)| outcome),
            Err(error) => Err(unusable(address, &error)),
        };
        found.push(CheckedSetting::new("metrics", address.to_string(), outcome.map_err(reason)));
    }
}

/// Whether the server can listen. Whether it needs a sign-in is unknown while files lack that it may consist of.
async fn listening(settings: &Settings, lacks_files: bool) -> Result<String, Failure> {
    let address = &settings.fixed.address;
    let addresses = if lacks_files {
        let found = tokio::net::lookup_host((address.host.as_str(), address.port)).await;
        found.map_err(|error| unusable(address, &error))?.collect()
    } else {
        addresses(settings).await?
    };
    let (outcome, bound) = bindable(address, &addresses)?;
    match bound.filter(|_| !lacks_files) {
        Some(bound) => must_be_private(settings, bound).map(|()| outcome),
        None => Ok(outcome),
    }
}

/// Whether only one of two sockets can be bound.
fn overlap(one: &SocketAddr, other: &SocketAddr) -> bool {
    let is_any = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && (is_any || one.ip() == other.ip())
}

/// Binds an address, and leaves it at once. It may be in use: by the server that is to be started again.
fn bindable(address: &Address, addresses: &[SocketAddr]) -> Result<(String, Option<SocketAddr>), Failure> {
    match socket(addresses).and_then(|socket| socket.local_addr()) {
        Ok(bound) => Ok(("it is free".to_owned(), Some(bound))),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            Ok(("it is in use at present: a start needs the end of that server".to_owned(), addresses.first().copied()))
        }
        Err(error) => Err(unusable(address, &error)),
    }
}

fn reason(failure: Failure) -> String {
    match failure.help {
        Some(help) => format!("{}; {help}", failure.message),
        None => failure.message,
    }
}

async fn library(settings: &Settings, is_strict: bool, found: &mut Vec<CheckedSetting>) -> Result<(), Failure> {
    let copies = tempfile::tempdir()?;
    let loaded = |files: Files| {
        files.grant_roots(settings.live.granted_roots.iter().cloned());
        let library = Library::builder().source(files).quiet().build().map_err(|error| error.to_string())?;
        let prompts = count(library.catalog().prompts().len(), "prompt");
        allowed(&library, is_strict)?;
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
                let outcome = channel(&store, name, settings.fixed.cache.as_deref(), is_strict).await;
                found.push(CheckedSetting::new("channel", place, outcome));
            }
            sources(settings, &channels.sources, &copies, is_strict, found).await;
        }
        ServedLibrary::Sources(configured) => sources(settings, configured, &copies, is_strict, found).await,
    }
    Ok(())
}

/// Fails for a library with errors, if the server is strict.
fn allowed(library: &Library, is_strict: bool) -> Result<(), String> {
    match library.diagnostics().iter().filter(|diagnostic| is_strict && diagnostic.is_error()).count() {
        0 => Ok(()),
        errors => Err(format!("it has {}, and --strict allows none", count(errors, "error"))),
    }
}

async fn channel(
    store: &StoreHandle,
    name: &ChannelName,
    cache: Option<&Path>,
    is_strict: bool,
) -> Result<String, String> {
    let read = async {
        let store = store.get().await?;
        store.must_be_changeable().await?;
        if is_strict {
            return store.tree(name, None).await.map(|(head, tree)| (head.revision, Some(tree)));
        }
        store.head(name).await.map(|head| (head.revision, None))
    };
    let error = match timeout(LIMIT, read).await {
        Ok(Ok((revision, tree))) => {
            if let Some(tree) = tree {
                let library = Library::builder().source(Files::tree(tree)).quiet().build();
                allowed(&library.map_err(|error| error.to_string())?, is_strict)?;
            }
            return Ok(format!("revision {revision}"));
        }
        Ok(Err(error)) => Some(error),
        Err(_) => None,
    };
    let shown = error.as_ref().map_or_else(silent, ToString::to_string);
    let copied = match cache {
        Some(cache) => revision_of_copy(cache, store.url(), name, error).await,
        None => None,
    };
    match copied {
        Some(revision) => Ok(format!("revision {revision}, from the cache: {shown}")),
        None => Err(shown),
    }
}

async fn sources(
    settings: &Settings,
    configured: &[ConfiguredSource],
    copies: &tempfile::TempDir,
    is_strict: bool,
    found: &mut Vec<CheckedSetting>,
) {
    for source in configured {
        if let SourcePlace::Git(place) = &source.place
            && let Some(secret) = &place.webhook_secret
            && let Err(failure) = source_webhook_secret(source, secret)
        {
            found.push(CheckedSetting::new("webhook secret", secret.display().to_string(), Err(reason(failure))));
        }
    }
    let shared = crate::sources::SharedSettings { cache: None, ..shared_settings(settings, None, false) };
    let open = match OpenSources::open(configured, &shared, Some(&StateFolder::at(copies.path()))) {
        Ok(open) => open,
        Err(failure) => {
            found.push(CheckedSetting::new("source", "", Err(reason(failure))));
            return;
        }
    };
    open.set.settled(LIMIT).await;
    for status in open.set.statuses() {
        let outcome = match (status.state, status.problem) {
            (SourceState::Current, _) => {
                let prompts = [count(status.prompts, "prompt")].into_iter();
                Ok(prompts
                    .chain(status.left_out.iter().map(|what| format!("left out: {what}")))
                    .collect::<Vec<_>>()
                    .join("; "))
            }
            (_, Some(problem)) => Err(problem),
            (_, None) => Err(silent()),
        };
        found.push(CheckedSetting::new("source", format!("{} ({})", status.name, status.kind), outcome));
    }
    if is_strict && !configured.is_empty() {
        let library = Library::builder().source(open.set.clone()).quiet().build();
        let outcome = library.map_err(|error| error.to_string()).and_then(|library| allowed(&library, is_strict));
        found.push(CheckedSetting::new("library", "of all sources", outcome.map(|()| "no errors".to_owned())));
    }
}

async fn keys(sign_in: &SignIn) -> Result<String, String> {
    sign_in.follow_keys();
    let end = Instant::now() + LIMIT;
    let is_open = || sign_in.key_fetches().is_some_and(|fetches| fetches.succeeded + fetches.failed == 0);
    // Keys of a file are never fetched.
    while sign_in.missing_keys().is_some() && is_open() && Instant::now() < end {
        sleep(PAUSE).await;
    }
    sign_in.missing_keys().map_or(Ok("its keys can be used".to_owned()), Err)
}

/// Whether the audit can be written. Only a file that exists is opened.
fn appendable(path: &Path) -> Result<String, String> {
    match path.metadata() {
        // Opening a pipe waits for its reader.
        Ok(found) if !found.is_file() && !found.is_dir() => {
            Ok("it is not a regular file, and is not opened".to_owned())
        }
        Ok(_) => match OpenOptions::new().append(true).open(path) {
            Ok(_) => Ok("it can be written".to_owned()),
            Err(error) => Err(error.to_string()),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => created_in(parent(path)),
        Err(error) => Err(error.to_string()),
    }
}

fn folder(path: &Path) -> Result<String, String> {
    match path.metadata() {
        Ok(found) if !found.is_dir() => Err("it is not a folder".to_owned()),
        Ok(_) => created_in(path).map(|_| "it can be written".to_owned()),
        // All folders above it are made, too.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            created_in(path.ancestors().skip(1).find(|parent| parent.exists()).unwrap_or(Path::new(".")))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether something can be made in a folder.
fn created_in(folder: &Path) -> Result<String, String> {
    // On Linux the file has no name.
    match tempfile::tempfile_in(folder) {
        Ok(_) => Ok("it will be created".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(format!("the folder {} does not exist", folder.display()))
        }
        Err(error) => Err(format!("nothing can be created in the folder {}: {error}", folder.display())),
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

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::*;
    use crate::settings::{Arguments, ServerFileLocation};

    /// Returns the rows for a `server.toml` in a folder with one prompt, as their first word, subject and reason.
    async fn rows(folder: &Path, written: &str) -> Vec<String> {
        let library = folder.join("team");
        fs::create_dir_all(&library).expect("a folder");
        fs::write(library.join("hello.md"), "Hello").expect("a prompt");
        fs::write(folder.join("server.toml"), written).expect("settings");
        let location = ServerFileLocation::find(Some(&folder.join("server.toml")), &|_: &str| None);
        let arguments = Arguments { library: Some(library), ..Arguments::default() };
        let (settings, files) =
            Settings::read_for_check(&location, &arguments, &|_: &str| None).expect("the settings can be read");
        let is_refused = Settings::read(&location, &arguments, &|_: &str| None).is_err();
        assert_eq!(is_refused, !files.is_empty(), "a server is never started without them");
        let start = Start { over_http: true, ..Start::default() };
        let found = check(&settings, &files, &start).await.expect("a temporary folder");
        let row = |one: &CheckedSetting| match &one.outcome {
            Ok(reason) => format!("ok {}: {reason}", one.what),
            Err(reason) => format!("FAILED {}: {reason}", one.what),
        };
        found.iter().map(row).collect()
    }

    fn has(rows: &[String], begin: &str, part: &str) {
        assert!(rows.iter().any(|row| row.starts_with(begin) && row.contains(part)), "{begin} … {part}: {rows:#?}");
    }

    // req: S-561
    #[tokio::test]
    async fn check_fails_where_a_start_fails() {
        let folder = tempfile::tempdir().expect("a folder");
        let listening = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let used = listening.local_addr().expect("an address");
        let written = "[http]\naddress = \"192.0.2.1:9\"\nallow-remote = true\n[metrics]\nlisten = \"192.0.2.1:8\"\n[audit]\nfile = \
             \"missing/audit.jsonl\"\n[[webhook]]\nurl = \"https://127.0.0.1/\"\nallow-private = true\nevents = \
             [\"published\"]\nsecret = { file = \"secret\" }\n";
        let found = rows(folder.path(), written).await;
        has(&found, "FAILED address: ", "does not belong to this machine");
        has(&found, "FAILED metrics: ", "does not belong to this machine");
        has(&found, "FAILED audit: ", "does not exist");
        has(&found, "FAILED webhook: ", "needs a store");
        // Each is free, and both are one.
        let port =
            { std::net::TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("it").port() };
        for (http, metrics) in [("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "0.0.0.0")] {
            let both = format!("[http]\naddress = \"{http}:{port}\"\n[metrics]\nlisten = \"{metrics}:{port}\"\n");
            has(&rows(folder.path(), &both).await, "FAILED metrics: ", "is the address of `[http]` too");
        }
        // Nothing answers there.
        let issuer = format!("[auth]\nissuer = \"http://127.0.0.1:{port}\"\nresource = \"http://localhost:1/mcp\"\n");
        has(&rows(folder.path(), &issuer).await, "FAILED issuer: ", "are missing");
        // A server may be checked while it runs.
        let found =
            rows(folder.path(), &format!("[http]\naddress = \"{used}\"\n[audit]\nfile = \"audit.jsonl\"\n")).await;
        has(&found, "ok address: ", "in use");
        has(&found, "ok audit: ", "will be created");
        has(&rows(folder.path(), "[http]\naddress = \"0.0.0.0:0\"\n").await, "FAILED address: ", "sign-in");
        let names: Vec<PathBuf> =
            fs::read_dir(folder.path()).expect("it").flatten().map(|entry| entry.path()).collect();
        assert_eq!(names.len(), 2, "nothing is created: {names:?}");
    }

    // req: S-561
    #[tokio::test]
    async fn check_of_a_strict_start_fails_for_a_library_with_errors() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("bad.md"), "{{ nope }").expect("a prompt");
        let mut settings = Settings::default();
        settings.fixed.library = ServedLibrary::Folder(folder.path().to_owned());
        for strict in [false, true] {
            let found = check(&settings, &[], &Start { strict, ..Start::default() }).await.expect("a temporary folder");
            assert_eq!(found[0].outcome.is_err(), strict, "{found:?}");
        }
    }

    // req: S-561
    #[tokio::test]
    async fn every_file_that_cannot_be_used_has_a_row() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("empty"), "").expect("a file");
        let issuer = "issuer = \"https://login.example\"\nresource = \"https://a.example/mcp\"\n";
        let auth = format!(
            "[http]\naddress = \"0.0.0.0:0\"\n[auth]\n{issuer}tokens-file = \"none1\"\njwks-file = \"empty\"\nca-file = \
             \"none2\"\nblocked-subjects = {{ file = \"none3\" }}\n[tls]\ncertificate = \"none4\"\nkey = \"none5\"\n"
        );
        let found = rows(folder.path(), &auth).await;
        for what in ["tokens", "keys of the issuer", "authorities of the issuer", "blocked subjects", "certificate"] {
            has(&found, &format!("FAILED {what}: "), "");
        }
        has(&rows(folder.path(), "[auth]\ntokens-file = \"empty\"\n").await, "FAILED tokens: ", "contains no tokens");
        let token = |name: &str, expires: &str| {
            format!("{{ name = '{name}', expires = {expires}, sha256 = '{}' }}", name.repeat(64))
        };
        let tokens = format!("[auth]\ntokens = [{}, {}]\n", token("0", "2020-01-31"), token("1", "2999-01-31"));
        has(&rows(folder.path(), &tokens).await, "ok tokens: ", "2 tokens, of which 1 expired");
    }
}
