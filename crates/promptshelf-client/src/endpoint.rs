//! The address of a server. Looking one up by name is in `client_config`.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use crate::{error::ClientError, secure_url::is_secure_url};

/// An MCP server to connect to.
///
/// A server inside of this process has no endpoint: see [`Client::from_io`](crate::Client::from_io).
///
/// ```
/// use promptshelf_client::Endpoint;
///
/// let remote = Endpoint::url("https://example.com/mcp").bearer("token")?;
/// let local = Endpoint::command(["npx", "-y", "some-mcp-server"]);
/// # Ok::<(), promptshelf_client::ClientError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Endpoint {
    /// A server over Streamable HTTP.
    Url {
        /// The URL of its MCP endpoint.
        url: String,
        /// Headers of every request, for instance `Authorization`.
        headers: BTreeMap<String, String>,
    },
    /// A program that is started, with MCP over its stdin and stdout.
    Command {
        /// The program and its arguments; no shell is involved.
        line: Vec<String>,
        /// Variables added to its environment.
        environment: BTreeMap<String, String>,
        /// Its working directory; the current one by default.
        folder: Option<PathBuf>,
    },
}

impl Endpoint {
    /// Creates the endpoint of a server at a URL, without further headers.
    pub fn url(url: impl Into<String>) -> Endpoint {
        Endpoint::Url { url: url.into(), headers: BTreeMap::new() }
    }

    /// Creates the endpoint of a program with arguments.
    pub fn command<S: Into<String>>(line: impl IntoIterator<Item = S>) -> Endpoint {
        let line = line.into_iter().map(Into::into).collect();
        Endpoint::Command { line, environment: BTreeMap::new(), folder: None }
    }

    /// Returns the URL for OAuth sign-in, or `None` if a token is configured already, the connection is not encrypted
    /// and leaves this machine, or the endpoint is a command.
    #[must_use]
    pub fn sign_in_url(&self) -> Option<&str> {
        match self {
            Endpoint::Url { url, headers } => {
                let has_token = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
                let is_safe = is_secure_url(url);
                Some(url.as_str()).filter(|_| !has_token && is_safe)
            }
            Endpoint::Command { .. } => None,
        }
    }

    /// Adds a bearer token.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidEndpoint`] for a command, and for a URL that would send the token over a network
    /// unencrypted.
    pub fn bearer(mut self, token: &str) -> Result<Endpoint, ClientError> {
        let Endpoint::Url { url, headers } = &mut self else {
            return Err(ClientError::InvalidEndpoint("a token requires a server at a URL".to_owned()));
        };
        if !is_secure_url(url) {
            return Err(ClientError::InvalidEndpoint(format!("{url} is not https: the token was not sent")));
        }
        headers.insert("Authorization".to_owned(), format!("Bearer {token}"));
        Ok(self)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Url { url, .. } => f.write_str(url),
            Endpoint::Command { line, .. } => f.write_str(&line.join(" ")),
        }
    }
}

/// Omits header values, environments, and the user in a URL, which can be secrets.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.to_string();
        if let (Endpoint::Url { .. }, Some((scheme, rest))) = (self, shown.split_once("://")) {
            let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
            if let Some((_, host)) = authority.rsplit_once('@') {
                return write!(f, "Endpoint({scheme}://…@{host}{path})");
            }
        }
        write!(f, "Endpoint({shown})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_has_no_password() {
        for (url, shown) in [
            ("http://user:pw@127.0.0.1:1/mcp", "Endpoint(http://…@127.0.0.1:1/mcp)"),
            ("https://a:b@c@example.com", "Endpoint(https://…@example.com)"),
            ("https://example.com/a@b", "Endpoint(https://example.com/a@b)"),
        ] {
            assert_eq!(format!("{:?}", Endpoint::url(url)), shown);
        }
    }

    // req: Q18
    #[test]
    fn tokens_require_https_or_loopback() {
        for url in ["https://example.com/mcp", "http://localhost:1/mcp", "http://127.0.0.1/mcp", "http://[::1]:8080/"] {
            assert!(Endpoint::url(url).bearer("t").is_ok(), "{url}");
        }
        for url in ["http://example.com/", "http://localhost.example.com/", "http://evil.example\\@localhost/"] {
            assert!(Endpoint::url(url).bearer("t").is_err() && Endpoint::url(url).sign_in_url().is_none(), "{url}");
        }
        assert!(Endpoint::command(["x"]).bearer("t").is_err());
    }

    #[test]
    fn debug_hides_headers() {
        let endpoint = Endpoint::url("https://example.com/mcp").bearer("hunter2").expect("https accepts a token");
        assert_eq!(format!("{endpoint:?}"), "Endpoint(https://example.com/mcp)");
    }
}
