//! Changes of policies and their history.

use crate::{
    StoreError,
    address::ChannelName,
    announce,
    database::{Mode, Transaction},
    draft::must_be_open,
    input,
    model::{
        Actor, ChannelInfo, Digest, Policy, PolicyChange, PolicyGuard, PolicyOutcome, Proposal, ProposalState,
        ProposedPolicy, Published,
    },
    policy,
    store::Store,
    tables::{
        channel::{self, Channel},
        policy_change::{self, NewPolicyChange},
        proposal,
    },
};

struct Change<'a> {
    policy: &'a Policy,
    guard: &'a PolicyGuard,
    message: &'a str,
    actor: &'a Actor,
}

impl Store {
    /// Sets the policy of a channel as an operator, and creates the channel if it does not exist. Open proposals are judged by the
    /// new policy. If it takes the review from a role, the approvals that they have do not count any more.
    ///
    /// # Errors
    ///
    /// [`StoreError::Changed`] if the present policy is not that of the guard, [`StoreError::InvalidInput`], and errors of the database.
    pub async fn set_policy(
        &self,
        channel: &ChannelName,
        policy: &Policy,
        guard: &PolicyGuard,
        message: &str,
        actor: &Actor,
    ) -> Result<ChannelInfo, StoreError> {
        match self.change_policy(channel, &Change { policy, guard, message, actor }, true).await? {
            PolicyOutcome::Changed(info) => Ok(*info),
            PolicyOutcome::Proposed(proposal) => Err(StoreError::state(format!("proposal {} is open", proposal.id))),
        }
    }

    /// Sets the policy of a channel for a caller of a server. If the present policy asks for approvals, one that loosens it
    /// becomes a proposal, which the approvals of the present policy carry out.
    ///
    /// # Errors
    ///
    /// As [`Store::set_policy`].
    pub async fn propose_policy(
        &self,
        channel: &ChannelName,
        policy: &Policy,
        guard: &PolicyGuard,
        message: &str,
        actor: &Actor,
    ) -> Result<PolicyOutcome, StoreError> {
        self.change_policy(channel, &Change { policy, guard, message, actor }, false).await
    }

    /// Returns the changes of a channel's policy, the newest first: only those with a smaller number than `before`, and at most
    /// `limit`; 0 stands for 100.
    ///
    /// # Errors
    ///
    /// As [`Store::channel`].
    pub async fn policy_history(
        &self,
        channel: &ChannelName,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<PolicyChange>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = async {
            let found = channel::get(&mut transaction, channel).await?;
            policy_change::select(&mut transaction, (found.id, channel), before, limit).await
        }
        .await;
        transaction.finish(result).await
    }

    async fn change_policy(
        &self,
        channel: &ChannelName,
        change: &Change<'_>,
        by_operator: bool,
    ) -> Result<PolicyOutcome, StoreError> {
        input::actor(change.actor)?;
        input::policy(change.policy)?;
        input::note("the message", change.message)?;
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = change_policy(&mut transaction, channel, change, by_operator).await;
        transaction.finish(result).await
    }

    /// Carries out an open proposal of a policy, if it has the approvals or the reason of an emergency.
    pub(crate) async fn submit_policy(
        &self,
        id: u64,
        expected: Option<Digest>,
        emergency: Option<&str>,
        actor: &Actor,
    ) -> Result<Published, StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = carry_out(&mut transaction, id, expected, emergency, actor).await;
        let proposal = transaction.finish(result).await?;
        Ok(Published { proposal, prompts: Vec::new(), findings: Vec::new(), kept: Vec::new() })
    }
}

async fn change_policy(
    transaction: &mut Transaction,
    name: &ChannelName,
    change: &Change<'_>,
    by_operator: bool,
) -> Result<PolicyOutcome, StoreError> {
    let Change { policy: after, guard, message, actor } = *change;
    let exists = channel::find(transaction, name).await?.is_some();
    let channel = channel::lock(transaction, name).await?;
    let is_expected = match guard {
        PolicyGuard::Any => true,
        PolicyGuard::Absent => !exists,
        PolicyGuard::Is(expected) => exists && channel.policy == *expected,
    };
    if !is_expected {
        return Err(StoreError::Changed { what: format!("the policy of the channel `{name}`") });
    }
    let is_reviewed = !by_operator
        && policy::asks_for_approvals(&channel.policy)
        && !policy::loosened(&channel.policy, after).is_empty();
    if is_reviewed {
        let proposed = ProposedPolicy { before: channel.policy.clone(), after: after.clone() };
        let id = proposal::open_policy(transaction, &channel, &proposed, message, &actor.name).await?;
        let proposal = proposal::get(transaction, id).await?;
        announce::proposed(transaction, &proposal, &[]).await?;
        return Ok(PolicyOutcome::Proposed(Box::new(proposal)));
    }
    let before = exists.then_some(&channel.policy);
    if channel.policy != *after {
        let new = NewPolicyChange {
            before,
            after,
            actor: &actor.name,
            message,
            proposal: None,
            approved_by: &[],
            emergency: None,
            by_operator,
        };
        write(transaction, &channel, &new).await?;
    }
    let info = Channel { policy: after.clone(), ..channel };
    Ok(PolicyOutcome::Changed(Box::new(info.info(&channel::epoch(transaction).await?))))
}

async fn write(transaction: &mut Transaction, channel: &Channel, new: &NewPolicyChange<'_>) -> Result<(), StoreError> {
    channel::set_policy(transaction, channel.id, new.after, new.actor).await?;
    if policy::narrows_review(&channel.policy, new.after) {
        // Roles of reviewers are not stored: which of them may still review is not known.
        proposal::lapse_approvals(transaction, channel.id).await?;
    }
    let change = policy_change::add(transaction, (channel.id, &channel.name), new).await?;
    announce::policy_changed(transaction, &change).await
}

async fn carry_out(
    transaction: &mut Transaction,
    id: u64,
    expected: Option<Digest>,
    emergency: Option<&str>,
    actor: &Actor,
) -> Result<Proposal, StoreError> {
    let name = proposal::get(transaction, id).await?.channel;
    let channel = channel::lock(transaction, &name).await?;
    let present = proposal::lock(transaction, id).await?;
    must_be_open(&present)?;
    if expected.is_some_and(|expected| expected != present.digest) {
        return Err(crate::publish::changed(id));
    }
    let Some(proposed) = &present.policy else {
        return Err(StoreError::state(format!("proposal {id} is not about the policy")));
    };
    let is_outdated = proposed.before != channel.policy;
    if is_outdated || !(present.reasons.is_empty() || emergency.is_some()) {
        return Ok(present);
    }
    let approved_by = policy::approvers(&channel.policy, &present);
    let emergency = emergency.filter(|_| !present.reasons.is_empty());
    let new = NewPolicyChange {
        before: Some(&channel.policy),
        after: &proposed.after,
        actor: if emergency.is_some() { &actor.name } else { &present.author },
        message: &present.message,
        proposal: Some(id),
        approved_by: &approved_by,
        emergency,
        by_operator: false,
    };
    proposal::set_state(transaction, id, ProposalState::Published, None).await?;
    write(transaction, &channel, &new).await?;
    proposal::get(transaction, id).await
}

pub(crate) mod rows {
    //! The history of policies.

    use crate::{
        StoreError,
        address::ChannelName,
        database::{Row, Transaction, Value, json, malformed},
        model::{Policy, PolicyChange},
    };

    /// The number of changes without a limit.
    const DEFAULT_LIMIT: usize = 100;
    const MAX_LIMIT: usize = 1_000;

    #[derive(Debug)]
    pub(crate) struct NewPolicyChange<'a> {
        pub(crate) before: Option<&'a Policy>,
        pub(crate) after: &'a Policy,
        pub(crate) actor: &'a str,
        pub(crate) message: &'a str,
        pub(crate) proposal: Option<u64>,
        pub(crate) approved_by: &'a [String],
        pub(crate) emergency: Option<&'a str>,
        pub(crate) by_operator: bool,
    }

    pub(crate) async fn add(
        transaction: &mut Transaction,
        (channel, name): (i64, &ChannelName),
        new: &NewPolicyChange<'_>,
    ) -> Result<PolicyChange, StoreError> {
        let now = transaction.now();
        let sql = format!(
            "INSERT INTO ps_policy_change \
             (channel, actor, before, after, message, proposal, approved_by, emergency, by_operator, at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, {now}) RETURNING id, at"
        );
        let values = vec![
            channel.into(),
            new.actor.into(),
            Value::Text(new.before.map(json).transpose()?),
            json(new.after)?.into(),
            new.message.into(),
            new.proposal.into(),
            json(&new.approved_by)?.into(),
            new.emergency.into(),
            u64::from(new.by_operator).into(),
        ];
        let row = transaction.row(sql, values).await?.ok_or_else(|| malformed("no number of a change of a policy"))?;
        Ok(PolicyChange {
            number: row.number("id")?,
            channel: name.clone(),
            at: row.time("at")?,
            actor: new.actor.to_owned(),
            before: new.before.cloned(),
            after: new.after.clone(),
            message: new.message.to_owned(),
            proposal: new.proposal,
            approved_by: new.approved_by.to_vec(),
            emergency: new.emergency.map(str::to_owned),
            by_operator: new.by_operator,
        })
    }

    /// Returns changes of a channel, the newest first; only those with a smaller number than `before`.
    pub(crate) async fn select(
        transaction: &mut Transaction,
        (channel, name): (i64, &ChannelName),
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<PolicyChange>, StoreError> {
        let limit = if limit == 0 { DEFAULT_LIMIT } else { limit.min(MAX_LIMIT) };
        let mut values: Vec<Value> = vec![channel.into()];
        let mut condition = "channel = $1".to_owned();
        if let Some(before) = before {
            values.push(before.into());
            condition.push_str(" AND id < $2");
        }
        let sql = format!(
            "SELECT id, at, actor, before, after, message, proposal, approved_by, emergency, by_operator \
             FROM ps_policy_change WHERE {condition} ORDER BY id DESC LIMIT {limit}"
        );
        let change = |row: &Row| {
            Ok(PolicyChange {
                number: row.number("id")?,
                channel: name.clone(),
                at: row.time("at")?,
                actor: row.text("actor")?,
                before: row.optional_json("before")?,
                after: row.json("after")?,
                message: row.text("message")?,
                proposal: row.optional_number("proposal")?,
                approved_by: row.json("approved_by")?,
                emergency: row.optional_text("emergency")?,
                by_operator: row.number("by_operator")? != 0,
            })
        };
        transaction.rows(sql, values).await?.iter().map(change).collect()
    }
}
