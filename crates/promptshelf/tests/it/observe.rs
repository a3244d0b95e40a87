//! Metrics, traces and logs of the running program.

mod alerts;
mod collector;
mod leaks;

use std::process::Command;

use serde_json::{Value, json};

use self::collector::{Collector, Span};
use crate::{
    program::{Folder, PATIENCE, Pipes, Server, ended, library, promptshelf},
    server_auth::{Answer, ask_at},
};

const HELLO: &str =
    "---\ndescription: Greets\narguments:\n  - name: whom\n    description: Whom\n---\nHello {{ whom }}.\n";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const OTHER_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "b7ad6b7169203331";

fn hello() -> Folder {
    library(&[("hello.md", HELLO)])
}

/// Starts a server with a metrics listener, and returns the server and the listener's URL.
fn with_figures(folder: &Folder, more: &[&str]) -> (Server, String) {
    let arguments: Vec<&str> = ["--metrics", "127.0.0.1:0"].iter().chain(more).copied().collect();
    measured(Server::of(folder, &arguments))
}

fn measured(server: Server) -> (Server, String) {
    let line = server.startup_log.lines().find_map(|line| line.split_once("metrics are served on "));
    let (_, url) = line.unwrap_or_else(|| panic!("no address in the log: {}", server.startup_log));
    let url = url.split(['"', ' ']).next().expect("a URL").to_owned();
    (server, url)
}

fn get(url: &str) -> (u16, String, String) {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut answer = agent.get(url).call().expect("the server answers");
    let kind = answer.headers().get("content-type").map(|kind| kind.to_str().expect("ASCII").to_owned());
    (answer.status().as_u16(), kind.unwrap_or_default(), answer.body_mut().read_to_string().expect("text"))
}

fn scrape(url: &str) -> String {
    get(url).2
}

/// Sends a modern request with additional `_meta` members and headers.
fn modern(url: &str, method: &str, mut params: Value, more: Value, headers: &[(&str, &str)]) -> Answer {
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        params["_meta"][key] = value.clone();
    }
    let own = [("Mcp-Protocol-Version", "2026-07-28"), ("Mcp-Method", method), ("Mcp-Name", &name)];
    let headers: Vec<(&str, &str)> =
        own.iter().chain(headers).copied().filter(|(_, value)| !value.is_empty()).collect();
    ask_at(url, "", &headers, method, &params)
}

/// Terminates the server with SIGTERM and waits for its exit.
fn end(server: &mut Server) {
    let pid = rustix::process::Pid::from_child(&server.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
    ended(&mut server.child);
}

#[test]
fn metrics_have_their_own_listener() {
    let folder = hello();
    let (server, url) = with_figures(&folder, &["--audit", "audit.jsonl"]);
    for _ in 0..3 {
        assert_eq!(server.request("prompts/get", &json!({ "name": "hello" })).0, 200);
    }
    server.request("prompts/get", &json!({ "name": "nothing" }));
    let (status, kind, text) = get(&url);
    assert_eq!((status, kind.starts_with("application/openmetrics-text")), (200, true));
    for line in [
        "promptshelf_requests_total{method=\"prompts/get\",outcome=\"ok\"} 3",
        "promptshelf_requests_total{method=\"prompts/get\",outcome=\"invalid-params\"} 1",
        "promptshelf_request_duration_seconds_count{method=\"prompts/get\"} 4",
        "promptshelf_renders_total{outcome=\"ok\"} 3",
        "promptshelf_render_duration_seconds_count 3",
        "promptshelf_prompts 1",
        "promptshelf_prompt_calls_total{prompt=\"hello\",outcome=\"ok\"} 3",
        "promptshelf_prompt_calls_total{prompt=\"\",outcome=\"unknown-prompt\"} 1",
        "promptshelf_unknown_arguments_total 0",
        "promptshelf_settings_valid 1",
        "promptshelf_library_readable 1",
        "promptshelf_failed_loads_total 0",
        "promptshelf_diagnostics{severity=\"error\"} 0",
        "promptshelf_open_subscriptions 0",
        "promptshelf_audit_records_lost_total 0",
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    #[cfg(target_os = "linux")]
    for name in ["cpu_seconds_total", "resident_memory_bytes", "start_time_seconds", "open_fds", "max_fds", "threads"] {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("process_{name} ")));
        assert!(line.and_then(|value| value.parse().ok()).is_some_and(|value: f64| value > 0.0), "{name}: {text}");
    }
    assert_eq!(get(&server.url.replace("/mcp", "/metrics")).0, 404, "and on no other");
}

#[test]
fn metrics_follow_the_library_its_errors_and_rejections() {
    let folder = library(&[("hello.md", HELLO), ("../server.toml", "[limits]\nrequests-per-minute = 1\n")]);
    let (server, url) = with_figures(&folder, &[]);
    for _ in 0..3 {
        server.request("prompts/list", &json!({}));
    }
    let text = scrape(&url);
    assert!(text.contains("promptshelf_rate_limited_total{limit=\"requests-per-minute\"} 2"), "{text}");
    assert!(text.contains("{method=\"prompts/list\",outcome=\"too-many-requests\"} 2"), "{text}");
    std::fs::write(folder.path().join("prompts/broken.md"), "---\ndescription: [\n---\nText.\n").expect("written");
    let begun = std::time::Instant::now();
    while !scrape(&url).contains("promptshelf_diagnostics{severity=\"error\"} 1") {
        assert!(begun.elapsed() < PATIENCE, "{}", scrape(&url));
        std::thread::yield_now();
    }
}

// req: S-28
#[test]
fn caller_supplied_names_never_become_metric_labels() {
    let folder = hello();
    let (server, url) = with_figures(&folder, &[]);
    server.request("prompts/get", &json!({ "name": "hello" }));
    server.request("made/up-0", &json!({}));
    let before = scrape(&url).lines().count();
    for at in 1..50 {
        server.request(&format!("made/up-{at}"), &json!({}));
        server.request("prompts/get", &json!({ "name": "hello", "arguments": { "whom": format!("made-up-{at}") } }));
    }
    let text = scrape(&url);
    assert_eq!(text.lines().count(), before, "{text}");
    assert!(!text.contains("made"), "{text}");
}

#[test]
fn both_listeners_report_health() {
    let folder = hello();
    let (server, url) = with_figures(&folder, &[]);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(get(&server.url.replace("/mcp", path)).0, 200, "{path}");
        assert_eq!(get(&url.replace("/metrics", path)).0, 200, "{path}");
    }
}

#[tokio::test]
async fn stopping_server_is_not_ready() {
    use tower_service::Service as _;

    let library = promptshelf::Library::builder().build().expect("a library");
    let routes = promptshelf::http::router(&library, &promptshelf::http::Options::default());
    let status = async |path: &str| {
        let request = http::Request::get(path).body(axum::body::Body::empty()).expect("a request");
        routes.clone().call(request).await.expect("an answer").status().as_u16()
    };
    assert_eq!((status("/readyz").await, status("/healthz").await), (200, 200));
    library.server().shutdown();
    assert_eq!((status("/readyz").await, status("/healthz").await), (503, 200));
}

#[test]
fn unavailable_metrics_address_ends_the_program() {
    let folder = hello();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let shown = crate::program::run(&folder, &["serve", "prompts", "--http", "127.0.0.1:0", "--metrics", &address]);
    assert!(shown.contains("exit code: 5") && shown.contains("cannot serve metrics on"), "{shown}");
    let shown = crate::program::run(&folder, &["serve", "prompts", "--stdio", "--traces", "127.0.0.1:4318"]);
    assert!(shown.contains("exit code: 2") && shown.contains("the URL of a collector"), "{shown}");
}

/// Returns the spans of a request, found by the response's request id: the root span and its descendants.
fn spans<'s>(spans: &'s [Span], answer: &Answer) -> (&'s Span, Vec<&'s Span>) {
    let id = answer.headers["x-request-id"].to_str().expect("ASCII");
    let own = spans.iter().find(|span| span.attributes.get("request").is_some_and(|request| request == id));
    let own = own.unwrap_or_else(|| panic!("no span of {id} in {spans:#?}"));
    (own, spans.iter().filter(|span| span.parent == own.id).collect())
}

// req: M19, S-29
#[test]
fn http_request_continues_caller_trace() {
    let folder = hello();
    let collector = Collector::start();
    let (mut server, _) = with_figures(&folder, &["--traces", &collector.url, "--audit", "audit.jsonl"]);
    let url = &server.url;
    let named = json!({ "name": "hello" });
    let header = format!("00-{OTHER_TRACE}-{PARENT}-01");
    let headers: &[(&str, &str)] = &[("traceparent", &header), ("tracestate", "a=1"), ("tracestate", "b=2")];
    let meta = json!({ "traceparent": format!("00-{TRACE}-{PARENT}-01"), "tracestate": "vendor=1" });
    let by_meta = modern(url, "prompts/get", named.clone(), meta, headers);
    let by_header = ask_at(url, "", headers, "prompts/get", &named);
    let malformed =
        modern(url, "prompts/get", named.clone(), json!({ "traceparent": "00-0-0-0", "tracestate": 7 }), &[]);
    let alone = ask_at(url, "", &[], "prompts/list", &json!({}));
    let refused = ask_at(url, "", &[], "prompts/get", &json!({ "name": "nothing" }));
    let meta = json!({ "traceparent": format!("00-{TRACE}-{PARENT}-00") });
    let unsampled = modern(url, "prompts/get", named, meta, &[]);
    end(&mut server);

    let found = collector.spans();
    let (own, below) = spans(&found, &by_meta);
    assert_eq!((&*own.trace, &*own.parent, &*own.state), (TRACE, PARENT, "vendor=1"), "{own:#?}");
    assert_eq!((&*own.name, &*own.attributes["mcp.method.name"]), ("prompts/get", "prompts/get"));
    assert_eq!((&*below[0].name, &*below[0].trace), ("render", TRACE));
    assert_eq!(below[0].attributes["gen_ai.prompt.name"], "hello");
    let (own, _) = spans(&found, &by_header);
    assert_eq!((&*own.trace, &*own.parent, &*own.state), (OTHER_TRACE, PARENT, "a=1,b=2"), "{own:#?}");
    for begun_here in [&malformed, &alone] {
        let (own, _) = spans(&found, begun_here);
        assert_eq!((own.trace.len(), &*own.parent), (32, ""), "{own:#?}");
        assert!(own.trace != TRACE && own.trace != OTHER_TRACE);
    }
    assert_eq!(spans(&found, &refused).0.attributes["error.type"], "invalid-params");
    let id = unsampled.headers["x-request-id"].to_str().expect("ASCII");
    assert!(!found.iter().any(|span| span.attributes.get("request").is_some_and(|request| request == id)));
    assert!(found.iter().all(|span| span.service == "promptshelf"), "{found:#?}");

    // The audit record has the same id.
    let records = std::fs::read_to_string(folder.path().join("audit.jsonl")).expect("the file");
    let id = by_meta.headers["x-request-id"].to_str().expect("ASCII");
    assert!(records.lines().any(|line| line.contains(id) && line.contains("\"method\":\"get\"")), "{records}");
}

#[test]
fn stdio_request_continues_caller_trace() {
    let folder = hello();
    let collector = Collector::start();
    let mut command: Command = promptshelf();
    command.args(["serve", "prompts", "--stdio", "--traces", &collector.url]).current_dir(folder.path());
    let mut pipes = Pipes::start(command);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "traceparent": format!("00-{TRACE}-{PARENT}-01"),
    });
    let answer = pipes.request(1, "prompts/get", &json!({ "name": "hello", "_meta": meta }));
    assert!(answer["result"].is_object(), "{answer}");
    pipes.rest();
    let found = collector.spans();
    let own = found.iter().find(|span| span.name == "prompts/get").unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!((&*own.trace, &*own.parent), (TRACE, PARENT));
}

// req: S-30
#[test]
fn missing_collector_does_not_delay_requests() {
    let folder = hello();
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", nowhere.local_addr().expect("an address"));
    drop(nowhere);
    let mut server = Server::of(&folder, &["--traces", &address]);
    for _ in 0..20 {
        assert_eq!(server.request("prompts/get", &json!({ "name": "hello" })).0, 200);
    }
    end(&mut server);
    let log: Vec<String> = server.log.iter().collect();
    let failures: Vec<&String> = log.iter().filter(|line| line.contains("spans cannot be sent")).collect();
    assert!(failures.len() == 1 && failures[0].contains(&address), "{log:?}");
    assert!(failures[0].contains("no connection") && !log.iter().any(|line| line.contains("Exporter.")), "{log:?}");
}

#[test]
fn refused_host_is_logged_with_its_request_and_the_setting() {
    let mut server = Server::of(&hello(), &["--log-format", "json"]);
    let ask = || ask_at(&server.url, "", &[("Host", "prompts.example.com")], "prompts/list", &json!({}));
    let refused = ask();
    assert_eq!(refused.status, 403);
    let id = refused.headers["x-request-id"].to_str().expect("ASCII").to_owned();
    // At most ten in a minute, with the number of those that were left out.
    assert_eq!(ask().status, 403);
    end(&mut server);
    let lines: Vec<Value> = server
        .log
        .iter()
        .filter(|line| line.contains("request refused"))
        .map(|line| serde_json::from_str(&line).expect("JSON"))
        .collect();
    assert_eq!((lines.len(), &lines[1]["further"]), (2, &json!(0)), "{lines:?}");
    assert_eq!((&lines[0]["request"], &lines[0]["host"]), (&json!(id), &json!("prompts.example.com")));
    assert!(lines[0]["message"].as_str().is_some_and(|message| message.contains("`allow-hosts`")), "{lines:?}");
}
