-- Results of evaluations: programs of the operator that judge a version of a prompt, often with a model.
CREATE TABLE ps_evaluation (
    id {ID},
    name TEXT NOT NULL,
    prompt TEXT NOT NULL,
    -- The digest of the prompt's file and all files that it brings in.
    digest {BYTES} NOT NULL,
    -- JSON: scores, thresholds, model, cost, duration.
    summary TEXT NOT NULL,
    -- JSON: the results of single cases.
    cases TEXT NOT NULL,
    author TEXT NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX ps_evaluation_prompt ON ps_evaluation (prompt, name, digest);

-- The prompts that an open proposal adds or changes, as of its last check. A release without this table deletes proposals
-- without knowing of it.
CREATE TABLE ps_proposal_prompt (
    proposal BIGINT NOT NULL REFERENCES ps_proposal (id) ON DELETE CASCADE,
    prompt TEXT NOT NULL,
    digest {BYTES} NOT NULL,
    PRIMARY KEY (proposal, prompt)
);
