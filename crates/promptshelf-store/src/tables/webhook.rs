//! Webhooks, and the outbox of their deliveries.

use std::time::Duration;

use crate::{
    StoreError,
    address::ChannelName,
    database::{Row, Transaction, Value, list, malformed},
    webhook::{DeadLetter, Delivery, DeliveryAttempt, Webhook, WebhookEvent, WebhookQueue},
};

/// The time after which a webhook that is in the settings of no server is forgotten, in microseconds: a week.
const FORGOTTEN: i64 = 7 * 24 * 60 * 60 * 1_000_000;

/// The time for which dead letters are kept, in microseconds: 30 days.
const DEAD_LAST: i64 = 30 * 24 * 60 * 60 * 1_000_000;

/// A next attempt that is further away was computed before the clock was set back, in microseconds.
const LONGEST_WAIT: i64 = 2 * 60 * 60 * 1_000_000;

const MAX_DUE: usize = 100;

const MAX_DEAD: usize = 1_000;

pub(crate) struct NewDelivery<'a> {
    pub(crate) channel: &'a str,
    pub(crate) event: WebhookEvent,
    pub(crate) key: &'a str,
    pub(crate) body: &'a str,
}

/// Lets one transaction at a time add to the outbox, until its end, so that numbers are in the order of commits. SQLite
/// has locked the whole file by then.
pub(crate) async fn lock(transaction: &mut Transaction) -> Result<(), StoreError> {
    if transaction.is_postgres() {
        transaction.script("SELECT pg_advisory_xact_lock(8101813018)").await?;
    }
    Ok(())
}

pub(crate) async fn wanting(transaction: &mut Transaction, event: WebhookEvent) -> Result<Vec<String>, StoreError> {
    let sql = format!("SELECT id, events FROM ps_webhook WHERE seen > {} - {FORGOTTEN} ORDER BY id", transaction.now());
    let mut ids = Vec::new();
    for row in transaction.rows(sql, vec![]).await? {
        // A newer release may know more events.
        let events: Vec<String> = row.json("events")?;
        if events.iter().any(|name| name == event.as_str()) {
            ids.push(row.text("id")?);
        }
    }
    Ok(ids)
}

pub(crate) async fn add(transaction: &mut Transaction, webhook: &str, new: &NewDelivery<'_>) -> Result<(), StoreError> {
    let now = transaction.now();
    let sql = format!(
        "INSERT INTO ps_delivery (webhook, channel, event, key, body, at, queued, attempts, due) \
         VALUES ($1, $2, $3, $4, $5, {now}, {now}, 0, {now})"
    );
    let values = vec![webhook.into(), new.channel.into(), new.event.as_str().into(), new.key.into(), new.body.into()];
    transaction.run(sql, values).await
}

/// Records the broken revision of a channel. Returns whether it is new.
pub(crate) async fn is_newly_broken(
    transaction: &mut Transaction,
    channel: &ChannelName,
    revision: u64,
) -> Result<bool, StoreError> {
    let sql = "INSERT INTO ps_broken (channel, revision) VALUES ($1, $2) ON CONFLICT (channel) \
               DO UPDATE SET revision = excluded.revision WHERE ps_broken.revision <> excluded.revision \
               RETURNING revision";
    Ok(transaction.row(sql, vec![channel.as_str().into(), revision.into()]).await?.is_some())
}

pub(crate) async fn register(transaction: &mut Transaction, webhook: &Webhook) -> Result<(), StoreError> {
    let events: Vec<&str> = webhook.events.iter().map(|event| event.as_str()).collect();
    let events = serde_json::to_string(&events).map_err(|error| StoreError::invalid(error.to_string()))?;
    let sql = format!(
        "INSERT INTO ps_webhook (id, label, events, seen) VALUES ($1, $2, $3, {}) ON CONFLICT (id) \
         DO UPDATE SET label = excluded.label, events = excluded.events, seen = excluded.seen",
        transaction.now()
    );
    transaction.run(sql, vec![webhook.id.as_str().into(), webhook.label.as_str().into(), events.into()]).await
}

/// Removes webhooks that no server has any more, with their deliveries, and old dead letters.
pub(crate) async fn clean(transaction: &mut Transaction) -> Result<(), StoreError> {
    let now = transaction.now();
    let statements = format!(
        "DELETE FROM ps_webhook WHERE seen <= {now} - {FORGOTTEN}; \
         DELETE FROM ps_delivery WHERE webhook NOT IN (SELECT id FROM ps_webhook); \
         DELETE FROM ps_delivery WHERE due IS NULL AND queued <= {now} - {DEAD_LAST}"
    );
    transaction.script(statements).await
}

pub(crate) async fn due(transaction: &mut Transaction, webhooks: &[String]) -> Result<Vec<Delivery>, StoreError> {
    let now = transaction.now();
    let sql = format!(
        "SELECT id, webhook, channel, event, key, body, attempts FROM ps_delivery \
         WHERE id IN (SELECT MIN(id) FROM ps_delivery WHERE due IS NOT NULL AND webhook IN {} \
         GROUP BY webhook, channel) AND (due <= {now} OR due > {now} + {LONGEST_WAIT}) ORDER BY id LIMIT {MAX_DUE}",
        list(0, webhooks.len())
    );
    let values: Vec<Value> = webhooks.iter().map(|id| id.as_str().into()).collect();
    transaction.rows(sql, values).await?.iter().map(delivery).collect()
}

fn delivery(row: &Row) -> Result<Delivery, StoreError> {
    Ok(Delivery {
        id: row.number("id")?,
        webhook: row.text("webhook")?,
        channel: row.text("channel")?,
        event: event(row)?,
        key: row.text("key")?,
        body: row.text("body")?,
        attempts: row.number("attempts")?,
    })
}

fn event(row: &Row) -> Result<WebhookEvent, StoreError> {
    WebhookEvent::from_name(&row.text("event")?).ok_or_else(|| malformed("an unknown event"))
}

pub(crate) async fn delete(transaction: &mut Transaction, id: u64) -> Result<(), StoreError> {
    transaction.run("DELETE FROM ps_delivery WHERE id = $1", vec![id.into()]).await
}

/// Records a failed attempt. Returns whether it was the last one.
pub(crate) async fn failed(
    transaction: &mut Transaction,
    id: u64,
    attempt: &DeliveryAttempt,
) -> Result<bool, StoreError> {
    let now = transaction.now();
    // Without the cast, the type on PostgreSQL is INTEGER.
    let sql = format!(
        "UPDATE ps_delivery SET attempts = attempts + 1, problem = $2, \
         due = CASE WHEN attempts + 1 >= $3 AND queued <= {now} - $4 THEN NULL ELSE {now} + $5 END \
         WHERE id = $1 AND due IS NOT NULL RETURNING CAST(CASE WHEN due IS NULL THEN 1 ELSE 0 END AS BIGINT)"
    );
    let values = vec![
        id.into(),
        attempt.problem.as_str().into(),
        attempt.min_attempts.into(),
        micros(attempt.retry_for),
        micros(attempt.retry_in),
    ];
    transaction.row(sql, values).await?.map_or(Ok(false), |row| Ok(row.int(0)? == 1))
}

fn micros(time: Duration) -> Value {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4).into()
}

pub(crate) async fn queues(transaction: &mut Transaction) -> Result<Vec<WebhookQueue>, StoreError> {
    let sql = "SELECT w.id, w.label, w.events, COUNT(d.due) AS pending, COUNT(d.id) - COUNT(d.due) AS dead FROM ps_webhook w \
               LEFT JOIN ps_delivery d ON d.webhook = w.id GROUP BY w.id, w.label, w.events ORDER BY w.label, w.id";
    let rows = transaction.rows(sql, vec![]).await?;
    let queue = |row: &Row| {
        let events: Vec<String> = row.json("events")?;
        Ok(WebhookQueue {
            id: row.text("id")?,
            label: row.text("label")?,
            events: events.iter().filter_map(|name| WebhookEvent::from_name(name)).collect(),
            pending: row.number("pending")?,
            dead: row.number("dead")?,
        })
    };
    rows.iter().map(queue).collect()
}

pub(crate) async fn dead(transaction: &mut Transaction, id: Option<u64>) -> Result<Vec<DeadLetter>, StoreError> {
    let which = if id.is_some() { " AND d.id = $1" } else { "" };
    let sql = format!(
        "SELECT d.id, d.webhook, COALESCE(w.label, '') AS label, d.channel, d.event, d.key, d.attempts, \
         COALESCE(d.problem, '') AS problem, d.at FROM ps_delivery d LEFT JOIN ps_webhook w ON w.id = d.webhook \
         WHERE d.due IS NULL{which} ORDER BY d.id DESC LIMIT {MAX_DEAD}"
    );
    let letter = |row: &Row| {
        Ok(DeadLetter {
            id: row.number("id")?,
            webhook: row.text("webhook")?,
            label: row.text("label")?,
            channel: row.text("channel")?,
            event: event(row)?,
            key: row.text("key")?,
            attempts: row.number("attempts")?,
            problem: row.text("problem")?,
            at: row.time("at")?,
        })
    };
    transaction.rows(sql, id.map(Value::from).into_iter().collect()).await?.iter().map(letter).collect()
}

/// Queues a dead letter again. Returns whether it exists.
pub(crate) async fn requeue(transaction: &mut Transaction, id: u64) -> Result<bool, StoreError> {
    let now = transaction.now();
    let sql = format!(
        "UPDATE ps_delivery SET queued = {now}, due = {now}, attempts = 0 WHERE id = $1 AND due IS NULL RETURNING id"
    );
    Ok(transaction.row(sql, vec![id.into()]).await?.is_some())
}
