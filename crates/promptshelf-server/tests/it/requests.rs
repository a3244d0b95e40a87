//! Routes, host checks and limits.

use std::{net::SocketAddr, num::NonZeroU32, time::Duration};

use axum::{extract::ConnectInfo, http::StatusCode};
use promptshelf_server::http::{Options, router};
use promptshelf_service::Limits;
use tokio::time::Instant;

use crate::{LIST, get, library, list, send, text};

#[tokio::test]
async fn endpoint_page_and_probes_are_served() {
    let library = library().build().expect("a library");
    let router = router(&library, &Options::default());
    let (status, headers, body) = send(&router, list(), LIST).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers["cache-control"], "no-store");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert!(text(body).await.contains("\"greet\""));
    let (status, headers, _) = send(&router, get("/"), "").await;
    assert_eq!(status, StatusCode::OK);
    assert!(headers["content-security-policy"].to_str().is_ok_and(|policy| policy.contains("trusted-types 'none'")));
    let (status, _, body) = send(&router, get("/library/prompts"), "").await;
    assert_eq!(status, StatusCode::OK);
    assert!(text(body).await.contains("\"greet\""));
    assert_eq!(send(&router, get("/nothing"), "").await.0, StatusCode::NOT_FOUND);
    assert_eq!(send(&router, get("/healthz"), "").await.0, StatusCode::OK);
    assert_eq!(send(&router, get("/readyz"), "").await.0, StatusCode::OK);
    library.server().shutdown();
    assert_eq!(send(&router, get("/readyz"), "").await.0, StatusCode::SERVICE_UNAVAILABLE);
}

/// The routes of the page and its API.
const PAGE: [&str; 10] = [
    "/",
    "/sign-in",
    "/assets/js/main.js",
    "/assets/nothing.js",
    "/library/changes",
    "/library/clients",
    "/library/diagnostics",
    "/library/facts",
    "/library/prompts",
    "/library/prompts/greet",
];

// req: S-1
#[tokio::test]
async fn foreign_hosts_and_origins_are_refused_on_every_route_with_data() {
    let library = library().build().expect("a library");
    let mut options = Options::default();
    options.mcp.allowed_hosts = vec!["prompts.example.com".to_owned()];
    let router = router(&library, &options);
    let at = |path: &str, host| axum::http::Request::get(path).header("host", host);
    assert_eq!(send(&router, list(), LIST).await.0, StatusCode::FORBIDDEN);
    for path in PAGE {
        assert_eq!(send(&router, at(path, "localhost"), "").await.0, StatusCode::FORBIDDEN, "{path}");
        let foreign = at(path, "prompts.example.com").header("origin", "https://evil.example");
        assert_eq!(send(&router, foreign, "").await.0, StatusCode::FORBIDDEN, "{path}");
        let (status, headers, _) = send(&router, at(path, "prompts.example.com"), "").await;
        let expected = if path.contains("nothing") { StatusCode::NOT_FOUND } else { StatusCode::OK };
        assert_eq!(status, expected, "{path}");
        assert!(!headers.contains_key("access-control-allow-origin"), "{path}");
    }
}

/// Probes of load balancers and service managers name any host.
// req: S-1
#[tokio::test]
async fn routes_without_a_host_check_have_no_data() {
    let router = router(&library().build().expect("a library"), &Options::default());
    for (path, answer) in [
        ("/healthz", "ok\n"),
        ("/readyz", "ready\n"),
        ("/nothing", "There is nothing here. MCP clients connect to /mcp.\n"),
    ] {
        let foreign =
            axum::http::Request::get(path).header("host", "10.0.0.7").header("origin", "https://evil.example");
        let (_, headers, body) = send(&router, foreign, "").await;
        assert_eq!(text(body).await, answer, "{path}");
        assert!(!headers.contains_key("access-control-allow-origin"), "{path}");
    }
}

// req: S-65
#[tokio::test]
async fn tls_only_is_requested_where_it_is_turned_on() {
    let library = library().build().expect("a library");
    let mut options = Options::default();
    options.mcp.allowed_hosts = vec!["prompts.example.com".to_owned(), "localhost".to_owned()];
    let of = |host| axum::http::Request::get("/healthz").header("host", host);
    let plain = router(&library, &options);
    assert!(!send(&plain, of("prompts.example.com"), "").await.1.contains_key("strict-transport-security"));
    options.strict_transport_security = true;
    let strict = router(&library, &options);
    for host in ["prompts.example.com", "prompts.example.com:8443"] {
        assert_eq!(send(&strict, of(host), "").await.1["strict-transport-security"], "max-age=31536000", "{host}");
    }
    for host in ["localhost", "LOCALHOST:8443"] {
        let (_, headers, _) = send(&strict, of(host), "").await;
        assert!(!headers.contains_key("strict-transport-security"), "it would apply to every server on {host}");
    }
}

#[tokio::test]
async fn requests_over_the_limit_of_an_address_are_429() {
    let limits = Limits { requests_per_minute_per_address: NonZeroU32::MIN, ..Limits::default() };
    let library = library().limits(limits).build().expect("a library");
    let router = router(&library, &Options::default());
    let from = |address: [u8; 4]| list().extension(ConnectInfo(SocketAddr::from((address, 4711))));
    let mut refused = None;
    // A bucket may allow a burst; it is finite.
    for _ in 0..1_000 {
        let (status, headers, _) = send(&router, from([203, 0, 113, 7]), LIST).await;
        if status == StatusCode::TOO_MANY_REQUESTS {
            refused = Some(headers);
            break;
        }
        assert_eq!(status, StatusCode::OK);
    }
    let headers = refused.expect("a limit");
    assert!(
        headers["retry-after"].to_str().is_ok_and(|seconds| seconds.parse::<u64>().is_ok_and(|seconds| seconds > 0))
    );
    assert_eq!(send(&router, from([203, 0, 113, 8]), LIST).await.0, StatusCode::OK, "another address");
}

/// The clock advances only while everything waits.
// req: S-24
#[tokio::test(start_paused = true)]
async fn refusals_for_too_many_requests_are_delayed() {
    let one = NonZeroU32::MIN;
    let of_addresses = Limits { requests_per_minute_per_address: one, ..Limits::default() };
    let of_callers = Limits { requests_per_minute: one, ..Limits::default() };
    for limits in [of_addresses, of_callers] {
        let library = library().limits(limits).build().expect("a library");
        let router = router(&library, &Options::default());
        let ask = async || {
            let started = Instant::now();
            let from = list().extension(ConnectInfo(SocketAddr::from(([203, 0, 113, 7], 4711))));
            (send(&router, from, LIST).await.0, started.elapsed())
        };
        assert_eq!(ask().await, (StatusCode::OK, Duration::ZERO));
        for _ in 0..2 {
            let (status, time) = ask().await;
            assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
            assert!(Duration::from_millis(100) <= time && time < Duration::from_millis(150), "{limits:?}: {time:?}");
        }
    }
}
