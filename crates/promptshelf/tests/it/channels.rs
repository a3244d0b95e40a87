//! The commands for channels, with the real program on real stores.

mod api;
#[cfg(target_os = "linux")]
mod evaluations;
mod hostile;
mod interrupted;
mod journey;
#[cfg(target_os = "linux")]
mod postgres;
mod promotion;
mod provenance;
mod remote;
mod review;
#[cfg(unix)]
mod tokens;
mod usage;
mod versions;
mod webhooks;

use std::{fs, path::Path, process::Command};

use promptshelf_testkit::folder::Folder;
use serde_json::Value;

use crate::program::{promptshelf, shown};

const HELLO: &str = "---\ndescription: Greets\narguments:\n  - name: name\n    description: Whom to greet\n    required: true\n---\nSay hello to {{ name }}.\n";
const BYE: &str = "---\ndescription: Parts\n---\nSay goodbye.\n";

/// A store, and folders that are published to it.
struct Team {
    folder: Folder,
    store: String,
}

/// The result of a command.
#[derive(Debug)]
struct Ran {
    code: String,
    stdout: String,
    stderr: String,
}

impl Team {
    /// Creates a store in a SQLite file.
    fn new() -> Team {
        let team = Team::without_store();
        team.ok(&["init"]);
        team
    }

    fn without_store() -> Team {
        Team { folder: Folder::empty(), store: "sqlite:team.db".to_owned() }
    }

    /// Creates a store whose channel `production` has the files of the folder `prompts`.
    fn with(files: &[(&str, &str)]) -> Team {
        let team = Team::new();
        team.write("prompts", files);
        team.ok(&["publish", "prompts", "-m", "First", "--as", "ada"]);
        team
    }

    fn write(&self, folder: &str, files: &[(&str, &str)]) {
        fs::create_dir_all(self.path(folder)).expect("a folder");
        for (path, text) in files {
            self.folder.write(&format!("{folder}/{path}"), text);
        }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join(path)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect("a text file")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = promptshelf();
        command.args(words).current_dir(self.folder.path()).env("PROMPTSHELF_STORE", &self.store).env("USER", "ada");
        command
    }

    fn run(&self, words: &[&str]) -> Ran {
        Ran::of(&shown(self.command(words), ""))
    }

    /// Runs a command that succeeds; returns its stdout.
    fn ok(&self, words: &[&str]) -> String {
        let ran = self.run(words);
        assert_eq!(ran.code, "0", "{words:?}\n{}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    /// Runs a command that succeeds, with `--json`.
    fn json(&self, words: &[&str]) -> Value {
        let stdout = self.ok(&[words, &["--json"]].concat());
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{words:?}: {error}\n{stdout}"))
    }

    /// Returns an approval of the present changes of a proposal: `words` begin with its number.
    fn approval(&self, words: &[&str]) -> Vec<String> {
        let digest = self.json(&["proposals", words[0]])["proposal"]["digest"].as_str().map(str::to_owned);
        let digest = digest.expect("a digest");
        let words = ["approve"].iter().chain(words).chain(&["--digest"]).map(|word| (*word).to_owned());
        words.chain([digest]).collect()
    }

    /// Approves the present changes of a proposal.
    fn approve(&self, words: &[&str]) -> Value {
        let words = self.approval(words);
        self.json(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Fails to approve the present changes of a proposal; returns stderr.
    fn approve_fails(&self, code: &str, words: &[&str]) -> String {
        let words = self.approval(words);
        self.fails(code, &words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Runs a command that fails with this exit code; returns its stderr.
    fn fails(&self, code: &str, words: &[&str]) -> String {
        let ran = self.run(words);
        assert_eq!(ran.code, code, "{words:?}\n{}{}", ran.stdout, ran.stderr);
        ran.stderr
    }

    /// Returns the number of the newest revision of a channel.
    fn revision(&self, channel: &str) -> u64 {
        let history = self.json(&["history", "--channel", channel]);
        history["items"].get(0).map_or(0, |revision| revision["number"].as_u64().expect("a number"))
    }

    /// Sets a policy of production.
    fn policy(&self, words: &[&str]) {
        self.ok(&[&["policy", "--channel", "production"], words].concat());
    }
}

impl Ran {
    fn of(shown: &str) -> Ran {
        let (code, rest) = shown.split_once("\n----- stdout -----\n").expect("the exit code");
        let (stdout, stderr) = rest.split_once("----- stderr -----\n").expect("both outputs");
        let code = code.trim_start_matches("exit code: ").to_owned();
        Ran { code, stdout: stdout.to_owned(), stderr: stderr.to_owned() }
    }
}

/// Returns the paths and bytes of all files below a folder, apart from the marker of `pull`.
fn bytes(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            let path = entry.strip_prefix(folder).expect("below the folder").to_string_lossy().into_owned();
            match entry.is_dir() {
                true => folders.push(entry),
                false if path == ".promptshelf-base" => {}
                false => found.push((path, fs::read(entry).expect("a file"))),
            }
        }
    }
    found.sort();
    found
}
