//! The client at servers of older revisions, and at servers that use the freedom of the specification.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
};
#[cfg(unix)]
use std::{process::Stdio, time::Duration};

use axum::{
    Json, Router,
    http::{Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::any,
};
use serde_json::{Value, json};

use crate::{
    fake_server::FakeServer,
    program::{library, promptshelf, shown},
};

/// The requests that a server received, by HTTP method, with the message.
type Received = Arc<Mutex<Vec<(Method, Value)>>>;

/// Starts a server with sessions. `discover` is its result for `server/discover`, and `list` its answer to
/// `prompts/list`.
fn server(
    discover: Option<Value>,
    list: impl Fn(&Value) -> Response + Clone + Send + Sync + 'static,
) -> (FakeServer, Received) {
    let received = Received::default();
    let log = Arc::clone(&received);
    let answer = move |method: Method, body: String| async move {
        let message: Value = serde_json::from_str(&body).unwrap_or_default();
        log.lock().expect("no panic").push((method, message.clone()));
        let result = |result: &Value| json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        match (message["method"].as_str(), &discover) {
            (Some("server/discover"), Some(discovered)) => Json(result(discovered)).into_response(),
            (Some("server/discover"), None) => (StatusCode::BAD_REQUEST, "no session").into_response(),
            (Some("initialize"), _) => {
                let version = &message["params"]["protocolVersion"];
                let info = json!({ "name": "old", "version": "1" });
                let initialized =
                    json!({ "protocolVersion": version, "capabilities": { "prompts": {} }, "serverInfo": info });
                ([("Mcp-Session-Id", "s1")], Json(result(&initialized))).into_response()
            }
            (Some("prompts/list"), _) => list(&result(&json!({ "prompts": [{ "name": "found" }] }))),
            _ => StatusCode::ACCEPTED.into_response(),
        }
    };
    (FakeServer::serving(Router::new().route("/mcp", any(answer))), received)
}

fn list(folder: &Path, words: &[&str]) -> String {
    let mut command = promptshelf();
    let timeout: &[&str] = if words.contains(&"--timeout") { &[] } else { &["--timeout", "20"] };
    command.arg("list").args(timeout).args(words).current_dir(folder);
    command.env("XDG_STATE_HOME", folder.join("state"));
    shown(command, "")
}

fn offered(received: &Received) -> Vec<String> {
    let received = received.lock().expect("no panic");
    let offers = received.iter().filter(|(_, message)| message["method"] == "initialize");
    offers.filter_map(|(_, message)| Some(message["params"]["protocolVersion"].as_str()?.to_owned())).collect()
}

/// Revision 2026-07-28 has none.
#[test]
fn handshake_offers_a_revision_that_has_one() {
    let folder = library(&[]);
    let (old, received) = server(None, |answer| Json(answer.clone()).into_response());
    for _ in 0..2 {
        let listed = list(folder.path(), &["--url", &old.url]);
        assert!(listed.contains("found"), "{listed}");
    }
    assert_eq!(offered(&received), ["2025-11-25", "2025-11-25"], "the second run remembers the server");

    let discovered = json!({ "supportedVersions": ["2025-03-26", "2025-06-18"], "capabilities": { "prompts": {} } });
    let (older, received) = server(Some(discovered), |answer| Json(answer.clone()).into_response());
    let listed = list(folder.path(), &["--url", &older.url]);
    assert!(listed.contains("found"), "{listed}");
    assert_eq!(offered(&received), ["2025-06-18"]);
}

#[cfg(unix)]
#[test]
fn process_that_ends_on_discovery_is_started_again_with_a_handshake() {
    let folder = library(&[]);
    let script = r#"
        answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
        while read -r line; do
            id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            case "$line" in
            *server/discover*) exit 1 ;;
            *'"initialize"'*2025-11-25*) answer '{"protocolVersion":"2025-11-25","capabilities":{"prompts":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
            *prompts/list*) answer '{"prompts":[{"name":"found"}]}' ;;
            esac
        done"#;
    let listed = list(folder.path(), &["--", "sh", "-c", script]);
    assert!(listed.contains("found"), "{listed}");
}

#[test]
fn sessions_are_deleted_before_the_program_ends() {
    let folder = library(&[]);
    let (server, received) = server(None, |answer| Json(answer.clone()).into_response());
    list(folder.path(), &["--url", &server.url]);
    let received = received.lock().expect("no panic");
    assert_eq!(received.iter().filter(|(method, _)| method == Method::DELETE).count(), 1, "{received:?}");
}

#[test]
fn every_permitted_form_of_an_answer_is_read() {
    let folder = library(&[]);
    let forms: [fn(&Value) -> (&'static str, String); 6] = [
        |answer| ("Application/JSON; Charset=UTF-8", answer.to_string()),
        |answer| ("application/json", json!([answer, { "jsonrpc": "2.0", "method": "notifications/x" }]).to_string()),
        |answer| ("text/event-stream", format!("event: ping\ndata: now\n\ndata: {answer}\n\n")),
        |answer| ("text/event-stream", format!("retry: soon\nother: 1\ndata: {answer}\n\n")),
        |answer| ("text/event-stream", format!("data: [{answer}]\n\n")),
        |answer| ("application/json", answer.to_string().replace("found", "found\\ud800")),
    ];
    for form in forms {
        let answered = move |answer: &Value| {
            let (media_type, text) = form(answer);
            ([(header::CONTENT_TYPE, media_type)], text).into_response()
        };
        let (server, _) = server(None, answered);
        let listed = list(folder.path(), &["--url", &server.url]);
        assert!(listed.contains("found"), "{}: {listed}", form(&json!({})).1);
    }
}

#[cfg(unix)]
#[test]
fn processes_end_in_the_steps_of_the_specification() {
    let folder = library(&[("hello.md", "Say hello.\n")]);
    let ending = |name: &str, script: &str| {
        let serve = format!("'{}' serve prompts --stdio\n", env!("CARGO_BIN_EXE_promptshelf"));
        list(folder.path(), &["--", "sh", "-c", &format!("trap 'echo signal >>{name}; exit' TERM\n{serve}{script}")]);
        fs::read_to_string(folder.path().join(name)).unwrap_or_default()
    };
    assert_eq!(ending("at-once", "echo end of input >>at-once"), "end of input\n");
    assert_eq!(ending("later", "while :; do sleep 0.05; done"), "signal\n");
}

/// The specification permits an error without an identifier as the body of a refusal.
#[test]
fn refusal_without_identifier_is_shown_at_once() {
    let folder = library(&[]);
    for status in [StatusCode::BAD_REQUEST, StatusCode::OK] {
        let refused = move |_: &Value| {
            let error = json!({ "code": -32000, "message": "the reason" });
            (status, Json(json!({ "jsonrpc": "2.0", "id": null, "error": error }))).into_response()
        };
        let (server, _) = server(None, refused);
        let listed = list(folder.path(), &["--url", &server.url]);
        assert!(listed.contains("the reason"), "{status}: {listed}");
    }
    let (server, _) = server(None, |_| StatusCode::FORBIDDEN.into_response());
    let listed = list(folder.path(), &["--url", &server.url]);
    assert!(listed.starts_with("exit code: 12\n") && listed.contains("denied access"), "{listed}");
}

/// Answers in JSON-RPC, one line for each; `$id` is that of the request.
#[cfg(unix)]
const ANSWER: &str = r#"answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
    request() { read -r line && id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'); }
    modern='"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"prompts":{}},"serverInfo":{"name":"s","version":"1"},"ttlMs":0,"cacheScope":"private"}'
"#;

#[cfg(unix)]
#[test]
fn answer_that_cannot_be_read_is_reported_at_once() {
    let folder = library(&[]);
    let script = format!("{ANSWER} request; answer \"$modern\"; request; answer '\"result\":5e999'; sleep 30");
    let listed = list(folder.path(), &["--", "sh", "-c", &script]);
    assert!(listed.contains("the server's answer is no message of JSON-RPC"), "{listed}");
}

#[cfg(unix)]
#[test]
fn server_that_is_slow_to_start_is_asked_again_in_its_revision() {
    let folder = library(&[]);
    let script = format!(
        r#"{ANSWER} sleep 3.5
        while request; do
            case "$line" in
            *server/discover*) answer "$modern" ;;
            *prompts/list*) answer '"result":{{"resultType":"complete","prompts":[{{"name":"found"}}],"ttlMs":0,"cacheScope":"private"}}' ;;
            *'"initialize"'*) answer '"result":{{"protocolVersion":"2025-11-25","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}' ;;
            esac
        done"#
    );
    let listed = list(folder.path(), &["--timeout", "9", "--", "sh", "-c", &script]);
    assert!(listed.contains("found"), "{listed}");
}

#[cfg(unix)]
#[test]
fn server_ends_with_a_client_that_is_interrupted() {
    let folder = library(&[]);
    for (signal, code) in [(rustix::process::Signal::INT, 130), (rustix::process::Signal::TERM, 143)] {
        let ended = folder.path().join(format!("ended-{code}"));
        let script =
            format!("trap 'echo signal >{}; exit' TERM; echo >started; while :; do sleep 0.05; done", ended.display());
        let mut command = promptshelf();
        command.args(["list", "--", "sh", "-c", &script]).current_dir(folder.path());
        let mut client = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
        let started = folder.path().join("started");
        while !started.exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
        fs::remove_file(&started).expect("a file");
        let id = rustix::process::Pid::from_child(&client);
        rustix::process::kill_process(id, signal).expect("a running program");
        assert_eq!(client.wait().expect("an end").code(), Some(code));
        assert_eq!(fs::read_to_string(&ended).expect("the server has ended"), "signal\n");
    }
}
