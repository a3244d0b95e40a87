//! The chain of digests that identifies revisions and shows whether their history was changed.
//!
//! The digest of a revision covers that of the revision before it, its files, and its row: author, message, approvals,
//! policy and time. Two revisions with one number, one of them from a restored store, differ in it.

use std::collections::{BTreeMap, HashMap};

use super::channel::Channel;
use crate::{
    StoreError,
    database::{Row, Transaction},
    digest::{Digest, Parts},
};

/// The beginning of what is hashed. Another one is needed if other columns are.
const FORMAT: &[u8] = b"promptshelf revision 1";

/// The columns of a revision that its digest covers, and its place in the chain.
const SELECT: &str = "SELECT number, at, proposal, kind, author, message, approved_by, checks, emergency, policy, \
                      parent, tree, digest FROM ps_revision WHERE channel = $1";

/// A revision and its place in the chain, as it is stored and as it has to be.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) number: u64,
    pub(crate) stored: Place,
    pub(crate) expected: Place,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The digest of the revision before; `None` for the first one.
    pub(crate) parent: Option<Digest>,
    pub(crate) tree: Option<Digest>,
    pub(crate) digest: Option<Digest>,
}

/// Returns the digest of a row of `SELECT`. Texts are hashed as they are stored.
fn digest(row: &Row, parent: Option<Digest>, tree: Digest) -> Result<Digest, StoreError> {
    let mut parts = Parts::default();
    parts.add(FORMAT);
    parts.add_optional(parent.as_ref().map(|digest| &digest.bytes()[..]));
    parts.add(tree.bytes());
    for column in ["number", "at", "proposal"] {
        parts.add(&row.int(column)?.to_le_bytes());
    }
    for column in ["kind", "author", "message", "approved_by", "checks", "emergency", "policy"] {
        parts.add_optional(row.optional_text(column)?.as_deref().map(str::as_bytes));
    }
    Ok(parts.digest())
}

pub(crate) async fn seal(
    transaction: &mut Transaction,
    channel: i64,
    number: u64,
    parent: Option<Digest>,
    tree: Digest,
) -> Result<Digest, StoreError> {
    let sql = format!("{SELECT} AND number = $2");
    let row = transaction.row(sql, vec![channel.into(), number.into()]).await?;
    let row = row.ok_or_else(|| StoreError::not_found(format!("revision {number}")))?;
    let digest = digest(&row, parent, tree)?;
    write(transaction, channel, number, Place { parent, tree: Some(tree), digest: Some(digest) }).await?;
    Ok(digest)
}

async fn write(transaction: &mut Transaction, channel: i64, number: u64, place: Place) -> Result<(), StoreError> {
    let sql = "UPDATE ps_revision SET parent = $1, tree = $2, digest = $3 WHERE channel = $4 AND number = $5";
    let values = vec![place.parent.into(), place.tree.into(), place.digest.into(), channel.into(), number.into()];
    transaction.run(sql, values).await
}

/// Returns the digest of the newest revision of a channel. Revisions that earlier releases have written get theirs first.
pub(crate) async fn complete(transaction: &mut Transaction, channel: &Channel) -> Result<Option<Digest>, StoreError> {
    if channel.digest.is_some() || channel.revision == 0 {
        return Ok(channel.digest);
    }
    let mut newest = None;
    for link in links(transaction, channel).await? {
        newest = link.stored.digest.or(link.expected.digest);
        if link.stored.digest.is_none() {
            write(transaction, channel.id, link.number, link.expected).await?;
        }
    }
    let sql = "UPDATE ps_channel SET digest = $1, chained = revision WHERE id = $2";
    transaction.run(sql, vec![newest.into(), channel.id.into()]).await?;
    Ok(newest)
}

/// Returns all revisions of a channel, the oldest first. What a revision has to be follows from the stored digest of the
/// one before; retention removes those before the oldest one, which keeps their digest.
pub(crate) async fn links(transaction: &mut Transaction, channel: &Channel) -> Result<Vec<Link>, StoreError> {
    let rows = transaction.rows(format!("{SELECT} ORDER BY number"), vec![channel.id.into()]).await?;
    let Some(first) = rows.first().map(|row| row.number("number")).transpose()? else { return Ok(Vec::new()) };
    let sql = "SELECT path, digest, since, until FROM ps_entry WHERE channel = $1";
    let mut files: BTreeMap<String, Digest> = BTreeMap::new();
    let mut removed: HashMap<u64, Vec<String>> = HashMap::new();
    let mut added: HashMap<u64, Vec<(String, Digest)>> = HashMap::new();
    for row in transaction.rows(sql, vec![channel.id.into()]).await? {
        let (path, digest) = (row.text("path")?, row.digest("digest")?);
        let (since, until) = (row.number("since")?, row.optional_number("until")?);
        if until.is_some_and(|until| until <= first) {
            continue;
        }
        if let Some(until) = until {
            removed.entry(until).or_default().push(path.clone());
        }
        match since {
            since if since > first => added.entry(since).or_default().push((path, digest)),
            _ => _ = files.insert(path, digest),
        }
    }
    let mut links: Vec<Link> = Vec::with_capacity(rows.len());
    for row in rows {
        let number = row.number("number")?;
        let stored = Place {
            parent: row.optional_digest("parent")?,
            tree: row.optional_digest("tree")?,
            digest: row.optional_digest("digest")?,
        };
        for path in removed.remove(&number).unwrap_or_default() {
            files.remove(&path);
        }
        files.extend(added.remove(&number).unwrap_or_default());
        let tree = Digest::of_tree(&files);
        let parent = match links.last() {
            Some(before) => before.stored.digest.or(before.expected.digest),
            None if number > 1 => stored.parent,
            None => None,
        };
        let expected = Place { parent, tree: Some(tree), digest: Some(digest(&row, parent, tree)?) };
        links.push(Link { number, stored, expected });
    }
    Ok(links)
}

/// Returns the digests of a revision and of its files; `None` for those that have none.
pub(crate) async fn at(
    transaction: &mut Transaction,
    channel: i64,
    number: u64,
) -> Result<(Option<Digest>, Option<Digest>), StoreError> {
    let sql = "SELECT digest, tree FROM ps_revision WHERE channel = $1 AND number = $2";
    match transaction.row(sql, vec![channel.into(), number.into()]).await? {
        Some(row) => Ok((row.optional_digest("digest")?, row.optional_digest("tree")?)),
        None => Ok((None, None)),
    }
}
