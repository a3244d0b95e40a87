//! A bare git repository, and a second one to make commits in. Needs the program `git`.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// A repository on this machine. Removed on drop.
#[derive(Debug)]
pub struct Repository {
    folder: TempDir,
}

impl Repository {
    /// Creates an empty repository, with the object format `sha1` or `sha256`.
    #[must_use]
    pub fn empty(format: &str) -> Repository {
        let repository = Repository { folder: tempfile::tempdir().expect("a temporary folder") };
        let format = format!("--object-format={format}");
        let common = ["init", "--quiet", "--initial-branch=main", &format];
        git(repository.path(), &[&common[..], &["--bare", "bare.git"]].concat(), b"");
        git(repository.path(), &[&common[..], &["work"]].concat(), b"");
        repository
    }

    /// Creates a repository with one commit on the branch `main`.
    #[must_use]
    pub fn new(files: &[(&str, &str)]) -> Repository {
        let repository = Repository::empty("sha1");
        repository.commit(files);
        repository
    }

    /// Returns the folder around the repositories, for other files of a test.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of the bare repository.
    #[must_use]
    pub fn bare(&self) -> PathBuf {
        self.path().join("bare.git")
    }

    /// Returns the folder in which commits are made.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.path().join("work")
    }

    /// Returns the address of the bare repository as a library. `fragment` is empty, or `#REF:PATH`.
    #[must_use]
    pub fn address(&self, fragment: &str) -> String {
        format!("git+file://{}{fragment}", self.bare().display())
    }

    /// Runs git in the folder in which commits are made, and returns its output without the last line break.
    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.work(), arguments, b"")
    }

    /// Writes files, commits all changes, and pushes them to `main`; returns the id of the commit.
    pub fn commit(&self, files: &[(&str, &str)]) -> String {
        for (path, text) in files {
            let path = self.work().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a new folder");
            fs::write(path, text).expect("a new file");
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message=change"]);
        self.push("HEAD:refs/heads/main");
        self.git(&["rev-parse", "HEAD"])
    }

    /// Pushes to the bare repository, also backwards.
    pub fn push(&self, target: &str) {
        let bare = self.bare().display().to_string();
        self.git(&["push", "--quiet", "--force", &bare, target]);
    }

    /// Writes a blob, and returns its id.
    pub fn blob(&self, content: &[u8]) -> String {
        git(&self.work(), &["hash-object", "-w", "--stdin"], content)
    }

    /// Writes a tree, also one that git would not make, and returns its id. Entries have a mode, a name and an id.
    pub fn tree(&self, entries: &[(&str, &[u8], &str)]) -> String {
        let mut tree = Vec::new();
        for (mode, name, id) in entries {
            tree.extend(format!("{mode} ").bytes());
            tree.extend(*name);
            tree.push(0);
            let digits = |at: usize| u8::from_str_radix(&id[at..at + 2], 16).expect("hexadecimal digits");
            tree.extend((0..id.len()).step_by(2).map(digits));
        }
        git(&self.work(), &["hash-object", "-w", "-t", "tree", "--literally", "--stdin"], &tree)
    }

    /// Commits a tree, and pushes it to `main`; returns the id of the commit.
    pub fn commit_tree(&self, tree: &str) -> String {
        let commit = self.git(&["commit-tree", "-m", "odd", tree]);
        self.push(&format!("{commit}:refs/heads/main"));
        commit
    }
}

/// Runs git in a folder, without any configuration of this machine, and returns its output without the last line break.
pub fn git(folder: &Path, arguments: &[&str], input: &[u8]) -> String {
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
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("git can be started");
    // Commands that read nothing may have ended already.
    child.stdin.take().expect("a pipe").write_all(input).ok();
    let output = child.wait_with_output().expect("git ends");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8").trim_end().to_owned()
}
