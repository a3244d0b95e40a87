-- Comments of reviewers and authors. A release without this table deletes proposals without knowing of them, so they go
-- with their proposal.
CREATE TABLE ps_comment (
    id {ID},
    proposal BIGINT NOT NULL REFERENCES ps_proposal (id) ON DELETE CASCADE,
    -- The digest of the changes that the comment is about.
    digest {BYTES} NOT NULL,
    -- The changed file; null for a comment on the whole proposal.
    path TEXT,
    -- The content that has the line: `before` or `after`; null for a comment on the whole file.
    side TEXT,
    line BIGINT,
    author TEXT NOT NULL,
    text TEXT NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX ps_comment_proposal ON ps_comment (proposal);
