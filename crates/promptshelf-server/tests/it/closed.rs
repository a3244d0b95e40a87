//! Random requests to everything that answers, by callers who may not see something: no byte and no name of a hidden
//! channel, or of what an access rule closes, is in any answer. And every answer of the protocol is valid by the schema of
//! its revision, if `MCP_SCHEMAS` names a folder with the schemas.
//!
//! `PROMPTSHELF_SEED` replays one seed; `CLOSED_MINUTES` tries more of them, from `CLOSED_SEED` on.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    body::{Body, HttpBody as _},
    http::{HeaderMap, Method, Request},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use promptshelf_core::Access;
use promptshelf_mcp::{Profile, ToolMode};
use promptshelf_server::{
    Library,
    api::{Api, Versions},
    channels::{FollowOptions, Follower, LibraryChecker, StoreHandle},
    http::{Channel, Options, router_with_channels},
    usage::UsageLog,
};
use promptshelf_service::Usage;
use promptshelf_store::{Digest, Store, StoreUrl};
use promptshelf_testkit::{Random, amount, figure};
use serde_json::{Value, json};
use tower::Service as _;

use crate::programs::{publish, signed_in};

const HIDDEN: &str = "qqsecret";
const ALL_SCOPES: [&str; 6] =
    ["library:read", "library:propose", "library:review", "library:publish", "library:evaluate", "library:admin"];

/// Callers: name, scopes, roles. `root` sees everything, and prepares it.
const CALLERS: [(&str, &[&str], &[&str]); 5] = [
    ("root", &ALL_SCOPES, &["one", "two", "three"]),
    ("librarian", &ALL_SCOPES, &["one", "two"]),
    ("ada", &[], &["one"]),
    ("ben", &[], &["two"]),
    ("cleo", &[], &[]),
];

const MCP_REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// A file of the open channel: its path, the name of its prompt, and the roles that it requires.
#[derive(Debug)]
struct Closable {
    path: String,
    name: String,
    token: String,
    roles: BTreeSet<&'static str>,
}

/// What callers may not see: texts that occur nowhere else.
struct Site {
    router: Router,
    closables: Vec<Closable>,
    hidden_digest: String,
    document: Value,
    schemas: Option<BTreeMap<&'static str, (Value, bool)>>,
}

struct Sent {
    method: Method,
    path: String,
    caller: &'static str,
    headers: Vec<(String, String)>,
    body: String,
    /// The revision and the method of a message of the protocol.
    message: Option<(&'static str, String)>,
}

impl Sent {
    /// A request of `root`.
    fn of(method: &str, path: &str, body: &str) -> Sent {
        Sent {
            method: method.parse().expect("a method"),
            path: path.to_owned(),
            caller: "root",
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: body.to_owned(),
            message: None,
        }
    }
}

fn pick<T: Clone>(random: &mut Random, among: &[T]) -> T {
    among[random.below(among.len() as u64) as usize].clone()
}

/// The files of the open channel with random rules. Their texts name the revision.
fn open_files(random: &mut Random) -> (String, Vec<Closable>) {
    let mut manifest = String::new();
    let mut closables = Vec::new();
    let folders = ["", "team/", "closed/"];
    let closes_folder = random.below(2) == 0;
    if closes_folder {
        manifest += "[[access]]\nfolders = ['closed']\nroles = ['one']\n";
    }
    for letter in ["a", "b", "c", "d", "e", "f"] {
        let folder = pick(random, &folders);
        let path = format!("{folder}zzp{letter}.md");
        let name = path.trim_end_matches(".md").replace('/', "-");
        let mut roles = BTreeSet::new();
        if closes_folder && folder == "closed/" {
            roles.insert("one");
        }
        if random.below(3) == 0 {
            let role = pick(random, &["one", "two"]);
            manifest += &format!("[[access]]\nprompts = ['{name}']\nroles = ['{role}']\n");
            roles.insert(role);
        }
        closables.push(Closable { path, name, token: format!("zzp{letter}"), roles });
    }
    for letter in ["n", "o"] {
        let path = format!("notes/zzr{letter}.txt");
        let uri = format!("doc://zzr{letter}");
        manifest += &format!("[[resources]]\nuri = '{uri}'\nfile = '{path}'\n");
        let mut roles = BTreeSet::new();
        if random.below(2) == 0 {
            let role = pick(random, &["one", "two"]);
            manifest += &format!("[[access]]\nresources = ['{uri}']\nroles = ['{role}']\n");
            roles.insert(role);
        }
        closables.push(Closable { path, name: uri, token: format!("zzr{letter}"), roles });
    }
    (manifest, closables)
}

/// The bytes that only this revision of a file has.
fn bytes_of(token: &str, revision: u64) -> String {
    format!("yy{}-{revision}-bytes", token.trim_start_matches("zz"))
}

fn prompt(bytes: &str, front: &str) -> String {
    format!("---\ndescription: About {bytes}\narguments: [{{name: which, complete: [{bytes}]}}]\n{front}---\n{bytes}\n")
}

impl Site {
    async fn new(random: &mut Random, folder: &std::path::Path) -> Site {
        let url: StoreUrl = format!("sqlite:{}", folder.join("team.db").display()).parse().expect("a URL");
        let store = Store::create(&url).await.expect("a store");
        let (manifest, closables) = open_files(random);
        for revision in 1..=2 {
            let text = |it: &Closable| match it.path.ends_with(".md") {
                true => prompt(&bytes_of(&it.token, revision), ""),
                false => bytes_of(&it.token, revision),
            };
            let texts: Vec<(String, String)> = closables.iter().map(|it| (it.path.clone(), text(it))).collect();
            let mut files: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (&**path, &**text)).collect();
            if revision == 1 {
                files.push(("promptshelf.toml", &manifest));
            }
            publish(&store, "production", &files).await;
            let skill = format!("---\nname: qqskill\ndescription: About ss{revision}bytes\n---\nss{revision}bytes\n");
            let (one, two) = (prompt(&format!("ss{revision}bytes"), ""), prompt("ss-two-bytes", "tags: [qqtag]\n"));
            let hidden = [
                ("qqone.md", &*one),
                ("team/qqtwo.md", &*two),
                ("qqskill/SKILL.md", &*skill),
                ("qqfile.txt", "ssfile"),
            ];
            publish(&store, HIDDEN, &hidden[..hidden.len() - (revision as usize - 1)]).await;
        }
        let hidden_digest = Digest::of(b"ssfile").to_string();
        let handle = StoreHandle::new(url);
        let (usage, mut served) = (Usage::new(), Vec::new());
        let tools = pick(random, &[ToolMode::Off, ToolMode::Search, ToolMode::Each]);
        for name in ["production", HIDDEN] {
            let options = FollowOptions::new(handle.clone(), name.parse().expect("a name"));
            let follower = Follower::start(options).await.expect("the channel exists");
            let builder =
                Library::builder().source(follower.source().clone()).usage(usage.clone()).channel(name).tools(tools);
            let library = builder.build().expect("a library");
            served.push(Channel { name: name.to_owned(), library, monitor: follower.monitor().clone() });
        }
        let mut options = Options::default();
        options.sign_in = Some(signed_in(&CALLERS));
        options.versions = Some(Versions::new(handle.clone(), Vec::new()));
        options.api = Some(Api::new(handle, Arc::new(LibraryChecker::new())));
        options.usage = Some(UsageLog::new(&usage, None, Duration::from_secs(86_400), 1));
        options.profiles.insert("blanks".to_owned(), Profile { fill_blanks: true, ..Profile::default() });
        let access = Access { roles: vec!["three".to_owned()], ..Access::default() };
        options.channel_access = HashMap::from([(HIDDEN.to_owned(), Arc::new(access))]);
        let router = router_with_channels(&served[0], &served[1..], &options);
        let mut site = Site { router, closables, hidden_digest, document: Value::Null, schemas: schemas() };
        site.document = site.as_root("GET", "/api/v1/openapi.json", &Value::Null).await;
        site.prepare().await;
        site
    }

    async fn as_root(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, _, answer) = self.send(&Sent::of(method, path, &body)).await;
        assert!(status < 300, "{method} {path}: {answer}");
        serde_json::from_str(&answer).expect("JSON")
    }

    /// Adds what a channel has besides files: a proposal, a comment, an evaluation, usage.
    async fn prepare(&self) {
        let channel = format!("/api/v1/channels/{HIDDEN}");
        let change = json!([{ "path": "qqnew.md", "before": null, "content": { "text": prompt("ssnewbytes", "") } }]);
        let proposal = json!({ "base": 2, "message": "qqmessage", "changes": change });
        let policy = json!({ "approvals": 1, "fourEyes": true, "checks": "errors", "tests": false, "evaluations": ["qqevaluation"],
            "noRegression": false, "noBreaking": false,
            "roles": { "propose": [], "review": ["qqrole"], "publish": [], "administer": [] } });
        let mut put = Sent::of("GET", &format!("{channel}/policy"), "");
        let (_, headers, _) = self.send(&put).await;
        let tag = headers["etag"].to_str().expect("a tag").to_owned();
        (put.method, put.body) = (Method::PUT, policy.to_string());
        put.headers.push(("if-match".to_owned(), tag));
        let (status, _, answer) = self.send(&put).await;
        assert_eq!(status, 200, "{answer}");
        let made = self.as_root("POST", &format!("{channel}/proposals"), &proposal).await;
        let (id, digest) = (&made["proposal"]["id"], &made["proposal"]["digest"]);
        let comment = json!({ "digest": digest, "path": "qqnew.md", "text": "qqcomment" });
        self.as_root("POST", &format!("/api/v1/proposals/{id}/comments"), &comment).await;
        let served = self.as_root("GET", &format!("{channel}/revisions/2/prompts"), &Value::Null).await;
        let evaluation = json!({ "evaluation": "qqevaluation", "prompt": served["items"][0]["name"],
            "digest": served["items"][0]["digest"], "scores": { "score": 0.9 }, "cases": [] });
        self.as_root("POST", &format!("{channel}/evaluations"), &evaluation).await;
        self.as_root("POST", "/api/v1/prompts/qqone/render", &json!({ "channel": HIDDEN })).await;
        let open = json!({ "base": 2, "message": "Open", "changes": [{ "path": "zznew.md", "before": null, "content": { "text": "New" } }] });
        self.as_root("POST", "/api/v1/channels/production/proposals", &open).await;
    }

    async fn send(&self, sent: &Sent) -> (u16, HeaderMap, String) {
        let mut request = Request::builder().method(sent.method.clone()).uri(&sent.path).header("host", "localhost");
        if !sent.caller.is_empty() {
            let credentials = if sent.path.starts_with("/api/public") {
                format!("Basic {}", BASE64_STANDARD.encode(format!("{}:psk_{}", sent.caller, sent.caller)))
            } else {
                format!("Bearer psk_{}", sent.caller)
            };
            request = request.header("authorization", credentials);
        }
        let request = sent.headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        let request = request.body(Body::from(sent.body.clone())).expect("a request");
        let response = self.router.clone().call(request).await.expect("a router never fails");
        let (head, mut body) = response.into_parts();
        let mut text = String::new();
        let is_endless = sent.method == Method::GET
            && head.headers.get("content-type").is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let patience = if is_endless { Duration::from_millis(30) } else { crate::TIMEOUT };
        let frames = async {
            while let Some(frame) = std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx)).await {
                let data = frame.expect("a whole body").into_data().unwrap_or_default();
                text += &String::from_utf8_lossy(&data);
            }
        };
        let ended = tokio::time::timeout(patience, frames).await;
        assert!(ended.is_ok() || is_endless, "{} does not end", sent.path);
        (head.status.as_u16(), head.headers, text)
    }

    fn names(&self) -> Vec<String> {
        let open = self.closables.iter().map(|it| it.name.clone());
        open.chain(["qqone", "team-qqtwo", "qqskill", "zznew"].map(str::to_owned)).collect()
    }

    fn paths(&self) -> Vec<String> {
        let open = self.closables.iter().map(|it| it.path.clone());
        open.chain(["qqone.md", "team/qqtwo.md", "qqfile.txt", "promptshelf.toml"].map(str::to_owned)).collect()
    }

    /// A random request of the API, from its document, so that every operation is among them.
    fn of_api(&self, random: &mut Random) -> Sent {
        let paths = self.document["paths"].as_object().expect("paths");
        let all: Vec<(&String, &String, &Value)> = paths
            .iter()
            .flat_map(|(path, item)| {
                item.as_object().into_iter().flatten().map(move |(method, operation)| (path, method, operation))
            })
            .collect();
        let (path, method, operation) = pick(random, &all);
        let channel = pick(random, &["production", HIDDEN, HIDDEN]);
        let (name, file) = (pick(random, &self.names()), pick(random, &self.paths()));
        let (id, number) = (1 + random.below(8), 1 + random.below(3));
        let mut filled = path
            .replace("{channel}", channel)
            .replace("{id}", &id.to_string())
            .replace("{number}", &number.to_string())
            .replace("{path}", &file)
            .replace("{name}", &name.replace("://", "%3A%2F%2F"))
            .replace("{source}", "production");
        let mut mark = '?';
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            if parameter["in"] != "query" || (parameter["required"] != true && random.below(3) > 0) {
                continue;
            }
            let numbers = ["0", "1", "2"].map(str::to_owned);
            let words = ["qq", "zz", "ss", "open", "true", "production", HIDDEN].map(str::to_owned);
            let key = parameter["name"].as_str().expect("a name");
            let value = match key {
                "from" | "to" | "revision" | "version" | "before" | "limit" | "proposal" | "number" => {
                    pick(random, &numbers)
                }
                "channel" | "toChannel" => pick(random, &["production", HIDDEN]).to_owned(),
                "rendered" => "true".to_owned(),
                "prompt" | "name" => name.clone(),
                _ => pick(random, &words),
            };
            filled += &format!("{mark}{key}={value}");
            mark = '&';
        }
        let body = if operation["requestBody"].is_object() {
            let id_of = operation["operationId"].as_str().expect("an id");
            self.body(random, id_of, channel, &name, &file).to_string()
        } else {
            String::new()
        };
        Sent {
            method: method.to_uppercase().parse().expect("a method"),
            path: filled,
            caller: "",
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body,
            message: None,
        }
    }

    fn body(&self, random: &mut Random, operation: &str, channel: &str, name: &str, file: &str) -> Value {
        let other = pick(random, &["production", HIDDEN]);
        let id = 1 + random.below(8);
        let side = match random.below(4) {
            0 => json!({ "proposal": { "id": id } }),
            1 => json!({ "promote": { "from": other, "to": channel } }),
            2 => json!({ "rollback": { "channel": other, "to": 1 } }),
            _ => json!({ "revision": { "channel": other } }),
        };
        let stolen = json!([{ "path": "zzstolen.md", "before": null, "content": { "digest": self.hidden_digest } }]);
        match operation {
            "read_contents" => json!({ "paths": [file, "qqfile.txt"] }),
            "compare" => json!({ "before": { "channel": channel, "revision": 1 }, "after": side }),
            "compare_renderings" => {
                json!({ "before": { "channel": channel, "revision": 1 }, "after": side, "prompt": name })
            }
            "promote" => json!({ "from": other, "message": "A promotion", "dryRun": true }),
            "rollback" => json!({ "to": 1, "message": "Back", "dryRun": true }),
            "start_rollout" => json!({ "to": other, "steps": "1m" }),
            "check" => json!({ "channel": channel, "changes": stolen }),
            "create_proposal" => json!({ "base": 2, "message": "Mine", "changes": stolen }),
            "replace_proposal" => json!({ "base": 2, "message": "Mine", "changes": stolen }),
            "analyze_channel" => {
                json!({ "path": file, "changes": [{ "path": file, "content": { "text": "{{ prompt('" } }],
                "complete": { "line": 0, "character": 11 }, "tests": true })
            }
            "rename_in_channel" => json!({ "from": file, "to": "zzother.md", "changes": [] }),
            "add_comment" => json!({ "digest": self.hidden_digest, "text": "A comment" }),
            "review_proposal" => json!({ "verdict": "reject", "digest": self.hidden_digest, "note": "No" }),
            "publish_proposal" => json!({ "digest": self.hidden_digest }),
            "add_evaluation" => json!({ "evaluation": "mine", "prompt": name, "digest": self.hidden_digest,
                "scores": { "score": 1 }, "cases": [] }),
            "render_prompt" => json!({ "channel": other, "arguments": { "which": "x" } }),
            "upload" => json!({ "contents": [{ "text": "mine" }] }),
            "create_token" => json!({ "name": "mine", "scopes": [] }),
            _ => json!({}),
        }
    }

    fn of_mcp(&self, random: &mut Random) -> Sent {
        let revision = pick(random, &MCP_REVISIONS);
        let name = pick(random, &self.names());
        let uris = ["library:///", "skill://"].map(|scheme| format!("{scheme}{}", pick(random, &self.paths())));
        let uri = if name.contains("://") { name.clone() } else { pick(random, &uris) };
        let typed = pick(random, &["", "z", "q", "s"]);
        let methods = [
            ("prompts/list", json!({})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("tools/list", json!({})),
            ("skills/list", json!({})),
            ("ping", json!({})),
            ("server/discover", json!({})),
            ("prompts/get", json!({ "name": name, "arguments": { "which": "x" } })),
            ("prompts/get", json!({ "name": name })),
            ("skills/get", json!({ "name": name })),
            ("resources/read", json!({ "uri": uri })),
            ("resources/directory/read", json!({ "uri": uri })),
            ("resources/subscribe", json!({ "uri": uri })),
            ("tools/call", json!({ "name": name, "arguments": { "which": "x" } })),
            ("tools/call", json!({ "name": "find_prompt", "arguments": { "query": typed } })),
            (
                "tools/call",
                json!({ "name": "use_prompt", "arguments": { "name": name, "arguments": { "which": "x" } } }),
            ),
            (
                "completion/complete",
                json!({ "ref": { "type": "ref/prompt", "name": name }, "argument": { "name": "which", "value": typed } }),
            ),
            ("logging/setLevel", json!({ "level": "debug" })),
            (
                "initialize",
                json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } }),
            ),
            ("no/method", json!({ "name": name })),
        ];
        let (method, mut params) = pick(random, &methods);
        let mut headers: Vec<(String, String)> = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", revision),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
        if revision == "2026-07-28" {
            headers.push(("mcp-method".to_owned(), method.to_owned()));
            if let Some(name) = params.get("name").or(params.get("uri")).and_then(Value::as_str) {
                headers.push(("mcp-name".to_owned(), name.to_owned()));
            }
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": revision,
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let places = ["/mcp", "/mcp", "/channels/production/mcp", "/profiles/blanks/mcp", "/channels/qqsecret/mcp"]
            .map(str::to_owned);
        Sent {
            method: Method::POST,
            path: pick(random, &places),
            caller: "",
            headers,
            body: json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string(),
            message: Some((revision, method.to_owned())),
        }
    }

    fn of_page(&self, random: &mut Random) -> Sent {
        let name = pick(random, &self.names()).replace("://", "%3A%2F%2F");
        let paths = [
            "/library/clients".to_owned(),
            "/library/diagnostics".to_owned(),
            "/library/facts".to_owned(),
            "/library/changes".to_owned(),
            "/library/prompts".to_owned(),
            "/library/starters".to_owned(),
            format!("/library/prompts/{name}"),
            "/api/public/v2/prompts".to_owned(),
            "/api/public/v2/prompts?tag=qqtag".to_owned(),
            format!("/api/public/v2/prompts/{name}"),
            format!("/api/public/v2/prompts/{name}?label={HIDDEN}"),
            format!("/api/public/v2/prompts/{name}?version=1"),
            format!("/api/v1/prompts/{name}?version=1"),
            format!("/api/v1/prompts/{name}?channel={HIDDEN}"),
            format!("/api/v1/channels/{HIDDEN}/events"),
            "/api/v1/channels/production/events".to_owned(),
            "/readyz".to_owned(),
            "/mcp/server-card".to_owned(),
            "/".to_owned(),
            "/api/v1/nothing/qq".to_owned(),
        ];
        let path = pick(random, &paths);
        Sent { method: Method::GET, path, caller: "", headers: vec![], body: String::new(), message: None }
    }

    /// Fails if an answer has what its caller may not see.
    fn check(&self, sent: &Sent, answer: &str) {
        let case = || format!("{} {} by {:?} with {}\n{answer}", sent.method, sent.path, sent.caller, sent.body);
        let roles = CALLERS.iter().find(|(name, ..)| *name == sent.caller).map_or(&[][..], |(.., roles)| roles);
        // The report has the names that callers have asked for, whether they exist or not.
        let names = if sent.path.starts_with("/api/v1/usage") { String::new() } else { unsent(sent, answer) };
        if !roles.contains(&"three") {
            for bytes in ["ss1bytes", "ss2bytes", "ss-two-bytes", "ssnewbytes", "ssfile"] {
                assert!(!answer.contains(bytes), "bytes of the hidden channel: {}", case());
            }
            for name in [
                "qqone",
                "qqtwo",
                "qqskill",
                "qqfile",
                "qqtag",
                "qqmessage",
                "qqcomment",
                "qqevaluation",
                "qqrole",
                HIDDEN,
            ] {
                assert!(!names.contains(name), "{name} of the hidden channel: {}", case());
            }
        }
        // Who may read the library of the channel sees all of its files.
        if sent.caller == "librarian" {
            return;
        }
        for closable in self.closables.iter().filter(|it| !it.roles.iter().all(|role| roles.contains(role))) {
            let token = &closable.token;
            for revision in 1..=2 {
                assert!(!answer.contains(&bytes_of(token, revision)), "bytes of {closable:?}: {}", case());
            }
            assert!(!names.contains(token.as_str()), "name of {closable:?}: {}", case());
        }
    }

    /// Fails if an answer of the protocol is not valid by its schema.
    fn check_schema(&self, sent: &Sent, answer: &str) {
        let (Some(schemas), Some((revision, method))) = (&self.schemas, &sent.message) else { return };
        let answer: Vec<Value> = match serde_json::from_str(answer) {
            Ok(answer) => vec![answer],
            Err(_) => {
                let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
                data.filter_map(|text| serde_json::from_str(text).ok()).collect()
            }
        };
        let (schema, is_new) = &schemas[revision];
        // What is refused before it is read has no id.
        let is_answer = |answer: &&Value| answer["jsonrpc"] == "2.0" && answer.get("id").is_some();
        for answer in answer.iter().filter(is_answer) {
            let kind = match method.as_str() {
                _ if answer.get("error").is_some() && *is_new => "JSONRPCErrorResponse",
                _ if answer.get("error").is_some() => "JSONRPCError",
                "prompts/list" => "ListPromptsResult",
                "resources/list" => "ListResourcesResult",
                "resources/templates/list" => "ListResourceTemplatesResult",
                "tools/list" => "ListToolsResult",
                "prompts/get" => "GetPromptResult",
                "resources/read" => "ReadResourceResult",
                "tools/call" => "CallToolResult",
                "completion/complete" => "CompleteResult",
                "initialize" => "InitializeResult",
                "server/discover" => "DiscoverResult",
                "ping" | "logging/setLevel" | "resources/subscribe" => "EmptyResult",
                _ => continue,
            };
            let value = if answer.get("error").is_some() { answer } else { &answer["result"] };
            let key = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
            let (mut compiled, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
            compiler.add_resource("schema.json", schema.clone()).expect("JSON");
            let index = compiler.compile(&format!("schema.json#/{key}/{kind}"), &mut compiled).expect("a definition");
            if let Err(error) = compiled.validate(value, index) {
                panic!("{method} in {revision} is not a {kind}: {value}\n{error:#}");
            }
        }
    }
}

/// Leaves out what was sent, which may be repeated.
fn unsent(sent: &Sent, answer: &str) -> String {
    let mut names = answer.to_owned();
    let words = format!("{} {}", sent.path.replace("%3A%2F%2F", "://"), sent.body);
    for word in words.split(|c: char| !(c.is_alphanumeric() || "-_./:".contains(c))).filter(|word| word.len() > 2) {
        names = names.replace(word, "");
        for part in word.split(['/', '?', '=', '.', '-']).filter(|part| part.len() > 2) {
            names = names.replace(part, "");
        }
    }
    names
}

/// The schemas by revision, each with whether errors have their newer name.
fn schemas() -> Option<BTreeMap<&'static str, (Value, bool)>> {
    let folder = std::path::PathBuf::from(std::env::var_os("MCP_SCHEMAS")?);
    let schema = |revision: &'static str| {
        let text = std::fs::read_to_string(folder.join(format!("{revision}.json"))).expect("a schema");
        (revision, (serde_json::from_str(&text).expect("JSON"), revision >= "2025-11-25"))
    };
    Some(MCP_REVISIONS.into_iter().map(schema).collect())
}

async fn try_seed(seed: u64, requests: u64) -> BTreeSet<String> {
    let mut random = Random::new(seed);
    let memory = std::path::Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder");
    let site = Site::new(&mut random, folder.path()).await;
    let mut shown = BTreeSet::new();
    for number in 0..requests {
        let mut sent = match random.below(10) {
            0..5 => site.of_api(&mut random),
            5..8 => site.of_mcp(&mut random),
            _ => site.of_page(&mut random),
        };
        let is_read = sent.method == Method::GET || sent.message.is_some() || sent.path.contains("/compare");
        // What everything shows that may be seen: otherwise nothing would be tested.
        if is_read && number % 3 == 0 {
            sent.caller = "root";
            let (_, _, answer) = site.send(&sent).await;
            if answer.contains("ss1bytes") || unsent(&sent, &answer).contains("qq") {
                let place = sent.message.as_ref().map_or(&*sent.path, |(_, method)| method);
                let place = place.split('?').next().unwrap_or_default();
                let part =
                    |part: &str| if part.bytes().any(|byte| byte.is_ascii_digit()) { "N" } else { part }.to_owned();
                shown.insert(place.split('/').map(part).collect::<Vec<_>>().join("/"));
            }
            site.check_schema(&sent, &answer);
        }
        sent.caller = pick(&mut random, &["librarian", "librarian", "ada", "ben", "cleo", ""]);
        let (_, headers, answer) = site.send(&sent).await;
        site.check(&sent, &format!("{headers:?}\n{answer}"));
        site.check_schema(&sent, &answer);
    }
    shown
}

// req: S-532
#[tokio::test]
async fn no_answer_has_what_its_caller_may_not_see() {
    const REQUESTS: u64 = 700;
    let only = amount("PROMPTSHELF_SEED");
    let first = only.unwrap_or(1 + 1_000_000 * amount("CLOSED_SEED").unwrap_or_default());
    let minutes = amount("CLOSED_MINUTES").map(|minutes| Duration::from_secs(60 * minutes));
    let (begun, mut count, mut shown) = (std::time::Instant::now(), 0, BTreeSet::new());
    let goes_on = |count| minutes.map_or(count < 2, |minutes| begun.elapsed() < minutes);
    while count == 0 || (only.is_none() && goes_on(count)) {
        println!("PROMPTSHELF_SEED={}", first + count);
        shown.extend(try_seed(first + count, REQUESTS).await);
        count += 1;
    }
    assert!(shown.len() >= 15, "those who may see it see too little: {shown:?}");
    figure(&format!(
        "closed content: {count} seeds from {first}, {} requests, shown by {}",
        REQUESTS * count,
        shown.len()
    ));
}
