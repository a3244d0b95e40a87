-- Guarded rollouts: the share of the callers of a channel that are served another channel.
CREATE TABLE ps_rollout (
    channel TEXT NOT NULL,
    target TEXT NOT NULL,
    percent BIGINT NOT NULL,
    -- Whether it was stopped; the share is 0 then.
    is_stopped BIGINT NOT NULL,
    -- The last change of the share: its author, its reason, and its time in microseconds.
    changed_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    changed_at BIGINT NOT NULL,
    -- Counts and evidence, as JSON.
    progress TEXT NOT NULL,
    PRIMARY KEY (channel, target)
);
