//! Errors of servers and connections.

use std::{error::Error, time::Duration};

use promptshelf_client::{Client, ClientError, ConnectOptions, Endpoint};
use serde_json::{Value, json};

use crate::{
    fake_server::{Reply, connect, connect_with},
    http_server::{HttpServer, json_answer, modern, older},
};

#[tokio::test]
async fn error_response_has_code_message_and_data() {
    let (client, _) = connect(|method, _| {
        let data = json!({ "problems": [] });
        (method == "prompts/get").then(|| Reply::Error { code: -32602, message: "unknown prompt", data })
    })
    .await;
    let error = client.get("x", &[].into()).await.expect_err("an error response");
    assert!(error.is_invalid_params() && !error.is_unknown_method());
    let ClientError::ErrorResponse { code, message, data } = error else { panic!("expected an error response") };
    assert_eq!((code, message.as_str(), data), (-32602, "unknown prompt", Some(json!({ "problems": [] }))));
}

#[tokio::test]
async fn unknown_method_is_recognized() {
    let (client, _) = connect(|_, _| None).await;
    assert!(client.read("docs://a").await.expect_err("an unknown method").is_unknown_method());
}

#[tokio::test]
async fn missing_answer_times_out() {
    let options = ConnectOptions::new().timeout(Duration::from_millis(200));
    let (client, _) = connect_with(options, |method, _| (method == "prompts/get").then_some(Reply::Silence)).await;
    let error = client.get("x", &[].into()).await.expect_err("no answer");
    assert!(matches!(error, ClientError::TimedOut { after } if after == Duration::from_millis(200)), "{error}");
}

#[tokio::test]
async fn closed_connection_is_unreachable() {
    let (client, _) = connect(|method, _| (method == "prompts/get").then_some(Reply::Close)).await;
    let error = client.get("x", &[].into()).await.expect_err("a closed connection");
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn other_result_is_invalid() {
    for result in [json!({ "prompts": [] }), json!({ "messages": [], "resultType": "later" })] {
        let (client, _) =
            connect(move |method, _| (method == "prompts/get").then(|| Reply::Result(result.clone()))).await;
        let error = client.get("x", &[].into()).await.expect_err("a result of another request");
        assert!(matches!(error, ClientError::InvalidResponse { .. }), "{error}");
    }
}

#[tokio::test]
async fn malformed_line_is_not_an_answer() {
    let options = ConnectOptions::new().timeout(Duration::from_millis(500));
    let (client, _) =
        connect_with(options, |method, _| (method == "prompts/get").then(|| Reply::Raw("{not json".to_owned()))).await;
    let error = client.get("x", &[].into()).await.expect_err("no answer");
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn unreachable_endpoint_has_a_source() {
    let endpoint = Endpoint::command(["no-such-program-anywhere"]);
    let error = Client::connect(&endpoint).await.expect_err("no program");
    assert!(matches!(error, ClientError::Unreachable { .. }) && error.source().is_some(), "{error:?}");
    assert!(error.to_string().contains("`no-such-program-anywhere` cannot be started"), "{error}");
    let error = Client::connect(&Endpoint::url("http://127.0.0.1:1/mcp")).await.expect_err("no server");
    assert!(matches!(error, ClientError::Unreachable { .. }) && error.source().is_some(), "{error:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn end_of_stderr_is_part_of_the_error() {
    let endpoint = Endpoint::command(["sh", "-c", "echo out of cheese >&2"]);
    let error = Client::connect(&endpoint).await.expect_err("no server").to_string();
    assert!(error.contains("out of cheese"), "{error}");
}

/// A whole answer over HTTP is followed by no other one.
#[tokio::test]
async fn answer_to_another_request_is_reported_at_once() {
    let result = |id: Value| json!({ "jsonrpc": "2.0", "id": id, "result": { "prompts": [] } });
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/prompts/list_changed" });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let error = json!({ "jsonrpc": "2.0", "id": 999, "error": { "code": -32603, "message": "no" } });
    let batch = json!([notification.clone(), result(json!(999))]);
    let others =
        [result(json!(999)), result(json!("x")), result(json!("1")), error, notification, request, batch, json!([])];
    for (answers, other) in [modern, older].iter().flat_map(|answers| others.iter().map(move |other| (answers, other)))
    {
        let (answers, other, shown) = (*answers, other.clone(), other.to_string());
        let server = HttpServer::start(move |request| match request.method() {
            "prompts/list" => json_answer("200 OK", &other),
            _ => answers(request),
        });
        let error = server.connect().await.all_prompts().await.expect_err("another answer");
        assert_eq!(error.to_string(), "the server's answer does not match the request", "{shown}");
        assert_eq!(server.times("prompts/list").len(), 1, "{shown}");
    }
}

#[tokio::test]
async fn refusal_with_another_identifier_is_shown() {
    let server = HttpServer::start(|request| match request.method() {
        "prompts/list" => {
            let error = json!({ "code": -32602, "message": "a bad cursor" });
            json_answer("400 Bad Request", &json!({ "jsonrpc": "2.0", "id": 999, "error": error }))
        }
        _ => modern(request),
    });
    let error = server.connect().await.all_prompts().await.expect_err("a refusal");
    assert!(error.is_invalid_params() && error.to_string().contains("a bad cursor"), "{error}");
}
