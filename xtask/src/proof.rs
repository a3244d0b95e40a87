//! Parts of `cargo xtask nightly` that try to refute the program: they could go on for ever, and `--minutes` ends them. And the
//! page with the figures of a night.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{
    prepare::{cargo_tool, install_debian, install_postgres},
    repository::Repository,
    terminal::Program,
};

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

/// Runs replicas through 100 million steps of a simulation with faults.
pub(crate) fn replicas(repository: &Repository) -> Result<()> {
    let tests = cargo(repository, "test --release --package promptshelf-server --lib simulation:: -- --nocapture");
    let tests = tests.env("REPLICA_SEED", &seed()).env("REPLICA_STEPS", "100000000");
    match repository.minutes {
        Some(minutes) => tests.env("REPLICA_MINUTES", &minutes.to_string()).run_tests(),
        None => tests.run_tests(),
    }
}

/// Sends random requests for what callers may not see, and edits libraries at random.
pub(crate) fn properties(repository: &Repository) -> Result<()> {
    let minutes = repository.minutes.unwrap_or(30).to_string();
    let tests = cargo(repository, "test --release --package promptshelf-server --test it closed::");
    tests.env("CLOSED_SEED", &seed()).env("CLOSED_MINUTES", &minutes).run_tests()?;
    let tests = cargo(repository, "test --release --package promptshelf-source --test it tree_contract::random");
    tests.env("PROPTEST_CASES", "5000").run_tests()
}

/// Lets every statement of every operation of a store fail in each way.
pub(crate) fn statements(repository: &Repository) -> Result<()> {
    install_postgres(repository)?;
    let tests = cargo(repository, "test --release --package promptshelf-store --test it statements::");
    tests.env("FAULTS", "1").run_tests()
}

/// Causes faults while clients publish and read; prints them instead with `is_plan`.
pub(crate) fn chaos(repository: &Repository, seed: u64, minutes: u64, is_plan: bool) -> Result<()> {
    if !is_plan {
        install_postgres(repository)?;
        install_debian(repository, "faketime", "faketime")?;
    }
    let tests = cargo(repository, "test --package promptshelf --test it chaos:: -- --nocapture");
    let tests = tests.env("CHAOS_SEED", &seed.to_string()).env("CHAOS_SECONDS", &(60 * minutes).to_string());
    if is_plan { tests.env("CHAOS_PLAN", "1").run() } else { tests.run_tests() }
}

/// An hour of faults, ten minutes of each seed.
pub(crate) fn chaos_of_the_night(repository: &Repository) -> Result<()> {
    let first: u64 = seed().parse().context("the number of the day")?;
    let minutes = repository.minutes.unwrap_or(60);
    for (turn, from) in (0..minutes).step_by(10).enumerate() {
        chaos(repository, 1_000 * first + turn as u64, (minutes - from).min(10), false)?;
    }
    Ok(())
}

/// Lets every system call of the commands that write files fail in each way.
pub(crate) fn system_calls(repository: &Repository) -> Result<()> {
    install_debian(repository, "strace", "strace")?;
    cargo(repository, "test --package promptshelf --test it system_calls::").env("SYSTEM_CALLS", "all").run_tests()
}

/// The lines and regions of a crate that its tests and those of the program have to run, in per cent.
const THRESHOLDS: &[(&str, f64, f64)] = &[
    ("promptshelf-core", 90.0, 85.0),
    ("promptshelf-source", 90.0, 85.0),
    ("promptshelf-store", 90.0, 85.0),
    ("promptshelf-service", 90.0, 85.0),
    ("promptshelf-mcp", 90.0, 85.0),
];

/// Files that decide who may see, sign in, publish and approve, and how much: parts of their paths. Every line of them has to
/// run, apart from so many that only describe a value or answer what cannot happen.
const DECISIONS: &[(&str, u32)] = &[
    ("core/src/catalog/access.rs", 1),
    ("core/src/catalog/review.rs", 1),
    ("core/src/cursor.rs", 0),
    ("server/src/http/auth/jwt.rs", 1),
    ("server/src/http/auth/sign_in.rs", 3),
    ("server/src/http/auth/tokens.rs", 0),
    ("service/src/access.rs", 3),
    ("service/src/limit.rs", 3),
    ("store/src/policy.rs", 1),
    ("store/src/publish.rs", 9),
    ("store/src/review.rs", 0),
];

/// Runs all tests with counters, writes the report to `target/nightly/coverage.json`, and compares it with the thresholds.
pub(crate) fn coverage(repository: &Repository) -> Result<()> {
    install_postgres(repository)?;
    fs::create_dir_all(folder(repository)).context("target/nightly cannot be written")?;
    let tool = cargo_tool(repository, "cargo-llvm-cov", "0.9.1", "")?;
    let report = folder(repository).join("coverage.json");
    Program::new(tool, &repository.root)
        .args(&["llvm-cov", "--workspace", "--exclude", "xtask", "--lib", "--bins", "--test", "*", "--no-fail-fast"])
        // A process that a test kills leaves half a file of counters.
        .args(&["--failure-mode", "all", "--json", "--summary-only", "--output-path"])
        .arg(&report)
        // Installs the counters of the toolchain without a question.
        .env("CARGO_LLVM_COV_SETUP", "yes")
        .run()?;
    let text = fs::read_to_string(&report).context("cargo-llvm-cov writes its report")?;
    let report: Value = serde_json::from_str(&text).context("the report is JSON")?;
    let figures = folder(repository).join("figures.txt");
    let mut lines = String::new();
    let mut low = Vec::new();
    for (name, least_lines, least_regions) in THRESHOLDS {
        let part = format!("/crates/{name}/src/");
        let share = |kind: &str| {
            let files = report["data"][0]["files"].as_array().into_iter().flatten();
            let files = files.filter(|file| file["filename"].as_str().is_some_and(|path| path.contains(&part)));
            let (covered, count) = files.fold((0.0, 0.0), |(covered, count), file| {
                let of = |what: &str| file["summary"][kind][what].as_f64().unwrap_or_default();
                (covered + of("covered"), count + of("count"))
            });
            100.0 * covered / f64::max(count, 1.0)
        };
        let (found_lines, found_regions) = (share("lines"), share("regions"));
        lines += &format!("coverage of {name}: {found_lines:.1} % of lines, {found_regions:.1} % of regions\n");
        if found_lines < *least_lines || found_regions < *least_regions {
            low.push(format!("{name} has {found_lines:.1} % of lines and {found_regions:.1} % of regions"));
        }
    }
    let files = report["data"][0]["files"].as_array().into_iter().flatten();
    for (path, allowed) in DECISIONS {
        let mut found = files.clone().filter(|file| file["filename"].as_str().is_some_and(|it| it.ends_with(path)));
        let summary = found.next().map(|file| &file["summary"]["lines"]).with_context(|| format!("no file {path}"))?;
        let missed = summary["count"].as_u64().unwrap_or_default() - summary["covered"].as_u64().unwrap_or_default();
        lines += &format!("lines of {path} without a test: {missed}\n");
        if missed > u64::from(*allowed) {
            low.push(format!("{path} ({missed} lines without a test, at most {allowed})"));
        }
    }
    print!("{lines}");
    let before = fs::read_to_string(&figures).unwrap_or_default();
    fs::write(&figures, before + &lines).context("target/nightly cannot be written")?;
    if !low.is_empty() {
        bail!("the tests run too little of {}", low.join(", "));
    }
    Ok(())
}

/// The files whose decisions matter most: who may see, sign in, publish and approve.
const MUTATED: &[&str] = &[
    "crates/promptshelf-store/src/policy.rs",
    "crates/promptshelf-store/src/publish.rs",
    "crates/promptshelf-store/src/review.rs",
    "crates/promptshelf-store/src/promote.rs",
    "crates/promptshelf-service/src/access.rs",
    "crates/promptshelf-service/src/limit.rs",
];

/// Changes the program in small ways, in lines that differ from a commit if one is named, and reports which changes no test
/// notices.
pub(crate) fn mutants(repository: &Repository, since: Option<&str>) -> Result<()> {
    install_postgres(repository)?;
    fs::create_dir_all(folder(repository)).context("target/nightly cannot be written")?;
    let tool = cargo_tool(repository, "cargo-mutants", "27.1.0", "")?;
    let output = folder(repository);
    let mut mutants = Program::new(tool, &repository.root).args(&["mutants", "--no-shuffle", "--output"]).arg(&output);
    for file in MUTATED {
        mutants = mutants.args(&["--file", file]);
    }
    if let Some(commit) = since {
        let diff = Program::new("git", &repository.root).args(&["diff", commit, "--"]).args(MUTATED).read()?;
        if diff.is_empty() {
            println!("no decision differs from {commit}");
            return Ok(());
        }
        let file = output.join("changes.diff");
        fs::write(&file, diff).with_context(|| format!("{} cannot be written", file.display()))?;
        mutants = mutants.arg("--in-diff").arg(&file);
    }
    let run = mutants.args(&["--test-workspace=false", "--timeout-multiplier", "3"]).run();
    let count = |name: &str| {
        let path = output.join("mutants.out").join(format!("{name}.txt"));
        fs::read_to_string(path).map_or(0, |text| text.lines().count())
    };
    let (caught, missed) = (count("caught") + count("timeout"), count("missed"));
    let figures = output.join("figures.txt");
    let before = fs::read_to_string(&figures).unwrap_or_default();
    fs::write(&figures, format!("{before}mutants: {caught} caught, {missed} missed\n"))
        .context("target/nightly cannot be written")?;
    // cargo-mutants fails if it misses one; some are not faults.
    match caught * 100 >= 95 * (caught + missed) && (caught > 0 || since.is_some()) {
        true => Ok(()),
        false => run.and_then(|()| bail!("{caught} mutants were caught and {missed} missed: at least 95 % are wanted")),
    }
}

/// Sends random bytes to every reader, each for its share of the time.
pub(crate) fn fuzz(repository: &Repository) -> Result<()> {
    let minutes = repository.minutes.unwrap_or(240);
    let targets = fs::read_dir(repository.root.join("fuzz/targets")).map_or(1, |found| found.count().max(1)) as u64;
    let seconds = u32::try_from(60 * minutes / targets).unwrap_or(u32::MAX).max(10);
    crate::fuzz::run(repository, seconds, None)
}
