-- The settings of a rollout as of the last start of a server, as JSON.
ALTER TABLE ps_rollout ADD COLUMN plan TEXT;

-- Every change of the share of a rollout.
CREATE TABLE ps_rollout_change (
    channel TEXT NOT NULL,
    target TEXT NOT NULL,
    -- Counts from 1 for each rollout.
    number BIGINT NOT NULL,
    -- begin, step, set or stop.
    kind TEXT NOT NULL,
    -- Whether a server made it by itself.
    is_automatic BIGINT NOT NULL,
    -- The share from then on.
    percent BIGINT NOT NULL,
    changed_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    -- In microseconds.
    at BIGINT NOT NULL,
    -- The revision of the target, and the counts until then, as JSON.
    revision BIGINT NOT NULL,
    counts TEXT NOT NULL,
    PRIMARY KEY (channel, target, number)
);
