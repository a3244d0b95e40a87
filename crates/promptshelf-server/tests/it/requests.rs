//! Routes, host checks and limits.

use std::{net::SocketAddr, num::NonZeroU32};

use axum::{extract::ConnectInfo, http::StatusCode};
use promptshelf_server::http::{Options, router};
use promptshelf_service::Limits;

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

#[tokio::test]
async fn foreign_hosts_are_refused_on_every_route_with_data() {
    let library = library().build().expect("a library");
    let mut options = Options::default();
    options.mcp.allowed_hosts = vec!["prompts.example.com".to_owned()];
    let router = router(&library, &options);
    assert_eq!(send(&router, list(), LIST).await.0, StatusCode::FORBIDDEN);
    for path in ["/", "/library/prompts"] {
        assert_eq!(send(&router, get(path), "").await.0, StatusCode::FORBIDDEN, "{path}");
        let allowed = axum::http::Request::get(path).header("host", "prompts.example.com");
        assert_eq!(send(&router, allowed, "").await.0, StatusCode::OK, "{path}");
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
