//! The rate at which streams that a server ends are requested again.

use std::time::{Duration, Instant};

use futures_util::future::join_all;

use tokio::time::{sleep, timeout};

use crate::http_server::{Answer, HttpServer, Request, events, older};

const CHANGED: &str = r#"data: {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#;

/// Returns the answers of an older server with a session, whose stream of notifications is the given text.
fn with_stream(stream: Vec<u8>) -> impl Fn(&Request) -> Answer + Send + Sync {
    move |request| match request.verb.as_str() {
        "GET" => Answer::Ended(stream.clone()),
        _ => with_session(older(request), request),
    }
}

fn with_session(answer: Answer, request: &Request) -> Answer {
    match answer {
        Answer::Ended(bytes) if request.method() == "initialize" => {
            let text = String::from_utf8(bytes).expect("text");
            Answer::Ended(text.replacen("\r\n", "\r\nMcp-Session-Id: s\r\n", 1).into_bytes())
        }
        other => other,
    }
}

/// Waits until a server has been asked for three streams, and returns the times between them.
async fn gaps(server: &HttpServer) -> Vec<Duration> {
    let times = timeout(Duration::from_secs(30), async {
        loop {
            let times: Vec<Instant> = server.times("GET");
            if times.len() >= 3 {
                return times;
            }
            sleep(Duration::from_millis(10)).await;
        }
    });
    times.await.expect("three streams").windows(2).map(|pair| pair[1] - pair[0]).take(2).collect()
}

fn seconds(count: u64) -> Duration {
    // The server notes a request later than the client sends it.
    Duration::from_millis(count * 1000 - 100)
}

#[tokio::test]
async fn server_cannot_choose_a_pause_below_a_second() {
    let cut = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nid: 1\n\n";
    let cases = [
        ("retry 0", events("retry: 0\n\n"), true),
        ("retry 1 with an id", events("retry: 1\nid: 1\ndata: \n\n"), true),
        ("cut", cut.as_bytes().to_vec(), true),
        ("a change each time", events(&format!("retry: 0\nid: 1\n{CHANGED}\n\n")), false),
    ];
    join_all(cases.into_iter().map(|(name, stream, grows)| async move {
        let server = HttpServer::start(with_stream(stream));
        let client = server.connect().await;
        let _changes = client.changes();
        let gaps = gaps(&server).await;
        assert!(gaps[0] >= seconds(1) && gaps[1] >= seconds(if grows { 2 } else { 1 }), "{name}: {gaps:?}");
    }))
    .await;
}

#[tokio::test]
async fn answer_that_is_resumed_again_and_again_has_growing_pauses() {
    let server = HttpServer::start(|request| match (request.verb.as_str(), request.method()) {
        ("GET", _) | ("POST", "prompts/list") => Answer::Ended(events("retry: 0\nid: 1\ndata: \n\n")),
        _ => with_session(older(request), request),
    });
    let client = server.connect().await;
    tokio::select! {
        list = client.all_prompts() => panic!("{list:?}"),
        gaps = gaps(&server) => assert!(gaps[0] >= seconds(1) && gaps[1] >= seconds(2), "{gaps:?}"),
    }
}
