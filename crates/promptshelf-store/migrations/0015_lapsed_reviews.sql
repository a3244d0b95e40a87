-- 1 for an approval that does not count any more, since a policy took the review from a role.
ALTER TABLE ps_review ADD COLUMN lapsed BIGINT NOT NULL DEFAULT 0;
