//! What shows that a requirement is met, and whether it exists.
//!
//! - `promptshelf-mcp::it::http::modern::a_test` is a test of this workspace;
//! - `transcript x01-unknown-names` is a conversation that is played;
//! - `client client-v2.mjs: its words` is a check with an official client;
//! - `suite prompts-list` is a scenario of an official suite that passes, in
//!   whole or but for checks that the baseline excuses.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use serde_json::Value;

use super::requirements::Area;
use crate::{repository::Repository, terminal::Program};

const TRANSCRIPTS: &str = "crates/promptshelf/tests/it/transcripts";

/// Everything that a requirement can name.
#[derive(Debug, Default)]
pub(super) struct Known {
    tests: BTreeSet<String>,
    /// Tests that do not run unless somebody asks for them.
    ignored: BTreeSet<String>,
    transcripts: BTreeSet<String>,
    /// The texts of the scripts that drive official clients.
    clients: BTreeMap<String, String>,
    scenarios: BTreeSet<String>,
}

impl Known {
    /// Looks up what there is. Builds the tests where they are not built yet.
    pub(super) fn find(repository: &Repository, scenarios: BTreeSet<String>) -> Result<Known> {
        let mut known = Known { scenarios, ..Known::default() };
        known.ask_the_tests(repository)?;
        let transcripts = repository.root.join(TRANSCRIPTS);
        if transcripts.is_dir() {
            known.transcripts = stems(&transcripts, "md")?;
        }
        let peers = repository.peers();
        for script in stems(&peers, "mjs")? {
            let name = format!("{script}.mjs");
            let text = fs::read_to_string(peers.join(&name))?;
            known.clients.insert(name, text);
        }
        Ok(known)
    }

    fn ask_the_tests(&mut self, repository: &Repository) -> Result<()> {
        let built = Program::cargo(&repository.root)
            .args(&["test", "--workspace", "--no-run", "--quiet", "--message-format", "json"])
            .read()?;
        for line in built.lines() {
            let message: Value = serde_json::from_str(line).context("cargo printed no JSON")?;
            let (Some(program), Some(prefix)) = (message["executable"].as_str(), prefix(&message)) else { continue };
            let folder = Path::new(message["manifest_path"].as_str().unwrap_or_default()).parent();
            let ask = |more: &[&str]| {
                let program = Program::new(program, folder.unwrap_or(&repository.root));
                program.args(&["--list", "--format", "terse"]).args(more).read()
            };
            self.tests.extend(names(&ask(&[])?, &prefix));
            self.ignored.extend(names(&ask(&["--ignored"])?, &prefix));
        }
        Ok(())
    }

    /// What requirements name that is not there.
    pub(super) fn problems(&self, areas: &[Area]) -> Vec<String> {
        let rows = areas.iter().flat_map(|area| &area.requirement);
        let named = rows.flat_map(|row| row.tests.iter().map(move |test| (&row.id, test)));
        named.filter_map(|(id, test)| Some(format!("{id}: `{test}` {}", self.fault(test)?))).collect()
    }

    /// Why something shows nothing.
    fn fault(&self, evidence: &str) -> Option<&'static str> {
        let (there, otherwise) = if let Some(name) = evidence.strip_prefix("transcript ") {
            (self.transcripts.contains(name), "is no transcript")
        } else if let Some(check) = evidence.strip_prefix("client ") {
            let there = check.split_once(": ").is_some_and(|(script, words)| {
                self.clients.get(script).is_some_and(|text| !words.is_empty() && text.contains(words))
            });
            (there, "is no check of an official client")
        } else if let Some(scenario) = evidence.strip_prefix("suite ") {
            (self.scenarios.contains(scenario), "is no scenario that passes")
        } else {
            if self.ignored.contains(evidence) {
                return Some("does not run by itself");
            }
            (self.tests.contains(evidence), "is no test of this workspace")
        };
        (!there).then_some(otherwise)
    }
}

/// What the names of a program's tests begin with.
fn prefix(message: &Value) -> Option<String> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let package = Path::new(message["manifest_path"].as_str()?).parent()?.file_name()?.to_str()?.to_owned();
    let target = message["target"]["name"].as_str()?;
    Some(match message["target"]["kind"][0].as_str()? {
        "test" => format!("{package}::{target}::"),
        _ => format!("{package}::"),
    })
}

fn names<'a>(listed: &'a str, prefix: &'a str) -> impl Iterator<Item = String> + 'a {
    listed.lines().filter_map(move |line| Some(format!("{prefix}{}", line.strip_suffix(": test")?)))
}

/// The names of a folder's files with an ending, without it.
fn stems(folder: &Path, ending: &str) -> Result<BTreeSet<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut stems = BTreeSet::new();
    for entry in entries {
        let path = entry?.path();
        if let (true, Some(stem)) = (
            path.extension().is_some_and(|extension| extension == ending),
            path.file_stem().and_then(|stem| stem.to_str()),
        ) {
            stems.insert(stem.to_owned());
        }
    }
    Ok(stems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_exists_and_runs_shows_anything() {
        let known = Known {
            tests: ["a::it::works".to_owned(), "a::slow".to_owned()].into(),
            ignored: ["a::slow".to_owned()].into(),
            transcripts: ["x01".to_owned()].into(),
            clients: [("client.mjs".to_owned(), "test('it gets prompts'".to_owned())].into(),
            scenarios: ["ping".to_owned()].into(),
        };
        for good in ["a::it::works", "transcript x01", "client client.mjs: gets prompts", "suite ping"] {
            assert_eq!(known.fault(good), None, "{good}");
        }
        for bad in [
            "a::it::breaks",
            "a::slow",
            "transcript x1",
            "client client.mjs: no",
            "client client.mjs",
            "suite pong",
            "",
        ] {
            assert!(known.fault(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn tests_are_named_by_crate_and_target() {
        let message = |kind: &str| {
            serde_json::json!({
                "reason": "compiler-artifact", "profile": { "test": true }, "executable": "x",
                "manifest_path": "a/crates/promptshelf-mcp/Cargo.toml", "target": { "name": "it", "kind": [kind] },
            })
        };
        assert_eq!(prefix(&message("test")).as_deref(), Some("promptshelf-mcp::it::"));
        assert_eq!(prefix(&message("lib")).as_deref(), Some("promptshelf-mcp::"));
        let listed: Vec<String> = names("one::two: test\nthree: benchmark\n", "x::").collect();
        assert_eq!(listed, ["x::one::two"]);
    }
}
