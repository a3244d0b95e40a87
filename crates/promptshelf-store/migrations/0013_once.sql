-- The first answers to changes that were sent with a key, so that a repeated one changes nothing.
CREATE TABLE ps_answer (
    caller TEXT NOT NULL,
    key TEXT NOT NULL,
    -- The digest of the request.
    request {BYTES} NOT NULL,
    at BIGINT NOT NULL,
    -- NULL while the request runs.
    status BIGINT,
    tag TEXT,
    body {BYTES},
    PRIMARY KEY (caller, key)
);
CREATE INDEX ps_answer_at ON ps_answer (at);

-- The phase of a rollout; NULL for one of an earlier release.
ALTER TABLE ps_rollout ADD COLUMN phase TEXT;
