//! Promotion and rollback: proposals whose files come from another channel or an earlier revision.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use promptshelf_source::MemoryTree;

use crate::{
    StoreError,
    address::ChannelName,
    check::{CheckReport, Checker},
    database::{Mode, Transaction},
    draft::{Draft, Target},
    input,
    model::{Actor, Digest, FileEntry, Head, Promotion, ProposalSource, Published, RevisionKind, Rollback},
    publish::run_check,
    read::files,
    rollouts, snapshot,
    store::Store,
    tables::{
        blob::Contents,
        channel::{self, Channel},
        entry::{self, Files, Replacement},
        prompt,
        proposal::{self, Source},
    },
};

struct Side {
    name: String,
    head: Option<Head>,
    /// The channel; `None` if it does not exist.
    channel: Option<Channel>,
    files: Files,
    /// The contents, read only if prompts are chosen.
    tree: Option<MemoryTree>,
}

impl Store {
    /// Proposes what another channel has changed since its last promotion: all of it, or the named prompts with all they
    /// bring in. It is published if the policy of the target is met. The target is created if it does not exist.
    ///
    /// What only the target has or has changed stays, and [`Published::kept`] names the prompts; with `all`, the target becomes
    /// equal to the source. Shared files can change other prompts of the target too; [`Published::prompts`] lists all of them.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the target has changed files too that are to be promoted, [`StoreError::Unchanged`] if there
    /// is nothing to promote, [`StoreError::NotFound`] if the channel or a prompt does not exist, [`StoreError::State`] if a
    /// file that a prompt brings in is missing or the rollout that it ends is over, and the errors of [`Store::publish`].
    pub async fn promote(
        &self,
        promotion: &Promotion,
        actor: &Actor,
        checker: Arc<dyn Checker>,
    ) -> Result<Published, StoreError> {
        let Promotion { from, to, prompts, all, .. } = promotion;
        if from == to {
            return Err(StoreError::invalid(format!("the channel `{from}` cannot be promoted to itself")));
        }
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = async {
            if promotion.ends_rollout {
                rollouts::must_run(&mut transaction, to, from, false).await?;
            }
            let (source, target) = sides(&mut transaction, (from, None), to, !prompts.is_empty()).await?;
            let history = History::read(&mut transaction, from, to, (&source.files, &target.files)).await?;
            let key = channel::get(&mut transaction, from).await?.id;
            Ok((source, target, history, key))
        }
        .await;
        let (source, target, history, key) = transaction.finish(result).await?;
        let wanted = match prompts.as_slice() {
            [] => whole(&source, &target),
            prompts => chosen(&source, &target, prompts, &checker).await?,
        };
        let changes = if *all {
            wanted
        } else {
            history.merge(wanted, prompts.is_empty()).map_err(|paths| {
                let revision = target.head.as_ref().map_or(0, |head| head.revision);
                StoreError::Conflict { paths, revision }
            })?
        };
        if changes.is_empty() {
            let reason = format!("nothing to promote: `{from}` has changed nothing since its last promotion to `{to}`");
            return Err(StoreError::Unchanged { reason });
        }
        let revision = source.head.as_ref().map_or(0, |head| head.revision);
        // Without the name of the channel, which readers of the target may not see: it is the source of the proposal.
        let fallback = format!("Promote {}", listed(prompts));
        let copy = Copy {
            channel: to,
            kind: RevisionKind::Promote,
            message: &promotion.message,
            fallback,
            source: Some(Source { channel: key, revision, is_whole: prompts.is_empty() }),
            dry_run: promotion.dry_run,
            ends_rollout: promotion.ends_rollout.then(|| from.clone()),
        };
        let mut published = self.copy(&target, changes, copy, actor, &checker).await?;
        let is_whole = prompts.is_empty();
        published.proposal.source = Some(ProposalSource { channel: from.clone(), revision, is_whole });
        published.kept = self.kept(&source, &target, &published).await?;
        Ok(published)
    }

    /// Returns the prompts of the target that are not those of the source after a promotion.
    async fn kept(&self, source: &Side, target: &Side, published: &Published) -> Result<Vec<String>, StoreError> {
        let (Some(from), Some(to)) = (&source.channel, &target.channel) else { return Ok(Vec::new()) };
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = async {
            let from = prompt::newest(&mut transaction, from.id).await?;
            Ok((from, prompt::newest(&mut transaction, to.id).await?))
        }
        .await;
        let (from, to) = transaction.finish(result).await?;
        let changed: HashSet<&str> = published.prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        let differs = |name: &String, digest: Digest| from.get(name).is_none_or(|(_, other)| *other != digest);
        let kept =
            to.into_iter().filter(|(name, (_, digest))| !changed.contains(name.as_str()) && differs(name, *digest));
        Ok(kept.map(|(name, _)| name).collect())
    }

    /// Proposes the state of an earlier revision: all of it, or of one prompt with all it brings in. It is published if
    /// the policy is met.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if the channel, the revision or the prompt does not exist, and the errors of
    /// [`Store::promote`].
    pub async fn rollback(
        &self,
        rollback: &Rollback,
        actor: &Actor,
        checker: Arc<dyn Checker>,
    ) -> Result<Published, StoreError> {
        let Rollback { channel, to, prompt, message, dry_run } = rollback;
        if *to == 0 {
            return Err(StoreError::not_found(format!("revision 0 of the channel `{channel}`")));
        }
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = sides(&mut transaction, (channel, Some(*to)), channel, prompt.is_some()).await;
        let (source, target) = transaction.finish(result).await?;
        let prompts = prompt.as_slice();
        let fallback = format!("Roll back {} to revision {to}", listed(prompts));
        let changes = if prompts.is_empty() {
            whole(&source, &target)
        } else {
            chosen(&source, &target, prompts, &checker).await?
        };
        let copy = Copy {
            channel,
            kind: RevisionKind::Rollback,
            message,
            fallback,
            source: None,
            dry_run: *dry_run,
            ends_rollout: None,
        };
        self.copy(&target, changes, copy, actor, &checker).await
    }

    async fn copy(
        &self,
        target: &Side,
        changes: Vec<Replacement>,
        copy: Copy<'_>,
        actor: &Actor,
        checker: &Arc<dyn Checker>,
    ) -> Result<Published, StoreError> {
        input::actor(actor)?;
        input::note("the message", copy.message)?;
        let message = if copy.message.trim().is_empty() { copy.fallback } else { copy.message.to_owned() };
        let draft = Draft {
            channel: copy.channel.clone(),
            base: target.head.as_ref().map_or(0, |head| head.revision),
            kind: copy.kind,
            message,
            author: actor.name.clone(),
            may_publish: actor.may_publish,
            may_administer: actor.may_administer,
            target: Target::New,
            expected: None,
            emergency: None,
            changes,
            contents: Contents::new(),
            source: copy.source,
            dry_run: copy.dry_run,
            ends_rollout: copy.ends_rollout,
        };
        self.submit(&draft, checker).await
    }
}

struct Copy<'a> {
    channel: &'a ChannelName,
    kind: RevisionKind,
    message: &'a str,
    fallback: String,
    source: Option<Source>,
    dry_run: bool,
    ends_rollout: Option<ChannelName>,
}

/// What two channels have had, as far as it decides which of them has changed a file.
#[derive(Debug, Default)]
struct History {
    /// The contents of the source when it was last promoted, by path; `None` if it never was, or if they were pruned.
    base: Option<HashMap<String, Digest>>,
    source: HashSet<(String, Digest)>,
    target: HashSet<(String, Digest)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Take,
    /// The source has not changed it: the target keeps its content.
    Keep,
    Conflict,
}

impl History {
    async fn read(
        transaction: &mut Transaction,
        from: &ChannelName,
        to: &ChannelName,
        (source, target): (&Files, &Files),
    ) -> Result<History, StoreError> {
        let Some(to) = channel::find(transaction, to).await? else { return Ok(History::default()) };
        let from = channel::get(transaction, from).await?;
        let paths: BTreeSet<&String> = source.keys().chain(target.keys()).collect();
        let digest = |files: &Files, path: &String| files.get(path).map(|file| file.digest);
        let differs = |path: &&String| digest(source, path) != digest(target, path);
        let paths: Vec<&str> = paths.into_iter().filter(differs).map(String::as_str).collect();
        let base = match proposal::last_promotion(transaction, to.id, from.id).await? {
            Some((revision, later)) if revision >= from.oldest => {
                let files = entry::at(transaction, from.id, revision).await?;
                let mut base: HashMap<String, Digest> =
                    files.into_iter().map(|(path, file)| (path, file.digest)).collect();
                for change in later {
                    match change.after {
                        Some((digest, _)) => base.insert(change.path, digest),
                        None => base.remove(&change.path),
                    };
                }
                Some(base)
            }
            _ => None,
        };
        let source = entry::contents_of(transaction, from.id, &paths).await?;
        let target = entry::contents_of(transaction, to.id, &paths).await?;
        Ok(History { base, source, target })
    }

    /// Decides about a file that differs: its content in the source and in the target.
    fn choose(&self, path: &str, source: Option<Digest>, target: Option<Digest>) -> Choice {
        let had = |side: &HashSet<(String, Digest)>, digest: Option<Digest>| {
            digest.is_some_and(|digest| side.contains(&(path.to_owned(), digest)))
        };
        let knew = |side: &HashSet<(String, Digest)>| side.iter().any(|(known, _)| known == path);
        if let Some(base) = &self.base {
            let base = base.get(path).copied();
            return match () {
                () if source == base => Choice::Keep,
                () if target == base => Choice::Take,
                // After a rollback of the target, it has nothing of its own.
                () if had(&self.source, target) => Choice::Take,
                () => Choice::Conflict,
            };
        }
        match target {
            None if !knew(&self.target) => Choice::Take,
            Some(_) if had(&self.source, target) => Choice::Take,
            _ if had(&self.target, source) => Choice::Keep,
            // Only the target ever had it.
            Some(_) if source.is_none() && !knew(&self.source) => Choice::Keep,
            _ => Choice::Conflict,
        }
    }

    /// Leaves out what the target keeps. Whoever names prompts wants all of their files: a change of the target to one of them
    /// is a conflict, too.
    fn merge(&self, wanted: Vec<Replacement>, is_whole: bool) -> Result<Vec<Replacement>, Vec<String>> {
        let (mut taken, mut conflicts) = (Vec::new(), Vec::new());
        for change in wanted {
            let after = change.after.map(|(digest, _)| digest);
            if after == change.before {
                continue;
            }
            match self.choose(&change.path, after, change.before) {
                Choice::Take => taken.push(change),
                Choice::Keep if is_whole => {}
                Choice::Keep | Choice::Conflict => conflicts.push(change.path),
            }
        }
        if conflicts.is_empty() { Ok(taken) } else { Err(conflicts) }
    }
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
    let (from, of) = (channel::find(transaction, from.0).await?, channel::find(transaction, to).await?);
    let mut source = Side { name, head: Some(head), channel: from, files: source, tree: None };
    let name = format!("the channel `{to}`");
    let mut target = Side { name, head: target_head, channel: of, files: target, tree: None };
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

fn whole(source: &Side, target: &Side) -> Vec<Replacement> {
    let mut changes = BTreeMap::new();
    for path in source.files.keys().chain(target.files.keys()) {
        changes.insert(path, replacement(path, target.files.get(path), source.files.get(path)));
    }
    changes.into_values().filter(|change| change.before != change.after.map(|(digest, _)| digest)).collect()
}

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
    run_check(&tree, checker).await
}

/// A prompt with an error is not among those of a check, so the first finding is a part of the message.
fn missing(name: &str, side: &Side, report: &CheckReport) -> StoreError {
    let reason = match report.findings.first() {
        Some(finding) if report.summary.errors > 0 => format!(" (errors there: {finding})"),
        _ => String::new(),
    };
    StoreError::not_found(format!("the prompt `{name}` in {}{reason}", side.name))
}

#[cfg(test)]
mod tests;
