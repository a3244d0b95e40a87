//! `Mcp-Method` and `Mcp-Name`: what proxies route by has to be what is done.

use serde_json::{Value, json};

use super::endpoint::{Ask, Endpoint, VERSION, greet, modern};

const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

fn get() -> Ask {
    Ask::modern("prompts/get", greet())
}

// req: B12, L7
#[tokio::test]
async fn the_method_header_has_to_be_there_once_and_be_the_method() {
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
async fn the_name_header_has_to_be_what_is_asked_for() {
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
async fn a_name_that_no_header_can_hold_comes_encoded() {
    let endpoint = Endpoint::new();
    let ask = |header| Ask::modern("prompts/get", json!({ "name": "grüße" })).header(NAME, header);
    assert_eq!(endpoint.ask(ask("=?base64?Z3LDvMOfZQ==?=")).await.result()["description"], "Grüßt");
    // Raw bytes are a failure even when they are the very same bytes.
    assert_eq!(endpoint.ask(ask("grüße")).await.error(), (400, -32020, Some(json!(1))));
}

// req: J10, L8
#[tokio::test]
async fn a_resource_is_named_by_its_uri() {
    let endpoint = Endpoint::new();
    let read = || Ask::modern("resources/read", json!({ "uri": "docs://note" }));
    assert_eq!(endpoint.ask(read()).await.status, 200);
    assert_eq!(endpoint.ask(read().header(NAME, "docs://other")).await.error(), (400, -32020, Some(json!(1))));
    assert_eq!(endpoint.ask(read().without(NAME)).await.error(), (400, -32020, Some(json!(1))));
}

#[tokio::test]
async fn a_body_that_names_nothing_is_refused_for_that() {
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
async fn a_member_that_is_there_twice_cannot_be_checked_and_used_apart() {
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
async fn other_methods_have_no_name_and_legacy_requests_no_such_headers() {
    let endpoint = Endpoint::new();
    assert_eq!(endpoint.ask(Ask::modern("prompts/list", json!({})).header(NAME, "whatever")).await.status, 200);
    let legacy = Ask::legacy("2025-11-25", "prompts/get", &greet()).header(METHOD, "initialize").header(NAME, "é");
    assert_eq!(endpoint.ask(legacy).await.result()["messages"][0]["role"], Value::from("user"));
}
