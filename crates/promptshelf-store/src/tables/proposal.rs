//! Proposals, their changes and reviews.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

use super::{
    channel::{self, Channel},
    entry::Replacement,
    evaluation,
};
use crate::{
    StoreError,
    address::ChannelName,
    check::{CheckReport, CheckSummary},
    database::{Row, Transaction, Value, insert, json, list, malformed},
    digest::Parts,
    effect::Effect,
    gate,
    model::{
        Digest, FileChange, NewReview, Policy, Proposal, ProposalQuery, ProposalSource, ProposalState, ProposedPolicy,
        Review, RevisionKind, Verdict,
    },
    policy, rollouts, tokens,
};

/// The number of proposals without a limit.
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1_000;

#[derive(Debug)]
pub(crate) struct NewProposal<'a> {
    pub(crate) channel: i64,
    pub(crate) base: u64,
    pub(crate) kind: RevisionKind,
    pub(crate) message: &'a str,
    pub(crate) author: &'a str,
    pub(crate) report: &'a CheckReport,
    pub(crate) effects: &'a [Effect],
    pub(crate) source: Option<Source>,
    pub(crate) changes: &'a [Replacement],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) channel: i64,
    pub(crate) revision: u64,
    pub(crate) is_whole: bool,
}

/// Returns the digest of what a review is about: kind, message and changes, which are sorted by path. It is stored, and
/// never computed again: proposals of older stores have one of the changes alone.
pub(crate) fn digest(kind: RevisionKind, message: &str, changes: &[Replacement]) -> Digest {
    let mut parts = Parts::default();
    parts.add(kind.as_str().as_bytes());
    parts.add(message.as_bytes());
    for change in changes {
        parts.add(change.path.as_bytes());
        parts.add(change.before.as_ref().map_or(&[], |digest| digest.bytes()));
        parts.add(change.after.as_ref().map_or(&[], |(digest, _)| digest.bytes()));
    }
    parts.digest()
}

/// Returns what a proposal promotes.
pub(crate) async fn source(transaction: &mut Transaction, id: u64) -> Result<Option<Source>, StoreError> {
    let sql = "SELECT source, source_revision, source_whole FROM ps_proposal WHERE id = $1 AND source IS NOT NULL";
    let row = transaction.row(sql, vec![id.into()]).await?;
    row.map(|row| {
        let (channel, revision) = (row.int("source")?, row.number("source_revision")?);
        Ok(Source { channel, revision, is_whole: row.int("source_whole")? == 1 })
    })
    .transpose()
}

/// Returns the channel that a proposal promotes as a whole.
pub(crate) async fn whole_source(transaction: &mut Transaction, id: u64) -> Result<Option<ChannelName>, StoreError> {
    let sql =
        "SELECT c.name FROM ps_proposal p JOIN ps_channel c ON c.id = p.source WHERE p.id = $1 AND p.source_whole = 1";
    let row = transaction.row(sql, vec![id.into()]).await?;
    row.map(|row| row.text("name")?.parse()).transpose()
}

pub(crate) async fn open(transaction: &mut Transaction, new: &NewProposal<'_>) -> Result<(u64, Timestamp), StoreError> {
    let now = transaction.now();
    let sql = format!(
        "INSERT INTO ps_proposal (channel, base, kind, message, author, state, digest, checks, findings, effects, \
         source, source_revision, source_whole, at) \
         VALUES ($1, $2, $3, $4, $5, 'open', $6, $7, $8, $9, $10, $11, $12, {now}) RETURNING id, at"
    );
    let values = vec![
        new.channel.into(),
        new.base.into(),
        new.kind.as_str().into(),
        new.message.into(),
        new.author.into(),
        digest(new.kind, new.message, new.changes).into(),
        json(&new.report.summary)?.into(),
        json(&new.report.findings)?.into(),
        json(&new.effects)?.into(),
        new.source.map_or(Value::Int(None), |source| source.channel.into()),
        new.source.map(|source| source.revision).into(),
        new.source.map(|source| u64::from(source.is_whole)).into(),
    ];
    let row = transaction.row(sql, values).await?;
    let row = row.ok_or_else(|| malformed("no number of a proposal"))?;
    let (id, at) = (row.number("id")?, row.time("at")?);
    write_changes(transaction, id, new.changes).await?;
    Ok((id, at))
}

pub(crate) async fn open_policy(
    transaction: &mut Transaction,
    channel: &Channel,
    proposed: &ProposedPolicy,
    message: &str,
    author: &str,
) -> Result<u64, StoreError> {
    let now = transaction.now();
    let sql = format!(
        "INSERT INTO ps_proposal (channel, base, kind, message, author, state, digest, checks, policy, at) \
         VALUES ($1, $2, 'policy', $3, $4, 'open', $5, $6, $7, {now}) RETURNING id"
    );
    let policy = json(proposed)?;
    let values = vec![
        channel.id.into(),
        channel.revision.into(),
        message.into(),
        author.into(),
        Digest::of(policy.as_bytes()).into(),
        json(&CheckSummary::default())?.into(),
        policy.into(),
    ];
    transaction.row(sql, values).await?.ok_or_else(|| malformed("no number of a proposal"))?.number("id")
}

/// Returns the revision of a channel that was promoted to another one, with the numbers and changes of later promotions of
/// single prompts. `None` if everything was never promoted.
pub(crate) async fn last_promotion(
    transaction: &mut Transaction,
    target: i64,
    source: i64,
) -> Result<Option<(u64, Vec<Replacement>)>, StoreError> {
    let sql = "SELECT revision, source_revision FROM ps_proposal WHERE channel = $1 AND source = $2 \
               AND source_whole = 1 AND state = 'published' ORDER BY revision DESC LIMIT 1";
    let Some(row) = transaction.row(sql, vec![target.into(), source.into()]).await? else { return Ok(None) };
    let (revision, promoted) = (row.number("revision")?, row.number("source_revision")?);
    let sql = "SELECT id FROM ps_proposal WHERE channel = $1 AND source = $2 AND source_whole = 0 \
               AND state = 'published' AND revision > $3 ORDER BY revision";
    let rows = transaction.rows(sql, vec![target.into(), source.into(), revision.into()]).await?;
    let mut later = Vec::new();
    for row in rows {
        later.extend(changes(transaction, row.number("id")?).await?);
    }
    Ok(Some((promoted, later)))
}

pub(crate) async fn replace(transaction: &mut Transaction, id: u64, new: &NewProposal<'_>) -> Result<(), StoreError> {
    let now = transaction.now();
    let sql = format!(
        "UPDATE ps_proposal SET base = $1, kind = $2, message = $3, digest = $4, checks = $5, findings = $6, \
         effects = $7, source = NULL, source_revision = NULL, source_whole = NULL, at = {now} WHERE id = $8"
    );
    let values = vec![
        new.base.into(),
        new.kind.as_str().into(),
        new.message.into(),
        digest(new.kind, new.message, new.changes).into(),
        json(&new.report.summary)?.into(),
        json(&new.report.findings)?.into(),
        json(&new.effects)?.into(),
        id.into(),
    ];
    transaction.run(sql, values).await?;
    transaction.run("DELETE FROM ps_change WHERE proposal = $1", vec![id.into()]).await?;
    write_changes(transaction, id, new.changes).await
}

async fn write_changes(transaction: &mut Transaction, id: u64, changes: &[Replacement]) -> Result<(), StoreError> {
    let rows = changes.iter().map(|it| {
        let (after, size) = it.after.map_or((None, 0), |(digest, size)| (Some(digest), size));
        vec![id.into(), it.path.as_str().into(), it.before.into(), after.into(), size.into()]
    });
    insert(transaction, "INSERT INTO ps_change (proposal, path, before, after, size)", Box::new(rows), "").await
}

pub(crate) async fn set_checks(
    transaction: &mut Transaction,
    id: u64,
    report: &CheckReport,
    effects: &[Effect],
) -> Result<(), StoreError> {
    let sql = "UPDATE ps_proposal SET checks = $1, findings = $2, effects = $3 WHERE id = $4";
    let values = vec![json(&report.summary)?.into(), json(&report.findings)?.into(), json(&effects)?.into(), id.into()];
    transaction.run(sql, values).await
}

/// Sets the state, and the revision of a published proposal. Returns the time.
pub(crate) async fn set_state(
    transaction: &mut Transaction,
    id: u64,
    state: ProposalState,
    revision: Option<u64>,
) -> Result<Timestamp, StoreError> {
    let now = transaction.now();
    let sql = format!("UPDATE ps_proposal SET state = $1, revision = $2, at = {now} WHERE id = $3 RETURNING at");
    let row = transaction.row(sql, vec![state.as_str().into(), revision.into(), id.into()]).await?;
    row.ok_or_else(|| StoreError::not_found(format!("proposal {id}")))?.time("at")
}

pub(crate) async fn add_review(
    transaction: &mut Transaction,
    proposal: &Proposal,
    reviewer: &str,
    new: &NewReview,
) -> Result<(), StoreError> {
    let now = transaction.now();
    let sql = format!(
        "INSERT INTO ps_review (proposal, digest, reviewer, verdict, note, confirmed, at) \
         VALUES ($1, $2, $3, $4, $5, $6, {now})"
    );
    let NewReview { verdict, digest, note, confirmed } = new;
    let effect = |name: &String| proposal.effects.iter().find(|effect| effect.name == *name);
    let stored = |name: &String| effect(name).map_or_else(|| name.clone(), confirmation);
    let confirmed: Vec<String> = confirmed.iter().map(stored).collect();
    let values = vec![
        proposal.id.into(),
        (*digest).into(),
        reviewer.into(),
        verdict.as_str().into(),
        note.as_str().into(),
        json(&confirmed)?.into(),
    ];
    transaction.run(sql, values).await
}

/// Ends the approvals of all open proposals of a channel, whose row is locked. A review locks its proposal, so that it either
/// sees the new policy, or is found here.
pub(crate) async fn lapse_approvals(transaction: &mut Transaction, channel: i64) -> Result<(), StoreError> {
    let is_open = "channel = $1 AND state = 'open'";
    let sql = format!("SELECT id FROM ps_proposal WHERE {is_open} ORDER BY id{}", transaction.for_update());
    transaction.rows(sql, vec![channel.into()]).await?;
    let sql = format!(
        "UPDATE ps_review SET lapsed = 1 WHERE verdict = 'approve' AND lapsed = 0 \
         AND proposal IN (SELECT id FROM ps_proposal WHERE {is_open})"
    );
    transaction.run(sql, vec![channel.into()]).await
}

/// The stored form of a confirmation: the name, and the digest of the whole effect.
fn confirmation(effect: &Effect) -> String {
    let Effect { impact, name, text, prompt, calls } = effect;
    format!("{name}\n{}", Digest::of(format!("{impact:?} {text} {prompt:?} {calls:?}").as_bytes()))
}

/// Reduces confirmations to the names of the effects. Those of effects that have changed since are none, and older stores
/// do not tell.
fn keep_confirmed(proposal: &mut Proposal) {
    let present: HashSet<String> = proposal.effects.iter().map(confirmation).collect();
    let is_open = proposal.state == ProposalState::Open;
    for confirmed in proposal.reviews.iter_mut().map(|review| &mut review.confirmed) {
        confirmed.retain(|stored| present.contains(stored) || !(is_open || stored.contains('\n')));
        for stored in confirmed {
            stored.truncate(stored.find('\n').unwrap_or(stored.len()));
        }
    }
}

pub(crate) async fn changes(transaction: &mut Transaction, id: u64) -> Result<Vec<Replacement>, StoreError> {
    let sql = "SELECT path, before, after, size FROM ps_change WHERE proposal = $1";
    let rows = transaction.rows(sql, vec![id.into()]).await?;
    let change = |row: &Row| {
        let (after, size) = (row.optional_digest("after")?, row.number("size")?);
        let after = after.map(|digest| (digest, size));
        Ok(Replacement { path: row.text("path")?, before: row.optional_digest("before")?, after })
    };
    let mut changes = rows.iter().map(change).collect::<Result<Vec<_>, StoreError>>()?;
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

pub(crate) async fn open_digests(transaction: &mut Transaction) -> Result<Vec<Digest>, StoreError> {
    let sql = "SELECT c.before, c.after FROM ps_change c JOIN ps_proposal p ON p.id = c.proposal \
               WHERE p.state = 'open'";
    let mut digests = Vec::new();
    for row in transaction.rows(sql, vec![]).await? {
        digests.extend(row.optional_digest("before")?);
        digests.extend(row.optional_digest("after")?);
    }
    Ok(digests)
}

/// Returns a proposal with its row locked until the end of the transaction.
pub(crate) async fn lock(transaction: &mut Transaction, id: u64) -> Result<Proposal, StoreError> {
    let sql = format!("SELECT id FROM ps_proposal WHERE id = $1{}", transaction.for_update());
    transaction.run(sql, vec![id.into()]).await?;
    get(transaction, id).await
}

pub(crate) async fn get(transaction: &mut Transaction, id: u64) -> Result<Proposal, StoreError> {
    let found = select(transaction, "p.id = $1", vec![id.into()]).await?;
    let missing = || StoreError::not_found(format!("proposal {id}"));
    let mut proposal = found.into_iter().next().ok_or_else(missing)?;
    let row = transaction.row("SELECT findings FROM ps_proposal WHERE id = $1", vec![id.into()]).await?;
    proposal.findings = row.ok_or_else(missing)?.json("findings")?;
    Ok(proposal)
}

/// Returns selected proposals, the newest first. `channel` is the key of the query's channel.
pub(crate) async fn all(
    transaction: &mut Transaction,
    channel: Option<i64>,
    query: &ProposalQuery,
) -> Result<Vec<Proposal>, StoreError> {
    let mut values: Vec<Value> = Vec::new();
    let mut condition = "1 = 1".to_owned();
    let mut add = |text: &str, value: Value| {
        values.push(value);
        condition.push_str(&format!(" AND {text} ${}", values.len()));
    };
    if let Some(channel) = channel {
        add("p.channel =", channel.into());
    }
    if let Some(state) = query.state {
        add("p.state =", state.as_str().into());
    }
    if let Some(before) = query.before {
        add("p.id <", before.into());
    }
    let limit = if query.limit == 0 { DEFAULT_LIMIT } else { query.limit.min(MAX_LIMIT) };
    select(transaction, &format!("{condition} ORDER BY p.id DESC LIMIT {limit}"), values).await
}

async fn select(
    transaction: &mut Transaction,
    condition: &str,
    values: Vec<Value>,
) -> Result<Vec<Proposal>, StoreError> {
    let sql = format!(
        "SELECT p.id, c.name, p.base, p.kind, p.message, p.author, p.state, p.digest, p.at, p.checks, p.revision, \
         c.policy, p.effects, p.policy AS proposed, p.source, p.source_revision, p.source_whole FROM ps_proposal p JOIN ps_channel c ON c.id = p.channel WHERE {condition}"
    );
    let rows = transaction.rows(sql, values).await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let names = channel::names(transaction).await?;
    let mut found = rows.iter().map(|row| proposal(row, &names)).collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<Value> = found.iter().map(|(proposal, _)| proposal.id.into()).collect();
    let mut changes = grouped(transaction, "SELECT proposal, path, before, after FROM ps_change", &ids, |row| {
        Ok(FileChange {
            path: row.text("path")?,
            before: row.optional_digest("before")?,
            after: row.optional_digest("after")?,
        })
    })
    .await?;
    let reviews = "SELECT proposal, reviewer, verdict, digest, note, at, id, confirmed, lapsed FROM ps_review";
    let mut reviews = grouped(transaction, reviews, &ids, |row| {
        let verdict = Verdict::from_name(&row.text("verdict")?).ok_or_else(|| malformed("an unknown verdict"))?;
        let (digest, note, at) = (row.digest("digest")?, row.text("note")?, row.time("at")?);
        let (reviewer, confirmed, lapsed) = (row.text("reviewer")?, row.json("confirmed")?, row.int("lapsed")? != 0);
        Ok((row.int("id")?, Review { reviewer, verdict, digest, note, confirmed, lapsed, at }))
    })
    .await?;
    let outdated = "SELECT c.proposal, c.path FROM ps_change c JOIN ps_proposal p ON p.id = c.proposal \
                    LEFT JOIN ps_entry e ON e.channel = p.channel AND e.path = c.path AND e.until IS NULL";
    let condition = "p.state = 'open' AND e.digest IS DISTINCT FROM c.before AND e.digest IS DISTINCT FROM c.after";
    let mut outdated = of(transaction, outdated, "c.proposal", &ids, Some(condition), |row| row.text("path")).await?;
    let authors = found.iter().map(|(proposal, _)| proposal.author.clone());
    let creators = tokens::creators(transaction, authors.collect()).await?;
    for (proposal, policy) in &mut found {
        proposal.creators = tokens::behind(&creators, &proposal.author);
        proposal.changes = changes.remove(&proposal.id).unwrap_or_default();
        proposal.changes.sort_by(|a, b| a.path.cmp(&b.path));
        let mut all = reviews.remove(&proposal.id).unwrap_or_default();
        all.sort_by_key(|(id, _)| *id);
        proposal.reviews = all.into_iter().map(|(_, review)| review).collect();
        keep_confirmed(proposal);
        let mut outdated = outdated.remove(&proposal.id).unwrap_or_default();
        outdated.sort_unstable();
        let mut reasons = policy::lacks(policy, proposal, &outdated);
        if proposal.state == ProposalState::Open && !policy.evaluations.is_empty() {
            let prompts = evaluation::prompts(transaction, proposal.id).await?;
            reasons.extend(gate::lacks(transaction, policy, proposal, &prompts).await?);
        }
        reasons.extend(rollouts::stopped_since(transaction, proposal).await?);
        proposal.set_reasons(reasons);
        proposal.warnings = policy::warnings(proposal);
    }
    Ok(found.into_iter().map(|(proposal, _)| proposal).collect())
}

async fn grouped<T>(
    transaction: &mut Transaction,
    select: &str,
    ids: &[Value],
    read: fn(&Row) -> Result<T, StoreError>,
) -> Result<HashMap<u64, Vec<T>>, StoreError> {
    of(transaction, select, "proposal", ids, None, read).await
}

/// Reads rows that belong to proposals; the first column is the number of the proposal.
async fn of<T>(
    transaction: &mut Transaction,
    select: &str,
    column: &str,
    ids: &[Value],
    condition: Option<&str>,
    read: fn(&Row) -> Result<T, StoreError>,
) -> Result<HashMap<u64, Vec<T>>, StoreError> {
    let condition = condition.unwrap_or("1 = 1");
    let sql = format!("{select} WHERE {column} IN {} AND {condition}", list(0, ids.len()));
    let mut groups: HashMap<u64, Vec<T>> = HashMap::new();
    for row in transaction.rows(sql, ids.to_vec()).await? {
        groups.entry(row.number(0)?).or_default().push(read(&row)?);
    }
    Ok(groups)
}

fn proposal(row: &Row, names: &HashMap<i64, ChannelName>) -> Result<(Proposal, Policy), StoreError> {
    let source = match (
        row.optional_number("source")?,
        row.optional_number("source_revision")?,
        row.optional_number("source_whole")?,
    ) {
        (Some(channel), Some(revision), Some(is_whole)) => {
            let channel = i64::try_from(channel).ok().and_then(|channel| names.get(&channel));
            let channel = channel.ok_or_else(|| malformed("an unknown channel"))?.clone();
            Some(ProposalSource { channel, revision, is_whole: is_whole != 0 })
        }
        _ => None,
    };
    let proposal = Proposal {
        id: row.number("id")?,
        channel: row.text("name")?.parse()?,
        base: row.number("base")?,
        kind: RevisionKind::from_name(&row.text("kind")?).ok_or_else(|| malformed("an unknown kind"))?,
        message: row.text("message")?,
        author: row.text("author")?,
        creators: Vec::new(),
        state: ProposalState::from_name(&row.text("state")?).ok_or_else(|| malformed("an unknown state"))?,
        digest: row.digest("digest")?,
        at: row.time("at")?,
        changes: Vec::new(),
        reviews: Vec::new(),
        checks: row.json("checks")?,
        findings: Vec::new(),
        effects: row.json("effects")?,
        policy: row.optional_json::<ProposedPolicy>("proposed")?,
        source,
        warnings: Vec::new(),
        revision: row.optional_number("revision")?,
        lacks: Vec::new(),
        reasons: Vec::new(),
    };
    Ok((proposal, row.json("policy")?))
}
