-- Further figures. A release without these columns leaves them as they are when it adds to a row.
ALTER TABLE ps_usage ADD COLUMN taken TEXT NOT NULL DEFAULT '{}';
ALTER TABLE ps_usage ADD COLUMN bytes_out BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ps_usage ADD COLUMN forms_accepted BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ps_usage ADD COLUMN forms_declined BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ps_usage ADD COLUMN forms_cancelled BIGINT NOT NULL DEFAULT 0;
