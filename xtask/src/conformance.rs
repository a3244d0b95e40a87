//! The table of `docs/conformance.md`: what the protocol asks for, and what
//! shows that it is done.
//!
//! People write `docs/requirements/*.toml`, in this project's own words; tests,
//! transcripts, clients and suites are looked up, and the table is put together
//! from both. It is never edited by hand, holds no times, and so is the same
//! bytes for the same tree. The tests themselves run elsewhere.

mod document;
mod evidence;
mod requirements;
mod suites;

use std::{collections::BTreeSet, fs, path::PathBuf};

use anyhow::{Context, Result, bail};

use crate::repository::Repository;
use evidence::Known;
use requirements::Area;

/// Where `tests/peers/conformance.mjs` leaves what the suites have found.
pub(crate) fn results_file(repository: &Repository) -> PathBuf {
    repository.target().join("conformance-results.json")
}

/// Writes the table from what the suites have found the last time.
///
/// # Errors
///
/// When a requirement is not as it has to be, or the suites have not run.
pub(crate) fn write(repository: &Repository) -> Result<()> {
    let suites = suites::read(&results_file(repository))?;
    let areas = checked(repository, suites::passing(&suites))?;
    let text = document::whole(&areas, &suites);
    fs::write(table(repository), &text).context("docs/conformance.md cannot be written")?;
    println!("docs/conformance.md: {}", document::totals(&areas));
    Ok(())
}

/// Checks the part of the table that needs no suites to run: cheap enough for
/// every change.
///
/// # Errors
///
/// When a requirement is not as it has to be, or the table says something else.
pub(crate) fn check_requirements(repository: &Repository) -> Result<()> {
    let written = written(repository)?;
    let areas = checked(repository, document::passing(document::suites_of(&written)))?;
    compare(&document::requirements(&areas), document::requirements_of(&written))?;
    println!("{}", document::totals(&areas));
    Ok(())
}

/// Checks the whole table against what the suites have just found.
///
/// # Errors
///
/// When the table says something else.
pub(crate) fn check_suites(repository: &Repository) -> Result<()> {
    let suites = suites::read(&results_file(repository))?;
    let written = written(repository)?;
    compare(&document::suites(&suites), document::suites_of(&written))?;
    println!("docs/conformance.md says the same");
    Ok(())
}

fn checked(repository: &Repository, scenarios: BTreeSet<String>) -> Result<Vec<Area>> {
    let areas = requirements::read(&repository.root.join("docs/requirements"))?;
    let mut problems = requirements::problems(&areas);
    problems.extend(Known::find(repository, scenarios)?.problems(&areas));
    if problems.is_empty() {
        return Ok(areas);
    }
    for problem in &problems {
        println!("docs/requirements: {problem}");
    }
    bail!("{} requirements are not as they have to be", problems.len())
}

fn table(repository: &Repository) -> PathBuf {
    repository.root.join("docs/conformance.md")
}

fn written(repository: &Repository) -> Result<String> {
    fs::read_to_string(table(repository))
        .context("docs/conformance.md cannot be read; cargo xtask conformance writes it")
}

/// Fails at the first line that differs.
fn compare(now: &str, written: &str) -> Result<()> {
    if now == written {
        return Ok(());
    }
    let differs = now.lines().zip(written.lines()).find(|(now, written)| now != written);
    if let Some((now, written)) = differs {
        println!("- {written}\n+ {now}");
    }
    bail!("docs/conformance.md is stale; cargo xtask conformance writes it anew")
}

#[cfg(test)]
mod tests {
    use super::compare;

    #[test]
    fn a_table_that_says_something_else_is_stale() {
        assert!(compare("| A1 |\n", "| A1 |\n").is_ok());
        assert!(compare("| A1 |\n", "| A2 |\n").is_err());
        assert!(compare("| A1 |\n", "| A1 |\n| A2 |\n").is_err());
        assert!(compare("| A1 |\n", "").is_err());
    }
}
