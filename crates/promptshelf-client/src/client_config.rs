//! Servers that are configured for other MCP clients, by name: `.mcp.json` and `~/.claude.json` (Claude Code),
//! `.vscode/mcp.json` and the user's `mcp.json` (VS Code). These files are only read.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{endpoint::Endpoint, error::ClientError};

/// The largest configuration file that is read, in bytes. Claude Code keeps its history in the same file.
const MAX_BYTES: u64 = 64 << 20;

/// A server from the configuration of another MCP client.
///
/// ```no_run
/// use promptshelf_client::ConfiguredServer;
///
/// for server in ConfiguredServer::all() {
///     println!("{} ({})", server.name, server.file.display());
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConfiguredServer {
    /// Its name in the configuration.
    pub name: String,
    /// The configuration file.
    pub file: PathBuf,
    /// The owner of the file.
    pub scope: ConfigScope,
    entry: Value,
    dialect: Dialect,
    folder: PathBuf,
}

/// The owner of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigScope {
    /// A file in the user's home, such as `~/.claude.json`.
    User,
    /// A file of a project, which anyone who writes to the project can change: `.mcp.json`, `.vscode/mcp.json`.
    Project,
}

impl Endpoint {
    /// Looks up a server by its name in the configuration of other clients ([`ConfiguredServer`]).
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidEndpoint`] if no server has this name, its entry cannot be used, or it
    /// [requires consent](ConfiguredServer::requires_consent).
    pub fn configured(name: &str) -> Result<Endpoint, ClientError> {
        let server = ConfiguredServer::find(name)?;
        if server.requires_consent() {
            return Err(server.unusable("requires the user's consent, because the file is part of a project"));
        }
        server.endpoint()
    }

    /// Parses one word: an `http://` or `https://` URL, or the name of a [configured](Endpoint::configured) server.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidEndpoint`] if it is neither.
    pub fn parse(word: &str) -> Result<Endpoint, ClientError> {
        if word.starts_with("https://") || word.starts_with("http://") {
            return Ok(Endpoint::url(word));
        }
        Endpoint::configured(word)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Claude,
    VsCode,
}

impl ConfiguredServer {
    /// Returns the servers that are configured for the current folder: those of the user before those of the project,
    /// so that a project cannot replace a server of the user, and nearer files of a project first. Missing and
    /// malformed files are skipped.
    #[must_use]
    pub fn all() -> Vec<ConfiguredServer> {
        let here = env::current_dir().unwrap_or_default();
        ConfiguredServer::visible_from(&here, env::home_dir().as_deref())
    }

    /// Returns the first server with a name.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidEndpoint`] if no server has this name.
    pub fn find(name: &str) -> Result<ConfiguredServer, ClientError> {
        let all = ConfiguredServer::all();
        if let Some(server) = all.iter().find(|server| server.name == name) {
            return Ok(server.clone());
        }
        let mut names: Vec<&str> = all.iter().map(|server| server.name.as_str()).collect();
        names.dedup();
        Err(ClientError::InvalidEndpoint(match names.as_slice() {
            [] => format!("no server is named {name}: no client configuration was found"),
            names => format!("no server is named {name}: the configured servers are {}", names.join(", ")),
        }))
    }

    fn visible_from(here: &Path, home: Option<&Path>) -> Vec<ConfiguredServer> {
        use ConfigScope::{Project, User};
        use Dialect::{Claude, VsCode};

        let mut all = Vec::new();
        if let Some(home) = home {
            let claude = home.join(".claude.json");
            for project in here.ancestors() {
                let name = project.display().to_string();
                all.extend(read(&claude, (User, Claude), project, &["projects", &name, "mcpServers"]));
            }
            all.extend(read(&claude, (User, Claude), here, &["mcpServers"]));
            for folder in [".config/Code/User", "Library/Application Support/Code/User", "AppData/Roaming/Code/User"] {
                all.extend(read(&home.join(folder).join("mcp.json"), (User, VsCode), here, &["servers"]));
            }
        }
        for folder in project_folders(here) {
            all.extend(read(&folder.join(".mcp.json"), (Project, Claude), folder, &["mcpServers"]));
            all.extend(read(&folder.join(".vscode/mcp.json"), (Project, VsCode), folder, &["servers"]));
        }
        all
    }

    /// Returns whether the user has to agree before the server is used: a project's file names the server, and it
    /// starts a command or sends values of the environment.
    #[must_use]
    pub fn requires_consent(&self) -> bool {
        self.scope == ConfigScope::Project && (!self.entry["command"].is_null() || self.content().contains("${"))
    }

    /// Returns the entry as JSON on one line, without replacing placeholders: the content to which a user consents.
    #[must_use]
    pub fn content(&self) -> String {
        self.entry.to_string()
    }

    /// Returns the endpoint, with placeholders replaced.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidEndpoint`] if the entry has neither a command nor a URL, or refers to a value that is not
    /// set.
    pub fn endpoint(&self) -> Result<Endpoint, ClientError> {
        let entry = &self.entry;
        if let Some(command) = entry["command"].as_str() {
            let mut line = vec![self.expand(command)?];
            for argument in entry["args"].as_array().into_iter().flatten() {
                line.push(self.expand(argument.as_str().unwrap_or_default())?);
            }
            let folder = match entry["cwd"].as_str() {
                Some(folder) => Some(self.folder.join(self.expand(folder)?)),
                None => Some(self.folder.clone()).filter(|folder| folder.is_dir()),
            };
            return Ok(Endpoint::Command { line, environment: self.pairs(&entry["env"])?, folder });
        }
        if let Some(url) = entry["url"].as_str() {
            return Ok(Endpoint::Url { url: self.expand(url)?, headers: self.pairs(&entry["headers"])? });
        }
        Err(self.unusable("has neither `command` nor `url`"))
    }

    fn pairs(&self, object: &Value) -> Result<BTreeMap<String, String>, ClientError> {
        let pairs = object.as_object().into_iter().flatten();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        pairs.map(|(name, value)| Ok((name.clone(), self.expand(&text(value))?))).collect()
    }

    fn expand(&self, text: &str) -> Result<String, ClientError> {
        let mut whole = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            whole.push_str(before);
            let Some((name, after)) = after.split_once('}') else {
                whole.push_str("${");
                rest = after;
                continue;
            };
            whole.push_str(&self.value_of(name)?);
            rest = after;
        }
        whole.push_str(rest);
        Ok(whole)
    }

    fn value_of(&self, name: &str) -> Result<String, ClientError> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let missing = |name: &str| self.unusable(&format!("needs the environment variable {name}"));
        match self.dialect {
            Dialect::Claude => match name.split_once(":-") {
                Some((name, default)) => Ok(variable(name).unwrap_or_else(|| default.to_owned())),
                None => variable(name).ok_or_else(|| missing(name)),
            },
            Dialect::VsCode => match name.split_once(':') {
                Some(("env", name)) => variable(name).ok_or_else(|| missing(name)),
                Some(("input", input)) => {
                    Err(self.unusable(&format!("needs the input {input}, which only VS Code can request")))
                }
                _ if matches!(name, "workspaceFolder" | "cwd") => Ok(self.folder.display().to_string()),
                _ if name == "userHome" => Ok(env::home_dir().unwrap_or_default().display().to_string()),
                _ => Err(self.unusable(&format!("uses ${{{name}}}, which only VS Code can replace"))),
            },
        }
    }

    fn unusable(&self, reason: &str) -> ClientError {
        ClientError::InvalidEndpoint(format!("the server {} in {} {reason}", self.name, self.file.display()))
    }
}

/// Returns this folder and its parents up to the root of the repository. Outside of a repository, a parent counts as
/// long as it has the same owner and only the owner can write to it: in a shared folder, as for temporary files, another
/// user may have placed a file whose commands would be started.
fn project_folders(here: &Path) -> Vec<&Path> {
    match here.ancestors().position(|folder| folder.join(".git").exists()) {
        Some(root) => here.ancestors().take(root + 1).collect(),
        None => here.ancestors().take_while(|folder| *folder == here || is_of_same_owner(folder, here)).collect(),
    }
}

#[cfg(unix)]
fn is_of_same_owner(folder: &Path, here: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    const WRITABLE_BY_OTHERS: u32 = 0o022;
    match (fs::metadata(folder), fs::metadata(here)) {
        (Ok(folder), Ok(here)) => folder.uid() == here.uid() && folder.mode() & WRITABLE_BY_OTHERS == 0,
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_of_same_owner(_: &Path, _: &Path) -> bool {
    false
}

fn read(file: &Path, kind: (ConfigScope, Dialect), folder: &Path, place: &[&str]) -> Vec<ConfiguredServer> {
    let small = fs::metadata(file).is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES);
    let Some(text) = small.then(|| fs::read_to_string(file).ok()).flatten() else { return Vec::new() };
    let Ok(whole) = serde_json::from_str::<Value>(&without_comments(&text)) else { return Vec::new() };
    let (scope, dialect) = kind;
    let servers = place.iter().fold(&whole, |value, key| &value[*key]);
    let server = |(name, entry): (&String, &Value)| ConfiguredServer {
        name: name.clone(),
        file: file.to_owned(),
        scope,
        entry: entry.clone(),
        dialect,
        folder: folder.to_owned(),
    };
    servers.as_object().into_iter().flatten().map(server).collect()
}

fn without_comments(text: &str) -> String {
    let mut json = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut in_string = false;
    while let Some(c) = characters.next() {
        match (in_string, c, characters.peek()) {
            (true, '\\', _) => {
                json.push(c);
                json.extend(characters.next());
            }
            (_, '"', _) => {
                in_string = !in_string;
                json.push(c);
            }
            (false, '/', Some('/')) => while characters.next_if(|c| *c != '\n').is_some() {},
            (false, '/', Some('*')) => {
                let mut before = '\0';
                characters.next();
                for c in characters.by_ref() {
                    if (before, c) == ('*', '/') {
                        break;
                    }
                    before = c;
                }
            }
            (false, ']' | '}', _) => {
                json.truncate(json.trim_end().len());
                if json.ends_with(',') {
                    json.pop();
                }
                json.push(c);
            }
            _ => json.push(c),
        }
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> (tempfile::TempDir, Vec<ConfiguredServer>) {
        let folder = tempfile::tempdir().expect("a folder for the test");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a path with a folder")).expect("a folder for the file");
            fs::write(path, text).expect("a file can be written");
        }
        let here = folder.path().join("work/project");
        fs::create_dir_all(&here).expect("a folder for the project");
        fs::create_dir_all(folder.path().join("work/.git")).expect("a folder for the repository");
        let all = ConfiguredServer::visible_from(&here, Some(&folder.path().join("home")));
        (folder, all)
    }

    #[test]
    fn servers_of_every_client_are_found() {
        let (folder, all) = found(&[
            ("work/.mcp.json", r#"{"mcpServers": {"one": {"command": "npx", "args": ["${NOT_SET_HERE:-b}"]}}}"#),
            (
                "work/project/.vscode/mcp.json",
                "{ // comment\n \"servers\": {\"two\": {\"url\": \"https://example.com/mcp\",},}, /* end */ }",
            ),
            (".mcp.json", r#"{"mcpServers": {"above": {"command": "above-the-repository"}}}"#),
            ("home/.claude.json", r#"{"mcpServers": {"three": {"type": "http", "url": "https://example.com"}}}"#),
        ]);
        let names: Vec<&str> = all.iter().map(|configured| configured.name.as_str()).collect();
        assert_eq!(names, ["three", "two", "one"]);
        assert_eq!(all[1].endpoint().expect("a valid entry").to_string(), "https://example.com/mcp");
        let Ok(Endpoint::Command { line, folder: runs_in, .. }) = all[2].endpoint() else {
            panic!("expected a command")
        };
        assert_eq!(line, ["npx", "b"]);
        assert_eq!(runs_in, Some(folder.path().join("work")));
    }

    // req: S-76
    #[test]
    fn project_neither_shadows_a_user_server_nor_goes_without_consent() {
        let (_folder, all) = found(&[
            ("work/.mcp.json", r#"{"mcpServers": {"a": {"command": "evil"}, "b": {"url": "https://evil/${TOKEN}"}}}"#),
            ("work/.vscode/mcp.json", r#"{"servers": {"c": {"url": "https://example.com"}}}"#),
            ("home/.claude.json", r#"{"mcpServers": {"a": {"command": "mine"}}}"#),
        ]);
        let facts: Vec<(&str, ConfigScope, bool)> =
            all.iter().map(|server| (server.name.as_str(), server.scope, server.requires_consent())).collect();
        assert_eq!(
            facts,
            [
                ("a", ConfigScope::User, false),
                ("a", ConfigScope::Project, true),
                ("b", ConfigScope::Project, true),
                ("c", ConfigScope::Project, false),
            ]
        );
    }

    #[cfg(unix)]
    #[test]
    fn parents_of_the_same_owner_are_searched_outside_of_a_repository() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().expect("a folder for the test");
        let here = folder.path().join("work/project");
        fs::create_dir_all(&here).expect("a folder for the project");
        let text = r#"{"mcpServers": {"one": {"command": "x"}}}"#;
        fs::write(folder.path().join("work/.mcp.json"), text).expect("a written file");
        let found = || ConfiguredServer::visible_from(&here, None).len();
        let work = folder.path().join("work");
        let set = |mode| fs::set_permissions(&work, fs::Permissions::from_mode(mode)).expect("new permissions");
        set(0o755);
        assert_eq!(found(), 1);
        set(0o777);
        assert_eq!(found(), 0, "others can write there");
    }

    #[test]
    fn missing_values_are_reported() {
        let (_folder, all) = found(&[
            ("work/.mcp.json", r#"{"mcpServers": {"one": {"command": "x", "env": {"A": "${NOT_SET_HERE}"}}}}"#),
            ("work/.vscode/mcp.json", r#"{"servers": {"two": {"url": "https://x/${input:key}"}}}"#),
        ]);
        let errors: Vec<String> =
            all.iter().map(|one| one.endpoint().expect_err("a value is missing").to_string()).collect();
        assert!(errors[0].ends_with("needs the environment variable NOT_SET_HERE"), "{errors:?}");
        assert!(errors[1].contains("needs the input key"), "{errors:?}");
    }
}
