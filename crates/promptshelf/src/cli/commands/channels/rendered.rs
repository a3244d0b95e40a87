//! Renderings of prompts before and after a change, with sample arguments.

use std::{collections::BTreeMap, io::Write};

use promptshelf_author::{add_samples, differences, testing::transcript};
use promptshelf_core::{RawArguments, Variables};
use promptshelf_server::Library;
use promptshelf_service::Caller;
use promptshelf_source::{Files, MemoryTree};
use promptshelf_store::{ChannelName, Checker as _, Digest};
use serde_json::{Value, json};

use super::{
    checker_with,
    connection::Connection,
    diff::{print_unified, unified},
    impact::{CountedDifference, counted},
};
use crate::{exit::Failure, library::granted_roots, output::Output};

/// A prompt that differs between two trees, rendered from both; `None` where it does not exist.
#[derive(Clone, Debug)]
pub(super) struct RenderedPrompt {
    name: String,
    before: Option<String>,
    after: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct CallersView {
    pub(super) differences: Vec<CountedDifference>,
    pub(super) prompts: Vec<RenderedPrompt>,
}

/// Compares two trees, and renders the prompts that differ: their files, or files that they bring in. `site` is the
/// channel whose recent calls count.
pub(super) async fn changed(
    before: &MemoryTree,
    after: &MemoryTree,
    site: Option<(&Connection, &ChannelName)>,
) -> Result<CallersView, Failure> {
    let digests = |tree: &MemoryTree| -> BTreeMap<String, Digest> {
        let report = tokio::task::block_in_place(|| checker_with(None).check(tree, false));
        report.prompts.into_iter().map(|prompt| (prompt.name, prompt.digest)).collect()
    };
    let (digests_before, digests_after) = (digests(before), digests(after));
    let libraries = (open(before)?, open(after)?);
    let differences = counted(site, differences(&libraries.0.catalog(), &libraries.1.catalog())).await;
    let mut names: Vec<&String> = digests_before.keys().chain(digests_after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let mut changed = Vec::new();
    for name in names.into_iter().filter(|name| digests_before.get(*name) != digests_after.get(*name)) {
        let (before, after) = (render(&libraries.0, name).await, render(&libraries.1, name).await);
        changed.push(RenderedPrompt { name: name.clone(), before, after });
    }
    Ok(CallersView { differences, prompts: changed })
}

impl CallersView {
    pub(super) fn is_empty(&self) -> bool {
        self.differences.is_empty() && self.prompts.is_empty()
    }

    pub(super) fn add_to(&self, json: &mut Value) {
        json["differences"] = self.differences.iter().map(CountedDifference::to_json).collect();
        json["prompts"] = self.prompts.iter().map(RenderedPrompt::to_json).collect();
    }

    pub(super) fn print<W: Write>(&self, output: &mut Output<W>) -> Result<(), Failure> {
        self.differences.iter().try_for_each(|found| found.print(output, ""))?;
        if !self.differences.is_empty() && !self.prompts.is_empty() {
            writeln!(output.out)?;
        }
        self.prompts.iter().try_for_each(|prompt| prompt.print(output))
    }
}

fn open(tree: &MemoryTree) -> Result<Library, Failure> {
    let source = Files::tree(tree.clone());
    source.grant_roots(granted_roots(None));
    Ok(tokio::task::block_in_place(|| Library::builder().source(source).build())?)
}

/// Renders a prompt with sample values for its required arguments; `None` if it does not exist. An error is rendered as
/// its message.
async fn render(library: &Library, name: &str) -> Option<String> {
    let catalog = library.catalog();
    let prompt = catalog.find(name)?;
    let mut values = Variables::new();
    add_samples(prompt, &mut values);
    let answer = library.service().get(&Caller::local(), name, &RawArguments::from(&values)).await;
    Some(match answer {
        Ok(answer) => transcript(&answer.into_value().messages),
        Err(rejection) => format!("{}\n", Failure::from(rejection)),
    })
}

impl RenderedPrompt {
    fn word(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "added",
            (_, None) => "removed",
            _ => "changed",
        }
    }

    fn unified(&self) -> String {
        let text = |side: &Option<String>| side.clone().unwrap_or_default();
        let name = |prefix: &str, side: &Option<String>| match side {
            Some(_) => format!("{prefix}/{}", self.name),
            None => "/dev/null".to_owned(),
        };
        let (before, after) = (text(&self.before), text(&self.after));
        unified(&before, &after, &name("a", &self.before), &name("b", &self.after))
    }

    fn to_json(&self) -> Value {
        json!({ "name": self.name, "change": self.word(), "before": self.before, "after": self.after })
    }

    fn print<W: Write>(&self, output: &mut Output<W>) -> Result<(), Failure> {
        if self.before == self.after {
            let name = output.line(&self.name).into_owned();
            writeln!(output.out, "prompt {name} renders the same messages with sample arguments")?;
            return Ok(());
        }
        print_unified(output, &self.unified())
    }
}
