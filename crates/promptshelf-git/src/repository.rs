//! The bare repository on disk with the fetched commits of one address, and the record next to it.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use promptshelf_core::Timestamp;
use promptshelf_source::create_private_folder;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{
    address::{GitAddress, is_commit},
    call::Call,
    error::GitError,
    options::GitOptions,
    program::Program,
};

const MAX_SERVED: usize = 10;

/// The time to wait for another process that uses the repository, in attempts of 100 ms.
const MAX_ATTEMPTS: usize = 600;

const MAX_NAMES: usize = 10;

/// The common options of a fetch: one commit without its history, and nothing besides.
const FETCH: [&str; 7] = [
    "--quiet",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-recurse-submodules",
    "--no-auto-maintenance",
    "--refmap=",
    "--no-show-forced-updates",
];

#[derive(Clone, Debug)]
pub(crate) struct Repository {
    program: Program,
    address: GitAddress,
    cache: PathBuf,
    folder: PathBuf,
    path: PathBuf,
    transfer_bytes: u64,
}

/// The state that outlives a run: written by this process, and by others that pin the same address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The address, for people.
    #[serde(default)]
    address: String,
    /// The commit to stay at.
    #[serde(default)]
    pub(crate) pin: Option<String>,
    /// The commit that was served last.
    #[serde(default)]
    pub(crate) good: Option<String>,
    /// The commits of the reference that were served, the newest first.
    #[serde(default)]
    pub(crate) served: Vec<String>,
    /// The times at which these commits were fetched, in seconds since 1970: their signatures are judged by them.
    #[serde(default)]
    fetched: BTreeMap<String, i64>,
}

impl Record {
    pub(crate) fn add(&mut self, commit: &str) {
        self.good = Some(commit.to_owned());
        if self.pin.as_deref() != Some(commit) {
            self.served.retain(|served| served != commit);
            self.served.insert(0, commit.to_owned());
            self.served.truncate(MAX_SERVED);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        self.fetched.entry(commit.to_owned()).or_insert(i64::try_from(now).unwrap_or(i64::MAX));
        let (good, pin, served) = (&self.good, &self.pin, &self.served);
        self.fetched.retain(|commit, _| {
            served.contains(commit) || good.as_ref() == Some(commit) || pin.as_ref() == Some(commit)
        });
    }

    pub(crate) fn fetched(&self, commit: &str) -> Option<Timestamp> {
        self.fetched.get(commit).and_then(|seconds| Timestamp::from_unix(*seconds, 0).ok())
    }

    pub(crate) fn before(&self, commit: &str) -> Option<&str> {
        let place = self.served.iter().position(|served| served == commit)?;
        self.served.get(place + 1).map(String::as_str)
    }
}

#[derive(Debug)]
pub(crate) struct Locked(#[expect(dead_code, reason = "unlocked when it is closed")] File);

impl Repository {
    pub(crate) fn new(options: &GitOptions) -> Repository {
        let address = options.address.clone();
        let folder = options.cache.join(digest(&address.to_string()));
        Repository {
            program: Program::new(options),
            cache: options.cache.clone(),
            path: folder.join("repository.git"),
            folder,
            address,
            transfer_bytes: options.limits.transfer_bytes,
        }
    }

    /// Waits until no other process uses the repository.
    pub(crate) async fn lock(&self) -> Result<Locked, GitError> {
        create_private_folder(&self.folder).map_err(|error| cache(&self.folder, error))?;
        let path = self.folder.join("lock");
        let file = File::create(&path).map_err(|error| cache(&path, error))?;
        for _ in 0..MAX_ATTEMPTS {
            match file.try_lock() {
                Ok(()) => return Ok(Locked(file)),
                Err(fs::TryLockError::WouldBlock) => tokio::time::sleep(Duration::from_millis(100)).await,
                Err(fs::TryLockError::Error(error)) => return Err(cache(&path, error)),
            }
        }
        Err(cache(&path, io::Error::new(io::ErrorKind::WouldBlock, "another process has locked it for a minute")))
    }

    /// Reads the record; an absent or damaged one is empty.
    pub(crate) fn record(&self) -> Record {
        let text = fs::read(self.folder.join("record.json")).unwrap_or_default();
        let record: Record = serde_json::from_slice(&text).unwrap_or_default();
        let is_valid = |commit: &String| is_commit(commit);
        Record {
            address: self.address.to_string(),
            pin: record.pin.filter(is_valid),
            good: record.good.filter(is_valid),
            served: record.served.into_iter().filter(is_valid).take(MAX_SERVED).collect(),
            fetched: record.fetched,
        }
    }

    pub(crate) fn write(&self, record: &Record) -> Result<(), GitError> {
        let (path, next) = (self.folder.join("record.json"), self.folder.join("record.next"));
        let text = serde_json::to_vec_pretty(record).map_err(|error| cache(&path, error.into()))?;
        fs::write(&next, text).and_then(|()| fs::rename(&next, &path)).map_err(|error| cache(&path, error))
    }

    pub(crate) async fn resolve(&self) -> Result<(String, String), GitError> {
        let name = self.address.reference();
        let names = match name {
            None => vec!["HEAD".to_owned()],
            Some(name) if name.starts_with("refs/") || name == "HEAD" => vec![name.to_owned()],
            // The branch wins, as in `git clone --branch`.
            Some(name) => vec![format!("refs/heads/{name}"), format!("refs/tags/{name}")],
        };
        let peeled = names.iter().map(|name| format!("{name}^{{}}"));
        let patterns: Vec<String> = names.iter().cloned().chain(peeled).collect();
        let listed = self.list_remote(&[], &patterns).await?;
        // A pattern also fits the end of longer names.
        let find = |name: &str| listed.iter().find(|(_, found)| found == name).map(|(commit, _)| commit.clone());
        for name in &names {
            if let Some(commit) = find(&format!("{name}^{{}}")).or_else(|| find(name)) {
                return Ok((commit, name.clone()));
            }
        }
        Err(GitError::NotFound { what: self.missing(name).await? })
    }

    async fn list_remote(&self, options: &[&str], patterns: &[String]) -> Result<Vec<(String, String)>, GitError> {
        create_private_folder(&self.cache).map_err(|error| cache(&self.cache, error))?;
        let call = self.program.outside(&self.cache, "ls-remote").arguments(["--quiet"]).arguments(options);
        let call = call.arguments(["--", self.address.repository()]).arguments(patterns);
        let output = self.program.sign_in(call)?.run().await?;
        let text = String::from_utf8_lossy(&output);
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        Ok(lines
            .filter(|(commit, _)| is_commit(commit))
            .map(|(commit, name)| (commit.to_owned(), name.to_owned()))
            .collect())
    }

    async fn missing(&self, name: Option<&str>) -> Result<String, GitError> {
        let all = self.list_remote(&["--heads", "--tags"], &[]).await?;
        let short = |name: &str| {
            let name = name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/tags/")).unwrap_or(name);
            name.chars().filter(|c| !c.is_control()).take(100).collect::<String>()
        };
        let names: Vec<String> =
            all.iter().filter(|(_, name)| !name.ends_with("^{}")).map(|(_, name)| short(name)).collect();
        let known = match names.as_slice() {
            [] => return Ok("commit: push one first".to_owned()),
            names if names.len() > MAX_NAMES => format!("{} and others", names[..MAX_NAMES].join(", ")),
            names => names.join(", "),
        };
        Ok(match name {
            None => format!("default branch: name one of {known} after `#`"),
            Some(name) if name.len() >= 7 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                format!("branch or tag {name:?}, and a commit needs all of its 40 digits; it has {known}")
            }
            Some(name) => format!("branch or tag {name:?}; it has {known}"),
        })
    }

    /// Fetches the commit of a reference, or a commit by its id, and returns its id.
    pub(crate) async fn fetch(&self, _lock: &Locked, commit: &str, name: Option<&str>) -> Result<String, GitError> {
        self.create(commit.len())?;
        let target = match name {
            Some(name) => format!("+{name}:{NEXT}"),
            None => commit.to_owned(),
        };
        let fetch = async |options: &[&str]| {
            let call = self.program.inside(&self.path, "fetch").arguments(FETCH).arguments(options);
            self.bounded(call.arguments(["--", "origin", &target]))?.run().await
        };
        let fetched = fetch(&["--depth=1", "--filter=blob:none"]).await;
        match fetched {
            // Servers over the dumb HTTP protocol, and those that permit no filters.
            Err(GitError::Remote { reason }) if reason.contains("shallow") || reason.contains("filter") => {
                fetch(&[]).await?
            }
            fetched => fetched?,
        };
        if name.is_none() {
            return Ok(commit.to_owned());
        }
        let call = self.program.inside(&self.path, "rev-parse");
        let output = call.arguments(["--verify", "--quiet", &format!("{NEXT}^{{commit}}")]).run().await;
        let found = output.ok().map(|output| String::from_utf8_lossy(&output).trim().to_owned());
        found.filter(|commit| is_commit(commit)).ok_or_else(|| GitError::NotFound {
            what: format!("commit at {:?}: it points to another kind of object", self.address.reference()),
        })
    }

    pub(crate) async fn fetch_objects(&self, _lock: &Locked, ids: &[&str]) -> Result<(), GitError> {
        let call = self.program.inside(&self.path, "fetch").arguments(FETCH);
        let call = call.arguments(["--filter=blob:none", "--stdin", "--", "origin"]).input(ids.join("\n") + "\n");
        // As git itself fetches the missing objects of a partial clone: no commits are compared.
        self.bounded(call.configured("fetch.negotiationAlgorithm", "noop"))?.run().await.map(drop)
    }

    /// Fetches the history of a commit, without files.
    pub(crate) async fn deepen(&self, _lock: &Locked, commit: &str) -> Result<(), GitError> {
        let call = self.program.inside(&self.path, "fetch").arguments(FETCH);
        let call = call.arguments([&format!("--depth={}", MAX_HISTORY + 1), "--filter=tree:0", "--", "origin", commit]);
        match self.bounded(call)?.run().await {
            // Such servers send the whole history in the first place.
            Err(GitError::Remote { reason }) if reason.contains("shallow") || reason.contains("filter") => Ok(()),
            fetched => fetched.map(drop),
        }
    }

    /// Returns the ids of a commit and those before it, the newest first, as far as they are on disk.
    pub(crate) async fn history(&self, commit: &str) -> Result<Vec<String>, GitError> {
        let call = self.reading("rev-list").arguments(["--topo-order", &format!("--max-count={}", MAX_HISTORY + 1)]);
        let output = call.arguments(["--end-of-options", commit, "--"]).run().await?;
        Ok(String::from_utf8_lossy(&output).lines().filter(|line| is_commit(line)).map(str::to_owned).collect())
    }

    pub(crate) async fn fetch_tree(&self, lock: &Locked, commit: &str) -> Result<(), GitError> {
        let output =
            self.reading("log").arguments(["-1", "--format=%T", "--end-of-options", commit, "--"]).run().await?;
        let tree = String::from_utf8_lossy(&output).trim().to_owned();
        self.fetch_objects(lock, &[&tree]).await
    }

    pub(crate) fn verification(
        &self,
        _lock: &Locked,
        signers: &[u8],
        signature: &[u8],
    ) -> Result<Verification<'_>, GitError> {
        let write = |name: &str, content: &[u8]| {
            let path = self.folder.join(name);
            fs::write(&path, content).map_err(|error| cache(&path, error))
        };
        write(SIGNERS, signers)?;
        write(SIGNATURE, signature)?;
        Ok(Verification(self))
    }

    fn bounded(&self, call: Call) -> Result<Call, GitError> {
        Ok(self.program.sign_in(call)?.growth_limit(self.path.join("objects/pack"), self.transfer_bytes))
    }

    /// Prepares a call that reads objects, without the network.
    pub(crate) fn reading(&self, name: &'static str) -> Call {
        self.program.inside(&self.path, name).offline()
    }

    pub(crate) async fn has(&self, object: &str) -> bool {
        self.path.join("config").is_file() && self.reading("cat-file").arguments(["-e", object]).run().await.is_ok()
    }

    /// Keeps a commit on disk, and removes those that are no longer needed.
    pub(crate) async fn keep(&self, _lock: &Locked, record: &Record) -> Result<(), GitError> {
        let needed: Vec<&str> =
            record.served.iter().chain(&record.good).chain(&record.pin).map(String::as_str).collect();
        let listed = self.reading("for-each-ref").arguments(["--format=%(objectname)", KEPT]).run().await?;
        let listed = String::from_utf8_lossy(&listed);
        let mut changes = String::new();
        for commit in listed.lines().filter(|commit| is_commit(commit) && !needed.contains(commit)) {
            changes.push_str(&format!("delete {KEPT}{commit}\n"));
        }
        if let Some(commit) = &record.good {
            changes.push_str(&format!("update {KEPT}{commit} {commit}\n"));
        }
        self.reading("update-ref").arguments(["--stdin"]).input(changes).run().await?;
        // Without effect until there are many files.
        self.reading("gc").arguments(["--auto", "--quiet"]).run().await.map(drop)
    }

    /// Creates the repository, unless it exists with ids of the same length. Removes what interrupted calls left.
    fn create(&self, id_len: usize) -> Result<(), GitError> {
        let format = if id_len == 64 { "sha256" } else { "sha1" };
        let url = quoted(self.address.repository());
        // The promisor is what permits that blobs are missing.
        let config = format!(
            "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tpartialClone = origin\n\tobjectFormat = \
             {format}\n[remote \"origin\"]\n\turl = {url}\n\tpromisor = true\n\tpartialclonefilter = blob:none\n"
        );
        let path = self.path.join("config");
        let failed = |error| cache(&self.path, error);
        if fs::read_to_string(&path).is_ok_and(|found| found == config) {
            return self.remove_leftovers().map_err(failed);
        }
        if self.path.exists() {
            fs::remove_dir_all(&self.path).map_err(failed)?;
        }
        let create = || {
            create_private_folder(&self.path.join("objects/pack"))?;
            create_private_folder(&self.path.join("refs"))?;
            fs::write(self.path.join("HEAD"), "ref: refs/heads/none\n")?;
            // Last: without it, the repository counts as absent.
            fs::write(&path, &config)
        };
        create().map_err(failed)
    }

    pub(crate) fn remove_partial_packs(&self, _lock: &Locked) {
        if let Err(error) = self.remove_leftovers() {
            tracing::debug!("leftovers of {} were not removed: {error}", self.address);
        }
    }

    fn remove_leftovers(&self) -> io::Result<()> {
        for folder in [self.path.clone(), self.path.join("objects/pack")] {
            for file in fs::read_dir(&folder)?.flatten() {
                let name = file.file_name();
                let name = name.to_string_lossy();
                if name.starts_with("tmp_") || name.ends_with(".lock") {
                    fs::remove_file(file.path())?;
                }
            }
        }
        Ok(())
    }
}

pub(crate) struct Verification<'r>(&'r Repository);

impl Verification<'_> {
    /// Runs `ssh-keygen -Y ACTION`, and returns its output; `None` if it refuses the signature.
    pub(crate) async fn run(
        &self,
        action: &str,
        time: Option<&str>,
        arguments: &[&str],
        payload: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let call = self.0.program.ssh_keygen(&self.0.folder).arguments(["-Y", action, "-s", SIGNATURE]);
        let call = if action == "check-novalidate" { call } else { call.arguments(["-f", SIGNERS]) };
        match call.arguments(time).arguments(arguments).input(payload).run().await {
            Ok(output) => Ok(Some(output)),
            Err(GitError::Program { source }) => Err(GitError::InvalidOptions {
                reason: format!("`signers` needs the program `ssh-keygen`, and it cannot be started: {source}"),
            }),
            Err(error @ GitError::TimedOut { .. }) => Err(error),
            Err(_) => Ok(None),
        }
    }
}

const SIGNERS: &str = "signers";
const SIGNATURE: &str = "signature";

/// The number of commits that are searched for one with a valid signature, and for the served one.
pub(crate) const MAX_HISTORY: usize = 1_000;

const NEXT: &str = "refs/promptshelf/next";

const KEPT: &str = "refs/promptshelf/kept/";

fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn cache(path: &Path, error: io::Error) -> GitError {
    GitError::Cache { path: path.to_owned(), source: Arc::new(error) }
}
