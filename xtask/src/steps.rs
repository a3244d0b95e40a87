//! Steps of `cargo xtask test`, the fast ones first, and parts of `cargo xtask nightly`.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio, exit},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::{
    conformance, guard, guide,
    prepare::{
        begin_to_install, build, build_official_server, cargo_tool, install, install_debian, install_everything,
        install_peers, install_postgres, install_python, install_target, node,
    },
    proof, release,
    repository::Repository,
    terminal::Program,
    tidy, web,
};

/// A check of CI.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// The property that it proves.
    pub(crate) about: &'static str,
    run: fn(&Repository) -> Result<()>,
    limit: Duration,
}

const fn step(name: &'static str, about: &'static str, run: fn(&Repository) -> Result<()>) -> Step {
    Step { name, about, run, limit: LIMIT }
}

/// A part that could go on for ever.
const fn endless(name: &'static str, about: &'static str, run: fn(&Repository) -> Result<()>) -> Step {
    Step { name, about, run, limit: NIGHT }
}

/// The steps of `cargo xtask test`. Each prepares everything it needs, so that it can run alone.
pub(crate) const TEST: &[Step] = &[
    step("fmt", "the code is formatted", |it| cargo(it, "fmt --all --check").run()),
    step("tidy", "the rules of the project hold", tidy::run),
    step(
        "requirements",
        "every requirement and every threat has a test that names it",
        conformance::check_requirements,
    ),
    step("clippy", "there are no lints", |it| {
        cargo(it, "clippy --workspace --all-targets --test * -- -D warnings").run()
    }),
    step("test", "unit, integration and doc tests pass", test),
    step("examples", "the example libraries pass their own check", examples),
    step("guide", "examples of the guide pass the check, links in documents resolve", guide::check),
    step("msrv", "rust-version is the toolchain that runs these steps", msrv),
    step("client-v2", "the official client, generation 2, in both eras", |it| peer(it, "client-v2.mjs")),
    step("client-v1", "the official client, generation 1", |it| peer(it, "client-v1.mjs")),
    step("guided", "guided prompts with the official client, over two servers", |it| peer(it, "guided.mjs")),
    step("tools", "prompts as tools with the official clients of both generations", |it| peer(it, "tools.mjs")),
    step("sign-in", "a real authorization server and the official client", |it| peer(it, "sign-in.mjs")),
    step("conformance", "the official conformance suites", suites),
    step("packages", "npm packages and wheels install and serve", release::check_quickly),
    step("workflows", "workflows, manifests and scripts are valid", workflows),
    step("host", "our client, against servers of the official SDKs; coding agents read files of sync", host),
    step("web", "the page: types, lint, and the whole of it in a browser", web::run),
];

/// The first step after the tests.
const AFTER_TESTS: &str = "examples";

/// Steps that mostly wait for one other program. In a whole run, a process for each list runs them beside all that follows
/// the tests.
const BESIDE: [&[&str]; 2] =
    [&["client-v2", "client-v1", "guided", "tools", "sign-in", "conformance", "packages", "workflows"], &["host"]];

/// The parts of `cargo xtask nightly`: they take long for what they prove of one change.
pub(crate) const NIGHTLY: &[Step] = &[
    step("deny", "licences, sources and bans of dependencies", deny),
    step("book", "the guide builds as a book", guide::build),
    step("doc", "the documentation builds without warnings", doc),
    step("semver", "the public API is compatible with the last release", semver),
    step("embed", "the library compiles without the command line, with few features", embed),
    step("windows", "the program compiles for Windows", windows),
    step("macos", "everything without C compiles for macOS", macos),
    // It compiles the program three times, twice with optimization at link time.
    Step {
        limit: Duration::from_secs(100 * 60),
        ..step(
            "release",
            "the packages of a release install and serve, and have the same bytes when made again",
            release::check,
        )
    },
    step("langfuse", "Langfuse's clients read prompts from the server", langfuse),
    step("frameworks", "agent frameworks start with the server and use its prompts", frameworks),
    endless("model", "random sequences of operations on a store do what the reference model says", proof::model),
    endless("replicas", "replicas serve revisions in order and reach the newest one", proof::replicas),
    endless("properties", "no answer has closed content, and edited libraries are like new ones", proof::properties),
    endless("statements", "each statement of each operation may fail", proof::statements),
    endless("calls", "each system call of the commands that write files may fail", proof::system_calls),
    endless("chaos", "faults at random lose, double and reorder nothing", proof::chaos_of_the_night),
    endless("coverage", "the tests run what they have to of each crate", proof::coverage),
    endless("mutants", "tests notice small changes of the decisions about access, limits and publishing", |it| {
        proof::mutants(it, None)
    }),
    endless("fuzz", "random bytes break no reader", proof::fuzz),
    step("work", "no operation of a template costs more than its steps", |it| {
        cargo(it, "test --release --package promptshelf-core --test it work::").run_tests()
    }),
    step("alerts", "alerts and dashboard work in a real Prometheus", alerts),
    step("walkthrough", "the walk-through of the guide works, command by command", web::walkthrough),
    step("editors", "editors work with the configuration of the guide; the extension of VS Code packs", editors),
    step("guard", "the hot paths take at most 25 % more instructions than recorded", |it| guard::run(it, None)),
];

/// Runs all steps, or the named ones. A failing step does not stop the others.
pub(crate) fn run(repository: &Repository, steps: &[Step], only: &[String]) -> Result<()> {
    if let Some(unknown) = only.iter().find(|name| !steps.iter().any(|step| step.name == *name)) {
        let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
        bail!("unknown step `{unknown}`: expected one of {}", names.join(", "));
    }
    let is_chosen = |step: &&Step| match only {
        [] => !BESIDE.iter().any(|names| names.contains(&step.name)),
        only => only.iter().any(|name| name == step.name),
    };
    let chosen: Vec<&Step> = steps.iter().filter(is_chosen).collect();
    let (mut times, mut failed, mut beside) = (Vec::new(), Vec::new(), Vec::new());
    let is_whole = only.is_empty() && chosen.iter().any(|step| step.name == AFTER_TESTS);
    let mut installing = is_whole.then(|| begin_to_install(repository)).flatten();
    for (at, step) in chosen.iter().enumerate() {
        if step.name == AFTER_TESTS && is_whole {
            // Processes beside each other must not install into the same folders.
            if !installing.take().is_some_and(|mut installing| installing.wait().is_ok_and(|it| it.success())) {
                install_everything(repository)?;
            }
            beside = BESIDE.into_iter().map(|names| Beside::start(repository, names)).collect::<Result<_>>()?;
        }
        println!("\n=== {} of {}: {} ({})", at + 1, chosen.len(), step.name, step.about);
        let started = Instant::now();
        let outcome = within_limit(step, || (step.run)(repository));
        let took = seconds(started.elapsed());
        match &outcome {
            Ok(()) => println!("=== {} passed in {took}", step.name),
            Err(error) => {
                let message = format!("=== {} FAILED after {took}: {error:#}", step.name);
                println!("{message}");
                failed.push((step.name, message));
            }
        }
        times.push((step.name, took, outcome.is_ok()));
    }
    for beside in beside {
        let name = beside.names[0];
        let (took, lost) = beside.end()?;
        times.push((name, took, lost.is_empty()));
        failed.extend(lost.into_iter().map(|name| (name, format!("=== {name} FAILED: see above"))));
    }
    println!();
    for (name, took, passed) in &times {
        println!("{name:<12} {took:>8}{}", if *passed { "" } else { "  FAILED" });
    }
    println!("{} passed, {} failed", times.len() - failed.len(), failed.len());
    if !failed.is_empty() {
        // Again, because they are far above.
        for (_, message) in &failed {
            println!("\n{message}");
        }
        let names: Vec<&str> = failed.iter().map(|(name, _)| *name).collect();
        bail!("{} failed; again alone: --only {}", names.join(", "), names.join(" --only "));
    }
    Ok(())
}

/// A list of [`BESIDE`] in a process of its own, whose output is printed at its end.
struct Beside {
    names: &'static [&'static str],
    child: Child,
    log: PathBuf,
    started: Instant,
}

impl Beside {
    fn start(repository: &Repository, names: &'static [&'static str]) -> Result<Beside> {
        let path = repository.target().join(format!("beside-{}.log", names[0]));
        let log = File::create(&path).with_context(|| format!("{} cannot be written", path.display()))?;
        let child = Command::new(std::env::current_exe()?)
            .arg("test")
            .args(names.iter().flat_map(|name| ["--only", name]))
            .current_dir(&repository.root)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("the steps beside the page could not be started")?;
        println!("=== beside it: {} (see {})", names.join(", "), path.display());
        Ok(Beside { names, child, log: path, started: Instant::now() })
    }

    /// Waits for the end, and returns how long it took, and the steps that did not pass.
    fn end(mut self) -> Result<(String, Vec<&'static str>)> {
        self.child.wait()?;
        let log = String::from_utf8_lossy(&fs::read(&self.log)?).into_owned();
        println!("{log}");
        let has_passed = |name: &&str| log.contains(&format!("=== {name} passed in"));
        Ok((seconds(self.started.elapsed()), self.names.iter().copied().filter(|name| !has_passed(name)).collect()))
    }
}

/// The longest time of a step. The slowest one needs about a fifth of it on two processors.
const LIMIT: Duration = Duration::from_secs(40 * 60);

/// The longest time of a part that could go on for ever.
const NIGHT: Duration = Duration::from_secs(8 * 60 * 60);

/// Runs a step, and ends this program when the step does not end: a log that names it helps more than one that stops.
fn within_limit<T>(step: &Step, run: impl FnOnce() -> T) -> T {
    let (ended, end) = mpsc::channel::<()>();
    let (name, limit) = (step.name, step.limit);
    thread::spawn(move || {
        if end.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            println!("\n=== {name} FAILED: it did not end within {}; again alone: --only {name}", seconds(limit));
            exit(1);
        }
    });
    let outcome = run();
    drop(ended);
    outcome
}

fn cargo(repository: &Repository, words: &str) -> Program {
    Program::cargo(&repository.root).args(&words.split(' ').collect::<Vec<_>>())
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn embed(repository: &Repository) -> Result<()> {
    // No feature, the one that a server of one's own has, the one with the most code, and the combination that has code of
    // its own. The step `macos` checks `web` alone.
    for features in ["", "http", "channels", "web,sign-in"] {
        Program::cargo(&repository.root)
            .args(&["clippy", "--package", "promptshelf", "--lib", "--no-default-features", "--features", features])
            .args(&["--", "-D", "warnings"])
            .run()?;
    }
    Ok(())
}

fn test(repository: &Repository) -> Result<()> {
    install_postgres(repository)?;
    // Replicas are tested behind both.
    if cfg!(target_os = "linux") {
        install_debian(repository, "nginx", "nginx")?;
        install_debian(repository, "pgbouncer", "pgbouncer")?;
        // What the operators of the guide use.
        install_debian(repository, "curl", "curl")?;
        install_debian(repository, "openssl", "openssl")?;
        // Failing system calls, and servers with other clocks.
        install_debian(repository, "strace", "strace")?;
        install_debian(repository, "faketime", "faketime")?;
    }
    let programs = test_programs(repository)?;
    let (own, others): (Vec<_>, Vec<_>) = programs.into_iter().partition(|program| program.package == "promptshelf");
    // Tests of the whole program wait about half of their time, which the others use.
    let (own, (printed, others)) = thread::scope(|scope| {
        let others = scope.spawn(|| {
            let mut printed = Vec::new();
            let failed: Vec<_> = others.iter().filter_map(|it| it.run(repository, &mut printed).err()).collect();
            (printed, failed)
        });
        let mut own: Vec<_> = own.iter().filter_map(|it| it.run(repository, &mut io::stdout()).err()).collect();
        own.extend(cargo(repository, "test --workspace --doc --no-fail-fast").run_tests().err());
        (own, others.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    println!("{}", String::from_utf8_lossy(&printed));
    let failed: Vec<String> = own.iter().chain(&others).map(|error| format!("{error:#}")).collect();
    if !failed.is_empty() {
        bail!("{}", failed.join("\n"));
    }
    Ok(())
}

/// A program that `cargo test` would run.
struct TestProgram {
    package: String,
    folder: PathBuf,
    path: PathBuf,
}

impl TestProgram {
    /// Runs it with the variables that cargo sets.
    fn run(&self, repository: &Repository, out: &mut impl Write) -> Result<()> {
        let tests = Program::new(&self.path, &self.folder).env("CARGO_MANIFEST_DIR", &self.folder.to_string_lossy());
        tests.env("CARGO_BIN_EXE_promptshelf", &repository.binary().to_string_lossy()).run_tests_into(out)
    }
}

/// Builds all tests, and returns their programs.
fn test_programs(repository: &Repository) -> Result<Vec<TestProgram>> {
    println!("$ cargo test --workspace --lib --bins --examples --test '*' --no-run");
    let words = "test --workspace --lib --bins --examples --test * --no-run --message-format json-render-diagnostics";
    let mut programs = Vec::new();
    for line in cargo(repository, words).read()?.lines() {
        let message: Value = serde_json::from_str(line).context("cargo prints JSON")?;
        let (Some(path), Some(manifest)) = (message["executable"].as_str(), message["manifest_path"].as_str()) else {
            continue;
        };
        if message["profile"]["test"] == true {
            let folder = Path::new(manifest).parent().unwrap_or(&repository.root).to_owned();
            let package = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            programs.push(TestProgram { package, folder, path: PathBuf::from(path) });
        }
    }
    Ok(programs)
}

fn doc(repository: &Repository) -> Result<()> {
    cargo(repository, "doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings").run()
}

fn examples(repository: &Repository) -> Result<()> {
    build(repository)?;
    for library in ["examples/library", "tests/fixtures/conformance"] {
        Program::new(repository.binary(), &repository.root).args(&["check", library, "--deny", "warnings"]).run()?;
    }
    Ok(())
}

/// Compares the `rust-version` of each crate with the compiler that runs the steps.
fn msrv(repository: &Repository) -> Result<()> {
    let printed = Program::new("rustc", &repository.root).args(&["--version"]).read()?;
    let version = printed.split(' ').nth(1).unwrap_or_default();
    for package in repository.metadata["packages"].as_array().into_iter().flatten() {
        let (name, declared) = (&package["name"], package["rust_version"].as_str().unwrap_or("none"));
        if !(version == declared || version.starts_with(&format!("{declared}."))) {
            bail!("{name}: rust-version is {declared}, and these steps run with rustc {version}: test with the oldest");
        }
    }
    println!("rustc {version} is the rust-version of every crate");
    Ok(())
}

/// Compares the public API with the last release tag. Before the first release there is nothing to compare with.
fn semver(repository: &Repository) -> Result<()> {
    let tags =
        Program::new("git", &repository.root).args(&["tag", "--list", "v*", "--sort=-version:refname"]).read()?;
    let Some(tag) = tags.lines().next() else {
        println!("no release tag (v*) yet: there is no API to be compatible with");
        return Ok(());
    };
    let checks = cargo_tool(repository, "cargo-semver-checks", "0.51.0", "")?;
    Program::new(checks, &repository.root).args(&["semver-checks", "--workspace", "--baseline-rev", tag]).run()
}

/// Checks licences, bans and sources. The advisories need a database from the network, which CI updates elsewhere.
fn deny(repository: &Repository) -> Result<()> {
    let deny = cargo_tool(repository, "cargo-deny", "0.20.2", "")?;
    Program::new(deny, &repository.root).args(&["check", "bans", "licenses", "sources"]).run()
}

/// Checks the workflows and the action, the manifests of Kubernetes, and scripts of the shell.
fn workflows(repository: &Repository) -> Result<()> {
    let root = &repository.root;
    let python = install_python(&root.join(".github"))?;
    let tool = |name: &str| Program::new(python.with_file_name(name), root);
    tool("actionlint").run()?;
    tool("zizmor").args(&["--offline", "--quiet", ".github", "action.yml"]).run()?;
    tool("kubernetes-validate")
        .args(&["--strict", "--quiet", "-k", "1.32.0", "deploy/kubernetes/promptshelf.yaml"])
        .run()?;
    tool("check-jsonschema").args(&["--builtin-schema", "vendor.compose-spec", "deploy/compose.yaml"]).run()?;
    install_debian(repository, "shellcheck", "shellcheck")?;
    Program::new("shellcheck", root).args(&["packaging/install.sh", "packaging/action.sh"]).run()
}

fn alerts(repository: &Repository) -> Result<()> {
    install_debian(repository, "promtool", "prometheus")?;
    cargo(repository, "test --package promptshelf --test it observe::alerts -- --include-ignored").run_tests()
}

fn editors(repository: &Repository) -> Result<()> {
    install_debian(repository, "nvim", "neovim")?;
    install_debian(repository, "emacs", "emacs-nox")?;
    if !Path::new("/usr/share/doc/elpa-eglot").exists() {
        Program::new("apt-get", &repository.root).args(&["install", "--yes", "elpa-eglot"]).run()?;
    }
    let extension = repository.root.join("editors/vscode");
    install(&extension)?;
    Program::new("npm", &extension).args(&["run", "pack"]).run()?;
    cargo(repository, "test --package promptshelf --test it editors:: -- --include-ignored").run_tests()
}

fn windows(repository: &Repository) -> Result<()> {
    const TARGET: &str = "x86_64-pc-windows-gnu";
    install_target(repository, TARGET)?;
    // The build scripts of aws-lc and mimalloc compile C.
    install_debian(repository, "x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64")?;
    Program::cargo(&repository.root).args(&["check", "--target", TARGET, "--package", "promptshelf"]).run()
}

/// The command line, sign-in and TLS contain C, which only compiles with the SDK of macOS.
fn macos(repository: &Repository) -> Result<()> {
    const TARGET: &str = "aarch64-apple-darwin";
    install_target(repository, TARGET)?;
    Program::cargo(&repository.root)
        .args(&["check", "--target", TARGET, "--package", "promptshelf", "--lib", "--no-default-features"])
        .args(&["--features", "web"])
        .run()
}

/// Runs the official suites, whose results are also a page of the guide, and compares them with the requirements.
fn suites(repository: &Repository) -> Result<()> {
    build(repository)?;
    install_peers(repository)?;
    let tests = ["--test", "verdict.test.mjs", "evaluations.test.mjs"];
    node(repository).env("PROMPTSHELF", &repository.binary().to_string_lossy()).args(&tests).run()?;
    let results = conformance::results_file(repository);
    node(repository)
        .arg("conformance.mjs")
        .arg("--server")
        .arg(repository.binary())
        .arg("--results")
        .arg(results)
        .run()?;
    conformance::check_suites(repository)
}

/// Runs an official client against the binary.
fn peer(repository: &Repository, script: &str) -> Result<()> {
    build(repository)?;
    install_peers(repository)?;
    node(repository).arg(script).arg("--server").arg(repository.binary()).run()
}

/// Runs our own client against servers of the official SDKs, directly and as sources of a server, and through the client scenarios of the conformance
/// suite. Runs coding agents with files of `sync` and a stand-in model.
fn host(repository: &Repository) -> Result<()> {
    build(repository)?;
    install_peers(repository)?;
    let python = install_python(&repository.peers().join("python"))?;
    let rust = build_official_server(repository)?;
    let script =
        |name: &str| node(repository).arg(name).arg("--server").arg(repository.binary()).arg("--python").arg(&python);
    script("host.mjs").arg("--rust").arg(rust).run()?;
    let fastmcp = install_python(&repository.peers().join("frameworks"))?;
    script("upstreams.mjs").arg("--fastmcp").arg(fastmcp).run()?;
    script("client-conformance.mjs").run()?;
    legacy_notifications(repository, &python)?;
    let agents = repository.peers().join("agents");
    install(&agents)?;
    script("agents/agents.mjs").run()
}

/// Runs Langfuse's JavaScript and Python clients against the binary.
fn langfuse(repository: &Repository) -> Result<()> {
    build(repository)?;
    install_peers(repository)?;
    let folder = repository.peers().join("langfuse");
    install(&folder)?;
    let python = install_python(&folder)?;
    let script = node(repository).arg("langfuse/langfuse.mjs").arg("--server").arg(repository.binary());
    script.arg("--python").arg(&python).run()
}

/// Runs agent frameworks with local models against the binary.
fn frameworks(repository: &Repository) -> Result<()> {
    build(repository)?;
    install_peers(repository)?;
    let folder = repository.peers().join("frameworks");
    install(&folder)?;
    let python = install_python(&folder)?;
    node(repository).arg("frameworks/mastra.mjs").arg("--server").arg(repository.binary()).run()?;
    // A process for each framework, because they change the event loop and the logging of their process.
    let test = |name: &str| {
        Program::new(&python, &folder)
            .args(&["-W", "ignore", "-m", "unittest", &format!("test_{name}")])
            .env("PROMPTSHELF", &repository.binary().to_string_lossy())
            .run()
    };
    // Two at a time: each spends most of its time on one core, with imports.
    let all = |names: &[&str]| names.iter().try_for_each(|name| test(name));
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| all(&["openai_agents", "pydantic_ai", "strands"]));
        (all(&["fastmcp", "langchain", "llama_index"]), other.join())
    });
    one?;
    other.unwrap_or_else(|_| bail!("a test of the frameworks panicked"))?;
    legacy_notifications(repository, &python)
}

/// Runs the client of an official Python SDK, of generation 1 or 2, over legacy Streamable HTTP.
fn legacy_notifications(repository: &Repository, python: &Path) -> Result<()> {
    Program::new(python, &repository.peers()).arg("python/list_changed.py").arg(repository.binary()).run()
}
