//! Copies of channels on disk, so that a restart can serve without the database.
//!
//! One folder for all channels of a store: contents by digest, and a manifest for each channel. Several processes can
//! share it; a lock file orders their writes. Everything is verified when it is read, so a file that a crash has cut
//! off counts as absent.

use std::{
    collections::{BTreeMap, HashSet},
    fmt, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use promptshelf_source::{MemoryFile, check_private_folder, create_private_folder};
use promptshelf_store::{ChannelName, Digest, Head, StoreUrl};
use serde::{Deserialize, Serialize};

use super::{copy::ChannelCopy, versions::PromptVersion};

/// The version of the files. Others are ignored.
const FORMAT: u32 = 1;

const MANIFEST_PREFIX: &str = "channel-";
const BLOBS: &str = "blobs";

#[derive(Clone, Debug)]
pub(super) struct DiskCache {
    folder: PathBuf,
    /// The URL without its password: a copy of another store is never served.
    store: String,
    channel: ChannelName,
}

#[derive(Serialize, Deserialize)]
struct Manifest {
    format: u32,
    store: String,
    channel: ChannelName,
    head: Head,
    files: BTreeMap<String, Digest>,
    versions: Vec<PromptVersion>,
}

/// Why a copy on disk cannot be used.
#[derive(Debug)]
pub(super) enum CacheError {
    Io(PathBuf, io::Error),
    /// The file does not fit its digest, or is not a manifest.
    Corrupt(PathBuf),
    /// The folder has the copy of this store, and not of that one.
    OtherStore(PathBuf, String, String),
}

impl fmt::Display for CacheError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CacheError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            CacheError::Corrupt(path) => write!(f, "{} is corrupt", path.display()),
            CacheError::OtherStore(path, found, expected) => write!(
                f,
                "the folder {} has that of the store {found}, and not of {expected}, which replaces it: give each store a \
                 folder",
                path.display()
            ),
        }
    }
}

impl DiskCache {
    pub(super) fn new(folder: &Path, store: &StoreUrl, channel: &ChannelName) -> DiskCache {
        DiskCache { folder: folder.to_owned(), store: store.to_string(), channel: channel.clone() }
    }

    /// Reads the copy; `None` if the folder has no copy of this channel.
    pub(super) fn read(&self) -> Result<Option<ChannelCopy>, CacheError> {
        let path = self.manifest_path();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(CacheError::Io(path, error)),
        };
        check_private_folder(&self.folder)
            .and_then(|()| check_private_folder(&self.folder.join(BLOBS)))
            .map_err(|error| CacheError::Io(self.folder.clone(), error))?;
        let manifest = parse(&text).ok_or(CacheError::Corrupt(path))?;
        if (manifest.format, &manifest.channel) != (FORMAT, &self.channel) {
            return Ok(None);
        }
        if manifest.store != self.store {
            return Err(CacheError::OtherStore(self.folder.clone(), manifest.store, self.store.clone()));
        }
        let mut contents: BTreeMap<Digest, Arc<[u8]>> = BTreeMap::new();
        let mut files = Vec::with_capacity(manifest.files.len());
        for (path, digest) in &manifest.files {
            let bytes = match contents.get(digest) {
                Some(bytes) => Arc::clone(bytes),
                None => self.read_blob(digest)?,
            };
            contents.insert(*digest, Arc::clone(&bytes));
            files.push((path.as_str(), MemoryFile::new(bytes)));
        }
        let tree = files.into_iter().collect();
        let Manifest { head, files: digests, versions, .. } = manifest;
        Ok(Some(ChannelCopy { head, tree, digests, versions }))
    }

    fn read_blob(&self, digest: &Digest) -> Result<Arc<[u8]>, CacheError> {
        let path = self.blob_path(digest);
        let bytes = fs::read(&path).map_err(|error| CacheError::Io(path.clone(), error))?;
        if Digest::of(&bytes) != *digest {
            // Otherwise the next write would take it for present.
            fs::remove_file(&path).ok();
            return Err(CacheError::Corrupt(path));
        }
        Ok(bytes.into())
    }

    /// Replaces the copy: contents first, then the manifest, then contents that no manifest refers to are removed.
    pub(super) fn write(&self, copy: &ChannelCopy) -> Result<(), CacheError> {
        create_private_folder(&self.folder)
            .and_then(|()| create_private_folder(&self.folder.join(BLOBS)))
            .map_err(|error| CacheError::Io(self.folder.clone(), error))?;
        let lock = self.folder.join("lock");
        let held = fs::File::create(&lock).and_then(|file| file.lock().map(|()| file));
        let _held = held.map_err(|error| CacheError::Io(lock, error))?;
        for (path, digest) in &copy.digests {
            let Some(file) = copy.tree.get(path) else { continue };
            let path = self.blob_path(digest);
            let is_present = fs::metadata(&path).is_ok_and(|found| found.len() == file.bytes().len() as u64);
            if !is_present {
                self.replace(&path, file.bytes()).map_err(|error| CacheError::Io(path, error))?;
            }
        }
        let manifest = Manifest {
            format: FORMAT,
            store: self.store.clone(),
            channel: self.channel.clone(),
            head: copy.head.clone(),
            files: copy.digests.clone(),
            versions: copy.versions.clone(),
        };
        let path = self.manifest_path();
        let text = serde_json::to_string(&manifest).map_err(|error| CacheError::Io(path.clone(), error.into()))?;
        let text = format!("{}\n{text}", Digest::of(text.as_bytes()));
        self.replace(&path, text.as_bytes()).map_err(|error| CacheError::Io(path, error))?;
        self.remove_unused().map_err(|error| CacheError::Io(self.folder.clone(), error))
    }

    /// Removes the contents that no manifest refers to. An unreadable manifest could refer to any.
    fn remove_unused(&self) -> io::Result<()> {
        let mut used = HashSet::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if !entry.file_name().to_string_lossy().starts_with(MANIFEST_PREFIX) {
                continue;
            }
            let Some(manifest) = parse(&fs::read(entry.path())?) else { return Ok(()) };
            used.extend(manifest.files.into_values());
        }
        for entry in fs::read_dir(self.folder.join(BLOBS))? {
            let entry = entry?;
            let is_used =
                entry.file_name().to_str().and_then(Digest::parse).is_some_and(|digest| used.contains(&digest));
            if !is_used {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Replaces a file atomically. Only the process with the lock uses the temporary file.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let temporary = self.folder.join("next");
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(temporary, path)
    }

    fn manifest_path(&self) -> PathBuf {
        self.folder.join(format!("{MANIFEST_PREFIX}{}", self.channel))
    }

    fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(BLOBS).join(digest.to_string())
    }
}

/// Parses a manifest: the digest of the second line, and JSON.
fn parse(text: &[u8]) -> Option<Manifest> {
    let (digest, json) = std::str::from_utf8(text).ok()?.split_once('\n')?;
    (Digest::parse(digest)? == Digest::of(json.as_bytes())).then(|| serde_json::from_str(json).ok())?
}

#[cfg(test)]
mod tests {
    use promptshelf_store::{Delta, FileEntry, StoreError};

    use super::{super::revision_of_copy, *};

    fn copy(revision: u64, files: &[(&str, &str)]) -> ChannelCopy {
        let entry = |(path, text): &(&str, &str)| FileEntry {
            path: (*path).to_owned(),
            digest: Digest::of(text.as_bytes()),
            size: text.len() as u64,
        };
        let head = serde_json::from_value(serde_json::json!({ "epoch": "e", "revision": revision })).expect("a head");
        let delta = Delta {
            head,
            tree: None,
            is_complete: true,
            files: files.iter().map(entry).collect(),
            removed: Vec::new(),
        };
        let contents = files.iter().map(|(_, text)| (Digest::of(text.as_bytes()), Arc::from(text.as_bytes())));
        ChannelCopy::apply(None, delta, contents).expect("a copy")
    }

    fn cache(folder: &Path, store: &str, channel: &str) -> DiskCache {
        DiskCache::new(folder, &store.parse().expect("a URL"), &channel.parse().expect("a name"))
    }

    fn blobs(folder: &Path) -> usize {
        fs::read_dir(folder.join(BLOBS)).expect("a folder").count()
    }

    #[test]
    fn copy_returns_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("new/cache");
        let production = cache(&folder, "sqlite:team.db", "production");
        assert!(production.read().expect("no manifest").is_none());
        let first = copy(3, &[("a.md", "same"), ("b/c.md", "same"), ("../d.md", "other"), ("empty", "")]);
        production.write(&first).expect("written");
        let read = production.read().expect("readable").expect("a copy");
        assert_eq!((read.head, read.tree, read.digests), (first.head, first.tree, first.digests));
        assert_eq!(blobs(&folder), 3, "equal contents are stored once, and paths are not used as paths");
        assert!(cache(&folder, "sqlite:team.db", "staging").read().expect("no manifest").is_none());
    }

    #[tokio::test]
    async fn copy_stands_in_for_a_store_that_is_away_and_for_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        cache(folder.path(), "sqlite:team.db", "production").write(&copy(3, &[("a.md", "text")])).expect("written");
        let (reason, source) = (String::new(), None);
        let away = || Some(StoreError::Unreachable { reason: reason.clone(), source: source.clone() });
        for (store, channel, error, expected) in [
            ("sqlite:team.db", "production", None, Some(3)),
            ("sqlite:team.db", "production", away(), Some(3)),
            ("sqlite:team.db", "production", Some(StoreError::State { reason: reason.clone() }), None),
            ("sqlite:team.db", "next", away(), None),
            ("sqlite:other.db", "production", away(), None),
        ] {
            let (url, channel) = (store.parse().expect("a URL"), channel.parse().expect("a name"));
            assert_eq!(revision_of_copy(folder.path(), &url, &channel, error).await, expected, "{store} {channel}");
        }
    }

    // req: S-580
    #[test]
    fn copy_of_another_store_is_not_served_and_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let [team, other] =
            ["sqlite:team.db", "sqlite:other.db"].map(|store| cache(folder.path(), store, "production"));
        for (own, theirs) in [(&team, &other), (&other, &team)] {
            own.write(&copy(1, &[("a.md", "text")])).expect("written");
            assert!(own.read().expect("readable").is_some());
            let error = theirs.read().expect_err("a copy of another store").to_string();
            assert!(error.contains(&own.store) && error.contains("give each store a folder"), "{error}");
        }
    }

    // req: S-273
    #[cfg(unix)]
    #[test]
    fn folder_that_others_can_write_is_neither_read_nor_written() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let production = cache(folder.path(), "sqlite:team.db", "production");
        let first = copy(1, &[("a.md", "text")]);
        production.write(&first).expect("written");
        for place in [folder.path().to_owned(), folder.path().join(BLOBS)] {
            let mode = |mode| fs::set_permissions(&place, fs::Permissions::from_mode(mode)).expect("permissions");
            mode(0o777);
            assert!(matches!(production.read(), Err(CacheError::Io(..))) && production.write(&first).is_err());
            mode(0o700);
            assert!(production.read().expect("readable").is_some());
        }
    }

    #[test]
    fn unused_contents_are_removed_and_those_of_other_channels_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let [production, staging] =
            ["production", "staging"].map(|channel| cache(folder.path(), "sqlite:team.db", channel));
        staging.write(&copy(1, &[("a.md", "old")])).expect("written");
        production.write(&copy(1, &[("a.md", "old"), ("b.md", "gone")])).expect("written");
        production.write(&copy(2, &[("a.md", "new")])).expect("written");
        assert_eq!(blobs(folder.path()), 2);
        assert_eq!(staging.read().expect("readable").expect("a copy").tree.get("a.md").expect("it").bytes(), b"old");
    }

    #[test]
    fn damaged_files_are_refused_and_replaced_by_the_next_write() {
        let folder = tempfile::tempdir().expect("a folder");
        let production = cache(folder.path(), "sqlite:team.db", "production");
        let first = copy(1, &[("a.md", "text"), ("b.md", "more")]);
        production.write(&first).expect("written");
        fs::write(production.blob_path(&Digest::of(b"text")), "tex!").expect("a damaged file");
        assert!(matches!(production.read(), Err(CacheError::Corrupt(_))));
        production.write(&first).expect("written");
        assert!(production.read().expect("readable").is_some());
        let manifest = production.manifest_path();
        let text = fs::read_to_string(&manifest).expect("a text");
        for damaged in [text.replace("a.md", "x.md"), text[..text.len() - 9].to_owned(), String::new()] {
            fs::write(&manifest, damaged).expect("a damaged file");
            assert!(matches!(production.read(), Err(CacheError::Corrupt(_))));
        }
    }
}
