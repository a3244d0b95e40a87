//! Contents of files, by digest.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use crate::{
    StoreError,
    database::{Transaction, insert, list},
    model::Digest,
};

const CHUNK: usize = 500;

/// The number of contents that are checked at once, each of some megabytes at most.
const CHECKED: usize = 20;

/// Contents by digest, in the order in which they are written: two transactions that write the same ones cannot
/// deadlock.
pub(crate) type Contents = BTreeMap<Digest, Arc<[u8]>>;

/// Writes contents; those that exist already stay.
pub(crate) async fn write(transaction: &mut Transaction, contents: &Contents) -> Result<(), StoreError> {
    let rows = contents.iter().map(|(digest, bytes)| vec![(*digest).into(), (bytes.len() as u64).into(), bytes.into()]);
    let head = "INSERT INTO ps_blob (digest, size, bytes)";
    insert(transaction, head, Box::new(rows), "ON CONFLICT (digest) DO NOTHING").await
}

/// Reads contents and verifies each. The order is that of the digests.
pub(crate) async fn read(
    transaction: &mut Transaction,
    digests: &[Digest],
) -> Result<Vec<(Digest, Arc<[u8]>)>, StoreError> {
    let mut sorted = digests.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut contents = Contents::new();
    for chunk in sorted.chunks(CHUNK) {
        let sql = format!("SELECT digest, bytes FROM ps_blob WHERE digest IN {}", list(0, chunk.len()));
        for row in transaction.rows(sql, chunk.iter().map(|digest| (*digest).into()).collect()).await? {
            let digest = row.digest("digest")?;
            let bytes: Arc<[u8]> = row.bytes("bytes")?.into();
            if Digest::of(&bytes) != digest {
                return Err(StoreError::Corrupt { what: format!("the content {digest}") });
            }
            contents.insert(digest, bytes);
        }
    }
    match sorted.iter().find(|digest| !contents.contains_key(digest)) {
        Some(digest) => Err(StoreError::not_found(format!("the content {digest}"))),
        None => Ok(contents.into_iter().collect()),
    }
}

/// Returns those of some contents that do not fit their digest or do not exist.
pub(crate) async fn damaged(transaction: &mut Transaction, digests: Vec<Digest>) -> Result<Vec<Digest>, StoreError> {
    let mut damaged = Vec::new();
    for chunk in digests.chunks(CHECKED) {
        let sql = format!("SELECT digest, bytes FROM ps_blob WHERE digest IN {}", list(0, chunk.len()));
        let rows = transaction.rows(sql, chunk.iter().map(|digest| (*digest).into()).collect()).await?;
        let mut sound = HashSet::with_capacity(rows.len());
        for row in &rows {
            let digest = row.digest("digest")?;
            if Digest::of(&row.bytes("bytes")?) == digest {
                sound.insert(digest);
            }
        }
        damaged.extend(chunk.iter().filter(|digest| !sound.contains(digest)));
    }
    Ok(damaged)
}

/// Returns the sizes of contents; those that do not exist are missing.
pub(crate) async fn sizes(
    transaction: &mut Transaction,
    digests: &[Digest],
) -> Result<BTreeMap<Digest, u64>, StoreError> {
    let mut sizes = BTreeMap::new();
    for chunk in digests.chunks(CHUNK) {
        let sql = format!("SELECT digest, size FROM ps_blob WHERE digest IN {}", list(0, chunk.len()));
        for row in transaction.rows(sql, chunk.iter().map(|digest| (*digest).into()).collect()).await? {
            sizes.insert(row.digest("digest")?, row.number("size")?);
        }
    }
    Ok(sizes)
}

pub(crate) async fn all(transaction: &mut Transaction) -> Result<Vec<(Digest, u64)>, StoreError> {
    let rows = transaction.rows("SELECT digest, size FROM ps_blob", vec![]).await?;
    rows.iter().map(|row| Ok((row.digest("digest")?, row.number("size")?))).collect()
}

pub(crate) async fn delete(transaction: &mut Transaction, digests: &[Digest]) -> Result<(), StoreError> {
    for chunk in digests.chunks(CHUNK) {
        let sql = format!("DELETE FROM ps_blob WHERE digest IN {}", list(0, chunk.len()));
        transaction.run(sql, chunk.iter().map(|digest| (*digest).into()).collect()).await?;
    }
    Ok(())
}
