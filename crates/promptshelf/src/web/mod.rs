//! The page on which people find, fill in, preview and use prompts.
//!
//! The page is an MCP client of `/mcp` like any other: what it shows of a prompt
//! is what every client gets. Here are only its files (`assets`) and the things
//! that MCP has no words for (`beside`): where a prompt lies and which type an
//! argument has, what is wrong with the library, when it was loaded, its limits.
//!
//! How the page works is not here but in `assets/js`.

mod assets;
mod beside;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use promptshelf_mcp::HttpService;

use crate::Library;

/// What the page may do. Nothing comes from elsewhere and nothing inline runs;
/// `trusted-types 'none'` turns every attempt to make markup from text into an
/// error, so that no prompt can become part of the page.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data: blob:; media-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// What every answer of these routes says, whatever it holds.
const HEADERS: [(header::HeaderName, &str); 4] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The page's routes, for hosts and origins that the endpoint serves too.
pub(crate) fn routes(library: &Library, endpoint: &HttpService) -> Router {
    Router::new()
        .route("/", get(assets::index))
        .route("/assets/{*path}", get(assets::asset))
        .route("/library/changes", get(beside::changes))
        .route("/library/diagnostics", get(beside::diagnostics))
        .route("/library/facts", get(beside::facts))
        .route("/library/prompts", get(beside::shelf))
        .route("/library/prompts/{name}", get(beside::prompt))
        .with_state(library.clone())
        .layer(middleware::from_fn_with_state(endpoint.clone(), guard))
}

async fn guard(State(endpoint): State<HttpService>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let mut response = match endpoint.admit(&head) {
        Ok(()) => next.run(Request::from_parts(head, body)).await,
        Err(reason) => (StatusCode::FORBIDDEN, format!("{reason}.\n")).into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
