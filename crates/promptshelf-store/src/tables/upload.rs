//! The contents that each caller has uploaded.

use std::collections::BTreeSet;

use crate::{
    StoreError,
    database::{Transaction, Value, insert, list},
    model::Digest,
};

const CHUNK: usize = 500;

/// Records uploads of a caller: digest and size.
pub(crate) async fn add(
    transaction: &mut Transaction,
    caller: &str,
    contents: impl Iterator<Item = (Digest, u64)> + Send,
) -> Result<(), StoreError> {
    let now = transaction.row(format!("SELECT {}", transaction.now()), vec![]).await?;
    let now = now.map_or(Ok(0), |row| row.int(0))?;
    let rows = contents.map(|(digest, size)| vec![caller.into(), digest.into(), size.into(), now.into()]);
    let tail = "ON CONFLICT (caller, digest) DO UPDATE SET at = excluded.at";
    insert(transaction, "INSERT INTO ps_upload (caller, digest, size, at)", Box::new(rows), tail).await
}

/// Returns those of some contents that a caller has uploaded, or that revisions or proposals of some channels have.
pub(crate) async fn known(
    transaction: &mut Transaction,
    caller: &str,
    channels: &[i64],
    digests: &[Digest],
) -> Result<BTreeSet<Digest>, StoreError> {
    let mut known = BTreeSet::new();
    let shown = list(0, channels.len());
    let of_channels: Vec<Value> = channels.iter().map(|channel| (*channel).into()).collect();
    for chunk in digests.chunks(CHUNK) {
        let wanted: Vec<Value> = chunk.iter().map(|digest| (*digest).into()).collect();
        let sql = format!("SELECT digest FROM ps_upload WHERE caller = $1 AND digest IN {}", list(1, chunk.len()));
        let uploaded = transaction.rows(sql, [vec![caller.into()], wanted.clone()].concat()).await?;
        let mut found = uploaded;
        if !channels.is_empty() {
            let digests = list(channels.len(), chunk.len());
            let values = [of_channels.clone(), wanted].concat();
            for sql in [
                format!("SELECT DISTINCT digest FROM ps_entry WHERE channel IN {shown} AND digest IN {digests}"),
                format!(
                    "SELECT DISTINCT c.after FROM ps_change c JOIN ps_proposal p ON p.id = c.proposal \
                     WHERE p.channel IN {shown} AND c.after IN {digests}"
                ),
            ] {
                found.extend(transaction.rows(sql, values.clone()).await?);
            }
        }
        for row in found {
            known.insert(row.digest(0)?);
        }
    }
    Ok(known)
}

pub(crate) async fn prune(transaction: &mut Transaction) -> Result<(), StoreError> {
    transaction.run("DELETE FROM ps_upload WHERE digest NOT IN (SELECT digest FROM ps_blob)", vec![]).await
}
