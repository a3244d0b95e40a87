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
