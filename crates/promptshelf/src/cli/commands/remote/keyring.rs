//! Where sign-ins are kept: the system's keyring, and a file of the user's
//! alone where there is none, as in a container or over SSH.

use std::{
    env,
    fs::{self, File},
    io::{self, Write},
    path::PathBuf,
};

use keyring::{Entry, Error};
use promptshelf_client::CredentialStore;

use crate::{
    commands::state::{self, digest},
    output::Output,
};

/// Under which keyrings list what is kept.
const SERVICE: &str = "promptshelf";

/// The keyring of whoever runs the program.
pub(super) struct Keyring {
    is_file: bool,
}

impl Keyring {
    /// `PROMPTSHELF_KEYRING=file` passes the system's keyring over.
    pub(super) fn of_environment() -> Keyring {
        Keyring { is_file: env::var_os("PROMPTSHELF_KEYRING").is_some_and(|kind| kind == "file") }
    }

    /// The system's own, if there is one.
    fn entry(&self, server: &str) -> Result<Entry, String> {
        if self.is_file {
            return Err("PROMPTSHELF_KEYRING says so".to_owned());
        }
        Entry::new(SERVICE, server).map_err(|error| match (error, Entry::store_status()) {
            (Error::NoDefaultStore, Err(error)) => reason(error),
            (error, _) => reason(&error),
        })
    }
}

/// Without the words of a secret, which some errors hold.
fn reason(error: &Error) -> String {
    match error {
        Error::BadEncoding(_) => "what it holds is no text".to_owned(),
        other => other.to_string(),
    }
}

fn file(server: &str) -> Option<PathBuf> {
    state::folder().map(|folder| folder.join("sign-in").join(format!("{}.json", digest(server))))
}

impl CredentialStore for Keyring {
    fn load(&self, server: &str) -> Result<Option<String>, String> {
        if let Ok(Ok(secret)) = self.entry(server).map(|entry| entry.get_password()) {
            return Ok(Some(secret));
        }
        let Some(file) = file(server) else { return Ok(None) };
        match fs::read_to_string(&file) {
            Ok(secret) => Ok(Some(secret)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{} cannot be read: {error}", file.display())),
        }
    }

    fn save(&self, server: &str, secret: &str) -> Result<(), String> {
        let file = file(server);
        let kept = self.entry(server).and_then(|entry| entry.set_password(secret).map_err(|error| reason(&error)));
        let Err(why) = kept else {
            // What an earlier run had to leave in a file does not stay there.
            file.map(fs::remove_file);
            return Ok(());
        };
        let file = file.ok_or_else(|| format!("there is no keyring ({why}), and no folder to keep it in"))?;
        let is_new = !file.exists();
        state::write(&file, secret).map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
        if is_new && !self.is_file {
            let mut paper = Output::stderr();
            let said = format!(
                "note: this system has no keyring that takes it ({why}), so the sign-in is kept in {}, which only you can read",
                file.display()
            );
            let said = paper.line(&said).into_owned();
            writeln!(paper.out, "{said}").ok();
        }
        Ok(())
    }

    fn clear(&self, server: &str) -> Result<bool, String> {
        let in_keyring = match self.entry(server).map(|entry| entry.delete_credential()) {
            Ok(Ok(())) => true,
            Ok(Err(Error::NoEntry)) | Err(_) => false,
            Ok(Err(error)) => return Err(format!("the keyring does not forget it: {}", reason(&error))),
        };
        let Some(file) = file(server) else { return Ok(in_keyring) };
        match fs::remove_file(&file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(in_keyring),
            Err(error) => Err(format!("{} cannot be removed: {error}", file.display())),
        }
    }

    fn lock(&self, server: &str) -> Result<Option<Box<dyn Send>>, String> {
        let Some(file) = file(server).map(|file| file.with_extension("lock")) else { return Ok(None) };
        let lock = || -> io::Result<File> {
            state::write_new(&file)?;
            let lock = File::open(&file)?;
            lock.lock()?;
            Ok(lock)
        };
        // Renewed without a lock it is renewed all the same.
        Ok(lock().ok().map(|lock| Box::new(lock) as Box<dyn Send>))
    }
}
