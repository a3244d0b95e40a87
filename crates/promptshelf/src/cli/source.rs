//! The origin of prompts that a command uses: a library on this machine, or an MCP server.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use promptshelf_client::{ClientError, Endpoint};

/// A library or a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A folder of prompt files.
    Folder(PathBuf),
    /// Any MCP server.
    Server(Endpoint),
}

impl Source {
    /// Parses one word: a URL, an existing folder, or the name of a server in the configuration of another client.
    pub(crate) fn parse(word: &str) -> Result<Source, ClientError> {
        if !word.contains("://") && Path::new(word).is_dir() {
            return Ok(Source::Folder(PathBuf::from(word)));
        }
        Endpoint::parse(word).map(Source::Server).map_err(|error| match error {
            ClientError::InvalidEndpoint(reason) => {
                ClientError::InvalidEndpoint(format!("expected a URL, a folder or a server's name: {reason}"))
            }
            other => other,
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Folder(folder) => write!(f, "{}", folder.display()),
            Source::Server(endpoint) => endpoint.fmt(f),
        }
    }
}
