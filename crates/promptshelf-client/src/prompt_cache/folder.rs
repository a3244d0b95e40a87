//! The folder of a cache: one file for each query, replaced as a whole.
//!
//! The time of the last change of a file is that of its last confirmation by the server.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::PromptQuery;

/// The largest answer that is stored, in bytes.
const MAX_BODY: usize = 16 << 20;

/// The largest first line of a file, in bytes: the query with its arguments, which fit into a URL.
const MAX_HEAD: usize = 256 << 10;

/// The most files; those with the oldest confirmation are removed.
const MAX_FILES: usize = 1_000;

/// The age of a temporary file whose process has not renamed it and never will.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

const EXTENSION: &str = "prompt";
const TEMPORARY: &str = ".new-";

/// The first line of a file; the body follows.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    /// The version of the format.
    format: u32,
    server: String,
    query: PromptQuery,
    /// The SHA-256 of the body, which finds damaged files.
    digest: String,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) body: Vec<u8>,
    digest: String,
    confirmed: Option<SystemTime>,
    file: File,
}

impl Entry {
    /// Returns the entity tag that the server gives this body: its SHA-256. It is not read from the file, so that the server
    /// confirms what would be used.
    pub(super) fn etag(&self) -> String {
        format!("\"{}\"", self.digest)
    }

    /// The time since the last confirmation; `None` if the clock was set back since.
    pub(super) fn age(&self) -> Option<Duration> {
        SystemTime::now().duration_since(self.confirmed?).ok()
    }

    pub(super) fn confirm(&self, time: SystemTime) -> io::Result<()> {
        self.file.set_modified(time)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
    server: String,
}

impl Folder {
    pub(super) fn new(path: PathBuf, server: String) -> Folder {
        Folder { path, server }
    }

    /// The name is a digest, so that no name of a prompt or a server leaves the folder.
    fn file(&self, query: &PromptQuery) -> PathBuf {
        let key = serde_json::json!([self.server, query]).to_string();
        self.path.join(format!("{}.{EXTENSION}", hex(key.as_bytes())))
    }

    /// Reads the answer to a query. Blocks. A missing, unreadable or damaged file, and one of another query, are `None`.
    pub(super) fn read(&self, query: &PromptQuery) -> Option<Entry> {
        let path = self.file(query);
        match check_private(&self.path).and_then(|()| self.try_read(&path, query)) {
            Ok(entry) => Some(entry),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!("the cached prompt {} is ignored: {error}", path.display());
                None
            }
        }
    }

    fn try_read(&self, path: &Path, query: &PromptQuery) -> io::Result<Entry> {
        let damaged = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason.to_owned());
        if !fs::symlink_metadata(path)?.is_file() {
            return Err(damaged("it is not a regular file"));
        }
        // Confirmations need the permission to write; a folder that is read-only is still of use.
        let file = File::options().read(true).write(true).open(path).or_else(|_| File::open(path))?;
        let mut bytes = Vec::new();
        (&file).take((MAX_HEAD + MAX_BODY) as u64 + 1).read_to_end(&mut bytes)?;
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| damaged("it has no first line"))?;
        let head: Head = serde_json::from_slice(&bytes[..end])
            .map_err(|_| damaged("its first line is not that of a cached prompt"))?;
        let body = bytes.split_off(end + 1);
        if head.digest != hex(&body) {
            return Err(damaged("its content is damaged"));
        }
        if head != self.head(query, head.digest.clone()) {
            return Err(damaged("it is the answer to another request"));
        }
        Ok(Entry { digest: head.digest, body, confirmed: file.metadata()?.modified().ok(), file })
    }

    fn head(&self, query: &PromptQuery, digest: String) -> Head {
        Head { format: 1, server: self.server.clone(), query: query.clone(), digest }
    }

    /// Replaces the answer to a query, which was requested at a time. Blocks. The answer to a later request stays.
    pub(super) fn write(&self, query: &PromptQuery, body: &[u8], requested: SystemTime) -> io::Result<()> {
        let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, "the prompt is too large for the cache");
        let mut head = serde_json::to_vec(&self.head(query, hex(body)))?;
        head.push(b'\n');
        if body.len() > MAX_BODY || head.len() > MAX_HEAD {
            return Err(too_large());
        }
        create_private(&self.path)?;
        let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(&self.path)?;
        file.write_all(&head)?;
        file.write_all(body)?;
        file.as_file().set_modified(requested)?;
        // Without this, a loss of power could replace a good file by an empty one.
        file.as_file().sync_all()?;
        let path = self.file(query);
        let confirmed = fs::symlink_metadata(&path).and_then(|found| found.modified()).ok();
        // A time in the future was written before the clock was set back.
        if !confirmed.is_some_and(|confirmed| confirmed > requested && confirmed <= SystemTime::now()) {
            file.persist(&path).map_err(|error| error.error)?;
        }
        self.prune();
        Ok(())
    }

    /// Removes the answer to a query. Blocks.
    pub(super) fn remove(&self, query: &PromptQuery) {
        let path = self.file(query);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!("the cached prompt {} cannot be removed: {error}", path.display());
            }
            _ => {}
        }
    }

    fn prune(&self) {
        let Ok(entries) = fs::read_dir(&self.path) else { return };
        let mut files = Vec::new();
        for entry in entries.flatten() {
            let (path, modified) = (entry.path(), entry.metadata().and_then(|found| found.modified()));
            let Ok(modified) = modified else { continue };
            let is_old = modified.elapsed().is_ok_and(|age| age > ABANDONED);
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                files.push((modified, path));
            } else if is_old && entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
                fs::remove_file(path).ok();
            }
        }
        if files.len() > MAX_FILES {
            files.sort();
            let surplus = files.len() - MAX_FILES;
            files.iter().take(surplus).for_each(|(_, path)| drop(fs::remove_file(path)));
        }
    }
}

/// Creates a folder that only its owner can read.
fn create_private(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    check_private(path)
}

/// Checks that no other user can write a folder: a file that was put there would be used.
fn check_private(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::mode(&fs::metadata(path)?) & 0o022 != 0 {
        let reason = format!("other users can write the folder {}: take the permission from them", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    fs::metadata(path).map(drop)
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (Folder, tempfile::TempDir) {
        let place = tempfile::tempdir().expect("a folder");
        (Folder::new(place.path().join("cache"), "https://a.example".to_owned()), place)
    }

    fn body(folder: &Folder, query: &PromptQuery) -> Option<Vec<u8>> {
        folder.read(query).map(|entry| entry.body)
    }

    // req: S-224
    #[test]
    fn damaged_and_foreign_files_are_ignored_and_replaced() {
        let (folder, place) = folder();
        let [query, other] = ["hello", "other"].map(PromptQuery::new);
        let write = |query| folder.write(query, b"{}", SystemTime::now()).expect("written");
        write(&query);
        let file = folder.file(&query);
        let whole = fs::read(&file).expect("a file");
        let cut = &whole[..whole.len() - 1];
        let changed = [&whole[..whole.len() - 1], b"]"].concat();
        let endless = vec![b'x'; MAX_HEAD + MAX_BODY + 10];
        for damage in [&b""[..], b"\n", b"{}\n", b"[\n{}", &whole[..20], cut, &changed, &endless] {
            fs::write(&file, damage).expect("written");
            assert!(body(&folder, &query).is_none(), "{} bytes", damage.len());
            write(&query);
            assert_eq!(body(&folder, &query).as_deref(), Some(&b"{}"[..]));
        }
        // The answer of another prompt, of another channel and of another server.
        fs::copy(&file, folder.file(&other)).expect("copied");
        assert!(body(&folder, &other).is_none());
        assert!(body(&folder, &query.clone().channel("next")).is_none());
        let elsewhere = Folder::new(folder.path.clone(), "https://b.example".to_owned());
        fs::copy(&file, elsewhere.file(&query)).expect("copied");
        assert!(body(&elsewhere, &query).is_none());
        // Names do not leave the folder.
        write(&PromptQuery::new("../../up"));
        assert!(fs::read_dir(&folder.path).expect("a folder").flatten().count() >= 3);
        assert_eq!(fs::read_dir(place.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn later_answer_stays_unless_the_clock_was_set_back() {
        let (folder, _place) = folder();
        let query = PromptQuery::new("hello");
        let (now, minute) = (SystemTime::now(), Duration::from_secs(60));
        folder.write(&query, b"new", now).expect("written");
        folder.write(&query, b"old", now - minute).expect("written");
        assert_eq!(body(&folder, &query).as_deref(), Some(&b"new"[..]));
        folder.read(&query).expect("an entry").confirm(now + 60 * minute).expect("confirmed");
        assert_eq!(folder.read(&query).expect("an entry").age(), None, "it is of the future");
        folder.write(&query, b"present", now).expect("written");
        assert_eq!(body(&folder, &query).as_deref(), Some(&b"present"[..]));
        assert!(folder.write(&query, &vec![b'x'; MAX_BODY + 1], now).is_err());
        assert_eq!(body(&folder, &query).as_deref(), Some(&b"present"[..]));
    }

    // req: S-224
    #[test]
    fn files_are_bounded_and_leftovers_removed() {
        let (folder, _place) = folder();
        create_private(&folder.path).expect("a folder");
        let old = SystemTime::now() - 2 * ABANDONED;
        for number in 0..MAX_FILES + 5 {
            let file = File::create(folder.path.join(format!("{number:04}.{EXTENSION}"))).expect("a file");
            file.set_modified(old + Duration::from_secs(number as u64)).expect("a time");
        }
        let leftover = folder.path.join(format!("{TEMPORARY}x"));
        File::create(&leftover).and_then(|file| file.set_modified(old)).expect("a file");
        let query = PromptQuery::new("hello");
        folder.write(&query, b"{}", SystemTime::now()).expect("written");
        assert_eq!(fs::read_dir(&folder.path).expect("a folder").count(), MAX_FILES);
        assert!(!leftover.exists() && !folder.path.join("0005.prompt").exists() && body(&folder, &query).is_some());
    }

    // req: S-223
    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_cached_prompts() {
        use std::os::unix::fs::PermissionsExt as _;
        let (folder, _place) = folder();
        let query = PromptQuery::new("hello");
        folder.write(&query, b"{}", SystemTime::now()).expect("written");
        for path in [&folder.path, &folder.file(&query)] {
            let mode = fs::metadata(path).expect("it exists").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
        }
    }

    // req: S-273
    #[cfg(unix)]
    #[test]
    fn planted_files_are_not_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let (folder, _place) = folder();
        let query = PromptQuery::new("hello");
        folder.write(&query, b"{}", SystemTime::now()).expect("written");
        // The condition is that of the body, whatever a file says.
        let entry = folder.read(&query).expect("an entry");
        assert_eq!(entry.etag(), format!("\"{}\"", hex(b"{}")));
        let mode = |mode| fs::set_permissions(&folder.path, fs::Permissions::from_mode(mode)).expect("permissions");
        mode(0o777);
        assert!(folder.read(&query).is_none() && folder.write(&query, b"{}", SystemTime::now()).is_err());
        mode(0o755);
        assert!(folder.read(&query).is_some());
    }

    #[test]
    fn concurrent_writers_leave_a_whole_file() {
        let (folder, _place) = folder();
        let query = PromptQuery::new("hello");
        std::thread::scope(|scope| {
            for letter in [b'a', b'b', b'c', b'd'] {
                let (folder, query) = (&folder, &query);
                scope.spawn(move || {
                    for _ in 0..8 {
                        folder.write(query, &vec![letter; 50_000], SystemTime::now()).expect("written");
                        let body = body(folder, query).expect("a whole file");
                        assert!(body.len() == 50_000 && body.iter().all(|byte| *byte == body[0]));
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(&folder.path).expect("a folder").count(), 1, "no temporary file is left");
    }
}
