//! The origin of prompts that a command uses: a library on this machine, or an MCP server.

mod configured;

use std::{
    fmt,
    path::{Path, PathBuf},
};

use promptshelf_client::Endpoint;

pub(crate) use self::configured::configured;
use crate::exit::{Exit, Failure};

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
    pub(crate) fn parse(word: &str) -> Result<Source, Failure> {
        if word.starts_with("https://") || word.starts_with("http://") {
            return Ok(Source::Server(Endpoint::url(word)));
        }
        if !word.contains("://") && Path::new(word).is_dir() {
            return Ok(Source::Folder(PathBuf::from(word)));
        }
        configured(word).map(Source::Server).map_err(|failure| match failure.exit {
            Exit::Usage if failure.help.is_none() => {
                Failure::new(Exit::Usage, format!("expected a URL, a folder or a server's name: {}", failure.message))
            }
            _ => failure,
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
