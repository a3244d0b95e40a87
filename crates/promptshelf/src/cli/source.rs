//! The origin of prompts that a command uses: a library on this machine, or an MCP server.

use std::{
    env,
    ffi::OsStr,
    fmt,
    io::Write,
    path::{Path, PathBuf},
};

use promptshelf_client::{ConfigScope, ConfiguredServer, Endpoint};

use crate::{
    command_line::{self, shell_word},
    exit::{Exit, Failure},
    launcher, library,
    output::{Output, note, visible_line},
    state::{self, digest},
    terminal,
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
        if path.exists() || is_path(text) || library::is_address(path) {
            return folder();
        }
        if let Some(failure) = unknown_scheme(text) {
            return Err(failure);
        }
        let servers = ConfiguredServer::all();
        if servers.iter().any(|server| server.name == text) {
            Source::configured(text)
        } else {
            Err(unknown(text, &servers))
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

/// Returns the failure for a URL whose scheme is none of a library.
pub(crate) fn unknown_scheme(word: &str) -> Option<Failure> {
    let (scheme, _) = word.split_once("://")?;
    let is_scheme = scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let is_known = is_url(word) || library::is_address(Path::new(word));
    let message = format!("`{word}` is not the address of a library: `{scheme}://` is unknown here");
    (is_scheme && !scheme.is_empty() && !is_known).then(|| {
        Failure::new(Exit::Usage, message).help(
            "a library is a folder, a git repository (git+https://…), a store (sqlite:FILE or postgres://…), or the URL of a \
             server (https://…)",
        )
    })
}

/// Returns whether a word can only be a path.
pub(crate) fn is_path(word: &str) -> bool {
    word.is_empty() || word.starts_with('.') || word.contains(std::path::is_separator) && !word.contains("://")
}

/// Returns the path of the file of a prompt in the current folder.
pub(crate) fn own_prompt(word: &str) -> Option<String> {
    let library = library::open(Path::new(HERE)).ok()?;
    library.catalog().find(word).map(|prompt| prompt.source().path.clone())
}

fn unknown(word: &str, servers: &[ConfiguredServer]) -> Failure {
    let mut names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    names.dedup();
    let help = match (own_prompt(word), names.as_slice()) {
        (Some(_), _) => {
            format!("`{word}` is a prompt of this folder; for it, write `promptshelf get {}`", shell_word(word))
        }
        (None, []) => format!("no server is named {word} either: no client configuration was found"),
        (None, names) => format!("no server is named {word} either: the configured servers are {}", names.join(", ")),
    };
    let message = format!("there is no folder {word}");
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

// Servers in the configuration of other MCP clients, and the user's consent to those of a project.
// A project's file can start any command, so the user agrees to each entry once. The consent is bound to the content
// of the entry, its name and its file.

/// A variable with the digests of allowed entries, separated by commas, for programs without a terminal.
const ALLOWED: &str = "PROMPTSHELF_ALLOW_SERVER";

/// Looks up a server by its name. Asks for consent to an entry of a project, and shows the file of the name.
pub(crate) fn configured(name: &str) -> Result<Endpoint, Failure> {
    let server = ConfiguredServer::find(name)?;
    if server.scope == ConfigScope::User {
        note_others(&server);
    }
    if server.requires_consent() {
        consent(&server)?;
    }
    let endpoint = server.endpoint()?;
    let mut stderr = Output::stderr();
    if stderr.terminal {
        let origin = format!("{} is configured in {}", server.name, server.file.display());
        writeln!(stderr.out, "{}", visible_line(&origin)).ok();
    }
    Ok(endpoint)
}

/// Notes that a project configures another server with the name of a server of the user.
fn note_others(server: &ConfiguredServer) {
    let all = ConfiguredServer::all();
    let same_name = all.iter().filter(|other| other.name == server.name && other.scope == ConfigScope::Project);
    let notes: Vec<String> = same_name
        .filter(|other| other.content() != server.content())
        .map(|other| {
            let (name, used, other) = (&server.name, server.file.display(), other.file.display());
            format!("{name} is the server in {used}; the one in {other} has the same name and is not used")
        })
        .collect();
    note(&notes);
}

/// Returns once the user has agreed to the entry, now or earlier.
fn consent(server: &ConfiguredServer) -> Result<(), Failure> {
    let (file, content) = (server.file.display().to_string(), server.content());
    let key = digest(&format!("{file}\0{}\0{content}", server.name));
    let allowed = env::var(ALLOWED).unwrap_or_default();
    let record = state::folder().map(|folder| folder.join("allowed-servers").join(&key));
    if allowed.split(',').any(|allowed| allowed.trim() == key) || record.as_ref().is_some_and(|record| record.exists())
    {
        return Ok(());
    }
    if !terminal::is_interactive() {
        let reason = format!(
            "the server {} in {file} is configured by a project, and you have not allowed it: {content}",
            server.name
        );
        let help = format!("run this once at a terminal to be asked, or set {ALLOWED}={key}");
        return Err(Failure::new(Exit::Usage, reason).help(help));
    }
    let mut stderr = Output::stderr();
    let lines = [
        format!("The server {} is configured by a project, in {file}:", server.name),
        format!("  {content}"),
        "It can start a command, or send values of your environment.".to_owned(),
    ];
    for line in lines {
        writeln!(stderr.out, "{}", visible_line(&line)).ok();
    }
    drop(stderr);
    if !terminal::agree("Allow it until this entry changes? [y/N] ") {
        return Err(Failure::new(Exit::Declined, format!("the server {} was not allowed", server.name)));
    }
    // Without a state folder the question comes back.
    if let Some(record) = record {
        state::write_new(&record).ok();
    }
    Ok(())
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
