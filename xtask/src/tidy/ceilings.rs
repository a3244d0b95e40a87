//! Ceilings of counts that may fall and never rise: avoided phrases, and files in circles of imports.
//!
//! `xtask/ceilings.toml` records them. A count above its ceiling breaks the rule; one clearly below asks to lower it.

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::{
    Finding, Tree,
    circles::{Circle, circles},
    prose::{self, Count},
};
use crate::repository::Repository;

const FILE: &str = "xtask/ceilings.toml";

const HEADER: &str = "\
# Counts that must not rise. `cargo xtask tidy --lower` replaces them by the current ones where these are lower,
# `cargo xtask tidy --list` lists the places.

";

/// How far a count of phrases may be below its ceiling without a request to lower it, per 1,000 words.
const CLEARLY: f64 = 0.2;

/// The recorded ceilings.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ceilings {
    prose: Prose,
    /// Files in circles of imports, for each crate. A crate that is not listed has none.
    circles: BTreeMap<String, usize>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Prose {
    /// Avoided phrases per 1,000 words of comments.
    comments: f64,
    /// Avoided phrases per 1,000 words of string literals.
    strings: f64,
    /// Module headers that begin with a question word.
    headers: usize,
}

/// The current counts.
pub(super) struct Counts {
    comments: Count,
    strings: Count,
    headers: Vec<Finding>,
    circles: Vec<Circle>,
}

impl Counts {
    /// Counts in the whole tree.
    pub(super) fn of(tree: &Tree) -> Counts {
        let (comments, strings) = prose::count(tree);
        Counts { comments, strings, headers: prose::headers(tree), circles: circles(tree) }
    }

    /// Prints every counted place.
    pub(super) fn print(&self) {
        for (name, count) in [("comments", &self.comments), ("strings", &self.strings)] {
            println!("{name}: {} words, {} avoided phrases per 1,000", count.words, count.rate());
            count.places.iter().for_each(|place| println!("  {place}"));
        }
        println!("module headers: {}", self.headers.len());
        self.headers.iter().for_each(|place| println!("  {place}"));
        println!("circles of imports: {}", self.circles.len());
        for Circle { package, files, example } in &self.circles {
            println!("  {package}: {} files\n{example}", files.len());
            println!("    all: {}", files.iter().map(String::as_str).collect::<Vec<_>>().join(" "));
        }
    }

    fn ceilings(&self) -> Ceilings {
        let mut circles = BTreeMap::new();
        for circle in &self.circles {
            *circles.entry(circle.package.clone()).or_default() += circle.files.len();
        }
        let prose = Prose { comments: self.comments.rate(), strings: self.strings.rate(), headers: self.headers.len() };
        Ceilings { prose, circles }
    }
}

impl Ceilings {
    /// Returns the counts that are above their ceilings, and prints a request where one is clearly below.
    pub(super) fn exceeded(&self, counts: &Counts) -> Vec<Finding> {
        let now = counts.ceilings();
        let mut findings = Vec::new();
        let mut above = |text: String| findings.push(Finding::new(FILE, 0, text));
        for (kind, rate, ceiling) in
            [("comments", now.prose.comments, self.prose.comments), ("strings", now.prose.strings, self.prose.strings)]
        {
            if rate > ceiling {
                above(format!(
                    "{rate} avoided phrases per 1,000 words of {kind}, at most {ceiling}; \
                     `cargo xtask tidy --list` lists them"
                ));
            }
        }
        if now.prose.headers > self.prose.headers {
            let places: Vec<&str> = counts.headers.iter().map(|place| place.path.as_str()).collect();
            above(format!("module headers begin with a question word: {}", places.join(", ")));
        }
        for (package, files) in &now.circles {
            let ceiling = self.circles.get(package).copied().unwrap_or_default();
            if *files > ceiling {
                let examples = counts.circles.iter().filter(|circle| circle.package == *package);
                let examples: String = examples.map(|circle| format!("\n{}", circle.example)).collect();
                above(format!("{files} files of {package} are in circles of imports, at most {ceiling}:{examples}"));
            }
        }
        if findings.is_empty() && self.is_clearly_above(&now) {
            println!("the counts are below {FILE}; run `cargo xtask tidy --lower` and commit it");
        }
        findings
    }

    fn is_clearly_above(&self, now: &Ceilings) -> bool {
        self.prose.comments - now.prose.comments > CLEARLY
            || self.prose.strings - now.prose.strings > CLEARLY
            || self.prose.headers > now.prose.headers
            || self.circles.iter().any(|(package, files)| now.circles.get(package).is_none_or(|now| now < files))
    }

    /// Returns the lower one of each pair.
    fn lowered(&self, now: &Ceilings) -> Ceilings {
        let lower = |(package, files): (&String, &usize)| {
            let now = now.circles.get(package).copied().unwrap_or_default();
            (now > 0).then(|| (package.clone(), now.min(*files)))
        };
        let prose = Prose {
            comments: self.prose.comments.min(now.prose.comments),
            strings: self.prose.strings.min(now.prose.strings),
            headers: self.prose.headers.min(now.prose.headers),
        };
        Ceilings { prose, circles: self.circles.iter().filter_map(lower).collect() }
    }
}

fn file(repository: &Repository) -> PathBuf {
    repository.root.join(FILE)
}

/// Reads the recorded ceilings.
pub(super) fn read(repository: &Repository) -> Result<Ceilings> {
    let text = fs::read_to_string(file(repository)).with_context(|| format!("{FILE} cannot be read"))?;
    toml::from_str(&text).with_context(|| format!("{FILE} does not parse"))
}

/// Writes the current counts where they are lower.
pub(super) fn lower(repository: &Repository, counts: &Counts) -> Result<()> {
    let ceilings = read(repository)?.lowered(&counts.ceilings());
    let text = HEADER.to_owned() + &toml::to_string(&ceilings)?;
    fs::write(file(repository), text).with_context(|| format!("{FILE} cannot be written"))?;
    println!("{FILE}: {ceilings:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ceilings(comments: f64, headers: usize, circles: &[(&str, usize)]) -> Ceilings {
        let circles = circles.iter().map(|(package, files)| ((*package).to_owned(), *files)).collect();
        Ceilings { prose: Prose { comments, strings: 1.0, headers }, circles }
    }

    /// One header in 200 words, and a circle of two files.
    fn counts() -> Counts {
        let text = format!("//! What sai\u{64}\n// {}\n", "word ".repeat(198));
        Counts::of(&Tree::of(&[
            ("crates/one/src/lib.rs", &format!("{text}mod a;\nmod b;\n")),
            ("crates/one/src/a.rs", "use crate::b::B;\npub struct A(B);"),
            ("crates/one/src/b.rs", "use crate::a::A;\npub struct B(A);"),
        ]))
    }

    #[test]
    fn counts_above_their_ceilings_are_findings() {
        let found = |comments, headers, circles: &[_]| ceilings(comments, headers, circles).exceeded(&counts());
        assert_eq!(found(5.0, 1, &[("one", 2)]), []);
        assert_eq!(found(4.9, 1, &[("one", 2)]).len(), 1);
        assert_eq!(found(5.0, 0, &[("one", 2)]).len(), 1);
        let circle = found(5.0, 1, &[("one", 1)]);
        assert!(circle[0].message.contains("a.rs imports B from crates/one/src/b.rs"), "{circle:?}");
        assert_eq!(found(5.0, 1, &[]).len(), 1);
    }

    #[test]
    fn ceilings_are_lowered_and_never_raised() {
        let recorded = ceilings(8.0, 3, &[("one", 4), ("two", 2)]);
        let now = ceilings(9.0, 1, &[("one", 5), ("three", 2)]);
        assert_eq!(recorded.lowered(&now), ceilings(8.0, 1, &[("one", 4)]));
        assert!(recorded.is_clearly_above(&now));
        assert!(!recorded.is_clearly_above(&recorded));
    }
}
