//! The interface to a store of credentials, such as the system's keyring.

use std::{
    error::Error,
    fmt,
    sync::{Mutex, PoisonError},
};

use crate::error::{BoxError, as_error};

/// A store of credentials that survives the process. The values are secrets.
///
/// The methods may block; they are called on threads for blocking work.
///
/// ```
/// use std::{collections::HashMap, sync::Mutex};
///
/// use promptshelf_client::{CredentialError, CredentialStore};
///
/// #[derive(Default)]
/// struct Memory(Mutex<HashMap<String, String>>);
///
/// impl CredentialStore for Memory {
///     fn load(&self, server: &str) -> Result<Option<String>, CredentialError> {
///         Ok(self.0.lock().unwrap().get(server).cloned())
///     }
///     fn save(&self, server: &str, secret: &str) -> Result<(), CredentialError> {
///         self.0.lock().unwrap().insert(server.to_owned(), secret.to_owned());
///         Ok(())
///     }
///     fn clear(&self, server: &str) -> Result<bool, CredentialError> {
///         Ok(self.0.lock().unwrap().remove(server).is_some())
///     }
/// }
/// ```
pub trait CredentialStore: Send + Sync + 'static {
    /// Returns the credentials of a server, by its URL.
    fn load(&self, server: &str) -> Result<Option<String>, CredentialError>;

    /// Stores the credentials of a server in place of earlier ones.
    fn save(&self, server: &str, secret: &str) -> Result<(), CredentialError>;

    /// Removes the credentials of a server and returns whether there were any.
    fn clear(&self, server: &str) -> Result<bool, CredentialError>;

    /// Locks the credentials of a server while a token is renewed, until the guard is dropped. It prevents two
    /// processes from using the same refresh token. `None` renews without a lock.
    fn lock(&self, _server: &str) -> Result<Option<Box<dyn Send>>, CredentialError> {
        Ok(None)
    }
}

#[derive(Default)]
pub(super) struct TokenMemory(Mutex<Option<String>>);

impl TokenMemory {
    fn replace(&self, secret: Option<String>) -> Option<String> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), secret)
    }
}

impl CredentialStore for TokenMemory {
    fn load(&self, _: &str) -> Result<Option<String>, CredentialError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn save(&self, _: &str, secret: &str) -> Result<(), CredentialError> {
        self.replace(Some(secret.to_owned()));
        Ok(())
    }

    fn clear(&self, _: &str) -> Result<bool, CredentialError> {
        Ok(self.replace(None).is_some())
    }
}

/// An error of a [`CredentialStore`]. Its text must not contain secrets.
#[derive(Debug)]
pub struct CredentialError {
    message: String,
    source: Option<BoxError>,
}

impl CredentialError {
    /// Creates an error with a message for people.
    #[must_use]
    pub fn new(message: impl Into<String>) -> CredentialError {
        CredentialError { message: message.into(), source: None }
    }

    /// Adds the cause. The message should include its text.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> CredentialError {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for CredentialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for CredentialError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(as_error)
    }
}
