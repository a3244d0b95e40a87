//! The library's row and the channels.

use std::collections::HashMap;

use crate::{
    StoreError,
    address::ChannelName,
    database::{KNOWN_MAJOR, Row, Transaction},
    model::{ChannelInfo, Digest, Epoch, Head, Policy},
};

#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub(crate) id: i64,
    pub(crate) name: ChannelName,
    pub(crate) revision: u64,
    pub(crate) oldest: u64,
    /// The digest of the newest revision; `None` without one, and after a publish by an earlier release.
    pub(crate) digest: Option<Digest>,
    pub(crate) policy: Policy,
}

impl Channel {
    pub(crate) fn info(self, epoch: &Epoch) -> ChannelInfo {
        let head = self.head(epoch.clone());
        ChannelInfo { name: self.name, head, policy: self.policy }
    }

    pub(crate) fn head(&self, epoch: Epoch) -> Head {
        Head { epoch, revision: self.revision, digest: self.digest }
    }
}

const SELECT: &str = "SELECT id, name, revision, oldest, policy, CASE WHEN chained = revision THEN digest END AS digest \
                      FROM ps_channel";

fn channel(row: &Row) -> Result<Channel, StoreError> {
    Ok(Channel {
        id: row.int("id")?,
        name: row.text("name")?.parse()?,
        revision: row.number("revision")?,
        oldest: row.number("oldest")?,
        policy: row.json("policy")?,
        digest: row.optional_digest("digest")?,
    })
}

/// Returns the epoch. Fails if a newer release has changed the schema while this one runs.
pub(crate) async fn epoch(transaction: &mut Transaction) -> Result<Epoch, StoreError> {
    let row = transaction.row("SELECT epoch, major FROM ps_library WHERE id = 1", vec![]).await?;
    let row = row.ok_or_else(|| StoreError::not_found("the row of the library"))?;
    let major = row.number("major")?;
    if major > KNOWN_MAJOR {
        return Err(StoreError::NewerSchema { found: major, known: KNOWN_MAJOR });
    }
    Ok(Epoch(row.text("epoch")?))
}

/// Locks the library's row until the end of the transaction: version numbers of prompts are assigned one by one.
pub(crate) async fn lock_library(transaction: &mut Transaction) -> Result<(), StoreError> {
    let sql = format!("SELECT id FROM ps_library WHERE id = 1{}", transaction.for_update());
    transaction.run(sql, vec![]).await
}

pub(crate) async fn set_epoch(transaction: &mut Transaction, epoch: &Epoch) -> Result<(), StoreError> {
    transaction.run("UPDATE ps_library SET epoch = $1 WHERE id = 1", vec![epoch.0.as_str().into()]).await
}

pub(crate) async fn all(transaction: &mut Transaction) -> Result<Vec<Channel>, StoreError> {
    let rows = transaction.rows(SELECT, vec![]).await?;
    let mut channels = rows.iter().map(channel).collect::<Result<Vec<_>, _>>()?;
    channels.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(channels)
}

/// Returns a channel if it exists.
pub(crate) async fn find(transaction: &mut Transaction, name: &ChannelName) -> Result<Option<Channel>, StoreError> {
    let row = transaction.row(format!("{SELECT} WHERE name = $1"), vec![name.as_str().into()]).await?;
    row.as_ref().map(channel).transpose()
}

pub(crate) async fn get(transaction: &mut Transaction, name: &ChannelName) -> Result<Channel, StoreError> {
    find(transaction, name).await?.ok_or_else(|| StoreError::not_found(format!("the channel `{name}`")))
}

pub(crate) async fn with_id(transaction: &mut Transaction, id: i64) -> Result<Channel, StoreError> {
    let row = transaction.row(format!("{SELECT} WHERE id = $1"), vec![id.into()]).await?;
    channel(&row.ok_or_else(|| StoreError::not_found("the channel that is promoted"))?)
}

/// Returns a channel with its row locked until the end of the transaction, and creates it if it does not exist.
pub(crate) async fn lock(transaction: &mut Transaction, name: &ChannelName) -> Result<Channel, StoreError> {
    let sql = format!("{SELECT} WHERE name = $1{}", transaction.for_update());
    if let Some(row) = transaction.row(sql.clone(), vec![name.as_str().into()]).await? {
        return channel(&row);
    }
    let now = transaction.now();
    let insert = format!(
        "INSERT INTO ps_channel (name, revision, oldest, policy, policy_by, policy_at) \
         VALUES ($1, 0, 0, $2, '', {now}) ON CONFLICT (name) DO NOTHING"
    );
    transaction.run(insert, vec![name.as_str().into(), "{}".into()]).await?;
    let row = transaction.row(sql, vec![name.as_str().into()]).await?;
    channel(&row.ok_or_else(|| StoreError::not_found(format!("the channel `{name}`")))?)
}

pub(crate) async fn set_revision(
    transaction: &mut Transaction,
    id: i64,
    revision: u64,
    digest: Digest,
) -> Result<(), StoreError> {
    let sql = "UPDATE ps_channel SET revision = $1, chained = $1, digest = $2 WHERE id = $3";
    transaction.run(sql, vec![revision.into(), digest.into(), id.into()]).await
}

pub(crate) async fn set_oldest(transaction: &mut Transaction, id: i64, revision: u64) -> Result<(), StoreError> {
    transaction.run("UPDATE ps_channel SET oldest = $1 WHERE id = $2", vec![revision.into(), id.into()]).await
}

pub(crate) async fn names(transaction: &mut Transaction) -> Result<HashMap<i64, ChannelName>, StoreError> {
    Ok(all(transaction).await?.into_iter().map(|channel| (channel.id, channel.name)).collect())
}

pub(crate) async fn set_policy(
    transaction: &mut Transaction,
    id: i64,
    policy: &Policy,
    actor: &str,
) -> Result<(), StoreError> {
    let json = serde_json::to_string(policy).map_err(|error| StoreError::invalid(error.to_string()))?;
    let now = transaction.now();
    let sql = format!("UPDATE ps_channel SET policy = $1, policy_by = $2, policy_at = {now} WHERE id = $3");
    transaction.run(sql, vec![json.into(), actor.into(), id.into()]).await
}
