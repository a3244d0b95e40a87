//! Revisions: the history of channels.

use jiff::Timestamp;

use super::prompt;
use crate::{
    StoreError,
    check::CheckSummary,
    database::{Row, Transaction, Value, json, malformed},
    model::{HistoryQuery, Policy, Proposal, Revision, RevisionKind},
};

/// The number of revisions without a limit.
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1_000;

const SELECT: &str = "SELECT number, kind, author, message, at, proposal, approved_by, emergency, checks, policy, \
     digest, clock_ahead FROM ps_revision";

#[derive(Debug)]
pub(crate) struct NewRevision<'a> {
    pub(crate) channel: i64,
    pub(crate) number: u64,
    pub(crate) proposal: &'a Proposal,
    pub(crate) approved_by: &'a [String],
    pub(crate) emergency: Option<&'a str>,
    pub(crate) checks: &'a CheckSummary,
    pub(crate) policy: &'a Policy,
}

/// The most by which the clock may be behind the last revision, in microseconds. Beyond it the clock was wrong then: it
/// must not set the times of all later revisions.
const MAX_AHEAD: i64 = 10 * 60 * 1_000_000;

/// Inserts a revision. Its time is not before that of the revision before it, even if the clock was set back by minutes. If
/// that one is further ahead, its time is not taken over, and the difference is noted.
pub(crate) async fn add(transaction: &mut Transaction, new: &NewRevision<'_>) -> Result<(), StoreError> {
    let NewRevision { channel, number, proposal, approved_by, emergency, checks, policy } = *new;
    let now = transaction.now();
    let last = "SELECT at FROM ps_revision WHERE channel = $1 AND number = $2";
    let last = transaction.row(last, vec![channel.into(), (number - 1).into()]).await?;
    let last = last.map_or(Ok(0), |row| row.int(0))?;
    let sql = format!(
        "INSERT INTO ps_revision \
         (channel, number, kind, author, message, proposal, approved_by, emergency, checks, policy, at, \
         clock_ahead) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, \
         CASE WHEN $11 > {now} AND $11 - {now} <= {MAX_AHEAD} THEN $11 ELSE {now} END, \
         CASE WHEN $11 - {now} > {MAX_AHEAD} THEN ($11 - {now}) / 1000000 ELSE NULL END)"
    );
    let values = vec![
        channel.into(),
        number.into(),
        proposal.kind.as_str().into(),
        proposal.author.as_str().into(),
        proposal.message.as_str().into(),
        proposal.id.into(),
        json(&approved_by)?.into(),
        emergency.into(),
        json(checks)?.into(),
        json(policy)?.into(),
        last.into(),
    ];
    transaction.run(sql, values).await
}

pub(crate) async fn select(
    transaction: &mut Transaction,
    channel: i64,
    query: &HistoryQuery,
) -> Result<Vec<Revision>, StoreError> {
    let mut values: Vec<Value> = vec![channel.into()];
    let mut condition = "channel = $1".to_owned();
    let mut add = |text: &str, value: Value| {
        values.push(value);
        condition.push_str(" AND ");
        condition.push_str(&text.replace("{}", &format!("${}", values.len())));
    };
    if let Some(prompt) = &query.prompt {
        let changed = "(number IN (SELECT since FROM ps_live WHERE channel = $1 AND prompt = {}) \
                       OR number IN (SELECT until FROM ps_live WHERE channel = $1 AND prompt = {}))";
        add(changed, prompt.as_str().into());
    }
    if let Some(before) = query.before {
        add("number < {}", before.into());
    }
    if let Some(at) = query.at {
        add("at <= {}", at.into());
    }
    let limit = match (query.at, query.limit) {
        (Some(_), _) => 1,
        (None, 0) => DEFAULT_LIMIT,
        (None, limit) => limit.min(MAX_LIMIT),
    };
    read(transaction, channel, &format!("{SELECT} WHERE {condition} ORDER BY number DESC LIMIT {limit}"), values).await
}

pub(crate) async fn get(
    transaction: &mut Transaction,
    channel: i64,
    number: u64,
) -> Result<Option<Revision>, StoreError> {
    let sql = format!("{SELECT} WHERE channel = $1 AND number = $2");
    Ok(read(transaction, channel, &sql, vec![channel.into(), number.into()]).await?.pop())
}

async fn read(
    transaction: &mut Transaction,
    channel: i64,
    sql: &str,
    values: Vec<Value>,
) -> Result<Vec<Revision>, StoreError> {
    let rows = transaction.rows(sql.to_owned(), values).await?;
    let mut revisions = rows.iter().map(revision).collect::<Result<Vec<_>, _>>()?;
    let numbers: Vec<u64> = revisions.iter().map(|revision| revision.number).collect();
    let mut prompts = prompt::changes(transaction, channel, &numbers).await?;
    for revision in &mut revisions {
        revision.prompts = prompts.remove(&revision.number).unwrap_or_default();
    }
    Ok(revisions)
}

fn revision(row: &Row) -> Result<Revision, StoreError> {
    Ok(Revision {
        number: row.number("number")?,
        kind: RevisionKind::from_name(&row.text("kind")?).ok_or_else(|| malformed("an unknown kind"))?,
        author: row.text("author")?,
        message: row.text("message")?,
        at: row.time("at")?,
        proposal: row.number("proposal")?,
        approved_by: row.json("approved_by")?,
        emergency: row.optional_text("emergency")?,
        checks: row.json("checks")?,
        policy: row.optional_json("policy")?,
        digest: row.optional_digest("digest")?,
        clock_ahead: row.optional_number("clock_ahead")?,
        prompts: Vec::new(),
    })
}

/// Returns the number of the revision that was the newest one some seconds ago.
pub(crate) async fn newest_before(
    transaction: &mut Transaction,
    channel: i64,
    seconds: u64,
) -> Result<Option<(u64, Timestamp)>, StoreError> {
    let now = transaction.now();
    let sql = format!(
        "SELECT number, at FROM ps_revision WHERE channel = $1 AND at <= {now} - $2 ORDER BY number DESC LIMIT 1"
    );
    let row = transaction.row(sql, vec![channel.into(), seconds.saturating_mul(1_000_000).into()]).await?;
    row.map(|row| Ok((row.number("number")?, row.time("at")?))).transpose()
}

/// Deletes the revisions before a number, and the closed proposals that belong to that time. Returns the number of
/// revisions.
pub(crate) async fn prune(transaction: &mut Transaction, channel: i64, oldest: u64) -> Result<u64, StoreError> {
    let values: Vec<Value> = vec![channel.into(), oldest.into()];
    let closed = "SELECT p.id FROM ps_proposal p WHERE p.channel = $1 AND p.state <> 'open' AND \
                  COALESCE(p.revision, p.base + 1) < $2";
    for table in ["ps_change", "ps_review"] {
        let sql = format!("DELETE FROM {table} WHERE proposal IN ({closed})");
        transaction.run(sql, values.clone()).await?;
    }
    let sql = "DELETE FROM ps_proposal WHERE channel = $1 AND state <> 'open' AND COALESCE(revision, base + 1) < $2";
    transaction.run(sql, values.clone()).await?;
    let sql = "DELETE FROM ps_revision WHERE channel = $1 AND number < $2 RETURNING number";
    Ok(transaction.rows(sql, values).await?.len() as u64)
}
