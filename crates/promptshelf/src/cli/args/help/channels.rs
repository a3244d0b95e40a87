//! Help texts of the commands for channels.

pub(in crate::args) const INIT_EXAMPLES: &str = "\
A new library has three prompts, a partial that they share, a test and its
settings. Files that are there already stay as they are.

The SQLite file of a store is created; a PostgreSQL database has to exist. A
password can be left out of the URL: PGPASSWORD and the password file are used
too.

Examples:
  promptshelf init
  promptshelf init my-prompts
  promptshelf init sqlite:team.db --from prompts
  promptshelf serve sqlite:team.db
  PROMPTSHELF_STORE=postgres://prompts@db.example.com/prompts promptshelf init";

pub(in crate::args) const PUBLISH_EXAMPLES: &str = "\
Files that differ from the base are changed in the channel. The base is the
revision that the folder was pulled from, or the present one for other folders.
If someone else has changed one of these files since, the exit code is 14 and
nothing changes. Hidden files are never published.

If the policy of the channel requires more, such as approvals, the result is an
open proposal. JSON: {\"channel\",\"proposal\",\"state\",\"revision\"}, where the
state is published or open, and the revision of an open one is null.

Examples:
  promptshelf publish prompts --store sqlite:team.db -m \"Shorter review\"
  promptshelf publish prompts --store sqlite:team.db --dry-run
  promptshelf publish prompts --store sqlite:team.db -m \"As asked\" --proposal 7
  promptshelf publish prompts --url https://prompts.example.com -m \"As asked\"
  promptshelf publish prompts --store sqlite:team.db -m \"Undo the leak\" \\
    --emergency \"prompt shows customer data\"";

pub(in crate::args) const PULL_EXAMPLES: &str = "\
The folder remembers the revision in the hidden file .promptshelf-base, which is
never served or published. A folder with local changes is not changed.

Examples:
  promptshelf pull sqlite:team.db prompts
  promptshelf pull sqlite:team.db#staging@12 prompts-12
  promptshelf pull postgres://prompts@db.example.com/prompts prompts
  promptshelf pull --url https://prompts.example.com#staging prompts";

pub(in crate::args) const PULL_USAGE: &str = "promptshelf pull [OPTIONS] [STORE[#CHANNEL[@REVISION]]] <FOLDER>";

pub(in crate::args) const HISTORY_EXAMPLES: &str = "\
Examples:
  promptshelf history --store sqlite:team.db
  promptshelf history code_review --store sqlite:team.db
  promptshelf history --at 2027-01-31T14:05:00Z --store sqlite:team.db
  promptshelf history --store sqlite:team.db --json | jq '.revisions[0].number'";

pub(in crate::args) const DIFF_EXAMPLES: &str = "\
A word that contains `/` or begins with `.` is the path of a folder.

Examples:
  promptshelf diff 11 12 --store sqlite:team.db
  promptshelf diff production staging --rendered --store sqlite:team.db
  promptshelf diff production ./prompts --store sqlite:team.db";

pub(in crate::args) const PROPOSALS_EXAMPLES: &str = "\
Examples:
  promptshelf proposals --store sqlite:team.db
  promptshelf proposals 7 --store sqlite:team.db";

pub(in crate::args) const APPROVE_EXAMPLES: &str = "\
An approval is of exactly the changes that were read: --digest names them, as
`proposals NUMBER` shows it. It does not count any more once the author changes
the proposal. What opens something, and with `policy --breaking off` what breaks
calls, needs a --confirm each.

Examples:
  promptshelf proposals 7 --store sqlite:team.db
  promptshelf approve 7 --digest 3f9a41c2 --store sqlite:team.db
  promptshelf approve 7 --digest 3f9a41c2 --confirm access-opened:payroll \\
    --url https://prompts.example.com";

pub(in crate::args) const PROMOTE_EXAMPLES: &str = "\
A promotion takes what the source has changed since the last one. What only
the target has or has changed stays, and is named; a file that both have
changed is a conflict (exit code 14). It is a proposal like any other: if the
policy of the channel requires more, it stays open. A prompt brings in its
partials and attachments; --dry-run lists the other prompts that change with
them, and the calls of the last 30 days that would fail.

Examples:
  promptshelf promote --from staging --to production -m \"Release 12\" \\
    --store sqlite:team.db
  promptshelf promote --from staging --to production --prompt code_review \\
    --dry-run --store sqlite:team.db";

pub(in crate::args) const ROLLBACK_EXAMPLES: &str = "\
A rollback makes a new revision with the old contents: history only grows.

Examples:
  promptshelf rollback --to 11 -m \"Reviews became vague\" --store sqlite:team.db
  promptshelf rollback --to 11 --prompt code_review --dry-run \\
    --store sqlite:team.db";

pub(in crate::args) const POLICY_EXAMPLES: &str = "\
Every change is kept in the history. Through a server, a policy that is looser
than a present one with approvals is a proposal, and needs these approvals.

Examples:
  promptshelf policy --store sqlite:team.db
  promptshelf policy --store sqlite:team.db --channel production \\
    --approvals 1 --four-eyes on --checks warnings --tests on
  promptshelf policy --store sqlite:team.db --channel production \\
    --evaluation quality --no-regression on";

pub(in crate::args) const EVALUATE_EXAMPLES: &str = "\
An evaluation is a program of [[evaluation]] in server.toml. It reads JSON from
stdin: {\"prompt\",\"version\",\"digest\",\"cases\":[{\"name\",\"arguments\",
\"messages\"}]}; a version that is not published can be null. The cases are the
tests of the prompt that expect messages, otherwise one with sample arguments.
It prints JSON: {\"scores\":{\"score\":0.93},\"cases\":[{\"score\",\"passed\",
\"reason\"}],\"model\",\"cost\"}. Only the scores are required; higher is better.

Every result is stored with the digest of the version, also one below a
threshold; the exit code is 1 then. A program that fails stores nothing.

Examples:
  promptshelf evaluate --proposal 7 --config server.toml --store sqlite:team.db
  promptshelf evaluate code_review --config server.toml --store sqlite:team.db
  promptshelf evaluate --missing --url https://prompts.example.com";

pub(in crate::args) const STORE_EXAMPLES: &str = "\
Every command brings the schema up to date when it opens a store; this one does
nothing else.

Examples:
  promptshelf store migrate --check --store sqlite:team.db";

pub(in crate::args) const USAGE_EXAMPLES: &str = "\
A server counts calls by prompt, version, client, method and outcome, and keeps
no contents and no values. Fewer than 5 callers are not shown. Deprecated
prompts are marked; those without calls in this time are listed.

JSON: {\"prompts\":[{\"name\",\"version\",\"client\",\"method\",\"outcome\",
\"count\",\"callers\",\"p50Ms\",\"p95Ms\",\"leftOut\",\"taken\",\"bytesOut\",
\"forms\",\"deprecated\"}],\"unused\":[NAME],\"unusedTotal\"}; few callers are
null.

Examples:
  promptshelf usage --store sqlite:team.db
  promptshelf usage code_review --store sqlite:team.db --since 7d --detail
  promptshelf usage --url https://prompts.example.com --csv > usage.csv";

pub(in crate::args) const ROLLOUT_EXAMPLES: &str = "\
A server with [[rollout]] in server.toml begins a rollout; the store has its
share from then on, and all servers of the store follow it.

JSON: {\"rollouts\":[{\"channel\",\"to\",\"percent\",\"stopped\",\"changedBy\",
\"changedAt\",\"reason\",\"revision\",\"counts\",\"plan\",\"next\",\"history\":[{
\"number\",\"kind\",\"automatic\",\"percent\",\"changedBy\",\"reason\",\"at\",
\"revision\",\"counts\"}]}]}. With --url, set and stop need the scope
library:publish.

Examples:
  promptshelf rollout list --store sqlite:team.db
  promptshelf rollout list --history --store sqlite:team.db
  promptshelf rollout set production 25 --url https://prompts.example.com
  promptshelf rollout stop production -m \"Reviews became vague\" \\
    --store sqlite:team.db";
