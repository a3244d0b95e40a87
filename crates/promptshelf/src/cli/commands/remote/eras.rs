//! Which servers were found to be of the older era, so that they are not asked
//! for the newer one each time: some are slow to refuse, or end at it.

use std::{fs, path::PathBuf, time::Duration};

use promptshelf_client::Target;

use crate::commands::state::{self, digest};

/// How long it is remembered. Servers become newer.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// An empty file for each such server; how old it is says when that was found.
pub(crate) struct Eras(Option<PathBuf>);

impl Eras {
    pub(crate) fn open() -> Eras {
        Eras(state::folder().map(|folder| folder.join("older")))
    }

    /// Remembers nothing.
    pub(crate) fn forgotten() -> Eras {
        Eras(None)
    }

    fn file(&self, target: &Target) -> Option<PathBuf> {
        // The own server is what this program is.
        let is_foreign = !matches!(target, Target::Folder(_));
        self.0.as_ref().filter(|_| is_foreign).map(|folder| folder.join(digest(&target.to_string())))
    }

    pub(crate) fn is_older(&self, target: &Target) -> bool {
        let found = self.file(target).and_then(|file| fs::metadata(file).ok()?.modified().ok());
        found.and_then(|found| found.elapsed().ok()).is_some_and(|age| age < KEPT)
    }

    /// Takes note of what a server was found to be. Whoever cannot write asks again.
    pub(crate) fn note(&self, target: &Target, is_older: bool) {
        let Some(file) = self.file(target) else { return };
        match is_older {
            true if self.is_older(target) => {}
            true => drop(state::write(&file, "")),
            false => drop(fs::remove_file(file)),
        }
    }
}
