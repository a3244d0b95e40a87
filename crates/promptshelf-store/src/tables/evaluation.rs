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
    let passed = new.thresholds.iter().all(|(name, least)| new.scores.get(name).is_some_and(|score| score >= least));
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
pub(crate) async fn prompts(transaction: &mut Transaction, proposal: u64) -> Result<Vec<EvaluatedPrompt>, StoreError> {
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
