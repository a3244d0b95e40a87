-- Figures about the use of prompts: one row for each hour and key. Days replace hours after a week.

CREATE TABLE ps_usage (
    -- The begin of the hour, or of the day, in seconds since 1970.
    start BIGINT NOT NULL,
    -- The length in seconds.
    span BIGINT NOT NULL,
    channel TEXT NOT NULL,
    prompt TEXT NOT NULL,
    version BIGINT NOT NULL,
    client TEXT NOT NULL,
    client_version TEXT NOT NULL,
    protocol TEXT NOT NULL,
    method TEXT NOT NULL,
    outcome TEXT NOT NULL,
    count BIGINT NOT NULL,
    latencies {BYTES} NOT NULL,
    callers {BYTES} NOT NULL,
    left_out TEXT NOT NULL,
    PRIMARY KEY (start, span, channel, prompt, version, client, client_version, protocol, method, outcome)
);

-- Batches that were written, so that none is added twice after a connection broke during its commit.
CREATE TABLE ps_usage_batch (
    id TEXT PRIMARY KEY,
    at BIGINT NOT NULL
);

-- The key of callers' hashes, which all servers of the store share.
CREATE TABLE ps_usage_key (
    id BIGINT PRIMARY KEY,
    key {BYTES} NOT NULL
);
