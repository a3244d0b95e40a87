-- The webhooks of servers, so that a change knows which deliveries to queue. URLs are not stored: they may be secret.
CREATE TABLE ps_webhook (
    -- Derived from the URL.
    id TEXT PRIMARY KEY,
    -- Scheme, host and port.
    label TEXT NOT NULL,
    -- A JSON list of events.
    events TEXT NOT NULL,
    -- The time at which a server last had the webhook in its settings.
    seen BIGINT NOT NULL
);

-- The outbox: one row for each event and webhook, written with the change. A delivered one is deleted.
CREATE TABLE ps_delivery (
    -- Within a channel in the order of commits.
    id {ID},
    webhook TEXT NOT NULL,
    channel TEXT NOT NULL,
    event TEXT NOT NULL,
    -- The idempotency key; equal for all webhooks of an event.
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    at BIGINT NOT NULL,
    -- The begin of the time for attempts: that of the event, or of a redelivery.
    queued BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    -- The time of the next attempt; null for a dead letter.
    due BIGINT,
    -- The problem of the last attempt.
    problem TEXT
);
CREATE INDEX ps_delivery_pending ON ps_delivery (webhook, channel, id) WHERE due IS NOT NULL;
CREATE INDEX ps_delivery_dead ON ps_delivery (id) WHERE due IS NULL;

-- The newest revision of a channel that was reported as broken, so that each is reported once.
CREATE TABLE ps_broken (
    channel TEXT PRIMARY KEY,
    revision BIGINT NOT NULL
);
