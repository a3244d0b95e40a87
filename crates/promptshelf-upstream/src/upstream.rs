//! One other server as a source: mirrors its list, and keeps the mirror current.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use promptshelf_client::{Changes, Client, Endpoint, PromptInfo, PromptListing};
use promptshelf_core::{
    BoxFuture, CompletionSource, Definitions, PromptDefinition, PromptName, RemoteAnswer, RemoteInput, RemotePrompt,
    RenderError, Timestamp, Variables,
};
use promptshelf_source::{Fixed, Health, OpenSource, OpenedSource, SourceError};
use serde::{Deserialize, Serialize};
use tokio::time::{interval, sleep, timeout};

use crate::{
    approval::{Approvals, DefinitionMap},
    connection::{Connection, Received},
    credentials::UpstreamCredentials,
    definition::{Definition, MAX_HOPS, NoRoute, route, visible},
    resources::ForeignResources,
    state_file::{read, write},
};

/// The time between two lists, at least. It doubles while each list differs from the one before.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// The time until the list of an earlier run is served, while the server does not answer.
const RESTORED_WAIT: Duration = Duration::from_secs(1);

const MAX_SHOWN_NAME: usize = 60;

const APPROVAL_PAUSE: Duration = Duration::from_secs(1);

/// The address of a server, times and limits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpstreamOptions {
    /// The name of the source.
    pub name: String,
    /// The server.
    pub endpoint: Endpoint,
    /// How this server signs in to the other one. Not at all by default.
    pub credentials: UpstreamCredentials,
    /// The time between two lists of a server that reports no changes. 60 s by default.
    pub interval: Duration,
    /// The time for one answer. 10 s by default.
    pub timeout: Duration,
    /// The largest number of prompts that are read. 10,000 by default.
    pub max_prompts: usize,
    /// The id of this server: prompts that have come from it are left out, so that servers that mirror each other end.
    pub server_id: Arc<str>,
    /// The approvals, if new and changed definitions have to be approved. None by default.
    pub approvals: Option<Approvals>,
    /// The file with the last list, which is served after a restart while the server is away. None by default. Another
    /// server needs another file.
    pub last_list: Option<PathBuf>,
}

impl UpstreamOptions {
    /// Creates options with the defaults.
    #[must_use]
    pub fn new(name: impl Into<String>, endpoint: Endpoint, server_id: impl Into<Arc<str>>) -> UpstreamOptions {
        UpstreamOptions {
            name: name.into(),
            endpoint,
            credentials: UpstreamCredentials::None,
            interval: Duration::from_secs(60),
            timeout: Duration::from_secs(10),
            max_prompts: 10_000,
            server_id: server_id.into(),
            approvals: None,
            last_list: None,
        }
    }
}

struct Mirrored {
    connection: Arc<Connection>,
    name: String,
    waits: bool,
}

impl RemotePrompt for Mirrored {
    fn get(&self, arguments: Variables, input: RemoteInput) -> BoxFuture<'_, Result<RemoteAnswer, RenderError>> {
        Box::pin(async move {
            if self.waits {
                let reason = "its definition has changed at the other server, and waits for the operator's approval";
                return Err(RenderError::Unavailable(reason.to_owned()));
            }
            self.connection.get(&self.name, &arguments, &input).await
        })
    }
}

/// Another MCP server as a source of prompts. Clones are the same source.
#[derive(Clone)]
pub struct Upstream(Arc<Inner>);

struct Inner {
    connection: Arc<Connection>,
    interval: Duration,
    server_id: Arc<str>,
    approvals: Option<Approvals>,
    last_list: Option<PathBuf>,
    prompts: Fixed,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The newest list, without prompts that must not be passed on.
    listed: BTreeMap<String, Listed>,
    is_written: bool,
    mirrored: Option<BTreeMap<String, (Listed, bool)>>,
    problem: Option<(String, SystemTime)>,
    /// The reason why the newest list is not whole.
    list_problem: Option<String>,
    /// The entries of the newest list that cannot be passed on, each with the reason.
    left_out: Vec<String>,
    /// That there is a loop between servers.
    warning: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Listed {
    definition: Definition,
    via: Vec<String>,
}

impl Upstream {
    /// Creates a source. Nothing is connected before it is opened.
    #[must_use]
    pub fn new(options: UpstreamOptions) -> Upstream {
        let UpstreamOptions { name, endpoint, credentials, interval, timeout, max_prompts, .. } = options;
        let UpstreamOptions { server_id, approvals, last_list, .. } = options;
        Upstream(Arc::new(Inner {
            connection: Arc::new(Connection::new(name, endpoint, credentials, timeout, max_prompts)),
            interval,
            server_id,
            approvals,
            last_list,
            prompts: Fixed::default(),
            state: Mutex::default(),
        }))
    }

    /// Lists the prompts of the server and mirrors them. Returns whether they have changed, and the connection.
    fn refresh(&self) -> BoxFuture<'_, Result<(bool, Client), String>> {
        Box::pin(async {
            let listed = self.0.connection.list().await;
            let mirrored =
                listed.and_then(|Received { client, listing, problem }| Ok((self.mirror(listing, problem)?, client)));
            if let Err(problem) = &mirrored {
                self.set_problem(Some(problem.clone()));
            }
            mirrored
        })
    }

    /// Takes over a list. Returns whether it differs from the mirrored one, or is not whole: then prompts that were listed
    /// before stay.
    fn mirror(&self, received: PromptListing, problem: Option<String>) -> Result<bool, String> {
        let mut left_out: Vec<String> = received.left_out.iter().map(|reason| visible(reason)).collect();
        let (mut listed, mut looped) = (BTreeMap::new(), Vec::new());
        for prompt in &received.prompts {
            let shown = visible(&prompt.name.chars().take(MAX_SHOWN_NAME).collect::<String>());
            let via = match route(prompt, &self.0.server_id) {
                Ok(via) => via,
                Err(NoRoute::Loop) => {
                    looped.push(shown);
                    continue;
                }
                Err(NoRoute::TooFar) => {
                    left_out.push(format!("the prompt `{shown}`: more than {MAX_HOPS} servers have passed it on"));
                    continue;
                }
            };
            match fault(prompt) {
                Some(reason) => left_out.push(format!("the prompt `{shown}`: {reason}")),
                None if listed.contains_key(&prompt.name) => {
                    left_out.push(format!("the second prompt `{shown}`: its name is in the list already"));
                }
                None => _ = listed.insert(prompt.name.clone(), Listed { definition: Definition::of(prompt), via }),
            }
        }
        let warning = looped.first().map(|first| {
            let count = looped.len();
            format!(
                "there is a loop between servers: its list has prompts of this server, which are left out ({count}, such as \
                 `{first}`); remove this server from the sources of one of the servers between them"
            )
        });
        let is_new_loop = self.with(|state| {
            let had_loop = std::mem::replace(&mut state.warning, warning.clone()).is_some();
            warning.is_some() != had_loop
        });
        match warning.filter(|_| is_new_loop) {
            Some(warning) => tracing::warn!(source = self.0.connection.name(), "{warning}"),
            None if is_new_loop => {
                tracing::info!(source = self.0.connection.name(), "the loop between servers is gone");
            }
            None => {}
        }
        let is_partial = problem.is_some();
        let is_new_fault = self.with(|state| {
            if is_partial {
                for (name, before) in &state.listed {
                    listed.entry(name.clone()).or_insert_with(|| before.clone());
                }
            }
            state.list_problem = problem;
            let is_new = !left_out.is_empty() && state.left_out != left_out;
            state.left_out.clone_from(&left_out);
            is_new
        });
        if let (true, Some(first)) = (is_new_fault, left_out.first()) {
            let (source, count) = (self.0.connection.name(), left_out.len());
            tracing::warn!(source, "its list has entries that are left out ({count}), such as {first}");
        }
        let is_new = self.with(|state| {
            let before = std::mem::replace(&mut state.listed, listed);
            !std::mem::replace(&mut state.is_written, true) || state.listed != before
        });
        if let Some(file) = self.0.last_list.as_deref().filter(|_| is_new) {
            let listed = self.with(|state| state.listed.clone());
            if let Err(error) = write(file, &listed) {
                self.with(|state| state.is_written = false);
                tracing::warn!(source = self.0.connection.name(), "its list cannot be written: {error}");
            }
        }
        Ok(self.apply()? || is_partial)
    }

    /// Mirrors the last list of an earlier run. Returns whether there is one.
    fn restore(&self) -> bool {
        let Some(file) = &self.0.last_list else { return false };
        let restored = match read(file) {
            Ok(Some(listed)) => {
                self.with(|state| state.listed = listed);
                self.apply()
            }
            Ok(None) => return false,
            Err(error) => Err(error.to_string()),
        };
        if let Err(problem) = &restored {
            tracing::warn!(source = self.0.connection.name(), "its last list cannot be restored: {problem}");
        }
        restored.is_ok()
    }

    fn apply(&self) -> Result<bool, String> {
        let listed = self.with(|state| state.listed.clone());
        let failed = |error: std::io::Error| format!("its approvals cannot be read or written: {error}");
        let mut waiting = DefinitionMap::new();
        let mut mirrored = BTreeMap::new();
        let approved = match &self.0.approvals {
            None => None,
            Some(approvals) => Some(match approvals.read_approved().map_err(failed)? {
                Some(approved) => approved,
                None => {
                    let first = definitions(&listed);
                    approvals.approve_first(&first).map_err(failed)?;
                    first
                }
            }),
        };
        for (name, listed) in listed {
            match approved.as_ref().map(|approved| approved.get(&name)) {
                None => _ = mirrored.insert(name, (listed, false)),
                Some(Some(known)) if *known == listed.definition => _ = mirrored.insert(name, (listed, false)),
                Some(known) => {
                    waiting.insert(name.clone(), listed.definition);
                    if let Some(known) = known {
                        let before = Listed { definition: known.clone(), via: listed.via };
                        mirrored.insert(name, (before, true));
                    }
                }
            }
        }
        if let Some(approvals) = &self.0.approvals {
            approvals.set_pending(&waiting).map_err(failed)?;
        }
        let problem = (!waiting.is_empty()).then(|| {
            let (count, source) = (waiting.len(), self.0.connection.name());
            format!("{count} new or changed definitions wait for `promptshelf source approve {source}`")
        });
        let problems: Vec<String> = self.with(|state| state.list_problem.clone()).into_iter().chain(problem).collect();
        self.set_problem((!problems.is_empty()).then(|| problems.join("; ")));
        let has_changed = self.with(|state| {
            let has_changed = state.mirrored.as_ref() != Some(&mirrored);
            state.mirrored = Some(mirrored.clone());
            has_changed
        });
        if has_changed {
            let prompts = mirrored.iter().map(|(name, (listed, waits))| self.prompt(name, listed, *waits));
            let resources = ForeignResources(Arc::clone(&self.0.connection));
            let definitions = Definitions::from_iter(prompts.collect::<Vec<_>>());
            self.0.prompts.replace(Definitions { remote: Some(Arc::new(resources)), ..definitions });
        }
        Ok(has_changed)
    }

    fn prompt(&self, name: &str, listed: &Listed, waits: bool) -> PromptDefinition {
        let mirrored = Mirrored { connection: Arc::clone(&self.0.connection), name: name.to_owned(), waits };
        let mut prompt = PromptDefinition::remote(name, Arc::new(mirrored));
        prompt.title.clone_from(&listed.definition.title);
        prompt.description.clone_from(&listed.definition.description);
        prompt.via = listed.via.iter().map(|id| Arc::from(id.as_str())).collect();
        prompt.arguments = listed.definition.argument_definitions().collect();
        for argument in prompt.arguments.iter_mut().filter(|_| !waits) {
            let (connection, prompt, name) = (Arc::clone(&self.0.connection), name.to_owned(), argument.name.clone());
            argument.completion = Some(CompletionSource::Remote(Arc::new(move |typed, known| {
                let (connection, prompt, name) = (Arc::clone(&connection), prompt.clone(), name.clone());
                Box::pin(async move { connection.complete(&prompt, &name, &typed, known).await })
            })));
        }
        prompt
    }

    /// Keeps the mirror current. Never returns.
    async fn follow(self) {
        let mut pause = MIN_PAUSE;
        let mut subscription: Option<(Client, Changes)> = None;
        loop {
            let listed = self.refresh().await;
            pause = match &listed {
                // A server that changes its list all the time is listed ever more rarely.
                Ok((true, _)) | Err(_) => (pause * 2).min(self.0.interval.max(MIN_PAUSE)),
                Ok((false, _)) => MIN_PAUSE,
            };
            sleep(pause).await;
            let Ok((_, client)) = listed else {
                subscription = None;
                continue;
            };
            match &mut subscription {
                Some((subscribed, changes)) if !subscribed.is_closed() => self.wait(changes).await,
                // Changes before the subscription are only in the next list.
                _ => subscription = Some(self.subscribe(client).await),
            }
        }
    }

    /// Lists the prompts for the first time. Where a list of an earlier run exists, it is served while the server does
    /// not answer.
    async fn first_list(&self) -> Result<(), String> {
        if !self.restore() {
            return self.refresh().await.map(drop);
        }
        let listed = timeout(RESTORED_WAIT, self.refresh()).await;
        if listed.is_err() {
            self.set_problem(Some("it has not answered yet".to_owned()));
        }
        Ok(())
    }

    fn subscribe(&self, client: Client) -> BoxFuture<'_, (Client, Changes)> {
        Box::pin(async move {
            let mut changes = client.changes();
            timeout(self.0.connection.timeout(), changes.subscribed()).await.ok();
            (client, changes)
        })
    }

    /// Waits for a reason to list again, and applies approvals in the meantime.
    fn wait<'w>(&'w self, changes: &'w mut Changes) -> BoxFuture<'w, ()> {
        Box::pin(self.wait_for_reason(changes))
    }

    async fn wait_for_reason(&self, changes: &mut Changes) {
        let mut deadline = std::pin::pin!(sleep(self.0.interval));
        let mut looks = interval(APPROVAL_PAUSE);
        let mut approved = self.approved();
        loop {
            tokio::select! {
                _ = changes.next() => return,
                () = self.0.connection.broken.notified() => return,
                () = &mut deadline => return,
                _ = looks.tick(), if self.0.approvals.is_some() => {
                    let now = self.approved();
                    if now != approved {
                        approved = now;
                        if let Err(problem) = self.apply() {
                            self.set_problem(Some(problem));
                        }
                    }
                }
            }
        }
    }

    fn approved(&self) -> Option<DefinitionMap> {
        self.0.approvals.as_ref()?.read_approved().ok()?
    }

    fn set_problem(&self, problem: Option<String>) {
        let (is_new, has_list) = self.with(|state| {
            let is_new = state.problem.as_ref().map(|(known, _)| known) != problem.as_ref();
            let since = state.problem.as_ref().map_or_else(SystemTime::now, |(_, since)| *since);
            state.problem = problem.clone().map(|problem| (problem, since));
            (is_new, state.mirrored.is_some())
        });
        let source = self.0.connection.name();
        match problem.filter(|_| is_new) {
            // Without a list, its reader reports that the source has failed.
            Some(_) if !has_list => {}
            Some(problem) => tracing::warn!(source, "the source is not current: {problem}"),
            None if is_new => tracing::info!(source, "the source is current again"),
            None => {}
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.state.lock())
    }
}

/// Returns the reason why a prompt cannot be passed on. The names of its arguments are those of the other server, whatever
/// they are, as long as people can see them.
fn fault(prompt: &PromptInfo) -> Option<String> {
    if let Err(error) = PromptName::new(&prompt.name) {
        return Some(error.to_string());
    }
    if visible(&prompt.name) != prompt.name {
        return Some("its name has invisible characters".to_owned());
    }
    let mut names = BTreeSet::new();
    prompt.arguments.iter().find_map(|argument| {
        let shown = visible(&argument.name);
        if shown != argument.name || argument.name.contains(char::is_control) {
            return Some(format!("the name of its argument `{shown}` has invisible characters"));
        }
        (!names.insert(&argument.name)).then(|| format!("it has the argument `{shown}` twice"))
    })
}

fn definitions(listed: &BTreeMap<String, Listed>) -> DefinitionMap {
    listed.iter().map(|(name, listed)| (name.clone(), listed.definition.clone())).collect()
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upstream({})", self.0.connection.name())
    }
}

impl OpenSource for Upstream {
    fn kind(&self) -> &'static str {
        "mcp"
    }

    fn open(&self) -> BoxFuture<'_, Result<OpenedSource, SourceError>> {
        Box::pin(async {
            self.first_list().await.map_err(SourceError::new)?;
            let upstream = self.clone();
            let opened = OpenedSource::new(self.0.prompts.clone());
            Ok(opened.following(Box::new(move |_| Box::pin(upstream.follow()))))
        })
    }

    fn health(&self) -> Health {
        let (problem, left_out, warning) =
            self.with(|state| (state.problem.clone(), state.left_out.clone(), state.warning.clone()));
        let (problem, since) = problem.unzip();
        Health { problem, left_out, warning, behind_since: since.and_then(Timestamp::of_system), ..Health::default() }
    }

    fn refresh(&self) {
        self.0.connection.broken.notify_one();
    }
}
