//! Settings are read again at SIGHUP, and when a file that holds some has
//! changed: `promptshelf.toml`, the tokens, the certificate and its key.
//!
//! What cannot be understood leaves everything as it is, and is said. What a
//! running server cannot change is said as well.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use promptshelf_server::{
    Library,
    http::{
        App,
        auth::SignIn,
        tls::{Tls, TlsFiles},
    },
};
use promptshelf_service::{AuditFile, AuditFileOptions};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::{listen, supervisor};
use crate::{
    args::ServeArguments,
    exit::Failure,
    settings::{self, Address, HttpConfig, ManifestFile, observe::Traces},
};

/// Where figures are served and traces are sent to.
pub(super) type Observed = (Option<Address>, Option<Traces>);

/// Everything that can be said of serving.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) config: HttpConfig,
    pub(super) audit: Option<AuditFileOptions>,
    pub(super) observed: Observed,
}

impl Said {
    /// Reads every place once.
    ///
    /// # Errors
    ///
    /// The first value that cannot be, and where it stands.
    pub(super) fn read(
        arguments: &ServeArguments,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Result<Said, Failure> {
        let file = ManifestFile::read(arguments.library.folder());
        let manifest = file.parse();
        let config = HttpConfig::read(&manifest, arguments.http.as_deref(), &arguments.over_http, environment)?;
        let audit = settings::audit::read(&manifest, arguments.audit.as_deref(), environment)?;
        let metrics = settings::observe::metrics(&manifest, arguments.over_http.metrics.as_deref(), environment)?;
        let traces = settings::observe::traces(&manifest, arguments.traces.as_deref(), environment)?;
        Ok(Said { config, audit, observed: (metrics, traces) })
    }

    /// Reads everything once more, behind a look at the files in which it
    /// stands: what is read is then not older than what is known of them.
    ///
    /// # Errors
    ///
    /// The first value that cannot be, and where it stands.
    pub(super) fn again(
        &self,
        arguments: &ServeArguments,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Result<(Said, Stamps), Failure> {
        let known = stamps(&self.config, arguments.library.folder());
        Ok((Said::read(arguments, environment)?, known))
    }
}

/// How often files are looked at, where nothing else tells of a change.
const PERIOD: Duration = Duration::from_secs(2);

/// What a server has been started with, and what of it can change.
pub(super) struct Settings<E> {
    pub(super) arguments: ServeArguments,
    pub(super) environment: E,
    pub(super) bound: std::net::SocketAddr,
    pub(super) config: HttpConfig,
    pub(super) audit: Option<(Arc<AuditFile>, AuditFileOptions)>,
    /// Where figures are served and traces are sent to.
    pub(super) observed: Observed,
    pub(super) library: Library,
    pub(super) app: App,
    pub(super) tls: Option<Tls>,
}

/// How long files have to stay as they are before they are read.
const SETTLED: Duration = Duration::from_millis(50);
const MOST_LOOKS: usize = 20;

/// What tells one version of a file from another; nothing where it cannot be read.
type Stamp = Option<u64>;

/// The files are few and small, and times are too coarse: two edits can have the same.
fn stamp(path: &Path) -> Stamp {
    let mut hasher = DefaultHasher::new();
    fs::read(path).ok()?.hash(&mut hasher);
    Some(hasher.finish())
}

impl<E: Fn(&str) -> Option<String>> Settings<E> {
    /// Follows the files and the signals. Never returns. `known` is what the
    /// files were like before the settings were read.
    pub(super) async fn follow(mut self, mut hangups: Hangups, mut known: Stamps) {
        let mut reports = self.library.loader().reports();
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let asked = tokio::select! {
                () = hangups.next() => true,
                _ = ticks.tick() => false,
                // The library has been looked at, so that its manifest may be another one.
                Ok(()) = reports.changed() => false,
            };
            let look = || stamps(&self.config, self.arguments.library.folder());
            let mut now = look();
            if !asked && now == known {
                continue;
            }
            // Somebody may be in the middle of writing, but not for ever.
            for _ in 0..MOST_LOOKS {
                sleep(SETTLED).await;
                let later = look();
                if std::mem::replace(&mut now, later.clone()) == later {
                    break;
                }
            }
            supervisor::reloading();
            self.reload(asked, &known, &now).await;
            supervisor::ready();
            // Other files may hold settings from now on; those are read once more.
            let files = self.config.files(self.arguments.library.folder());
            known = files.into_iter().map(|path| seen(&now, path)).collect();
        }
    }

    async fn reload(&mut self, asked: bool, known: &Stamps, now: &Stamps) {
        if asked {
            tracing::info!("reading everything again, as SIGHUP asks for");
            // Why it may fail stands in the log already.
            self.library.loader().reload().await.ok();
        }
        match self.read() {
            Ok(Said { config, audit, observed }) => {
                if observed != self.observed {
                    needs_restart("[metrics] or [traces] has changed");
                }
                self.take(config, audit, asked).await;
            }
            Err(failure) => tracing::error!("the settings stay as they were: {failure}"),
        }
        let is_other = |path: &PathBuf| seen(known, path.clone()).1 != seen(now, path.clone()).1;
        if let (Some(tls), Some(files)) = (&self.tls, &self.config.tls)
            && (asked || [&files.certificate, &files.key].into_iter().any(is_other))
        {
            renew(tls, files);
        }
    }

    fn read(&self) -> Result<Said, Failure> {
        settings::check_toml(self.arguments.library.folder(), self.config.has_manifest)?;
        Said::read(&self.arguments, &self.environment)
    }

    /// Takes settings that have been understood, as far as a running server can.
    async fn take(&mut self, mut config: HttpConfig, audit: Option<AuditFileOptions>, asked: bool) {
        let before = &self.config;
        if config.address != before.address || config.allow_remote != before.allow_remote {
            needs_restart("[http] has another address, or lets others connect");
            (config.address, config.allow_remote) = (before.address.clone(), before.allow_remote);
        }
        if config.sign_in.is_some() != before.sign_in.is_some() {
            needs_restart("[auth] has come or gone");
            config.sign_in.clone_from(&before.sign_in);
        }
        if config.tls.is_some() != before.tls.is_some() {
            needs_restart("[tls] has come or gone");
            config.tls.clone_from(&before.tls);
        }
        if audit.is_some() != self.audit.is_some() {
            needs_restart("[audit] has come or gone");
        }
        if let (Some((file, options)), Some(audit)) = (&mut self.audit, audit)
            && (asked || audit != *options)
        {
            let (writer, path) = (Arc::clone(file), audit.clone());
            match tokio::task::spawn_blocking(move || writer.reopen(path)).await {
                Ok(Ok(())) => *options = audit,
                Ok(Err(error)) => {
                    tracing::error!(
                        "the audit goes on where it was: {} cannot be written: {error}",
                        audit.path.display()
                    );
                }
                Err(error) => tracing::error!(%error, "opening the audit was not finished"),
            }
        }
        self.library.service().set_limits(config.limits_in_force().as_ref());
        let mut options = config.options.clone();
        options.mcp.allowed_hosts = listen::hosts(&config, self.bound);
        options.sign_in = match (self.app.options().sign_in, &config.sign_in) {
            (Some(before), Some(after)) => Some(before.replaced_by(after.clone())),
            (_, after) => after.clone().map(SignIn::new),
        };
        self.app.replace(&options);
        if let (Some(tls), Some(files)) = (&self.tls, &config.tls)
            && config.tls != before.tls
        {
            renew(tls, files);
        }
        self.config = config;
        tracing::info!("the settings have been read again");
    }
}

fn needs_restart(what: &str) {
    tracing::warn!("{what}: this takes a restart, and stays as it was until then");
}

/// Takes the certificate that stands in files now, if it is one.
fn renew(tls: &Tls, files: &TlsFiles) {
    match tls.reload(files) {
        Ok(()) => tracing::info!("the certificate in {} is in use now", files.certificate.display()),
        Err(error) => tracing::error!("the certificate in use stays: {error}"),
    }
}

/// Files with what they were like.
pub(super) type Stamps = Vec<(PathBuf, Stamp)>;

/// The files that hold settings, as they are now.
fn stamps(config: &HttpConfig, folder: &Path) -> Stamps {
    config.files(folder).into_iter().map(|path| (path.clone(), stamp(&path))).collect()
}

/// A file with what it was like, which for one that was not looked at is nothing.
fn seen(stamps: &Stamps, path: PathBuf) -> (PathBuf, Stamp) {
    let found = stamps.iter().find(|(known, _)| *known == path).and_then(|(_, stamp)| *stamp);
    (path, found)
}

/// Signals that ask to read settings again. Listens from the moment it is made.
pub(super) struct Hangups {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl Hangups {
    /// Whoever sits at a terminal and closes it wants to end the program, as ever.
    pub(super) fn listen(is_terminal: bool) -> Hangups {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let listen = || signal(SignalKind::hangup());
            let signal = if is_terminal { None } else { Some(listen()) };
            let signal = signal.and_then(|signal| {
                signal.inspect_err(|error| tracing::warn!(%error, "SIGHUP cannot be listened for")).ok()
            });
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
