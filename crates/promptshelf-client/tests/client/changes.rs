//! Subscriptions to changes of lists.

use std::time::Duration;

use promptshelf_client::{Client, ConnectOptions};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::{
    fake_server::{Received, Reply, connect, connect_with},
    http_server::{Answer, HttpServer, Request, empty_answer, events, modern},
};

const LISTEN: &str = "subscriptions/listen";

fn acknowledgment(id: &str) -> String {
    let accepted = json!({ "promptsListChanged": true });
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{accepted},"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
    )
}

fn end(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
    )
}

fn discovery() -> Reply {
    Reply::Result(json!({
        "supportedVersions": ["2026-07-28"], "capabilities": { "prompts": { "listChanged": true } },
    }))
}

/// Connects to a server whose first three answers to `subscriptions/listen` are the given one, and the next one stays open.
async fn connect_to(ending: String) -> (Client, Received) {
    let mut listens = 0;
    connect(move |method, _| match method {
        "server/discover" => Some(discovery()),
        LISTEN => {
            listens += 1;
            Some(Reply::Raw(if listens <= 3 { ending.clone() } else { acknowledgment("$id") }))
        }
        _ => None,
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn subscription_that_ends_is_opened_again_and_counts_as_a_change() {
    let ended = format!("{}\n{}", acknowledgment("$id"), end("$id"));
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "$id" } });
    let cancelled = format!("{}\n{}", acknowledgment("$id"), cancelled.to_string().replace("\"$id\"", "$id"));
    let failed = r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-32603,"message":"busy"}}"#.to_owned();
    for ending in [ended, cancelled, failed] {
        let (client, received) = connect_to(ending.clone()).await;
        let mut changes = client.changes();
        changes.subscribed().await;
        let began = Instant::now();
        while received.with_method(LISTEN).len() < 4 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let seconds = began.elapsed().as_secs_f32();
        assert!((7.0..10.0).contains(&seconds), "pauses of 1, 2 and 4 s with jitter: {seconds} s, {ending}");
        assert!(timeout(Duration::from_secs(1), changes.next()).await.is_ok_and(|is_open| is_open), "{ending}");
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(received.with_method(LISTEN).len(), 4, "an open subscription is kept: {ending}");
    }
}

#[tokio::test(start_paused = true)]
async fn server_that_knows_no_subscriptions_is_asked_once() {
    let (client, received) =
        connect_with(ConnectOptions::new(), |method, _| (method == "server/discover").then(discovery)).await;
    let mut changes = client.changes();
    changes.subscribed().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(received.with_method(LISTEN).len(), 1);
}

/// Over HTTP a stream can also end without a result, be cut in the middle, or not begin.
#[tokio::test]
async fn subscription_over_http_is_opened_again_after_every_end() {
    let acknowledged =
        |request: &Request| events(&format!("data: {}\n\n", acknowledgment(&request.body["id"].to_string())));
    let cut = |request: &Request| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n";
        format!("{head}data: {}\n\n", acknowledgment(&request.body["id"].to_string())).into_bytes()
    };
    type End = Box<dyn Fn(&Request) -> Answer + Send + Sync>;
    let ends: Vec<(&str, End)> = vec![
        ("closed", Box::new(move |request| Answer::Ended(acknowledged(request)))),
        ("cut", Box::new(move |request| Answer::Ended(cut(request)))),
        ("unavailable", Box::new(|_| empty_answer("503 Service Unavailable"))),
    ];
    for (name, end) in ends {
        let is_first = std::sync::atomic::AtomicBool::new(true);
        let server = HttpServer::start(move |request| match request.method() {
            LISTEN if is_first.swap(false, std::sync::atomic::Ordering::Relaxed) => end(request),
            LISTEN => Answer::Open(acknowledged(request)),
            _ => modern(request),
        });
        let client = server.connect().await;
        let mut changes = client.changes();
        let reopened = timeout(Duration::from_secs(20), changes.next()).await;
        assert!(reopened.is_ok_and(|is_open| is_open), "{name}");
        assert_eq!(server.times(LISTEN).len(), 2, "{name}");
    }
}
