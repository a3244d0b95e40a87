-- Requests to read a source again, for all servers that use the store.
CREATE TABLE ps_source_signal (
    source TEXT PRIMARY KEY,
    -- The number of requests. A server compares it with the one that it has read.
    signals BIGINT NOT NULL
);
