//! Storing and reading results of evaluations.

use std::sync::Arc;

use crate::{
    StoreError,
    address::ChannelName,
    check::Checker,
    database::{Mode, Transaction},
    evaluation::{
        CaseChange, CaseResult, EvaluatedPrompt, Evaluation, EvaluationQuery, EvaluationsOfPrompt, NewEvaluation,
        ProposalEvaluations, ResultChange,
    },
    input,
    model::Actor,
    store::Store,
    tables::{
        channel::{self, Channel},
        evaluation,
        prompt::{self, PromptDifference},
        proposal,
    },
};

const MAX_PROMPTS: usize = 100;
const MAX_CASES: usize = 100;

impl Store {
    /// Stores the result of an evaluation. The newest 20 results of each version stay.
    ///
    /// The version has to be one that the channel has served, or that an open proposal for the channel has. A proposal
    /// that the result names is checked again if it did not have the version at its last check.
    ///
    /// # Errors
    ///
    /// [`StoreError::Changed`] if the prompt has another version by now, [`StoreError::InvalidInput`] if the result is not
    /// accepted, [`StoreError::Conflict`] if the channel has changed a file of the proposal since, [`StoreError::State`] if
    /// the proposal is not open or is one for another channel, [`StoreError::NotFound`], and errors of the database.
    /// Nothing is stored then.
    pub async fn add_evaluation(
        &self,
        channel: &ChannelName,
        new: &NewEvaluation,
        actor: &Actor,
        checker: Arc<dyn Checker>,
    ) -> Result<Evaluation, StoreError> {
        input::actor(actor)?;
        input::evaluation(new)?;
        let mut is_checked = false;
        loop {
            let mut transaction = self.database().begin(Mode::Write).await?;
            let result = add(&mut transaction, channel, new, actor).await;
            match (transaction.finish(result).await?, new.proposal) {
                (Some(added), _) => return Ok(added),
                (None, Some(id)) if !is_checked => self.refresh_prompts(id, &checker).await?,
                (None, _) => return Err(StoreError::Changed { what: format!("the prompt `{}`", new.prompt) }),
            }
            is_checked = true;
        }
    }

    /// Returns results for versions of prompts that a channel serves, has served or has proposed, the newest first.
    ///
    /// # Errors
    ///
    /// As [`Store::channel`].
    pub async fn evaluations(
        &self,
        channel: &ChannelName,
        query: &EvaluationQuery,
    ) -> Result<Vec<Evaluation>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = async {
            let channel = channel::get(&mut transaction, channel).await?;
            evaluation::select(&mut transaction, channel.id, query).await
        }
        .await;
        transaction.finish(result).await
    }

    /// Compares the newest results for the versions of a proposal with those of the versions that it replaces.
    ///
    /// # Errors
    ///
    /// As [`Store::proposal`].
    pub async fn proposal_evaluations(&self, id: u64) -> Result<ProposalEvaluations, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = compare(&mut transaction, id).await;
        transaction.finish(result).await
    }
}

/// Stores a result; `None` if the channel does not know the version.
async fn add(
    transaction: &mut Transaction,
    channel: &ChannelName,
    new: &NewEvaluation,
    actor: &Actor,
) -> Result<Option<Evaluation>, StoreError> {
    let channel = channel::get(transaction, channel).await?;
    if let Some(id) = new.proposal {
        let proposal = proposal::get(transaction, id).await?;
        if proposal.channel != channel.name {
            let found = proposal.channel;
            return Err(StoreError::state(format!("proposal {id} is one for the channel `{found}`")));
        }
    }
    if !evaluation::is_known(transaction, channel.id, &new.prompt, new.digest).await? {
        return Ok(None);
    }
    evaluation::add(transaction, new, &actor.name).await.map(Some)
}

async fn compare(transaction: &mut Transaction, id: u64) -> Result<ProposalEvaluations, StoreError> {
    let proposal = proposal::get(transaction, id).await?;
    let Channel { id: key, policy, .. } = channel::get(transaction, &proposal.channel).await?;
    let changed = evaluation::prompts(transaction, id).await?;
    let difference =
        |prompt: &EvaluatedPrompt| PromptDifference { name: prompt.name.clone(), old: None, new: Some(prompt.new) };
    let differences: Vec<PromptDifference> = changed.iter().take(MAX_PROMPTS).map(difference).collect();
    let numbers = prompt::expect(transaction, key, &differences).await?;
    let mut prompts = Vec::new();
    for (EvaluatedPrompt { name, new, live }, number) in changed.iter().zip(numbers) {
        let mut after = evaluation::of_version(transaction, name, *new).await?;
        let mut before = match live {
            Some(live) => evaluation::of_version(transaction, name, *live).await?,
            None => Default::default(),
        };
        let mut names: Vec<String> =
            policy.evaluations.iter().chain(after.keys()).chain(before.keys()).cloned().collect();
        names.sort_unstable();
        names.dedup();
        let evaluations = names.into_iter().map(|name| {
            let (before, after) = (before.remove(&name), after.remove(&name));
            change(name, before, after)
        });
        let evaluations = evaluations.collect();
        prompts.push(EvaluationsOfPrompt {
            name: name.clone(),
            before: *live,
            after: *new,
            version: number.version,
            evaluations,
        });
    }
    let no_regression = policy.no_regression;
    Ok(ProposalEvaluations { required: policy.evaluations, no_regression, prompts, all: changed.len() })
}

/// Returns two results without their cases, and the cases that differ.
fn change(evaluation: String, mut before: Option<Evaluation>, mut after: Option<Evaluation>) -> ResultChange {
    let take = |side: &mut Option<Evaluation>| side.as_mut().map(|result| std::mem::take(&mut result.cases));
    let cases = match (take(&mut before), take(&mut after)) {
        (Some(old), Some(new)) => changed_cases(&old, &new),
        _ => Vec::new(),
    };
    ResultChange { evaluation, before, after, cases }
}

fn changed_cases(before: &[CaseResult], after: &[CaseResult]) -> Vec<CaseChange> {
    let find = |cases: &[CaseResult], name: &str| cases.iter().find(|case| case.name == name).cloned();
    let is_same = |a: &CaseResult, b: &CaseResult| (a.score, a.passed) == (b.score, b.passed);
    let changed = after.iter().filter_map(|case| {
        let old = find(before, &case.name);
        let differs = old.as_ref().is_none_or(|old| !is_same(old, case));
        differs.then(|| CaseChange { name: case.name.clone(), before: old, after: Some(case.clone()) })
    });
    let removed = before.iter().filter(|case| find(after, &case.name).is_none());
    let removed = removed.map(|case| CaseChange { name: case.name.clone(), before: Some(case.clone()), after: None });
    changed.chain(removed).take(MAX_CASES).collect()
}
