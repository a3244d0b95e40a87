//! Rate limits of the running program.

use serde_json::json;

use crate::{
    program::{PATIENCE, Server, library, promptshelf},
    server_auth::{ask_at, read},
};

const HELLO: &str = "---\ndescription: Greets\n---\nHello.\n";

#[test]
fn rate_limited_caller_gets_429_and_retry_time() {
    let settings = "[limits]\nrequests-per-minute = 2\nrequests-per-minute-per-address = 4\n";
    let server = Server::of(&library(&[("hello.md", HELLO), ("../server.toml", settings)]), &[]);
    let ask = || ask_at(&server.url, "", &[], "prompts/list", &json!({}));
    assert_eq!((ask().status, ask().status), (200, 200));
    let refused = ask();
    assert_eq!(refused.status, 429);
    let seconds: u64 = refused.headers["retry-after"].to_str().expect("ASCII").parse().expect("a number");
    assert!((1..=30).contains(&seconds), "{seconds}");
    let error = &refused.json()["error"];
    let expected = format!("Too many requests; try again in {seconds} second{}", if seconds == 1 { "" } else { "s" });
    assert_eq!(error["message"].as_str(), Some(&*expected));
    assert!(error["data"]["retryAfterMs"].as_u64().is_some_and(|wait| wait > 0), "{error}");
    assert_eq!(refused.json()["id"], 1);

    // A request that is refused before its method is read counts for the caller and the address.
    assert_eq!(ask_at(&server.url, "", &[("Mcp-Protocol-Version", "1999-01-01")], "x", &json!({})).status, 429);
    let stopped = ask();
    assert_eq!(stopped.status, 429);
    let seconds = stopped.headers["retry-after"].to_str().expect("ASCII");
    let expected = format!("Too many requests from this address; try again in {seconds} second");
    assert!(stopped.body.contains(&expected), "{}", stopped.body);

    // Both limits are in the log, at its normal level.
    let mut log = String::new();
    for limit in ["requests-per-minute", "requests-per-minute-per-address"] {
        while !log.contains(&format!("limit=\"{limit}\"")) {
            log += &server.log.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{limit} is not in the log: {log}"));
            log.push('\n');
        }
    }
    assert!(log.contains("requests refused by a limit"), "{log}");
}

#[test]
fn client_says_when_a_server_wants_to_be_asked_again() {
    let settings = "[limits]\nrequests-per-minute = 1\n";
    let server = Server::of(&library(&[("hello.md", HELLO), ("../server.toml", settings)]), &[]);
    assert_eq!(ask_at(&server.url, "", &[], "prompts/list", &json!({})).status, 200);
    let output = promptshelf().args(["list", &server.url]).output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(9), "{error}");
    assert!(error.contains("too many requests (HTTP 429); try again in") && !error.contains("cannot reach"), "{error}");
}

/// A batch would otherwise count as one request of its address, and its members against the caller alone.
// req: S-79
#[test]
fn batch_members_count_for_the_address() {
    let settings = "[limits]\nrequests-per-minute-per-address = 4\n";
    let server = Server::of(&library(&[("hello.md", HELLO), ("../server.toml", settings)]), &[]);
    let batch: Vec<_> = (1..=7).map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "prompts/list" })).collect();
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let request = agent.post(&server.url).header("Content-Type", "application/json");
    let request = request.header("Accept", "application/json, text/event-stream");
    let answers = read(request.send(serde_json::Value::from(batch).to_string()).expect("the server answers")).json();
    let answers = answers.as_array().expect("a batch");
    let refused = answers.iter().filter(|answer| answer["error"]["data"]["retryAfterMs"].is_u64()).count();
    assert_eq!((answers.len(), refused), (7, 3), "{answers:?}");
    assert_eq!(ask_at(&server.url, "", &[], "prompts/list", &json!({})).status, 429);
}

#[test]
fn loopback_server_has_no_limits_by_default() {
    let server = Server::of(&library(&[("hello.md", HELLO)]), &[]);
    for _ in 0..700 {
        assert_eq!(ask_at(&server.url, "", &[], "prompts/list", &json!({})).status, 200);
    }
}
