//! The two sides of a comparison, as trees.

use std::{collections::BTreeMap, sync::Arc};

use promptshelf_source::{MemoryFile, MemoryTree};
use promptshelf_store::{
    ChannelName, FileChange, Head, Promotion, Proposal, ProposalState, Published, Rollback, Store, StoreError,
};
use promptshelf_wire::{RevisionSide, Scope, SideBody, SideName};

use super::{
    call::Context,
    check::apply,
    content::{Changes, changes},
    opened::{Key, OpenedTree},
    problem::Problem,
};

pub(super) struct Side {
    pub(super) name: SideName,
    pub(super) opened: Arc<OpenedTree>,
}

pub(super) async fn opened(call: &Context, side: &RevisionSide) -> Result<Side, Problem> {
    let sides = Sides { call, store: call.store().await? };
    let number = sides.number(side).await?;
    sides.revision(&side.channel, number).await
}

pub(super) async fn sides(
    call: &Context,
    before: Option<RevisionSide>,
    after: SideBody,
) -> Result<(Side, Side), Problem> {
    let store = call.store().await?;
    let sides = Sides { call, store };
    match after {
        SideBody::Revision(after) => {
            call.require_channel(&after.channel)?;
            let number = sides.number(&after).await?;
            let previous = RevisionSide { channel: after.channel.clone(), revision: Some(number.saturating_sub(1)) };
            let before = sides.before(before, previous).await?;
            Ok((before, sides.revision(&after.channel, number).await?))
        }
        SideBody::Proposal { id } => {
            let proposal = call.proposal(id).await?;
            let channel = proposal.channel.clone();
            let replaced = match (proposal.state, proposal.revision) {
                (ProposalState::Open, _) => None,
                (_, Some(revision)) => Some(revision.saturating_sub(1)),
                (_, None) => Some(proposal.base),
            };
            let before = sides.before(before, RevisionSide { channel, revision: replaced }).await?;
            let after = sides.proposal(&before, &proposal).await?;
            Ok((before, after))
        }
        SideBody::Changes { channel, changes: bodies } => {
            must_propose(call, &channel).await?;
            let newest = RevisionSide { channel: channel.clone(), revision: None };
            let before = sides.before(before, newest).await?;
            let Changes { changes, memory: _memory } =
                changes(call, &sides.store, &call.state.api.referred, bodies).await?;
            let tree = apply(&before.opened.tree, changes, before.name.revision.unwrap_or_default())?;
            let opened = call.state.api.open(call.caller(), None, tree).await?;
            Ok((before, Side { name: unpublished(&channel), opened }))
        }
        SideBody::Rollback { channel, to, prompt } => {
            must_propose(call, &channel).await?;
            let (actor, checker) = (call.actor(), call.checker());
            let message = String::new();
            let rollback = Rollback { channel: channel.clone(), to, prompt, message, dry_run: true };
            let plan = sides.store.rollback(&rollback, &actor, checker).await?;
            let newest = RevisionSide { channel: channel.clone(), revision: None };
            let before = sides.before(before, newest).await?;
            let after = sides.planned(&before, &channel, plan).await?;
            let name = SideName { source: Some(channel), source_revision: Some(to), ..after.name };
            Ok((before, Side { name, ..after }))
        }
        SideBody::Promote { from, to, prompts, all } => {
            must_propose(call, &to).await?;
            call.require_channel(&from)?;
            let head = sides.store.head(&from).await?;
            let (actor, checker) = (call.actor(), call.checker());
            let message = String::new();
            let promotion = Promotion {
                from: from.clone(),
                to: to.clone(),
                prompts,
                all,
                message,
                dry_run: true,
                ends_rollout: false,
            };
            let plan = sides.store.promote(&promotion, &actor, checker).await?;
            let newest = RevisionSide { channel: to.clone(), revision: None };
            let before = sides.before(before, newest).await?;
            let after = sides.planned(&before, &to, plan).await?;
            let name = SideName { source: Some(from), source_revision: Some(head.revision), ..after.name };
            Ok((before, Side { name, ..after }))
        }
    }
}

async fn must_propose(call: &Context, channel: &ChannelName) -> Result<(), Problem> {
    call.require(&[Scope::Read, Scope::Propose])?;
    call.require_channel(channel)?;
    let roles = call.store().await?.channel(channel).await?.policy.roles;
    call.require_role(&roles.propose, "propose")
}

fn unpublished(channel: &ChannelName) -> SideName {
    SideName { channel: channel.clone(), revision: None, digest: None, source: None, source_revision: None }
}

struct Sides<'s> {
    call: &'s Context,
    store: Store,
}

impl Sides<'_> {
    async fn number(&self, side: &RevisionSide) -> Result<u64, Problem> {
        match side.revision {
            Some(number) => Ok(number),
            None => Ok(self.store.head(&side.channel).await?.revision),
        }
    }

    /// Returns the identity of a revision; revision 0 is the empty channel before the first one.
    async fn head(&self, channel: &ChannelName, revision: u64) -> Result<Head, Problem> {
        Ok(match revision {
            0 => Head { revision: 0, digest: None, ..self.store.head(channel).await? },
            revision => self.store.head_at(channel, revision).await?,
        })
    }

    /// Opens the side on the left: the chosen one, or the default.
    async fn before(&self, chosen: Option<RevisionSide>, default: RevisionSide) -> Result<Side, Problem> {
        let side = chosen.unwrap_or(default);
        self.call.require_channel(&side.channel)?;
        let number = self.number(&side).await?;
        self.revision(&side.channel, number).await
    }

    async fn revision(&self, channel: &ChannelName, number: u64) -> Result<Side, Problem> {
        let head = self.head(channel, number).await?;
        let name = |digest| SideName {
            channel: channel.clone(),
            revision: Some(number),
            digest,
            source: Some(channel.clone()),
            source_revision: Some(number),
        };
        let key = Key::Revision(channel.clone(), head.clone());
        if let Some(opened) = self.call.state.api.known(&key) {
            return Ok(Side { name: name(head.digest), opened });
        }
        let (head, tree) = match number {
            0 => (head, MemoryTree::default()),
            number => self.store.tree(channel, Some(number)).await?,
        };
        let name = name(head.digest);
        let key = Key::Revision(channel.clone(), head);
        Ok(Side { name, opened: self.call.state.api.open(self.call.caller(), Some(key), tree).await? })
    }

    /// Opens a proposal. Its changes replace the files on the left whatever those are: `lacks` of the proposal names the
    /// files that someone else has changed.
    async fn proposal(&self, before: &Side, proposal: &Proposal) -> Result<Side, Problem> {
        if let Some(revision) = proposal.revision {
            return self.revision(&proposal.channel, revision).await;
        }
        let (channel, revision) = (before.name.channel.clone(), before.name.revision.unwrap_or_default());
        let head = self.head(&channel, revision).await?;
        let key = Key::Changed(channel, head, proposal.digest);
        let name = unpublished(&proposal.channel);
        if let Some(opened) = self.call.state.api.known(&key) {
            return Ok(Side { name, opened });
        }
        let contents = self.store.proposal_contents(proposal.id).await?;
        let files = contents.into_iter().map(|(path, _, after)| (path, after.map(MemoryFile::new)));
        let tree = before.opened.tree.with(files);
        Ok(Side { name, opened: self.call.state.api.open(self.call.caller(), Some(key), tree).await? })
    }

    /// Opens the result of a rollback or a promotion that was only planned.
    async fn planned(&self, before: &Side, channel: &ChannelName, plan: Published) -> Result<Side, Problem> {
        let changes: Vec<FileChange> = plan.proposal.changes;
        let digests: Vec<_> = changes.iter().filter_map(|change| change.after).collect();
        let contents: BTreeMap<_, _> = self.store.blobs(&digests).await?.into_iter().collect();
        let mut files = Vec::with_capacity(changes.len());
        for change in changes {
            let after = match change.after {
                None => None,
                Some(digest) => {
                    let missing = || StoreError::NotFound { what: format!("the content {digest}") };
                    let bytes = contents.get(&digest).ok_or_else(missing)?;
                    Some(MemoryFile::new(Arc::clone(bytes)))
                }
            };
            files.push((change.path, after));
        }
        let opened = self.call.state.api.open(self.call.caller(), None, before.opened.tree.with(files)).await?;
        Ok(Side { name: unpublished(channel), opened })
    }
}
