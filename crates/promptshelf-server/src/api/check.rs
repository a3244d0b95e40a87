//! A check of changes that are not stored: findings, tests, and the affected prompts before and after.

use std::{collections::BTreeMap, sync::Arc};

use promptshelf_author::{Difference, differences};
use promptshelf_core::is_interrupted;
use promptshelf_service::pool::{self, Amount};
use promptshelf_source::{MemoryFile, MemoryTree};
use promptshelf_store::{Change, CheckReport, Checker, Digest, PromptChangeKind, StoreError};
use promptshelf_wire::{AffectedPrompt, CheckBody, CheckResult, Rendering, op};

use super::{
    ApiState,
    call::{Answer, Call, Operations},
    content::{Changes, changes},
    impact::in_words,
    problem::Problem,
};
use crate::preview::TreePreview;

const MAX_PROMPTS: usize = 100;

const MAX_DIFFERENCES: usize = 500;

/// The most bytes of a rendering in the answer.
const MAX_TEXT: usize = 64 << 10;

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(check)
}

async fn check(call: Call<op::Check>) -> Answer {
    let body: CheckBody = call.body().await?;
    call.note("channel", body.channel.as_str());
    call.require_channel(&body.channel)?;
    let store = call.store().await?;
    let roles = store.channel(&body.channel).await?.policy.roles;
    call.require_role(&roles.propose, "propose")?;
    let Changes { changes, memory: _memory } = changes(&call, &store, &call.state.api.referred, body.changes).await?;
    let (head, before) = store.tree(&body.channel, None).await?;
    let after = apply(&before, changes, head.revision)?;
    let checker = Arc::clone(&call.state.api.checker);
    let check = move || async move {
        let (checked, before, after) = compare(&*checker, before, after);
        let prompts = render(&checked.affected, before.as_ref(), after.as_ref()).await;
        (checked, prompts)
    };
    let checked = pool::run_future(call.caller(), Amount::Large, check).await;
    let (checked, prompts) = checked.map_err(|_| Problem::internal())?;
    let CheckReport { summary, findings, .. } = checked.report;
    let affected = checked.affected.len();
    let differences = in_words(&call, &body.channel, checked.differences).await;
    let revision = head.revision;
    let result = CheckResult { revision, summary, findings, prompts, affected, differences };
    call.answer(&result)
}

pub(super) fn apply(tree: &MemoryTree, changes: Vec<Change>, revision: u64) -> Result<MemoryTree, Problem> {
    let mut paths = Vec::new();
    let mut files = BTreeMap::new();
    for Change { path, before, after } in changes {
        if tree.get(&path).map(|file| Digest::of(file.bytes())) != before {
            paths.push(path.clone());
        }
        if files.insert(path.clone(), after.map(MemoryFile::new)).is_some() {
            return Err(Problem::invalid(format!("The file {path} is changed twice")));
        }
    }
    if paths.is_empty() { Ok(tree.with(files)) } else { Err(StoreError::Conflict { paths, revision }.into()) }
}

struct Checked {
    report: CheckReport,
    affected: Vec<(String, PromptChangeKind)>,
    differences: Vec<Difference>,
}

fn compare(
    checker: &dyn Checker,
    before: MemoryTree,
    after: MemoryTree,
) -> (Checked, Option<TreePreview>, Option<TreePreview>) {
    let digests = |report: &CheckReport| -> BTreeMap<String, Digest> {
        report.prompts.iter().map(|prompt| (prompt.name.clone(), prompt.digest)).collect()
    };
    let old = digests(&checker.check(&before, false));
    let report = checker.check(&after, true);
    let new = digests(&report);
    let removed = old.keys().filter(|name| !new.contains_key(*name)).map(|name| (name, PromptChangeKind::Removed));
    let changed = new.iter().filter_map(|(name, digest)| match old.get(name) {
        None => Some((name, PromptChangeKind::Added)),
        Some(known) if known != digest => Some((name, PromptChangeKind::Changed)),
        Some(_) => None,
    });
    let mut affected: Vec<(String, PromptChangeKind)> =
        changed.chain(removed).map(|(name, change)| (name.clone(), change)).collect();
    affected.sort_by(|left, right| left.0.cmp(&right.0));
    // A tree that cannot be read has a finding, and no renderings.
    let (before, after) = (TreePreview::open(before).ok(), TreePreview::open(after).ok());
    let differences = match (&before, &after) {
        (Some(before), Some(after)) => {
            differences(&before.catalog(), &after.catalog()).into_iter().take(MAX_DIFFERENCES).collect()
        }
        _ => Vec::new(),
    };
    (Checked { report, affected, differences }, before, after)
}

async fn render(
    affected: &[(String, PromptChangeKind)],
    before: Option<&TreePreview>,
    after: Option<&TreePreview>,
) -> Vec<AffectedPrompt> {
    let mut prompts = Vec::new();
    for (name, change) in affected.iter().take(MAX_PROMPTS).take_while(|_| !is_interrupted()) {
        let before = before.filter(|_| *change != PromptChangeKind::Added);
        let after = after.filter(|_| *change != PromptChangeKind::Removed);
        prompts.push(AffectedPrompt {
            name: name.clone(),
            change: *change,
            before: rendering(before, name).await,
            after: rendering(after, name).await,
        });
    }
    prompts
}

async fn rendering(preview: Option<&TreePreview>, name: &str) -> Option<Rendering> {
    Some(match preview?.render(name).await {
        Ok(text) => Rendering::Text(text[..text.floor_char_boundary(MAX_TEXT)].to_owned()),
        Err(rejection) => Rendering::Failure(rejection.to_string()),
    })
}
