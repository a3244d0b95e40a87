//! Comparison of two states of a channel: files, callers' view in words, tests, clients and renderings.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use promptshelf_author::{
    Difference,
    clients::incompatibilities,
    differences,
    testing::{TestOutcome, TestSuite},
};
use promptshelf_core::{Prompt, Variables, is_interrupted};
use promptshelf_service::pool::{self, Amount};
use promptshelf_source::MemoryTree;
use promptshelf_store::{Digest, FileChange, PromptChangeKind};
use promptshelf_wire::{
    CompareBody, CompareRenderingsBody, ComparedClient, ComparedPrompt, ComparedRenderings, ComparedTest, Comparison,
    Rendering, Sample, op,
};

use super::{
    ApiState,
    call::{Answer, Call, Operations},
    impact::in_words,
    opened::OpenedTree,
    problem::Problem,
    sides::{Side, sides},
};
use crate::test_target::ServiceTarget;

const MAX_ENTRIES: usize = 500;
const MAX_TESTED: usize = 200;
const MAX_THROUGH: usize = 20;
const MAX_NAMES: usize = 50;
const MAX_SAMPLES: usize = 200;
/// The most bytes of a rendering in the answer.
const MAX_TEXT: usize = 256 << 10;

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(compare).on(compare_renderings)
}

async fn compare(call: Call<op::Compare>) -> Answer {
    let CompareBody { before, after } = call.body().await?;
    let (before, after) = sides(&call, before, after).await?;
    call.note("channel", after.name.channel.as_str());
    let channel = after.name.channel.clone();
    let compared = pool::run_future(call.caller(), Amount::Large, || comparison(before, after)).await;
    let (mut comparison, differences) = compared.map_err(|_| Problem::internal())?;
    comparison.differences = in_words(&call, &channel, differences).await;
    call.answer(&comparison)
}

async fn compare_renderings(call: Call<op::CompareRenderings>) -> Answer {
    let CompareRenderingsBody { before, after, prompt, arguments } = call.body().await?;
    let (before, after) = sides(&call, before, after).await?;
    call.note("channel", after.name.channel.as_str());
    let rendering = || async move { renderings(&before.opened, &after.opened, &prompt, arguments).await };
    let rendered = pool::run_future(call.caller(), Amount::Large, rendering).await;
    let renderings = rendered.map_err(|_| Problem::internal())??;
    call.answer(&renderings)
}

async fn comparison(before: Side, after: Side) -> (Comparison, Vec<Difference>) {
    let Described { files, prompts, differences, clients } = describe(&before.opened, &after.opened);
    let tested: HashSet<&str> = prompts.iter().take(MAX_TESTED).map(|prompt| prompt.name.as_str()).collect();
    let outcomes = (outcomes(&before.opened, &tested).await, outcomes(&after.opened, &tested).await);
    let tests_run = outcomes.1.len();
    let mut tests = compared_tests(outcomes.0, outcomes.1);
    tests.truncate(MAX_ENTRIES);
    let (files_total, prompts_total) = (files.len(), prompts.len());
    let cut = |mut files: Vec<FileChange>| {
        files.truncate(MAX_ENTRIES);
        files
    };
    let comparison = Comparison {
        before: before.name,
        after: after.name,
        files: cut(files),
        files_total,
        differences: Vec::new(),
        prompts: prompts.into_iter().take(MAX_ENTRIES).collect(),
        prompts_total,
        tests,
        tests_run,
        clients,
        summary: after.opened.report.summary,
        findings: after.opened.report.findings.clone(),
    };
    (comparison, differences)
}

struct Described {
    files: Vec<FileChange>,
    prompts: Vec<ComparedPrompt>,
    differences: Vec<Difference>,
    clients: Vec<ComparedClient>,
}

fn describe(before: &OpenedTree, after: &OpenedTree) -> Described {
    let files = changed_files(&before.tree, &after.tree);
    let prompts = changed_prompts(before, after, &files);
    let (old, new) = match (&before.preview, &after.preview) {
        (Some(before), Some(after)) => (before.catalog(), after.catalog()),
        // A tree that cannot be read has a finding, and nothing to compare.
        _ => return Described { files, prompts, differences: Vec::new(), clients: Vec::new() },
    };
    let differences = differences(&old, &new).into_iter().take(MAX_ENTRIES).collect();
    let changed: HashSet<&str> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    let of = |catalog: &'_ promptshelf_core::Catalog| -> BTreeMap<(String, String), (String, BTreeSet<String>)> {
        let prompts: Vec<&Prompt> = catalog.prompts().iter().map(|prompt| &**prompt).collect();
        let found = incompatibilities(&prompts, catalog.policy().page_size).into_iter();
        found
            .map(|found| {
                let names = found.prompts.iter().map(|prompt| prompt.name().to_string());
                let names = names.filter(|name| changed.contains(name.as_str())).collect();
                let key = (found.client.name.to_owned(), found.fact.quirk.id().to_owned());
                (key, (found.fact.quirk.to_string(), names))
            })
            .collect()
    };
    let (known, found) = (of(&old), of(&new));
    let clients = found.into_iter().filter_map(|((client, quirk), (text, names))| {
        let before = known.get(&(client.clone(), quirk.clone())).map(|(_, names)| names);
        let new = names.into_iter().filter(|name| before.is_none_or(|before| !before.contains(name)));
        let prompts: Vec<String> = new.take(MAX_NAMES).collect();
        (!prompts.is_empty()).then_some(ComparedClient { client, quirk, text, prompts })
    });
    Described { differences, clients: clients.collect(), files, prompts }
}

fn changed_files(before: &MemoryTree, after: &MemoryTree) -> Vec<FileChange> {
    let paths: BTreeSet<&str> = before.iter().chain(after.iter()).map(|(path, _)| path).collect();
    let mut changes = Vec::new();
    for path in paths {
        let (old, new) = (before.get(path), after.get(path));
        if old.map(promptshelf_source::MemoryFile::bytes) != new.map(promptshelf_source::MemoryFile::bytes) {
            let digest = |file: &promptshelf_source::MemoryFile| Digest::of(file.bytes());
            changes.push(FileChange { path: path.to_owned(), before: old.map(digest), after: new.map(digest) });
        }
    }
    changes
}

fn changed_prompts(before: &OpenedTree, after: &OpenedTree, files: &[FileChange]) -> Vec<ComparedPrompt> {
    let changed: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let (old, new) = (before.prompts(), after.prompts());
    let names: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
    let mut prompts = Vec::new();
    for name in names {
        let (file, change) = match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) if old.digest == new.digest => continue,
            (Some(_), Some(new)) => (*new, PromptChangeKind::Changed),
            (None, Some(new)) => (*new, PromptChangeKind::Added),
            (Some(old), None) => (*old, PromptChangeKind::Removed),
            (None, None) => continue,
        };
        let brings = old.get(name).into_iter().flat_map(|old| &old.brings).chain(&file.brings);
        let through: BTreeSet<&String> = brings.filter(|path| changed.contains(path.as_str())).collect();
        prompts.push(ComparedPrompt {
            name: name.to_owned(),
            change,
            path: file.path.clone(),
            through: through.into_iter().take(MAX_THROUGH).cloned().collect(),
        });
    }
    prompts
}

async fn outcomes(opened: &OpenedTree, names: &HashSet<&str>) -> Vec<TestOutcome> {
    let Some(preview) = &opened.preview else { return Vec::new() };
    let catalog = preview.catalog();
    let suite = TestSuite::of_tree(&catalog, opened.tree.clone());
    let target = ServiceTarget::new(preview.service());
    let mut outcomes = Vec::new();
    let cases = suite.cases().filter(|case| names.contains(case.prompt().name().as_str()));
    for case in cases.take(MAX_ENTRIES).take_while(|_| !is_interrupted()) {
        outcomes.push(suite.run(&case, &target).await);
    }
    outcomes
}

fn compared_tests(before: Vec<TestOutcome>, after: Vec<TestOutcome>) -> Vec<ComparedTest> {
    let mut tests: BTreeMap<(String, String), ComparedTest> = BTreeMap::new();
    let empty = |outcome: &TestOutcome| ComparedTest {
        prompt: outcome.prompt.clone(),
        test: outcome.test.clone(),
        before: None,
        after: None,
        reason: None,
    };
    let key = |outcome: &TestOutcome| (outcome.prompt.clone(), outcome.test.clone());
    for outcome in before {
        tests.entry(key(&outcome)).or_insert_with(|| empty(&outcome)).before = Some(outcome.is_passed());
    }
    for outcome in after {
        let test = tests.entry(key(&outcome)).or_insert_with(|| empty(&outcome));
        test.after = Some(outcome.is_passed());
        let reasons: Vec<&str> =
            outcome.mismatches.iter().map(|mismatch| mismatch.message.trim_end_matches(':')).collect();
        test.reason = (!reasons.is_empty()).then(|| reasons.join("; "));
    }
    tests.into_values().filter(|test| test.after == Some(false) || test.before != test.after).collect()
}

async fn renderings(
    before: &OpenedTree,
    after: &OpenedTree,
    name: &str,
    values: BTreeMap<String, String>,
) -> Result<ComparedRenderings, Problem> {
    let find = |opened: &OpenedTree| opened.preview.as_ref().and_then(|preview| preview.catalog().find(name).cloned());
    let (old, new) = (find(before), find(after));
    let Some(prompt) = new.as_ref().or(old.as_ref()) else {
        return Err(Problem::not_found("The prompt, on both sides,"));
    };
    let both = || old.iter().chain(new.iter());
    let mut arguments: Vec<String> = Vec::new();
    for argument in both().flat_map(|prompt| prompt.arguments()) {
        if !arguments.iter().any(|known| known == argument.name()) && arguments.len() < MAX_SAMPLES {
            arguments.push(argument.name().to_owned());
        }
    }
    let tests = prompt.definition().tests.iter().enumerate();
    let tests = tests.filter(|(_, test)| test.error.is_none() && test.complete.is_none());
    let samples = tests.take(MAX_SAMPLES).map(|(index, test)| Sample {
        test: test.name.clone().unwrap_or_else(|| (index + 1).to_string()),
        values: test.arguments.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
    });
    let samples = samples.collect();
    // The values of one side are those of the other one too, so that only the prompt differs.
    let mut values: Variables = values.into_iter().collect();
    let after = render(new.is_some(), after, name, &mut values).await;
    let before = render(old.is_some(), before, name, &mut values).await;
    let values = values.into_iter().collect();
    Ok(ComparedRenderings { arguments, samples, before, after, values })
}

async fn render(exists: bool, opened: &OpenedTree, name: &str, values: &mut Variables) -> Option<Rendering> {
    let preview = opened.preview.as_ref().filter(|_| exists)?;
    Some(match preview.render_with(name, values).await {
        Ok(text) => Rendering::Text(text[..text.floor_char_boundary(MAX_TEXT)].to_owned()),
        Err(rejection) => Rendering::Failure(rejection.lines()),
    })
}
