//! Proposals: reading, reviewing, publishing and withdrawing them.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    StoreError, announce,
    check::Checker,
    database::{Mode, Transaction},
    draft::{self, Draft, must_be_open},
    input,
    model::{Actor, Digest, Proposal, ProposalQuery, ProposalState, Published, Verdict},
    publish::changed,
    reason::Reason,
    store::Store,
    tables::{blob, channel, proposal},
};

/// A path with its content before and after a change.
type ChangedContent = (String, Option<Arc<[u8]>>, Option<Arc<[u8]>>);

impl Store {
    /// Returns proposals, the newest first.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] for an unknown channel, and errors of the database.
    pub async fn proposals(&self, query: &ProposalQuery) -> Result<Vec<Proposal>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = proposals(&mut transaction, query).await;
        transaction.finish(result).await
    }

    /// Returns one proposal.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if it does not exist, and errors of the database.
    pub async fn proposal(&self, id: u64) -> Result<Proposal, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = proposal::get(&mut transaction, id).await;
        transaction.finish(result).await
    }

    /// Returns the contents of a proposal's changes, by path: before and after.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if it does not exist, or if [`Store::gc`] removed contents of a closed proposal;
    /// [`StoreError::Corrupt`]; errors of the database.
    pub async fn proposal_contents(&self, id: u64) -> Result<Vec<ChangedContent>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = contents(&mut transaction, id).await;
        transaction.finish(result).await
    }

    /// Reviews an open proposal. `digest` is that of the changes that the reviewer saw; `None` stands for the present
    /// ones. An approval that meets the policy publishes, if the actor may publish; otherwise `lacks` of the result
    /// lists the missing conditions. A rejection closes the proposal.
    ///
    /// # Errors
    ///
    /// [`StoreError::State`] if the proposal is not open, [`StoreError::Changed`] if it has other changes by now, [`StoreError::Policy`] if the
    /// author approves and the policy demands four eyes, [`StoreError::NotFound`], [`StoreError::InvalidInput`], and
    /// errors of the database.
    pub async fn review(
        &self,
        id: u64,
        verdict: Verdict,
        note: &str,
        digest: Option<Digest>,
        actor: &Actor,
        checker: Arc<dyn Checker>,
    ) -> Result<Published, StoreError> {
        input::actor(actor)?;
        input::note("the note", note)?;
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = add_review(&mut transaction, id, verdict, note, digest, actor).await;
        let proposal = transaction.finish(result).await?;
        if verdict == Verdict::Reject {
            return Ok(Published { proposal, prompts: Vec::new(), findings: Vec::new() });
        }
        match self.submit_proposal(id, None, actor, &checker).await {
            Err(StoreError::Conflict { .. }) => {
                // The approval is stored, and `lacks` of the proposal names the changed files.
                let proposal = self.proposal(id).await?;
                Ok(Published { proposal, prompts: Vec::new(), findings: Vec::new() })
            }
            result => result,
        }
    }

    /// Publishes an open proposal whose policy is met, or in any case with the reason of an emergency.
    ///
    /// # Errors
    ///
    /// [`StoreError::Policy`] if the policy is not met, [`StoreError::Conflict`] if the channel has changed a file
    /// since, [`StoreError::State`] if the proposal is not open, [`StoreError::NotFound`],
    /// [`StoreError::InvalidInput`], and errors of the database.
    pub async fn publish_proposal(
        &self,
        id: u64,
        emergency: Option<String>,
        actor: &Actor,
        checker: Arc<dyn Checker>,
    ) -> Result<Published, StoreError> {
        input::actor(actor)?;
        if let Some(reason) = &emergency {
            input::text("the reason of the emergency", reason)?;
        }
        let published = self.submit_proposal(id, emergency, actor, &checker).await?;
        if published.proposal.state == ProposalState::Published {
            return Ok(published);
        }
        let mut reasons = published.proposal.reasons;
        if !actor.may_publish {
            let text = format!("{} may not publish", actor.name);
            reasons.push(Reason::new("may-not-publish", text).with("name", &actor.name));
        }
        Err(StoreError::policy(reasons))
    }

    /// Withdraws an open proposal.
    ///
    /// # Errors
    ///
    /// [`StoreError::State`] if it is not open or another person's, [`StoreError::NotFound`],
    /// [`StoreError::InvalidInput`], and errors of the database.
    pub async fn withdraw(&self, id: u64, actor: &Actor) -> Result<Proposal, StoreError> {
        input::actor(actor)?;
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = withdraw(&mut transaction, id, actor).await;
        transaction.finish(result).await
    }

    async fn submit_proposal(
        &self,
        id: u64,
        emergency: Option<String>,
        actor: &Actor,
        checker: &Arc<dyn Checker>,
    ) -> Result<Published, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = draft::of_proposal(&mut transaction, id, emergency).await;
        let draft = Draft { may_publish: actor.may_publish, ..transaction.finish(result).await? };
        self.submit(&draft, checker).await
    }
}

async fn proposals(transaction: &mut Transaction, query: &ProposalQuery) -> Result<Vec<Proposal>, StoreError> {
    let channel = match &query.channel {
        Some(name) => Some(channel::get(transaction, name).await?.id),
        None => None,
    };
    proposal::all(transaction, channel, query).await
}

async fn contents(transaction: &mut Transaction, id: u64) -> Result<Vec<ChangedContent>, StoreError> {
    let proposal = proposal::get(transaction, id).await?;
    let digests: Vec<Digest> =
        proposal.changes.iter().flat_map(|change| [change.before, change.after]).flatten().collect();
    let contents: BTreeMap<Digest, Arc<[u8]>> = blob::read(transaction, &digests).await?.into_iter().collect();
    let content = |digest: Option<Digest>| digest.and_then(|digest| contents.get(&digest).cloned());
    let changes = proposal.changes.into_iter();
    Ok(changes.map(|change| (change.path, content(change.before), content(change.after))).collect())
}

async fn add_review(
    transaction: &mut Transaction,
    id: u64,
    verdict: Verdict,
    note: &str,
    digest: Option<Digest>,
    actor: &Actor,
) -> Result<Proposal, StoreError> {
    let proposal = proposal::lock(transaction, id).await?;
    must_be_open(&proposal)?;
    if digest.is_some_and(|digest| digest != proposal.digest) {
        return Err(changed(id));
    }
    let policy = channel::get(transaction, &proposal.channel).await?.policy;
    if verdict == Verdict::Approve && policy.four_eyes && input::same_name(&proposal.author, &actor.name) {
        let reason = Reason::new("own-proposal", "authors cannot approve their own proposals");
        return Err(StoreError::policy(vec![reason]));
    }
    let is_repeated = proposal
        .reviews
        .iter()
        .any(|review| review.verdict == verdict && review.digest == proposal.digest && review.reviewer == actor.name);
    if !is_repeated {
        proposal::add_review(transaction, id, proposal.digest, &actor.name, verdict, note).await?;
    }
    if verdict == Verdict::Reject {
        proposal::set_state(transaction, id, ProposalState::Rejected, None).await?;
    }
    let proposal = proposal::get(transaction, id).await?;
    if !is_repeated {
        announce::reviewed(transaction, &proposal).await?;
    }
    Ok(proposal)
}

async fn withdraw(transaction: &mut Transaction, id: u64, actor: &Actor) -> Result<Proposal, StoreError> {
    let proposal = proposal::lock(transaction, id).await?;
    must_be_open(&proposal)?;
    if !input::same_name(&proposal.author, &actor.name) {
        return Err(StoreError::state(format!("only its author {} can withdraw proposal {id}", proposal.author)));
    }
    proposal::set_state(transaction, id, ProposalState::Withdrawn, None).await?;
    proposal::get(transaction, id).await
}
