//! Preparation that several steps share: building the binary, and installing the packages of tests.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{repository::Repository, terminal::Program};

/// Builds the binary with the features of the tests.
// `--tests` unifies the features with those of the tests' dependencies: without it, cargo would build half of the
// graph a second time.
pub(crate) fn build(repository: &Repository) -> Result<()> {
    Program::cargo(&repository.root).args(&["build", "--workspace", "--tests", "--bin", "promptshelf"]).run()
}

/// Returns a run of the Node.js that `tests/peers` installs: the suites need a newer one than many machines have.
pub(crate) fn node(repository: &Repository) -> Program {
    let peers = repository.peers();
    Program::new(peers.join("node_modules/.bin/node"), &peers)
}

/// Installs the packages of `tests/peers`.
pub(crate) fn install_peers(repository: &Repository) -> Result<()> {
    install(&repository.peers())
}

/// Installs a folder's packages from the npm registry, unless the same versions are there already.
pub(crate) fn install(folder: &Path) -> Result<()> {
    let wanted = fs::read(folder.join("package-lock.json"))
        .with_context(|| format!("{} has no package-lock.json", folder.display()))?;
    let stamp = folder.join("node_modules/.installed-lockfile");
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    Program::new(if cfg!(windows) { "npm.cmd" } else { "npm" }, folder)
        .when_missing("Install Node.js with npm (on Debian: apt-get install --yes nodejs npm) and start again.")
        // Not `npm ci`: it rejects a lockfile without addresses as incomplete if it lists packages of other platforms.
        // This command follows the lockfile too.
        .args(&["install", "--no-save", "--no-audit", "--no-fund", "--loglevel", "error"])
        .run()?;
    fs::write(&stamp, wanted).with_context(|| format!("{} cannot be written", stamp.display()))
}

/// Installs all packages of npm and PyPI that the steps of `cargo xtask test` use.
pub(crate) fn install_everything(repository: &Repository) -> Result<()> {
    let peers = repository.peers();
    for folder in [&repository.web(), &peers, &peers.join("agents")] {
        install(folder)?;
    }
    let of_peers = ["frameworks", "python", "release"].map(|name| peers.join(name));
    for folder in of_peers.iter().chain([&repository.root.join(".github")]) {
        install_python(folder)?;
    }
    Ok(())
}

/// Starts [`install_everything`] in a process of its own, which takes only the time that nothing else uses. The steps that
/// need the packages install them themselves if this fails.
pub(crate) fn begin_to_install(repository: &Repository) -> Option<Child> {
    let log = File::create(repository.target().join("install.log")).ok()?;
    Command::new("nice")
        .args(["-n", "19"])
        .arg(std::env::current_exe().ok()?)
        .arg("install")
        .current_dir(&repository.root)
        .stdin(Stdio::null())
        .stdout(log.try_clone().ok()?)
        .stderr(log)
        .spawn()
        .ok()
}

/// Builds the server of the official Rust SDK, and returns its path.
pub(crate) fn build_official_server(repository: &Repository) -> Result<PathBuf> {
    const NAME: &str = "official-server";
    Program::cargo(&repository.root).args(&["build", "--workspace", "--tests", "--example", NAME]).run()?;
    let file = format!("{NAME}{}", std::env::consts::EXE_SUFFIX);
    Ok(repository.target().join("debug/examples").join(file))
}

/// Installs a folder's `requirements.txt` into an environment of its own, unless the same versions are there already,
/// and returns that environment's Python.
pub(crate) fn install_python(folder: &Path) -> Result<PathBuf> {
    let environment = folder.join(".venv");
    let python = environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let wanted = fs::read(folder.join("requirements.txt"))
        .with_context(|| format!("{} has no requirements.txt", folder.display()))?;
    let stamp = environment.join(".installed-requirements");
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    Program::new(if cfg!(windows) { "python" } else { "python3" }, folder)
        .when_missing("Install Python 3.10 or newer (on Debian: apt-get install --yes python3-venv) and start again.")
        .args(&["-m", "venv", "--clear", ".venv"])
        .run()?;
    Program::new(&python, folder)
        .args(&[
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-compile",
            "-r",
            "requirements.txt",
        ])
        .run()?;
    fs::write(&stamp, wanted).with_context(|| format!("{} cannot be written", stamp.display()))?;
    Ok(python)
}

/// Installs a Debian package, unless its program runs already.
pub(crate) fn install_debian(repository: &Repository, program: &str, package: &str) -> Result<()> {
    if runs(program) {
        return Ok(());
    }
    let install = format!("apt-get install --yes {package}");
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    if !is_root {
        bail!("{program} is not installed. On Debian: sudo {install}");
    }
    let apt = |words: &[&str]| Program::new("apt-get", &repository.root).args(words).run();
    // A fresh container has no list of packages yet.
    apt(&["update"])
        .and_then(|()| apt(&["install", "--yes", package]))
        .with_context(|| format!("{program} is not installed. On Debian: {install}"))
}

/// Installs the programs of PostgreSQL, unless they are there already. Debian does not put them into the path.
pub(crate) fn install_postgres(repository: &Repository) -> Result<()> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    if cfg!(windows) || versions.into_iter().any(|version| version.path().join("bin/initdb").exists()) {
        return Ok(());
    }
    install_debian(repository, "initdb", "postgresql")
}

/// Installs the standard library of another platform, unless it is there already.
pub(crate) fn install_target(repository: &Repository, target: &str) -> Result<()> {
    let sysroot = Program::new("rustc", &repository.root).args(&["--print", "sysroot"]).read()?;
    if Path::new(sysroot.trim()).join("lib/rustlib").join(target).join("lib").is_dir() {
        return Ok(());
    }
    Program::new("rustup", &repository.root)
        .when_missing("Install the standard library of the target with the packages of this toolchain.")
        .args(&["target", "add", target])
        .run()
}

/// Returns a tool of this version with these features: an installed one, or the one in the target folder, built there
/// once.
pub(crate) fn cargo_tool(repository: &Repository, name: &str, version: &str, features: &str) -> Result<PathBuf> {
    let is_current = |program: &Path| {
        let printed = Command::new(program).arg("--version").stderr(Stdio::null()).output();
        printed.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim().ends_with(version))
    };
    if is_current(Path::new(name)) {
        return Ok(PathBuf::from(name));
    }
    let root = repository.target().join("tools");
    let program = root.join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if !is_current(&program) {
        // Without optimization it takes a third of the time to build, and runs fast enough.
        Program::cargo(&repository.root)
            .args(&["install", "--locked", "--quiet", "--debug", "--no-default-features", "--features", features])
            .arg("--root")
            .arg(&root)
            .arg(format!("{name}@{version}"))
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .run()?;
    }
    Ok(program)
}

fn runs(program: &str) -> bool {
    // nginx knows the short form only, OpenSSL a command.
    let answers = |flag| Command::new(program).arg(flag).output().is_ok_and(|output| output.status.success());
    answers("--version") || answers("-v") || answers("version")
}
