//! Negotiating the revision.

use std::time::Duration;

use promptshelf_client::ConnectOptions;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    fake_server::{Reply, connect, connect_with},
    http_server::{Answer, HttpServer, empty_answer, json_answer, older},
};

fn initialized(params: &Value, capabilities: &Value) -> Option<Reply> {
    let info = json!({ "name": "old", "version": "1" });
    let version = &params["protocolVersion"];
    Some(Reply::Result(json!({ "protocolVersion": version, "capabilities": capabilities, "serverInfo": info })))
}

#[tokio::test(start_paused = true)]
async fn ignored_discovery_takes_a_third_of_the_timeout_and_a_second() {
    let began = Instant::now();
    let options = ConnectOptions::new().timeout(Duration::from_secs(6));
    let (client, received) = connect_with(options, |method, params| match method {
        "server/discover" => Some(Reply::Silence),
        "initialize" => initialized(params, &json!({ "prompts": {} })),
        _ => None,
    })
    .await;
    assert_eq!((client.revision().as_deref(), began.elapsed().as_secs()), (Some("2025-11-25"), 3));
    assert_eq!(received.with_method("initialize").len(), 1);
}

#[tokio::test]
async fn refused_revision_that_is_listed_is_sent_again_once() {
    for (refusals, succeeds) in [(1, true), (2, false)] {
        let mut refused = 0;
        let (client, received) = connect(move |method, _| match method {
            "prompts/list" if refused < refusals => {
                refused += 1;
                let data = json!({ "supported": ["2025-11-25", "2026-07-28"], "requested": "2026-07-28" });
                Some(Reply::Error { code: -32022, message: "unsupported", data })
            }
            "prompts/list" => Some(Reply::Result(json!({ "prompts": [] }))),
            _ => None,
        })
        .await;
        assert_eq!(client.all_prompts().await.is_ok(), succeeds);
        assert_eq!(received.with_method("prompts/list").len(), 2);
    }
}

#[tokio::test]
async fn undeclared_prompts_of_an_older_server_are_not_requested() {
    let options = ConnectOptions::new().legacy(true);
    let (client, received) = connect_with(options, |method, params| match method {
        "initialize" => initialized(params, &json!({ "tools": {} })),
        _ => None,
    })
    .await;
    assert_eq!(client.all_prompts().await.expect("an empty list"), []);
    assert!(received.with_method("prompts/list").is_empty());
}

#[tokio::test]
async fn batches_and_odd_values_are_read() {
    let options = ConnectOptions::new().timeout(Duration::from_secs(10));
    let (client, _) = connect_with(options, |method, _| match method {
        "server/discover" => {
            let odd = json!({
                "supportedVersions": ["2026-07-28"], "capabilities": { "prompts": {} }, "ttlMs": -1, "cacheScope": "x",
            });
            Some(Reply::Result(odd))
        }
        "prompts/list" => {
            let result = json!({ "prompts": [{ "name": "a", "icons": [{ "src": "x", "theme": "sepia" }] }] });
            let batch = json!([{ "jsonrpc": "2.0", "id": 1, "result": result }]);
            Some(Reply::Raw(batch.to_string()))
        }
        _ => None,
    })
    .await;
    assert_eq!(client.revision().as_deref(), Some("2026-07-28"));
    assert_eq!(client.all_prompts().await.expect("a list").len(), 1);
}

/// What servers of every revision can answer says nothing about the revision.
#[tokio::test]
async fn passing_failure_of_the_probe_does_not_make_a_server_an_older_one() {
    let error = |code: i32| json!({ "jsonrpc": "2.0", "id": 0, "error": { "code": code, "message": "no" } });
    let statuses = ["408 Request Timeout", "425 Too Early", "429 Too Many Requests", "500 Internal Server Error"];
    let statuses = statuses.into_iter().chain(["502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"]);
    let mut passing: Vec<Answer> = statuses.clone().map(empty_answer).collect();
    passing.extend(statuses.map(|status| json_answer(status, &error(-32000))));
    passing.extend([json_answer("200 OK", &error(-32603)), Answer::Ended(Vec::new())]);
    let statuses = ["400 Bad Request", "404 Not Found", "405 Method Not Allowed", "415 Unsupported Media Type"];
    let mut lasting: Vec<Answer> = statuses.into_iter().map(empty_answer).collect();
    lasting.extend([json_answer("200 OK", &error(-32601)), json_answer("400 Bad Request", &error(-32000))]);
    let mut older_versions = error(-32022);
    older_versions["error"]["data"] = json!({ "supported": ["2025-06-18"], "requested": "2026-07-28" });
    lasting.push(json_answer("400 Bad Request", &older_versions));
    let cases =
        passing.into_iter().map(|answer| (answer, false)).chain(lasting.into_iter().map(|answer| (answer, true)));
    for (answer, is_lasting) in cases {
        let shown = format!("{answer:?}");
        let server = HttpServer::start(move |request| match request.method() {
            "server/discover" => answer.clone(),
            _ => older(request),
        });
        let client = server.connect().await;
        assert_eq!((client.is_legacy(), client.prefers_legacy()), (true, is_lasting), "{shown}");
    }
}

#[tokio::test]
async fn internal_error_of_the_probe_over_a_pipe_does_not_make_a_server_an_older_one() {
    for (code, is_lasting) in [(-32603, false), (-32601, true), (-32600, true)] {
        let (client, _) = connect_with(ConnectOptions::new(), move |method, params| match method {
            "server/discover" => Some(Reply::Error { code, message: "no", data: Value::Null }),
            "initialize" => initialized(params, &json!({ "prompts": {} })),
            _ => None,
        })
        .await;
        assert_eq!((client.is_legacy(), client.prefers_legacy()), (true, is_lasting), "{code}");
    }
}
