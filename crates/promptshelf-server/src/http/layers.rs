//! What stands around every route: bounds of time, headers of every answer, a
//! log without contents.

use std::{any::Any, time::Instant};

use axum::{
    Router,
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use tower_http::{catch_panic::CatchPanicLayer, set_header::SetResponseHeaderLayer, timeout::TimeoutLayer};
use tracing::Level;

use super::Options;

/// The layers of every route; the first one is the outermost. They are one
/// piece, because the router boxes a route anew for each that it is given.
pub(super) type Layers = (
    SetResponseHeaderLayer<HeaderValue>,
    SetResponseHeaderLayer<HeaderValue>,
    CatchPanicLayer<fn(Box<dyn Any + Send>) -> Response>,
    TimeoutLayer,
);

pub(super) fn layers(options: &Options) -> Layers {
    let no_store = HeaderValue::from_static("no-store");
    let as_declared = HeaderValue::from_static("nosniff");
    (
        SetResponseHeaderLayer::overriding(header::X_CONTENT_TYPE_OPTIONS, as_declared),
        SetResponseHeaderLayer::if_not_present(header::CACHE_CONTROL, no_store),
        CatchPanicLayer::custom(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response()),
        TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, options.request_timeout),
    )
}

/// Nobody pays for a log that nobody asked for.
pub(super) fn is_logged() -> bool {
    tracing::enabled!(Level::DEBUG)
}

pub(super) fn logged(routes: Router) -> Router {
    if is_logged() { routes.layer(middleware::from_fn(log)) } else { routes }
}

async fn log(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let started = Instant::now();
    let response = next.run(request).await;
    let id = response.headers().get("x-request-id").and_then(|id| id.to_str().ok());
    tracing::debug!(request = id, %method, path, status = response.status().as_u16(), took = ?started.elapsed(), "request");
    response
}

/// For people who open the wrong address.
pub(super) async fn nothing_here() -> (StatusCode, &'static str) {
    (StatusCode::NOT_FOUND, "There is nothing here. MCP clients connect to /mcp.\n")
}
