//! Remembers servers of revisions before 2026-07-28, so that a connection begins with `initialize`. Some of these
//! servers reject `server/discover` slowly, or end when they receive it.

use std::{fs, path::PathBuf, time::Duration};

use promptshelf_client::Endpoint;

use crate::state::{self, digest};

/// How long an observation is valid: servers are updated.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// An empty file per server, whose modification time is the time of the observation.
pub(crate) struct LegacyServers(Option<PathBuf>);

impl LegacyServers {
    pub(crate) fn open() -> LegacyServers {
        LegacyServers(state::folder().map(|folder| folder.join("older")))
    }

    /// Creates a list that remembers nothing.
    pub(crate) fn disabled() -> LegacyServers {
        LegacyServers(None)
    }

    fn file(&self, endpoint: &Endpoint) -> Option<PathBuf> {
        self.0.as_ref().map(|folder| folder.join(digest(&endpoint.to_string())))
    }

    pub(crate) fn contains(&self, endpoint: &Endpoint) -> bool {
        let modified = self.file(endpoint).and_then(|file| fs::metadata(file).ok()?.modified().ok());
        modified.and_then(|modified| modified.elapsed().ok()).is_some_and(|age| age < LIFETIME)
    }

    /// Records an observation. A failure to write is ignored: the next connection observes it again.
    pub(crate) fn record(&self, endpoint: &Endpoint, is_legacy: bool) {
        let Some(file) = self.file(endpoint) else { return };
        match is_legacy {
            true if self.contains(endpoint) => {}
            true => drop(state::write(&file, "")),
            false => drop(fs::remove_file(file)),
        }
    }
}
