//! `server.toml`: where it is found, its bounds, the values that replace its own, and its mistakes as one failure.

use std::{
    fs::File,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use promptshelf_core::{Code, Diagnostic, SourceText};
use promptshelf_source::settings::{FilePath, Given, SettingsFile};

use super::sections::{BlockedSubjects, ServerSettings};
use crate::{
    failure::{Exit, Failure},
    http::is_out_of_files,
};

/// The largest `server.toml` that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

const FILE_NAME: &str = "server.toml";

/// Sections of a library's `promptshelf.toml`.
const LIBRARY_SECTIONS: [&str; 5] = ["server", "list", "arguments", "roots", "resources"];

/// Keys of `[limits]` that bound a library and belong in its `promptshelf.toml`.
const LIBRARY_LIMITS: [&str; 10] = [
    "file-bytes",
    "library-bytes",
    "files",
    "resource-bytes",
    "value-bytes",
    "output-bytes",
    "attachment-bytes",
    "messages",
    "fuel",
    "include-depth",
];

/// The files that settings were read from, each with a hash of the content that was read, or that was there before it was
/// read. Files are small, and modification times too coarse: two edits can have the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownFiles(Vec<(PathBuf, Option<u64>)>);

impl KnownFiles {
    /// Reads a file and remembers it, even if it cannot be read.
    pub(super) fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let read = read(path);
        self.0.push((path.to_owned(), read.as_deref().ok().map(hash)));
        read
    }

    pub(super) fn note(&mut self, path: &Path) {
        // An error is reported when the file is read.
        let _ = self.read(path);
    }

    pub(crate) fn current(&self) -> io::Result<KnownFiles> {
        let current = |(path, _): &(PathBuf, Option<u64>)| match read(path) {
            Ok(bytes) => Ok((path.clone(), Some(hash(&bytes)))),
            Err(error) if is_out_of_files(&error) => Err(error),
            Err(_) => Ok((path.clone(), None)),
        };
        self.0.iter().map(current).collect::<io::Result<_>>().map(KnownFiles)
    }

    pub(crate) fn have_same(&self, other: &KnownFiles, path: &Path) -> bool {
        let find = |files: &KnownFiles| files.0.iter().find(|(known, _)| known == path).and_then(|(_, hash)| *hash);
        find(self) == find(other)
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let invalid = |message: &str| io::Error::new(io::ErrorKind::InvalidData, message.to_owned());
    // Opening a FIFO would wait for a writer.
    if !path.metadata()?.is_file() {
        return Err(invalid("expected a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// The paths at which `server.toml` can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFileLocation {
    candidates: Vec<PathBuf>,
    /// Whether the operator named the file, so that it has to exist.
    is_required: bool,
}

impl ServerFileLocation {
    /// The file of `--config`, else of `PROMPTSHELF_CONFIG`, else the user's one, else the system's one.
    pub fn find(flag: Option<&Path>, environment: &impl Fn(&str) -> Option<String>) -> ServerFileLocation {
        let variable = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(path) = flag.map(Path::to_path_buf).or_else(|| variable("PROMPTSHELF_CONFIG")) {
            return ServerFileLocation { candidates: vec![path], is_required: true };
        }
        // Relative paths are invalid by the XDG Base Directory Specification.
        let user = variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        let user = user.or_else(|| variable("HOME").map(|home| home.join(".config")));
        let folders = user.into_iter().chain([PathBuf::from("/etc")]);
        let candidates = folders.map(|folder| folder.join("promptshelf").join(FILE_NAME)).collect();
        ServerFileLocation { candidates, is_required: false }
    }

    /// The same, where a file that was found once has to stay: a deleted file must not reset a running server.
    #[must_use]
    pub fn keep(&self, found: Option<&Path>) -> ServerFileLocation {
        match found {
            Some(path) => ServerFileLocation { candidates: vec![path.to_path_buf()], is_required: true },
            None => self.clone(),
        }
    }

    /// Returns the paths, in the order in which they are tried.
    #[must_use]
    pub fn candidates(&self) -> &[PathBuf] {
        &self.candidates
    }

    /// Reads and parses the first file that exists. Without one, every setting is absent.
    ///
    /// # Errors
    ///
    /// A file that is missing although the operator named it, that is unreadable, too large or not UTF-8.
    pub fn load(&self) -> Result<ServerFile, Failure> {
        let mut files = KnownFiles::default();
        for path in &self.candidates {
            match files.read(path).and_then(text) {
                Ok(text) => return Ok(ServerFile { files, ..ServerFile::new(Some(path.clone()), &text) }),
                Err(error) if is_absent(&error) && !self.is_required => {}
                Err(error) => {
                    let message = format!("the settings file {} cannot be read: {error}", path.display());
                    return Err(Failure::new(Exit::Settings, message));
                }
            }
        }
        Ok(ServerFile { files, ..ServerFile::new(None, "") })
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    if bytes.len() as u64 > MAX_BYTES {
        return Err(invalid(format!("expected at most {MAX_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        invalid(format!("line {} is not UTF-8", line + 1))
    })
}

/// A parsed `server.toml`, and the values of flags and variables that replace its own.
#[derive(Debug)]
pub struct ServerFile {
    path: Option<PathBuf>,
    pub(super) file: SettingsFile,
    pub(super) files: KnownFiles,
    given: Vec<Given>,
    pub(super) unusable: Vec<UnusableFile>,
}

/// A file that settings name, and that cannot be used.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnusableFile {
    /// What it has.
    pub what: &'static str,
    /// Its path.
    pub path: PathBuf,
    /// Why it cannot be used.
    pub failure: Failure,
}

impl ServerFile {
    pub(super) fn new(path: Option<PathBuf>, text: &str) -> ServerFile {
        let shown = path.as_deref().unwrap_or(Path::new(FILE_NAME)).display().to_string();
        let mut file = SettingsFile::parse(SourceText::new(shown, text));
        if let Some(folder) = path.as_deref().and_then(Path::parent) {
            file = file.in_folder(folder);
        }
        let help = "move it to the `promptshelf.toml` of the library";
        for section in LIBRARY_SECTIONS {
            let message = format!("[{section}] belongs in promptshelf.toml");
            file.refuse(&[section], Code::UnknownKey, message, help);
        }
        for key in LIBRARY_LIMITS {
            let message = format!("`{key}` in [limits] belongs in promptshelf.toml");
            file.refuse(&["limits", key], Code::UnknownKey, message, help);
        }
        ServerFile { path, file, files: KnownFiles::default(), given: Vec::new(), unusable: Vec::new() }
    }

    /// Returns the path of the file that was found.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the path from the working directory of one that is relative to the folder of the file.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        self.path.as_deref().and_then(Path::parent).unwrap_or(Path::new("")).join(path)
    }

    /// The sections, without the values of flags and variables. An invalid key counts as absent, and
    /// [`check`](ServerFile::check) reports it.
    pub(super) fn read(&mut self) -> ServerSettings {
        self.file.read()
    }

    pub(super) fn give(&mut self, given: Vec<Given>) {
        self.given = given;
    }

    pub(super) fn merged(&mut self) -> Result<ServerSettings, Failure> {
        self.file.read_with(&self.given).map_err(|mistake| Failure::new(Exit::Usage, mistake))
    }

    /// Returns what was read of a file that the settings name, and otherwise remembers why there is nothing.
    pub(super) fn usable<T>(&mut self, what: &'static str, path: &Path, read: Result<T, Failure>) -> Option<T> {
        read.map_err(|failure| self.unusable.push(UnusableFile { what, path: path.to_owned(), failure })).ok()
    }

    pub(super) fn is_given(&self, path: &[&str]) -> bool {
        self.given.iter().any(|given| given.path == path)
    }

    /// Returns whether a key has a value, valid or not.
    pub(super) fn has(&self, path: &[&str]) -> bool {
        self.is_given(path) || self.file.is_written(path)
    }

    /// Returns the folders that `[grants]` lets libraries publish.
    pub fn granted_roots(&mut self) -> Vec<PathBuf> {
        self.read().grants.roots.into_iter().map(|root| root.0).collect()
    }

    /// Reports a mistake in the value at a path of keys and of indexes in lists.
    pub(super) fn error(&mut self, path: &[&str], message: impl Into<String>) -> &mut Diagnostic {
        self.file.error(path, Code::InvalidValue, message)
    }

    /// Reports a mistake in a key of a table of a list; at another key if it lacks this one.
    pub(super) fn table_error(
        &mut self,
        (list, index): (&str, usize),
        (key, other): (&str, &str),
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        let number = index.to_string();
        let is_written = self.file.location(&[list, &number, key]).is_some();
        self.error(&[list, &number, if is_written { key } else { other }], message)
    }

    /// Warns about a section that has no effect.
    pub(super) fn ignored(&self, section: &str, reason: &str, help: &str) -> Option<Diagnostic> {
        let location = self.file.location(&[section])?;
        let message = format!("[[{section}]] is not used: {reason}");
        Some(Diagnostic::warning(Code::NoEffect, location, message).help(help))
    }

    /// Fails if the sections read so far have errors, with all of them in the message. Otherwise returns the warnings.
    ///
    /// # Errors
    ///
    /// All mistakes of the file.
    pub fn check(&self) -> Result<Vec<Diagnostic>, Failure> {
        let found = self.file.diagnostics();
        let errors: Vec<String> = found.iter().filter(|found| found.is_error()).map(ToString::to_string).collect();
        match errors.as_slice() {
            [] => Ok(found),
            [error] => Err(Failure::new(Exit::Settings, error)),
            errors => {
                let path = self.path.as_deref().unwrap_or(Path::new(FILE_NAME)).display();
                let message = format!("{path} has {} errors:\n  {}", errors.len(), errors.join("\n  "));
                Err(Failure::new(Exit::Settings, message))
            }
        }
    }

    /// Reports names that no channel or profile can have, tokens without a name, and settings that need another one, which
    /// a flag or variable can supply.
    pub(super) fn check_sections(&mut self, settings: &ServerSettings) {
        for name in settings.channels.keys().filter(|name| !is_channel(name)) {
            self.error(&["channels", name], format!("`{name}` is not the name of a channel")).help =
                Some("use lower-case letters, digits, `-`, `_` and `.`, starting with a letter or digit".to_owned());
        }
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        for name in settings.profiles.keys().filter(|name| name.is_empty() || !name.chars().all(is_plain)) {
            self.error(&["profiles", name], format!("`{name}` is not the name of a profile")).help =
                Some("use lower-case letters, digits, `-` and `_`".to_owned());
        }
        for (index, _) in settings.auth.tokens.iter().enumerate().filter(|(_, token)| token.name.is_empty()) {
            let path = ["auth", "tokens", &index.to_string(), "name"];
            self.error(&path, "a token has an empty name").help = Some("use the name of its owner".to_owned());
        }
        for (section, key, needed, help) in [
            (
                "auth",
                "issuer",
                "resource",
                "set the URL that clients use, such as https://prompts.example.com/mcp; tokens have to be issued for it",
            ),
            ("auth", "page-client-id", "issuer", "name the authorization server at which the page is registered"),
            ("tls", "certificate", "key", "name the file of the private key, as PEM"),
            ("tls", "key", "certificate", "name the file of the certificate chain, as PEM"),
        ] {
            // A flag or variable that lacks the other setting is a mistake of the command line.
            let is_of_file = self.file.location(&[section, key]).is_some() && !self.is_given(&[section, key]);
            if is_of_file && !self.has(&[section, needed]) {
                let message = format!("`{key}` in [{section}] needs `{needed}`");
                self.file.error(&[section, key], Code::MissingKey, message).help = Some(help.to_owned());
            }
        }
    }

    /// Reports private files (keys, tokens, records) that are inside one of the folders, where callers could read them.
    pub(super) fn check_private(
        &mut self,
        settings: &ServerSettings,
        serves_sources: bool,
        folders: &PublicFolders<'_>,
    ) -> Result<(), Failure> {
        const HELP: &str = "a library can give its files to callers: move this one out of it";
        for (name, path, keys) in private_files(settings, serves_sources) {
            let Some(place) = folders.place(&path) else { continue };
            let message = format!("the {name} {} is inside {place}", path.display());
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            if self.is_given(&keys) {
                return Err(Failure::new(Exit::Usage, message).help(HELP));
            }
            self.error(&keys, message).help = Some(HELP.to_owned());
        }
        Ok(())
    }
}

fn private_files(settings: &ServerSettings, serves_sources: bool) -> Vec<(&'static str, PathBuf, Vec<String>)> {
    const SECRET: &str = "file of a secret";
    let mut files = Vec::new();
    let mut add = |name, path: Option<&FilePath>, keys: &[&str]| {
        if let Some(FilePath(path)) = path {
            files.push((name, path.clone(), keys.iter().map(|key| (*key).to_owned()).collect()));
        }
    };
    add("audit file", settings.audit.file.as_ref(), &["audit", "file"]);
    add("cache", settings.store.cache.as_ref(), &["store", "cache"]);
    add("tokens file", settings.auth.tokens_file.as_ref(), &["auth", "tokens-file"]);
    add("TLS certificate", settings.tls.certificate.as_ref(), &["tls", "certificate"]);
    add("TLS key", settings.tls.key.as_ref(), &["tls", "key"]);
    for (index, source) in settings.source.0.iter().enumerate().filter(|_| serves_sources) {
        let index = index.to_string();
        for (secret, keys) in [
            (source.webhook_secret.as_ref(), &["webhook-secret"][..]),
            (source.credentials.as_ref(), &["credentials"]),
            (source.oauth.as_ref().map(|oauth| &oauth.client_secret), &["oauth", "client-secret"]),
        ] {
            add(SECRET, secret.map(|secret| &secret.file), &[&["source", &index], keys, &["file"]].concat());
        }
    }
    for (index, webhook) in settings.webhook.0.iter().enumerate() {
        let secret = webhook.secret.as_ref().map(|secret| &secret.file);
        add(SECRET, secret, &["webhook", &index.to_string(), "secret", "file"]);
    }
    if let BlockedSubjects::File(blocked) = &settings.auth.blocked_subjects {
        add("file of blocked subjects", Some(&blocked.file), &["auth", "blocked-subjects", "file"]);
    }
    files
}

#[derive(Debug)]
pub(super) struct PublicFolders<'a> {
    /// `None` for a library that is not a folder.
    pub(super) library: Option<&'a Path>,
    pub(super) sources: &'a [PathBuf],
    pub(super) granted: &'a [PathBuf],
}

impl PublicFolders<'_> {
    fn place(&self, file: &Path) -> Option<String> {
        if self.library.is_some_and(|folder| is_below(file, folder)) {
            return Some("the library".to_owned());
        }
        if self.sources.iter().any(|folder| is_below(file, folder)) {
            return Some("a folder of [[source]]".to_owned());
        }
        let granted = self.granted.iter().find(|folder| is_below(file, folder))?;
        Some(format!("{}, which [grants] lets the library publish", granted.display()))
    }
}

/// Whether a file is below a folder, or would be if it existed: by its path, or by the target of a symbolic link.
fn is_below(file: &Path, folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Opening the file reports an error.
    [parent.canonicalize(), file.canonicalize()].into_iter().flatten().any(|path| path.starts_with(&folder))
}

pub(super) fn is_channel(name: &str) -> bool {
    name.parse::<promptshelf_store::ChannelName>().is_ok()
}
