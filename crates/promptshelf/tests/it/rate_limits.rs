//! Rate limits of the running program.

use serde_json::json;

use crate::{
    program::{Server, library},
    server_auth::ask_at,
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
    assert!(error["message"].as_str().is_some_and(|text| text.starts_with("Too many requests")), "{error}");
    assert!(error["data"]["retryAfterMs"].as_u64().is_some_and(|wait| wait > 0), "{error}");
    assert_eq!(refused.json()["id"], 1);

    // A request that is refused before its method is read counts for the address.
    assert_eq!(ask_at(&server.url, "", &[("Mcp-Protocol-Version", "1999-01-01")], "x", &json!({})).status, 400);
    let stopped = ask();
    assert_eq!(stopped.status, 429);
    assert!(stopped.body.contains("from this address") && stopped.headers.contains_key("retry-after"));
}

#[test]
fn loopback_server_has_no_limits_by_default() {
    let server = Server::of(&library(&[("hello.md", HELLO)]), &[]);
    for _ in 0..700 {
        assert_eq!(ask_at(&server.url, "", &[], "prompts/list", &json!({})).status, 200);
    }
}
