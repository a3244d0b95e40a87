//! Signing in to a server with OAuth 2.1 and PKCE, in the user's browser (specification, *Authorization*).
//!
//! The SDK implements the protocol: discovery (RFC 9728, RFC 8414), `resource` (RFC 8707), `iss` (RFC 9207) and token
//! renewal. This module decides when the user has to sign in, as which client and for which scopes, receives the
//! redirect, and stores the credentials.

mod config;
mod credentials;
mod discovery;
mod redirect;
mod session;
mod store;

pub(crate) use self::session::AuthSession;
pub use self::{
    config::{BrowserOpener, SignIn, SignInPage},
    store::{CredentialError, CredentialStore},
};
