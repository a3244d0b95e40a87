//! Paths and files of this repository.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::terminal::Program;

/// The texts of the repository: path from the root, with `/`, to text.
pub(crate) type Texts = BTreeMap<String, String>;

/// The work tree, and its description by cargo.
pub(crate) struct Repository {
    /// The folder of the workspace.
    pub(crate) root: PathBuf,
    /// Output of `cargo metadata` for the crates of the workspace.
    pub(crate) metadata: Value,
    /// How long each part of `nightly` that could go on for ever takes; `None` stands for a night.
    pub(crate) minutes: Option<u64>,
}

impl Repository {
    /// Finds the workspace that this crate belongs to.
    pub(crate) fn find() -> Result<Repository> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.parent().context("xtask lies in the workspace")?.to_owned();
        let printed = Program::cargo(&root).args(&["metadata", "--no-deps", "--format-version", "1"]).read()?;
        let metadata = serde_json::from_str(&printed).context("cargo metadata printed no JSON")?;
        Ok(Repository { root, metadata, minutes: None })
    }

    /// Returns the binary as `cargo test` builds it: with the same profile and features, so that nothing is built
    /// twice.
    pub(crate) fn binary(&self) -> PathBuf {
        self.target().join("debug").join(format!("promptshelf{}", std::env::consts::EXE_SUFFIX))
    }

    /// Returns cargo's target folder.
    pub(crate) fn target(&self) -> PathBuf {
        PathBuf::from(self.metadata["target_directory"].as_str().unwrap_or("target"))
    }

    /// Returns the folder of the official clients and suites.
    pub(crate) fn peers(&self) -> PathBuf {
        self.root.join("tests/peers")
    }

    /// Returns the folder of the page's tests.
    pub(crate) fn web(&self) -> PathBuf {
        self.root.join("tests/web")
    }

    /// Reads the texts of the repository: path from the root, with `/`, to text. Files that are not UTF-8 are omitted.
    pub(crate) fn texts(&self) -> Result<Texts> {
        // New files count before they are committed, so that a rule fails in time.
        let listed = Program::new("git", &self.root)
            .when_missing("Install git and start again.")
            .args(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .read()?;
        let mut texts = BTreeMap::new();
        for path in listed.split_terminator('\0') {
            let Ok(bytes) = fs::read(self.root.join(path)) else { continue };
            if let Ok(text) = String::from_utf8(bytes) {
                texts.insert(path.to_owned(), text);
            }
        }
        Ok(texts)
    }
}
