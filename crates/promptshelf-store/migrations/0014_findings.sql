-- The findings of the check of a proposal's changes, as JSON; those of an earlier release are not known.
ALTER TABLE ps_proposal ADD COLUMN findings TEXT NOT NULL DEFAULT '[]';

-- Parts of contents that are not complete. `at` is the time of the first one.
CREATE TABLE ps_upload_part (
    caller TEXT NOT NULL,
    digest {BYTES} NOT NULL,
    start BIGINT NOT NULL,
    size BIGINT NOT NULL,
    -- The size of the whole content.
    whole BIGINT NOT NULL,
    at BIGINT NOT NULL,
    bytes {BYTES} NOT NULL,
    PRIMARY KEY (caller, digest, start)
);
CREATE INDEX ps_upload_part_at ON ps_upload_part (at);

-- The versions that a channel has given to texts of prompts: they tell nothing about other channels.
CREATE TABLE ps_channel_version (
    channel BIGINT NOT NULL,
    prompt TEXT NOT NULL,
    -- The number of the text in ps_prompt_version, which has those of all channels; 0 for one that retention has removed.
    number BIGINT NOT NULL,
    version BIGINT NOT NULL,
    PRIMARY KEY (channel, prompt, number),
    UNIQUE (channel, prompt, version)
);
