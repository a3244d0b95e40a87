//! The history of guarded rollouts.

use crate::{
    StoreError,
    address::ChannelName,
    database::{Row, Transaction, json, malformed},
    rollout::RolloutState,
    rollout_report::{RolloutChange, RolloutChangeKind},
};

const COLUMNS: &str = "number, kind, is_automatic, percent, changed_by, reason, at, revision, counts";

/// The changes of a rollout that are stored. A publisher cannot fill the store with more.
const MAX_CHANGES: u64 = 1_000;

pub(crate) async fn of(
    transaction: &mut Transaction,
    channel: &ChannelName,
    target: &ChannelName,
    limit: u64,
) -> Result<Vec<RolloutChange>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM ps_rollout_change WHERE channel = $1 AND target = $2 ORDER BY number DESC LIMIT $3"
    );
    let values = vec![channel.as_str().into(), target.as_str().into(), limit.into()];
    transaction.rows(sql, values).await?.iter().map(change).collect()
}

/// Appends the last change of a rollout, under the lock of its row. `before` is its state until then.
pub(crate) async fn append(
    transaction: &mut Transaction,
    state: &RolloutState,
    kind: RolloutChangeKind,
    is_automatic: bool,
    before: &RolloutState,
) -> Result<(), StoreError> {
    let (channel, target) = (state.channel.as_str(), state.target.as_str());
    let sql = "SELECT COALESCE(MAX(number), 0) FROM ps_rollout_change WHERE channel = $1 AND target = $2";
    let row = transaction.row(sql, vec![channel.into(), target.into()]).await?;
    let number = row.map_or(Ok(0), |row| row.number(0))? + 1;
    let sql = format!(
        "INSERT INTO ps_rollout_change (channel, target, {COLUMNS}) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
    );
    let values = vec![
        channel.into(),
        target.into(),
        number.into(),
        kind.as_str().into(),
        i64::from(is_automatic).into(),
        u64::from(state.percent).into(),
        state.changed_by.as_str().into(),
        state.reason.as_str().into(),
        state.changed_at.into(),
        before.progress.revision.into(),
        json(&before.progress.counts)?.into(),
    ];
    transaction.run(sql, values).await?;
    let sql = "DELETE FROM ps_rollout_change WHERE channel = $1 AND target = $2 AND number <= $3";
    transaction.run(sql, vec![channel.into(), target.into(), number.saturating_sub(MAX_CHANGES).into()]).await
}

fn change(row: &Row) -> Result<RolloutChange, StoreError> {
    Ok(RolloutChange {
        number: row.number("number")?,
        kind: RolloutChangeKind::from_name(&row.text("kind")?).ok_or_else(|| malformed("a change of a rollout"))?,
        is_automatic: row.int("is_automatic")? != 0,
        percent: u8::try_from(row.number("percent")?).unwrap_or(100).min(100),
        changed_by: row.text("changed_by")?,
        reason: row.text("reason")?,
        at: row.time("at")?,
        revision: row.number("revision")?,
        counts: row.json("counts")?,
    })
}
