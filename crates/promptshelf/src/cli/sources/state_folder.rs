//! The folder in which a server writes the state of its sources, and in which commands leave requests.
//!
//! Both are processes of the same user on one machine, so that neither a port nor a token is needed.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use promptshelf_source::{SourceSet, SourceStatus};
use serde_json::{Value, json};
use tokio::{task::spawn_blocking, time::interval};

use crate::state::{self, digest};

const PAUSE: Duration = Duration::from_millis(500);

/// The largest file of states, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The folder of state for one `server.toml`.
#[derive(Clone, Debug)]
pub(crate) struct StateFolder(PathBuf);

impl StateFolder {
    /// Returns the folder for a `server.toml`, and creates it; `None` if that is impossible.
    pub(crate) fn of(config: &Path) -> Option<StateFolder> {
        let config = config.canonicalize().ok()?;
        let folder = state::folder()?.join("sources").join(digest(&config.to_string_lossy()));
        fs::create_dir_all(&folder).ok()?;
        Some(StateFolder(folder))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the states that a running server has written; `None` without a running server.
    pub(crate) fn served(&self) -> Option<Value> {
        match self.lock() {
            Err(TryLockError::WouldBlock) => {}
            _ => return None,
        }
        let path = self.path("status.json");
        fs::metadata(&path).ok().filter(|metadata| metadata.len() <= MAX_BYTES)?;
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Asks the running server to read a source again.
    pub(crate) fn request_refresh(&self, name: &str) -> io::Result<()> {
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
    pub(crate) async fn serve(self, set: SourceSet) {
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
pub(crate) fn to_json(statuses: &[SourceStatus]) -> Value {
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
        })
    };
    json!({ "sources": statuses.iter().map(source).collect::<Vec<_>>() })
}
