//! Files that must not be where callers could read them: the operator's keys, tokens and records.

use std::path::{Path, PathBuf};

use promptshelf_core::Code;

use super::{
    file::ServerFile,
    overrides::Overrides,
    sections::{BlockedSubjects, ServerSettings},
    source_sections::SecretFile,
};
use crate::{
    args::ServeArguments,
    exit::{Exit, Failure},
};

const HELP: &str = "a library can give its files to callers: move this one out of it";

#[derive(Debug)]
pub(super) struct PublicFolders<'a> {
    /// `None` for a library that is not a folder.
    pub(super) library: Option<&'a Path>,
    pub(super) sources: &'a [PathBuf],
    pub(super) granted: &'a [PathBuf],
}

#[derive(Debug)]
pub(super) struct PrivateFile {
    name: &'static str,
    path: PathBuf,
    /// The keys that lead to it in `server.toml`; empty for one of a flag or variable.
    keys: Vec<String>,
}

impl PrivateFile {
    /// Returns all private files of a server. `has_sources` if `[[source]]` is served.
    pub(super) fn all<E: Fn(&str) -> Option<String>>(
        file: &ServerFile,
        written: &ServerSettings,
        has_sources: bool,
        arguments: &ServeArguments,
        overrides: &Overrides<'_, E>,
    ) -> Vec<PrivateFile> {
        let flags = &arguments.over_http;
        let settings = [
            ("audit file", "audit", &arguments.audit, &written.audit.file, ["audit", "file"]),
            ("cache", "cache", &arguments.cache, &written.store.cache, ["store", "cache"]),
            ("tokens file", "tokens", &flags.tokens, &written.auth.tokens_file, ["auth", "tokens-file"]),
            (
                "TLS certificate",
                "tls-certificate",
                &flags.tls_certificate,
                &written.tls.certificate,
                ["tls", "certificate"],
            ),
            ("TLS key", "tls-key", &flags.tls_key, &written.tls.key, ["tls", "key"]),
        ];
        let single = settings.into_iter().filter_map(|(name, flag, given, written, keys)| {
            if let Some(path) = overrides.path(flag, given.as_deref()) {
                return Some(PrivateFile { name, path, keys: Vec::new() });
            }
            Some(PrivateFile::written(name, file.resolve(written.as_deref()?), &keys))
        });
        let sources = written.source.0.iter().enumerate().filter(|_| has_sources);
        let of_sources = sources.flat_map(|(index, source)| {
            let index = index.to_string();
            let secrets = [
                (source.webhook_secret.as_ref(), &["webhook-secret"][..]),
                (source.credentials.as_ref(), &["credentials"]),
                (source.oauth.as_ref().map(|oauth| &oauth.client_secret), &["oauth", "client-secret"]),
            ];
            secrets.into_iter().filter_map(move |(secret, keys)| {
                let keys = [&["source", &index], keys, &["file"]].concat();
                Some(PrivateFile::written("file of a secret", file.resolve(&secret?.file), &keys))
            })
        });
        let of_webhooks = written.webhook.0.iter().enumerate().filter_map(|(index, webhook)| {
            let path = file.resolve(&webhook.secret.as_ref()?.file);
            let index = index.to_string();
            Some(PrivateFile::written("file of a secret", path, &["webhook", &index, "secret", "file"]))
        });
        let blocked = match &written.auth.blocked_subjects {
            BlockedSubjects::File(SecretFile { file: path }) => {
                let keys = ["auth", "blocked-subjects", "file"];
                Some(PrivateFile::written("file of blocked subjects", file.resolve(path), &keys))
            }
            BlockedSubjects::List(_) => None,
        };
        single.chain(of_sources).chain(of_webhooks).chain(blocked).collect()
    }

    fn written(name: &'static str, path: PathBuf, keys: &[&str]) -> PrivateFile {
        PrivateFile { name, path, keys: keys.iter().map(|key| (*key).to_owned()).collect() }
    }
}

impl PublicFolders<'_> {
    /// Reports private files that are inside one of the folders, at their keys in the file.
    ///
    /// # Errors
    ///
    /// The first such file that a flag or variable names.
    pub(super) fn refuse(&self, private: &[PrivateFile], file: &mut ServerFile) -> Result<(), Failure> {
        for PrivateFile { name, path, keys } in private {
            let Some(place) = self.place(path) else { continue };
            let message = format!("the {name} {} is inside {place}", path.display());
            if keys.is_empty() {
                return Err(Failure::new(Exit::Usage, message).help(HELP));
            }
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            file.error(&keys, Code::InvalidValue, message).help = Some(HELP.to_owned());
        }
        Ok(())
    }

    fn place(&self, file: &Path) -> Option<String> {
        match self.granted.iter().find(|folder| is_below(file, folder)) {
            _ if self.library.is_some_and(|folder| is_below(file, folder)) => Some("the library".to_owned()),
            _ if self.sources.iter().any(|folder| is_below(file, folder)) => Some("a folder of [[source]]".to_owned()),
            Some(folder) => Some(format!("{}, which [grants] lets the library publish", folder.display())),
            None => None,
        }
    }
}

/// Whether a file is below a folder, or would be if it existed: by its path, or by the target of a symbolic link.
fn is_below(file: &Path, folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Opening the file reports an error.
    [parent.canonicalize(), file.canonicalize()].into_iter().flatten().any(|path| path.starts_with(&folder))
}
