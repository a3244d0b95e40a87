//! The user guide in `docs/guide`, an mdBook.
//!
//! - `cargo xtask guide` writes the reference pages from the binary and builds the book into `target/guide`.
//! - The step `guide` of the tests fails if a reference page is out of date, if an example does not pass
//!   `promptshelf check`, or if a link in the documentation leads to a missing file or heading.

mod examples;
mod links;
mod reference;

use std::fs;

use anyhow::{Context, Result, bail};

use crate::{conformance, prepare, repository::Repository, terminal::Program};

/// The folder of the book's pages, from the root.
const PAGES: &str = "docs/guide/src";

/// The version of mdBook that builds the book.
const MDBOOK: &str = "0.5.4";

/// Writes the reference pages and builds the book.
///
/// # Errors
///
/// If the binary or mdBook fails, or a page cannot be written.
pub(crate) fn write(repository: &Repository) -> Result<()> {
    prepare::build(repository)?;
    let folder = repository.root.join(PAGES).join("reference");
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be created", folder.display()))?;
    for (name, text) in reference::pages(repository)? {
        let path = folder.join(&name);
        fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    build(repository)
}

/// Checks reference pages, examples and links, and builds the book.
///
/// # Errors
///
/// If one of them fails.
pub(crate) fn check(repository: &Repository) -> Result<()> {
    prepare::build(repository)?;
    let mut stale = Vec::new();
    for (name, text) in reference::pages(repository)? {
        let path = repository.root.join(PAGES).join("reference").join(&name);
        if fs::read_to_string(&path).is_ok_and(|current| current == text) {
            continue;
        }
        stale.push(name);
    }
    if !stale.is_empty() {
        bail!("out of date: {}; run `cargo xtask guide` and commit the result", stale.join(", "));
    }
    let broken = links::broken(&repository.texts()?);
    if !broken.is_empty() {
        bail!("broken links:\n  {}", broken.join("\n  "));
    }
    examples::check(repository)?;
    build(repository)
}

/// Builds the book from a copy of its pages in the target folder, to which the generated pages are added.
fn build(repository: &Repository) -> Result<()> {
    let copy = repository.target().join("guide-pages");
    let source = repository.root.join("docs/guide");
    if copy.exists() {
        fs::remove_dir_all(&copy).with_context(|| format!("{} cannot be removed", copy.display()))?;
    }
    Program::new("cp", &repository.root).args(&["-R", &source.to_string_lossy(), &copy.to_string_lossy()]).run()?;
    let mut summary = fs::read_to_string(source.join("src/SUMMARY.md")).context("SUMMARY.md cannot be read")?;
    for (name, text) in conformance::pages(repository)? {
        let title = text.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned();
        summary.push_str(&format!("- [{title}](reference/{name})\n"));
        fs::write(copy.join("src/reference").join(name), text).with_context(|| format!("{name} cannot be written"))?;
    }
    fs::write(copy.join("src/SUMMARY.md"), summary).context("SUMMARY.md cannot be written")?;
    let program = prepare::cargo_tool(repository, "mdbook", MDBOOK, "search")?;
    Program::new(program, &repository.root)
        .args(&["build", &copy.to_string_lossy(), "--dest-dir", &repository.target().join("guide").to_string_lossy()])
        .run()
}
