//! Requests of 2026-07-28, each of which carries its version and capabilities.

use serde_json::{Value, json};

use super::endpoint::{Ask, Endpoint, MODERN, VERSION, greet, initialize, meta, modern};

// req: L3
#[tokio::test]
async fn modern_client_uses_all_methods() {
    let endpoint = Endpoint::new();
    let discovered = endpoint.ask(Ask::modern("server/discover", json!({}))).await.result();
    assert_eq!(discovered["supportedVersions"][0], MODERN);
    assert_eq!(discovered["resultType"], "complete");
    let list = endpoint.ask(Ask::modern("prompts/list", json!({}))).await.result();
    assert_eq!(list["prompts"][0]["name"], "greet");
    assert_eq!(list["ttlMs"], 60_000);
    let got = endpoint.ask(Ask::modern("prompts/get", greet())).await.result();
    assert_eq!(got["messages"][0]["content"]["text"], "Say hello to Ada.");
    let params =
        json!({ "ref": { "type": "ref/prompt", "name": "greet" }, "argument": { "name": "name", "value": "g" } });
    let completed = endpoint.ask(Ask::modern("completion/complete", params)).await.result();
    assert_eq!(completed["completion"]["values"], json!(["Grace"]));
    let read = endpoint.ask(Ask::modern("resources/read", json!({ "uri": "docs://note" }))).await.result();
    assert_eq!(read["contents"][0]["text"], "first");
    for method in ["resources/list", "resources/templates/list"] {
        assert_eq!(endpoint.ask(Ask::modern(method, json!({}))).await.result()["cacheScope"], "public");
    }
}

/// A `prompts/get` with another `_meta`.
fn with_meta(meta: &Value) -> Ask {
    let mut params = greet();
    params["_meta"] = meta.clone();
    Ask::modern("prompts/get", greet())
        .body(&json!({ "jsonrpc": "2.0", "id": "m", "method": "prompts/get", "params": params }))
}

// req: B1, L13, N4, O11
#[tokio::test]
async fn missing_meta_keys_are_named() {
    let endpoint = Endpoint::new();
    let (version, capabilities) =
        ("io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities");
    for (meta, named) in [
        (json!({}), version),
        (json!({ capabilities: {} }), version),
        (json!({ version: 5, capabilities: {} }), version),
        (json!({ version: MODERN }), capabilities),
        (json!({ version: MODERN, capabilities: [] }), capabilities),
        (json!({ version: MODERN, capabilities: {}, "io.modelcontextprotocol/clientInfo": "x" }), "clientInfo"),
        (json!({ version: MODERN, capabilities: {}, "io.modelcontextprotocol/logLevel": "loud" }), "logLevel"),
        (json!([]), "_meta"),
        (json!(null), "_meta"),
    ] {
        let answer = endpoint.ask(with_meta(&meta)).await;
        assert_eq!(answer.error(), (400, -32602, Some(json!("m"))), "{meta}");
        let message = answer.json()["error"]["message"].to_string();
        assert!(message.contains(named), "{message}");
    }
    for params in [json!(greet()), json!([]), json!("x")] {
        let body = json!({ "jsonrpc": "2.0", "id": 2, "method": "prompts/get", "params": params });
        let answer = endpoint.ask(Ask::modern("prompts/get", greet()).body(&body)).await;
        assert_eq!(answer.error(), (400, -32602, Some(json!(2))), "{params}");
    }
    let without_params = json!({ "jsonrpc": "2.0", "id": 2, "method": "prompts/list" });
    let answer = endpoint.ask(Ask::modern("prompts/list", json!({})).body(&without_params)).await;
    assert_eq!(answer.error(), (400, -32602, Some(json!(2))));
}

// req: A11, M19
#[tokio::test]
async fn client_info_is_optional_and_unknown_keys_ignored() {
    let mut meta_members = meta(MODERN);
    meta_members["traceparent"] = json!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    meta_members["example.com/x"] = json!([1, 2]);
    assert_eq!(Endpoint::new().ask(with_meta(&meta_members)).await.status, 200);
}

// req: L5, N9, X13
#[tokio::test]
async fn header_and_body_version_must_match() {
    let endpoint = Endpoint::new();
    let get = || Ask::modern("prompts/get", greet());
    for ask in [
        with_meta(&meta("2025-11-25")),
        with_meta(&meta("v999.0.0")),
        get().header(VERSION, "2025-11-25"),
        get().header(VERSION, "v999.0.0"),
        get().header(VERSION, ""),
        get().without(VERSION),
        get().also(VERSION, "2025-11-25"),
        get().also(VERSION, MODERN),
        get().header(VERSION, "2026-07-28, 2026-07-28"),
        get().header(VERSION, "2026-07-28é"),
    ] {
        let (status, code, id) = endpoint.ask(ask).await.error();
        assert_eq!((status, code), (400, -32020));
        assert!(id.is_some());
    }
}

// req: L6, N11
#[tokio::test]
async fn unsupported_versions_list_supported() {
    let endpoint = Endpoint::new();
    for version in ["v999.0.0", "2026-07-28 x", "2024-11-05", "2025-11-25", "2027-01-01"] {
        let answer = endpoint.ask(with_meta(&meta(version)).header(VERSION, version)).await;
        assert_eq!(answer.error(), (400, -32022, Some(json!("m"))), "{version}");
        assert_eq!(answer.json()["error"]["data"], json!({ "supported": [MODERN], "requested": version }));
    }
}

// req: L53
#[tokio::test]
async fn checks_run_in_order() {
    let endpoint = Endpoint::new();
    // Everything is wrong at first, and each line corrects one thing.
    let nothing = json!({ "jsonrpc": "2.0", "id": 1, "method": "no/such", "params": {} });
    let message =
        |version| json!({ "jsonrpc": "2.0", "id": 1, "method": "no/such", "params": { "_meta": meta(version) } });
    let ask = |body: &Value| Ask::message(body).header(VERSION, MODERN).header("mcp-method", "other");
    assert_eq!(endpoint.ask(ask(&nothing)).await.error().1, -32602);
    assert_eq!(endpoint.ask(ask(&message("v999"))).await.error().1, -32020);
    assert_eq!(endpoint.ask(ask(&message("v999")).header(VERSION, "v999")).await.error().1, -32022);
    assert_eq!(endpoint.ask(ask(&message(MODERN))).await.error().1, -32020);
    assert_eq!(
        endpoint.ask(ask(&message(MODERN)).header("mcp-method", "no/such")).await.error(),
        (404, -32601, Some(json!(1)))
    );
}

// req: A13, H15, L12, N3, X16
#[tokio::test]
async fn legacy_methods_are_not_found_in_modern_era() {
    let endpoint = Endpoint::new();
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "roots/list",
        "tools/register",
        "__proto__",
        "PROMPTS/GET",
        "",
    ] {
        let answer = endpoint.ask(Ask::modern(method, initialize("2025-11-25"))).await;
        assert_eq!(answer.error(), (404, -32601, Some(json!(1))), "{method}");
    }
    // No header can hold this method, so header and body differ before the method is looked up.
    let body = modern(&json!(1), "prompts/get\n", greet());
    assert_eq!(
        endpoint.ask(Ask::modern("prompts/get", greet()).body(&body)).await.error(),
        (400, -32020, Some(json!(1)))
    );
}

// req: L21, N5
#[tokio::test]
async fn application_errors_have_status_200() {
    let endpoint = Endpoint::new();
    for (method, params) in [
        ("prompts/get", json!({ "name": "nobody" })),
        ("prompts/get", json!({ "name": "Greet", "arguments": { "name": "x" } })),
        ("prompts/get", json!({ "name": "../../etc/passwd" })),
        ("prompts/get", json!({ "name": "greet" })),
        ("prompts/get", json!({ "name": "greet", "arguments": { "name": 5 } })),
        ("prompts/get", json!({ "name": "greet", "arguments": [] })),
        ("prompts/list", json!({ "cursor": "" })),
        ("prompts/list", json!({ "cursor": "AAAA" })),
        ("prompts/list", json!({ "cursor": 5 })),
        ("resources/read", json!({ "uri": "file:///etc/passwd" })),
        ("completion/complete", json!({})),
        ("subscriptions/listen", json!({})),
        ("subscriptions/listen", json!({ "notifications": { "promptsListChanged": "yes" } })),
    ] {
        let answer = endpoint.ask(Ask::modern(method, params.clone())).await;
        assert_eq!(answer.error(), (200, -32602, Some(json!(1))), "{method} {params}");
    }
}

// req: L18, R-8
#[tokio::test]
async fn session_id_is_neither_issued_nor_read() {
    let endpoint = Endpoint::new();
    let answer = endpoint.ask(Ask::modern("prompts/get", greet()).header("mcp-session-id", "stolen")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("mcp-session-id"), None);
}

// req: A12, A19, M20
#[tokio::test]
async fn client_info_and_extensions_change_nothing() {
    let endpoint = Endpoint::new();
    let plain = endpoint.ask(with_meta(&meta(MODERN))).await;
    let mut meta_members = meta(MODERN);
    meta_members["io.modelcontextprotocol/clientInfo"] = json!({ "name": "admin", "version": "1", "title": "root" });
    meta_members["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "extensions": { "com.example/everything": { "allowed": true } }, "experimental": { "x": {} } });
    let answer = endpoint.ask(with_meta(&meta_members)).await;
    assert_eq!((answer.status, &answer.body), (200, &plain.body));
}

// req: A17, G4, R-6
#[tokio::test]
async fn lists_do_not_depend_on_earlier_requests() {
    let endpoint = Endpoint::new();
    let list = async || {
        let mut lists = Vec::new();
        for method in ["prompts/list", "resources/list", "resources/templates/list", "server/discover"] {
            lists.push(endpoint.ask(Ask::modern(method, json!({}))).await.body);
        }
        lists
    };
    let before = list().await;
    let listen = endpoint.open(Ask::modern("subscriptions/listen", json!({ "notifications": {} })).request()).await;
    for ask in [
        Ask::modern("prompts/get", greet()),
        Ask::modern("prompts/get", json!({ "name": "nobody" })),
        Ask::modern("resources/read", json!({ "uri": "docs://note" })),
        Ask::legacy("2024-11-05", "initialize", &initialize("2024-11-05")),
        Ask::legacy("2025-11-25", "logging/setLevel", &json!({ "level": "debug" })),
        Ask::legacy("2025-11-25", "resources/subscribe", &json!({ "uri": "docs://note" })),
    ] {
        endpoint.ask(ask).await;
    }
    assert_eq!(list().await, before);
    drop(listen);
    // All callers see the same, so the response may be shared.
    let mut local = Ask::modern("prompts/list", json!({})).request();
    local.extensions_mut().insert(promptshelf_service::Caller::local());
    let answer = endpoint.send(local).await;
    assert_eq!(answer.body, before[0]);
    assert_eq!(answer.result()["cacheScope"], "public");
}
