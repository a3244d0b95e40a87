//! `cargo xtask bench`: builds and installs the measured programs, and starts the measurement.
//!
//! The measurements themselves are in `bench/`, a workspace of its own.

use std::path::PathBuf;

use anyhow::Result;

use crate::{
    prepare::{install, install_python},
    repository::Repository,
    terminal::Program,
};

/// Returns the folder where `bench/` is built.
pub(crate) fn target(repository: &Repository) -> PathBuf {
    repository.target().join("bench")
}

/// Builds a crate of `bench/` with the profile of the measurements.
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
    let peers_folder = repository.root.join("bench/peers");
    if wanted("typescript") {
        install(&peers_folder)?;
    }
    for name in ["python", "fastmcp"] {
        if wanted(name) {
            install_python(&peers_folder.join(name))?;
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
