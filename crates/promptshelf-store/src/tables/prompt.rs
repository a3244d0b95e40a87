//! Version numbers of prompts, and the spans in which they were served.

use std::collections::{BTreeMap, HashMap};

use crate::{
    StoreError,
    database::{Row, Transaction, Value, insert, list},
    model::{Digest, PromptChange, PromptChangeKind, Served},
};

const CHUNK: usize = 5_000;

/// The served prompts of a revision, by name: version number and digest.
pub(crate) type Live = BTreeMap<String, (u64, Digest)>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromptDifference {
    pub(crate) name: String,
    pub(crate) old: Option<u64>,
    /// The new digest; `None` for a removed prompt.
    pub(crate) new: Option<Digest>,
}

pub(crate) fn compare(live: &Live, checked: &BTreeMap<&str, Digest>) -> Vec<PromptDifference> {
    let mut differences: BTreeMap<&str, PromptDifference> = BTreeMap::new();
    for (name, (number, _)) in live {
        if !checked.contains_key(name.as_str()) {
            differences.insert(name, PromptDifference { name: name.clone(), old: Some(*number), new: None });
        }
    }
    for (name, digest) in checked {
        let old = live.get(*name);
        if old.is_none_or(|(_, present)| present != digest) {
            let old = old.map(|(number, _)| *number);
            differences.insert(name, PromptDifference { name: (*name).to_owned(), old, new: Some(*digest) });
        }
    }
    differences.into_values().collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Those of a publish: digests without a number get the next one, which is stored under the lock of the library's
    /// row.
    Assigned,
    /// Those that a channel has had; 0 for others, which the caller may not know.
    OfChannel(i64),
    /// Those that any channel has had; 0 for others.
    OfStore,
}

pub(crate) async fn number(
    transaction: &mut Transaction,
    differences: &[PromptDifference],
    numbers: Numbers,
) -> Result<Vec<PromptChange>, StoreError> {
    let names: Vec<&str> = differences.iter().filter(|it| it.new.is_some()).map(|it| it.name.as_str()).collect();
    let mut known: HashMap<(String, Digest), u64> = HashMap::new();
    let mut newest: HashMap<String, u64> = HashMap::new();
    for chunk in names.chunks(CHUNK) {
        let mut sql =
            format!("SELECT prompt, number, digest FROM ps_prompt_version v WHERE prompt IN {}", list(0, chunk.len()));
        let mut values: Vec<Value> = chunk.iter().map(|name| Value::from(*name)).collect();
        if let Numbers::OfChannel(channel) = numbers {
            values.push(channel.into());
            sql.push_str(&format!(
                " AND EXISTS (SELECT 1 FROM ps_live l WHERE l.channel = ${} AND l.prompt = v.prompt \
                 AND l.number = v.number)",
                values.len()
            ));
        }
        for row in transaction.rows(sql, values).await? {
            let (name, number) = (row.text("prompt")?, row.number("number")?);
            let last = newest.entry(name.clone()).or_default();
            *last = number.max(*last);
            known.insert((name, row.digest("digest")?), number);
        }
    }
    let mut added = Vec::new();
    let mut changes = Vec::with_capacity(differences.len());
    for difference in differences {
        let (version, change) = match (difference.old, difference.new) {
            (_, Some(digest)) => {
                let key = (difference.name.clone(), digest);
                let version = known.get(&key).copied().unwrap_or_else(|| {
                    if numbers != Numbers::Assigned {
                        return 0;
                    }
                    let version = newest.get(&difference.name).copied().unwrap_or_default() + 1;
                    added.push(vec![difference.name.as_str().into(), version.into(), digest.into()]);
                    version
                });
                let change = if difference.old.is_some() { PromptChangeKind::Changed } else { PromptChangeKind::Added };
                (version, change)
            }
            (old, None) => (old.unwrap_or_default(), PromptChangeKind::Removed),
        };
        changes.push(PromptChange { name: difference.name.clone(), version, previous: difference.old, change });
    }
    if numbers == Numbers::Assigned {
        insert(transaction, "INSERT INTO ps_prompt_version (prompt, number, digest)", Box::new(added.into_iter()), "")
            .await?;
    }
    Ok(changes)
}

pub(crate) async fn apply(
    transaction: &mut Transaction,
    channel: i64,
    revision: u64,
    changes: &[PromptChange],
) -> Result<(), StoreError> {
    let closed: Vec<&str> =
        changes.iter().filter(|it| it.change != PromptChangeKind::Added).map(|it| it.name.as_str()).collect();
    for chunk in closed.chunks(CHUNK) {
        let sql = format!(
            "UPDATE ps_live SET until = $1 WHERE channel = $2 AND until IS NULL AND prompt IN {}",
            list(2, chunk.len())
        );
        let mut values: Vec<Value> = vec![revision.into(), channel.into()];
        values.extend(chunk.iter().map(|name| Value::from(*name)));
        transaction.run(sql, values).await?;
    }
    let opened = changes.iter().filter(|it| it.change != PromptChangeKind::Removed);
    let rows = opened.map(|it| vec![channel.into(), it.name.as_str().into(), it.version.into(), revision.into()]);
    insert(transaction, "INSERT INTO ps_live (channel, prompt, number, since)", Box::new(rows), "").await
}

const LIVE: &str = "SELECT l.prompt, l.number, v.digest, l.since, l.until FROM ps_live l \
                    JOIN ps_prompt_version v ON v.prompt = l.prompt AND v.number = l.number WHERE l.channel = $1";

fn live(rows: &[Row]) -> Result<Live, StoreError> {
    rows.iter().map(|row| Ok((row.text("prompt")?, (row.number("number")?, row.digest("digest")?)))).collect()
}

pub(crate) async fn newest(transaction: &mut Transaction, channel: i64) -> Result<Live, StoreError> {
    live(&transaction.rows(format!("{LIVE} AND l.until IS NULL"), vec![channel.into()]).await?)
}

/// Returns the prompts that are new or different since a revision, and the names of those that are gone.
pub(crate) async fn since(
    transaction: &mut Transaction,
    channel: i64,
    revision: u64,
) -> Result<(Live, Vec<String>), StoreError> {
    let values: Vec<Value> = vec![channel.into(), revision.into()];
    let changed =
        live(&transaction.rows(format!("{LIVE} AND l.until IS NULL AND l.since > $2"), values.clone()).await?)?;
    let sql = "SELECT prompt FROM ps_live WHERE channel = $1 AND until > $2 AND since <= $2";
    let gone = transaction.rows(sql, values).await?;
    let gone = gone.iter().map(|row| row.text("prompt")).collect::<Result<Vec<_>, _>>()?;
    Ok((changed, gone))
}

pub(crate) async fn served(
    transaction: &mut Transaction,
    channel: i64,
    revision: u64,
) -> Result<Vec<Served>, StoreError> {
    let sql = format!("{LIVE} AND l.since <= $2 AND (l.until IS NULL OR l.until > $2)");
    let rows = transaction.rows(sql, vec![channel.into(), revision.into()]).await?;
    let mut served = rows.iter().map(served_row).collect::<Result<Vec<_>, StoreError>>()?;
    served.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(served)
}

fn served_row(row: &Row) -> Result<Served, StoreError> {
    Ok(Served {
        name: row.text("prompt")?,
        version: row.number("number")?,
        digest: row.digest("digest")?,
        since: row.number("since")?,
        until: row.optional_number("until")?,
    })
}

/// Returns the newest versions of a page of prompts, by name: version number and the revision that it came with. Only
/// prompts whose name sorts after `after` and contains `text`.
pub(crate) async fn page(
    transaction: &mut Transaction,
    channel: i64,
    text: Option<&str>,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<(String, u64, u64)>, StoreError> {
    // The order of Rust's strings, whatever the collation of the database.
    let prompt = if transaction.is_postgres() { "prompt COLLATE \"C\"" } else { "prompt" };
    let mut sql = "SELECT prompt, number, since FROM ps_live WHERE channel = $1 AND until IS NULL".to_owned();
    let mut values: Vec<Value> = vec![channel.into()];
    if let Some(after) = after {
        values.push(after.into());
        sql.push_str(&format!(" AND {prompt} > ${}", values.len()));
    }
    if let Some(text) = text {
        values.push(pattern(text).into());
        sql.push_str(&format!(" AND LOWER(prompt) LIKE ${} ESCAPE '!'", values.len()));
    }
    sql.push_str(&format!(" ORDER BY {prompt} LIMIT {limit}"));
    let rows = transaction.rows(sql, values).await?;
    rows.iter().map(|row| Ok((row.text("prompt")?, row.number("number")?, row.number("since")?))).collect()
}

/// Returns the newest versions of some prompts: name, version number and the revision that it came with.
pub(crate) async fn standing(
    transaction: &mut Transaction,
    channel: i64,
    names: &[String],
) -> Result<Vec<(String, u64, u64)>, StoreError> {
    let mut found = Vec::with_capacity(names.len());
    for chunk in names.chunks(CHUNK) {
        let names = list(1, chunk.len());
        let sql = format!(
            "SELECT prompt, number, since FROM ps_live WHERE channel = $1 AND until IS NULL AND prompt IN {names}"
        );
        let mut values: Vec<Value> = vec![channel.into()];
        values.extend(chunk.iter().map(|name| Value::from(name.as_str())));
        for row in transaction.rows(sql, values).await? {
            found.push((row.text("prompt")?, row.number("number")?, row.number("since")?));
        }
    }
    Ok(found)
}

fn pattern(text: &str) -> String {
    let mut pattern = "%".to_owned();
    for c in text.chars().flat_map(char::to_lowercase) {
        if matches!(c, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

/// Returns what revisions did to prompts, by revision; the prompts by name.
pub(crate) async fn changes(
    transaction: &mut Transaction,
    channel: i64,
    revisions: &[u64],
) -> Result<HashMap<u64, Vec<PromptChange>>, StoreError> {
    let mut changes: HashMap<u64, BTreeMap<String, PromptChange>> = HashMap::new();
    for chunk in revisions.chunks(CHUNK) {
        let of = list(1, chunk.len());
        let mut values: Vec<Value> = vec![channel.into()];
        values.extend(chunk.iter().map(|number| Value::from(*number)));
        let ended = format!("SELECT until, prompt, number FROM ps_live WHERE channel = $1 AND until IN {of}");
        for row in transaction.rows(ended, values.clone()).await? {
            let (name, version) = (row.text("prompt")?, row.number("number")?);
            let change = PromptChange {
                name: name.clone(),
                version,
                previous: Some(version),
                change: PromptChangeKind::Removed,
            };
            changes.entry(row.number("until")?).or_default().insert(name, change);
        }
        let begun = format!("SELECT since, prompt, number FROM ps_live WHERE channel = $1 AND since IN {of}");
        for row in transaction.rows(begun, values).await? {
            let (name, version) = (row.text("prompt")?, row.number("number")?);
            let prompts = changes.entry(row.number("since")?).or_default();
            let previous = prompts.get(&name).map(|ended: &PromptChange| ended.version);
            let change = if previous.is_none() { PromptChangeKind::Added } else { PromptChangeKind::Changed };
            prompts.insert(name.clone(), PromptChange { name, version, previous, change });
        }
    }
    Ok(changes.into_iter().map(|(revision, prompts)| (revision, prompts.into_values().collect())).collect())
}

/// Deletes the spans that ended before a revision. Those that ended with it stay, as a part of its description.
pub(crate) async fn prune(transaction: &mut Transaction, channel: i64, revision: u64) -> Result<(), StoreError> {
    let sql = "DELETE FROM ps_live WHERE channel = $1 AND until < $2";
    transaction.run(sql, vec![channel.into(), revision.into()]).await
}

/// Returns the end of the last span in which a channel served a version: the first revision without it, `None` inside
/// while it is served.
pub(crate) async fn last_with(
    transaction: &mut Transaction,
    channel: i64,
    prompt: &str,
    version: u64,
) -> Result<Option<Served>, StoreError> {
    let sql = format!("{LIVE} AND l.prompt = $2 AND l.number = $3 ORDER BY l.since DESC LIMIT 1");
    let row = transaction.row(sql, vec![channel.into(), prompt.into(), version.into()]).await?;
    row.as_ref().map(served_row).transpose()
}
