-- Identity of revisions, history of policies, tokens, uploads by caller.

-- Policies and reviews.

-- The policy that the revision met, as JSON; NULL for revisions of earlier releases.
ALTER TABLE ps_revision ADD COLUMN policy TEXT;

-- A proposed policy with the one that it replaces, as JSON; NULL for proposals of files.
ALTER TABLE ps_proposal ADD COLUMN policy TEXT;
-- The channel and the revision that a promotion copies, and whether it copies all of it.
ALTER TABLE ps_proposal ADD COLUMN source BIGINT;
ALTER TABLE ps_proposal ADD COLUMN source_revision BIGINT;
ALTER TABLE ps_proposal ADD COLUMN source_whole BIGINT;
-- What the changes break and open for callers, as JSON.
ALTER TABLE ps_proposal ADD COLUMN effects TEXT NOT NULL DEFAULT '[]';

-- The names of the effects that an approval confirms, as JSON.
ALTER TABLE ps_review ADD COLUMN confirmed TEXT NOT NULL DEFAULT '[]';

CREATE TABLE ps_policy_change (
    id {ID},
    channel BIGINT NOT NULL REFERENCES ps_channel (id),
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    -- NULL if the change made the channel.
    before TEXT,
    after TEXT NOT NULL,
    message TEXT NOT NULL,
    -- The proposal that asked for it; NULL for a change that needed none.
    proposal BIGINT,
    -- JSON: the reviewers who approved it, and the reason of an emergency.
    approved_by TEXT NOT NULL,
    emergency TEXT,
    -- 1 for a change by an account of the database itself.
    by_operator BIGINT NOT NULL
);
CREATE INDEX ps_policy_change_channel ON ps_policy_change (channel);

-- Tokens for the sign-in of servers. A revoked one stays, so that records with its name can be explained.
CREATE TABLE ps_token (
    id {ID},
    name TEXT NOT NULL,
    -- The SHA-256 of the whole token, which is stored nowhere.
    digest {BYTES} NOT NULL UNIQUE,
    -- JSON lists of texts.
    scopes TEXT NOT NULL,
    roles TEXT NOT NULL,
    created BIGINT NOT NULL,
    creator TEXT NOT NULL,
    expires BIGINT,
    revoked BIGINT,
    revoker TEXT,
    -- The time of the last use, exact to a minute.
    used BIGINT
);

-- The contents that callers have uploaded: they may refer to them by digest.
CREATE TABLE ps_upload (
    caller TEXT NOT NULL,
    digest {BYTES} NOT NULL,
    size BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (caller, digest)
);
CREATE INDEX ps_entry_digest ON ps_entry (digest);

-- The chain of revisions: the digest of the revision before, that of all files, and that of the revision itself.
ALTER TABLE ps_revision ADD COLUMN parent {BYTES};
ALTER TABLE ps_revision ADD COLUMN tree {BYTES};
ALTER TABLE ps_revision ADD COLUMN digest {BYTES};
-- The digest of a revision, and its number: an earlier release that publishes changes neither.
ALTER TABLE ps_channel ADD COLUMN digest {BYTES};
ALTER TABLE ps_channel ADD COLUMN chained BIGINT;

-- The seconds by which the revision before is later, if the clock was wrong then.
ALTER TABLE ps_revision ADD COLUMN clock_ahead BIGINT;
