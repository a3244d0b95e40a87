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

#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) channel: ChannelName,
    pub(crate) base: u64,
    pub(crate) kind: RevisionKind,
    pub(crate) message: String,
    pub(crate) author: String,
    pub(crate) may_publish: bool,
    /// Whether openings need no confirmation, where the policy demands no approvals.
    pub(crate) may_administer: bool,
    pub(crate) target: Target,
    /// The digest that a present proposal must have.
    pub(crate) expected: Option<Digest>,
    pub(crate) emergency: Option<String>,
    pub(crate) changes: Vec<Replacement>,
    /// New contents. Others are in the store.
    pub(crate) contents: Contents,
    pub(crate) source: Option<Source>,
    /// Whether nothing is stored.
    pub(crate) dry_run: bool,
    /// The target of the rollout that it ends.
    pub(crate) ends_rollout: Option<ChannelName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    New,
    Replace(u64),
    Existing(u64),
}

pub(crate) async fn of_proposal(
    transaction: &mut Transaction,
    id: u64,
    emergency: Option<String>,
) -> Result<Draft, StoreError> {
    let proposal = proposal::get(transaction, id).await?;
    must_be_open(&proposal)?;
    let source = proposal::source(transaction, id).await?;
    Ok(Draft {
        channel: proposal.channel,
        base: proposal.base,
        kind: proposal.kind,
        message: proposal.message,
        author: proposal.author,
        may_publish: false,
        may_administer: false,
        target: Target::Existing(id),
        expected: Some(proposal.digest),
        emergency,
        changes: proposal::changes(transaction, id).await?,
        contents: Contents::new(),
        source,
        dry_run: false,
        ends_rollout: None,
    })
}

/// Fails unless a proposal is open.
pub(crate) fn must_be_open(proposal: &Proposal) -> Result<(), StoreError> {
    if proposal.state == ProposalState::Open {
        return Ok(());
    }
    Err(StoreError::state(format!("proposal {} is not open: it is {}", proposal.id, proposal.state.as_str())))
}
