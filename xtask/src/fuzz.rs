//! `cargo xtask fuzz`: each target for a bounded time.
//!
//! The targets are a package of their own in `fuzz/`, because they need a
//! nightly toolchain and nothing else here does.

use std::{fs, process::Command};

use anyhow::{Context, Result, bail};

use crate::{repository::Repository, terminal::Program};

/// Bytes of one input: long enough for any message that means something.
const MAX_LEN: u32 = 4_096;

/// Runs one target, or all of them one after the other.
///
/// # Errors
///
/// When cargo-fuzz is missing, there is no such target, or one finds something.
pub(crate) fn run(repository: &Repository, seconds: u32, target: Option<&str>) -> Result<()> {
    let installed = Command::new("cargo-fuzz").arg("--version").output();
    if !installed.is_ok_and(|output| output.status.success()) {
        bail!("cargo-fuzz is not installed: rustup toolchain install nightly && cargo install --locked cargo-fuzz");
    }
    let fuzz = repository.root.join("fuzz");
    let listed = cargo_fuzz(repository).args(&["list", "--fuzz-dir"]).arg(&fuzz).read()?;
    let targets: Vec<&str> = listed.lines().filter(|name| target.is_none_or(|target| target == *name)).collect();
    if targets.is_empty() {
        bail!("there is no such target, only: {}", listed.lines().collect::<Vec<_>>().join(", "));
    }
    for target in &targets {
        println!("=== {target} for {seconds} s");
        // What is found goes to the first folder, and stays on this machine.
        let corpus = fuzz.join("corpus").join(target);
        fs::create_dir_all(&corpus).context("fuzz/corpus cannot be written")?;
        cargo_fuzz(repository)
            .args(&["run", "--fuzz-dir"])
            .arg(&fuzz)
            .arg(target)
            .arg(corpus)
            .arg(fuzz.join("seeds").join(target))
            .args(&["--", &format!("-max_total_time={seconds}"), &format!("-max_len={MAX_LEN}")])
            .args(&["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"])
            .run()?;
    }
    println!("{} targets, nothing found", targets.len());
    Ok(())
}

/// The program itself, with a toolchain that it can use: through cargo it would
/// be given the one that this was built with.
fn cargo_fuzz(repository: &Repository) -> Program {
    Program::new("cargo-fuzz", &repository.root).arg("fuzz").env("RUSTUP_TOOLCHAIN", "nightly")
}
