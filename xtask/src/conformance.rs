//! The tables of `docs/conformance.md` and `SECURITY.md`: requirements and threats with their evidence.
//!
//! People write `docs/requirements/*.toml`. A test names the requirements that it proves in a tag (`// req: C6`); the
//! official suites leave their results in the target folder. The tables are generated from these three, and are never
//! edited by hand. The tests run elsewhere.

mod document;
mod requirements;
mod suites;
mod tags;

use std::{collections::BTreeSet, fs, path::PathBuf};

use anyhow::{Context, Result, bail};

use crate::repository::Repository;
use requirements::Area;
use tags::Tags;

/// Returns the file to which `tests/peers/conformance.mjs` writes the results of the suites.
pub(crate) fn results_file(repository: &Repository) -> PathBuf {
    repository.target().join("conformance-results.json")
}

/// Writes both tables after the suites have run.
///
/// # Errors
///
/// When a requirement is invalid or lacks evidence, or the suites have not run.
pub(crate) fn write(repository: &Repository) -> Result<()> {
    let suites = suites::read(&results_file(repository))?;
    let proven = Proven::read(repository, &suites::passing(&suites))?;
    proven.write(repository, &document::suites(&suites))
}

/// Writes both tables and keeps the recorded results of the suites.
///
/// # Errors
///
/// When a requirement is invalid or lacks evidence.
pub(crate) fn write_requirements(repository: &Repository) -> Result<()> {
    let written = read(repository, CONFORMANCE)?;
    let suites = document::suites_of(&written);
    Proven::read(repository, &document::passing(suites))?.write(repository, suites)
}

/// Checks both tables against requirements and tags. Runs no test and no suite.
///
/// # Errors
///
/// When a requirement is invalid or lacks evidence, or a table is stale.
pub(crate) fn check_requirements(repository: &Repository) -> Result<()> {
    let written = read(repository, CONFORMANCE)?;
    let Proven { areas, tags } = Proven::read(repository, &document::passing(document::suites_of(&written)))?;
    compare(CONFORMANCE, &document::requirements(&areas, &tags), document::requirements_of(&written), FROM_TAGS)?;
    let security = read(repository, SECURITY)?;
    compare(SECURITY, &document::with_threats(&security, &areas, &tags)?, &security, FROM_TAGS)?;
    println!("{}", document::totals(&areas, &tags));
    Ok(())
}

/// Checks the second part of the table against the last run of the suites.
///
/// # Errors
///
/// When the table is stale.
pub(crate) fn check_suites(repository: &Repository) -> Result<()> {
    let suites = suites::read(&results_file(repository))?;
    let written = read(repository, CONFORMANCE)?;
    compare(CONFORMANCE, &document::suites(&suites), document::suites_of(&written), WITH_SUITES)?;
    println!("{CONFORMANCE} is current");
    Ok(())
}

/// The commands that write the tables.
const WITH_SUITES: &str = "cargo xtask conformance";
const FROM_TAGS: &str = "cargo xtask conformance --without-running";

const CONFORMANCE: &str = "docs/conformance.md";
const SECURITY: &str = "SECURITY.md";

/// Valid requirements and their evidence.
struct Proven {
    areas: Vec<Area>,
    tags: Tags,
}

impl Proven {
    fn read(repository: &Repository, passing: &BTreeSet<String>) -> Result<Proven> {
        let areas = requirements::read(&repository.root.join("docs/requirements"))?;
        let tags = Tags::collect(&repository.texts()?);
        let problems = requirements::problems(&areas, &tags, passing);
        if problems.is_empty() {
            return Ok(Proven { areas, tags });
        }
        for problem in &problems {
            println!("{problem}");
        }
        bail!("{} problems in docs/requirements and the tags at the tests", problems.len())
    }

    fn write(&self, repository: &Repository, suites: &str) -> Result<()> {
        let Proven { areas, tags } = self;
        let security = document::with_threats(&read(repository, SECURITY)?, areas, tags)?;
        for (path, text) in [(CONFORMANCE, document::requirements(areas, tags) + suites), (SECURITY, security)] {
            fs::write(repository.root.join(path), text).with_context(|| format!("{path} cannot be written"))?;
        }
        println!("{CONFORMANCE}: {}", document::totals(areas, tags));
        Ok(())
    }
}

fn read(repository: &Repository, path: &str) -> Result<String> {
    fs::read_to_string(repository.root.join(path)).with_context(|| format!("{path} cannot be read"))
}

/// Fails at the first line that differs.
fn compare(path: &str, expected: &str, written: &str, command: &str) -> Result<()> {
    if expected == written {
        return Ok(());
    }
    let differs = expected.lines().zip(written.lines()).find(|(expected, written)| expected != written);
    if let Some((expected, written)) = differs {
        println!("- {written}\n+ {expected}");
    }
    bail!("{path} is stale; run `{command}` and commit the result")
}

#[cfg(test)]
mod tests {
    use super::compare;

    #[test]
    fn table_that_differs_is_stale() {
        assert!(compare("a.md", "| A1 |\n", "| A1 |\n", "cargo").is_ok());
        assert!(compare("a.md", "| A1 |\n", "| A2 |\n", "cargo").is_err());
        assert!(compare("a.md", "| A1 |\n", "| A1 |\n| A2 |\n", "cargo").is_err());
        assert!(compare("a.md", "| A1 |\n", "", "cargo").is_err());
    }
}
