//! Which server to connect to.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use super::{ClientError, Configured};

/// A server to connect to.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// A folder of prompt files, served inside this process.
    Folder(PathBuf),
    /// A server at an address, over Streamable HTTP.
    Url {
        /// Its address.
        url: String,
        /// Headers for every request, for instance `Authorization`.
        headers: BTreeMap<String, String>,
    },
    /// A program that is started and spoken to over its stdin and stdout.
    Command {
        /// The program and its arguments; no shell is involved.
        line: Vec<String>,
        /// Added to its environment.
        environment: BTreeMap<String, String>,
        /// Where it runs; here when nothing is said.
        folder: Option<PathBuf>,
    },
}

impl Target {
    /// A folder of prompt files.
    pub fn folder(path: impl Into<PathBuf>) -> Target {
        Target::Folder(path.into())
    }

    /// A server at an address.
    pub fn url(url: impl Into<String>) -> Target {
        Target::Url { url: url.into(), headers: BTreeMap::new() }
    }

    /// A program and its arguments.
    pub fn command<S: Into<String>>(line: impl IntoIterator<Item = S>) -> Target {
        let line = line.into_iter().map(Into::into).collect();
        Target::Command { line, environment: BTreeMap::new(), folder: None }
    }

    /// The server that a client's configuration knows by this name.
    ///
    /// # Errors
    ///
    /// When none does, or what it says cannot be used here.
    pub fn configured(name: &str) -> Result<Target, ClientError> {
        Configured::find(name)
    }

    /// What somebody means who writes one word: an address, a folder that is
    /// there, or the name of a server in a client's configuration.
    ///
    /// # Errors
    ///
    /// When it is none of them.
    pub fn parse(word: &str) -> Result<Target, ClientError> {
        if word.starts_with("https://") || word.starts_with("http://") {
            return Ok(Target::url(word));
        }
        if std::path::Path::new(word).is_dir() {
            return Ok(Target::folder(word));
        }
        Configured::find(word).map_err(|error| match error {
            ClientError::Target(reason) => ClientError::Target(format!("{word} is no folder and no address; {reason}")),
            other => other,
        })
    }

    /// The address of a server that somebody can sign in to: nobody has set up
    /// a token for it already, and none would cross a network in clear.
    #[must_use]
    pub fn sign_in_address(&self) -> Option<&str> {
        match self {
            Target::Url { url, headers } => {
                let has_token = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
                let is_safe = url.starts_with("https://") || is_this_machine(url);
                Some(url.as_str()).filter(|_| !has_token && is_safe)
            }
            _ => None,
        }
    }

    /// The same target with a bearer token.
    ///
    /// # Errors
    ///
    /// When the target takes none, or the token would cross a network in clear.
    pub fn bearer(mut self, token: &str) -> Result<Target, ClientError> {
        let Target::Url { url, headers } = &mut self else {
            return Err(ClientError::Target("a token is for a server at an address".to_owned()));
        };
        if !url.starts_with("https://") && !is_this_machine(url) {
            return Err(ClientError::Target(format!("the token is not sent to {url}, which is not https")));
        }
        headers.insert("Authorization".to_owned(), format!("Bearer {token}"));
        Ok(self)
    }
}

/// Whether an `http://` address cannot leave this machine.
pub(super) fn is_this_machine(url: &str) -> bool {
    let authority = url.trim_start_matches("http://").split(['/', '?', '#']).next().unwrap_or_default();
    // Whatever stands before an `@` is a user's name, and not the host.
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = if host.starts_with('[') { host } else { host.split(':').next().unwrap_or_default() };
    host == "localhost"
        || host.starts_with("[::1]")
        || host.parse::<std::net::Ipv4Addr>().is_ok_and(|a| a.is_loopback())
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Folder(path) => write!(f, "{}", path.display()),
            Target::Url { url, .. } => f.write_str(url),
            Target::Command { line, .. } => f.write_str(&line.join(" ")),
        }
    }
}

/// Without header values and environments, which can be secrets.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: Q18
    #[test]
    fn a_token_does_not_cross_a_network_in_clear() {
        for url in ["https://example.com/mcp", "http://localhost:1/mcp", "http://127.0.0.1/mcp", "http://[::1]:8080/"] {
            assert!(Target::url(url).bearer("t").is_ok(), "{url}");
        }
        for url in ["http://example.com/", "http://localhost.example.com/", "http://localhost@example.com/"] {
            assert!(Target::url(url).bearer("t").is_err(), "{url}");
        }
        assert!(Target::folder(".").bearer("t").is_err());
    }

    #[test]
    fn secrets_are_not_printed() {
        let target = Target::url("https://example.com/mcp").bearer("hunter2").expect("it is https");
        assert_eq!(format!("{target:?}"), "Target(https://example.com/mcp)");
    }
}
