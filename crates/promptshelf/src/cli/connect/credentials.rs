//! The store of credentials: a file for each server, which only the user can read.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use promptshelf_client::{CredentialError, CredentialStore};

use crate::state::{self, digest};

pub(crate) struct CredentialFiles;

fn file(server: &str) -> Option<PathBuf> {
    state::folder().map(|folder| folder.join("sign-in").join(format!("{}.json", digest(server))))
}

fn file_error(file: &Path, action: &str, error: io::Error) -> CredentialError {
    CredentialError::new(format!("{} cannot be {action}: {error}", file.display())).with_source(error)
}

impl CredentialStore for CredentialFiles {
    fn load(&self, server: &str) -> Result<Option<String>, CredentialError> {
        let Some(file) = file(server) else { return Ok(None) };
        match fs::read_to_string(&file) {
            Ok(secret) => Ok(Some(secret)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file_error(&file, "read", error)),
        }
    }

    fn save(&self, server: &str, secret: &str) -> Result<(), CredentialError> {
        let file = file(server).ok_or_else(|| {
            CredentialError::new(
                "the credentials cannot be stored: set XDG_STATE_HOME to a folder that you can write to",
            )
        })?;
        state::write(&file, secret).map_err(|error| file_error(&file, "written", error))
    }

    fn clear(&self, server: &str) -> Result<bool, CredentialError> {
        let Some(file) = file(server) else { return Ok(false) };
        match fs::remove_file(&file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
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
