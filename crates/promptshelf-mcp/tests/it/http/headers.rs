//! `Mcp-Method` and `Mcp-Name`: proxies route by them, so they must match the body.

use serde_json::{Value, json};

use super::endpoint::{Ask, Endpoint, VERSION, greet, modern};

const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

fn get() -> Ask {
    Ask::modern("prompts/get", greet())
}

// req: B12, L7
#[tokio::test]
async fn method_header_must_match_once() {
    let endpoint = Endpoint::new();
    for ask in [
        get().without(METHOD),
        get().header(METHOD, "PROMPTS/GET"),
        get().header(METHOD, "prompts/list"),
        get().header(METHOD, "prompts/gét"),
        get().also(METHOD, "prompts/get"),
        get().header(METHOD, "=?base64?cHJvbXB0cy9nZXQ=?="),
    ] {
        assert_eq!(endpoint.ask(ask).await.error(), (400, -32020, Some(json!(1))));
    }
}

// req: C13, L8, L9, L11, X15
#[tokio::test]
async fn name_header_must_match() {
    let endpoint = Endpoint::new();
    for value in
        ["other", "Greet", "", "=?base64?@@?=", "=?base64?Z3JlZXQ?=", "=?BASE64?Z3JlZXQ=?=", "=?base64?/w==?=", "grëet"]
    {
        let answer = endpoint.ask(get().header(NAME, value)).await;
        assert_eq!(answer.error(), (400, -32020, Some(json!(1))), "{value}");
    }
    assert_eq!(endpoint.ask(get().without(NAME)).await.error(), (400, -32020, Some(json!(1))));
    assert_eq!(endpoint.ask(get().also(NAME, "greet")).await.error(), (400, -32020, Some(json!(1))));
    for value in ["=?base64?Z3JlZXQ=?=", "  greet\t"] {
        assert_eq!(endpoint.ask(get().header(NAME, value)).await.status, 200, "{value}");
    }
}

// req: C13, L9
#[tokio::test]
async fn non_ascii_name_is_encoded() {
    let endpoint = Endpoint::new();
    let ask = |header| Ask::modern("prompts/get", json!({ "name": "grüße" })).header(NAME, header);
    assert_eq!(endpoint.ask(ask("=?base64?Z3LDvMOfZQ==?=")).await.result()["description"], "Grüßt");
    // Raw bytes are refused even if they equal those of the body.
    assert_eq!(endpoint.ask(ask("grüße")).await.error(), (400, -32020, Some(json!(1))));
}

// req: J10, L8
#[tokio::test]
async fn resource_name_header_is_its_uri() {
    let endpoint = Endpoint::new();
    let read = || Ask::modern("resources/read", json!({ "uri": "docs://note" }));
    assert_eq!(endpoint.ask(read()).await.status, 200);
    assert_eq!(endpoint.ask(read().header(NAME, "docs://other")).await.error(), (400, -32020, Some(json!(1))));
    assert_eq!(endpoint.ask(read().without(NAME)).await.error(), (400, -32020, Some(json!(1))));
}

#[tokio::test]
async fn body_without_name_is_refused() {
    let endpoint = Endpoint::new();
    for (method, params) in
        [("prompts/get", json!({})), ("prompts/get", json!({ "name": 5 })), ("resources/read", json!({}))]
    {
        for ask in [Ask::modern(method, params.clone()), Ask::modern(method, params.clone()).header(NAME, "greet")] {
            assert_eq!(endpoint.ask(ask).await.error(), (200, -32602, Some(json!(1))), "{method} {params}");
        }
    }
}

// req: X4
#[tokio::test]
async fn duplicate_member_is_refused() {
    let endpoint = Endpoint::new();
    let body = modern(&json!(1), "prompts/get", greet()).to_string();
    for (once, twice) in [
        (r#""name":"greet""#, r#""name":"greet","name":"quiet""#),
        (r#""name":"greet""#, r#""name":"quiet","name":"greet""#),
    ] {
        let body = body.replacen(once, twice, 1);
        let ask = Ask::raw(body).header(VERSION, "2026-07-28").header(METHOD, "prompts/get").header(NAME, "greet");
        assert_eq!(endpoint.ask(ask).await.error(), (400, -32602, Some(json!(1))));
    }
    let body = body.replacen(r#""method":"#, r#""method":"prompts/list","method":"#, 1);
    let ask = Ask::raw(body).header(VERSION, "2026-07-28").header(METHOD, "prompts/get").header(NAME, "greet");
    assert_eq!(endpoint.ask(ask).await.status, 400);
}

// req: B12, L46
#[tokio::test]
async fn name_header_applies_to_modern_get_and_read() {
    let endpoint = Endpoint::new();
    assert_eq!(endpoint.ask(Ask::modern("prompts/list", json!({})).header(NAME, "whatever")).await.status, 200);
    let legacy = Ask::legacy("2025-11-25", "prompts/get", &greet()).header(METHOD, "initialize").header(NAME, "é");
    assert_eq!(endpoint.ask(legacy).await.result()["messages"][0]["role"], Value::from("user"));
}

/// HTTP has 304 for GET and HEAD only (RFC 9110, section 13.1.2), and every message is a POST.
#[tokio::test]
async fn lists_have_no_entity_tag_and_are_sent_whatever_the_condition() {
    let endpoint = Endpoint::new();
    for condition in ["*", "\"x\"", "W/\"x\", \"y\"", "x"] {
        let modern = Ask::modern("prompts/list", json!({}));
        for ask in [modern, Ask::legacy("2025-11-25", "prompts/list", &json!({}))] {
            let answer = endpoint.ask(ask.header("if-none-match", condition)).await;
            assert_eq!((answer.status, answer.headers.get("etag")), (200, None), "{condition}");
            assert!(answer.result()["prompts"].is_array(), "{condition}");
        }
    }
}
