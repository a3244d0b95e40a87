//! `cargo xtask fuzz`: runs each fuzz target for a bounded time.
//!
//! The targets are a package of their own in `fuzz/`, because only they need a nightly toolchain.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::{prepare::cargo_tool, repository::Repository, terminal::Program};

/// Bytes of one input: enough for any meaningful message.
const MAX_LEN: u32 = 4_096;

/// Seconds of one input, more than which are a failure. Instrumented programs are about ten times as slow as usual, and
/// the most expensive rendering takes a fraction of a second.
const SLOW_SECONDS: u32 = 5;

/// Runs one target, or all of them in turn.
pub(crate) fn run(repository: &Repository, seconds: u32, target: Option<&str>) -> Result<()> {
    let fuzz = repository.root.join("fuzz");
    let tool = cargo_tool(repository, "cargo-fuzz", "0.13.2", "")?;
    let cargo_fuzz = || {
        // Started through cargo, it would use the toolchain of this program.
        Program::new(&tool, &repository.root).arg("fuzz").env("RUSTUP_TOOLCHAIN", "nightly")
    };
    let listed = cargo_fuzz().args(&["list", "--fuzz-dir"]).arg(&fuzz).read()?;
    let targets: Vec<&str> = listed.lines().filter(|name| target.is_none_or(|target| target == *name)).collect();
    if targets.is_empty() {
        bail!("unknown target: expected one of {}", listed.lines().collect::<Vec<_>>().join(", "));
    }
    for target in &targets {
        println!("=== {target} for {seconds} s");
        // New inputs go to the first folder, which is not committed.
        let corpus = fuzz.join("corpus").join(target);
        fs::create_dir_all(&corpus).context("fuzz/corpus cannot be written")?;
        cargo_fuzz()
            .args(&["run", "--fuzz-dir"])
            .arg(&fuzz)
            .arg(target)
            .arg(corpus)
            .arg(fuzz.join("seeds").join(target))
            .args(&["--", &format!("-max_total_time={seconds}"), &format!("-max_len={MAX_LEN}")])
            .args(&[&format!("-timeout={SLOW_SECONDS}"), "-report_slow_units=1", "-rss_limit_mb=2048"])
            .args(&["-print_final_stats=1"])
            .run()?;
    }
    println!("{} targets, no failure", targets.len());
    Ok(())
}
