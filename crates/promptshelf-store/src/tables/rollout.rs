//! Rows of rollouts.

use crate::{
    StoreError,
    address::ChannelName,
    database::{Row, Transaction, Value, json},
    rollout::{RolloutPhase, RolloutState, time},
};

const COLUMNS: &str = "channel, target, percent, is_stopped, changed_by, reason, changed_at, progress, plan, \
                       applied_at, phase";

pub(crate) async fn all(transaction: &mut Transaction) -> Result<Vec<RolloutState>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM ps_rollout ORDER BY channel, target");
    transaction.rows(sql, vec![]).await?.iter().map(state).collect()
}

pub(crate) async fn find(
    transaction: &mut Transaction,
    channel: &ChannelName,
    target: &ChannelName,
    is_writing: bool,
) -> Result<Option<RolloutState>, StoreError> {
    let lock = if is_writing { transaction.for_update() } else { "" };
    let sql = format!("SELECT {COLUMNS} FROM ps_rollout WHERE channel = $1 AND target = $2{lock}");
    let row = transaction.row(sql, vec![channel.as_str().into(), target.as_str().into()]).await?;
    row.as_ref().map(state).transpose()
}

pub(crate) async fn now(transaction: &mut Transaction) -> Result<i64, StoreError> {
    let sql = format!("SELECT {}", transaction.now());
    transaction.row(sql, vec![]).await?.map_or(Ok(0), |row| row.int(0))
}

pub(crate) async fn write(transaction: &mut Transaction, state: &RolloutState) -> Result<(), StoreError> {
    let sql = format!(
        "INSERT INTO ps_rollout ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
         ON CONFLICT (channel, target) DO UPDATE SET percent = $3, is_stopped = $4, changed_by = $5, reason = $6, \
         changed_at = $7, progress = $8, plan = $9, applied_at = $10, phase = $11"
    );
    transaction.run(sql, values(state)?).await
}

fn values(state: &RolloutState) -> Result<Vec<Value>, StoreError> {
    Ok(vec![
        state.channel.as_str().into(),
        state.target.as_str().into(),
        u64::from(state.percent).into(),
        i64::from(state.phase.is_over()).into(),
        state.changed_by.as_str().into(),
        state.reason.as_str().into(),
        state.changed_at.into(),
        json(&state.progress)?.into(),
        state.plan.as_ref().map(json).transpose()?.as_deref().into(),
        state.applied_at.and_then(|at| u64::try_from(at.as_microsecond()).ok()).into(),
        state.phase.as_str().into(),
    ])
}

fn state(row: &Row) -> Result<RolloutState, StoreError> {
    // An earlier release that stops or continues a rollout leaves the phase as it is.
    let is_over = row.int("is_stopped")? != 0;
    let phase = row.optional_text("phase")?.and_then(|name| RolloutPhase::from_name(&name));
    let fallback = if is_over { RolloutPhase::Stopped } else { RolloutPhase::Running };
    Ok(RolloutState {
        channel: row.text("channel")?.parse()?,
        target: row.text("target")?.parse()?,
        // A row that was edited manually never serves more than all callers.
        percent: u8::try_from(row.number("percent")?).unwrap_or(100).min(100),
        phase: phase.filter(|phase| phase.is_over() == is_over).unwrap_or(fallback),
        changed_by: row.text("changed_by")?,
        reason: row.text("reason")?,
        changed_at: row.time("changed_at")?,
        progress: row.json("progress")?,
        plan: row.optional_text("plan")?.and_then(|plan| serde_json::from_str(&plan).ok()),
        applied_at: row.optional_number("applied_at")?.and_then(|at| i64::try_from(at).ok()).map(time),
    })
}
