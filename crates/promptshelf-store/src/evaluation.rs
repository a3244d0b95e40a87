//! Results of evaluations: a program of the operator judges the messages of a version of a prompt, often with a model, and
//! its scores are stored with the digest of that version.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    StoreError,
    address::ChannelName,
    check::Checker,
    database::{Mode, Transaction},
    input,
    model::{Actor, Digest},
    store::Store,
    tables::{
        channel::{self, Channel},
        evaluation,
        prompt::{self, PromptDifference},
        proposal,
    },
};

/// The result of one case of an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CaseResult {
    /// The name of the case, of 1 to 200 characters.
    pub name: String,
    /// Its score; higher is better.
    #[serde(default)]
    pub score: Option<f64>,
    /// Whether it passed.
    #[serde(default)]
    pub passed: Option<bool>,
    /// The reason for the result; at most 4,096 characters. Plain text.
    #[serde(default)]
    pub reason: String,
}

/// A result to store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewEvaluation {
    /// The name of the evaluation: 1 to 64 lower-case letters, digits, `-`, `_` and `.`.
    pub evaluation: String,
    /// The name of the prompt.
    pub prompt: String,
    /// The digest of the prompt's file and all files that it brings in.
    pub digest: Digest,
    /// The open proposal with this version of the prompt; without it, a revision of the channel has it.
    #[serde(default)]
    pub proposal: Option<u64>,
    /// The scores by name, 1 to 100; higher is better.
    pub scores: BTreeMap<String, f64>,
    /// The least score that passes, by name. Each named score has to exist.
    #[serde(default)]
    pub thresholds: BTreeMap<String, f64>,
    /// The amount by which a score can be lower than that of the served version and is not a regression.
    #[serde(default)]
    pub tolerance: f64,
    /// The results of single cases; at most 1,000, with 256 KiB of text.
    #[serde(default)]
    pub cases: Vec<CaseResult>,
    /// The model that was used.
    #[serde(default)]
    pub model: Option<String>,
    /// The cost, in the currency of the team.
    #[serde(default)]
    pub cost: Option<f64>,
    /// The duration in seconds.
    #[serde(default)]
    pub seconds: f64,
}

/// A stored result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Evaluation {
    /// Its number, unique in the store.
    pub id: u64,
    /// The name of the evaluation.
    pub evaluation: String,
    /// The name of the prompt.
    pub prompt: String,
    /// The digest of the prompt's file and all files that it brings in.
    pub digest: Digest,
    /// Whether every threshold is met.
    pub passed: bool,
    /// The scores by name; higher is better.
    pub scores: BTreeMap<String, f64>,
    /// The least score that passes, by name.
    pub thresholds: BTreeMap<String, f64>,
    /// The amount by which a score can be lower than that of the served version and is not a regression.
    pub tolerance: f64,
    /// The results of single cases. Left out in comparisons, which list the changed ones.
    #[serde(default)]
    pub cases: Vec<CaseResult>,
    /// The model that was used.
    pub model: Option<String>,
    /// The cost, in the currency of the team.
    pub cost: Option<f64>,
    /// The duration in seconds.
    pub seconds: f64,
    /// The name of the person or program that stored it.
    pub author: String,
    /// The time at which it was stored, by the clock of the database.
    pub at: Timestamp,
}

impl Evaluation {
    /// Returns the scores below their thresholds: name, score and threshold.
    pub fn failures(&self) -> impl Iterator<Item = (&str, Option<f64>, f64)> {
        self.thresholds.iter().filter_map(|(name, least)| {
            let score = self.scores.get(name).copied();
            (!score.is_some_and(|score| score >= *least)).then_some((name.as_str(), score, *least))
        })
    }

    /// Returns the scores that are worse than those of another result by more than the tolerance: name, score, and score
    /// of the other one. Without thresholds all scores count, otherwise those that have one. A missing score is worse.
    pub fn regressions(&self, live: &Evaluation) -> Vec<(String, Option<f64>, f64)> {
        let counts = |name: &String| self.thresholds.is_empty() || self.thresholds.contains_key(name);
        let compared = live.scores.iter().filter(|(name, _)| counts(name));
        compared
            .filter_map(|(name, before)| {
                let score = self.scores.get(name).copied();
                // The sum of binary fractions such as 0.8 + 0.1 is inexact.
                let is_as_good = score.is_some_and(|score| score + self.tolerance + 1e-9 >= *before);
                (!is_as_good).then(|| (name.clone(), score, *before))
            })
            .collect()
    }
}

/// Selects results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvaluationQuery {
    /// Those of this prompt.
    pub prompt: Option<String>,
    /// Those of this evaluation.
    pub evaluation: Option<String>,
    /// Those of the version with this digest.
    pub digest: Option<Digest>,
    /// Only results with a smaller number.
    pub before: Option<u64>,
    /// The largest number of results; 0 stands for 100, and at most 500 are returned.
    pub limit: usize,
}

/// The results for a proposal, next to those of the versions that it replaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProposalEvaluations {
    /// The evaluations that the policy of the channel requires.
    pub required: Vec<String>,
    /// Whether the policy refuses results that are worse than those of the served versions.
    pub no_regression: bool,
    /// The prompts that the proposal adds or changes, by name; at most 100.
    pub prompts: Vec<EvaluationsOfPrompt>,
    /// The number of all these prompts.
    pub all: usize,
}

/// The results of a prompt, before and after a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EvaluationsOfPrompt {
    /// The name of the prompt.
    pub name: String,
    /// The version that is replaced; null for a new prompt.
    pub before: Option<Digest>,
    /// The new version.
    pub after: Digest,
    /// The number that the new version has or would get.
    pub version: u64,
    /// By name of the evaluation: those with a result, and those that the policy requires.
    pub evaluations: Vec<ResultChange>,
}

/// The newest results of one evaluation for two versions of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResultChange {
    /// The name of the evaluation.
    pub evaluation: String,
    /// The result of the version that is replaced; null if it has none.
    pub before: Option<Evaluation>,
    /// The result of the new version; null if it has none.
    pub after: Option<Evaluation>,
    /// The cases with another score or verdict, in the order of the new result; at most 100.
    pub cases: Vec<CaseChange>,
}

/// A case with two different results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CaseChange {
    /// The name of the case.
    pub name: String,
    /// The result before; null for a new case.
    pub before: Option<CaseResult>,
    /// The result after; null for a removed case.
    pub after: Option<CaseResult>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EvaluatedPrompt {
    pub(crate) name: String,
    pub(crate) new: Digest,
    /// The version that the channel serves; `None` for a new prompt.
    pub(crate) live: Option<Digest>,
}

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

pub(crate) mod rows {
    //! Results of evaluations, and the prompts of open proposals.

    use std::collections::{BTreeMap, HashMap};

    use serde::{Deserialize, Serialize};

    use crate::{
        StoreError,
        database::{Row, Transaction, Value, insert, json, list, malformed},
        evaluation::{EvaluatedPrompt, Evaluation, EvaluationQuery, NewEvaluation},
        model::Digest,
    };

    /// The number of results without a limit.
    const DEFAULT_LIMIT: usize = 100;
    const MAX_LIMIT: usize = 500;
    const KEPT: usize = 20;
    const CHUNK: usize = 500;

    /// The newest results by name of the evaluation, prompt and digest; without their cases.
    pub(crate) type Newest = HashMap<(String, String, Digest), Evaluation>;

    /// The parts of a result that are stored as one value.
    #[derive(Debug, Default, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Summary {
        passed: bool,
        scores: BTreeMap<String, f64>,
        thresholds: BTreeMap<String, f64>,
        tolerance: f64,
        model: Option<String>,
        cost: Option<f64>,
        seconds: f64,
    }

    const COLUMNS: &str = "e.id, e.name, e.prompt, e.digest, e.summary, e.author, e.at";

    /// Reads the columns of [`COLUMNS`].
    fn evaluation(row: &Row) -> Result<Evaluation, StoreError> {
        let Summary { passed, scores, thresholds, tolerance, model, cost, seconds } = row.json("summary")?;
        Ok(Evaluation {
            id: row.number("id")?,
            evaluation: row.text("name")?,
            prompt: row.text("prompt")?,
            digest: row.digest("digest")?,
            passed,
            scores,
            thresholds,
            tolerance,
            cases: Vec::new(),
            model,
            cost,
            seconds,
            author: row.text("author")?,
            at: row.time("at")?,
        })
    }

    /// Reads the columns of [`COLUMNS`] and the cases after them.
    fn with_cases(row: &Row) -> Result<Evaluation, StoreError> {
        Ok(Evaluation { cases: row.json("cases")?, ..evaluation(row)? })
    }

    pub(crate) async fn add(
        transaction: &mut Transaction,
        new: &NewEvaluation,
        author: &str,
    ) -> Result<Evaluation, StoreError> {
        let passed =
            new.thresholds.iter().all(|(name, least)| new.scores.get(name).is_some_and(|score| score >= least));
        let summary = Summary {
            passed,
            scores: new.scores.clone(),
            thresholds: new.thresholds.clone(),
            tolerance: new.tolerance,
            model: new.model.clone(),
            cost: new.cost,
            seconds: new.seconds,
        };
        let now = transaction.now();
        let sql = format!(
            "INSERT INTO ps_evaluation (name, prompt, digest, summary, cases, author, at) \
             VALUES ($1, $2, $3, $4, $5, $6, {now}) RETURNING id, name, prompt, digest, summary, author, at, cases"
        );
        let key = |version: Digest| -> Vec<Value> {
            vec![new.evaluation.as_str().into(), new.prompt.as_str().into(), version.into()]
        };
        let mut values = key(new.digest);
        values.extend([json(&summary)?.into(), json(&new.cases)?.into(), author.into()]);
        let row = transaction.row(sql, values).await?;
        let added = with_cases(&row.ok_or_else(|| malformed("no number of an evaluation"))?)?;
        let same = "name = $1 AND prompt = $2 AND digest = $3";
        let surplus = format!(
            "DELETE FROM ps_evaluation WHERE {same} AND id NOT IN \
             (SELECT id FROM ps_evaluation WHERE {same} ORDER BY id DESC LIMIT {KEPT})"
        );
        transaction.run(surplus, key(new.digest)).await?;
        Ok(added)
    }

    /// Returns whether a revision of a channel has served a version of a prompt, or one of its open proposals has it.
    pub(crate) async fn is_known(
        transaction: &mut Transaction,
        channel: i64,
        prompt: &str,
        digest: Digest,
    ) -> Result<bool, StoreError> {
        let served = "SELECT l.number FROM ps_live l JOIN ps_prompt_version v ON v.prompt = l.prompt AND v.number = l.number \
                      WHERE l.channel = $1 AND l.prompt = $2 AND v.digest = $3 LIMIT 1";
        let proposed = "SELECT p.id FROM ps_proposal_prompt c JOIN ps_proposal p ON p.id = c.proposal \
                        WHERE p.channel = $1 AND p.state = 'open' AND c.prompt = $2 AND c.digest = $3 LIMIT 1";
        for sql in [served, proposed] {
            if transaction.row(sql, vec![channel.into(), prompt.into(), digest.into()]).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(crate) async fn newest(
        transaction: &mut Transaction,
        evaluations: &[String],
        prompts: &[&str],
    ) -> Result<Newest, StoreError> {
        let mut newest = Newest::new();
        for chunk in prompts.chunks(CHUNK) {
            let mut values: Vec<Value> = evaluations.iter().map(|name| Value::from(name.as_str())).collect();
            values.extend(chunk.iter().map(|prompt| Value::from(*prompt)));
            let sql = format!(
                "SELECT {COLUMNS} FROM ps_evaluation e WHERE e.name IN {} AND e.prompt IN {} ORDER BY e.id",
                list(0, evaluations.len()),
                list(evaluations.len(), chunk.len())
            );
            for row in transaction.rows(sql, values).await? {
                let found = evaluation(&row)?;
                newest.insert((found.evaluation.clone(), found.prompt.clone(), found.digest), found);
            }
        }
        Ok(newest)
    }

    /// Returns the newest results for a version of a prompt with their cases, by name of the evaluation.
    pub(crate) async fn of_version(
        transaction: &mut Transaction,
        prompt: &str,
        digest: Digest,
    ) -> Result<BTreeMap<String, Evaluation>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS}, e.cases FROM ps_evaluation e WHERE e.id IN \
             (SELECT MAX(id) FROM ps_evaluation WHERE prompt = $1 AND digest = $2 GROUP BY name)"
        );
        let rows = transaction.rows(sql, vec![prompt.into(), digest.into()]).await?;
        rows.iter().map(|row| with_cases(row).map(|found| (found.evaluation.clone(), found))).collect()
    }

    /// Returns selected results of versions that a channel serves, has served or has proposed, the newest first.
    pub(crate) async fn select(
        transaction: &mut Transaction,
        channel: i64,
        query: &EvaluationQuery,
    ) -> Result<Vec<Evaluation>, StoreError> {
        let mut values: Vec<Value> = vec![channel.into()];
        let mut sql = format!(
            "SELECT {COLUMNS}, e.cases FROM ps_evaluation e WHERE (EXISTS (SELECT 1 FROM ps_live l \
             JOIN ps_prompt_version v ON v.prompt = l.prompt AND v.number = l.number \
             WHERE l.channel = $1 AND l.prompt = e.prompt AND v.digest = e.digest) \
             OR EXISTS (SELECT 1 FROM ps_proposal_prompt c JOIN ps_proposal p ON p.id = c.proposal \
             WHERE p.channel = $1 AND c.prompt = e.prompt AND c.digest = e.digest))"
        );
        let mut add = |text: &str, value: Option<Value>| {
            if let Some(value) = value {
                values.push(value);
                sql.push_str(&format!(" AND {text} ${}", values.len()));
            }
        };
        add("e.prompt =", query.prompt.as_deref().map(Value::from));
        add("e.name =", query.evaluation.as_deref().map(Value::from));
        add("e.digest =", query.digest.map(Value::from));
        add("e.id <", query.before.map(Value::from));
        let limit = if query.limit == 0 { DEFAULT_LIMIT } else { query.limit.min(MAX_LIMIT) };
        sql.push_str(&format!(" ORDER BY e.id DESC LIMIT {limit}"));
        transaction.rows(sql, values).await?.iter().map(with_cases).collect()
    }

    /// Stores the prompts that a proposal adds or changes in place of earlier ones.
    pub(crate) async fn set_prompts(
        transaction: &mut Transaction,
        proposal: u64,
        prompts: &[EvaluatedPrompt],
    ) -> Result<(), StoreError> {
        transaction.run("DELETE FROM ps_proposal_prompt WHERE proposal = $1", vec![proposal.into()]).await?;
        let rows = prompts.iter().map(|prompt| vec![proposal.into(), prompt.name.as_str().into(), prompt.new.into()]);
        insert(transaction, "INSERT INTO ps_proposal_prompt (proposal, prompt, digest)", Box::new(rows), "").await
    }

    /// Returns the prompts that a proposal adds or changes, by name, with the versions that it replaces or has replaced.
    pub(crate) async fn prompts(
        transaction: &mut Transaction,
        proposal: u64,
    ) -> Result<Vec<EvaluatedPrompt>, StoreError> {
        let sql = "SELECT c.prompt, c.digest, v.digest AS live FROM ps_proposal_prompt c \
                   JOIN ps_proposal p ON p.id = c.proposal \
                   LEFT JOIN ps_live l ON l.channel = p.channel AND l.prompt = c.prompt \
                   AND ((p.revision IS NULL AND l.until IS NULL) OR l.until = p.revision) \
                   LEFT JOIN ps_prompt_version v ON v.prompt = l.prompt AND v.number = l.number WHERE c.proposal = $1";
        let rows = transaction.rows(sql, vec![proposal.into()]).await?;
        let prompt = |row: &Row| {
            Ok(EvaluatedPrompt {
                name: row.text("prompt")?,
                new: row.digest("digest")?,
                live: row.optional_digest("live")?,
            })
        };
        let mut prompts = rows.iter().map(prompt).collect::<Result<Vec<_>, StoreError>>()?;
        prompts.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(prompts)
    }

    /// Deletes results that are older, of versions that no channel serves and no open proposal has.
    pub(crate) async fn prune(transaction: &mut Transaction, seconds: u64) -> Result<(), StoreError> {
        let now = transaction.now();
        let sql = format!(
            "DELETE FROM ps_evaluation WHERE at <= {now} - $1 AND NOT EXISTS (SELECT 1 FROM ps_live l \
             JOIN ps_prompt_version v ON v.prompt = l.prompt AND v.number = l.number \
             WHERE l.until IS NULL AND l.prompt = ps_evaluation.prompt AND v.digest = ps_evaluation.digest) \
             AND NOT EXISTS (SELECT 1 FROM ps_proposal_prompt c JOIN ps_proposal p ON p.id = c.proposal \
             WHERE p.state = 'open' AND c.prompt = ps_evaluation.prompt AND c.digest = ps_evaluation.digest)"
        );
        transaction.run(sql, vec![seconds.saturating_mul(1_000_000).into()]).await
    }
}
