//! `cargo xtask bench`: builds and installs the measured programs, and starts the measurement.
//!
//! The measurements themselves are in `bench/`, a workspace of its own.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{repository::Repository, terminal::Program};

/// Returns the folder where `bench/` is built and its peers are installed.
pub(crate) fn target(repository: &Repository) -> PathBuf {
    repository.target().join("bench")
}

/// Builds a crate of `bench/` with the profile of the measurements.
///
/// # Errors
///
/// When it does not compile.
pub(crate) fn build(repository: &Repository, packages: &[&str]) -> Result<()> {
    let folder = repository.root.join("bench");
    // Not `--locked`: the measured product belongs to this build, and may have a new dependency.
    let mut cargo = Program::cargo(&folder).args(&["build", "--release", "--target-dir"]);
    cargo = cargo.arg(target(repository));
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        // The default linker (lld), like mold, splits the writable data into two segments. valgrind before 3.21 then
        // finds no symbols in some layouts, and callgrind counts nothing. The linker of gcc makes one segment.
        cargo = cargo.env("RUSTFLAGS", "-Clinker-features=-lld");
    }
    packages.iter().fold(cargo, |cargo, package| cargo.arg("--package").arg(package)).run()
}

/// Builds, installs and measures.
///
/// # Errors
///
/// When a program cannot be built, installed or measured.
pub(crate) fn run(
    repository: &Repository,
    quick: bool,
    only: &[String],
    attack_seconds: Option<u64>,
    peers: Option<&[String]>,
) -> Result<()> {
    let peers = peers.map(|peers| peers.iter().filter(|peer| !peer.is_empty()).collect::<Vec<_>>());
    let wanted = |name: &str| peers.as_ref().is_none_or(|peers| peers.iter().any(|peer| *peer == name));
    Program::cargo(&repository.root)
        .args(&["build", "--release", "--locked", "--package", "promptshelf", "--target-dir"])
        .arg(repository.target())
        .run()?;
    build(repository, &["bench-servers", "bench-meter"])?;
    let target = target(repository);
    let sources = repository.root.join("bench/peers");
    if wanted("typescript") {
        install_node(&sources, &target.join("node"))?;
    }
    for (name, folder) in [("python", "python"), ("fastmcp", "fastmcp")] {
        if wanted(name) {
            install_python(&sources, &target.join(folder), &format!("requirements-{name}.txt"))?;
        }
    }
    let mut meter = Program::new(target.join("release/meter"), &repository.root);
    for (option, path) in [
        ("--root", repository.root.clone()),
        ("--target", target.clone()),
        ("--promptshelf", repository.target().join("release/promptshelf")),
    ] {
        meter = meter.arg(option).arg(path);
    }
    if quick {
        meter = meter.arg("--quick");
    }
    if let Some(seconds) = attack_seconds {
        meter = meter.arg("--attack-seconds").arg(seconds.to_string());
    }
    for row in only {
        meter = meter.arg("--only").arg(row);
    }
    if let Some(peers) = peers {
        let names: Vec<&str> = peers.iter().map(|peer| peer.as_str()).collect();
        // No peers: only promptshelf and the bare handler, which always run.
        let names = if names.is_empty() { "bare".to_owned() } else { names.join(",") };
        meter = meter.arg("--peers").arg(names);
    }
    meter.run()
}

/// Whether the folder already contains the packages of the list; [`installed`] writes the list there.
fn is_installed(folder: &Path, list: &[u8]) -> bool {
    fs::read(folder.join(".installed")).is_ok_and(|installed| installed == list)
}

fn installed(folder: &Path, list: &[u8]) -> Result<()> {
    fs::write(folder.join(".installed"), list).with_context(|| format!("{} cannot be written", folder.display()))
}

/// Installs the official TypeScript SDK. Node.js finds packages only next to a script, so the scripts are copied.
fn install_node(sources: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for file in ["package.json", "package-lock.json", "server.mjs", "words.json"] {
        fs::copy(sources.join(file), folder.join(file)).with_context(|| format!("{file} cannot be copied"))?;
    }
    let list = fs::read(sources.join("package-lock.json"))?;
    if is_installed(folder, &list) {
        return Ok(());
    }
    Program::new("npm", folder)
        .when_missing("Install Node.js with npm (on Debian: apt-get install --yes nodejs npm) and start again.")
        .args(&["ci", "--no-audit", "--no-fund", "--loglevel", "error"])
        .run()?;
    installed(folder, &list)
}

/// Creates a virtual environment with exactly the packages of a list.
fn install_python(sources: &Path, folder: &Path, list: &str) -> Result<()> {
    let list = sources.join(list);
    let wanted = fs::read(&list).with_context(|| format!("{} cannot be read", list.display()))?;
    if is_installed(folder, &wanted) {
        return Ok(());
    }
    Program::new("python3", sources)
        .when_missing("Install Python (on Debian: apt-get install --yes python3-venv) and start again.")
        .args(&["-m", "venv", "--clear"])
        .arg(folder)
        .run()?;
    Program::new(folder.join("bin/python"), sources)
        .args(&["-m", "pip", "install", "--quiet", "--requirement"])
        .arg(&list)
        .run()?;
    installed(folder, &wanted)
}
