//! The house rules that neither the compiler nor clippy can hold.
//!
//! A rule is a function from the tree to what is wrong in it. It reads nothing
//! itself, so that its tests can hand it a tree of two lines.

mod code;
mod files;
mod walls;

use std::{collections::BTreeMap, fmt};

use anyhow::{Context, Result, bail};

use crate::repository::Repository;

/// The texts of the repository, and who depends on whom.
#[derive(Default)]
pub(crate) struct Tree {
    /// Path from the root, with `/`, to text. Files that are no UTF-8 are left out.
    texts: BTreeMap<String, String>,
    /// The workspace's own crates.
    crates: Vec<Crate>,
}

/// A crate of the workspace.
struct Crate {
    name: String,
    dependencies: Vec<Dependency>,
}

/// One line under `[dependencies]`, `[dev-dependencies]` or `[build-dependencies]`.
struct Dependency {
    name: String,
    for_tests: bool,
}

/// Something that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    /// From 1; 0 when the file as a whole is meant.
    line: usize,
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: &[(&str, Rule)] = &[
    ("dependencies point one way", walls::dependencies_point_one_way),
    ("only core's template rooms name minijinja", walls::only_template_rooms_name_minijinja),
    ("core does no I/O and reads no clock", walls::core_does_no_io),
    ("stdout belongs to the protocol and to the command line", walls::stdout_is_sacred),
    ("nothing is left to be done", walls::nothing_is_left_to_be_done),
    ("files are short", files::files_are_short),
    ("ARCHITECTURE.md names every source file", files::the_map_names_every_file),
    ("no machine and no registry is named", files::no_machine_is_named),
    ("the changelog has a place for what comes next", files::the_changelog_is_open),
    ("the licences are there", files::licences_are_there),
];

/// Checks every rule and prints what breaks one.
///
/// # Errors
///
/// When a rule is broken, or the repository cannot be read.
pub(crate) fn run(repository: &Repository) -> Result<()> {
    let tree = read(repository)?;
    let mut count = 0;
    for (name, rule) in RULES {
        let findings = rule(&tree);
        if !findings.is_empty() {
            println!("\nrule broken: {name}");
        }
        for finding in &findings {
            println!("  {finding}");
        }
        count += findings.len();
    }
    if count > 0 {
        bail!("{count} places break a house rule");
    }
    println!("{} rules hold in {} files", RULES.len(), tree.texts.len());
    Ok(())
}

fn read(repository: &Repository) -> Result<Tree> {
    let texts = repository.texts()?;
    let packages = repository.metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let crates = packages
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().into_iter().flatten();
            let dependencies = dependencies.map(|dependency| Dependency {
                name: dependency["name"].as_str().unwrap_or_default().to_owned(),
                for_tests: dependency["kind"] == "dev",
            });
            Crate {
                name: package["name"].as_str().unwrap_or_default().to_owned(),
                dependencies: dependencies.collect(),
            }
        })
        .collect();
    Ok(Tree { texts, crates })
}

#[cfg(test)]
impl Tree {
    /// A tree of these files, for a rule's test.
    fn of(texts: &[(&str, &str)]) -> Tree {
        let texts = texts.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        Tree { texts: texts.collect(), crates: Vec::new() }
    }
}
