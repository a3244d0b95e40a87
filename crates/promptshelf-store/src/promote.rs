//! Promotion and rollback: proposals whose files come from another channel or an earlier revision.

use std::{collections::BTreeMap, sync::Arc};

use promptshelf_source::MemoryTree;

use crate::{
    StoreError,
    address::ChannelName,
    check::{CheckReport, Checker},
    database::{Mode, Transaction},
    draft::{Draft, Target},
    input,
    model::{Actor, FileEntry, Head, Published, RevisionKind},
    publish::run_check,
    read::files,
    snapshot,
    store::Store,
    tables::{
        blob::Contents,
        channel,
        entry::{Files, Replacement},
    },
};

/// A state of a channel.
struct Side {
    /// The name of the state, for errors.
    name: String,
    head: Option<Head>,
    files: Files,
    /// The contents, read only if prompts are chosen.
    tree: Option<MemoryTree>,
}

impl Store {
    /// Proposes the state of another channel: all of it, or the named prompts with all they bring in. It is published if
    /// the policy of the target is met. The target is created if it does not exist. Without a message, the proposal gets
    /// one that names the channel.
    ///
    /// Shared files can change other prompts of the target too; [`Published::prompts`] lists all of them.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if the channel or a prompt does not exist, [`StoreError::State`] if a file that a prompt
    /// brings in is missing or if there is nothing to change, and the errors of [`Store::publish`].
    #[expect(clippy::too_many_arguments, reason = "each is a field of the request, and all have different types")]
    pub async fn promote(
        &self,
        from: &ChannelName,
        to: &ChannelName,
        prompts: &[String],
        message: &str,
        dry_run: bool,
        actor: &Actor,
        checker: Arc<dyn Checker>,
    ) -> Result<Published, StoreError> {
        if from == to {
            return Err(StoreError::invalid(format!("the channel `{from}` cannot be promoted to itself")));
        }
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = sides(&mut transaction, (from, None), to, !prompts.is_empty()).await;
        let (source, target) = transaction.finish(result).await?;
        let revision = source.head.as_ref().map_or(0, |head| head.revision);
        let fallback = format!("Promote {} from {from}, revision {revision}", listed(prompts));
        let prompts = (!prompts.is_empty()).then_some(prompts);
        let copy = Copy { channel: to, kind: RevisionKind::Promote, message, fallback, dry_run };
        self.copy(&source, &target, prompts, copy, actor, &checker).await
    }

    /// Proposes the state of an earlier revision: all of it, or of one prompt with all it brings in. It is published if
    /// the policy is met. Without a message, the proposal gets one that names the revision.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if the channel, the revision or the prompt does not exist, and the errors of
    /// [`Store::promote`].
    #[expect(clippy::too_many_arguments, reason = "each is a field of the request, and all have different types")]
    pub async fn rollback(
        &self,
        channel: &ChannelName,
        to: u64,
        prompt: Option<&str>,
        message: &str,
        dry_run: bool,
        actor: &Actor,
        checker: Arc<dyn Checker>,
    ) -> Result<Published, StoreError> {
        if to == 0 {
            return Err(StoreError::not_found(format!("revision 0 of the channel `{channel}`")));
        }
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = sides(&mut transaction, (channel, Some(to)), channel, prompt.is_some()).await;
        let (source, target) = transaction.finish(result).await?;
        let prompts: Option<Vec<String>> = prompt.map(|prompt| vec![prompt.to_owned()]);
        let fallback = format!("Roll back {} to revision {to}", listed(prompts.as_deref().unwrap_or_default()));
        let copy = Copy { channel, kind: RevisionKind::Rollback, message, fallback, dry_run };
        self.copy(&source, &target, prompts.as_deref(), copy, actor, &checker).await
    }

    async fn copy(
        &self,
        source: &Side,
        target: &Side,
        prompts: Option<&[String]>,
        copy: Copy<'_>,
        actor: &Actor,
        checker: &Arc<dyn Checker>,
    ) -> Result<Published, StoreError> {
        input::actor(actor)?;
        input::note("the message", copy.message)?;
        let message = if copy.message.trim().is_empty() { copy.fallback } else { copy.message.to_owned() };
        let changes = match prompts {
            None => whole(source, target),
            Some(prompts) => chosen(source, target, prompts, checker).await?,
        };
        let draft = Draft {
            channel: copy.channel.clone(),
            base: target.head.as_ref().map_or(0, |head| head.revision),
            kind: copy.kind,
            message,
            author: actor.name.clone(),
            may_publish: actor.may_publish,
            target: Target::New,
            expected: None,
            emergency: None,
            changes,
            contents: Contents::new(),
            dry_run: copy.dry_run,
        };
        self.submit(&draft, checker).await
    }
}

/// The parameters of a proposal that copies files within the store.
struct Copy<'a> {
    channel: &'a ChannelName,
    kind: RevisionKind,
    message: &'a str,
    fallback: String,
    dry_run: bool,
}

fn listed(prompts: &[String]) -> String {
    if prompts.is_empty() { "all files".to_owned() } else { prompts.join(", ") }
}

async fn sides(
    transaction: &mut Transaction,
    from: (&ChannelName, Option<u64>),
    to: &ChannelName,
    with_contents: bool,
) -> Result<(Side, Side), StoreError> {
    let (head, source) = files(transaction, from.0, from.1).await?;
    let name = match from.1 {
        Some(revision) => format!("revision {revision} of the channel `{}`", from.0),
        None => format!("the channel `{}`", from.0),
    };
    let (target_head, target) = match channel::find(transaction, to).await? {
        Some(_) => {
            let (head, files) = files(transaction, to, None).await?;
            (Some(head), files)
        }
        None => (None, Files::new()),
    };
    let mut source = Side { name, head: Some(head), files: source, tree: None };
    let mut target = Side { name: format!("the channel `{to}`"), head: target_head, files: target, tree: None };
    if with_contents {
        source.tree = Some(snapshot::tree(transaction, &source.files).await?);
        target.tree = Some(snapshot::tree(transaction, &target.files).await?);
    }
    Ok((source, target))
}

fn replacement(path: &str, before: Option<&FileEntry>, after: Option<&FileEntry>) -> Replacement {
    Replacement {
        path: path.to_owned(),
        before: before.map(|file| file.digest),
        after: after.map(|file| (file.digest, file.size)),
    }
}

/// Returns the changes that make the target equal to the source.
fn whole(source: &Side, target: &Side) -> Vec<Replacement> {
    let mut changes = BTreeMap::new();
    for path in source.files.keys().chain(target.files.keys()) {
        changes.insert(path, replacement(path, target.files.get(path), source.files.get(path)));
    }
    changes.into_values().filter(|change| change.before != change.after.map(|(digest, _)| digest)).collect()
}

/// Returns the changes that bring prompts with all their files to the target.
async fn chosen(
    source: &Side,
    target: &Side,
    prompts: &[String],
    checker: &Arc<dyn Checker>,
) -> Result<Vec<Replacement>, StoreError> {
    let new = report(source, checker).await?;
    let old = report(target, checker).await?;
    let mut changes = BTreeMap::new();
    for name in prompts {
        let prompt =
            new.prompts.iter().find(|prompt| prompt.name == *name).ok_or_else(|| missing(name, source, &new))?;
        for path in std::iter::once(&prompt.path).chain(&prompt.brings) {
            let Some(file) = source.files.get(path) else {
                let reason = format!("the prompt `{name}` needs `{path}`, which {} does not have", source.name);
                return Err(StoreError::state(reason));
            };
            changes.insert(path.clone(), replacement(path, target.files.get(path), Some(file)));
        }
        // The prompt may have had another file: two files with one name would be an error of the check.
        for before in old.prompts.iter().filter(|before| before.name == *name && before.path != prompt.path) {
            let is_used = old
                .prompts
                .iter()
                .any(|other| other.name != *name && (other.path == before.path || other.brings.contains(&before.path)));
            if !is_used && !changes.contains_key(&before.path) {
                let path = before.path.as_str();
                changes.insert(path.to_owned(), replacement(path, target.files.get(path), None));
            }
        }
    }
    Ok(changes.into_values().collect())
}

async fn report(side: &Side, checker: &Arc<dyn Checker>) -> Result<CheckReport, StoreError> {
    let tree = side.tree.clone().unwrap_or_default();
    run_check(&tree, false, checker).await
}

/// A prompt with an error is not among those of a check, so the first finding is a part of the message.
fn missing(name: &str, side: &Side, report: &CheckReport) -> StoreError {
    let reason = match report.findings.first() {
        Some(finding) if report.summary.errors > 0 => format!(" (errors there: {finding})"),
        _ => String::new(),
    };
    StoreError::not_found(format!("the prompt `{name}` in {}{reason}", side.name))
}
