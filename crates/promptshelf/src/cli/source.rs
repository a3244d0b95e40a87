//! The origin of prompts that a command uses: a library on this machine, or an MCP server.

mod configured;

use std::{
    ffi::OsStr,
    fmt,
    path::{Path, PathBuf},
};

use promptshelf_client::{ConfiguredServer, Endpoint};

use self::configured::configured;
use crate::{
    command_line::{self, shell_word},
    exit::{Exit, Failure},
    launcher,
};

pub(crate) const HERE: &str = ".";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Folder(PathBuf),
    Server(Endpoint),
    Configured {
        /// Its name there.
        name: String,
        /// Its endpoint.
        endpoint: Endpoint,
    },
}

impl Source {
    /// Parses a TARGET: a URL, a folder, or the name of a server in the configuration of another client.
    pub(crate) fn parse(word: &OsStr) -> Result<Source, Failure> {
        let path = Path::new(word);
        let folder = || Ok(Source::Folder(path.to_owned()));
        let Some(text) = word.to_str() else { return folder() };
        if is_url(text) {
            return Ok(Source::Server(Endpoint::url(text)));
        }
        if path.exists() || is_path(text) {
            return folder();
        }
        let servers = ConfiguredServer::all();
        match servers.iter().any(|server| server.name == text) {
            true => Source::configured(text),
            false => Err(unknown(text, &servers)),
        }
    }

    /// Returns the server with a name in the configuration of another client. Asks for consent to an entry of a project.
    pub(crate) fn configured(name: &str) -> Result<Source, Failure> {
        Ok(Source::Configured { name: name.to_owned(), endpoint: configured(name)? })
    }

    /// Returns the endpoint of a server; `None` for a folder.
    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Source::Folder(_) => None,
            Source::Server(endpoint) | Source::Configured { endpoint, .. } => Some(endpoint),
        }
    }

    pub(crate) fn command_line(&self, command: &str, rest: &[String]) -> String {
        let mut words = vec![launcher::command(), command.to_owned()];
        let mut last = Vec::new();
        match self {
            Source::Folder(folder) if folder.as_os_str() == HERE => {}
            Source::Folder(folder) => words.push(command_line::path(folder)),
            Source::Server(Endpoint::Url { url, .. }) => words.push(shell_word(url)),
            Source::Server(Endpoint::Command { line, .. }) => {
                last.push("--".to_owned());
                last.extend(line.iter().map(|word| shell_word(word)));
            }
            Source::Server(_) => {}
            Source::Configured { name, .. } => words.extend(["--server".to_owned(), shell_word(name)]),
        }
        words.extend(rest.iter().map(|word| shell_word(word)));
        words.extend(last);
        words.join(" ")
    }
}

/// Returns whether a word is an `http://` or `https://` URL. A URI template is not one.
pub(crate) fn is_url(word: &str) -> bool {
    (word.starts_with("https://") || word.starts_with("http://")) && !word.contains('{')
}

/// Returns whether a word can only be a path.
pub(crate) fn is_path(word: &str) -> bool {
    word.is_empty() || word.starts_with('.') || word.contains(std::path::is_separator)
}

fn unknown(word: &str, servers: &[ConfiguredServer]) -> Failure {
    let mut names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    names.dedup();
    let help = match names.as_slice() {
        [] => format!("no server is named {word} either: no client configuration was found"),
        names => format!("no server is named {word} either: the configured servers are {}", names.join(", ")),
    };
    let message = format!("the folder {word} does not exist: create it, or use another one");
    Failure::new(Exit::Library, message).help(help)
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Folder(folder) => write!(f, "{}", folder.display()),
            Source::Server(endpoint) | Source::Configured { endpoint, .. } => endpoint.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_name_the_same_source() {
        let line = |source: &Source| source.command_line("get", &["a b".to_owned(), "--arg".to_owned()]);
        assert_eq!(line(&Source::Folder(HERE.into())), "promptshelf get 'a b' --arg");
        assert_eq!(line(&Source::Folder("my prompts".into())), "promptshelf get 'my prompts' 'a b' --arg");
        assert_eq!(line(&Source::Folder("-x".into())), "promptshelf get ./-x 'a b' --arg");
        assert_eq!(
            line(&Source::Server(Endpoint::url("https://example.com/mcp?a=1"))),
            "promptshelf get 'https://example.com/mcp?a=1' 'a b' --arg"
        );
        let command = Source::Server(Endpoint::command(["npx", "-y", "$x"]));
        assert_eq!(line(&command), "promptshelf get 'a b' --arg -- npx -y '$x'");
        let configured = Source::Configured { name: "mine".to_owned(), endpoint: Endpoint::command(["x"]) };
        assert_eq!(line(&configured), "promptshelf get --server mine 'a b' --arg");
    }
}
