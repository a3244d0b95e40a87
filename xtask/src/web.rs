//! The step that checks the page: types, lint, and all of its functions in a browser.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    prepare::{build, install},
    repository::Repository,
    terminal::Program,
};

const ASSETS: &str = "crates/promptshelf-server/src/web/assets";

/// Where distributions install a browser.
const BROWSERS: [&str; 3] = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/// Includes fonts for every language of the page.
const PACKAGES: [&str; 3] = ["chromium", "fonts-inter", "fonts-noto-cjk"];

/// Checks the page.
pub(crate) fn run(repository: &Repository) -> Result<()> {
    build(repository)?;
    let folder = repository.web();
    install(&folder)?;
    let tool = |name: &str| Program::new(folder.join("node_modules/.bin").join(name), &repository.root);
    tool("tsc").args(&["-p", "tests/web"]).run()?;
    tool("biome")
        .args(&["check", "--error-on-warnings", "--config-path=tests/web/lint.json", ASSETS, "tests/web"])
        .run()?;
    // More browsers at once would only wait for each other on two cores.
    let mut node = node(repository)?.args(&["--test", "--test-timeout=1200000", "--test-concurrency=2"]);
    for file in tests(&folder)? {
        node = node.arg(file);
    }
    node.run()
}

/// Follows the walk-through of the guide, with its screenshots.
pub(crate) fn walkthrough(repository: &Repository) -> Result<()> {
    build(repository)?;
    install(&repository.web())?;
    node(repository)?.arg("screens-walkthrough.mjs").arg(repository.target().join("screens")).run()
}

/// Node.js in the folder of the tests, with the program and a browser.
fn node(repository: &Repository) -> Result<Program> {
    Ok(Program::new("node", &repository.web())
        .when_missing("Install Node.js (on Debian: apt-get install --yes nodejs) and start again.")
        .env("PROMPTSHELF", &repository.binary().to_string_lossy())
        .env("CHROMIUM", &browser(&repository.root)?.to_string_lossy()))
}

fn tests(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).context("tests/web cannot be read")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".test.mjs") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Returns the installed browser, or installs one from the system's packages.
fn browser(root: &Path) -> Result<PathBuf> {
    let known = || {
        let named = env::var_os("CHROMIUM").map(PathBuf::from);
        named.into_iter().chain(BROWSERS.map(PathBuf::from)).find(|path| path.exists())
    };
    if let Some(found) = known() {
        return Ok(found);
    }
    let command = format!("apt-get install --yes --no-install-recommends {}", PACKAGES.join(" "));
    let whoami = Command::new("id").arg("-u").output();
    if !whoami.is_ok_and(|output| output.stdout.trim_ascii() == b"0") {
        bail!("Chromium is not installed. Install it (on Debian: sudo {command}) or name one with CHROMIUM=path.");
    }
    Program::new("apt-get", root).args(&["update", "--quiet"]).run()?;
    let install = Program::new("apt-get", root).env("DEBIAN_FRONTEND", "noninteractive");
    install.args(&["install", "--yes", "--quiet", "--no-install-recommends"]).args(&PACKAGES).run()?;
    known().context("the package chromium contains no browser")
}
