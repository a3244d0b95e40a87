//! Servers by name, out of the configuration that a person keeps for other
//! clients: `.mcp.json` and `~/.claude.json` (Claude Code), `.vscode/mcp.json`
//! and the user's `mcp.json` (VS Code).
//!
//! Nothing is ever written there.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use super::{ClientError, Target};

/// The largest configuration that is read, in bytes. Claude Code keeps its
/// history in the same file, which can be large.
const MOST_BYTES: u64 = 64 << 20;

/// A server that some client's configuration names.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Configured {
    /// Its name there.
    pub name: String,
    /// The file that names it.
    pub file: PathBuf,
    /// What it is.
    entry: Value,
    /// Which client's placeholders its values use.
    dialect: Dialect,
    /// The folder that the configuration belongs to.
    folder: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// `${NAME}` and `${NAME:-otherwise}`.
    Claude,
    /// `${env:NAME}`, `${workspaceFolder}`, `${userHome}`, `${input:…}`.
    VsCode,
}

impl Configured {
    /// Every server that can be named here, nearest configuration first. Files
    /// that are not there or cannot be understood are passed over.
    #[must_use]
    pub fn all() -> Vec<Configured> {
        let here = env::current_dir().unwrap_or_default();
        Configured::seen_from(&here, env::home_dir().as_deref())
    }

    fn seen_from(here: &Path, home: Option<&Path>) -> Vec<Configured> {
        let mut all = Vec::new();
        for folder in project(here) {
            all.extend(read(&folder.join(".mcp.json"), Dialect::Claude, folder, &[&["mcpServers"]]));
            all.extend(read(&folder.join(".vscode/mcp.json"), Dialect::VsCode, folder, &[&["servers"]]));
        }
        let Some(home) = home else { return all };
        let projects: Vec<String> = here.ancestors().map(|folder| folder.display().to_string()).collect();
        let claude = home.join(".claude.json");
        for project in &projects {
            all.extend(read(&claude, Dialect::Claude, Path::new(project), &[&["projects", project, "mcpServers"]]));
        }
        all.extend(read(&claude, Dialect::Claude, here, &[&["mcpServers"]]));
        for folder in [".config/Code/User", "Library/Application Support/Code/User", "AppData/Roaming/Code/User"] {
            all.extend(read(&home.join(folder).join("mcp.json"), Dialect::VsCode, here, &[&["servers"]]));
        }
        all
    }

    /// The target with this name.
    pub(super) fn find(name: &str) -> Result<Target, ClientError> {
        let all = Configured::all();
        match all.iter().find(|configured| configured.name == name) {
            Some(configured) => configured.target(),
            None => {
                let mut names: Vec<&str> = all.iter().map(|configured| configured.name.as_str()).collect();
                names.dedup();
                let known = match names.as_slice() {
                    [] => "no client's configuration here names any server".to_owned(),
                    names => format!("the servers with names are {}", names.join(", ")),
                };
                Err(ClientError::Target(known))
            }
        }
    }

    /// What to connect to.
    ///
    /// # Errors
    ///
    /// When the entry is neither a command nor an address, or needs a value
    /// that is not set.
    pub fn target(&self) -> Result<Target, ClientError> {
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
            return Ok(Target::Command { line, environment: self.pairs(&entry["env"])?, folder });
        }
        if let Some(url) = entry["url"].as_str() {
            return Ok(Target::Url { url: self.expand(url)?, headers: self.pairs(&entry["headers"])? });
        }
        Err(self.unusable("is neither a command nor an address"))
    }

    fn pairs(&self, object: &Value) -> Result<BTreeMap<String, String>, ClientError> {
        let pairs = object.as_object().into_iter().flatten();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        pairs.map(|(name, value)| Ok((name.clone(), self.expand(&text(value))?))).collect()
    }

    /// A text with its `${…}` filled in.
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
                Some((name, otherwise)) => Ok(variable(name).unwrap_or_else(|| otherwise.to_owned())),
                None => variable(name).ok_or_else(|| missing(name)),
            },
            Dialect::VsCode => match name.split_once(':') {
                Some(("env", name)) => variable(name).ok_or_else(|| missing(name)),
                Some(("input", input)) => Err(self.unusable(&format!("asks for the input {input} in VS Code"))),
                _ if matches!(name, "workspaceFolder" | "cwd") => Ok(self.folder.display().to_string()),
                _ if name == "userHome" => Ok(env::home_dir().unwrap_or_default().display().to_string()),
                _ => Err(self.unusable(&format!("uses ${{{name}}}, which only VS Code knows"))),
            },
        }
    }

    fn unusable(&self, why: &str) -> ClientError {
        ClientError::Target(format!("the server {} of {} {why}", self.name, self.file.display()))
    }
}

/// From this folder up to the root of its repository. Above it, and where there
/// is no repository, somebody else may have put a file, as in a shared folder
/// for temporary files; what it names would be started.
fn project(here: &Path) -> Vec<&Path> {
    let root = here.ancestors().position(|folder| folder.join(".git").exists());
    here.ancestors().take(root.map_or(1, |root| root + 1)).collect()
}

fn read(file: &Path, dialect: Dialect, folder: &Path, places: &[&[&str]]) -> Vec<Configured> {
    let small = fs::metadata(file).is_ok_and(|file| file.is_file() && file.len() <= MOST_BYTES);
    let Some(text) = small.then(|| fs::read_to_string(file).ok()).flatten() else { return Vec::new() };
    let Ok(whole) = serde_json::from_str::<Value>(&without_comments(&text)) else { return Vec::new() };
    let mut found = Vec::new();
    for place in places {
        let servers = place.iter().fold(&whole, |value, key| &value[*key]);
        let entries = servers.as_object().map(Map::iter).into_iter().flatten();
        found.extend(entries.map(|(name, entry)| Configured {
            name: name.clone(),
            file: file.to_owned(),
            entry: entry.clone(),
            dialect,
            folder: folder.to_owned(),
        }));
    }
    found
}

/// VS Code takes comments and commas at the end of lists in its JSON.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut in_string = false;
    while let Some(c) = characters.next() {
        match (in_string, c, characters.peek()) {
            (true, '\\', _) => {
                kept.push(c);
                kept.extend(characters.next());
            }
            (_, '"', _) => {
                in_string = !in_string;
                kept.push(c);
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
                kept.truncate(kept.trim_end().len());
                if kept.ends_with(',') {
                    kept.pop();
                }
                kept.push(c);
            }
            _ => kept.push(c),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> (tempfile::TempDir, Vec<Configured>) {
        let folder = tempfile::tempdir().expect("a folder for the test");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("a folder for the file");
            fs::write(path, text).expect("a file can be written");
        }
        let here = folder.path().join("work/project");
        fs::create_dir_all(&here).expect("a folder for the project");
        fs::create_dir_all(folder.path().join("work/.git")).expect("a folder for the repository");
        let all = Configured::seen_from(&here, Some(&folder.path().join("home")));
        (folder, all)
    }

    #[test]
    fn servers_are_found_in_every_clients_words() {
        let (folder, all) = found(&[
            ("work/.mcp.json", r#"{"mcpServers": {"one": {"command": "npx", "args": ["${NOT_SET_HERE:-b}"]}}}"#),
            (
                "work/project/.vscode/mcp.json",
                "{ // comment\n \"servers\": {\"two\": {\"url\": \"https://example.com/mcp\",},}, /* end */ }",
            ),
            (".mcp.json", r#"{"mcpServers": {"above": {"command": "somebody-elses"}}}"#),
            ("home/.claude.json", r#"{"mcpServers": {"three": {"type": "http", "url": "https://example.com"}}}"#),
        ]);
        let names: Vec<&str> = all.iter().map(|configured| configured.name.as_str()).collect();
        assert_eq!(names, ["two", "one", "three"]);
        assert_eq!(all[0].target().expect("it is one").to_string(), "https://example.com/mcp");
        let Ok(Target::Command { line, folder: runs_in, .. }) = all[1].target() else { panic!("it is a command") };
        assert_eq!(line, ["npx", "b"]);
        assert_eq!(runs_in, Some(folder.path().join("work")));
    }

    #[test]
    fn what_cannot_be_filled_in_is_said() {
        let (_folder, all) = found(&[
            ("work/.mcp.json", r#"{"mcpServers": {"one": {"command": "x", "env": {"A": "${NOT_SET_HERE}"}}}}"#),
            ("work/.vscode/mcp.json", r#"{"servers": {"two": {"url": "https://x/${input:key}"}}}"#),
        ]);
        let said: Vec<String> =
            all.iter().map(|one| one.target().expect_err("it needs something").to_string()).collect();
        assert!(said[0].ends_with("needs the environment variable NOT_SET_HERE"), "{said:?}");
        assert!(said[1].ends_with("asks for the input key in VS Code"), "{said:?}");
    }
}
