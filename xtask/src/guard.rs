//! `cargo xtask guard`: the number of instructions that the hot paths take.
//!
//! callgrind counts instructions, which do not depend on the load of the machine. `bench/guard/counts.json` records
//! them, with the reason of the last change and with the compiler and the C library. A rise of more than 5 per cent is a
//! warning, one of more than 25 per cent an error. Another compiler makes other instructions of the same code, so with
//! another one every rise is a warning.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::{bench, prepare::install_debian, repository::Repository, terminal::Program};

/// A rise above this is a warning, in per cent. The variation between builds, mostly from the seeds of hash tables, is
/// far below it.
const WARNING: f64 = 5.0;

/// A rise above this is an error, in per cent.
const ERROR: f64 = 25.0;

/// How often a path is run, so that the variation between runs averages out.
const TIMES: u64 = 50;

/// Counts, and compares the counts with the recorded ones or records them.
pub(crate) fn run(repository: &Repository, update: Option<&str>) -> Result<()> {
    install_debian(repository, "valgrind", "valgrind")?;
    bench::build(repository, &["bench-guard"])?;
    let program = bench::target(repository).join("release/bench-guard");
    let names = Program::new(&program, &repository.root).read()?;
    let names: Vec<&str> = names.lines().collect();
    let counts = count(repository, &program, names.len())?;
    let counted: BTreeMap<String, u64> = names.into_iter().map(str::to_owned).zip(counts).collect();
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
    let known: Value = serde_json::from_str(&text).context("bench/guard/counts.json does not parse as JSON")?;
    let Rises { warnings, errors } = compare(&counted, &known["instructions"]);
    for rise in &warnings {
        println!("warning: {rise}");
    }
    if errors.is_empty() {
        return Ok(());
    }
    if known["compiler"] != compiler.as_str() {
        println!("warning: {}", errors.join("; "));
        println!("Not an error: this is {compiler}, and {} made the recorded counts.", known["compiler"]);
        return Ok(());
    }
    bail!("{}. If that is intended: cargo xtask guard --update \"the reason\"", errors.join("; "))
}

/// Paths that take more instructions than recorded.
#[derive(Debug, Default, PartialEq)]
struct Rises {
    warnings: Vec<String>,
    /// Rises above [`ERROR`], and paths without a recorded count.
    errors: Vec<String>,
}

/// Describes everything but the code that determines the instructions: compiler, processor and C library.
fn compiler(repository: &Repository) -> Result<String> {
    let first_line = |program: &str| -> Result<String> {
        let printed = Program::new(program, &repository.root).args(&["--version"]).read()?;
        Ok(printed.lines().next().unwrap_or_default().trim().to_owned())
    };
    Ok(format!("{}, {}, {}", first_line("rustc")?, std::env::consts::ARCH, first_line("ldd")?))
}

/// Compares the counts with the recorded ones, and prints each pair.
fn compare(counted: &BTreeMap<String, u64>, known: &Value) -> Rises {
    let mut rises = Rises::default();
    for (name, count) in counted {
        let Some(before) = known[name].as_u64() else {
            rises.errors.push(format!("`{name}` has no recorded count"));
            continue;
        };
        let change = (*count as f64 / before as f64 - 1.0) * 100.0;
        println!("{name:<34} {before:>10} -> {count:>10} {change:>+7.2} %");
        let rise = format!("`{name}` takes {change:.1} % more instructions");
        if change > ERROR {
            rises.errors.push(rise);
        } else if change > WARNING {
            rises.warnings.push(rise);
        }
    }
    rises
}

/// Counts the instructions of one run of each path, in one process: preparing the libraries costs more than the paths.
fn count(repository: &Repository, program: &Path, paths: usize) -> Result<Vec<u64>> {
    let folder = bench::target(repository).join("guard");
    // Files of an earlier run would be taken for those of this one.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be created", folder.display()))?;
    let file = folder.join("counts");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=*counted_by_callgrind*", "--dump-after=*written_by_callgrind*"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .args(["all", &TIMES.to_string()])
        .current_dir(&repository.root)
        .output()
        .context("valgrind could not be started")?;
    let printed = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("callgrind failed: {printed}");
    }
    // One file for each path, numbered from 1.
    (1..=paths)
        .map(|number| {
            let file = file.with_extension(number.to_string());
            let text = fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
            match total(&text) {
                Some(collected) if collected > TIMES => Ok(collected / TIMES),
                _ => bail!("callgrind counted nothing for path {number}: {printed}"),
            }
        })
        .collect()
}

/// Returns the instructions in a file of callgrind.
fn total(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rise_is_a_warning_above_5_and_an_error_above_25_per_cent() {
        let counted = [("fall", 10), ("near", 104), ("warning", 125), ("error", 126)];
        let counted = counted.map(|(name, count)| (name.to_owned(), count)).into();
        let rises = compare(&counted, &json!({ "fall": 100, "near": 100, "warning": 100, "error": 100 }));
        assert_eq!(rises.warnings, ["`warning` takes 25.0 % more instructions"]);
        assert_eq!(rises.errors, ["`error` takes 26.0 % more instructions"]);
    }

    #[test]
    fn total_is_read_from_a_file_of_callgrind() {
        let text = "version: 1\nevents: Ir\n\nfn=(1) counted\n12 3000\n\ntotals: 3000\n";
        assert_eq!(total(text), Some(3_000));
        assert_eq!(total("version: 1\n"), None);
    }

    #[test]
    fn path_without_a_recorded_count_is_an_error() {
        let counted = BTreeMap::from([("new".to_owned(), 1)]);
        assert_eq!(compare(&counted, &json!({})).errors, ["`new` has no recorded count"]);
    }
}
