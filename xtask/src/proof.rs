//! Parts of `cargo xtask nightly` that try to refute the program: they could go on for ever, and `--minutes` ends them. And the
//! page with the figures of a night.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};

use crate::{prepare::install_postgres, repository::Repository, terminal::Program};

fn folder(repository: &Repository) -> PathBuf {
    repository.target().join("nightly")
}

/// Forgets the figures of the night before.
pub(crate) fn begin(repository: &Repository) -> Result<()> {
    let folder = folder(repository);
    fs::create_dir_all(&folder).context("target/nightly cannot be written")?;
    fs::write(folder.join("figures.txt"), "").context("target/nightly cannot be written")
}

/// Writes `target/nightly/report.md`.
pub(crate) fn report(repository: &Repository, has_passed: bool) -> Result<()> {
    let folder = folder(repository);
    let figures = fs::read_to_string(folder.join("figures.txt")).unwrap_or_default();
    let commit = Program::new("git", &repository.root).args(&["log", "-1", "--format=%h of %cs"]).read()?;
    let outcome = if has_passed { "Every part passed." } else { "A part failed: its log names the test or the seed." };
    let mut page = format!("# Nightly run of {}\n\n{outcome}\n\n| part | figures |\n|---|---|\n", commit.trim());
    for line in figures.lines() {
        let (part, figures) = line.split_once(": ").unwrap_or(("", line));
        page.push_str(&format!("| {part} | {figures} |\n"));
    }
    let path = folder.join("report.md");
    fs::write(&path, page).context("target/nightly cannot be written")?;
    println!("wrote {}", path.display());
    Ok(())
}

/// A program whose tests add their figures to the report.
fn cargo(repository: &Repository, words: &str) -> Program {
    let figures = folder(repository).join("figures.txt");
    let words: Vec<&str> = words.split(' ').collect();
    Program::cargo(&repository.root).args(&words).env("FIGURES", &figures.to_string_lossy())
}

/// Days since 1970, so that each night has other seeds.
fn seed() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (now.as_secs() / 86_400).to_string()
}

/// Runs 20,000 sequences of operations on a store and on the reference model.
pub(crate) fn model(repository: &Repository) -> Result<()> {
    install_postgres(repository)?;
    // Optimized, the same time has about five times as many.
    let tests = cargo(repository, "test --release --package promptshelf-store --test it sequences::");
    let tests = tests.env("MODEL_SEED", &seed()).env("MODEL_SEQUENCES", "7000");
    match repository.minutes {
        Some(minutes) => tests.env("MODEL_MINUTES", &minutes.to_string()).run_tests(),
        None => tests.run_tests(),
    }
}

/// Lets every statement of every operation of a store fail in each way.
pub(crate) fn statements(repository: &Repository) -> Result<()> {
    install_postgres(repository)?;
    let tests = cargo(repository, "test --release --package promptshelf-store --test it statements::");
    tests.env("FAULTS", "1").run_tests()
}
