-- Tokens: {BYTES} is BYTEA or BLOB, {ID} an identity column. Times are microseconds since 1970 in UTC, by the clock of
-- the database. Digests are the 32 bytes of a SHA-256.

CREATE TABLE ps_library (
    id BIGINT PRIMARY KEY,
    -- One life of the store; replaced after a restore.
    epoch TEXT NOT NULL,
    -- The newest migration after which older releases must not use the store.
    major BIGINT NOT NULL
);

CREATE TABLE ps_migration (
    number BIGINT PRIMARY KEY,
    at BIGINT NOT NULL
);

CREATE TABLE ps_blob (
    digest {BYTES} PRIMARY KEY,
    size BIGINT NOT NULL,
    bytes {BYTES} NOT NULL
);

CREATE TABLE ps_channel (
    id {ID},
    name TEXT NOT NULL UNIQUE,
    -- The lock on this row orders the commits of a channel.
    revision BIGINT NOT NULL,
    -- The oldest revision with its whole content.
    oldest BIGINT NOT NULL,
    policy TEXT NOT NULL,
    policy_by TEXT NOT NULL,
    policy_at BIGINT NOT NULL
);

CREATE TABLE ps_entry (
    channel BIGINT NOT NULL,
    path TEXT NOT NULL,
    digest {BYTES} NOT NULL,
    size BIGINT NOT NULL,
    -- The first revision with this content, and the first one without it.
    since BIGINT NOT NULL,
    until BIGINT,
    PRIMARY KEY (channel, path, since)
);
CREATE UNIQUE INDEX ps_entry_open ON ps_entry (channel, path) WHERE until IS NULL;
CREATE INDEX ps_entry_since ON ps_entry (channel, since) WHERE until IS NULL;
CREATE INDEX ps_entry_until ON ps_entry (channel, until) WHERE until IS NOT NULL;

CREATE TABLE ps_proposal (
    id {ID},
    channel BIGINT NOT NULL REFERENCES ps_channel (id),
    base BIGINT NOT NULL,
    kind TEXT NOT NULL,
    message TEXT NOT NULL,
    author TEXT NOT NULL,
    state TEXT NOT NULL,
    digest {BYTES} NOT NULL,
    at BIGINT NOT NULL,
    checks TEXT NOT NULL,
    revision BIGINT
);
CREATE INDEX ps_proposal_channel ON ps_proposal (channel, state);

CREATE TABLE ps_change (
    proposal BIGINT NOT NULL REFERENCES ps_proposal (id),
    path TEXT NOT NULL,
    before {BYTES},
    after {BYTES},
    size BIGINT NOT NULL,
    PRIMARY KEY (proposal, path)
);

CREATE TABLE ps_review (
    id {ID},
    proposal BIGINT NOT NULL REFERENCES ps_proposal (id),
    digest {BYTES} NOT NULL,
    reviewer TEXT NOT NULL,
    verdict TEXT NOT NULL,
    note TEXT NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX ps_review_proposal ON ps_review (proposal);

CREATE TABLE ps_revision (
    channel BIGINT NOT NULL REFERENCES ps_channel (id),
    number BIGINT NOT NULL,
    kind TEXT NOT NULL,
    author TEXT NOT NULL,
    message TEXT NOT NULL,
    proposal BIGINT NOT NULL,
    approved_by TEXT NOT NULL,
    emergency TEXT,
    checks TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (channel, number)
);

CREATE TABLE ps_prompt_version (
    prompt TEXT NOT NULL,
    number BIGINT NOT NULL,
    digest {BYTES} NOT NULL,
    PRIMARY KEY (prompt, number),
    UNIQUE (prompt, digest)
);

CREATE TABLE ps_live (
    channel BIGINT NOT NULL,
    prompt TEXT NOT NULL,
    number BIGINT NOT NULL,
    since BIGINT NOT NULL,
    until BIGINT,
    PRIMARY KEY (channel, prompt, since)
);
CREATE UNIQUE INDEX ps_live_open ON ps_live (channel, prompt) WHERE until IS NULL;
CREATE INDEX ps_live_since ON ps_live (channel, since);
CREATE INDEX ps_live_until ON ps_live (channel, until) WHERE until IS NOT NULL;
