//! The contents that each caller has uploaded.

use std::{collections::BTreeSet, sync::Arc};

use super::blob::Contents;
use crate::{
    StoreError,
    database::{Transaction, Value, insert, list},
    model::Digest,
};

const CHUNK: usize = 500;

/// The bytes of a changed file besides its path: two digests and a size.
const CHANGE: u64 = 72;

/// The time for which what a caller has stored counts, in microseconds.
const DAY: u64 = 24 * 60 * 60 * 1_000_000;

pub(crate) async fn add(transaction: &mut Transaction, caller: &str, contents: &Contents) -> Result<(), StoreError> {
    let now = transaction.row(format!("SELECT {}", transaction.now()), vec![]).await?;
    let now = now.map_or(Ok(0), |row| row.int(0))?;
    let row = |(digest, bytes): (&Digest, &Arc<[u8]>)| {
        vec![caller.into(), (*digest).into(), (bytes.len() as u64).into(), now.into()]
    };
    let rows = contents.iter().map(row);
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

/// Returns the bytes that a caller has stored in the last day, and that no revision has: contents, paths and messages.
/// Contents that have begun to arrive count with their whole size.
pub(crate) async fn unpublished(transaction: &mut Transaction, caller: &str) -> Result<u64, StoreError> {
    let now = transaction.now();
    let recent = format!("author = $1 AND at > {now} - $2 AND state <> 'published'");
    let mut sum = 0_u64;
    for (size, rows) in [
        (
            "u.size".to_owned(),
            format!(
                "ps_upload u WHERE u.caller = $1 AND u.at > {now} - $2 \
                 AND NOT EXISTS (SELECT 1 FROM ps_entry e WHERE e.digest = u.digest)"
            ),
        ),
        ("whole".to_owned(), format!("ps_upload_part WHERE caller = $1 AND start = 0 AND at > {now} - $2")),
        ("OCTET_LENGTH(message)".to_owned(), format!("ps_proposal WHERE {recent}")),
        (
            format!("OCTET_LENGTH(c.path) + {CHANGE}"),
            format!("ps_change c WHERE c.proposal IN (SELECT id FROM ps_proposal WHERE {recent})"),
        ),
    ] {
        let sql = format!("SELECT CAST(COALESCE(SUM({size}), 0) AS BIGINT) FROM {rows}");
        let row = transaction.row(sql, vec![caller.into(), DAY.into()]).await?;
        sum += row.map_or(Ok(0), |row| row.number(0))?;
    }
    Ok(sum)
}

/// A content that has begun to arrive in parts.
pub(crate) struct Started {
    pub(crate) received: u64,
    pub(crate) whole: u64,
    /// The time of the first part.
    pub(crate) at: i64,
}

/// Returns the size of a content that a caller has uploaded.
pub(crate) async fn size(
    transaction: &mut Transaction,
    caller: &str,
    digest: Digest,
) -> Result<Option<u64>, StoreError> {
    let sql = "SELECT size FROM ps_upload WHERE caller = $1 AND digest = $2";
    let row = transaction.row(sql, vec![caller.into(), digest.into()]).await?;
    row.map(|row| row.number(0)).transpose()
}

pub(crate) async fn started(
    transaction: &mut Transaction,
    caller: &str,
    digest: Digest,
) -> Result<Option<Started>, StoreError> {
    let sql = "SELECT CAST(SUM(size) AS BIGINT) AS received, MIN(whole) AS whole, MIN(at) AS at FROM ps_upload_part \
               WHERE caller = $1 AND digest = $2 HAVING COUNT(*) > 0";
    let row = transaction.row(sql, vec![caller.into(), digest.into()]).await?;
    row.map(|row| Ok(Started { received: row.number("received")?, whole: row.number("whole")?, at: row.int("at")? }))
        .transpose()
}

/// Stores a part. `at` is the time of the first one, which is now without it.
pub(crate) async fn add_part(
    transaction: &mut Transaction,
    caller: &str,
    digest: Digest,
    (start, whole): (u64, u64),
    bytes: &[u8],
    at: Option<i64>,
) -> Result<(), StoreError> {
    let now = transaction.now();
    let sql = format!(
        "INSERT INTO ps_upload_part (caller, digest, start, size, whole, at, bytes) \
         VALUES ($1, $2, $3, $4, $5, COALESCE($6, {now}), $7) ON CONFLICT (caller, digest, start) DO NOTHING"
    );
    let values = vec![
        caller.into(),
        digest.into(),
        start.into(),
        (bytes.len() as u64).into(),
        whole.into(),
        Value::Int(at),
        (&Arc::<[u8]>::from(bytes)).into(),
    ];
    transaction.run(sql, values).await
}

/// Returns the stored parts of a content, joined.
pub(crate) async fn parts(
    transaction: &mut Transaction,
    caller: &str,
    digest: Digest,
    size: u64,
) -> Result<Vec<u8>, StoreError> {
    let sql = "SELECT start FROM ps_upload_part WHERE caller = $1 AND digest = $2 ORDER BY start";
    let starts = transaction.rows(sql, vec![caller.into(), digest.into()]).await?;
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    for start in starts {
        let sql = "SELECT bytes FROM ps_upload_part WHERE caller = $1 AND digest = $2 AND start = $3";
        let row = transaction.row(sql, vec![caller.into(), digest.into(), start.int(0)?.into()]).await?;
        content.extend(row.map_or(Ok(Vec::new()), |row| row.bytes("bytes"))?);
    }
    Ok(content)
}

pub(crate) async fn remove_parts(
    transaction: &mut Transaction,
    caller: &str,
    digest: Digest,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM ps_upload_part WHERE caller = $1 AND digest = $2";
    transaction.run(sql, vec![caller.into(), digest.into()]).await
}

pub(crate) async fn remove_older_parts(transaction: &mut Transaction, seconds: u64) -> Result<(), StoreError> {
    let sql = format!("DELETE FROM ps_upload_part WHERE at <= {} - $1", transaction.now());
    transaction.run(sql, vec![seconds.saturating_mul(1_000_000).into()]).await
}

pub(crate) async fn has_older(transaction: &mut Transaction, seconds: u64) -> Result<bool, StoreError> {
    let now = transaction.now();
    let sql = format!(
        "SELECT 1 FROM ps_upload WHERE at <= {now} - $1 UNION ALL SELECT 1 FROM ps_upload_part WHERE at <= {now} - $1 LIMIT 1"
    );
    Ok(transaction.row(sql, vec![seconds.saturating_mul(1_000_000).into()]).await?.is_some())
}

/// Forgets uploads of so long ago, and returns those of their contents that nothing else has.
pub(crate) async fn remove_older(transaction: &mut Transaction, seconds: u64) -> Result<Vec<Digest>, StoreError> {
    let now = transaction.now();
    let sql = format!("DELETE FROM ps_upload WHERE at <= {now} - $1 RETURNING digest");
    let rows = transaction.rows(sql, vec![seconds.saturating_mul(1_000_000).into()]).await?;
    let removed = rows.iter().map(|row| row.digest("digest")).collect::<Result<BTreeSet<Digest>, StoreError>>()?;
    let mut unused: Vec<Digest> = Vec::new();
    for chunk in removed.into_iter().collect::<Vec<Digest>>().chunks(CHUNK) {
        let mut used = BTreeSet::new();
        for column in ["digest FROM ps_entry", "digest FROM ps_upload", "before FROM ps_change", "after FROM ps_change"]
        {
            let name = column.split(' ').next().unwrap_or_default();
            let sql = format!("SELECT DISTINCT {column} WHERE {name} IN {}", list(0, chunk.len()));
            let values = chunk.iter().map(|digest| (*digest).into()).collect();
            for row in transaction.rows(sql, values).await? {
                used.insert(row.digest(0)?);
            }
        }
        unused.extend(chunk.iter().filter(|digest| !used.contains(digest)));
    }
    Ok(unused)
}

pub(crate) async fn prune(transaction: &mut Transaction) -> Result<(), StoreError> {
    transaction.run("DELETE FROM ps_upload WHERE digest NOT IN (SELECT digest FROM ps_blob)", vec![]).await
}
