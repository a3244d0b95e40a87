//! The sources of `[[source]]`: opening them, and the folder of state that a server shares with `promptshelf source`.

mod git;
mod openers;
mod state_folder;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use promptshelf_client::Endpoint;
use promptshelf_core::AccessRule;
use promptshelf_server::{
    channels::{SourceSignals, StoreHandle},
    http::{Webhook, Webhooks, auth::random_token},
};
use promptshelf_source::{MemberOptions, OpenSource, SourceSet};
use promptshelf_upstream::{Approvals, Upstream, UpstreamOptions};

use self::{
    git::GitOpener,
    openers::{FolderOpener, Grants},
};
pub(crate) use self::{
    git::git_source,
    state_folder::{StateFolder, to_json},
};
use crate::{
    exit::{Exit, Failure},
    settings::{ConfiguredSource, McpEndpoint, McpPlace, SourcePlace},
    state::digest,
};

#[derive(Clone)]
pub(crate) struct OpenSources {
    pub(crate) set: SourceSet,
    pub(crate) webhooks: Webhooks,
    grants: Arc<Grants>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SharedSettings {
    pub(crate) granted_roots: Vec<PathBuf>,
    pub(crate) shows_provenance: bool,
    pub(crate) cache: Option<PathBuf>,
    pub(crate) rules: Vec<AccessRule>,
    /// Whether a server has the sources, and not a command that reads them once.
    pub(crate) is_server: bool,
}

impl OpenSources {
    /// Begins to open all sources.
    ///
    /// # Errors
    ///
    /// If approvals or copies of repositories are needed and there is no folder for them.
    pub(crate) fn open(
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
        let mut signals = None;
        let mut webhooks = Vec::new();
        for source in configured {
            let opener: Box<dyn OpenSource> = match &source.place {
                SourcePlace::Folder(folder) => Box::new(FolderOpener::new(folder, &grants)),
                SourcePlace::Store(address) => {
                    let store = match shared.is_server {
                        true => StoreHandle::new(address.store.clone()),
                        false => StoreHandle::reading(address.store.clone()),
                    };
                    signals.get_or_insert_with(|| SourceSignals::new(store.clone()));
                    Box::new(openers::StoreOpener::new(store, address.channel.clone(), shared.cache.clone(), &grants))
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
            tokio::spawn(signals.run(set.clone()));
        }
        let webhook = |(name, secret): (String, String)| {
            let (set, source) = (set.clone(), name.clone());
            (name, Webhook::new(secret, move || _ = set.refresh(&source)))
        };
        let webhooks = Webhooks::new(webhooks.into_iter().map(webhook).collect::<Vec<_>>());
        Ok(OpenSources { set, webhooks, grants })
    }

    /// Replaces the folders that libraries may read besides their own files. Takes effect at the next load.
    pub(crate) fn grant_roots(&self, roots: &[PathBuf]) {
        self.grants.set_roots(roots);
    }

    /// Sets whether clients see the provenance of prompts. Takes effect at the next load.
    pub(crate) fn show_provenance(&self, is_shown: bool) {
        self.grants.set_shown(is_shown);
    }
}

/// Returns the secret of the webhook of a git source, in the first line of a file.
fn webhook_secret(source: &ConfiguredSource, path: &Path) -> Result<String, Failure> {
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

pub(crate) fn approvals(source: &ConfiguredSource, state: Option<&StateFolder>) -> Result<Approvals, Failure> {
    Ok(Approvals::new(&needed(source, state)?.path("approvals"), &source.name))
}

fn needed<'s>(source: &ConfiguredSource, state: Option<&'s StateFolder>) -> Result<&'s StateFolder, Failure> {
    state.ok_or_else(|| {
        let message = format!("the source {} needs a folder for its state, and none can be created", source.name);
        Failure::new(Exit::Settings, message).help("set XDG_STATE_HOME to a folder that this user can write")
    })
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
