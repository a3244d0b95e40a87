//! A bare repository, and a second one to make commits in.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use promptshelf_git::{GitOptions, GitSource};
use promptshelf_source::{Loader, MemoryFile};
use tempfile::TempDir;

/// A repository on this machine, and a folder for copies.
pub(crate) struct Sample {
    folder: TempDir,
}

impl Sample {
    /// Creates an empty repository.
    pub(crate) fn empty() -> Sample {
        let sample = Sample { folder: tempfile::tempdir().unwrap() };
        let init = |name: &str, more: &[&str]| {
            let mut arguments = vec!["init", "--quiet", "--initial-branch=main"];
            arguments.extend(more);
            git(sample.folder.path(), &[&arguments[..], &[name]].concat(), b"");
        };
        init("bare.git", &["--bare"]);
        init("work", &[]);
        sample
    }

    /// Creates a repository with one commit.
    pub(crate) fn new(files: &[(&str, &str)]) -> Sample {
        let sample = Sample::empty();
        sample.commit(files);
        sample
    }

    pub(crate) fn bare(&self) -> PathBuf {
        self.folder.path().join("bare.git")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs git in the work folder.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(&self.work(), arguments, b"")
    }

    /// Writes files, commits and pushes them; returns the id of the commit.
    pub(crate) fn commit(&self, files: &[(&str, &str)]) -> String {
        for (path, text) in files {
            let path = self.work().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message=change"]);
        self.push("HEAD:refs/heads/main");
        self.git(&["rev-parse", "HEAD"])
    }

    pub(crate) fn push(&self, target: &str) {
        let bare = self.bare();
        self.git(&["push", "--quiet", "--force", bare.to_str().unwrap(), target]);
    }

    /// Pushes a commit with a tree in the form of `git ls-tree`, also one that git would not make.
    pub(crate) fn commit_tree(&self, entries: &[(&str, &[u8], &str)]) -> String {
        let mut tree = Vec::new();
        for (mode, name, id) in entries {
            tree.extend(format!("{mode} ").bytes());
            tree.extend(*name);
            tree.push(0);
            tree.extend((0..id.len()).step_by(2).map(|at| u8::from_str_radix(&id[at..at + 2], 16).unwrap()));
        }
        let arguments = ["hash-object", "-w", "-t", "tree", "--literally", "--stdin"];
        let tree = git(&self.work(), &arguments, &tree);
        let commit = self.git(&["commit-tree", "-m", "odd", &tree]);
        self.push(&format!("{commit}:refs/heads/main"));
        commit
    }

    /// Writes a blob, and returns its id.
    pub(crate) fn blob(&self, text: &[u8]) -> String {
        git(&self.work(), &["hash-object", "-w", "--stdin"], text)
    }

    pub(crate) fn address(&self, fragment: &str) -> String {
        format!("git+file://{}{fragment}", self.bare().display())
    }

    pub(crate) fn options(&self, fragment: &str) -> GitOptions {
        GitOptions::new(self.address(fragment).parse().unwrap(), self.folder.path().join("cache"))
    }

    pub(crate) fn source(&self, fragment: &str) -> GitSource {
        GitSource::new(self.options(fragment)).unwrap()
    }
}

/// Runs git without any configuration of this machine.
pub(crate) fn git(folder: &Path, arguments: &[&str], input: &[u8]) -> String {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
        command.env_remove(name);
    }
    command.current_dir(folder).args(arguments).envs([
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_AUTHOR_NAME", "Ada"),
        ("GIT_AUTHOR_EMAIL", "ada@example.com"),
        ("GIT_COMMITTER_NAME", "Ada"),
        ("GIT_COMMITTER_EMAIL", "ada@example.com"),
    ]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The paths of the served files, with their texts or faults.
pub(crate) fn files(source: &GitSource) -> Vec<(String, String)> {
    let shown = |file: &MemoryFile| match file.fault() {
        Some(fault) => format!("! {fault}"),
        None => String::from_utf8_lossy(file.bytes()).into_owned(),
    };
    source.source().tree().iter().map(|(path, file)| (path.to_owned(), shown(file))).collect()
}

/// The names of the prompts, and the messages of the errors.
pub(crate) fn loaded(source: &GitSource) -> (Vec<String>, Vec<String>) {
    let loader = Loader::open(vec![Box::new(source.source().clone())]).unwrap();
    let names = loader.handle().current().prompts().iter().map(|prompt| prompt.name().to_string()).collect();
    let errors = loader.diagnostics().iter().filter(|found| found.is_error()).map(ToString::to_string).collect();
    (names, errors)
}

pub(crate) fn served(source: &GitSource) -> String {
    source.state().served.unwrap().id
}
