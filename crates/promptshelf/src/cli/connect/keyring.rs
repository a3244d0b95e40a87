//! The store of credentials: the system's keyring or, without one (in a container or over SSH), files that only the
//! user can read.

use std::{
    env,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use keyring::{Entry, Error};
use promptshelf_client::{CredentialError, CredentialStore};

use crate::{
    output::Output,
    state::{self, digest},
};

const SERVICE: &str = "promptshelf";

pub(crate) struct Keyring {
    /// Whether credentials are stored in files only.
    is_file: bool,
}

impl Keyring {
    /// Creates the store; `PROMPTSHELF_KEYRING=file` bypasses the system's keyring.
    pub(crate) fn from_environment() -> Keyring {
        Keyring { is_file: env::var_os("PROMPTSHELF_KEYRING").is_some_and(|kind| kind == "file") }
    }

    /// Returns the entry in the system's keyring, or the reason why the keyring is unavailable.
    fn entry(&self, server: &str) -> Result<Entry, String> {
        if self.is_file {
            return Err("PROMPTSHELF_KEYRING is `file`".to_owned());
        }
        Entry::new(SERVICE, server).map_err(|error| match (error, Entry::store_status()) {
            (Error::NoDefaultStore, Err(error)) => reason(error),
            (error, _) => reason(&error),
        })
    }
}

/// Formats an error without the secret that some errors contain.
fn reason(error: &Error) -> String {
    match error {
        Error::BadEncoding(_) => "the entry is not text".to_owned(),
        other => other.to_string(),
    }
}

fn file(server: &str) -> Option<PathBuf> {
    state::folder().map(|folder| folder.join("sign-in").join(format!("{}.json", digest(server))))
}

fn file_error(file: &Path, action: &str, error: io::Error) -> CredentialError {
    CredentialError::new(format!("{} cannot be {action}: {error}", file.display())).with_source(error)
}

impl CredentialStore for Keyring {
    fn load(&self, server: &str) -> Result<Option<String>, CredentialError> {
        if let Ok(Ok(secret)) = self.entry(server).map(|entry| entry.get_password()) {
            return Ok(Some(secret));
        }
        let Some(file) = file(server) else { return Ok(None) };
        match fs::read_to_string(&file) {
            Ok(secret) => Ok(Some(secret)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file_error(&file, "read", error)),
        }
    }

    fn save(&self, server: &str, secret: &str) -> Result<(), CredentialError> {
        let file = file(server);
        let stored = self.entry(server).and_then(|entry| entry.set_password(secret).map_err(|error| reason(&error)));
        let Err(reason) = stored else {
            // A file of an earlier run without keyring must not stay.
            file.map(fs::remove_file);
            return Ok(());
        };
        let file = file.ok_or_else(|| {
            CredentialError::new(format!("the credentials cannot be stored: no keyring ({reason}) and no state folder"))
        })?;
        let is_new = !file.exists();
        state::write(&file, secret).map_err(|error| file_error(&file, "written", error))?;
        if is_new && !self.is_file {
            let mut stderr = Output::stderr();
            let note = format!(
                "note: this system has no usable keyring ({reason}); the credentials are in {}, which only you can read",
                file.display()
            );
            let note = stderr.line(&note).into_owned();
            writeln!(stderr.out, "{note}").ok();
        }
        Ok(())
    }

    fn clear(&self, server: &str) -> Result<bool, CredentialError> {
        let in_keyring = match self.entry(server).map(|entry| entry.delete_credential()) {
            Ok(Ok(())) => true,
            Ok(Err(Error::NoEntry)) | Err(_) => false,
            Ok(Err(error)) => {
                return Err(CredentialError::new(format!("the keyring cannot remove the entry: {}", reason(&error))));
            }
        };
        let Some(file) = file(server) else { return Ok(in_keyring) };
        match fs::remove_file(&file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(in_keyring),
            Err(error) => Err(file_error(&file, "removed", error)),
        }
    }

    fn lock(&self, server: &str) -> Result<Option<Box<dyn Send>>, CredentialError> {
        let Some(file) = file(server).map(|file| file.with_extension("lock")) else { return Ok(None) };
        let lock = || -> io::Result<File> {
            state::write_new(&file)?;
            let lock = File::open(&file)?;
            lock.lock()?;
            Ok(lock)
        };
        // Without a lock the token is renewed anyway.
        Ok(lock().ok().map(|lock| Box::new(lock) as Box<dyn Send>))
    }
}
