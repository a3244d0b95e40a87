//! Requirements of the protocol and threats, with the tests that prove them.
//!
//! People write `docs/requirements/*.toml`. A test names the requirements that it proves in a tag (`// req: C6`); the
//! official suites leave their results in the target folder. The steps `requirements` and `conformance` check that each
//! row has evidence; the guide has both tables as pages, which are generated when it is built.

mod document;
mod requirements;
mod suites;
mod tags;

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::{Result, bail};

use crate::repository::Repository;
use requirements::Area;
use tags::Tags;

/// Returns the file to which `tests/peers/conformance.mjs` writes the results of the suites.
pub(crate) fn results_file(repository: &Repository) -> PathBuf {
    repository.target().join("conformance-results.json")
}

/// Checks requirements, threats and tags. Scenarios of the suites count as evidence without a run.
///
/// # Errors
///
/// When a requirement is invalid or lacks evidence.
pub(crate) fn check_requirements(repository: &Repository) -> Result<()> {
    let Proven { areas, tags } = Proven::read(repository, None)?;
    println!("{}", document::totals(&areas, &tags));
    Ok(())
}

/// Checks that the scenarios which requirements name have passed in the last run of the suites.
///
/// # Errors
///
/// When one has not.
pub(crate) fn check_suites(repository: &Repository) -> Result<()> {
    let suites = suites::read(&results_file(repository))?;
    Proven::read(repository, Some(&suites::passing(&suites))).map(drop)
}

/// Returns the pages of the guide about requirements and threats: file name and text. The results of the suites are
/// on the first one if they have run here.
///
/// # Errors
///
/// When a requirement is invalid or lacks evidence.
pub(crate) fn pages(repository: &Repository) -> Result<[(&'static str, String); 2]> {
    let Proven { areas, tags } = Proven::read(repository, None)?;
    let results = suites::read(&results_file(repository)).map_or_else(|_| String::new(), |it| document::suites(&it));
    Ok([
        ("conformance.md", document::requirements(&areas, &tags) + &results),
        ("threats.md", document::threats(&areas, &tags)),
    ])
}

/// Valid requirements and their evidence.
struct Proven {
    areas: Vec<Area>,
    tags: Tags,
}

impl Proven {
    /// Reads and checks the requirements. `passing` holds the scenarios that passed, if the suites have run.
    fn read(repository: &Repository, passing: Option<&BTreeSet<String>>) -> Result<Proven> {
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
}
