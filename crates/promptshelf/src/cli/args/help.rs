//! Help texts below the options: examples, settings and exit codes. Lines have at most 80 columns, the width of most
//! terminals: clap wraps longer ones, and with them the tables.

mod channels;

pub(super) use self::channels::{
    APPROVE_EXAMPLES, DIFF_EXAMPLES, EVALUATE_EXAMPLES, HISTORY_EXAMPLES, INIT_EXAMPLES, POLICY_EXAMPLES,
    PROMOTE_EXAMPLES, PROPOSALS_EXAMPLES, PUBLISH_EXAMPLES, PULL_EXAMPLES, PULL_USAGE, ROLLBACK_EXAMPLES,
    ROLLOUT_EXAMPLES, STORE_EXAMPLES, USAGE_EXAMPLES,
};
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
        line("serve --open my-prompts", "serve it, and open its page"),
        line("install my-prompts", "see which clients are here"),
        line("check my-prompts", "report every mistake at its line"),
        line("--help", "list all commands"),
    ]
    .concat()
}

pub(super) const EXAMPLES: &str = "\
Examples:
  promptshelf serve --http 127.0.0.1:8080 prompts
  promptshelf check prompts
  promptshelf get code_review --arg code=@src/main.rs";

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  promptshelf serve prompts                       HTTP on a terminal, else stdio
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

/// Returns the keys of `server.toml` with their variables, one a line.
fn keys() -> String {
    let schema = settings::schema();
    let variable = |section: &str, key: &str| {
        let flag = settings::FLAGS.iter().find(|flag| flag.key == [section, key]);
        flag.map(settings::Flag::variable).unwrap_or_default()
    };
    let mut text = "Keys, with the variables that replace them:\n".to_owned();
    for (section, about) in schema["properties"].as_object().into_iter().flatten() {
        let about = if about["items"].is_object() { &about["items"] } else { about };
        let Some(keys) = about["properties"].as_object() else { continue };
        text.push_str(&format!("  [{section}]\n"));
        for key in keys.keys() {
            text.push_str(format!("    {key:<28}{}", variable(section, key)).trim_end());
            text.push('\n');
        }
    }
    text
}

pub(super) const HEALTH_EXAMPLES: &str = "\
It asks for /healthz, which every caller may read, and waits for five seconds.
The exit code is 0 if the server answers, and 9 or 10 if it does not.

Examples:
  promptshelf health http://127.0.0.1:8080";

pub(super) const AUDIT_EXAMPLES: &str = "\
Each record is one line: time, caller, method, subject, outcome and duration,
separated by tabs.

Examples:
  promptshelf audit audit.jsonl --refused --since 2027-01-31
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

pub(super) const TOKEN_EXAMPLES: &str = "\
Examples:
  promptshelf token new ada --role editor --expires 2027-01-31
  promptshelf token new ci --json | tee ci.json | jq -r .store \\
    >> /etc/promptshelf/tokens
  promptshelf serve prompts --http 0.0.0.0:80 \\
    --tokens /etc/promptshelf/tokens --allow-host prompts.example.com

  promptshelf token create ci --scope prompts:read --store sqlite:team.db
  promptshelf token list --url https://prompts.example.com
  promptshelf token revoke ci --store sqlite:team.db

The tokens file must not be inside the library. Through a server (--url) the
commands need the scope library:admin.";

pub(super) const CHECK_EXAMPLES: &str = "\
Examples:
  promptshelf check prompts
  promptshelf check prompts --deny warnings    exit code 1 for any finding
  promptshelf check prompts --client zed       prompts that Zed would hide
  promptshelf check prompts --config server.toml
  promptshelf check prompts --format sarif > check.sarif
  promptshelf check prompts --format json | jq '.diagnostics[].message'";

pub(super) const LIST_EXAMPLES: &str = "\
In a pipe each prompt is one line: name, title, arguments and description,
separated by tabs.

Examples:
  promptshelf list prompts
  promptshelf list prompts | cut -f 1
  promptshelf list prompts --json | jq -r '.prompts[].name'
  promptshelf list https://example.com/mcp
  promptshelf list github
  promptshelf list -- npx -y @modelcontextprotocol/server-everything";

pub(super) const GET_EXAMPLES: &str = "\
Of two words the first one is the TARGET.

Examples:
  promptshelf get code_review --arg code=@src/main.rs --arg language=rust
  git diff --staged | promptshelf get git-commit --arg changes=-
  promptshelf get prompts explain-code --arg code=@lib.py --format anthropic
  promptshelf get https://example.com/mcp code_review --arg code=@src/main.rs
  promptshelf get simple-prompt -- npx -y some-mcp-server";

pub(super) const GET_USAGE: &str = "\
promptshelf get [OPTIONS] [TARGET] <NAME>
       promptshelf get [OPTIONS] <NAME> -- <COMMAND>...";

pub(super) const COMPLETE_EXAMPLES: &str = "\
Of three words the first one is the TARGET if it is a URL, a path to a folder
such as ./prompts, or names a folder or server and no prompt of the current
folder.

Examples:
  promptshelf complete code_review language
  promptshelf complete ./prompts code_review language
  promptshelf complete code_review framework fl --arg language=python
  promptshelf complete 'logs://recent{?timeframe}' timeframe 2";

pub(super) const COMPLETE_USAGE: &str = "\
promptshelf complete [OPTIONS] [TARGET] <NAME> <ARGUMENT> [VALUE]
       promptshelf complete [OPTIONS] <NAME> <ARGUMENT> [VALUE] -- <COMMAND>...";

pub(super) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  promptshelf explain
  promptshelf explain undeclared-argument";

pub(super) const CLIENTS_EXAMPLES: &str = "\
Clients change, so each entry has a source and a date.

Examples:
  promptshelf clients
  promptshelf clients zed
  promptshelf check prompts --client zed               affected prompts";

pub(super) const TEST_EXAMPLES: &str = "\
Tests are in the front matter of prompt files, under `tests`.

Examples:
  promptshelf test prompts
  promptshelf test prompts --filter code_review
  promptshelf test prompts --update            accept the current messages
  promptshelf test prompts --junit report.xml";

pub(super) const RENDER_EXAMPLES: &str = "\
Examples:
  promptshelf render prompts/code_review.md --arg code=@src/main.rs
  promptshelf render prompts/code_review.md --arg code=x --watch";

pub(super) const NEW_EXAMPLES: &str = "\
Examples:
  promptshelf new code_review -l prompts --from code
  promptshelf new git/commit -l prompts";

pub(super) const FMT_EXAMPLES: &str = "\
Sorts the keys of prompt files and writes them in one style. Comments and the
body stay unchanged. Parts that cannot be changed safely stay unchanged too.

Examples:
  promptshelf fmt prompts
  promptshelf fmt prompts --check                      for CI";

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
  promptshelf resources prompts --read library:///style.md
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

pub(super) const CHAT_EXAMPLES: &str = "\
Examples:
  promptshelf chat prompts
  promptshelf chat prompts https://example.com/mcp github
  promptshelf chat -- npx -y @modelcontextprotocol/server-everything";

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

pub(super) fn chat_long_help() -> String {
    format!("{CHAT_EXAMPLES}\n\n{CHAT_INPUT}")
}

pub(super) fn long_help() -> String {
    format!("{EXAMPLES}\n\n{}", Exit::table())
}

pub(super) fn serve_long_help() -> String {
    format!("{SERVE_EXAMPLES}\n\n{SERVE_SETTINGS}\n\n{}", keys())
}
