//! Webhooks as a store knows them: events, deliveries and dead letters.
//!
//! Rows of the outbox are written in the transaction of the change that they announce (`announce`), and read by the server
//! that delivers (`DeliveryLock`). Sending them, with the URLs and secrets of the operator's settings, is deliberately the task
//! of the server.

use std::{collections::BTreeSet, fmt, time::Duration};

use jiff::Timestamp;
use serde::{Deserialize, Serialize, ser::SerializeStruct as _};

use crate::{
    StoreError,
    address::ChannelName,
    announce,
    check::CheckSummary,
    database::{Guard, Mode, Transaction},
    model::{Policy, PolicyChange, PromptChange, Proposal, Review, RevisionKind, Verdict},
    rollout::{RolloutCounts, RolloutState},
    rollout_report::RolloutChangeKind,
    store::Store,
    tables::webhook,
};

/// An event that webhooks announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WebhookEvent {
    /// A revision was published or promoted.
    Published,
    /// A channel returned to an earlier state, which is a new revision.
    RolledBack,
    /// A proposal was made, or has other changes, and waits for reviews.
    Proposed,
    /// A proposal was approved or rejected.
    Reviewed,
    /// The newest revision has errors, or a server cannot load it.
    Broken,
    /// The policy of a channel was changed.
    PolicyChanged,
    /// A rollout has begun.
    RolloutStarted,
    /// The share of a rollout has changed, or it was paused or resumed.
    RolloutStep,
    /// A rollout was stopped, by a server itself or by a person.
    RolloutStopped,
    /// The new version of a rollout was promoted.
    RolloutFinished,
}

impl WebhookEvent {
    /// All events.
    pub const ALL: [WebhookEvent; 10] = [
        WebhookEvent::Published,
        WebhookEvent::RolledBack,
        WebhookEvent::Proposed,
        WebhookEvent::Reviewed,
        WebhookEvent::Broken,
        WebhookEvent::PolicyChanged,
        WebhookEvent::RolloutStarted,
        WebhookEvent::RolloutStep,
        WebhookEvent::RolloutStopped,
        WebhookEvent::RolloutFinished,
    ];

    /// Returns the name that JSON, the settings and the database use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            WebhookEvent::Published => "published",
            WebhookEvent::RolledBack => "rolled-back",
            WebhookEvent::Proposed => "proposed",
            WebhookEvent::Reviewed => "reviewed",
            WebhookEvent::Broken => "broken",
            WebhookEvent::PolicyChanged => "policy-changed",
            WebhookEvent::RolloutStarted => "rollout-started",
            WebhookEvent::RolloutStep => "rollout-step",
            WebhookEvent::RolloutStopped => "rollout-stopped",
            WebhookEvent::RolloutFinished => "rollout-finished",
        }
    }

    /// Returns the event with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<WebhookEvent> {
        WebhookEvent::ALL.into_iter().find(|event| event.as_str() == name)
    }
}

/// A webhook of a server, without its URL, which may be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Identifies the URL.
    pub id: String,
    /// The name for people: scheme, host and port of the URL.
    pub label: String,
    /// The events that it wants.
    pub events: BTreeSet<WebhookEvent>,
}

/// An event that waits for its delivery to a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its number in the store.
    pub id: u64,
    /// The id of the webhook.
    pub webhook: String,
    /// The channel.
    pub channel: String,
    /// The event.
    pub event: WebhookEvent,
    /// The idempotency key: equal in every attempt, and for all webhooks.
    pub key: String,
    /// The JSON text to send, at most about 100 KiB.
    pub body: String,
    /// The number of attempts so far.
    pub attempts: u64,
}

/// A failed attempt, and the rules for the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryAttempt {
    /// The problem, without secrets.
    pub problem: String,
    /// The time until the next attempt.
    pub retry_in: Duration,
    /// The time since the event after which a failure is the last one.
    pub retry_for: Duration,
    /// The least number of attempts before the last one.
    pub min_attempts: u64,
}

/// The deliveries of a webhook, counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WebhookQueue {
    /// Identifies the webhook's URL, which is not shown: it may be secret.
    pub id: String,
    /// Scheme, host and port of the URL.
    pub label: String,
    /// The events that it wants.
    pub events: Vec<WebhookEvent>,
    /// The number of deliveries that wait for an attempt.
    pub pending: u64,
    /// The number of dead letters.
    pub dead: u64,
}

/// A delivery that was given up, until an administrator queues it again. It is removed after 30 days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// Its number in the store.
    pub id: u64,
    /// The id of the webhook.
    pub webhook: String,
    /// Scheme, host and port of the webhook's URL.
    pub label: String,
    /// The channel of the event.
    pub channel: String,
    /// The event.
    pub event: WebhookEvent,
    /// The idempotency key, with which it was sent and would be sent again.
    pub key: String,
    /// The number of attempts.
    pub attempts: u64,
    /// The problem of the last attempt.
    pub problem: String,
    /// The time of the event.
    pub at: Timestamp,
}

const MAX_PROMPTS: usize = 100;

const MAX_FINDINGS: (usize, usize) = (10, 500);

/// The details of an event. Empty ones are left out.
#[derive(Clone, Copy, Default)]
pub(crate) struct Announced<'a> {
    pub(crate) proposal: Option<&'a Proposal>,
    pub(crate) revision: Option<u64>,
    pub(crate) approved_by: &'a [String],
    pub(crate) emergency: Option<&'a str>,
    pub(crate) review: Option<&'a Review>,
    pub(crate) lacks: &'a [String],
    pub(crate) prompts: &'a [PromptChange],
    pub(crate) findings: &'a [String],
    pub(crate) policy: Option<&'a PolicyChange>,
    pub(crate) rollout: Option<RolloutBody<'a>>,
}

#[derive(Clone, Copy)]
pub(crate) struct RolloutBody<'a> {
    pub(crate) state: &'a RolloutState,
    pub(crate) kind: RolloutChangeKind,
    pub(crate) is_automatic: bool,
    pub(crate) counts: &'a RolloutCounts,
}

impl Serialize for RolloutBody<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let RolloutState { target, percent, phase, .. } = self.state;
        let mut body = serializer.serialize_struct("Rollout", 6)?;
        body.serialize_field("to", target)?;
        body.serialize_field("change", &self.kind)?;
        body.serialize_field("percent", percent)?;
        body.serialize_field("state", phase)?;
        body.serialize_field("automatic", &self.is_automatic)?;
        body.serialize_field("counts", self.counts)?;
        body.end()
    }
}

impl<'a> Announced<'a> {
    pub(crate) fn of(proposal: &'a Proposal) -> Announced<'a> {
        Announced { proposal: Some(proposal), revision: proposal.revision, ..Announced::default() }
    }

    pub(crate) fn of_policy(change: &'a PolicyChange) -> Announced<'a> {
        Announced { policy: Some(change), emergency: change.emergency.as_deref(), ..Announced::default() }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Body<'a> {
    id: &'a str,
    event: WebhookEvent,
    channel: &'a ChannelName,
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proposal: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<RevisionKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review: Option<ReviewBody<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    approved_by: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    emergency: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    lacks: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<&'a CheckSummary>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<String>,
    #[serde(skip_serializing_if = "<[PromptChange]>::is_empty")]
    prompts: &'a [PromptChange],
    #[serde(skip_serializing_if = "Option::is_none")]
    more_prompts: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<PolicyBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rollout: Option<RolloutBody<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyBody<'a> {
    before: Option<&'a Policy>,
    after: &'a Policy,
    #[serde(skip_serializing_if = "Option::is_none")]
    by_operator: Option<bool>,
}

#[derive(Serialize)]
struct ReviewBody<'a> {
    reviewer: &'a str,
    verdict: Verdict,
    note: &'a str,
}

impl<'a> Body<'a> {
    pub(crate) fn new(
        id: &'a str,
        event: WebhookEvent,
        channel: &'a ChannelName,
        at: Timestamp,
        change: Announced<'a>,
    ) -> Body<'a> {
        let Announced {
            proposal,
            revision,
            approved_by,
            emergency,
            review,
            lacks,
            prompts,
            findings,
            policy: changed,
            rollout,
        } = change;
        let proposed = proposal.and_then(|proposal| proposal.policy.as_ref());
        let proposed = proposed.map(|it| PolicyBody { before: Some(&it.before), after: &it.after, by_operator: None });
        let made = changed.map(|it| PolicyBody {
            before: it.before.as_ref(),
            after: &it.after,
            by_operator: Some(it.by_operator),
        });
        let shown = &prompts[..prompts.len().min(MAX_PROMPTS)];
        let (count, length) = MAX_FINDINGS;
        Body {
            id,
            event,
            channel,
            at,
            revision,
            proposal: proposal.map(|proposal| proposal.id).or(changed.and_then(|changed| changed.proposal)),
            kind: proposal.map(|proposal| proposal.kind),
            author: proposal
                .map(|proposal| proposal.author.as_str())
                .or(changed.map(|changed| changed.actor.as_str()))
                .or(rollout.map(|rollout| rollout.state.changed_by.as_str())),
            message: proposal
                .map(|proposal| proposal.message.as_str())
                .or(changed.map(|changed| changed.message.as_str()))
                .or(rollout.map(|rollout| rollout.state.reason.as_str())),
            review: review.map(|review| ReviewBody {
                reviewer: &review.reviewer,
                verdict: review.verdict,
                note: &review.note,
            }),
            approved_by,
            emergency,
            lacks,
            checks: proposal.map(|proposal| &proposal.checks),
            findings: findings.iter().take(count).map(|finding| finding.chars().take(length).collect()).collect(),
            prompts: shown,
            more_prompts: Some(prompts.len() - shown.len()).filter(|more| *more > 0),
            policy: made.or(proposed),
            rollout,
        }
    }

    pub(crate) fn to_json(&self) -> Result<String, StoreError> {
        serde_json::to_string(self).map_err(|error| StoreError::invalid(error.to_string()))
    }
}

/// The lock of the process that delivers: only one process of a store has it at a time. It ends when it is dropped, and
/// with the process.
pub struct DeliveryLock(Guard);

impl fmt::Debug for DeliveryLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeliveryLock")
    }
}

impl DeliveryLock {
    /// Returns whether the lock is still held. It has to be called every few seconds: PostgreSQL ends the lock of a
    /// process that is silent for a minute.
    pub async fn is_held(&mut self) -> bool {
        self.0.is_held().await
    }

    /// Releases the lock.
    pub async fn release(self) {
        self.0.release().await;
    }
}

impl Store {
    /// Makes webhooks known, so that later changes queue deliveries for them; each server repeats it. Webhooks that no
    /// server has registered for a week are forgotten with their deliveries, and dead letters after 30 days.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn register_webhooks(&self, webhooks: &[Webhook]) -> Result<(), StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = register(&mut transaction, webhooks).await;
        transaction.finish(result).await
    }

    /// Takes the lock for deliveries, or returns `None` if another process has it.
    ///
    /// # Errors
    ///
    /// Errors of the database, and of the lock file next to an SQLite database.
    pub async fn lock_deliveries(&self) -> Result<Option<DeliveryLock>, StoreError> {
        Ok(Guard::try_lock(self.database(), self.url()).await?.map(DeliveryLock))
    }

    /// Returns the deliveries to the webhooks with these ids whose time has come: for each channel the oldest one that
    /// is pending, because the others have to wait for it.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn due_deliveries(&self, webhooks: &[String]) -> Result<Vec<Delivery>, StoreError> {
        if webhooks.is_empty() {
            return Ok(Vec::new());
        }
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = webhook::due(&mut transaction, webhooks).await;
        transaction.finish(result).await
    }

    /// Records that a delivery has arrived.
    ///
    /// # Errors
    ///
    /// Errors of the database. The event is then sent again.
    pub async fn delivered(&self, id: u64) -> Result<(), StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = webhook::delete(&mut transaction, id).await;
        transaction.finish(result).await
    }

    /// Records a failed attempt. Returns whether the delivery is a dead letter now.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn delivery_failed(&self, id: u64, attempt: &DeliveryAttempt) -> Result<bool, StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = webhook::failed(&mut transaction, id, attempt).await;
        transaction.finish(result).await
    }

    /// Returns the webhooks with the numbers of their deliveries.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn webhooks(&self) -> Result<Vec<WebhookQueue>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = webhook::queues(&mut transaction).await;
        transaction.finish(result).await
    }

    /// Returns the dead letters, the newest first; at most 1,000.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn dead_letters(&self) -> Result<Vec<DeadLetter>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = webhook::dead(&mut transaction, None).await;
        transaction.finish(result).await
    }

    /// Returns a dead letter.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn dead_letter(&self, id: u64) -> Result<Option<DeadLetter>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = webhook::dead(&mut transaction, Some(id)).await;
        Ok(transaction.finish(result).await?.pop())
    }

    /// Queues a dead letter again. It has the time of a new event until it is given up, and comes before later events of
    /// its channel that wait.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if it is not a dead letter, and errors of the database.
    pub async fn redeliver(&self, id: u64) -> Result<(), StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = webhook::requeue(&mut transaction, id).await;
        if transaction.finish(result).await? {
            Ok(())
        } else {
            Err(StoreError::not_found(format!("the dead letter {id}")))
        }
    }

    /// Announces that a server cannot load the newest revision of a channel; once for each revision.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] for an unknown channel, and errors of the database.
    pub async fn report_broken(&self, name: &ChannelName, revision: u64, problem: &str) -> Result<(), StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = announce::broken(&mut transaction, name, revision, problem).await;
        transaction.finish(result).await
    }
}

async fn register(transaction: &mut Transaction, webhooks: &[Webhook]) -> Result<(), StoreError> {
    // In the order of ids, so that two servers never wait for each other.
    let mut webhooks: Vec<&Webhook> = webhooks.iter().collect();
    webhooks.sort_by(|one, other| one.id.cmp(&other.id));
    webhook::lock(transaction).await?;
    for one in webhooks {
        webhook::register(transaction, one).await?;
    }
    webhook::clean(transaction).await
}

pub(crate) mod rows {
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
        let sql =
            format!("SELECT id, events FROM ps_webhook WHERE seen > {} - {FORGOTTEN} ORDER BY id", transaction.now());
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

    pub(crate) async fn add(
        transaction: &mut Transaction,
        webhook: &str,
        new: &NewDelivery<'_>,
    ) -> Result<(), StoreError> {
        let now = transaction.now();
        let sql = format!(
            "INSERT INTO ps_delivery (webhook, channel, event, key, body, at, queued, attempts, due) \
             VALUES ($1, $2, $3, $4, $5, {now}, {now}, 0, {now})"
        );
        let values =
            vec![webhook.into(), new.channel.into(), new.event.as_str().into(), new.key.into(), new.body.into()];
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
}
