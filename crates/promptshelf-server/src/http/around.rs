//! The steps around every route: forwarding headers, the debug log, the time limit, and headers of every response.
//!
//! They are one function and not a layer each: axum boxes every layer of a route once more for each request.

use std::{
    panic::AssertUnwindSafe,
    time::{Duration, Instant},
};

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use futures_util::FutureExt as _;
use promptshelf_mcp::RequestNumber;
use promptshelf_service::format_seconds;
use tokio::time::timeout;
use tracing::{Level, level_filters::LevelFilter};

use super::{busy::watched, options::Options};

/// One year, in seconds. Subdomains may belong to other servers.
const TLS_ONLY: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// The time in which the endpoint of MCP notices by itself that an answer is late.
const MARGIN: Duration = Duration::from_secs(1);

/// Answers a request with `next`. A panic becomes status 500, and a response that does not begin in time 504; 408 if the
/// body of a message did not arrive. Each request has its number from here on, which each response names.
pub(super) async fn around<F>(
    options: &Options,
    number: RequestNumber,
    mut request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response
where
    F: Future<Output = Response>,
{
    options.proxies.apply(&mut request);
    request.extensions_mut().insert(number);
    // Not `enabled!`: with several filtered layers its answer is taken for that about the next span on this thread.
    let logged = (LevelFilter::current() >= Level::DEBUG).then(|| LoggedRequest::new(&request));
    let asks_for_tls = options.strict_transport_security && !is_for_localhost(request.headers());
    let (method, uri) = (request.method().clone(), request.uri().clone());
    // The endpoint of MCP answers late requests itself, once their bodies have arrived.
    let is_endpoint = uri.path().ends_with("/mcp");
    let limit = options.request_timeout + if is_endpoint { MARGIN } else { Duration::ZERO };
    // The panic hook logs the message and the location.
    let mut answering = Box::pin(AssertUnwindSafe(watched(uri.path(), async { next(request).await })).catch_unwind());
    let mut response = match timeout(limit, answering.as_mut()).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Err(_) => {
            // What was begun reports to audit and metrics that its time is over.
            promptshelf_service::timed_out(|| drop(answering));
            let path = uri.path();
            tracing::warn!(request = number.id(), %method, path, ?limit, "request was not answered in time");
            late(path, is_endpoint, options.request_timeout)
        }
    };
    let id = || HeaderValue::try_from(number.id()).unwrap_or(HeaderValue::from_static(""));
    let headers = response.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.entry("x-request-id").or_insert_with(id);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if asks_for_tls {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, TLS_ONLY);
    }
    if let Some(logged) = logged {
        logged.answered(&response);
    }
    response
}

/// The response to a request that was not answered in time, in the form of its API.
fn late(path: &str, is_endpoint: bool, limit: Duration) -> Response {
    let seconds = format_seconds(limit.as_secs());
    if is_endpoint {
        return (StatusCode::REQUEST_TIMEOUT, format!("The body did not arrive within {seconds}\n")).into_response();
    }
    let detail =
        format!("The request was not answered within {seconds}; try again, and tell the operator if it happens again");
    #[cfg(feature = "channels")]
    if path.starts_with("/api/") {
        return crate::api::timed_out(detail);
    }
    let _ = path;
    (StatusCode::GATEWAY_TIMEOUT, format!("{detail}\n")).into_response()
}

fn is_for_localhost(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    host.split(':').next().unwrap_or_default().eq_ignore_ascii_case("localhost")
}

/// A request in the debug log, without its contents.
struct LoggedRequest {
    method: axum::http::Method,
    path: String,
    started: Instant,
}

impl LoggedRequest {
    fn new(request: &Request) -> LoggedRequest {
        LoggedRequest {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            started: Instant::now(),
        }
    }

    fn answered(self, response: &Response) {
        let LoggedRequest { method, path, started } = self;
        let id = response.headers().get("x-request-id").and_then(|id| id.to_str().ok());
        tracing::debug!(request = id, %method, path, status = response.status().as_u16(), took = ?started.elapsed(), "request");
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn request(host: &str) -> Request {
        Request::builder().header(header::HOST, host).body(Body::empty()).expect("a request")
    }

    fn number() -> RequestNumber {
        crate::Library::builder().build().expect("a library").server().request_number()
    }

    #[tokio::test(start_paused = true)]
    async fn panics_and_late_responses_have_a_status_and_the_common_headers() {
        let options = Options { strict_transport_security: true, ..Options::default() };
        let panicking = around(&options, number(), request("a.example:443"), async |_| panic!("a bug")).await;
        assert_eq!(panicking.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let late = around(&options, number(), request("a.example"), async |_| {
            tokio::time::sleep(options.request_timeout + Duration::from_secs(1)).await;
            StatusCode::OK.into_response()
        });
        let late = late.await;
        assert_eq!(late.status(), StatusCode::GATEWAY_TIMEOUT);
        for response in [panicking, late] {
            let value = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
            assert_eq!(value(header::CACHE_CONTROL), Some("no-store"));
            assert_eq!(value(header::X_CONTENT_TYPE_OPTIONS), Some("nosniff"));
            assert!(response.headers().contains_key("x-request-id"));
            assert_eq!(value(header::STRICT_TRANSPORT_SECURITY), Some("max-age=31536000"));
        }
    }

    #[tokio::test]
    async fn headers_of_a_route_stay_and_localhost_is_not_asked_for_tls() {
        let options = Options { strict_transport_security: true, ..Options::default() };
        let cached = [(header::CACHE_CONTROL, "max-age=60")];
        let response = around(&options, number(), request("LOCALHOST:8080"), async |_| cached.into_response()).await;
        assert_eq!(response.headers().get(header::CACHE_CONTROL), Some(&HeaderValue::from_static("max-age=60")));
        assert_eq!(response.headers().get(header::STRICT_TRANSPORT_SECURITY), None);
    }
}
