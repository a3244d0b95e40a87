//! Checks of hosts and origins, and preflight requests.

use http::{Method, Uri};
use promptshelf_mcp::HttpOptions;

use super::endpoint::{Ask, Endpoint, greet};

/// An otherwise valid request for each method.
fn every_verb() -> [Ask; 4] {
    [
        Ask::modern("prompts/get", greet()),
        Ask::get_stream(),
        Ask::verb(Method::DELETE),
        Ask::verb(Method::OPTIONS).header("access-control-request-method", "POST"),
    ]
}

// req: L50, N16, R-7, S-1, X17
#[tokio::test]
async fn foreign_origins_are_refused_for_every_method() {
    let endpoint = Endpoint::new();
    let foreign = [
        "http://evil.example",
        "null",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://evil.example:80",
        "https://127.0.0.1.evil.example:443",
        "chrome-extension://localhost",
        "localhost",
        "",
        "http://lö",
    ];
    for origin in foreign {
        for ask in every_verb() {
            let answer = endpoint.ask(ask.header("origin", origin)).await;
            assert_eq!(answer.error(), (403, -32600, None), "{origin}");
            let permission = answer.headers.keys().find(|name| name.as_str().starts_with("access-control"));
            assert_eq!(permission, None, "{origin}");
        }
    }
}

// req: L52, X17
#[tokio::test]
async fn forged_hosts_are_refused_for_every_method() {
    let endpoint = Endpoint::new();
    for host in
        ["evil.example", "localhost.evil.example", "localhost:80@evil.example", "evil.example:8000", "[::2]", ""]
    {
        for ask in every_verb() {
            assert_eq!(endpoint.ask(ask.header("host", host)).await.error(), (403, -32600, None), "{host}");
        }
    }
    assert_eq!(endpoint.ask(Ask::modern("prompts/get", greet()).without("host")).await.status, 403);
    assert_eq!(endpoint.ask(Ask::modern("prompts/get", greet()).also("host", "localhost")).await.status, 403);
    let twice = Ask::modern("prompts/get", greet()).header("origin", "http://localhost");
    assert_eq!(endpoint.ask(twice.also("origin", "http://localhost")).await.status, 403);
}

// req: L53
#[tokio::test]
async fn host_check_precedes_body() {
    let ask = Ask::raw("no JSON").header("origin", "http://evil.example");
    assert_eq!(Endpoint::new().ask(ask).await.error(), (403, -32600, None));
}

#[tokio::test]
async fn loopback_names_are_served_on_any_port() {
    let endpoint = Endpoint::new();
    for host in ["localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]", "[::1]:65535"] {
        for origin in [None, Some("http://localhost:6274"), Some("https://127.0.0.1"), Some("http://[::1]:3000")] {
            let mut ask = Ask::modern("prompts/get", greet()).header("host", host);
            if let Some(origin) = origin {
                ask = ask.header("origin", origin);
            }
            let answer = endpoint.ask(ask).await;
            assert_eq!(answer.status, 200, "{host} {origin:?}");
            assert_eq!(answer.header("access-control-allow-origin"), origin);
        }
    }
}

#[tokio::test]
async fn authority_and_host_must_both_be_allowed() {
    let endpoint = Endpoint::new();
    for (host, uri, status) in [
        (None, "http://localhost:8000/mcp", 200),
        (None, "http://evil.example/mcp", 403),
        (Some("localhost"), "http://evil.example/mcp", 403),
        (Some("evil.example"), "http://localhost/mcp", 403),
        (Some("localhost"), "http://localhost/mcp", 200),
    ] {
        let ask = Ask::modern("prompts/get", greet()).without("host");
        let mut request = match host {
            Some(host) => ask.header("host", host),
            None => ask,
        }
        .request();
        *request.uri_mut() = Uri::from_static(uri);
        assert_eq!(endpoint.send(request).await.status, status, "{host:?} {uri}");
    }
}

#[tokio::test]
async fn only_listed_hosts_and_origins_are_allowed() {
    let endpoint = Endpoint::with(HttpOptions {
        allowed_hosts: vec![
            "prompts.example".into(),
            "one.example:8443".into(),
            "plain.example:80".into(),
            "::2".into(),
        ],
        allowed_origins: vec!["https://app.example/".into(), "null".into(), "tauri://localhost".into()],
        ..HttpOptions::default()
    });
    for (host, origin, status) in [
        ("prompts.example", None, 200),
        ("prompts.example:1", None, 200),
        ("one.example:8443", None, 200),
        ("one.example", None, 403),
        ("one.example:1", None, 403),
        ("plain.example", None, 200),
        ("[::2]:5", None, 200),
        ("localhost", None, 403),
        ("prompts.example", Some("https://prompts.example"), 200),
        ("prompts.example", Some("https://one.example:8443"), 200),
        ("prompts.example", Some("https://one.example"), 403),
        ("prompts.example", Some("http://plain.example"), 200),
        ("prompts.example", Some("https://plain.example"), 403),
        ("prompts.example", Some("https://app.example"), 200),
        ("prompts.example", Some("https://app.example:8443"), 403),
        ("prompts.example", Some("http://app.example"), 403),
        ("prompts.example", Some("null"), 200),
        ("prompts.example", Some("tauri://localhost"), 200),
        ("prompts.example", Some("http://localhost"), 403),
    ] {
        let mut ask = Ask::modern("prompts/get", greet()).header("host", host);
        if let Some(origin) = origin {
            ask = ask.header("origin", origin);
        }
        assert_eq!(endpoint.ask(ask).await.status, status, "{host} {origin:?}");
    }
}

#[tokio::test]
async fn invalid_allowed_hosts_allow_nothing() {
    let options = HttpOptions { allowed_hosts: vec!["https://prompts.example".into()], ..HttpOptions::default() };
    let endpoint = Endpoint::with(options);
    for host in ["localhost", "prompts.example", "https"] {
        assert_eq!(endpoint.ask(Ask::modern("prompts/get", greet()).header("host", host)).await.status, 403);
    }
}

#[tokio::test]
async fn preflight_is_answered() {
    let endpoint = Endpoint::new();
    let names = "content-type,mcp-method,mcp-name,mcp-protocol-version,authorization,traceparent";
    let preflight = Ask::verb(Method::OPTIONS)
        .header("origin", "http://localhost:6274")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", names);
    let answer = endpoint.ask(preflight).await;
    assert_eq!(answer.status, 204);
    assert!(answer.body.is_empty());
    assert_eq!(answer.header("access-control-allow-origin"), Some("http://localhost:6274"));
    assert_eq!(answer.header("access-control-allow-methods"), Some("GET, POST, DELETE"));
    assert_eq!(answer.header("access-control-allow-headers"), Some(names));
    assert_eq!(answer.header("vary"), Some("Origin"));
    assert_eq!(answer.header("allow"), Some("GET, POST, DELETE, OPTIONS"));
    assert_eq!(answer.header("access-control-allow-credentials"), None);
}

#[tokio::test]
async fn allowed_page_reads_errors_and_streams() {
    let endpoint = Endpoint::new();
    for ask in [Ask::raw("no JSON"), Ask::modern("no/such", serde_json::json!({}))] {
        let answer = endpoint.ask(ask.header("origin", "http://localhost:1")).await;
        assert_eq!(answer.header("access-control-allow-origin"), Some("http://localhost:1"));
    }
    let stream = endpoint.open(Ask::get_stream().header("origin", "http://localhost:1").request()).await;
    assert_eq!(stream.headers()["access-control-allow-origin"], "http://localhost:1");
}
