//! Rules of this project that neither the compiler nor clippy can check.
//!
//! A rule is a function from the tree to its findings. It reads no files itself, so that a test can pass a tree of two
//! lines.

mod code;
mod files;
mod walls;

use std::{collections::BTreeMap, fmt};

use anyhow::{Context, Result, bail};

use crate::{repository::Repository, terminal::Program};

/// The texts of the repository, and the dependencies between its crates.
#[derive(Default)]
pub(crate) struct Tree {
    /// Path from the root, with `/`, to text. Files that are not UTF-8, and other projects' code (`vendor`), are omitted.
    texts: BTreeMap<String, String>,
    /// The workspace's own crates.
    crates: Vec<Crate>,
    /// Names of the crates that `promptshelf-client` depends on, also through others.
    below_client: Vec<String>,
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

/// A place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    /// From 1; 0 for the file as a whole.
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
    ("the client depends on no part of the server", walls::client_is_small),
    ("only core's template modules name minijinja", walls::only_template_modules_name_minijinja),
    ("core does no I/O and reads no clock", walls::core_does_no_io),
    ("stdout belongs to the protocol and to the command line", walls::stdout_is_reserved),
    ("no placeholders for unfinished code", walls::no_placeholders),
    ("no machine and no registry is named", files::no_machine_is_named),
    ("the changelog has a place for what comes next", files::the_changelog_is_open),
    ("the licences are there", files::licences_are_there),
];

/// Checks every rule, and prints the findings.
///
/// # Errors
///
/// When a rule is broken or the repository cannot be read.
pub(crate) fn run(repository: &Repository) -> Result<()> {
    let tree = read(repository)?;
    let mut count = 0;
    for (name, rule) in RULES {
        count += print(name, &rule(&tree));
    }
    if count > 0 {
        bail!("{count} places break a rule of the project");
    }
    println!("{} rules hold in {} files", RULES.len(), tree.texts.len());
    Ok(())
}

/// Prints the findings of a rule, and returns their number.
fn print(rule: &str, findings: &[Finding]) -> usize {
    if !findings.is_empty() {
        println!("\nrule broken: {rule}");
    }
    for finding in findings {
        println!("  {finding}");
    }
    findings.len()
}

fn read(repository: &Repository) -> Result<Tree> {
    let mut texts = repository.texts()?;
    texts.retain(|path, _| !path.contains("/vendor/"));
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
    let below = Program::cargo(&repository.root)
        .args(&["tree", "--package", "promptshelf-client", "--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .read()?;
    let below_client = below.lines().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect();
    Ok(Tree { texts, crates, below_client })
}

#[cfg(test)]
impl Tree {
    /// Creates a tree of these files, for the test of a rule.
    fn of(texts: &[(&str, &str)]) -> Tree {
        let texts = texts.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        Tree { texts: texts.collect(), ..Tree::default() }
    }
}
