//! Help texts below the options: examples, settings and exit codes. Lines have at most 80 columns, the width of most
//! terminals: clap wraps longer ones, and with them the tables.

use super::words;
use crate::{exit::Exit, launcher, settings};

/// Returns six lines for people who start the program alone.
pub(super) fn first_steps() -> String {
    let command = launcher::command();
    let line = |words: &str, about: &str| {
        format!("  {:<width$}  {about}\n", format!("{command} {words}"), width = command.len() + 23)
    };
    [
        concat!(
            "promptshelf ",
            env!("CARGO_PKG_VERSION"),
            " turns a folder of prompt files into an MCP prompt server.\n"
        )
        .to_owned(),
        line("init my-prompts", "make a library with examples"),
        line("serve my-prompts --open", "serve it, and open its page"),
        line("check my-prompts", "report every mistake at its line"),
        line("list my-prompts", "list its prompts"),
        line("install my-prompts", "see which clients are here"),
        line("help", "list all commands and pages of the guide"),
        "\nThe page is at http://127.0.0.1:8080 while `serve` runs.\n".to_owned(),
        format!("The guide begins with `{command} help first-steps`.\n"),
    ]
    .concat()
}

pub(super) const EXAMPLES: &str = "\
Examples:
  promptshelf serve prompts --open
  promptshelf check prompts
  promptshelf get code_review code=@src/main.rs";

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  promptshelf serve prompts                       HTTP on a terminal or by settings, else stdio
  promptshelf serve prompts --stdio               the mode that clients start
  promptshelf serve prompts --http 127.0.0.1:0    on a free port
  promptshelf serve prompts --http 0.0.0.0:80 --allow-remote \\
    --allow-host prompts.example.com
  promptshelf serve sqlite:team.db#staging        a channel of a store
  promptshelf serve prompts --edit                the page edits the folder
  promptshelf serve prompts --open                opens the page in a browser
  promptshelf serve 'git+https://git.example.com/prompts.git#main:team'";

const SERVE_SETTINGS: &str = "\
Settings are keys of server.toml, and some also flags and variables. A flag
overrides the variable, and the variable overrides the file. Paths in the file
are relative to its folder. `promptshelf schema server` prints the JSON Schema
of the file, with a description of each key.

Clients can occupy at most 128 KiB of memory for each connection, twice
request-bytes, and response-bytes (768 MiB by default), in addition to the
library and the prompts that are rendered at the time. There are fewer
connections if the system permits fewer open files.

Environment only:
  PROMPTSHELF_STORE             the store, if LIBRARY is left out; keeps its
                                password out of the list of processes
  PROMPTSHELF_CHANNELS          the channels next to the default one
  PROMPTSHELF_CONFIG            the path of server.toml
  PROMPTSHELF_STATE_KEY         a secret of at least 16 bytes that several
                                servers share, so that a guided prompt can start
                                on one and end on another
  PROMPTSHELF_STATE_KEY_PREVIOUS
                                a key that is accepted too, during a rotation
A secret can be in a file: PROMPTSHELF_STORE_FILE, PROMPTSHELF_STATE_KEY_FILE,
PROMPTSHELF_STATE_KEY_PREVIOUS_FILE; for other commands PROMPTSHELF_TOKEN_FILE
and PROMPTSHELF_CLIENT_SECRET_FILE";

/// Returns the keys of `server.toml` that a variable replaces, one a line.
fn keys() -> String {
    let line = |flag: &settings::Flag| format!("  {:<30}{}\n", flag.key.join("."), flag.variable());
    format!("Variables in place of keys:\n{}", settings::FLAGS.iter().map(line).collect::<String>())
}

pub(super) const HEALTH_EXAMPLES: &str = "\
It asks for /healthz, which every caller may read, and waits for five seconds.
The exit code is 0 if the server answers, and 9 or 10 if it does not.

Examples:
  promptshelf health http://127.0.0.1:8080";

pub(super) const AUDIT_EXAMPLES: &str = "\
Each record is one line: time, caller, method, subject, outcome, duration,
channel and request id, separated by tabs.

Examples:
  promptshelf audit audit.jsonl --refused --since 2027-01-31
  promptshelf audit one/audit.jsonl two/audit.jsonl --channel production
  promptshelf audit audit.jsonl --method prompts/get --json | jq -r .caller";

pub(super) const SOURCE_EXAMPLES: &str = "\
Examples:
  promptshelf source list --config server.toml --json
  promptshelf source refresh platform --config server.toml
  promptshelf source list --url https://prompts.example.com
  promptshelf source approve partner --config server.toml

A server and these commands share a folder of state below XDG_STATE_HOME: run
both as the same user on one machine. Without a running server, `list` reads
all sources itself.";

pub(super) const TOKEN_NEW_EXAMPLES: &str = "\
Examples:
  promptshelf token new ada --role editor --expires 2027-01-31
  promptshelf token new ci --json | tee ci.json | jq -r .store \\
    >> /etc/promptshelf/tokens
  promptshelf serve prompts --http 0.0.0.0:80 \\
    --tokens /etc/promptshelf/tokens --allow-host prompts.example.com

The tokens file must not be inside the library.";

pub(super) const TOKEN_EXAMPLES: &str = "\
Through a server the commands need the scope library:admin.

Examples:
  promptshelf token create sqlite:team.db ci --scope prompts:read
  promptshelf token list sqlite:team.db
  promptshelf token revoke sqlite:team.db ci
  promptshelf token list https://prompts.example.com";

pub(super) const CHECK_EXAMPLES: &str = "\
Examples:
  promptshelf check prompts
  promptshelf check prompts --deny warnings    exit code 1 for any finding
  promptshelf check prompts/code_review.md     one file
  promptshelf check prompts --client all       a table of prompts and clients
  promptshelf check prompts --client zed       what Zed would hide, and why
  promptshelf check prompts --config server.toml
  promptshelf check prompts --format sarif > check.sarif
  promptshelf check prompts --json | jq '.items[].message'";

pub(super) const LIST_EXAMPLES: &str = "\
In a pipe each prompt is one line: name, title, arguments and description,
separated by tabs.

Examples:
  promptshelf list prompts
  promptshelf list prompts --search review
  promptshelf list prompts | cut -f 1
  promptshelf list prompts --json | jq -r '.items[].name'
  promptshelf list https://example.com/mcp
  promptshelf list github
  promptshelf list -- npx -y @modelcontextprotocol/server-everything";

pub(super) const GET_EXAMPLES: &str = "\
Examples:
  promptshelf get code_review code=@src/main.rs language=rust
  git diff --staged | promptshelf get code_review code=-
  promptshelf get prompts explain topic=latency --format anthropic
  promptshelf get https://example.com/mcp code_review code=@src/main.rs
  promptshelf get simple-prompt -- npx -y some-mcp-server";

pub(super) const SUGGEST_EXAMPLES: &str = "\
Examples:
  promptshelf suggest code_review language
  promptshelf suggest prompts code_review language ru
  promptshelf suggest 'logs://recent{?timeframe}' timeframe 2";

pub(super) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  promptshelf explain
  promptshelf explain undeclared-argument";

pub(super) const KNOWN_CLIENTS_EXAMPLES: &str = "\
Clients change, so each entry has a source and a date.

Examples:
  promptshelf known-clients
  promptshelf known-clients zed
  promptshelf check prompts --client zed               affected prompts";

pub(super) const TEST_EXAMPLES: &str = "\
Tests are in the front matter of prompt files, under `tests`.

Examples:
  promptshelf test prompts
  promptshelf test prompts/code_review.md
  promptshelf test prompts --filter fence
  promptshelf test prompts --update            accept the current messages
  promptshelf test prompts --junit report.xml";

pub(super) const RENDER_EXAMPLES: &str = "\
Examples:
  promptshelf render prompts/code_review.md code=@src/main.rs
  promptshelf render prompts code_review code=x --watch";

pub(super) const NEW_EXAMPLES: &str = "\
Examples:
  promptshelf new prompts code_review --from code
  promptshelf new prompts git/commit";

pub(super) const FMT_EXAMPLES: &str = "\
Sorts the keys of prompt files and writes them in one style. Comments and the
body stay unchanged. Parts that cannot be changed safely stay unchanged too.

Examples:
  promptshelf fmt prompts
  promptshelf fmt prompts --check          for CI
  promptshelf fmt - < code_review.md";

pub(super) const SCHEMA_EXAMPLES: &str = "\
Editors complete and validate keys with a JSON Schema. A prompt file refers to
it in the first line of its front matter:

  ---
  # yaml-language-server: $schema=prompt.schema.json

Examples:
  promptshelf schema prompt > prompt.schema.json
  promptshelf schema library > promptshelf.schema.json
  promptshelf schema server > server.schema.json";

pub(super) const RESOURCES_EXAMPLES: &str = "\
Examples:
  promptshelf resources prompts
  promptshelf resources prompts library:///style.md
  promptshelf resources github --json";

pub(super) const SIGN_IN_EXAMPLES: &str = "\
The sign-in page opens in the browser ($BROWSER, or the default of the system).
The credentials are stored in $XDG_STATE_HOME/promptshelf/sign-in, readable only
by the user. PROMPTSHELF_CLIENT_SECRET is the secret of --client-id; it is sent
only to the authorization server whose issuer identifier is in
PROMPTSHELF_CLIENT_ISSUER. A token in PROMPTSHELF_TOKEN replaces sign-in.

Examples:
  promptshelf sign-in https://example.com/mcp
  promptshelf list https://example.com/mcp
  promptshelf sign-out https://example.com/mcp";

pub(super) const USE_EXAMPLES: &str = "\
Examples:
  promptshelf use prompts
  promptshelf use prompts https://example.com/mcp github
  promptshelf use -- npx -y @modelcontextprotocol/server-everything";

const CHAT_INPUT: &str = "\
Input:
  /name                       use a prompt; a form requests missing values
  /name language=rust code='fn main() {}'
  /name code=@src/main.rs     read a value from a file; quotes: use it verbatim
  show N, follow N            show a whole message, or read a link's resource
  copy, save FILE, | COMMAND  copy, save or pipe the messages
  prompts, resources, read URI, servers, help, quit

Keys: Tab completes, Ctrl-X Ctrl-E opens $EDITOR, Enter inside quotes begins a
new line. In a form, Shift-Tab goes back, Ctrl-D declines and Ctrl-C cancels.

History is stored in $XDG_STATE_HOME/promptshelf, by default in
~/.local/state/promptshelf.";

pub(super) fn use_long_help() -> String {
    format!("{USE_EXAMPLES}\n\n{CHAT_INPUT}")
}

/// The commands in groups, each by frequency.
pub(super) const GROUPS: [(&str, &[&str]); 7] = [
    ("Write", &["new", "check", "fmt", "test", "render", "explain", "import", "export", "schema", "lsp"]),
    ("Use", &["list", "get", "use", "suggest", "resources"]),
    ("Serve", &["serve", "health", "source"]),
    ("Connect", &["install", "uninstall", "sync", "known-clients", "sign-in", "sign-out"]),
    (
        "Team",
        &[
            "publish",
            "pull",
            "history",
            "diff",
            "proposals",
            "approve",
            "reject",
            "promote",
            "rollback",
            "rollout",
            "policy",
            "evaluate",
        ],
    ),
    ("Operate", &["usage", "audit", "token", "store"]),
    ("Setup", &["init", "help", "completions", "man"]),
];

const COMMON: &str = "\
Everywhere: -q, --color WHEN, --yes, --log LEVEL, --log-format FORMAT
(`promptshelf help command-line` explains them and the order of words)";

/// The examples that stand before the options.
const FIRST_EXAMPLES: usize = 2;

/// Arranges the help texts: commands in groups; for each command what it does, two examples, and then its options.
pub(super) fn arranged(command: clap::Command) -> clap::Command {
    let overview = overview(&command);
    let root = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{options}{after-help}\n";
    let command = command.before_help(overview).after_long_help(format!("{EXAMPLES}\n\n{COMMON}\n\n{}", Exit::table()));
    let command = command.after_help(format!("{EXAMPLES}\n\n{COMMON}")).help_template(root);
    command.mut_subcommands(|command| arranged_command(command, "promptshelf"))
}

fn overview(root: &clap::Command) -> String {
    let mut text = String::new();
    for (group, names) in GROUPS {
        text.push_str(&format!("{group}\n"));
        for name in names {
            let about = root.find_subcommand(name).and_then(clap::Command::get_about);
            text.push_str(&format!("  {name:<14} {}\n", about.map(ToString::to_string).unwrap_or_default()));
        }
    }
    text.trim_end().to_owned()
}

fn arranged_command(mut command: clap::Command, above: &str) -> clap::Command {
    let path = format!("{above} {}", command.get_name());
    if command.has_subcommands() {
        let below = path.clone();
        command = command.mut_subcommands(|command| arranged_command(command, &below));
    }
    let text = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string);
    let (short, long) = (text(command.get_after_help()), text(command.get_after_long_help()));
    let (first, rest) = split_examples(short.as_deref().unwrap_or_default());
    if !first.is_empty() {
        command = command.before_help(first.clone()).before_long_help(first);
    }
    let joined =
        |text: &str| [text, COMMON].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
    command = command.after_help(joined(&rest));
    if let Some(long) = long {
        command = command.after_long_help(joined(&split_examples(&long).1));
    }
    if command.get_positionals().any(|argument| argument.get_id() == words::LIBRARY) {
        let last = if command.get_positionals().any(clap::Arg::is_last_set) { " [-- COMMAND...]" } else { "" };
        // Rendering builds the command, which has no global options yet.
        let usage = command.clone().render_usage().to_string();
        let form = usage.split_once(words::USAGE).map_or("", |(_, form)| form);
        command =
            command.override_usage(format!("{path} [OPTIONS] [LIBRARY] {}{last}", form.trim()).trim_end().to_owned());
    }
    command.help_template("{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}\n")
}

/// Splits the first examples off a text.
fn split_examples(text: &str) -> (String, String) {
    const HEADING: &str = "Examples:\n";
    let Some((before, after)) = text.split_once(HEADING) else { return (String::new(), text.to_owned()) };
    let mut lines: Vec<&str> = after.lines().collect();
    let mut end = 0;
    for _ in 0..FIRST_EXAMPLES {
        while lines.get(end).is_some_and(|line| line.ends_with('\\')) {
            end += 1;
        }
        end += 1;
    }
    // Prose may follow a paragraph of examples.
    let examples = lines.iter().take_while(|line| line.starts_with("  ")).count();
    let rest = lines.split_off(end.min(examples));
    let first = format!("{HEADING}{}", lines.join("\n"));
    let rest = rest.join("\n");
    let rest = rest.trim_matches('\n');
    let more = if rest.starts_with("  ") { format!("More examples:\n{rest}") } else { rest.to_owned() };
    (first, [before.trim_end(), &more].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n"))
}

pub(super) const HELP_EXAMPLES: &str = "\
Examples:
  promptshelf help get
  promptshelf help templates";

pub(super) fn serve_long_help() -> String {
    format!("{SERVE_EXAMPLES}\n\n{SERVE_SETTINGS}\n\n{}", keys())
}

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
  promptshelf publish prompts --to sqlite:team.db -m \"Shorter review\"
  promptshelf publish prompts --to sqlite:team.db --dry-run
  promptshelf publish prompts --to sqlite:team.db -m \"As asked\" --proposal 7
  promptshelf publish prompts --to https://prompts.example.com -m \"As asked\"
  promptshelf publish prompts --to sqlite:team.db -m \"Undo the leak\" \\
    --emergency \"prompt shows customer data\"";

pub(in crate::args) const PULL_EXAMPLES: &str = "\
The folder remembers the revision in the hidden file .promptshelf-base, which is
never served or published. A folder with local changes is not changed, unless
--merge is given.

Examples:
  promptshelf pull sqlite:team.db prompts
  promptshelf pull sqlite:team.db#staging@12 prompts-12
  promptshelf pull postgres://prompts@db.example.com/prompts prompts
  promptshelf pull https://prompts.example.com#staging prompts
  promptshelf pull https://prompts.example.com prompts --merge";

pub(in crate::args) const HISTORY_EXAMPLES: &str = "\
Examples:
  promptshelf history sqlite:team.db
  promptshelf history sqlite:team.db code_review
  promptshelf history sqlite:team.db --at 2027-01-31T14:05:00Z
  promptshelf history sqlite:team.db --json | jq '.items[0].number'";

pub(in crate::args) const DIFF_EXAMPLES: &str = "\
A word that contains `/` or begins with `.` is the path of a folder.

Examples:
  promptshelf diff sqlite:team.db 11 12
  promptshelf diff sqlite:team.db production staging --rendered
  promptshelf diff sqlite:team.db production ./prompts";

pub(in crate::args) const PROPOSALS_EXAMPLES: &str = "\
Examples:
  promptshelf proposals sqlite:team.db
  promptshelf proposals sqlite:team.db 7";

pub(in crate::args) const APPROVE_EXAMPLES: &str = "\
An approval is of exactly the changes that were read: --digest names them, as
`proposals NUMBER` shows it. It does not count any more once the author changes
the proposal. What opens something, and with `policy --breaking off` what breaks
calls, needs a --confirm each.

Examples:
  promptshelf proposals sqlite:team.db 7
  promptshelf approve sqlite:team.db 7 --digest 3f9a41c2
  promptshelf approve https://prompts.example.com 7 --digest 3f9a41c2 \\
    --confirm access-opened:payroll";

pub(in crate::args) const PROMOTE_EXAMPLES: &str = "\
A promotion takes what the source has changed since the last one. What only
the target has or has changed stays, and is named; a file that both have
changed is a conflict (exit code 14). It is a proposal like any other: if the
policy of the channel requires more, it stays open. A prompt brings in its
partials and attachments; --dry-run lists the other prompts that change with
them, and the calls of the last 30 days that would fail.

Examples:
  promptshelf promote sqlite:team.db --from staging --to production \\
    -m \"Release 12\"
  promptshelf promote sqlite:team.db code_review --from staging \\
    --to production --dry-run";

pub(in crate::args) const ROLLBACK_EXAMPLES: &str = "\
A rollback makes a new revision with the old contents: history only grows.

Examples:
  promptshelf rollback sqlite:team.db --to 11 -m \"Reviews became vague\"
  promptshelf rollback sqlite:team.db code_review --to 11 --dry-run";

pub(in crate::args) const POLICY_EXAMPLES: &str = "\
Every change is kept in the history. Through a server, a policy that is looser
than a present one with approvals is a proposal, and needs these approvals.

Examples:
  promptshelf policy sqlite:team.db
  promptshelf policy sqlite:team.db --channel production \\
    --approvals 1 --four-eyes on --checks warnings --tests on
  promptshelf policy sqlite:team.db --channel production \\
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
  promptshelf evaluate sqlite:team.db --proposal 7 --config server.toml
  promptshelf evaluate sqlite:team.db code_review --config server.toml
  promptshelf evaluate https://prompts.example.com --missing";

pub(in crate::args) const STORE_EXAMPLES: &str = "\
Every command brings the schema up to date when it opens a store; this one does
nothing else.

Examples:
  promptshelf store migrate sqlite:team.db --check
  promptshelf store backup sqlite:team.db team.backup";

pub(in crate::args) const USAGE_EXAMPLES: &str = "\
A server counts calls by prompt, version, client, method and outcome, and keeps
no contents and no values. Fewer than 5 callers are not shown. Deprecated
prompts are marked; those without calls in this time are listed.

JSON: {\"items\":[{\"name\",\"version\",\"client\",\"method\",\"outcome\",
\"count\",\"callers\",\"p50Ms\",\"p95Ms\",\"leftOut\",\"taken\",\"bytesOut\",
\"forms\",\"deprecated\"}],\"unused\":[NAME],\"unusedTotal\"}; few callers are
null.

Examples:
  promptshelf usage sqlite:team.db
  promptshelf usage sqlite:team.db code_review --since 7d --detail
  promptshelf usage https://prompts.example.com --csv > usage.csv";

pub(in crate::args) const ROLLOUT_EXAMPLES: &str = "\
The store has the rollouts, and all servers of the store follow them. [rollout]
in server.toml has defaults. A channel has one rollout that is not over.

JSON: {\"items\":[{\"channel\",\"to\",\"percent\",\"state\",\"changedBy\",
\"changedAt\",\"reason\",\"revision\",\"counts\",\"plan\",\"next\",\"history\":[{
\"number\",\"kind\",\"automatic\",\"percent\",\"changedBy\",\"reason\",\"at\",
\"revision\",\"counts\"}]}]}. The state is running, paused, stopped, failed
(stopped by a server) or finished. Through a server, changes need the
scope library:publish.

Examples:
  promptshelf rollout start sqlite:team.db production --to next --percent 10
  promptshelf rollout show sqlite:team.db production
  promptshelf rollout set https://prompts.example.com production 25
  promptshelf rollout stop sqlite:team.db production -m \"Reviews became vague\"
  promptshelf rollout finish sqlite:team.db production -m \"Shorter reviews\"";
