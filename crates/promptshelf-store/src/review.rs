//! Proposals: reading, reviewing, publishing and withdrawing them.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    StoreError, announce,
    check::Checker,
    database::{Mode, Transaction},
    draft::{self, Draft, must_be_open},
    input,
    model::{Actor, Digest, NewReview, Proposal, ProposalQuery, ProposalState, Published, Verdict},
    policy,
    publish::changed,
    reason::Reason,
    store::Store,
    tables::{blob, channel, proposal},
};

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

    /// Reviews an open proposal. An approval that meets the policy publishes, if the actor may publish; otherwise `lacks` of
    /// the result lists the missing conditions. A rejection closes the proposal. If someone else closes the proposal once the
    /// approval is stored, the result has its state.
    ///
    /// # Errors
    ///
    /// [`StoreError::State`] if the proposal is not open, [`StoreError::Changed`] if it has other changes than the reviewer has
    /// read, [`StoreError::Policy`] if the author approves and the policy demands four eyes, or confirms an opening without the
    /// right to administer, [`StoreError::NotFound`], [`StoreError::InvalidInput`] also for a confirmed effect that it does not have, and errors of
    /// the database.
    pub async fn review(
        &self,
        id: u64,
        review: &NewReview,
        actor: &Actor,
        checker: Arc<dyn Checker>,
    ) -> Result<Published, StoreError> {
        input::actor(actor)?;
        input::note("the note", &review.note)?;
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = add_review(&mut transaction, id, review, actor).await;
        let proposal = transaction.finish(result).await?;
        let as_it_is = |proposal| Published { proposal, prompts: Vec::new(), findings: Vec::new(), kept: Vec::new() };
        if review.verdict == Verdict::Reject {
            return Ok(as_it_is(proposal));
        }
        let submitted = self.submit_proposal(&proposal, Some(review.digest), None, actor, &checker).await;
        // The approval is stored: whoever gave it is told what has become of the proposal.
        let Err(error) = submitted else { return submitted };
        match (self.proposal(id).await?, &error) {
            // `lacks` of the proposal names the changed files.
            (proposal, StoreError::Conflict { .. }) => Ok(as_it_is(proposal)),
            (proposal, _) if proposal.state != ProposalState::Open => Ok(as_it_is(proposal)),
            _ => Err(error),
        }
    }

    /// Publishes an open proposal whose policy is met, or in any case with the reason of an emergency. `digest` is that of the
    /// changes that the actor has read; `None` stands for any.
    ///
    /// # Errors
    ///
    /// [`StoreError::Policy`] if the policy is not met, [`StoreError::Conflict`] if the channel has changed a file
    /// since, [`StoreError::Changed`] if the proposal has other changes, [`StoreError::State`] if it is not open,
    /// [`StoreError::NotFound`], [`StoreError::InvalidInput`], and errors of the database.
    pub async fn publish_proposal(
        &self,
        id: u64,
        digest: Option<Digest>,
        emergency: Option<String>,
        actor: &Actor,
        checker: Arc<dyn Checker>,
    ) -> Result<Published, StoreError> {
        input::actor(actor)?;
        if let Some(reason) = &emergency {
            input::text("the reason of the emergency", reason)?;
        }
        let proposal = self.proposal(id).await?;
        let published = self.submit_proposal(&proposal, digest, emergency, actor, &checker).await?;
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
        proposal: &Proposal,
        digest: Option<Digest>,
        emergency: Option<String>,
        actor: &Actor,
        checker: &Arc<dyn Checker>,
    ) -> Result<Published, StoreError> {
        let id = proposal.id;
        if proposal.policy.is_some() {
            return self.submit_policy(id, digest, emergency.as_deref(), actor).await;
        }
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = draft::of_proposal(&mut transaction, id, emergency).await;
        let draft = transaction.finish(result).await?;
        if digest.is_some() && digest != draft.expected {
            return Err(changed(id));
        }
        let Actor { may_publish, may_administer, .. } = *actor;
        self.submit(&Draft { may_publish, may_administer, ..draft }, checker).await
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
    new: &NewReview,
    actor: &Actor,
) -> Result<Proposal, StoreError> {
    let proposal = proposal::lock(transaction, id).await?;
    must_be_open(&proposal)?;
    if new.digest != proposal.digest {
        return Err(changed(id));
    }
    // A change that takes the review from a role locks the proposal, too: it comes before, or finds the review.
    let policy = channel::get(transaction, &proposal.channel).await?.policy;
    if actor.review_roles.as_ref().is_some_and(|roles| *roles != policy.roles.review) {
        return Err(StoreError::Changed { what: format!("the policy of the channel `{}`", proposal.channel) });
    }
    policy::may_review(&policy, &proposal, new, actor)?;
    let is_repeated = proposal.reviews.iter().any(|review| {
        (review.verdict, review.digest, &review.reviewer) == (new.verdict, new.digest, &actor.name)
            && !review.lapsed
            && new.confirmed.iter().all(|name| review.confirmed.contains(name))
    });
    if !is_repeated {
        proposal::add_review(transaction, &proposal, &actor.name, new).await?;
    }
    if new.verdict == Verdict::Reject {
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
