//! The steps of `cargo xtask test`, in the order in which they run: what fails
//! fast comes first, what needs the binary comes last. All of them run, whatever fails.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::{
    conformance, guard, guide,
    prepare::{build, build_rust_peer, install_peers, install_python_peer, node},
    repository::Repository,
    terminal::Program,
    tidy, web,
};

/// One thing that CI checks.
pub(crate) struct Step {
    /// What `--only` calls it.
    pub(crate) name: &'static str,
    /// What it proves.
    pub(crate) about: &'static str,
    run: fn(&Repository) -> Result<()>,
}

/// Every step. Each makes for itself what it needs, so that it can run alone.
pub(crate) const STEPS: &[Step] = &[
    Step { name: "fmt", about: "the code is formatted", run: fmt },
    Step { name: "tidy", about: "the house rules hold", run: tidy::run },
    Step { name: "clippy", about: "the lints are quiet", run: clippy },
    Step { name: "embed", about: "the library compiles without the command line, with each feature", run: embed },
    Step { name: "test", about: "unit, integration and doc tests pass", run: test },
    Step {
        name: "requirements",
        about: "docs/conformance.md and SECURITY.md agree with the requirements and the tags at the tests",
        run: conformance::check_requirements,
    },
    Step { name: "doc", about: "the documentation builds without warnings", run: doc },
    Step { name: "build", about: "the binary builds", run: build },
    Step { name: "examples", about: "the example libraries pass their own check", run: examples },
    Step { name: "guide", about: "the guide is current, its examples pass the check, its links resolve", run: guide::check },
    Step { name: "deny", about: "licences and sources of dependencies, where cargo-deny is installed", run: deny },
    Step { name: "client-v2", about: "the official client, generation 2, in both eras", run: client_v2 },
    Step { name: "client-v1", about: "the official client, generation 1", run: client_v1 },
    Step { name: "guided", about: "guided prompts with the official client, over two servers", run: guided },
    Step { name: "sign-in", about: "a real authorization server and the official client", run: sign_in },
    Step { name: "web", about: "the page: types, lint, and the whole of it in a browser", run: web::run },
    Step { name: "conformance", about: "the official conformance suites", run: conformance_suites },
    Step { name: "host", about: "our client, against servers of the official SDKs", run: host },
    Step { name: "guard", about: "the hot paths take no more instructions than before", run: guard },
];

/// Runs all steps, or the named ones. One that fails does not keep the others from saying what they find.
///
/// # Errors
///
/// When a step fails, or a name is no step's.
pub(crate) fn run(repository: &Repository, only: &[String]) -> Result<()> {
    if let Some(unknown) = only.iter().find(|name| !STEPS.iter().any(|step| step.name == *name)) {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("there is no step `{unknown}`, only: {}", names.join(", "));
    }
    let chosen: Vec<&Step> =
        STEPS.iter().filter(|step| only.is_empty() || only.iter().any(|name| name == step.name)).collect();
    let (mut times, mut failed) = (Vec::new(), Vec::new());
    for (at, step) in chosen.iter().enumerate() {
        println!("\n=== {} of {}: {} ({})", at + 1, chosen.len(), step.name, step.about);
        let started = Instant::now();
        let outcome = (step.run)(repository);
        let took = seconds(started.elapsed());
        match &outcome {
            Ok(()) => println!("=== {} passed in {took}", step.name),
            Err(error) => {
                println!("=== {} FAILED after {took}: {error:#}", step.name);
                failed.push(step.name);
            }
        }
        times.push((step.name, took, outcome.is_ok()));
    }
    println!();
    for (name, took, passed) in &times {
        println!("{name:<12} {took:>8}{}", if *passed { "" } else { "  FAILED" });
    }
    println!("{} passed, {} failed", times.len() - failed.len(), failed.len());
    if !failed.is_empty() {
        let again: String = failed.iter().map(|name| format!(" --only {name}")).collect();
        bail!("{} failed; again alone: cargo xtask test{again}", failed.join(", "));
    }
    Ok(())
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn fmt(repository: &Repository) -> Result<()> {
    Program::cargo(&repository.root).args(&["fmt", "--all", "--check"]).run()
}

fn clippy(repository: &Repository) -> Result<()> {
    Program::cargo(&repository.root).args(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run()
}

fn embed(repository: &Repository) -> Result<()> {
    // Each feature alone, and those that know of each other.
    for features in ["", "web", "sign-in", "client", "web,sign-in"] {
        Program::cargo(&repository.root)
            .args(&["check", "--package", "promptshelf", "--lib", "--no-default-features", "--features", features])
            .run()?;
    }
    Ok(())
}

fn test(repository: &Repository) -> Result<()> {
    Program::cargo(&repository.root).args(&["test", "--workspace", "--no-fail-fast"]).run()
}

fn doc(repository: &Repository) -> Result<()> {
    Program::cargo(&repository.root).args(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings").run()
}

fn examples(repository: &Repository) -> Result<()> {
    build(repository)?;
    for library in ["examples/library", "tests/fixtures/conformance"] {
        Program::new(repository.binary(), &repository.root).args(&["check", library, "--deny", "warnings"]).run()?;
    }
    Ok(())
}

fn guard(repository: &Repository) -> Result<()> {
    guard::run(repository, None)
}

// It takes longer to build than everything else together, so CI does without.
fn deny(repository: &Repository) -> Result<()> {
    let version = std::process::Command::new("cargo-deny").arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        println!("cargo-deny is not installed: nothing is checked (cargo install --locked cargo-deny)");
        return Ok(());
    }
    Program::cargo(&repository.root).args(&["deny", "--offline", "check", "bans", "licenses", "sources"]).run()
}

fn client_v2(repository: &Repository) -> Result<()> {
    peer(repository, "client-v2.mjs")
}

fn client_v1(repository: &Repository) -> Result<()> {
    peer(repository, "client-v1.mjs")
}

fn sign_in(repository: &Repository) -> Result<()> {
    peer(repository, "sign-in.mjs")
}

fn guided(repository: &Repository) -> Result<()> {
    peer(repository, "guided.mjs")
}

fn conformance_suites(repository: &Repository) -> Result<()> {
    suites(repository)?;
    conformance::check_suites(repository)
}

/// Runs the official suites, and leaves what they find where the table is made.
///
/// # Errors
///
/// When a scenario ends otherwise than the baseline says.
pub(crate) fn suites(repository: &Repository) -> Result<()> {
    build(repository)?;
    install_peers(repository)?;
    node(repository).args(&["--test", "verdict.test.mjs"]).run()?;
    let results = conformance::results_file(repository);
    node(repository).arg("conformance.mjs").arg("--server").arg(repository.binary()).arg("--results").arg(results).run()
}

/// Runs an official client against the binary.
fn peer(repository: &Repository, script: &str) -> Result<()> {
    build(repository)?;
    install_peers(repository)?;
    node(repository).arg(script).arg("--server").arg(repository.binary()).run()
}

/// Runs our own client against servers made with the official SDKs, and
/// through the conformance suite's scenarios for clients.
fn host(repository: &Repository) -> Result<()> {
    build(repository)?;
    install_peers(repository)?;
    let python = install_python_peer(repository)?;
    let rust = build_rust_peer(repository)?;
    let script =
        |name: &str| node(repository).arg(name).arg("--server").arg(repository.binary()).arg("--python").arg(&python);
    script("host.mjs").arg("--rust").arg(rust).run()?;
    script("client-conformance.mjs").run()
}
