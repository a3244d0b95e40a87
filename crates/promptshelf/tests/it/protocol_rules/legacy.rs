//! Legacy servers: detection, sessions, and resumed responses.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, Method, StatusCode},
    response::{IntoResponse, Response},
    routing::any,
};
use promptshelf::client::{Client, ClientError, Endpoint};
use serde_json::{Value, json};

use super::{connected, names, recording_server};
use crate::fake_server::FakeServer;

const VERSION: &str = "2025-11-25";

/// A received request with its session headers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    what: String,
    session: Option<String>,
    version: Option<String>,
    last_event: Option<String>,
}

/// A server with sessions; one at a time is valid, numbered from one.
#[derive(Default)]
struct Sessions {
    begun: usize,
    seen: Vec<Seen>,
    /// If set, list responses are interrupted and can be resumed with this event id.
    broken_off: Option<String>,
}

type Shared = Arc<Mutex<Sessions>>;

fn server_with_sessions() -> (FakeServer, Shared) {
    let sessions = Shared::default();
    let app = Router::new().route("/mcp", any(answer)).with_state(Arc::clone(&sessions));
    (FakeServer::serving(app), sessions)
}

fn error(status: StatusCode, id: &Value) -> Response {
    let error = json!({ "code": -32000, "message": "Bad Request: no such session" });
    (status, axum::Json(json!({ "jsonrpc": "2.0", "id": id, "error": error }))).into_response()
}

fn events(text: String) -> Response {
    ([("content-type", "text/event-stream")], text).into_response()
}

async fn answer(State(sessions): State<Shared>, method: Method, headers: HeaderMap, body: String) -> Response {
    let mut sessions = sessions.lock().expect("no panic");
    let message: Value = serde_json::from_str(&body).unwrap_or_default();
    let header = |name: &str| headers.get(name).map(|value| value.to_str().expect("ASCII").to_owned());
    let seen = Seen {
        what: message["method"].as_str().unwrap_or(method.as_str()).to_owned(),
        session: header("mcp-session-id"),
        version: header("mcp-protocol-version"),
        last_event: header("last-event-id"),
    };
    sessions.seen.push(seen.clone());
    let id = message["id"].clone();
    let current = format!("session-{}", sessions.begun);
    let list =
        |id: &Value| json!({ "jsonrpc": "2.0", "id": id, "result": { "prompts": [{ "name": current }] } }).to_string();
    match (&method, &*seen.what) {
        (&Method::POST, "initialize") if seen.session.is_none() => {
            sessions.begun += 1;
            let result = json!({
                "protocolVersion": VERSION, "capabilities": { "prompts": {} },
                "serverInfo": { "name": "older", "version": "1" },
            });
            let session = [("mcp-session-id", format!("session-{}", sessions.begun))];
            (session, axum::Json(json!({ "jsonrpc": "2.0", "id": id, "result": result }))).into_response()
        }
        (_, "server/discover") => error(StatusCode::BAD_REQUEST, &Value::Null),
        _ if seen.session.as_deref() != Some(&current) => error(StatusCode::NOT_FOUND, &Value::Null),
        (&Method::GET, _) if seen.last_event.as_deref() == Some("event-1") => {
            let id = sessions.broken_off.take().and_then(|id| serde_json::from_str(&id).ok());
            events(format!("id: event-2\ndata: {}\n\n", list(&id.expect("an answer that broke off"))))
        }
        (&Method::GET, _) => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        (&Method::POST, "prompts/list") if sessions.broken_off.as_deref() == Some("next") => {
            sessions.broken_off = Some(id.to_string());
            events("id: event-1\nretry: 1\ndata: \n\n".to_owned())
        }
        (&Method::POST, "prompts/list") => ([("content-type", "application/json")], list(&id)).into_response(),
        (&Method::POST, _) if id.is_null() => StatusCode::ACCEPTED.into_response(),
        (&Method::DELETE, _) => StatusCode::OK.into_response(),
        _ => error(StatusCode::OK, &id),
    }
}

fn seen(sessions: &Shared, wanted: &str) -> Vec<Seen> {
    let sessions = sessions.lock().expect("no panic");
    sessions.seen.iter().filter(|seen| seen.what == wanted).cloned().collect()
}

fn of(what: &str, session: &str) -> Seen {
    Seen { what: what.into(), session: Some(session.into()), version: Some(VERSION.into()), last_event: None }
}

// req: Q8
#[tokio::test]
async fn later_requests_have_session_id_and_version() {
    let (server, sessions) = server_with_sessions();
    let client = connected(&server).await;
    assert_eq!(client.revision().as_deref(), Some(VERSION));
    assert_eq!(names(&client).await, ["session-1"]);
    assert_eq!(seen(&sessions, "initialize").iter().map(|seen| &seen.session).collect::<Vec<_>>(), [&None]);
    for later in ["notifications/initialized", "prompts/list"] {
        assert_eq!(seen(&sessions, later), [of(later, "session-1")]);
    }
}

// req: Q8
#[tokio::test]
async fn expired_session_is_renewed_and_request_repeated() {
    let (server, sessions) = server_with_sessions();
    let client = connected(&server).await;
    // The server loses its session: from now on it accepts only the next session id.
    sessions.lock().expect("no panic").begun = 7;
    assert_eq!(names(&client).await, ["session-8"]);
    let handshakes = seen(&sessions, "initialize");
    assert_eq!(handshakes.len(), 2);
    assert!(handshakes.iter().all(|seen| seen.session.is_none()), "{handshakes:?}");
    assert_eq!(seen(&sessions, "prompts/list"), [of("prompts/list", "session-1"), of("prompts/list", "session-8")]);
}

// req: Q8
#[tokio::test]
async fn interrupted_response_is_resumed() {
    let (server, sessions) = server_with_sessions();
    let client = connected(&server).await;
    sessions.lock().expect("no panic").broken_off = Some("next".to_owned());
    assert_eq!(names(&client).await, ["session-1"]);
    assert_eq!(seen(&sessions, "prompts/list").len(), 1, "the request is not repeated");
    let resumed = Seen { last_event: Some("event-1".into()), ..of("GET", "session-1") };
    assert!(seen(&sessions, "GET").contains(&resumed));
}

/// A legacy server over stdio; shell commands define its response to `server/discover`.
fn legacy_endpoint(discover: &str) -> Endpoint {
    let script = r#"
        while read -r line; do
            id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            case $line in
                *server/discover*) DISCOVER ;;
                *'"initialize"'*) reply='"result":{"protocolVersion":"2025-11-25","capabilities":{"prompts":{}},"serverInfo":{"name":"older","version":"1"}}'; printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$reply" ;;
                *prompts/list*) printf '{"jsonrpc":"2.0","id":%s,"result":{"prompts":[{"name":"one"}]}}\n' "$id" ;;
            esac
        done"#;
    Endpoint::command(["sh", "-c", &script.replace("DISCOVER", discover)])
}

// req: K11, M15, Q19
#[tokio::test]
async fn legacy_server_is_recognized_by_any_first_response() {
    let error =
        |code: i32| format!(r#"printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":{code},"message":"no"}}}}\n' "$id""#);
    let mut answers: Vec<String> =
        [-32601, -32602, -32600, -32700, -32603, -32000, -32001, -32002, -1, 0, 404].map(error).into();
    // Responses outside the protocol: without an id, as plain text, and by exiting.
    answers.push(r#"printf '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}\n'"#.to_owned());
    answers.push("exit 1".to_owned());
    for answer in answers {
        let client =
            Client::connect(&legacy_endpoint(&answer)).await.unwrap_or_else(|error| panic!("{answer}: {error}"));
        assert_eq!(client.revision().as_deref(), Some(VERSION), "{answer}");
        assert_eq!(names(&client).await, ["one"], "{answer}");
    }
}

// req: M3
#[tokio::test]
async fn server_of_an_unknown_revision_is_rejected() {
    for revision in ["1999-01-01", "2031-01-01", ""] {
        let (server, requests) = recording_server(move |method, _| {
            let info = json!({ "name": "older", "version": "1" });
            let hello = json!({ "protocolVersion": revision, "capabilities": { "prompts": {} }, "serverInfo": info });
            match method {
                "server/discover" => Some(json!({ "rpc-error": { "code": -32601, "message": "no" } })),
                "initialize" => Some(hello),
                _ => None,
            }
        });
        let left = Client::connect(&Endpoint::url(&server.url)).await.expect_err("no connection");
        assert!(
            matches!(&left, ClientError::InvalidResponse { reason: sentence, .. } if sentence.contains(revision)),
            "{left:?}"
        );
        assert!(!requests.all().iter().any(|method| method.ends_with("/list")), "{:?}", requests.all());
    }
}

// req: M14
#[tokio::test]
async fn errors_of_modern_servers_do_not_start_the_legacy_handshake() {
    for code in [-32020, -32021] {
        let (server, requests) =
            recording_server(move |_, _| Some(json!({ "rpc-error": { "code": code, "message": "no" } })));
        let refused = Client::connect(&Endpoint::url(&server.url)).await.err();
        assert!(
            matches!(refused, Some(ClientError::ErrorResponse { code: returned, .. }) if returned == code),
            "{refused:?}"
        );
        assert_eq!(requests.all(), ["server/discover"]);
    }
}
