//! The configuration of sign-in.

use std::{fmt, pin::Pin, sync::Arc};

use super::store::CredentialStore;

/// A page on which the user signs in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignInPage {
    /// The URL of the MCP server that requires it.
    pub server: String,
    /// The host and port of the page, which the server chose.
    pub host: String,
    /// The page's URL: `https`, or on this machine.
    pub url: String,
}

/// Opens the sign-in page in the user's browser.
pub trait BrowserOpener: Send + Sync + 'static {
    /// Opens the page without waiting until the user has signed in. Returns `false` if the user refuses, which ends
    /// the request with [`ClientError::Cancelled`](crate::ClientError::Cancelled).
    fn open(&self, page: SignInPage) -> Pin<Box<dyn Future<Output = bool> + Send + '_>>;
}

/// The configuration of OAuth sign-in, as a builder.
///
/// ```
/// use std::sync::Arc;
///
/// use promptshelf_client::{ConnectOptions, CredentialStore, SignIn};
///
/// fn options(store: Arc<dyn CredentialStore>) -> ConnectOptions {
///     let sign_in = SignIn::new(store).scopes(vec!["prompts:read".to_owned()]);
///     ConnectOptions::new().sign_in(sign_in)
/// }
/// ```
#[derive(Clone)]
#[must_use = "a sign-in does nothing until it is part of `ConnectOptions`"]
pub struct SignIn {
    pub(super) store: Arc<dyn CredentialStore>,
    pub(super) browser: Option<Arc<dyn BrowserOpener>>,
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<String>,
    pub(super) scopes: Vec<String>,
}

impl SignIn {
    /// Creates a configuration that uses stored credentials only, without interaction.
    pub fn new(store: Arc<dyn CredentialStore>) -> SignIn {
        SignIn { store, browser: None, client_id: None, client_secret: None, scopes: Vec::new() }
    }

    /// Allows interactive sign-in.
    pub fn browser(mut self, browser: Arc<dyn BrowserOpener>) -> SignIn {
        self.browser = Some(browser);
        self
    }

    /// Sets the OAuth client: the identifier of a registered client, or the `https` URL of a client ID metadata
    /// document. Without one the client registers itself, if the authorization server allows it (RFC 7591).
    pub fn client(mut self, id: impl Into<String>, secret: Option<String>) -> SignIn {
        self.client_id = Some(id.into());
        self.client_secret = secret;
        self
    }

    /// Sets the scopes of the first sign-in, in place of those that the server names.
    pub fn scopes(mut self, scopes: Vec<String>) -> SignIn {
        self.scopes = scopes;
        self
    }
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIn")
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}
