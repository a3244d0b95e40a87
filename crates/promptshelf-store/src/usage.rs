//! Figures about the use of prompts, by hour; by day after a week.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use promptshelf_core::usage::{UsageFigures, UsageKey};

use crate::{
    StoreError,
    database::{Mode, Transaction},
    store::Store,
    tables::usage::{self, Span},
};

/// The age at which hours become days, in seconds.
const HOURS_LAST: i64 = 7 * 24 * 60 * 60;

/// The time for which batches are remembered, in seconds.
const BATCHES_LAST: i64 = 24 * 60 * 60;

const HOUR: i64 = 60 * 60;
const DAY: i64 = 24 * HOUR;

/// The most rows of a query: those of a month with a hundred keys in each hour of a week and on each day.
const MAX_ROWS: usize = 200_000;

/// Selects figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageQuery {
    /// Those of hours that end after this time; all without it.
    pub since: Option<Timestamp>,
    /// Those of this prompt.
    pub prompt: Option<String>,
}

impl Store {
    /// Returns the key of callers' hashes; the first call makes it.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn usage_key(&self) -> Result<[u8; 16], StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = usage::key(&mut transaction, uuid::Uuid::new_v4().into_bytes()).await;
        transaction.finish(result).await
    }

    /// Adds the figures of a batch to those of the hour in which it began. A batch with an id that was added before
    /// changes nothing.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn add_usage(
        &self,
        id: &str,
        at: Timestamp,
        figures: &BTreeMap<UsageKey, UsageFigures>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = add(&mut transaction, id, at, figures).await;
        transaction.finish(result).await
    }

    /// Returns figures of all keys.
    ///
    /// # Errors
    ///
    /// [`StoreError::InvalidInput`] if there are more than 200,000 rows: a later `since` or a prompt selects fewer. Errors of the
    /// database.
    pub async fn usage(&self, query: &UsageQuery) -> Result<BTreeMap<UsageKey, UsageFigures>, StoreError> {
        let mut all: BTreeMap<UsageKey, UsageFigures> = BTreeMap::new();
        for (_, key, figures) in self.usage_rows(query).await? {
            all.entry(key).or_default().merge(&figures);
        }
        Ok(all)
    }

    /// Returns figures with the start of their hour, or of their day if they are older than a week, in seconds since
    /// 1970.
    ///
    /// # Errors
    ///
    /// Those of [`usage`](Store::usage).
    pub async fn usage_rows(&self, query: &UsageQuery) -> Result<Vec<(i64, UsageKey, UsageFigures)>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let since = query.since.map_or(i64::MIN, Timestamp::as_second);
        let result = usage::select(&mut transaction, since, query.prompt.as_deref(), MAX_ROWS + 1).await;
        let rows = transaction.finish(result).await?;
        if rows.len() > MAX_ROWS {
            let reason = format!("more than {MAX_ROWS} figures; select a shorter time or one prompt");
            return Err(StoreError::InvalidInput { reason });
        }
        Ok(rows)
    }

    /// Merges the hours of days that are older than a week, and removes figures that are older than `keep`.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn roll_up_usage(&self, now: Timestamp, keep: Duration) -> Result<(), StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = roll_up(&mut transaction, now.as_second(), keep).await;
        transaction.finish(result).await
    }
}

async fn add(
    transaction: &mut Transaction,
    id: &str,
    at: Timestamp,
    figures: &BTreeMap<UsageKey, UsageFigures>,
) -> Result<(), StoreError> {
    usage::lock(transaction).await?;
    if !usage::begin_batch(transaction, id, at.as_second()).await? {
        return Ok(());
    }
    let start = at.as_second().div_euclid(HOUR) * HOUR;
    merge_into(transaction, Span { start, length: HOUR }, figures.clone()).await
}

async fn merge_into(
    transaction: &mut Transaction,
    span: Span,
    mut figures: BTreeMap<UsageKey, UsageFigures>,
) -> Result<(), StoreError> {
    let present = usage::of_span(transaction, span).await?;
    for (key, present) in present {
        if let Some(added) = figures.get_mut(&key) {
            added.merge(&present);
        }
    }
    usage::write(transaction, span, &figures).await
}

async fn roll_up(transaction: &mut Transaction, now: i64, keep: Duration) -> Result<(), StoreError> {
    usage::lock(transaction).await?;
    usage::forget_batches(transaction, now - BATCHES_LAST).await?;
    let oldest = now.saturating_sub(i64::try_from(keep.as_secs()).unwrap_or(i64::MAX));
    usage::delete_before(transaction, oldest).await?;
    let days_until = (now - HOURS_LAST).div_euclid(DAY) * DAY;
    // A day at a time: the first run after a long outage may have many.
    while let Some(first) = usage::oldest_hour(transaction, HOUR, days_until).await? {
        let start = first.div_euclid(DAY) * DAY;
        let mut day: BTreeMap<UsageKey, UsageFigures> = BTreeMap::new();
        for (_, key, figures) in usage::hours(transaction, HOUR, start, start + DAY).await? {
            day.entry(key).or_default().merge(&figures);
        }
        usage::delete_hours(transaction, HOUR, start, start + DAY).await?;
        merge_into(transaction, Span { start, length: DAY }, day).await?;
    }
    Ok(())
}

pub(crate) mod rows {
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
            latencies: Latencies::from_bytes(&row.bytes("latencies")?)
                .ok_or_else(|| malformed("malformed latencies"))?,
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
}
