//! The sources of `[[source]]`: opening them, and the folder of state that a server shares with `promptshelf source`.

use std::{
    collections::BTreeMap,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use promptshelf_client::Endpoint;
use promptshelf_core::{AccessRule, BoxFuture};
use promptshelf_git::{Credentials, GitOptions, GitSource};
use promptshelf_source::{
    Files, Health, MemberOptions, OpenSource, OpenedSource, SourceError, SourceSet, SourceStatus,
};
use promptshelf_store::ChannelName;
use promptshelf_upstream::{Approvals, Upstream, UpstreamOptions};
use serde_json::{Value, json};
use tokio::{task::spawn_blocking, time::interval};

use crate::{
    channels::{FollowOptions, Follower, SourceSignals, StoreHandle},
    failure::{Exit, Failure},
    http::{Webhook, Webhooks, auth::random_token},
    replica::ReplicaMonitor,
    settings::{ConfiguredSource, McpEndpoint, McpPlace, SourcePlace},
    state::{self, digest},
};

/// The sources of a server, opened.
#[derive(Clone)]
pub struct OpenSources {
    /// All of them, as one source.
    pub set: SourceSet,
    /// The webhooks that request a poll of git repositories.
    pub webhooks: Webhooks,
    /// The states of channels among them, by the names of their sources.
    pub monitors: BTreeMap<String, ReplicaMonitor>,
    grants: Arc<Grants>,
}

/// Settings of all sources.
#[derive(Clone, Debug, Default)]
pub struct SharedSettings {
    /// Folders outside of the sources that they may read.
    pub granted_roots: Vec<PathBuf>,
    /// Whether clients see the provenance of prompts.
    pub shows_provenance: bool,
    /// The folder of copies of channels.
    pub cache: Option<PathBuf>,
    /// Rules that bind all sources.
    pub rules: Vec<AccessRule>,
    /// Whether a server has the sources, and not a command that reads them once.
    pub is_server: bool,
    /// The store of the served channels. Sources in it share its connections, and replicas pass on requests through it.
    pub store: Option<StoreHandle>,
}

impl OpenSources {
    /// Begins to open all sources.
    ///
    /// # Errors
    ///
    /// If approvals or copies of repositories are needed and there is no folder for them.
    pub fn open(
        configured: &[ConfiguredSource],
        shared: &SharedSettings,
        state: Option<&StateFolder>,
    ) -> Result<OpenSources, Failure> {
        let grants = Arc::new(Grants::new(shared));
        let has_upstreams = configured.iter().any(|source| matches!(source.place, SourcePlace::Mcp(_)));
        let server_id: Option<Arc<str>> = match has_upstreams {
            // The id is public, and only has to differ from those of other servers.
            true => Some(digest(&random_token()?)[..16].into()),
            false => None,
        };
        let mut members = Vec::with_capacity(configured.len());
        let mut signals = shared.store.clone();
        let (mut webhooks, mut monitors) = (Vec::new(), BTreeMap::new());
        for source in configured {
            let opener: Box<dyn OpenSource> = match &source.place {
                SourcePlace::Folder(folder) => Box::new(FolderOpener::new(folder, &grants)),
                SourcePlace::Store(address) => {
                    let open = if shared.is_server { StoreHandle::new } else { StoreHandle::reading };
                    let known = shared.store.clone().filter(|store| *store.url() == address.store);
                    let store = known.unwrap_or_else(|| open(address.store.clone()));
                    signals.get_or_insert_with(|| store.clone());
                    let opener = StoreOpener::new(store, address.channel.clone(), shared.cache.clone(), &grants);
                    monitors.insert(source.name.clone(), opener.options.monitor.clone());
                    Box::new(opener)
                }
                SourcePlace::Git(place) => {
                    let git = git_source(source, state)?;
                    if let Some(path) = place.webhook_secret.as_deref().filter(|_| shared.is_server) {
                        webhooks.push((source.name.clone(), webhook_secret(source, path)?));
                    }
                    Box::new(GitOpener::new(git, &grants))
                }
                SourcePlace::Mcp(place) => {
                    Box::new(upstream(source, place, server_id.clone().unwrap_or_default(), state)?)
                }
            };
            let is_foreign = matches!(source.place, SourcePlace::Mcp(_));
            let member = MemberOptions::new(&source.name, opener).prefix(&source.prefix).foreign(is_foreign);
            let member = source.access.iter().cloned().fold(member, MemberOptions::access);
            let member = source.max_prompts.into_iter().fold(member, MemberOptions::max_prompts);
            members.push(member.server_id(server_id.clone()));
        }
        let set = SourceSet::open(members, &shared.rules);
        // Webhooks and requests reach one replica; the store of the first such source has the others.
        if let Some(signals) = signals.filter(|_| shared.is_server) {
            tokio::spawn(SourceSignals::new(signals).run(set.clone()));
        }
        let webhook = |(name, secret): (String, String)| {
            let (set, source) = (set.clone(), name.clone());
            (name, Webhook::new(secret, move || _ = set.refresh(&source)))
        };
        let webhooks = Webhooks::new(webhooks.into_iter().map(webhook).collect::<Vec<_>>());
        Ok(OpenSources { set, webhooks, monitors, grants })
    }

    /// Replaces the folders that libraries may read besides their own files. Takes effect at the next load.
    pub fn grant_roots(&self, roots: &[PathBuf]) {
        self.grants.set_roots(roots);
    }

    /// Sets whether clients see the provenance of prompts. Takes effect at the next load.
    pub fn show_provenance(&self, is_shown: bool) {
        self.grants.set_shown(is_shown);
    }
}

/// Returns the secret of the webhook of a git source, in the first line of a file.
pub(crate) fn webhook_secret(source: &ConfiguredSource, path: &Path) -> Result<String, Failure> {
    let failed = |reason: String| {
        let message = format!("`webhook-secret` of the source {}: the file {} {reason}", source.name, path.display());
        Failure::new(Exit::Settings, message)
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
    match text.lines().next().map(str::trim).filter(|secret| !secret.is_empty()) {
        Some(secret) => Ok(secret.to_owned()),
        None => Err(failed("has no secret in its first line".to_owned())),
    }
}

fn upstream(
    source: &ConfiguredSource,
    place: &McpPlace,
    server_id: Arc<str>,
    state: Option<&StateFolder>,
) -> Result<Upstream, Failure> {
    let endpoint = match &place.endpoint {
        McpEndpoint::Url(url) => Endpoint::url(url),
        McpEndpoint::Command(line) => Endpoint::command(line.iter().map(String::as_str)),
    };
    let mut options = UpstreamOptions::new(&source.name, endpoint, server_id);
    options.credentials.clone_from(&place.credentials);
    options.interval = place.interval;
    options.timeout = place.timeout;
    options.max_prompts = source.max_prompts.unwrap_or(options.max_prompts);
    // The place is part of the name: the list of another server must not be served.
    let address = match &place.endpoint {
        McpEndpoint::Url(url) => url.to_string(),
        McpEndpoint::Command(line) => line.join("\0"),
    };
    let list = format!("{}-{}.json", source.name, &digest(&address)[..16]);
    options.last_list = state.map(|state| state.path("lists").join(list));
    if place.approves_changes {
        options.approvals = Some(approvals(source, state)?);
    }
    Ok(Upstream::new(options))
}

/// Returns the approvals of definitions of another MCP server.
///
/// # Errors
///
/// Without a folder for them.
pub fn approvals(source: &ConfiguredSource, state: Option<&StateFolder>) -> Result<Approvals, Failure> {
    Ok(Approvals::new(&needed(source, state)?.path("approvals"), &source.name))
}

fn needed<'s>(source: &ConfiguredSource, state: Option<&'s StateFolder>) -> Result<&'s StateFolder, Failure> {
    state.ok_or_else(|| {
        let message = format!("the source {} needs a folder for its state, and none can be created", source.name);
        Failure::new(Exit::Settings, message).help("set XDG_STATE_HOME to a folder that this user can write")
    })
}

fn lock<T>(mutex: &Mutex<T>) -> parking_lot::MutexGuard<'_, T> {
    mutex.lock()
}

/// Returns the handle of a git source. Nothing is read.
///
/// # Errors
///
/// For a source of another kind, and without a folder for copies of repositories.
pub fn git_source(source: &ConfiguredSource, state: Option<&StateFolder>) -> Result<GitSource, Failure> {
    let SourcePlace::Git(place) = &source.place else {
        let message = format!("the source {} is not a git repository", source.name);
        return Err(Failure::new(Exit::Usage, message));
    };
    let mut options = GitOptions::new(place.address.clone(), needed(source, state)?.path("git"));
    options.name = Some(source.name.clone());
    options.credentials = place.credentials.clone().map_or(Credentials::None, Credentials::File);
    options.signers.clone_from(&place.signers);
    options.interval = place.interval;
    options.timeout = place.timeout.unwrap_or(options.timeout);
    GitSource::new(options).map_err(|error| Failure::new(Exit::Settings, format!("source {}: {error}", source.name)))
}

struct GitOpener {
    git: GitSource,
    grants: Arc<Grants>,
}

impl GitOpener {
    fn new(git: GitSource, grants: &Arc<Grants>) -> GitOpener {
        GitOpener { git, grants: Arc::clone(grants) }
    }
}

impl OpenSource for GitOpener {
    fn kind(&self) -> &'static str {
        "git"
    }

    fn open(&self) -> BoxFuture<'_, Result<OpenedSource, SourceError>> {
        Box::pin(async {
            // Attempts repeat until one succeeds: a commit that is too large must not be fetched each time. A commit of an
            // earlier run may be served instead.
            if let (Err(error), None) = (self.git.poll().await, self.git.state().served) {
                return Err(SourceError::new(error.to_string()).with_source(error));
            }
            self.grants.add(self.git.source());
            let git = self.git.clone();
            Ok(OpenedSource::new(git.source().clone()).following(Box::new(move |_| Box::pin(git.run()))))
        })
    }

    fn health(&self) -> Health {
        let state = self.git.state();
        Health {
            commit: state.served.map(|served| served.id),
            problem: state.problem,
            behind_since: state.behind_since,
            ..Health::default()
        }
    }

    fn refresh(&self) {
        self.git.nudge();
    }
}

struct Grants(Mutex<State>);

struct State {
    roots: Vec<PathBuf>,
    is_provenance_shown: bool,
    sources: Vec<Files>,
}

impl Grants {
    fn new(shared: &SharedSettings) -> Grants {
        Grants(Mutex::new(State {
            roots: shared.granted_roots.clone(),
            is_provenance_shown: shared.shows_provenance,
            sources: Vec::new(),
        }))
    }

    fn set_roots(&self, roots: &[PathBuf]) {
        let mut state = lock(&self.0);
        state.roots = roots.to_vec();
        state.sources.iter().for_each(|source| source.grant_roots(roots.to_vec()));
    }

    fn set_shown(&self, is_shown: bool) {
        let mut state = lock(&self.0);
        state.is_provenance_shown = is_shown;
        state.sources.iter().for_each(|source| source.show_provenance(is_shown));
    }

    fn add(&self, source: &Files) {
        let mut state = lock(&self.0);
        source.grant_roots(state.roots.clone());
        source.show_provenance(state.is_provenance_shown);
        state.sources.push(source.clone());
    }
}

struct FolderOpener(Files);

impl FolderOpener {
    fn new(folder: &Path, grants: &Grants) -> FolderOpener {
        let files = Files::folder(folder);
        grants.add(&files);
        FolderOpener(files)
    }
}

impl OpenSource for FolderOpener {
    fn kind(&self) -> &'static str {
        "folder"
    }

    fn open(&self) -> BoxFuture<'_, Result<OpenedSource, SourceError>> {
        Box::pin(async { Ok(OpenedSource::new(self.0.clone())) })
    }
}

struct StoreOpener {
    options: FollowOptions,
    grants: Arc<Grants>,
}

impl StoreOpener {
    fn new(store: StoreHandle, channel: ChannelName, cache: Option<PathBuf>, grants: &Arc<Grants>) -> StoreOpener {
        let mut options = FollowOptions::new(store, channel);
        options.cache = cache;
        StoreOpener { options, grants: Arc::clone(grants) }
    }
}

impl OpenSource for StoreOpener {
    fn kind(&self) -> &'static str {
        "store"
    }

    fn open(&self) -> BoxFuture<'_, Result<OpenedSource, SourceError>> {
        Box::pin(async {
            let follower = Follower::start(self.options.clone()).await.map_err(|error| {
                self.options.monitor.set_degraded();
                SourceError::new(error.to_string()).with_source(error)
            })?;
            let source = follower.source().clone();
            self.grants.add(&source);
            Ok(OpenedSource::new(source).following(Box::new(move |loader| Box::pin(follower.run(loader)))))
        })
    }

    fn health(&self) -> Health {
        let status = self.options.monitor.status();
        let problem =
            status.degraded_since.map(|_| "its newest revision cannot be read; see the server's log".to_owned());
        Health { revision: status.revision, problem, behind_since: status.degraded_since, ..Health::default() }
    }
}

const PAUSE: Duration = Duration::from_millis(500);

/// The largest file of states, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The folder of state for one `server.toml`.
#[derive(Clone, Debug)]
pub struct StateFolder(PathBuf);

impl StateFolder {
    /// Returns the folder for a `server.toml`, and creates it; `None` if that is impossible.
    pub fn of(config: &Path) -> Option<StateFolder> {
        let config = config.canonicalize().ok()?;
        let folder = state::folder()?.join("sources").join(digest(&config.to_string_lossy()));
        fs::create_dir_all(&folder).ok()?;
        Some(StateFolder(folder))
    }

    /// Returns a folder of state that no server uses.
    pub(crate) fn at(folder: &Path) -> StateFolder {
        StateFolder(folder.to_owned())
    }

    /// Returns the path of a file in the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the states that a running server has written; `None` without a running server.
    pub fn served(&self) -> Option<Value> {
        match self.lock() {
            Err(TryLockError::WouldBlock) => {}
            _ => return None,
        }
        let path = self.path("status.json");
        fs::metadata(&path).ok().filter(|metadata| metadata.len() <= MAX_BYTES)?;
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Asks the running server to read a source again.
    pub fn request_refresh(&self, name: &str) -> io::Result<()> {
        state::write(&self.path("refresh").join(name), "")
    }

    /// Returns the lock of the server; it is released when the file is dropped.
    fn lock(&self) -> Result<File, TryLockError> {
        let file = File::options().create(true).truncate(false).write(true).open(self.path("lock"));
        let file = file.map_err(TryLockError::Error)?;
        file.try_lock()?;
        Ok(file)
    }

    /// Writes the states of the sources and takes requests, until it is dropped. Of several servers with the same
    /// settings one does so.
    pub async fn serve(self, set: SourceSet) {
        let mut ticks = interval(PAUSE);
        let mut held = None;
        let mut written = String::new();
        loop {
            ticks.tick().await;
            if held.is_none() {
                held = self.lock().ok();
                written.clear();
            }
            if held.is_none() {
                continue;
            }
            let (folder, text) = (self.clone(), to_json(&set.statuses()).to_string());
            let is_new = text != written;
            let work = spawn_blocking(move || {
                if is_new && let Err(error) = state::write(&folder.path("status.json"), &text) {
                    tracing::warn!("the state of the sources cannot be written: {error}");
                }
                (folder.take_refreshes(), text)
            });
            let Ok((requested, text)) = work.await else { continue };
            written = text;
            for name in requested {
                set.refresh(&name);
            }
        }
    }

    /// Returns and removes the requests to read sources again.
    fn take_refreshes(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path("refresh")) else { return Vec::new() };
        let requests = entries.flatten().filter(|entry| fs::remove_file(entry.path()).is_ok());
        requests.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}

/// Returns states as `promptshelf source list --json` prints them.
pub fn to_json(statuses: &[SourceStatus]) -> Value {
    let source = |status: &SourceStatus| {
        json!({
            "name": status.name,
            "kind": status.kind,
            "state": status.state.as_str(),
            "revision": status.revision,
            "commit": status.commit,
            "prompts": status.prompts,
            "behindSince": status.behind_since.map(|since| since.to_string()),
            "problem": status.problem,
            "leftOut": status.left_out,
            "warning": status.warning,
        })
    };
    json!({ "sources": statuses.iter().map(source).collect::<Vec<_>>() })
}
