//! Changes that are to become a proposal or a revision.

use crate::{
    StoreError,
    address::ChannelName,
    database::Transaction,
    model::{Digest, Proposal, ProposalState, RevisionKind},
    tables::{
        blob::Contents,
        entry::Replacement,
        proposal::{self, Source},
    },
};

/// Changes that are to become a proposal or a revision.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The channel.
    pub(crate) channel: ChannelName,
    /// The revision that the changes start from.
    pub(crate) base: u64,
    /// The kind of the revision.
    pub(crate) kind: RevisionKind,
    /// The description.
    pub(crate) message: String,
    /// The author.
    pub(crate) author: String,
    /// Whether the proposal is published as soon as the policy is met.
    pub(crate) may_publish: bool,
    /// Whether openings need no confirmation, where the policy demands no approvals.
    pub(crate) may_administer: bool,
    /// Where the changes are stored.
    pub(crate) target: Target,
    /// The digest of the changes that a replaced proposal must have.
    pub(crate) expected: Option<Digest>,
    /// The reason to pass over the policy.
    pub(crate) emergency: Option<String>,
    /// The changes, by path.
    pub(crate) changes: Vec<Replacement>,
    /// New contents. Others are in the store.
    pub(crate) contents: Contents,
    /// What a promotion copies.
    pub(crate) source: Option<Source>,
    /// Whether nothing is stored.
    pub(crate) dry_run: bool,
}

/// The proposal that receives the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A new one.
    New,
    /// An open one whose changes are replaced.
    Replace(u64),
    /// An open one with these changes.
    Existing(u64),
}

/// Returns the changes of an open proposal as they were proposed.
pub(crate) async fn of_proposal(
    transaction: &mut Transaction,
    id: u64,
    emergency: Option<String>,
) -> Result<Draft, StoreError> {
    let proposal = proposal::get(transaction, id).await?;
    must_be_open(&proposal)?;
    Ok(Draft {
        channel: proposal.channel,
        base: proposal.base,
        kind: proposal.kind,
        message: proposal.message,
        author: proposal.author,
        may_publish: false,
        may_administer: false,
        target: Target::Existing(id),
        expected: None,
        emergency,
        changes: proposal::changes(transaction, id).await?,
        contents: Contents::new(),
        source: None,
        dry_run: false,
    })
}

/// Fails unless a proposal is open.
pub(crate) fn must_be_open(proposal: &Proposal) -> Result<(), StoreError> {
    if proposal.state == ProposalState::Open {
        return Ok(());
    }
    Err(StoreError::state(format!("proposal {} is not open: it is {}", proposal.id, proposal.state.as_str())))
}
