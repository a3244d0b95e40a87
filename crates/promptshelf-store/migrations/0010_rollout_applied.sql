-- When a server last applied a rollout, exact to ten seconds, in microseconds. NULL: not since this is recorded.
ALTER TABLE ps_rollout ADD COLUMN applied_at BIGINT;
