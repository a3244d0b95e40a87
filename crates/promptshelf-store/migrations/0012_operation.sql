-- The calls with an argument that the prompt does not have.
ALTER TABLE ps_usage ADD COLUMN unknown_arguments BIGINT NOT NULL DEFAULT 0;
