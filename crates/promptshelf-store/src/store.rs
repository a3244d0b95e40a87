//! The operations on a store.
#![allow(clippy::todo, clippy::missing_errors_doc, unused_variables, missing_debug_implementations)]

use std::{sync::Arc, time::Duration};

use promptshelf_source::MemoryTree;

use crate::{
    address::{ChannelName, StoreUrl},
    check::Checker,
    error::StoreError,
    model::{
        Actor, ChannelInfo, Delta, Digest, Epoch, FileEntry, Head, HistoryQuery, Policy, PolicyGuard, Proposal,
        ProposalQuery, Publish, Published, Revision, Served, Verdict,
    },
};

/// A store of channels. Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct Store(());

impl Store {
    /// Creates a store: the SQLite file, or the tables in an existing PostgreSQL database. Not an error if it exists.
    pub async fn create(url: &StoreUrl) -> Result<Store, StoreError> { todo!() }
    /// Opens a store, and brings its schema up to date.
    pub async fn open(url: &StoreUrl) -> Result<Store, StoreError> { todo!() }
    /// The pending migrations, without applying any: `(present, newest known)`.
    pub async fn schema(url: &StoreUrl) -> Result<(u64, u64), StoreError> { todo!() }
    /// The place of the store.
    pub fn url(&self) -> &StoreUrl { todo!() }

    /// All channels, by name.
    pub async fn channels(&self) -> Result<Vec<ChannelInfo>, StoreError> { todo!() }
    /// One channel.
    pub async fn channel(&self, channel: &ChannelName) -> Result<ChannelInfo, StoreError> { todo!() }
    /// The head of a channel, in one cheap query.
    pub async fn head(&self, channel: &ChannelName) -> Result<Head, StoreError> { todo!() }
    /// Creates a channel, or changes its policy. [`StoreError::Changed`] if the present policy is not that of the guard.
    pub async fn set_policy(&self, channel: &ChannelName, policy: &Policy, guard: &PolicyGuard, actor: &Actor) -> Result<ChannelInfo, StoreError> { todo!() }

    /// All files of a channel at a revision, by path.
    pub async fn files(&self, channel: &ChannelName, revision: Option<u64>) -> Result<(Head, Vec<FileEntry>), StoreError> { todo!() }
    /// One file of a channel at a revision; `None` if it does not exist there.
    pub async fn file(&self, channel: &ChannelName, revision: Option<u64>, path: &str) -> Result<(Head, Option<FileEntry>), StoreError> { todo!() }
    /// The files that changed since a head; all of them without one.
    pub async fn delta(&self, channel: &ChannelName, since: Option<&Head>) -> Result<Delta, StoreError> { todo!() }
    /// The contents with these digests, each verified.
    pub async fn blobs(&self, digests: &[Digest]) -> Result<Vec<(Digest, Arc<[u8]>)>, StoreError> { todo!() }
    /// A channel's tree at a revision, with all contents.
    pub async fn tree(&self, channel: &ChannelName, revision: Option<u64>) -> Result<(Head, MemoryTree), StoreError> { todo!() }

    /// Proposes changes, and publishes them if the policy is met and the actor may publish.
    pub async fn publish(&self, publish: Publish, actor: &Actor, checker: Arc<dyn Checker>) -> Result<Published, StoreError> { todo!() }
    /// Proposals, the newest first.
    pub async fn proposals(&self, query: &ProposalQuery) -> Result<Vec<Proposal>, StoreError> { todo!() }
    /// One proposal.
    pub async fn proposal(&self, id: u64) -> Result<Proposal, StoreError> { todo!() }
    /// The contents of a proposal's changes: path, before, after.
    #[allow(clippy::type_complexity)]
    pub async fn proposal_contents(&self, id: u64) -> Result<Vec<(String, Option<Arc<[u8]>>, Option<Arc<[u8]>>)>, StoreError> { todo!() }
    /// Reviews a proposal. `digest` is that of the changes that the reviewer saw; `None` stands for the present ones.
    /// [`StoreError::Changed`] if the proposal has other changes by now. An approval that meets the policy publishes, if the actor
    /// may publish.
    pub async fn review(&self, id: u64, verdict: Verdict, note: &str, digest: Option<Digest>, actor: &Actor, checker: Arc<dyn Checker>) -> Result<Published, StoreError> { todo!() }
    /// Publishes an open proposal whose policy is met, or with a reason in any case.
    pub async fn publish_proposal(&self, id: u64, emergency: Option<String>, actor: &Actor, checker: Arc<dyn Checker>) -> Result<Published, StoreError> { todo!() }
    /// Withdraws an open proposal; only its author can.
    pub async fn withdraw(&self, id: u64, actor: &Actor) -> Result<Proposal, StoreError> { todo!() }
    /// Proposes the state of another channel: all of it, or the named prompts with all they bring in.
    #[allow(clippy::too_many_arguments)]
    pub async fn promote(&self, from: &ChannelName, to: &ChannelName, prompts: &[String], message: &str, dry_run: bool, actor: &Actor, checker: Arc<dyn Checker>) -> Result<Published, StoreError> { todo!() }
    /// Proposes the state of an earlier revision: all of it, or of one prompt with all it brings in.
    #[allow(clippy::too_many_arguments)]
    pub async fn rollback(&self, channel: &ChannelName, to: u64, prompt: Option<&str>, message: &str, dry_run: bool, actor: &Actor, checker: Arc<dyn Checker>) -> Result<Published, StoreError> { todo!() }

    /// Revisions, the newest first.
    pub async fn history(&self, channel: &ChannelName, query: &HistoryQuery) -> Result<Vec<Revision>, StoreError> { todo!() }
    /// One revision.
    pub async fn revision(&self, channel: &ChannelName, number: u64) -> Result<Revision, StoreError> { todo!() }
    /// What was served at a revision.
    pub async fn served(&self, channel: &ChannelName, revision: u64) -> Result<Vec<Served>, StoreError> { todo!() }

    /// Gives the store a new epoch, after a restore.
    pub async fn new_epoch(&self) -> Result<Epoch, StoreError> { todo!() }
    /// Removes contents that no revision and no open proposal refers to; returns their number and bytes.
    pub async fn gc(&self) -> Result<(u64, u64), StoreError> { todo!() }
    /// Removes revisions that are older and not served any more; returns their number.
    pub async fn prune(&self, older_than: Duration) -> Result<u64, StoreError> { todo!() }

    /// Hints that a channel may have changed. A hint can be lost; a follower also compares heads every second.
    pub async fn hints(&self, channel: &ChannelName) -> ChangeHints { todo!() }
}

/// Waits for hints.
pub struct ChangeHints(());

impl ChangeHints {
    /// Waits for the next hint. Never returns where the database sends none. Cancel-safe.
    pub async fn next(&mut self) { todo!() }
}
