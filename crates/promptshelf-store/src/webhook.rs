//! Webhooks as a store knows them: events, deliveries and dead letters.
//!
//! Rows of the outbox are written in the transaction of the change that they announce (`announce`), and read by the server
//! that delivers (`outbox`). Sending them, with the URLs and secrets of the operator's settings, is deliberately the task
//! of the server.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

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
