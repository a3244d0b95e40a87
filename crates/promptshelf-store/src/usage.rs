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
