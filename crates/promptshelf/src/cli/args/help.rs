//! Texts below the options in the help: examples, settings and exit codes.

use crate::exit::Exit;

pub(super) const EXAMPLES: &str = "\
Examples:
  promptshelf serve --http 127.0.0.1:8080 prompts
  promptshelf check prompts
  promptshelf get code_review --arg code=@src/main.rs";

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  promptshelf serve prompts                       on a terminal over HTTP, in a pipe on stdio
  promptshelf serve prompts --stdio               as clients start it
  promptshelf serve prompts --http 127.0.0.1:0    on a free port, which is printed
  promptshelf serve prompts --http 0.0.0.0:80 --allow-remote --allow-host prompts.example.com";

const SERVE_SETTINGS: &str = "\
The same settings as environment variables and in server.toml. A flag overrides the variable, and the
variable overrides the file. The file is the one of --config, else of PROMPTSHELF_CONFIG, else
~/.config/promptshelf/server.toml, else /etc/promptshelf/server.toml; its paths are relative to it.
`promptshelf schema server` prints its JSON Schema.
                                    [http]
  PROMPTSHELF_HTTP                  address = \"127.0.0.1:8080\"
  PROMPTSHELF_ALLOW_REMOTE          allow-remote = false
  PROMPTSHELF_ALLOW_HOSTS           allow-hosts = [\"prompts.example.com\"]
  PROMPTSHELF_ALLOW_ORIGINS         allow-origins = [\"https://app.example.com\"]
  PROMPTSHELF_MAX_BODY_BYTES        max-body-bytes = 4194304
  PROMPTSHELF_REQUEST_TIMEOUT       request-timeout = 60
  PROMPTSHELF_SHUTDOWN_TIMEOUT      shutdown-timeout = 5

  PROMPTSHELF_STATE_KEY             a secret of at least 16 bytes that several servers share, so that a
                                    guided prompt can start on one and end on another";

pub(super) const AUDIT_EXAMPLES: &str = "\
Each record is one line: time, caller, method, subject, outcome and duration, with tabs between them.

Examples:
  promptshelf audit audit.jsonl --refused --since 2027-01-31
  promptshelf audit audit.jsonl --prompt code_review --json | jq -r .caller | sort | uniq -c";

pub(super) const TOKEN_EXAMPLES: &str = "\
Examples:
  promptshelf token new ada --role editor --scope prompts:write
  promptshelf token new ci --expires 2027-01-31 --json | jq -r .store >> tokens
  promptshelf serve prompts --http 0.0.0.0:80 --tokens tokens --allow-host prompts.example.com";

const SIGN_IN: &str = "\
Sign-in. Without it the server accepts connections from this machine only, unless allow-remote is set:
  [auth]
  tokens = [{ name = \"ada\", sha256 = \"…\", scopes = [], roles = [] }]
  tokens-file = \"tokens\"            PROMPTSHELF_TOKENS
  issuer = \"https://…\"              PROMPTSHELF_ISSUER
  resource = \"https://…/mcp\"        PROMPTSHELF_RESOURCE
  audiences, jwks-uri, algorithms, leeway, user-claim, roles-claim
  required-scopes, scopes-supported
  page-client-id = \"…\"             the page as a public client of the issuer
  [auth.implies]                    \"prompts:write\" = [\"prompts:read\"]
TLS, and the proxies that are trusted to report the address of a caller:
  [tls]
  certificate = \"tls/chain.pem\"     PROMPTSHELF_TLS_CERTIFICATE
  key = \"tls/key.pem\"               PROMPTSHELF_TLS_KEY
  [proxy]
  trusted = [\"10.0.0.0/8\"]          PROMPTSHELF_TRUST_PROXY
  header = \"x-forwarded\"            or \"forwarded\": the one that the proxies set
Limits for each caller, and the record of requests:
  [limits]                          requests-per-minute = 600, completions-per-minute = 1200,
                                    requests-per-minute-per-address = 6000,
                                    concurrent-requests = 64, subscriptions = 64
  [audit]                           PROMPTSHELF_AUDIT
  file = \"audit.jsonl\"              max-bytes = 67108864, keep = 8
Metrics for Prometheus on a separate port, and traces for an OpenTelemetry collector, whose secrets are
set in OTEL_EXPORTER_OTLP_HEADERS:
  [metrics]                         PROMPTSHELF_METRICS
  listen = \"127.0.0.1:9464\"         /metrics, and /healthz and /readyz as on the main port
  [traces]                          PROMPTSHELF_TRACES
  endpoint = \"http://127.0.0.1:4318\", percent = 100
Folders outside of a library that its [roots] may point to, and access rules that bind every library
(also in promptshelf.toml, or as `access:` in a prompt file; all rules that match have to be met):
  [grants]                          roots = [\"/srv/docs\"]
  [[access]]                        prompts, folders, tags, resources, diagnostics: what it matches
                                    scopes, roles, users, visible: what it requires";

pub(super) const CHECK_EXAMPLES: &str = "\
Examples:
  promptshelf check prompts
  promptshelf check prompts --deny warnings            for CI: ends with 1 when anything is found
  promptshelf check prompts --client zed               which prompts Zed would hide, and why
  promptshelf check prompts --format sarif > check.sarif
  promptshelf check prompts --format json | jq '.diagnostics[].message'";

pub(super) const LIST_EXAMPLES: &str = "\
In a pipe each prompt is one line: name, title, arguments and description, with tabs between them.

Examples:
  promptshelf list prompts
  promptshelf list prompts | cut -f 1
  promptshelf list prompts --json | jq -r '.prompts[].name'
  promptshelf list --url https://example.com/mcp
  promptshelf list -- npx -y @modelcontextprotocol/server-everything";

pub(super) const GET_EXAMPLES: &str = "\
Examples:
  promptshelf get code_review --arg code=@src/main.rs --arg language=rust
  git diff --staged | promptshelf get git-commit --arg changes=-
  promptshelf get explain-code -l prompts --arg code=@lib.py --format anthropic
  promptshelf get simple-prompt --out pictures -- npx -y @modelcontextprotocol/server-everything";

pub(super) const COMPLETE_EXAMPLES: &str = "\
Examples:
  promptshelf complete code_review language
  promptshelf complete code_review framework fl --arg language=python
  promptshelf complete 'logs://recent{?timeframe}' timeframe 2";

pub(super) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  promptshelf explain
  promptshelf explain undeclared-argument";

pub(super) const CLIENTS_EXAMPLES: &str = "\
Clients change: each fact has its source and date.

Examples:
  promptshelf clients
  promptshelf clients zed
  promptshelf check prompts --client zed               which prompts are concerned";

pub(super) const TEST_EXAMPLES: &str = "\
Tests are in the front matter of prompt files, under `tests`.

Examples:
  promptshelf test prompts
  promptshelf test prompts --filter code_review
  promptshelf test prompts --update                    accept the present messages
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
Sorts the keys of prompt files and writes them in one style. Comments and every byte of the text stay
unchanged. Parts that cannot be changed safely stay as they are.

Examples:
  promptshelf fmt prompts
  promptshelf fmt prompts --check                      for CI";

pub(super) const SCHEMA_EXAMPLES: &str = "\
A JSON Schema lets editors complete and check keys. A prompt file names it in the first line of its
front matter:

  ---
  # yaml-language-server: $schema=prompt.schema.json

Examples:
  promptshelf schema prompt > prompt.schema.json
  promptshelf schema library > promptshelf.schema.json
  promptshelf schema server > server.schema.json";

pub(super) const RESOURCES_EXAMPLES: &str = "\
Examples:
  promptshelf resources prompts
  promptshelf resources --read library:///style.md -l prompts
  promptshelf resources --server github --json";

pub(super) const SIGN_IN_EXAMPLES: &str = "\
The page opens in your browser ($BROWSER, or what the system opens pages with). What comes of it is kept
in the system's keyring, or in $XDG_STATE_HOME/promptshelf/sign-in, readable only by you, where there is
none; PROMPTSHELF_KEYRING=file always takes the file. A secret that belongs to --client-id stands in
PROMPTSHELF_CLIENT_SECRET. Nothing of this is needed with a token in PROMPTSHELF_TOKEN.

Examples:
  promptshelf sign-in https://example.com/mcp
  promptshelf list --url https://example.com/mcp
  promptshelf sign-out https://example.com/mcp";

pub(super) const CHAT_EXAMPLES: &str = "\
Examples:
  promptshelf chat prompts
  promptshelf chat prompts https://example.com/mcp github
  promptshelf chat -- npx -y @modelcontextprotocol/server-everything";

const CHAT_LINES: &str = "\
What can be typed:
  /name                      a prompt; what it needs is asked for
  /name language=rust code='fn main() {}'
  /name code=@src/main.rs    a value out of a file; in quotes a value is what it is
  show N, follow N           a whole message, or the resource behind a link
  copy, save FILE, | COMMAND what to do with the messages
  prompts, resources, read URI, servers, help, quit

Keys: Tab completes, Ctrl-X Ctrl-E opens $EDITOR, Enter inside of quotes begins a new line. In a form
Shift-Tab goes back, Ctrl-D declines and Ctrl-C cancels.

What is remembered lies in $XDG_STATE_HOME/promptshelf, or ~/.local/state/promptshelf.";

pub(super) fn chat_long_help() -> String {
    format!("{CHAT_EXAMPLES}\n\n{CHAT_LINES}")
}

pub(super) fn long_help() -> String {
    format!("{EXAMPLES}\n\n{}", Exit::table())
}

pub(super) fn serve_long_help() -> String {
    format!("{SERVE_EXAMPLES}\n\n{SERVE_SETTINGS}\n\n{SIGN_IN}")
}
