//! Reloading of settings: at SIGHUP, and when a file that contains some has changed (`server.toml`, tokens, certificate,
//! key).
//!
//! Invalid settings are logged and change nothing. A change that needs a restart is logged, and the rest takes effect.
//!
//! While no file can be opened because the process or the system has no file descriptor left, a withdrawn token could
//! not be noticed: connections are closed until the files can be read.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use promptshelf_core::{AccessRule, Definitions};
use promptshelf_server::http::{
    self, App,
    auth::{SharedTokens, SignIn},
    tls::{Tls, TlsFiles},
};
use promptshelf_service::{AuditFile, AuditFileOptions};
use promptshelf_source::Fixed;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::{listen, served::Served, sign_in_options, supervisor};
use crate::{
    args::ServeArguments,
    settings::{ServerFileLocation, Settings},
};

/// The interval at which files are compared with their last known content: a caller who is blocked in one of them is refused
/// within a second.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Files have to stay the same for this time before they are read, because an editor may write in several steps.
const SETTLE_TIME: Duration = Duration::from_millis(50);

const MAX_SETTLE_CHECKS: usize = 20;

/// The number of attempts to read the files, after closing idle connections, before all connections are closed.
const MAX_SHED_ATTEMPTS: u32 = 4;

/// A hash of a file's content; `None` for an unreadable file. Files are small, and modification times too coarse: two
/// edits can have the same one.
type ContentHash = Option<u64>;

pub(super) type KnownFiles = Vec<(PathBuf, ContentHash)>;

/// Hashes a file.
///
/// # Errors
///
/// Only when all file descriptors are in use; other errors belong to the file.
fn content_hash(path: &Path) -> io::Result<ContentHash> {
    match fs::read(path) {
        Ok(bytes) => {
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            Ok(Some(hasher.finish()))
        }
        Err(error) if http::is_out_of_files(&error) => Err(error),
        Err(_) => Ok(None),
    }
}

/// The current content of the files of `settings`.
///
/// # Errors
///
/// When all file descriptors are in use.
pub(super) fn known_files(settings: &Settings, location: &ServerFileLocation) -> io::Result<KnownFiles> {
    let hashed = |path: PathBuf| content_hash(&path).map(|hash| (path, hash));
    settings.files(location).into_iter().map(hashed).collect()
}

/// A source without prompts, whose access rules bind those of all other sources.
pub(super) fn rules_source(rules: &[AccessRule]) -> Definitions {
    Definitions { access: rules.to_vec(), ..Definitions::default() }
}

fn is_same_access(before: &[AccessRule], after: &[AccessRule]) -> bool {
    let parts = |rule: &AccessRule| {
        let AccessRule { prompts, folders, tags, resources, diagnostics, access, .. } = rule.clone();
        (prompts, folders, tags, resources, diagnostics, access)
    };
    before.iter().map(parts).eq(after.iter().map(parts))
}

pub(super) struct Reloader<E> {
    pub(super) arguments: ServeArguments,
    pub(super) environment: E,
    pub(super) location: ServerFileLocation,
    pub(super) bound: std::net::SocketAddr,
    pub(super) settings: Settings,
    pub(super) audit: Option<(Arc<AuditFile>, AuditFileOptions)>,
    pub(super) served: Served,
    pub(super) rules: Fixed,
    pub(super) shared_tokens: Option<SharedTokens>,
    pub(super) app: App,
    pub(super) tls: Option<Tls>,
    /// Whether all connections are refused because the settings cannot be read.
    pub(super) is_suspended: bool,
}

impl<E: Fn(&str) -> Option<String>> Reloader<E> {
    /// Follows files and signals, and never returns. `known` is the content from before the settings were read.
    pub(super) async fn run(mut self, mut hangups: Hangups, mut known: KnownFiles) {
        let mut reports = self.served.library.loader().reports();
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // A failure may pass without a change of the files, such as one of the file system.
        let mut last_failure = None;
        loop {
            let by_signal = tokio::select! {
                () = hangups.next() => true,
                _ = ticks.tick() => false,
                // A change of the library often comes with one of the settings.
                Ok(()) = reports.changed() => false,
            };
            let mut now = self.current_files().await;
            if !by_signal && now == known {
                if last_failure.is_some() {
                    last_failure = self.reload(false, &known, &now, last_failure.as_deref()).await;
                }
                self.resume();
                continue;
            }
            for _ in 0..MAX_SETTLE_CHECKS {
                sleep(SETTLE_TIME).await;
                let later = self.current_files().await;
                if std::mem::replace(&mut now, later.clone()) == later {
                    break;
                }
            }
            supervisor::reloading();
            last_failure = self.reload(by_signal, &known, &now, None).await;
            supervisor::ready();
            self.resume();
            // The new settings can name other files, which are then unknown and cause another reload.
            let files = self.settings.files(&self.location);
            known = files.into_iter().map(|path| (path.clone(), find(&now, &path))).collect();
        }
    }

    /// Accepts connections again, once the settings have been read. They may have been read before the last descriptor
    /// was taken again.
    fn resume(&mut self) {
        if self.is_suspended && known_files(&self.settings, &self.location).is_ok() {
            self.is_suspended = false;
            self.app.set_suspended(false);
            tracing::info!("the settings can be read again, and connections are accepted");
        }
    }

    /// Returns the current content of the files. Without a file descriptor it is unknown which tokens are still valid:
    /// idle connections are closed first, and then all of them until the files can be read.
    async fn current_files(&mut self) -> KnownFiles {
        let mut failures = 0;
        loop {
            match known_files(&self.settings, &self.location) {
                Ok(files) => {
                    if failures > 0 {
                        // Files of the library could not be read either. The loader logs its errors itself.
                        self.served.reload().await;
                    }
                    return files;
                }
                Err(error) => {
                    failures += 1;
                    if failures <= MAX_SHED_ATTEMPTS {
                        tracing::warn!("the settings cannot be read, idle connections are closed: {error}");
                        self.app.shed_connections();
                    } else {
                        self.app.set_suspended(true);
                        if !std::mem::replace(&mut self.is_suspended, true) {
                            tracing::error!("the settings cannot be read, all connections are closed: {error}");
                        }
                    }
                    sleep(SETTLE_TIME).await;
                }
            }
        }
    }

    /// Reads and applies the settings, and returns the failure if they are invalid. The failure of the attempt before
    /// is not logged again.
    async fn reload(
        &mut self,
        by_signal: bool,
        known: &KnownFiles,
        now: &KnownFiles,
        last_failure: Option<&str>,
    ) -> Option<String> {
        if by_signal {
            tracing::info!("SIGHUP: reloading library and settings");
            self.served.reload().await;
        }
        let location = self.location.keep(self.settings.file.as_deref());
        let mut failed = None;
        match Settings::read(&location, &self.arguments, &self.environment) {
            Ok(settings) => self.apply(settings, by_signal).await,
            Err(failure) => {
                let failure = failure.to_string();
                if last_failure != Some(failure.as_str()) {
                    tracing::error!("invalid settings, the previous ones stay active: {failure}");
                }
                failed = Some(failure);
            }
        }
        let has_changed = |path: &Path| find(known, path) != find(now, path);
        if let (Some(tls), Some(files)) = (&self.tls, &self.settings.http.tls)
            && (by_signal || has_changed(&files.certificate) || has_changed(&files.key))
        {
            reload_certificate(tls, files);
        }
        failed
    }

    /// Applies valid settings, apart from those that a running server cannot change.
    async fn apply(&mut self, mut settings: Settings, by_signal: bool) {
        let (before, http) = (&self.settings, &mut settings.http);
        if settings.metrics != before.metrics || settings.traces != before.traces {
            warn_restart("[metrics] or [traces] has changed");
            settings.metrics.clone_from(&before.metrics);
            settings.traces.clone_from(&before.traces);
        }
        if http.address != before.http.address || http.allow_remote != before.http.allow_remote {
            warn_restart("`address` or `allow-remote` in [http] has changed");
            (http.address, http.allow_remote) = (before.http.address.clone(), before.http.allow_remote);
        }
        if http.has_api != before.http.has_api {
            warn_restart("`enabled` in [api], or what it depends on, has changed");
            http.has_api = before.http.has_api;
        }
        if http.has_store_tokens != before.http.has_store_tokens {
            warn_restart("`store-tokens` in [auth], or what it depends on, has changed");
            http.has_store_tokens = before.http.has_store_tokens;
        }
        if settings.usage != before.usage {
            warn_restart("[usage] has changed");
            settings.usage.clone_from(&before.usage);
        }
        if settings.webhooks != before.webhooks {
            warn_restart("[[webhook]] has changed");
            settings.webhooks.clone_from(&before.webhooks);
        }
        if settings.rollouts != before.rollouts {
            warn_restart("[[rollout]] has changed");
            settings.rollouts.clone_from(&before.rollouts);
        }
        if http.sign_in.is_some() != before.http.sign_in.is_some() {
            warn_restart("[auth] was added or removed");
            http.sign_in.clone_from(&before.http.sign_in);
        }
        if http.tls.is_some() != before.http.tls.is_some() {
            warn_restart("[tls] was added or removed");
            http.tls.clone_from(&before.http.tls);
            http.options.strict_transport_security = before.http.options.strict_transport_security;
        }
        if settings.library != before.library {
            warn_restart("[[source]], the channels of [channels], or `cache` in [store], have changed");
            settings.library.clone_from(&before.library);
        }
        self.apply_audit(settings.audit.take(), by_signal).await;
        self.apply_to_library(&settings).await;
        for (_, library) in self.served.libraries() {
            library.server().set_tools(settings.tools);
        }
        // The other libraries share the limits.
        self.served.library.service().set_limits(settings.http.effective_limits().as_ref());
        let mut options = settings.http.options.clone();
        let before = self.app.options();
        options.api = before.api.map(|api| api.unpublished_bytes(settings.http.unpublished_bytes));
        (options.versions, options.folder) = (before.versions, before.folder);
        (options.usage, options.sources, options.webhooks) = (before.usage, before.sources, before.webhooks);
        options.mcp.allowed_hosts = listen::hosts(&settings.http, self.bound);
        options.sign_in = match (before.sign_in, sign_in_options(&settings, self.shared_tokens.as_ref())) {
            (Some(before), Some(after)) => Some(before.replaced_by(after)),
            (_, after) => after.map(SignIn::new),
        };
        if let Some(sign_in) = &options.sign_in {
            sign_in.follow_keys();
            if by_signal {
                sign_in.fetch_keys();
            }
        }
        self.app.replace(&options);
        if let (Some(tls), Some(files)) = (&self.tls, &settings.http.tls)
            && settings.http.tls != self.settings.http.tls
        {
            reload_certificate(tls, files);
        }
        settings.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        self.settings = settings;
        tracing::info!("settings reloaded");
    }

    /// Replaces grants and access rules, and loads the library again if they differ.
    async fn apply_to_library(&self, settings: &Settings) {
        let has_rules_changed = !is_same_access(&settings.access, &self.settings.access);
        let has_grants_changed = settings.granted_roots != self.settings.granted_roots;
        if has_rules_changed {
            self.rules.replace(rules_source(&settings.access));
            if let Some(sources) = self.served.open_sources() {
                sources.set.replace_rules(&settings.access).await;
            }
        }
        if has_grants_changed {
            self.served.grant_roots(&settings.granted_roots);
            if let Some(folder) = self.app.options().folder {
                folder.grant_roots(settings.granted_roots.iter().cloned());
            }
        }
        let has_provenance_changed = settings.shows_provenance != self.settings.shows_provenance;
        self.served.show_provenance(settings.shows_provenance);
        if has_rules_changed || has_grants_changed || has_provenance_changed {
            self.served.reload().await;
        }
    }

    async fn apply_audit(&mut self, audit: Option<AuditFileOptions>, by_signal: bool) {
        if audit.is_some() != self.audit.is_some() {
            warn_restart("[audit] was added or removed");
        }
        let (Some((file, options)), Some(audit)) = (&mut self.audit, audit) else { return };
        // After SIGHUP a file that log rotation has moved is opened again.
        if !by_signal && audit == *options {
            return;
        }
        let (writer, path) = (Arc::clone(file), audit.clone());
        match tokio::task::spawn_blocking(move || writer.reopen(path)).await {
            Ok(Ok(())) => *options = audit,
            Ok(Err(error)) => {
                let path = audit.path.display();
                tracing::error!("cannot write the audit file {path}, the previous one stays in use: {error}");
            }
            Err(error) => tracing::error!(%error, "opening the audit file was not completed"),
        }
    }
}

fn warn_restart(change: &str) {
    tracing::warn!("{change}; restart to apply (the previous setting stays active)");
}

/// Loads the certificate that is in the files now. The one in use stays if they are invalid.
fn reload_certificate(tls: &Tls, files: &TlsFiles) {
    match tls.reload(files) {
        Ok(()) => tracing::info!("certificate reloaded from {}", files.certificate.display()),
        Err(error) => tracing::error!("the previous certificate stays in use: {error}"),
    }
}

fn find(files: &KnownFiles, path: &Path) -> ContentHash {
    files.iter().find(|(known, _)| known == path).and_then(|(_, hash)| *hash)
}

pub(super) struct Hangups {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl Hangups {
    /// On a terminal the signal keeps its default effect: closing the terminal ends the program.
    pub(super) fn listen(is_terminal: bool) -> Hangups {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let listen = || signal(SignalKind::hangup());
            let signal = if is_terminal { None } else { Some(listen()) };
            let signal = signal
                .and_then(|signal| signal.inspect_err(|error| tracing::warn!(%error, "cannot receive SIGHUP")).ok());
            Hangups { signal }
        }
        #[cfg(not(unix))]
        {
            let _ = is_terminal;
            Hangups {}
        }
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
