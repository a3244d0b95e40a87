//! Configuration files of other MCP clients: where they are, and changing one entry in them.
//!
//! Only the bytes of the entry change: comments, unknown keys and the order of everything else stay. A file is replaced
//! as a whole, after a backup, and only if it still has the content that the change was made from.

mod edit;
mod text_edit;
mod toml_file;
mod yaml_file;

use std::{
    env, fmt, fs, io,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use promptshelf_author::clients::Configuration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    exit::{Exit, Failure},
    state, whole_file,
};

pub(crate) use self::edit::{entries, find_entry, parse, with_entry, without_empty_container};

/// The reason why a file cannot be edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EditError(String);

impl EditError {
    fn new(message: impl Into<String>) -> EditError {
        EditError(message.into())
    }
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn not_a_mapping(place: &[&str]) -> EditError {
    match place {
        [] => EditError::new("it has only `null`: expected settings, or an empty file"),
        _ => EditError::new(format!("`{}` is not a mapping of servers", place.join("."))),
    }
}

/// The owner of a configuration file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// The file of the user, for all projects
    #[default]
    User,
    /// The file of the project in the current folder
    Project,
}

impl Scope {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Project => "project",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) home: PathBuf,
    config: PathBuf,
    appdata: PathBuf,
    pub(crate) project: PathBuf,
}

impl Places {
    /// Takes the folders from the environment; `None` without a home folder or a current folder.
    pub(crate) fn of_environment() -> Option<Places> {
        let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = env::home_dir().filter(|home| home.is_absolute())?;
        Some(Places {
            config: absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
            appdata: absolute("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming")),
            project: env::current_dir().ok()?,
            home,
        })
    }

    fn resolve(&self, path: &str) -> PathBuf {
        let (base, rest) = path.split_once('/').unwrap_or((path, ""));
        match base {
            "~" => self.home.join(rest),
            "$CONFIG" => self.config.join(rest),
            "$APPDATA" => self.appdata.join(rest),
            _ => self.project.join(path),
        }
    }

    fn user_files(&self, configuration: &Configuration) -> impl Iterator<Item = PathBuf> {
        let files = match () {
            () if cfg!(windows) => configuration.user.windows,
            () if cfg!(target_os = "macos") => configuration.user.macos,
            () => configuration.user.unix,
        };
        files.iter().map(|path| self.resolve(path))
    }
}

/// Returns the file of a client: of the user's files the first existing one. `None` if it has none for the scope.
pub(crate) fn configuration_file(configuration: &Configuration, scope: Scope, places: &Places) -> Option<PathBuf> {
    match scope {
        Scope::Project => configuration.project.map(|path| places.project.join(path)),
        Scope::User => {
            let mut files = places.user_files(configuration);
            let first = files.next()?;
            let exists = |path: &PathBuf| path.symlink_metadata().is_ok();
            Some(if exists(&first) { first } else { files.find(exists).unwrap_or(first) })
        }
    }
}

/// Returns whether a client was used on this machine, or in the project: its file is there, or a folder of its own for
/// it.
pub(crate) fn is_present(configuration: &Configuration, places: &Places) -> bool {
    let shared = [&places.home, &places.config, &places.appdata, &places.project].map(PathBuf::as_path);
    let is_used =
        |path: &Path| path.exists() || path.parent().is_some_and(|folder| !shared.contains(&folder) && folder.is_dir());
    let project = configuration.project.map(|path| places.project.join(path));
    // GitHub's and the common folder for agents are not of one client.
    let project = project.filter(|path| {
        path.exists()
            || !(path.starts_with(places.project.join(".github")) || path.starts_with(places.project.join(".agents")))
    });
    places.user_files(configuration).any(|path| is_used(&path)) || project.is_some_and(|path| is_used(&path))
}

/// The largest file that is edited, in bytes. Claude Code keeps its history in the same file.
const MAX_BYTES: u64 = 64 << 20;

#[derive(Debug)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    target: PathBuf,
    /// The content; `None` if the file does not exist.
    pub(crate) bytes: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replaced {
    Done,
    /// Another program changed the file since it was read; nothing was written.
    Changed,
}

impl ConfigFile {
    /// Reads a file. Symbolic links are followed and kept, because dotfiles are often links; with `within`, only inside
    /// of this folder, because others may write a project's files.
    pub(crate) fn read(path: &Path, within: Option<&Path>) -> Result<ConfigFile, Failure> {
        let target = resolved(path).map_err(|error| failure(path, "cannot be read", &error))?;
        if let Some(folder) = within {
            let root = resolved(folder).map_err(|error| failure(folder, "cannot be read", &error))?;
            if !target.starts_with(&root) {
                let message = format!("{} leads out of the project, to {}", path.display(), target.display());
                return Err(Failure::new(Exit::Failed, message).help("replace the symbolic link by a file"));
            }
        }
        let bytes = match fs::metadata(&target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failure(path, "cannot be read", &error)),
            Ok(found) if !found.is_file() => {
                return Err(Failure::new(Exit::Failed, format!("{} is not a regular file", path.display())));
            }
            Ok(found) if found.len() > MAX_BYTES => {
                return Err(Failure::new(Exit::Failed, format!("{} is larger than 64 MiB", path.display())));
            }
            Ok(_) => Some(fs::read(&target).map_err(|error| failure(path, "cannot be read", &error))?),
        };
        Ok(ConfigFile { path: path.to_owned(), target, bytes })
    }

    /// Returns the content as text; empty for a missing file.
    pub(crate) fn text(&self) -> Result<&str, Failure> {
        std::str::from_utf8(self.bytes.as_deref().unwrap_or_default()).map_err(|_| {
            let message = format!("{} is not UTF-8 text", self.path.display());
            Failure::new(Exit::Failed, message).help("save it as UTF-8 in an editor, and try again")
        })
    }

    /// Replaces the content, or removes the file for `None`, if it is still the one that was read. A reader sees the old
    /// or the new content, never a part, even after a crash. Its owner and permissions stay.
    pub(crate) fn replace(&self, new: Option<&[u8]>, is_private: bool) -> Result<Replaced, Failure> {
        let folder = self.target.parent().unwrap_or(Path::new("."));
        let cannot_write = |error: &io::Error| failure(&self.path, "cannot be written", error);
        let present = fs::metadata(&self.target).ok();
        if present.as_ref().is_some_and(|present| present.permissions().readonly()) {
            let message = format!("{} is read-only", self.path.display());
            return Err(Failure::new(Exit::Failed, message).help("make it writable, and try again"));
        }
        let Some(new) = new else {
            if !self.is_unchanged() {
                return Ok(Replaced::Changed);
            }
            return match fs::remove_file(&self.target) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot_write(&error)),
                _ => Ok(Replaced::Done),
            };
        };
        fs::create_dir_all(folder).map_err(|error| cannot_write(&error))?;
        let mode = if is_private { whole_file::PRIVATE } else { whole_file::NEW };
        let file =
            whole_file::staged(&self.target, new, present.as_ref(), mode).map_err(|error| cannot_write(&error))?;
        if !self.is_unchanged() {
            return Ok(Replaced::Changed);
        }
        file.persist(&self.target).map_err(|error| cannot_write(&error.error))?;
        whole_file::remove_leftovers(&self.target);
        Ok(Replaced::Done)
    }

    fn is_unchanged(&self) -> bool {
        match fs::read(&self.target) {
            Ok(now) => Some(now.as_slice()) == self.bytes.as_deref(),
            Err(error) => error.kind() == io::ErrorKind::NotFound && self.bytes.is_none(),
        }
    }
}

/// Resolves symbolic links, also above a file that does not exist and of a link to a missing file.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Ok(path) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Ok(target) = fs::read_link(path) {
                let folder = path.parent().unwrap_or(Path::new("."));
                return resolved(&folder.join(target));
            }
            match (path.parent(), path.file_name()) {
                (Some(folder), Some(name)) if !folder.as_os_str().is_empty() => Ok(resolved(folder)?.join(name)),
                _ => std::path::absolute(path),
            }
        }
        Err(error) => Err(error),
    }
}

fn failure(path: &Path, what: &str, error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("{} {what}: {error}", path.display()))
}

/// The records of all installed entries. Only one process changes configuration files at a time.
pub(crate) struct Records {
    folder: PathBuf,
    /// `None` for reading alone.
    lock: Option<fs::File>,
}

/// An installed entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Record {
    file: PathBuf,
    name: String,
    /// The digest of the entry as JSON.
    entry: String,
    /// The digest of the file with the entry.
    after: String,
    /// Whether the file existed before; its content is then in the backup.
    existed: bool,
    /// Whether the backup is the content from before the first installation, so that it can be put back.
    exact: bool,
    /// The topmost folder that was created for the file.
    created: Option<PathBuf>,
    /// Whether the container of the entries is there for installed entries alone.
    #[serde(default)]
    pub(crate) made_container: bool,
}

impl Records {
    /// Opens the records; for changes, waits for another process that makes some.
    pub(crate) fn open(for_changes: bool) -> Result<Records, Failure> {
        let folder = state::folder().map(|folder| folder.join("installed")).ok_or_else(|| {
            Failure::new(Exit::Failed, "a folder for backups is missing")
                .help("set HOME, or XDG_STATE_HOME, to a folder that can be written")
        })?;
        if !for_changes {
            return Ok(Records { folder, lock: None });
        }
        let lock = folder.join("lock");
        // The state folder above is readable only by the user.
        let locked = fs::create_dir_all(&folder).and_then(|()| {
            let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(&lock)?;
            file.lock()?;
            Ok(file)
        });
        let lock = locked.map_err(|error| Failure::new(Exit::Failed, format!("{}: {error}", lock.display())))?;
        Ok(Records { folder, lock: Some(lock) })
    }

    pub(crate) fn for_changes(&self) -> bool {
        self.lock.is_some()
    }

    fn path(&self, file: &Path, name: &str, ending: &str) -> PathBuf {
        let id = state::digest(&format!("{}\n{name}", file.display()));
        self.folder.join(format!("{}.{ending}", &id[..32]))
    }

    pub(crate) fn backup(&self, file: &Path, name: &str) -> PathBuf {
        self.path(file, name, "backup")
    }

    pub(crate) fn find(&self, file: &Path, name: &str) -> Option<Record> {
        let text = fs::read_to_string(self.path(file, name, "json")).ok()?;
        serde_json::from_str(&text).ok().filter(|record: &Record| record.file == file && record.name == name)
    }

    /// Keeps the content from before a change. After a further change by `install` alone, the first backup stays.
    pub(crate) fn keep(
        &self,
        file: &Path,
        name: &str,
        (before, after): (Option<&[u8]>, &[u8]),
        (entry, has_entry): (&Value, bool),
        made_container: bool,
    ) -> io::Result<()> {
        let earlier =
            self.find(file, name).filter(|record| before.is_some_and(|before| record.after == digest(before)));
        let record = match earlier {
            Some(earlier) => Record { entry: digest_of(entry), after: digest(after), ..earlier },
            None => {
                if let Some(before) = before {
                    state::write_bytes(&self.backup(file, name), before)?;
                }
                Record {
                    file: file.to_owned(),
                    name: name.to_owned(),
                    entry: digest_of(entry),
                    after: digest(after),
                    existed: before.is_some(),
                    exact: !has_entry,
                    created: missing_folder(file),
                    made_container,
                }
            }
        };
        let text = serde_json::to_string_pretty(&record).map_err(io::Error::other)?;
        state::write(&self.path(file, name, "json"), &text)
    }

    pub(crate) fn forget(&self, file: &Path, name: &str) {
        for ending in ["json", "backup"] {
            fs::remove_file(self.path(file, name, ending)).ok();
        }
    }

    /// Returns the content from before the installation if the file is still as it was after it; `Some(None)` for a
    /// file that did not exist.
    pub(crate) fn original(&self, record: &Record, now: &[u8]) -> Option<Option<Vec<u8>>> {
        if !record.exact || record.after != digest(now) {
            return None;
        }
        if record.existed { fs::read(self.backup(&record.file, &record.name)).ok().map(Some) } else { Some(None) }
    }
}

impl Record {
    pub(crate) fn is_of(&self, entry: &Value) -> bool {
        self.entry == digest_of(entry)
    }

    /// Removes the folders that were created for the file, as far as they are empty.
    pub(crate) fn remove_folders(&self) {
        let Some(created) = &self.created else { return };
        for folder in self.file.ancestors().skip(1).take_while(|folder| folder.starts_with(created)) {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
}

fn missing_folder(file: &Path) -> Option<PathBuf> {
    file.ancestors().skip(1).take_while(|folder| !folder.exists()).last().map(Path::to_owned)
}

/// The digest of an entry with its keys in any order: readers of some formats sort them.
fn digest_of(entry: &Value) -> String {
    let mut entry = entry.clone();
    entry.sort_all_objects();
    state::digest(&entry.to_string())
}

fn digest(bytes: &[u8]) -> String {
    state::digest_bytes(bytes)
}
