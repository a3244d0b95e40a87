//! Configuration files in which clients list their MCP servers, and the shape of an entry in them.
//!
//! The files and shapes of all clients are data in one table, with source and date. Reading and writing the files is
//! up to the caller.

use serde_json::{Map, Value, json};

use super::Client;

mod table;

pub use table::CONFIGURATIONS;

/// The configuration file of a client, and the entry of an MCP server in it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Configuration {
    /// The [`Client::id`].
    pub client: &'static str,
    /// The syntax of the file.
    pub format: ConfigurationFormat,
    /// Places of the mapping with the entries, as keys from the root. The first one that a file has is used; a file
    /// without any of them gets the last one.
    pub containers: &'static [&'static [&'static str]],
    /// The user's file.
    pub user: UserFiles,
    /// The file of a project, below its folder.
    pub project: Option<&'static str>,
    /// The prefix of paths inside the project, such as `${workspaceFolder}/`; empty if the client starts servers in the
    /// project's folder.
    pub project_prefix: &'static str,
    /// The members of an entry that starts a server.
    pub stdio: &'static [(&'static str, Part)],
    /// The members of an entry with the URL of a server; empty if the file cannot have one.
    pub url: &'static [(&'static str, Part)],
    /// The reference to an environment variable with the token for a URL, if the client has one.
    pub token: Option<TokenReference>,
    /// An action of the user after a change, or in place of one that the file does not support.
    pub notice: &'static str,
    /// The page or file that shows the format.
    pub source: &'static str,
    /// The month in which the source was read, as `2026-11`.
    pub read: &'static str,
}

/// Paths of a user's file, by system; the first existing one is used, otherwise the first one is created. They begin
/// with `~/` (the home folder), `$CONFIG/` (`$XDG_CONFIG_HOME`, by default `~/.config`) or `$APPDATA/`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct UserFiles {
    /// Paths on Linux and other Unix systems.
    pub unix: &'static [&'static str],
    /// Paths on macOS.
    pub macos: &'static [&'static str],
    /// Paths on Windows.
    pub windows: &'static [&'static str],
}

/// The syntax of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigurationFormat {
    /// JSON; comments and trailing commas are accepted and preserved.
    Json,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

/// A value in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// This text.
    Text(&'static str),
    /// This number.
    Number(u32),
    /// `true`.
    True,
    /// An empty list.
    EmptyList,
    /// An empty mapping.
    EmptyMapping,
    /// A list with the text `*`.
    Everything,
    /// The entry's name.
    Name,
    /// The program to start.
    Program,
    /// The arguments of the program, as a list.
    Arguments,
    /// The program and its arguments, as one list.
    CommandLine,
    /// The server's URL.
    Url,
}

/// A way to name the environment variable that holds a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenReference {
    /// The value of the `Authorization` header in `headers`, with `NAME` for the variable.
    Header(&'static str),
    /// A member of the entry with the variable's name.
    Member(&'static str),
}

/// A server, as an entry names it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfiguredEndpoint {
    /// A program that serves on stdio.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        arguments: Vec<String>,
    },
    /// A server at an address.
    Url {
        /// The URL of its MCP endpoint.
        url: String,
        /// The environment variable with the token for it.
        token_variable: Option<String>,
    },
}

impl ConfiguredEndpoint {
    /// Creates an endpoint that a program serves on stdio.
    #[must_use]
    pub fn command(program: String, arguments: Vec<String>) -> ConfiguredEndpoint {
        ConfiguredEndpoint::Command { program, arguments }
    }

    /// Creates an endpoint at an address.
    #[must_use]
    pub fn url(url: String, token_variable: Option<String>) -> ConfiguredEndpoint {
        ConfiguredEndpoint::Url { url, token_variable }
    }
}

impl Client {
    /// Returns the client's configuration file; `None` if no file format is known.
    #[must_use]
    pub fn configuration(&self) -> Option<&'static Configuration> {
        CONFIGURATIONS.iter().find(|configuration| configuration.client == self.id)
    }
}

impl Configuration {
    /// Returns the entry of a server under a name; `None` if the file cannot have such an entry.
    ///
    /// ```
    /// use promptshelf_author::clients::{ConfiguredEndpoint, find};
    ///
    /// let url = ConfiguredEndpoint::url("https://example.com/mcp".to_owned(), None);
    /// let windsurf = find("windsurf").and_then(|client| client.configuration()).unwrap();
    /// assert_eq!(windsurf.entry("prompts", &url).unwrap()["serverUrl"], "https://example.com/mcp");
    /// let desktop = find("claude-desktop").and_then(|client| client.configuration()).unwrap();
    /// assert!(desktop.entry("prompts", &url).is_none());
    /// ```
    #[must_use]
    pub fn entry(&self, name: &str, endpoint: &ConfiguredEndpoint) -> Option<Value> {
        let members = match endpoint {
            ConfiguredEndpoint::Command { .. } => self.stdio,
            ConfiguredEndpoint::Url { .. } => self.url,
        };
        if members.is_empty() {
            return None;
        }
        let mut entry: Map<String, Value> =
            members.iter().map(|(key, part)| ((*key).to_owned(), part.value(name, endpoint))).collect();
        if let ConfiguredEndpoint::Url { token_variable: Some(variable), .. } = endpoint {
            match self.token? {
                TokenReference::Member(key) => entry.insert(key.to_owned(), variable.as_str().into()),
                TokenReference::Header(value) => {
                    entry.insert("headers".to_owned(), json!({ "Authorization": value.replace("NAME", variable) }))
                }
            };
        }
        Some(Value::Object(entry))
    }
}

impl Part {
    fn value(self, name: &str, endpoint: &ConfiguredEndpoint) -> Value {
        let (program, arguments, url): (&str, &[String], &str) = match endpoint {
            ConfiguredEndpoint::Command { program, arguments } => (program, arguments, ""),
            ConfiguredEndpoint::Url { url, .. } => ("", &[], url),
        };
        match self {
            Part::Text(text) => text.into(),
            Part::Number(number) => number.into(),
            Part::True => true.into(),
            Part::EmptyList => json!([]),
            Part::EmptyMapping => json!({}),
            Part::Everything => json!(["*"]),
            Part::Name => name.into(),
            Part::Program => program.into(),
            Part::Arguments => arguments.into(),
            Part::CommandLine => {
                std::iter::once(program).chain(arguments.iter().map(String::as_str)).collect::<Vec<_>>().into()
            }
            Part::Url => url.into(),
        }
    }
}
