//! `cargo xtask guard`: the hot paths cost as many instructions as before.
//!
//! callgrind counts instructions, which are the same on a busy machine and on a
//! quiet one. What was counted stands in `bench/guard/counts.json`, with the
//! reason why it may be so and with the compiler and the C library that it was
//! counted with: a rise of more than five per cent is refused. Others make other
//! instructions of the same code, so with another one nothing is refused.

use std::{collections::BTreeMap, fs, process::Command};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::{bench, repository::Repository, terminal::Program};

/// The rise that is borne, in per cent. What varies from build to build, above
/// all the seeds of hash tables, is far below it.
const BORNE: f64 = 5.0;

/// How often a path is walked, so that what varies from walk to walk evens out.
const TIMES: u64 = 50;

/// Counts, and compares or writes down.
///
/// # Errors
///
/// When a path got more expensive, or nothing can be counted.
pub(crate) fn run(repository: &Repository, update: Option<&str>) -> Result<()> {
    install(repository)?;
    bench::build(repository, &["bench-guard"])?;
    let program = bench::target(repository).join("release/bench-guard");
    let names = Program::new(&program, &repository.root).read()?;
    let mut counted = BTreeMap::new();
    for (number, name) in names.lines().enumerate() {
        counted.insert(name.to_owned(), count(repository, number)?);
    }
    let file = repository.root.join("bench/guard/counts.json");
    let compiler = compiler(repository)?;
    if let Some(reason) = update {
        let found = json!({ "reason": reason, "compiler": compiler, "instructions": counted });
        let written = serde_json::to_string_pretty(&found)? + "\n";
        fs::write(&file, written).with_context(|| format!("{} cannot be written", file.display()))?;
        for (name, count) in &counted {
            println!("{name:<34} {count:>10}");
        }
        return Ok(());
    }
    let text = fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
    let known: Value = serde_json::from_str(&text).context("bench/guard/counts.json is no JSON")?;
    let rises = compare(&counted, &known["instructions"]);
    if rises.is_empty() {
        return Ok(());
    }
    if known["compiler"] != compiler.as_str() {
        println!("{}", rises.join("; "));
        println!("This is {compiler}, and the known figures are of {}: nothing is refused.", known["compiler"]);
        return Ok(());
    }
    bail!("{}. When that is meant: cargo xtask guard --update \"why it may cost more\"", rises.join("; "))
}

/// What the instructions are made by, apart from the code.
fn compiler(repository: &Repository) -> Result<String> {
    let first_line = |program: &str| -> Result<String> {
        let said = Program::new(program, &repository.root).args(&["--version"]).read()?;
        Ok(said.lines().next().unwrap_or_default().trim().to_owned())
    };
    Ok(format!("{}, {}, {}", first_line("rustc")?, std::env::consts::ARCH, first_line("ldd")?))
}

/// What got more expensive than is borne, or was never counted.
fn compare(counted: &BTreeMap<String, u64>, known: &Value) -> Vec<String> {
    let mut rises = Vec::new();
    for (name, count) in counted {
        let Some(before) = known[name].as_u64() else {
            rises.push(format!("`{name}` was never counted"));
            continue;
        };
        let change = (*count as f64 / before as f64 - 1.0) * 100.0;
        println!("{name:<34} {before:>10} -> {count:>10} {change:>+7.2} %");
        if change > BORNE {
            rises.push(format!("`{name}` takes {change:.1} % more instructions"));
        }
    }
    rises
}

/// The instructions of one walk along a path.
fn count(repository: &Repository, number: usize) -> Result<u64> {
    let target = bench::target(repository);
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*counted_by_callgrind*"])
        .arg(target.join("release/bench-guard"))
        .args([number.to_string(), TIMES.to_string()])
        .current_dir(&repository.root)
        .output()
        .context("valgrind could not be started")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("callgrind failed: {said}");
    }
    let collected = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse::<u64>().ok());
    match collected {
        Some(collected) if collected > TIMES => Ok(collected / TIMES),
        _ => bail!("callgrind counted nothing: {said}"),
    }
}

/// Sees to it that valgrind is there.
fn install(repository: &Repository) -> Result<()> {
    if Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Ok(());
    }
    let install = "apt-get install --yes valgrind";
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    if !is_root {
        bail!("valgrind is not installed. On Debian: sudo {install}");
    }
    let apt = |words: &[&str]| {
        let apt = Program::new("apt-get", &repository.root);
        apt.when_missing("valgrind is not installed; install it with the packages of this system.").args(words).run()
    };
    // A fresh container knows of no packages yet.
    apt(&["update"])
        .and_then(|()| apt(&["install", "--yes", "valgrind"]))
        .with_context(|| format!("valgrind is not installed. On Debian: {install}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_is_refused_and_a_fall_is_not() {
        let counted = BTreeMap::from([("up".to_owned(), 106), ("near".to_owned(), 104), ("down".to_owned(), 10)]);
        let rises = compare(&counted, &json!({ "up": 100, "near": 100, "down": 100 }));
        assert_eq!(rises, ["`up` takes 6.0 % more instructions"]);
    }

    #[test]
    fn a_path_that_was_never_counted_is_refused() {
        let counted = BTreeMap::from([("new".to_owned(), 1)]);
        assert_eq!(compare(&counted, &json!({})), ["`new` was never counted"]);
    }
}
