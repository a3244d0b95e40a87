//! The credentials of this server at another one: a token, or an OAuth client.
//!
//! Secrets are in files that are read at each connection, so that they can be replaced without a restart.

use std::{
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
};

use promptshelf_client::{ConnectOptions, Endpoint, SignIn};

/// The largest file with a secret, in bytes.
const MAX_SECRET_BYTES: u64 = 64 << 10;

/// The credentials of this server at another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamCredentials {
    /// The other server needs none.
    #[default]
    None,
    /// A bearer token: the first line of this file.
    Token(PathBuf),
    /// An OAuth client that requests its tokens itself.
    Client(OAuthClient),
}

/// A client that an authorization server has registered for this server (the grant `client_credentials` of RFC 6749,
/// section 4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthClient {
    /// The issuer identifier of the authorization server. No other one receives the secret.
    pub issuer: String,
    /// The client identifier.
    pub id: String,
    /// The file with the secret in its first line.
    pub secret: PathBuf,
    /// The scopes to request; those that the other server names if there are none.
    pub scopes: Vec<String>,
}

impl UpstreamCredentials {
    /// Returns the file with the secret.
    #[must_use]
    pub fn file(&self) -> Option<&PathBuf> {
        match self {
            UpstreamCredentials::None => None,
            UpstreamCredentials::Token(file) => Some(file),
            UpstreamCredentials::Client(client) => Some(&client.secret),
        }
    }

    pub(crate) fn apply(
        &self,
        options: ConnectOptions,
        endpoint: Endpoint,
    ) -> Result<(ConnectOptions, Endpoint), String> {
        let read = |path: &Path, what: &str| {
            first_line(path).map_err(|error| format!("the file with its {what} cannot be read: {error}"))
        };
        match self {
            UpstreamCredentials::None => Ok((options, endpoint)),
            UpstreamCredentials::Token(path) => {
                let endpoint = endpoint.bearer(&read(path, "token")?).map_err(|error| error.to_string())?;
                Ok((options, endpoint))
            }
            UpstreamCredentials::Client(OAuthClient { issuer, id, secret, scopes }) => {
                let sign_in = SignIn::client_credentials(id, read(secret, "client secret")?, issuer);
                Ok((options.sign_in(sign_in.scopes(scopes.clone())), endpoint))
            }
        }
    }
}

fn first_line(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(MAX_SECRET_BYTES).read_to_string(&mut text)?;
    match text.lines().next().map(str::trim).filter(|line| !line.is_empty()) {
        Some(line) => Ok(line.to_owned()),
        None => Err(io::Error::new(io::ErrorKind::InvalidData, "its first line is empty")),
    }
}
