//! One source among several: opening, loading and following it.

use std::{
    pin::Pin,
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use promptshelf_core::{
    Access, AccessRule, BoxFuture, CatalogPart, Code, Definitions, Diagnostic, Origin, PromptName, SourceText,
    Timestamp,
};
use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot},
    task::JoinHandle,
    time::timeout,
};

use super::{Health, Shared, SourceState, SourceStatus, lock, shortened};
use crate::{
    error::SourceError,
    fixed::Fixed,
    loader::{Loader, ReloadTask},
    source::Source,
};

/// The time until a source that could not be opened is tried again, first and at most.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Follows a source, with the loader of its prompts. Never returns; it is dropped to end it.
pub type Following = Box<dyn FnOnce(Loader) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Opens one source of a [`SourceSet`](super::SourceSet).
pub trait OpenSource: Send + Sync + 'static {
    /// The kind of source, such as `folder`.
    fn kind(&self) -> &'static str;

    /// Opens the source; after an error it is called again.
    fn open(&self) -> BoxFuture<'_, Result<OpenedSource, SourceError>>;

    /// Returns the state of a source that follows something else than files.
    fn health(&self) -> Health {
        Health::default()
    }

    /// Requests another look at the place that the source follows.
    fn refresh(&self) {}
}

impl<O: OpenSource + ?Sized> OpenSource for Arc<O> {
    fn kind(&self) -> &'static str {
        (**self).kind()
    }

    fn open(&self) -> BoxFuture<'_, Result<OpenedSource, SourceError>> {
        (**self).open()
    }

    fn health(&self) -> Health {
        (**self).health()
    }

    fn refresh(&self) {
        (**self).refresh();
    }
}

/// A source that has been opened.
pub struct OpenedSource {
    source: Box<dyn Source>,
    following: Option<Following>,
}

impl OpenedSource {
    /// Creates a source that reports its changes itself.
    #[must_use]
    pub fn new(source: impl Source + 'static) -> OpenedSource {
        OpenedSource { source: Box::new(source), following: None }
    }

    /// Adds a future that keeps the source current. It runs besides [`Source::watch`].
    #[must_use]
    pub fn following(self, following: Following) -> OpenedSource {
        OpenedSource { following: Some(following), ..self }
    }
}

/// The options of one source.
pub struct MemberOptions {
    name: Arc<str>,
    prefix: Arc<str>,
    access: Option<Access>,
    max_prompts: usize,
    is_foreign: bool,
    server_id: Option<Arc<str>>,
    opener: Box<dyn OpenSource>,
}

impl MemberOptions {
    /// Creates options with the prefix `NAME-`.
    #[must_use]
    pub fn new(name: &str, opener: Box<dyn OpenSource>) -> MemberOptions {
        let prefix = format!("{name}-").into();
        MemberOptions {
            name: name.into(),
            prefix,
            access: None,
            max_prompts: usize::MAX,
            is_foreign: false,
            server_id: None,
            opener,
        }
    }

    /// Sets the text before each prompt's own name.
    #[must_use]
    pub fn prefix(self, prefix: &str) -> MemberOptions {
        MemberOptions { prefix: prefix.into(), ..self }
    }

    /// Sets requirements for everything in the source. Rules of the source itself add to them.
    #[must_use]
    pub fn access(self, access: Access) -> MemberOptions {
        MemberOptions { access: Some(access), ..self }
    }

    /// Sets the largest number of prompts. A state with more of them is not served.
    #[must_use]
    pub fn max_prompts(self, max_prompts: usize) -> MemberOptions {
        MemberOptions { max_prompts, ..self }
    }

    /// Sets the id of this server, which other servers see with each prompt.
    #[must_use]
    pub fn server_id(self, server_id: Option<Arc<str>>) -> MemberOptions {
        MemberOptions { server_id, ..self }
    }

    /// Marks prompts as those of another server.
    #[must_use]
    pub fn foreign(self, is_foreign: bool) -> MemberOptions {
        MemberOptions { is_foreign, ..self }
    }
}

pub(super) struct Member {
    options: MemberOptions,
    rules: Fixed,
    own_rule: Arc<SourceText>,
    shared: Arc<Shared>,
    state: Mutex<State>,
    /// Requests another attempt to open at once.
    wake: Notify,
}

#[derive(Default)]
struct State {
    loader: Option<Loader>,
    following: Option<Following>,
    tasks: Option<Tasks>,
    is_followed: bool,
    part: Option<CatalogPart>,
    /// What another server has and this catalog does not.
    left_out: Vec<String>,
    problem: Option<(String, SystemTime)>,
    opening: Option<JoinHandle<()>>,
}

struct Tasks {
    _reload: ReloadTask,
    follow: Option<JoinHandle<()>>,
}

impl Drop for Tasks {
    fn drop(&mut self) {
        if let Some(follow) = &self.follow {
            follow.abort();
        }
    }
}

impl Member {
    pub(super) fn start(
        options: MemberOptions,
        rules: &[AccessRule],
        shared: &Arc<Shared>,
        runtime: &Handle,
    ) -> Arc<Member> {
        let own_rule = SourceText::new("server.toml", "");
        let rules = Fixed::new(definitions(&options, rules, &own_rule));
        let member = Arc::new(Member {
            options,
            rules,
            own_rule,
            shared: Arc::clone(shared),
            state: Mutex::default(),
            wake: Notify::new(),
        });
        let opening = runtime.spawn(Arc::clone(&member).open_until_read(runtime.clone()));
        lock(&member.state).opening = Some(opening);
        member
    }

    pub(super) fn name(&self) -> &str {
        &self.options.name
    }

    pub(super) fn loader(&self) -> Option<Loader> {
        lock(&self.state).loader.clone()
    }

    /// Opens and reads the source, again and again until it succeeds.
    async fn open_until_read(self: Arc<Member>, runtime: Handle) {
        let mut pause = RETRY.0;
        let mut is_first = true;
        loop {
            let opened = self.open().await;
            let is_open = opened.is_ok();
            match opened {
                Ok((loader, following)) => self.set_opened(loader, following, &runtime),
                Err(error) => self.fail(error.to_string()),
            }
            if std::mem::take(&mut is_first) {
                self.shared.note_settled();
            }
            if is_open {
                return;
            }
            // A request ends the pause.
            timeout(pause, self.wake.notified()).await.ok();
            pause = (pause * 2).min(RETRY.1);
        }
    }

    async fn open(&self) -> Result<(Loader, Option<Following>), SourceError> {
        let OpenedSource { source, following } = self.options.opener.open().await?;
        let sources: Vec<Box<dyn Source>> = vec![source, Box::new(self.rules.clone())];
        let (sender, loader) = oneshot::channel();
        // A thread of its own: one that hangs takes no place in the pool of the runtime, and does not delay its end.
        let thread = thread::Builder::new().name(format!("source-{}", self.name()));
        let spawned = thread.spawn(move || sender.send(Loader::open_quietly(sources)));
        spawned.map_err(|error| SourceError::new(format!("no thread can be started: {error}")))?;
        let loader = loader.await.unwrap_or_else(|_| Err(SourceError::new("the load has failed")))?;
        Ok((loader, following))
    }

    fn set_opened(self: &Arc<Member>, loader: Loader, following: Option<Following>, runtime: &Handle) {
        let mut reports = loader.reports();
        let is_followed = {
            let mut state = lock(&self.state);
            state.loader = Some(loader);
            state.following = following;
            state.is_followed
        };
        reports.mark_unchanged();
        self.take_report();
        let member = Arc::downgrade(self);
        runtime.spawn(async move {
            while reports.changed().await.is_ok() {
                let Some(member) = member.upgrade() else { return };
                member.take_report();
            }
        });
        if is_followed {
            self.follow(runtime);
        }
    }

    /// Takes over the result of the last load, and requests a load of the joined catalog.
    fn take_report(&self) {
        let Some(loader) = self.loader() else { return };
        let report = loader.reports().borrow().clone();
        let catalog = loader.handle().current();
        let prompts = catalog.prompts().len();
        let problem = match &report.failure {
            Some(error) => Some(error.to_string()),
            None if prompts > self.options.max_prompts => {
                Some(format!("it has {prompts} prompts, and `max-prompts` allows {}", self.options.max_prompts))
            }
            None => None,
        };
        let is_same = lock(&self.state).part.as_ref().is_some_and(|part| Arc::ptr_eq(&part.catalog, &catalog));
        match problem {
            Some(problem) => {
                self.fail(problem);
                // Without an accepted state there is nothing to serve, and with one nothing changes.
                return;
            }
            None => self.recover(),
        }
        // A source without resources, for instance, is not a mistake in its requirements.
        let is_of_own_rule = |found: &&Diagnostic| {
            found.code == Code::UnmatchedRule && Arc::ptr_eq(&found.location.source, &self.own_rule)
        };
        // Warnings about prompts of another server are not for the authors of this one.
        let is_meant = |found: &&Diagnostic| !is_of_own_rule(found) && (found.is_error() || !self.options.is_foreign);
        let diagnostics: Arc<[Diagnostic]> = report.diagnostics.iter().filter(is_meant).cloned().collect();
        let mut left_out = Vec::new();
        if self.options.is_foreign {
            left_out.extend(diagnostics.iter().filter(|found| found.is_error()).map(|found| found.message.clone()));
            for prompt in catalog.prompts().iter() {
                if let Err(error) = PromptName::new(format!("{}{}", self.options.prefix, prompt.name())) {
                    left_out.push(format!("the prompt `{}`, with the prefix of the source: {error}", prompt.name()));
                }
            }
        }
        let mut state = lock(&self.state);
        state.left_out = left_out;
        state.part = Some(CatalogPart {
            source: Arc::clone(&self.options.name),
            prefix: Arc::clone(&self.options.prefix),
            is_foreign: self.options.is_foreign,
            server_id: self.options.server_id.clone(),
            catalog,
            diagnostics,
        });
        drop(state);
        self.shared.note_change(is_same);
    }

    pub(super) fn part(&self) -> Option<CatalogPart> {
        lock(&self.state).part.clone()
    }

    fn fail(&self, problem: String) {
        let mut state = lock(&self.state);
        if state.problem.as_ref().is_some_and(|(known, _)| *known == problem) {
            return;
        }
        let since = state.problem.as_ref().map_or_else(SystemTime::now, |(_, since)| *since);
        let served = if state.part.is_some() { "; its last good version stays in use" } else { "" };
        tracing::error!(source = self.name(), "the source cannot be read{served}: {problem}");
        state.problem = Some((problem, since));
    }

    fn recover(&self) {
        if lock(&self.state).problem.take().is_some() {
            tracing::info!(source = self.name(), "the source can be read again");
        }
    }

    pub(super) fn follow(&self, runtime: &Handle) {
        let mut state = lock(&self.state);
        state.is_followed = true;
        let Some(loader) = state.loader.clone().filter(|_| state.tasks.is_none()) else { return };
        let _inside = runtime.enter();
        let follow = state.following.take().map(|following| runtime.spawn(following(loader.clone())));
        state.tasks = Some(Tasks { _reload: loader.spawn(), follow });
    }

    /// Ends the following. A source with a future of its own is not followed again.
    pub(super) fn unfollow(&self) {
        let mut state = lock(&self.state);
        state.is_followed = false;
        state.tasks = None;
    }

    pub(super) fn close(&self) {
        if let Some(opening) = lock(&self.state).opening.take() {
            opening.abort();
        }
        self.unfollow();
    }

    /// Tries again at once to open a source that could not be opened.
    pub(super) fn request_open(&self) {
        self.wake.notify_one();
    }

    pub(super) fn refresh(self: &Arc<Member>) {
        self.options.opener.refresh();
        self.request_open();
        if let Some(loader) = self.loader() {
            tokio::spawn(async move { loader.reload().await.map(drop) });
        }
    }

    pub(super) fn replace_rules(&self, rules: &[AccessRule]) {
        self.rules.replace(definitions(&self.options, rules, &self.own_rule));
    }

    /// Serves nothing until the source has been loaded with new rules.
    pub(super) fn withhold(&self) {
        if lock(&self.state).part.take().is_some() {
            tracing::error!(
                source = self.name(),
                "the source cannot be read with the new access rules, and is not served"
            );
            self.shared.note_change(false);
        }
    }

    /// Returns the state. `unserved` are the prompts that other members have too.
    pub(super) fn status(&self, unserved: Vec<String>) -> SourceStatus {
        let health = self.options.opener.health();
        let state = lock(&self.state);
        let problem = state.problem.clone();
        let behind_since = problem.as_ref().and_then(|(_, since)| Timestamp::of_system(*since));
        let behind_since = behind_since.or(health.behind_since);
        let problem = problem.map(|(problem, _)| problem).or(health.problem);
        let is_behind = problem.is_some() || behind_since.is_some();
        SourceStatus {
            name: self.name().to_owned(),
            kind: self.options.opener.kind(),
            state: match &state.part {
                Some(_) if is_behind => SourceState::Behind,
                Some(_) => SourceState::Current,
                None if is_behind => SourceState::Failed,
                None => SourceState::Starting,
            },
            revision: health.revision,
            commit: health.commit,
            prompts: state.part.as_ref().map_or(0, |part| part.catalog.prompts().len().saturating_sub(unserved.len())),
            behind_since,
            problem,
            left_out: shortened(
                health.left_out.into_iter().chain(state.left_out.iter().cloned()).chain(unserved).collect(),
            ),
            warning: health.warning,
            access: self.options.access.clone().map(Arc::new),
        }
    }
}

/// Returns the rules for one member: those of the operator, by served names, and the requirements of the source.
fn definitions(options: &MemberOptions, rules: &[AccessRule], own_rule: &Arc<SourceText>) -> Definitions {
    let served = rules.iter().cloned().map(|rule| AccessRule { prefix: options.prefix.to_string(), ..rule });
    let own = options.access.clone().map(|access| AccessRule {
        prompts: vec!["*".to_owned()],
        folders: vec![String::new()],
        resources: vec!["*".to_owned()],
        diagnostics: true,
        ..AccessRule::new(access, Origin::new(Arc::clone(own_rule)))
    });
    Definitions {
        namespace: Some(Arc::clone(&options.name)),
        access: served.chain(own).collect(),
        ..Definitions::default()
    }
}
