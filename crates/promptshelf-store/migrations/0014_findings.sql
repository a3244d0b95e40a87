-- The findings of the check of a proposal's changes, as JSON; those of an earlier release are not known.
ALTER TABLE ps_proposal ADD COLUMN findings TEXT NOT NULL DEFAULT '[]';
