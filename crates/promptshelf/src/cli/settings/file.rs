//! `server.toml`: where it is found, its bounds, and its mistakes as one failure.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use promptshelf_core::{AccessRule, Code, Diagnostic, SourceText};
use promptshelf_source::settings::SettingsFile;

use super::sections::ServerSettings;
use crate::exit::{Exit, Failure};

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

/// The paths at which `server.toml` can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerFileLocation {
    candidates: Vec<PathBuf>,
    /// Whether the operator named the file, so that it has to exist.
    is_required: bool,
}

impl ServerFileLocation {
    /// The file of `--config`, else of `PROMPTSHELF_CONFIG`, else the user's one, else the system's one.
    pub(crate) fn find(flag: Option<&Path>, environment: &impl Fn(&str) -> Option<String>) -> ServerFileLocation {
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
    pub(crate) fn keep(&self, found: Option<&Path>) -> ServerFileLocation {
        match found {
            Some(path) => ServerFileLocation { candidates: vec![path.to_path_buf()], is_required: true },
            None => self.clone(),
        }
    }

    pub(crate) fn candidates(&self) -> &[PathBuf] {
        &self.candidates
    }

    /// Reads and parses the first file that exists. Without one, every setting is absent.
    ///
    /// # Errors
    ///
    /// A file that is missing although the operator named it, that is unreadable, too large or not UTF-8.
    pub(crate) fn load(&self) -> Result<ServerFile, Failure> {
        for path in &self.candidates {
            match read(path) {
                Ok(text) => return Ok(ServerFile::new(Some(path.clone()), &text)),
                Err(error) if is_absent(&error) && !self.is_required => {}
                Err(error) => {
                    let message = format!("the settings file {} cannot be read: {error}", path.display());
                    return Err(Failure::new(Exit::Settings, message));
                }
            }
        }
        Ok(ServerFile::new(None, ""))
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn read(path: &Path) -> io::Result<String> {
    let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    // Opening a FIFO would wait for a writer.
    if !path.metadata()?.is_file() {
        return Err(invalid("expected a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(invalid(format!("expected at most {MAX_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        invalid(format!("line {} is not UTF-8", line + 1))
    })
}

/// A parsed `server.toml`.
#[derive(Debug)]
pub(crate) struct ServerFile {
    path: Option<PathBuf>,
    file: SettingsFile,
}

impl ServerFile {
    pub(super) fn new(path: Option<PathBuf>, text: &str) -> ServerFile {
        let shown = path.as_deref().unwrap_or(Path::new(FILE_NAME)).display().to_string();
        let mut file = SettingsFile::parse(SourceText::new(shown, text));
        let help = "move it to the `promptshelf.toml` of the library";
        for section in LIBRARY_SECTIONS {
            let message = format!("[{section}] belongs in promptshelf.toml");
            file.refuse(&[section], Code::UnknownKey, message, help);
        }
        for key in LIBRARY_LIMITS {
            let message = format!("`{key}` in [limits] belongs in promptshelf.toml");
            file.refuse(&["limits", key], Code::UnknownKey, message, help);
        }
        ServerFile { path, file }
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub(super) fn resolve(&self, path: &Path) -> PathBuf {
        let folder = self.path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        folder.join(path)
    }

    /// The sections. An invalid key counts as absent, and [`check`](ServerFile::check) reports it.
    pub(super) fn read(&mut self) -> ServerSettings {
        self.file.read()
    }

    pub(crate) fn granted_roots(&mut self) -> Vec<PathBuf> {
        self.read().grants.roots.iter().map(|root| self.resolve(root)).collect()
    }

    pub(super) fn access_rules(&mut self) -> Vec<AccessRule> {
        self.file.access_rules()
    }

    /// Reports names under `[channels]` that no channel can have.
    pub(super) fn check_channels(&mut self, settings: &ServerSettings) {
        for name in settings.channels.keys().filter(|name| !is_channel(name)) {
            let message = format!("`{name}` is not the name of a channel");
            let found = self.file.error(&["channels", name], Code::InvalidValue, message);
            found.help =
                Some("use lower-case letters, digits, `-`, `_` and `.`, starting with a letter or digit".to_owned());
        }
    }

    /// Reports names under `[profiles]` that cannot be a part of a path.
    pub(super) fn check_profiles(&mut self, settings: &ServerSettings) {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        for name in settings.profiles.keys().filter(|name| name.is_empty() || !name.chars().all(is_plain)) {
            let message = format!("`{name}` is not the name of a profile");
            let found = self.file.error(&["profiles", name], Code::InvalidValue, message);
            found.help = Some("use lower-case letters, digits, `-` and `_`".to_owned());
        }
    }

    /// Reports a mistake in the value at a path of keys and of indexes in lists.
    pub(super) fn error(&mut self, path: &[&str], code: Code, message: impl Into<String>) -> &mut Diagnostic {
        self.file.error(path, code, message)
    }

    /// Returns whether a key is in the file, with a valid value or not.
    pub(super) fn is_written(&self, path: &[&str]) -> bool {
        self.file.is_written(path)
    }

    /// Reports a mistake in a key of a source; at its name if it lacks the key.
    pub(super) fn source_error(&mut self, index: usize, key: &str, message: impl Into<String>) -> &mut Diagnostic {
        self.table_error("source", index, (key, "name"), message)
    }

    /// Reports a mistake in a key of a webhook; at its URL if it lacks the key.
    pub(super) fn webhook_error(&mut self, index: usize, key: &str, message: impl Into<String>) -> &mut Diagnostic {
        self.table_error("webhook", index, (key, "url"), message)
    }

    /// Reports a mistake in a key of a table of a list; at another key if it lacks this one.
    fn table_error(
        &mut self,
        list: &str,
        index: usize,
        (key, other): (&str, &str),
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        let number = index.to_string();
        let is_written = self.file.location(&[list, &number, key]).is_some();
        let key = if is_written { key } else { other };
        self.file.error(&[list, &number, key], Code::InvalidValue, message)
    }

    pub(super) fn evaluation_error(&mut self, index: usize, key: &str, message: impl Into<String>) -> &mut Diagnostic {
        self.file.error(&["evaluation", &index.to_string(), key], Code::InvalidValue, message)
    }

    pub(super) fn rollout_error(&mut self, index: usize, key: &str, message: impl Into<String>) -> &mut Diagnostic {
        self.file.error(&["rollout", &index.to_string(), key], Code::InvalidValue, message)
    }

    /// Warns about rollouts without a store.
    pub(super) fn ignored_rollouts(&self, serves_channels: bool) -> Option<Diagnostic> {
        let location = self.file.location(&["rollout"]).filter(|_| !serves_channels)?;
        let message = "[[rollout]] is not used: the server serves no store";
        let help = "serve the store with both channels, such as `promptshelf serve sqlite:team.db`";
        Some(Diagnostic::warning(Code::NoEffect, location, message).help(help))
    }

    /// Warns about sources that are not served, because the command line names a library.
    pub(super) fn ignored_sources(&self, serves_sources: bool) -> Option<Diagnostic> {
        let location = self.file.location(&["source"]).filter(|_| !serves_sources)?;
        let message = "[[source]] is not used: the command line names a library";
        let help = "start the server without LIBRARY to serve all sources";
        Some(Diagnostic::warning(Code::NoEffect, location, message).help(help))
    }

    pub(super) fn found(&self) -> Vec<Diagnostic> {
        self.file.diagnostics()
    }

    /// Fails if the sections read so far have errors, with all of them in the message. Otherwise returns the warnings.
    pub(crate) fn check(&self) -> Result<Vec<Diagnostic>, Failure> {
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
}

pub(super) fn is_channel(name: &str) -> bool {
    name.parse::<promptshelf_store::ChannelName>().is_ok()
}
