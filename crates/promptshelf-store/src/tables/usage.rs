//! Rows of figures about the use of prompts.

use std::collections::BTreeMap;

use promptshelf_core::usage::{CallerSketch, FormCounts, Latencies, UsageFigures, UsageKey};

use crate::{
    StoreError,
    database::{Row, Transaction, Value, insert, malformed},
};

/// The time that a row is about, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: i64,
    pub(crate) length: i64,
}

/// A row: its start, its key and its figures.
pub(crate) type UsageRow = (i64, UsageKey, UsageFigures);

const COLUMNS: &str = "start, channel, prompt, version, client, client_version, protocol, method, outcome, count, \
                       latencies, callers, left_out, taken, bytes_out, forms_accepted, forms_declined, \
                       forms_cancelled, unknown_arguments";

/// Lets one transaction at a time change figures. SQLite has locked the whole file by then.
pub(crate) async fn lock(transaction: &mut Transaction) -> Result<(), StoreError> {
    if transaction.is_postgres() {
        transaction.script("LOCK TABLE ps_usage IN SHARE ROW EXCLUSIVE MODE").await?;
    }
    Ok(())
}

/// Returns the key of callers' hashes, which is `new` before the first key.
pub(crate) async fn key(transaction: &mut Transaction, new: [u8; 16]) -> Result<[u8; 16], StoreError> {
    let insert = "INSERT INTO ps_usage_key (id, key) VALUES (1, $1) ON CONFLICT DO NOTHING";
    transaction.run(insert, vec![Value::Bytes(Some(new.to_vec()))]).await?;
    let row = transaction.row("SELECT key FROM ps_usage_key WHERE id = 1", vec![]).await?;
    let bytes = row.ok_or_else(|| malformed("no key of callers"))?.bytes(0)?;
    bytes.try_into().map_err(|_| malformed("a key that has not 16 bytes"))
}

/// Records a batch. Returns whether it is new.
pub(crate) async fn begin_batch(transaction: &mut Transaction, id: &str, at: i64) -> Result<bool, StoreError> {
    if transaction.row("SELECT at FROM ps_usage_batch WHERE id = $1", vec![id.into()]).await?.is_some() {
        return Ok(false);
    }
    transaction.run("INSERT INTO ps_usage_batch (id, at) VALUES ($1, $2)", vec![id.into(), at.into()]).await?;
    Ok(true)
}

pub(crate) async fn forget_batches(transaction: &mut Transaction, before: i64) -> Result<(), StoreError> {
    transaction.run("DELETE FROM ps_usage_batch WHERE at < $1", vec![before.into()]).await
}

/// Returns rows that end after `since`.
pub(crate) async fn select(
    transaction: &mut Transaction,
    since: i64,
    prompt: Option<&str>,
    limit: usize,
) -> Result<Vec<UsageRow>, StoreError> {
    let which = if prompt.is_some() { " AND prompt = $2" } else { "" };
    let sql = format!("SELECT {COLUMNS} FROM ps_usage WHERE start + span > $1{which} LIMIT {limit}");
    let values = std::iter::once(since.into()).chain(prompt.map(Value::from)).collect();
    transaction.rows(sql, values).await?.iter().map(row).collect()
}

pub(crate) async fn of_span(
    transaction: &mut Transaction,
    span: Span,
) -> Result<Vec<(UsageKey, UsageFigures)>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM ps_usage WHERE start = $1 AND span = $2");
    let rows = transaction.rows(sql, vec![span.start.into(), span.length.into()]).await?;
    rows.iter().map(|found| row(found).map(|(_, key, figures)| (key, figures))).collect()
}

pub(crate) async fn oldest_hour(
    transaction: &mut Transaction,
    length: i64,
    before: i64,
) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT start FROM ps_usage WHERE span = $1 AND start < $2 ORDER BY start LIMIT 1";
    transaction.row(sql, vec![length.into(), before.into()]).await?.map(|row| row.int(0)).transpose()
}

pub(crate) async fn hours(
    transaction: &mut Transaction,
    length: i64,
    from: i64,
    until: i64,
) -> Result<Vec<UsageRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM ps_usage WHERE span = $1 AND start >= $2 AND start < $3");
    let rows = transaction.rows(sql, vec![length.into(), from.into(), until.into()]).await?;
    rows.iter().map(row).collect()
}

pub(crate) async fn delete_hours(
    transaction: &mut Transaction,
    length: i64,
    from: i64,
    until: i64,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM ps_usage WHERE span = $1 AND start >= $2 AND start < $3";
    transaction.run(sql, vec![length.into(), from.into(), until.into()]).await
}

pub(crate) async fn delete_before(transaction: &mut Transaction, time: i64) -> Result<(), StoreError> {
    transaction.run("DELETE FROM ps_usage WHERE start + span <= $1", vec![time.into()]).await
}

pub(crate) async fn write(
    transaction: &mut Transaction,
    span: Span,
    figures: &BTreeMap<UsageKey, UsageFigures>,
) -> Result<(), StoreError> {
    let head = "INSERT INTO ps_usage (start, span, channel, prompt, version, client, client_version, protocol, method, \
                outcome, count, latencies, callers, left_out, taken, bytes_out, forms_accepted, forms_declined, \
                forms_cancelled, unknown_arguments)";
    let tail = "ON CONFLICT (start, span, channel, prompt, version, client, client_version, protocol, method, outcome) \
                DO UPDATE SET count = excluded.count, latencies = excluded.latencies, callers = excluded.callers, \
                left_out = excluded.left_out, taken = excluded.taken, bytes_out = excluded.bytes_out, \
                forms_accepted = excluded.forms_accepted, forms_declined = excluded.forms_declined, \
                forms_cancelled = excluded.forms_cancelled, \
                unknown_arguments = excluded.unknown_arguments";
    let rows = figures.iter().map(|(key, figures)| {
        let counts = |counts| serde_json::to_string(counts).unwrap_or_else(|_| "{}".to_owned());
        vec![
            span.start.into(),
            span.length.into(),
            key.channel.as_str().into(),
            key.prompt.as_str().into(),
            key.version.into(),
            key.client.as_str().into(),
            key.client_version.as_str().into(),
            key.protocol.as_str().into(),
            key.method.as_str().into(),
            key.outcome.as_str().into(),
            figures.count.into(),
            Value::Bytes(Some(figures.latencies.to_bytes())),
            Value::Bytes(Some(figures.callers.to_bytes())),
            counts(&figures.left_out).into(),
            counts(&figures.taken).into(),
            figures.bytes_out.into(),
            figures.forms.accepted.into(),
            figures.forms.declined.into(),
            figures.forms.cancelled.into(),
            figures.unknown_arguments.into(),
        ]
    });
    insert(transaction, head, Box::new(rows), tail).await
}

fn row(row: &Row) -> Result<UsageRow, StoreError> {
    let key = UsageKey {
        channel: row.text("channel")?,
        prompt: row.text("prompt")?,
        version: row.number("version")?,
        client: row.text("client")?,
        client_version: row.text("client_version")?,
        protocol: row.text("protocol")?,
        method: row.text("method")?,
        outcome: row.text("outcome")?,
    };
    let figures = UsageFigures {
        count: row.number("count")?,
        latencies: Latencies::from_bytes(&row.bytes("latencies")?).ok_or_else(|| malformed("malformed latencies"))?,
        callers: CallerSketch::from_bytes(&row.bytes("callers")?).ok_or_else(|| malformed("malformed callers"))?,
        left_out: row.json("left_out")?,
        taken: row.json("taken")?,
        bytes_out: row.number("bytes_out")?,
        forms: FormCounts {
            accepted: row.number("forms_accepted")?,
            declined: row.number("forms_declined")?,
            cancelled: row.number("forms_cancelled")?,
        },
        unknown_arguments: row.number("unknown_arguments")?,
    };
    Ok((row.int("start")?, key, figures))
}
