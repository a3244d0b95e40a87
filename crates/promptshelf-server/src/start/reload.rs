//! Reloading of settings: at SIGHUP, and when a file that contains some has changed (`server.toml`, tokens, certificate,
//! key).
//!
//! Invalid settings are logged and change nothing. A change that needs a restart is logged, and the rest takes effect.
//!
//! While no file can be opened because the process or the system has no file descriptor left, a withdrawn token could
//! not be noticed: connections are closed until the files can be read.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use promptshelf_core::AccessRule;
use promptshelf_service::AuditFileOptions;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::{Listening, Server, live_options, rules_source, sign_in_options, supervisor};
use crate::{
    failure::Failure,
    http::{
        auth::SignIn,
        tls::{Tls, TlsFiles},
    },
    settings::{KnownFiles, Settings},
};

/// The interval at which files are compared with their last known content: a caller who is blocked in one of them is refused
/// within a second.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Files have to stay the same for this time before they are read, because an editor may write in several steps.
const SETTLE_TIME: Duration = Duration::from_millis(50);

const MAX_SETTLE_CHECKS: usize = 20;

/// The number of attempts to read the files, after closing idle connections, before all connections are closed.
const MAX_SHED_ATTEMPTS: u32 = 4;

/// Reads the settings again, from the `server.toml` that was found at the start.
pub trait ReadSettings: Fn(Option<&Path>) -> Result<Settings, Failure> {}

impl<R: Fn(Option<&Path>) -> Result<Settings, Failure>> ReadSettings for R {}

/// The reloads of settings, for the metrics.
#[derive(Debug, Default)]
pub(super) struct Reloads {
    pub(super) succeeded: AtomicU64,
    pub(super) failed: AtomicU64,
    /// Seconds since 1970; 0 before the first.
    pub(super) last_success: AtomicI64,
    pub(super) has_failed: AtomicBool,
    /// Whether the file has settings that are in effect after a restart only.
    pub(super) awaits_restart: AtomicBool,
}

impl Reloads {
    /// Returns whether the settings in the file are those in effect.
    pub(super) fn are_in_effect(&self) -> bool {
        !self.has_failed.load(Ordering::Relaxed) && !self.awaits_restart.load(Ordering::Relaxed)
    }

    fn note(&self, is_ok: bool) {
        self.has_failed.store(!is_ok, Ordering::Relaxed);
        if is_ok {
            self.succeeded.fetch_add(1, Ordering::Relaxed);
            self.last_success.store(Timestamp::now().as_second(), Ordering::Relaxed);
        } else {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Server {
    /// Follows files and signals, and never returns.
    pub(super) async fn reload_forever(&mut self, read: &impl ReadSettings, mut hangups: Hangups) {
        let mut known = self.settings.files.clone();
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
                    last_failure = self.reload(read, false, last_failure.as_deref()).await;
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
            last_failure = self.reload(read, by_signal, None).await;
            self.renew_certificate(by_signal, &known, &now);
            supervisor::ready();
            self.resume();
            known = if last_failure.is_some() { now } else { self.settings.files.clone() };
        }
    }

    /// Accepts connections again, once the settings have been read. They may have been read before the last descriptor
    /// was taken again.
    fn resume(&mut self) {
        if let Some(http) = self.http.as_mut().filter(|http| http.is_suspended)
            && self.settings.files.current().is_ok()
        {
            http.is_suspended = false;
            http.app.set_suspended(false);
            tracing::info!("the settings can be read again, and connections are accepted");
        }
    }

    /// Returns the current content of the files. Without a file descriptor it is unknown which tokens are still valid:
    /// idle connections are closed first, and then all of them until the files can be read.
    async fn current_files(&mut self) -> KnownFiles {
        let mut failures = 0;
        loop {
            match self.settings.files.current() {
                Ok(files) => {
                    if failures > 0 {
                        // Files of the library could not be read either. The loader logs its errors itself.
                        self.served.reload().await;
                    }
                    return files;
                }
                Err(error) => {
                    failures += 1;
                    self.http.iter_mut().for_each(|http| http.shed(failures, &error));
                    sleep(SETTLE_TIME).await;
                }
            }
        }
    }

    /// Reads and applies the settings, and returns the failure if they are invalid. The failure of the attempt before
    /// is not logged again.
    async fn reload(
        &mut self,
        read: &impl ReadSettings,
        by_signal: bool,
        last_failure: Option<&str>,
    ) -> Option<String> {
        if by_signal {
            tracing::info!("SIGHUP: reloading library and settings");
            self.served.reload().await;
        }
        let found = read(self.settings.file.as_deref());
        if by_signal || last_failure.is_none() {
            self.reloads.note(found.is_ok());
        }
        match found {
            Ok(settings) => {
                self.apply(settings, by_signal).await;
                None
            }
            Err(failure) => {
                let failure = failure.to_string();
                if last_failure != Some(failure.as_str()) {
                    tracing::error!("invalid settings, the previous ones stay active: {failure}");
                }
                Some(failure)
            }
        }
    }

    /// Applies settings, apart from those that a running server cannot change. After SIGHUP the audit file is opened
    /// and the keys of the issuer are fetched again in any case.
    pub async fn apply(&mut self, settings: Settings, by_signal: bool) {
        let changed = self.settings.fixed.changed(&settings.fixed);
        let (live, kept) = settings.live.keep_presence(&self.settings.live);
        self.reloads.awaits_restart.store(!changed.is_empty() || !kept.is_empty(), Ordering::Relaxed);
        for key in changed {
            warn_restart(&format!("{key} has changed"));
        }
        for section in kept {
            warn_restart(&format!("{section} was added or removed"));
        }
        let settings = Settings { live, fixed: self.settings.fixed.clone(), ..settings };
        let before = std::mem::replace(&mut self.settings, settings);
        self.apply_audit(before.live.audit.as_ref(), by_signal).await;
        self.apply_to_library(&before).await;
        self.apply_to_requests();
        // The other libraries share the limits.
        self.library().service().set_limits(self.settings.live.limits.as_ref());
        if let Some(http) = &self.http {
            http.apply(&self.settings, &before, by_signal);
        }
        self.settings.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        tracing::info!("settings reloaded");
    }

    /// Applies what concerns single requests to every library.
    pub(super) fn apply_to_requests(&self) {
        for (_, library) in self.served.libraries() {
            library.server().set_request_options(self.settings.live.requests);
        }
    }

    /// Replaces grants and access rules, and loads the library again if they differ.
    async fn apply_to_library(&self, before: &Settings) {
        let (live, before) = (&self.settings.live, &before.live);
        let has_rules_changed = !is_same_access(&live.access, &before.access);
        let has_grants_changed = live.granted_roots != before.granted_roots;
        let has_provenance_changed = live.hides_provenance != before.hides_provenance;
        if has_rules_changed {
            self.rules.replace(rules_source(&live.access));
            self.served.replace_rules(&live.access).await;
        }
        if has_grants_changed {
            self.served.grant_roots(&live.granted_roots);
            if let Some(folder) = self.http.as_ref().and_then(|http| http.app.options().folder) {
                folder.grant_roots(live.granted_roots.iter().cloned());
            }
        }
        self.served.show_provenance(!live.hides_provenance);
        if has_rules_changed || has_grants_changed || has_provenance_changed {
            self.served.reload().await;
        }
    }

    async fn apply_audit(&self, before: Option<&AuditFileOptions>, by_signal: bool) {
        let (Some(file), Some(audit)) = (&self.audit, &self.settings.live.audit) else { return };
        // After SIGHUP a file that log rotation has moved is opened again.
        if !by_signal && Some(audit) == before {
            return;
        }
        let (writer, options) = (Arc::clone(file), audit.clone());
        match tokio::task::spawn_blocking(move || writer.reopen(options)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                let path = audit.path.display();
                tracing::error!("cannot write the audit file {path}, the previous one stays in use: {error}");
            }
            Err(error) => tracing::error!(%error, "opening the audit file was not completed"),
        }
    }

    /// Loads the certificate again if one of its files has changed, or after a signal.
    fn renew_certificate(&self, by_signal: bool, known: &KnownFiles, now: &KnownFiles) {
        let Some(files) = &self.settings.live.tls else { return };
        let Some(tls) = self.http.as_ref().and_then(|http| http.tls.as_ref()) else { return };
        if by_signal || !known.have_same(now, &files.certificate) || !known.have_same(now, &files.key) {
            load_certificate(tls, files);
        }
    }
}

impl Listening {
    fn apply(&self, settings: &Settings, before: &Settings, by_signal: bool) {
        let started = self.app.options();
        let mut options = live_options(settings, self.bound, started.api);
        (options.versions, options.folder) = (started.versions, started.folder);
        (options.usage, options.sources, options.webhooks) = (started.usage, started.sources, started.webhooks);
        options.sign_in = match (started.sign_in, sign_in_options(settings, self.shared_tokens.as_ref())) {
            (Some(started), Some(after)) => Some(started.replaced_by(after)),
            (_, after) => after.map(SignIn::new),
        };
        if let Some(sign_in) = &options.sign_in {
            sign_in.follow_keys();
            if by_signal {
                sign_in.fetch_keys();
            }
        }
        self.app.replace(&options);
        if let (Some(tls), Some(files)) = (&self.tls, &settings.live.tls)
            && settings.live.tls != before.live.tls
        {
            load_certificate(tls, files);
        }
    }

    /// Closes connections because the settings cannot be read.
    fn shed(&mut self, failures: u32, error: &std::io::Error) {
        if failures <= MAX_SHED_ATTEMPTS {
            tracing::warn!("the settings cannot be read, idle connections are closed: {error}");
            self.app.shed_connections();
        } else {
            self.app.set_suspended(true);
            if !std::mem::replace(&mut self.is_suspended, true) {
                tracing::error!("the settings cannot be read, all connections are closed: {error}");
            }
        }
    }
}

fn is_same_access(before: &[AccessRule], after: &[AccessRule]) -> bool {
    let parts = |rule: &AccessRule| {
        let AccessRule { prompts, folders, tags, resources, diagnostics, access, .. } = rule.clone();
        (prompts, folders, tags, resources, diagnostics, access)
    };
    before.iter().map(parts).eq(after.iter().map(parts))
}

fn warn_restart(change: &str) {
    tracing::warn!("{change}; restart to apply (the previous setting stays active)");
}

/// Loads the certificate that is in the files now. The one in use stays if they are invalid.
fn load_certificate(tls: &Tls, files: &TlsFiles) {
    match tls.reload(files) {
        Ok(()) => tracing::info!("certificate reloaded from {}", files.certificate.display()),
        Err(error) => tracing::error!("the previous certificate stays in use: {error}"),
    }
}

/// Receives SIGHUP.
#[derive(Debug)]
pub struct Hangups {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl Hangups {
    /// On a terminal the signal keeps its default effect: closing the terminal ends the program.
    #[must_use]
    pub fn listen(is_terminal: bool) -> Hangups {
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

#[cfg(test)]
mod tests {
    use promptshelf_testkit::folder::Folder;

    use super::*;
    use crate::{
        settings::{Address, ServedLibrary},
        start::Start,
    };

    // req: S-574
    #[tokio::test]
    async fn settings_that_wait_for_a_restart_are_not_in_effect() {
        let folder = Folder::library(&[("hello.md", "Hello.\n")]);
        let settings = |has_sign_in: bool, port| {
            let mut settings = Settings::default();
            settings.fixed.library = ServedLibrary::Folder(folder.path().to_owned());
            settings.fixed.address = Address { port, ..Address::default() };
            settings.live.sign_in = has_sign_in.then(Default::default);
            settings
        };
        let start = Start { over_http: true, ..Start::default() };
        let mut server = Server::start(settings(true, 0), start).await.expect("it starts");
        for (has_sign_in, port, expected) in [(true, 0, true), (false, 0, false), (true, 1, false), (true, 0, true)] {
            server.apply(settings(has_sign_in, port), false).await;
            assert_eq!(server.reloads.are_in_effect(), expected);
        }
        server.reloads.note(false);
        assert!(!server.reloads.are_in_effect());
    }
}
