//! Versions of prompts, and the spans in which they were served.
//!
//! A channel counts its versions, so that they tell nothing about other channels. The tables number each text once for
//! all channels.

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

/// What a channel has of some prompts.
#[derive(Debug, Default)]
struct Given {
    /// The number of the text among those of all channels, and its version here.
    texts: HashMap<(String, Digest), (u64, u64)>,
    newest: HashMap<String, u64>,
}

async fn given(
    transaction: &mut Transaction,
    channel: i64,
    differences: &[PromptDifference],
) -> Result<Given, StoreError> {
    let names: Vec<&str> = differences.iter().filter(|it| it.new.is_some()).map(|it| it.name.as_str()).collect();
    let mut given = Given::default();
    for chunk in names.chunks(CHUNK) {
        let sql = format!(
            "SELECT c.prompt, c.number, c.version, v.digest FROM ps_channel_version c \
             LEFT JOIN ps_prompt_version v ON v.prompt = c.prompt AND v.number = c.number \
             WHERE c.channel = $1 AND c.prompt IN {}",
            list(1, chunk.len())
        );
        let mut values: Vec<Value> = vec![channel.into()];
        values.extend(chunk.iter().map(|name| Value::from(*name)));
        for row in transaction.rows(sql, values).await? {
            let (name, version) = (row.text("prompt")?, row.number("version")?);
            let newest = given.newest.entry(name.clone()).or_default();
            *newest = version.max(*newest);
            if let Some(digest) = row.optional_digest("digest")? {
                given.texts.insert((name, digest), (row.number("number")?, version));
            }
        }
    }
    Ok(given)
}

fn change(difference: &PromptDifference, version: u64) -> PromptChange {
    let change = match (difference.old, difference.new) {
        (_, None) => PromptChangeKind::Removed,
        (None, _) => PromptChangeKind::Added,
        _ => PromptChangeKind::Changed,
    };
    PromptChange { name: difference.name.clone(), version, previous: difference.old, change }
}

/// Returns what differences would do to the prompts of a channel. Texts that it never had get their versions when they
/// are published; 0 until then.
pub(crate) async fn expect(
    transaction: &mut Transaction,
    channel: i64,
    differences: &[PromptDifference],
) -> Result<Vec<PromptChange>, StoreError> {
    let given = given(transaction, channel, differences).await?;
    let version = |difference: &PromptDifference| match difference.new {
        Some(digest) => given.texts.get(&(difference.name.clone(), digest)).map_or(0, |(_, version)| *version),
        None => difference.old.unwrap_or_default(),
    };
    Ok(differences.iter().map(|difference| change(difference, version(difference))).collect())
}

/// Gives texts that are new in a channel their versions, and stores what a revision serves. The library's row is locked.
pub(crate) async fn publish(
    transaction: &mut Transaction,
    channel: i64,
    revision: u64,
    differences: &[PromptDifference],
) -> Result<Vec<PromptChange>, StoreError> {
    let mut given = given(transaction, channel, differences).await?;
    let key = |it: &PromptDifference| it.new.map(|digest| (it.name.clone(), digest));
    let is_new = |it: &&PromptDifference| key(it).is_some_and(|key| !given.texts.contains_key(&key));
    let names: Vec<&str> = differences.iter().filter(is_new).map(|it| it.name.as_str()).collect();
    // Channels with one text share its number in the tables.
    let mut numbers: HashMap<(String, Digest), u64> = HashMap::new();
    let mut last: HashMap<String, u64> = HashMap::new();
    for chunk in names.chunks(CHUNK) {
        let names = list(0, chunk.len());
        let sql = format!("SELECT prompt, number, digest FROM ps_prompt_version WHERE prompt IN {names}");
        let values = chunk.iter().map(|name| Value::from(*name)).collect();
        for row in transaction.rows(sql, values).await? {
            let (name, number) = (row.text("prompt")?, row.number("number")?);
            let last = last.entry(name.clone()).or_default();
            *last = number.max(*last);
            numbers.insert((name, row.digest("digest")?), number);
        }
    }
    let (mut texts, mut versions) = (Vec::new(), Vec::new());
    let (mut changes, mut opened) = (Vec::with_capacity(differences.len()), Vec::new());
    for difference in differences {
        let Some(digest) = difference.new else {
            changes.push(change(difference, difference.old.unwrap_or_default()));
            continue;
        };
        let name = difference.name.as_str();
        let key = (name.to_owned(), digest);
        let (number, version) = given.texts.get(&key).copied().unwrap_or_else(|| {
            let number = numbers.get(&key).copied().unwrap_or_else(|| {
                let number = last.get(name).copied().unwrap_or_default() + 1;
                texts.push(vec![name.into(), number.into(), digest.into()]);
                number
            });
            // An earlier release writes spans without versions.
            let newest = given.newest.remove(name).max(difference.old).unwrap_or_default();
            versions.push(vec![channel.into(), name.into(), number.into(), (newest + 1).into()]);
            (number, newest + 1)
        });
        opened.push(vec![channel.into(), name.into(), number.into(), revision.into()]);
        changes.push(change(difference, version));
    }
    let head = "INSERT INTO ps_prompt_version (prompt, number, digest)";
    insert(transaction, head, Box::new(texts.into_iter()), "").await?;
    let head = "INSERT INTO ps_channel_version (channel, prompt, number, version)";
    insert(transaction, head, Box::new(versions.into_iter()), "").await?;
    let closed: Vec<&str> = differences.iter().filter(|it| it.old.is_some()).map(|it| it.name.as_str()).collect();
    for chunk in closed.chunks(CHUNK) {
        let sql = format!(
            "UPDATE ps_live SET until = $1 WHERE channel = $2 AND until IS NULL AND prompt IN {}",
            list(2, chunk.len())
        );
        let mut values: Vec<Value> = vec![revision.into(), channel.into()];
        values.extend(chunk.iter().map(|name| Value::from(*name)));
        transaction.run(sql, values).await?;
    }
    let head = "INSERT INTO ps_live (channel, prompt, number, since)";
    insert(transaction, head, Box::new(opened.into_iter()), "").await?;
    Ok(changes)
}

/// Gives the texts of an earlier schema, which counted them over all channels, their numbers as versions. What retention
/// has removed is not known: a channel that has lost some goes on after all of them.
pub(crate) async fn fill(transaction: &mut Transaction) -> Result<(), StoreError> {
    let insert = "INSERT INTO ps_channel_version (channel, prompt, number, version)";
    let served = "SELECT DISTINCT channel, prompt, number, number FROM ps_live";
    transaction.run(format!("{insert} {served}"), vec![]).await?;
    let removed = "SELECT l.channel, l.prompt, 0, MAX(v.number) FROM ps_live l \
                   JOIN ps_channel c ON c.id = l.channel AND c.oldest > 1 \
                   JOIN ps_prompt_version v ON v.prompt = l.prompt \
                   GROUP BY l.channel, l.prompt HAVING MAX(v.number) > MAX(l.number)";
    transaction.run(format!("{insert} {removed}"), vec![]).await
}

/// The spans of a channel. Until an older schema is migrated, the numbers of all channels are the versions.
const LIVE: &str = "SELECT l.prompt, COALESCE(c.version, l.number) AS version, v.digest, l.since, l.until FROM ps_live l \
                    JOIN ps_prompt_version v ON v.prompt = l.prompt AND v.number = l.number \
                    LEFT JOIN ps_channel_version c \
                    ON c.channel = l.channel AND c.prompt = l.prompt AND c.number = l.number \
                    WHERE l.channel = $1";

fn live(rows: &[Row]) -> Result<Live, StoreError> {
    rows.iter().map(|row| Ok((row.text("prompt")?, (row.number("version")?, row.digest("digest")?)))).collect()
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
        version: row.number("version")?,
        digest: row.digest("digest")?,
        since: row.number("since")?,
        until: row.optional_number("until")?,
    })
}

/// Returns the newest versions of a page of prompts, by name: those whose name sorts after `after` and contains `text`.
pub(crate) async fn page(
    transaction: &mut Transaction,
    channel: i64,
    text: Option<&str>,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<Served>, StoreError> {
    // The order of Rust's strings, whatever the collation of the database.
    let prompt = if transaction.is_postgres() { "l.prompt COLLATE \"C\"" } else { "l.prompt" };
    let mut sql = format!("{LIVE} AND l.until IS NULL");
    let mut values: Vec<Value> = vec![channel.into()];
    if let Some(after) = after {
        values.push(after.into());
        sql.push_str(&format!(" AND {prompt} > ${}", values.len()));
    }
    if let Some(text) = text {
        values.push(pattern(text).into());
        sql.push_str(&format!(" AND LOWER(l.prompt) LIKE ${} ESCAPE '!'", values.len()));
    }
    sql.push_str(&format!(" ORDER BY {prompt} LIMIT {limit}"));
    transaction.rows(sql, values).await?.iter().map(served_row).collect()
}

/// Returns the newest versions of some prompts.
pub(crate) async fn standing(
    transaction: &mut Transaction,
    channel: i64,
    names: &[String],
) -> Result<Vec<Served>, StoreError> {
    let mut found = Vec::with_capacity(names.len());
    for chunk in names.chunks(CHUNK) {
        let sql = format!("{LIVE} AND l.until IS NULL AND l.prompt IN {}", list(1, chunk.len()));
        let mut values: Vec<Value> = vec![channel.into()];
        values.extend(chunk.iter().map(|name| Value::from(name.as_str())));
        for row in transaction.rows(sql, values).await? {
            found.push(served_row(&row)?);
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
        let ended = format!("{LIVE} AND l.until IN {of}");
        for row in transaction.rows(ended, values.clone()).await? {
            let (name, version) = (row.text("prompt")?, row.number("version")?);
            let change = PromptChange {
                name: name.clone(),
                version,
                previous: Some(version),
                change: PromptChangeKind::Removed,
            };
            changes.entry(row.number("until")?).or_default().insert(name, change);
        }
        let begun = format!("{LIVE} AND l.since IN {of}");
        for row in transaction.rows(begun, values).await? {
            let (name, version) = (row.text("prompt")?, row.number("version")?);
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
    let sql = format!("{LIVE} AND l.prompt = $2 AND COALESCE(c.version, l.number) = $3 ORDER BY l.since DESC LIMIT 1");
    let row = transaction.row(sql, vec![channel.into(), prompt.into(), version.into()]).await?;
    row.as_ref().map(served_row).transpose()
}
