//! Files of channels over spans of revisions.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::{
    StoreError,
    database::{Row, Transaction, Value, insert, list},
    model::{Digest, FileChange, FileEntry},
};

const CHUNK: usize = 5_000;

pub(crate) type Files = BTreeMap<String, FileEntry>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) path: String,
    pub(crate) before: Option<Digest>,
    pub(crate) after: Option<(Digest, u64)>,
}

impl Replacement {
    pub(crate) fn file_change(&self) -> FileChange {
        FileChange { path: self.path.clone(), before: self.before, after: self.after.map(|(digest, _)| digest) }
    }
}

fn entry(row: &Row) -> Result<FileEntry, StoreError> {
    Ok(FileEntry { path: row.text("path")?, digest: row.digest("digest")?, size: row.number("size")? })
}

fn files(rows: &[Row]) -> Result<Files, StoreError> {
    rows.iter().map(|row| entry(row).map(|entry| (entry.path.clone(), entry))).collect()
}

pub(crate) async fn newest(transaction: &mut Transaction, channel: i64) -> Result<Files, StoreError> {
    let sql = "SELECT path, digest, size FROM ps_entry WHERE channel = $1 AND until IS NULL";
    files(&transaction.rows(sql, vec![channel.into()]).await?)
}

pub(crate) async fn at(transaction: &mut Transaction, channel: i64, revision: u64) -> Result<Files, StoreError> {
    let sql = "SELECT path, digest, size FROM ps_entry \
               WHERE channel = $1 AND since <= $2 AND (until IS NULL OR until > $2)";
    files(&transaction.rows(sql, vec![channel.into(), revision.into()]).await?)
}

pub(crate) async fn some_at(
    transaction: &mut Transaction,
    channel: i64,
    revision: u64,
    paths: &[String],
) -> Result<Files, StoreError> {
    let mut found = Files::new();
    for chunk in paths.chunks(500) {
        let sql = format!(
            "SELECT path, digest, size FROM ps_entry WHERE channel = $1 AND since <= $2 \
             AND (until IS NULL OR until > $2) AND path IN {}",
            list(2, chunk.len())
        );
        let mut values: Vec<Value> = vec![channel.into(), revision.into()];
        values.extend(chunk.iter().map(|path| Value::from(path.as_str())));
        found.extend(files(&transaction.rows(sql, values).await?)?);
    }
    Ok(found)
}

pub(crate) async fn paths_of(
    transaction: &mut Transaction,
    channel: i64,
    digests: &[Digest],
) -> Result<HashMap<Digest, Vec<String>>, StoreError> {
    let mut paths: HashMap<Digest, Vec<String>> = HashMap::new();
    for chunk in digests.chunks(CHUNK) {
        let names = list(1, chunk.len());
        let sql =
            format!("SELECT path, digest FROM ps_entry WHERE channel = $1 AND until IS NULL AND digest IN {names}");
        let mut values: Vec<Value> = vec![channel.into()];
        values.extend(chunk.iter().map(|digest| Value::from(*digest)));
        for row in transaction.rows(sql, values).await? {
            paths.entry(row.digest("digest")?).or_default().push(row.text("path")?);
        }
    }
    Ok(paths)
}

pub(crate) async fn file(
    transaction: &mut Transaction,
    channel: i64,
    revision: u64,
    path: &str,
) -> Result<Option<FileEntry>, StoreError> {
    let sql = "SELECT path, digest, size FROM ps_entry \
               WHERE channel = $1 AND since <= $2 AND (until IS NULL OR until > $2) AND path = $3";
    let row = transaction.row(sql, vec![channel.into(), revision.into(), path.into()]).await?;
    row.as_ref().map(entry).transpose()
}

/// Returns the files that are new or different since a revision, and the paths that are gone.
pub(crate) async fn since(
    transaction: &mut Transaction,
    channel: i64,
    revision: u64,
) -> Result<(Files, Vec<String>), StoreError> {
    let values: Vec<Value> = vec![channel.into(), revision.into()];
    let sql = "SELECT path, digest, size FROM ps_entry WHERE channel = $1 AND since > $2 AND until IS NULL";
    let changed = files(&transaction.rows(sql, values.clone()).await?)?;
    let sql = "SELECT path FROM ps_entry WHERE channel = $1 AND until > $2 AND since <= $2";
    let mut removed = Vec::new();
    for row in transaction.rows(sql, values).await? {
        let path = row.text("path")?;
        if !changed.contains_key(&path) {
            removed.push(path);
        }
    }
    removed.sort_unstable();
    Ok((changed, removed))
}

/// Writes the changes of a revision. The channel's row is locked, and the changes were compared with the open entries.
pub(crate) async fn apply(
    transaction: &mut Transaction,
    channel: i64,
    revision: u64,
    changes: &[Replacement],
) -> Result<(), StoreError> {
    let closed: Vec<(&str, Digest)> =
        changes.iter().filter_map(|change| Some((change.path.as_str(), change.before?))).collect();
    for chunk in closed.chunks(CHUNK) {
        let sql = format!(
            "UPDATE ps_entry SET until = $1 WHERE channel = $2 AND until IS NULL AND path IN {} RETURNING path, digest",
            list(2, chunk.len())
        );
        let mut values: Vec<Value> = vec![revision.into(), channel.into()];
        values.extend(chunk.iter().map(|(path, _)| Value::from(*path)));
        let mut present = HashMap::with_capacity(chunk.len());
        for row in transaction.rows(sql, values).await? {
            present.insert(row.text("path")?, row.digest("digest")?);
        }
        if chunk.iter().any(|(path, before)| present.get(*path) != Some(before)) {
            return Err(StoreError::state(
                "the files of the channel are not those of its revision: `promptshelf store verify` shows the first one that does not fit",
            ));
        }
    }
    let opened = changes.iter().filter_map(|it| {
        let (digest, size) = it.after?;
        Some(vec![channel.into(), it.path.as_str().into(), digest.into(), size.into(), revision.into()])
    });
    insert(transaction, "INSERT INTO ps_entry (channel, path, digest, size, since)", Box::new(opened), "").await
}

pub(crate) async fn contents_of(
    transaction: &mut Transaction,
    channel: i64,
    paths: &[&str],
) -> Result<HashSet<(String, Digest)>, StoreError> {
    let mut contents = HashSet::new();
    for chunk in paths.chunks(CHUNK) {
        let sql = format!("SELECT path, digest FROM ps_entry WHERE channel = $1 AND path IN {}", list(1, chunk.len()));
        let mut values: Vec<Value> = vec![channel.into()];
        values.extend(chunk.iter().map(|path| Value::from(*path)));
        for row in transaction.rows(sql, values).await? {
            contents.insert((row.text("path")?, row.digest("digest")?));
        }
    }
    Ok(contents)
}

pub(crate) async fn prune(transaction: &mut Transaction, channel: i64, revision: u64) -> Result<(), StoreError> {
    let sql = "DELETE FROM ps_entry WHERE channel = $1 AND until <= $2";
    transaction.run(sql, vec![channel.into(), revision.into()]).await
}

/// Returns the contents of a channel, each with the first revision and a path that has it.
pub(crate) async fn first_uses(
    transaction: &mut Transaction,
    channel: i64,
) -> Result<BTreeMap<Digest, (u64, String)>, StoreError> {
    let sql = "SELECT digest, since, path FROM ps_entry WHERE channel = $1";
    let mut uses: BTreeMap<Digest, (u64, String)> = BTreeMap::new();
    for row in transaction.rows(sql, vec![channel.into()]).await? {
        let found = (row.number("since")?, row.text("path")?);
        let known = uses.entry(row.digest("digest")?).or_insert_with(|| found.clone());
        if found < *known {
            *known = found;
        }
    }
    Ok(uses)
}

pub(crate) async fn digests(transaction: &mut Transaction) -> Result<Vec<Digest>, StoreError> {
    let rows = transaction.rows("SELECT DISTINCT digest FROM ps_entry", vec![]).await?;
    rows.iter().map(|row| row.digest("digest")).collect()
}
