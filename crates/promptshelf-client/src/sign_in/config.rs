//! The configuration of sign-in.

use std::{fmt, pin::Pin, sync::Arc};

use super::{
    discovery::is_same_issuer,
    store::{CredentialStore, TokenMemory},
};
use crate::error::ClientError;

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
    client_secret: Option<ClientSecret>,
    pub(super) scopes: Vec<String>,
    pub(super) grant: Grant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grant {
    AuthorizationCode,
    /// The program signs in as itself (RFC 6749, section 4.4).
    ClientCredentials,
}

/// A client secret, and the only authorization server that receives it.
#[derive(Clone)]
struct ClientSecret {
    secret: String,
    issuer: Option<String>,
}

impl SignIn {
    /// Creates a configuration that uses stored credentials only, without interaction.
    pub fn new(store: Arc<dyn CredentialStore>) -> SignIn {
        let grant = Grant::AuthorizationCode;
        SignIn { store, browser: None, client_id: None, client_secret: None, scopes: Vec::new(), grant }
    }

    /// Creates a configuration with which the program signs in as itself, without a user (the grant
    /// `client_credentials` of RFC 6749, section 4.4). The authorization server whose issuer identifier is `issuer` has
    /// registered the client, and no other one receives the secret. Tokens are kept in memory, and a new one is requested
    /// when the server refuses the last one or it ends.
    ///
    /// ```
    /// use promptshelf_client::{ConnectOptions, SignIn};
    ///
    /// let sign_in = SignIn::client_credentials("mirror", "its secret", "https://id.example.com");
    /// let options = ConnectOptions::new().sign_in(sign_in.scopes(vec!["prompts:read".to_owned()]));
    /// ```
    pub fn client_credentials(id: impl Into<String>, secret: impl Into<String>, issuer: impl Into<String>) -> SignIn {
        let sign_in =
            SignIn::new(Arc::new(TokenMemory::default())).client(id).client_secret(secret, Some(issuer.into()));
        SignIn { grant: Grant::ClientCredentials, ..sign_in }
    }

    /// Allows interactive sign-in.
    pub fn browser(mut self, browser: Arc<dyn BrowserOpener>) -> SignIn {
        self.browser = Some(browser);
        self
    }

    /// Sets the OAuth client: the identifier of a registered client, or the `https` URL of a client ID metadata
    /// document. Without one the client registers itself, if the authorization server allows it (RFC 7591).
    pub fn client(mut self, id: impl Into<String>) -> SignIn {
        self.client_id = Some(id.into());
        self
    }

    /// Sets the secret of the OAuth client, and the issuer identifier of the authorization server that has registered
    /// it. The MCP server names its authorization server, so the secret is sent to this issuer only; without an issuer
    /// a sign-in fails with an error that names the one of the server.
    pub fn client_secret(mut self, secret: impl Into<String>, issuer: Option<String>) -> SignIn {
        self.client_secret = Some(ClientSecret { secret: secret.into(), issuer });
        self
    }

    pub(super) fn secret_for(&self, issuer: Option<&str>) -> Result<Option<String>, ClientError> {
        let Some(ClientSecret { secret, issuer: expected }) = &self.client_secret else { return Ok(None) };
        if let (Some(issuer), Some(expected)) = (issuer, expected)
            && is_same_issuer(issuer, expected)
        {
            return Ok(Some(secret.clone()));
        }
        let found = issuer.unwrap_or("an unpublished authorization server");
        Err(ClientError::sign_in_failed(match expected {
            Some(expected) => format!("the client secret belongs to {expected}, and the server names {found}"),
            None => format!("the client secret has no issuer, and the server names {found}: set the secret's issuer"),
        }))
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
            .field("grant", &self.grant)
            .finish_non_exhaustive()
    }
}
