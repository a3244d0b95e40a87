//! The page on which people find, fill in, preview and use prompts.
//!
//! The page is an MCP client of `/mcp` like any other: what it shows of a prompt
//! is what every client gets. Here are only its files (`assets`), which hold
//! nothing of the library and are for everybody, and the things that MCP has no
//! words for (`page_api`), for the same callers and by the same rules as `/mcp`.
//!
//! How the page works is not here but in `assets/js`.

mod assets;
mod page_api;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use promptshelf_mcp::{HttpService, http::Denial};
use serde_json::json;

use crate::library::Library;

/// What the page may do. Nothing comes from elsewhere and nothing inline runs;
/// `trusted-types 'none'` turns every attempt to make markup from text into an
/// error, so that no prompt can become part of the page.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data: blob:; media-src data: blob:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'; connect-src 'self'";

/// What every answer of these routes says, whatever it holds.
const HEADERS: [(header::HeaderName, &str); 3] = [
    (header::REFERRER_POLICY, "no-referrer"),
    (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// How people sign in on the page.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageSignIn {
    /// Whether nothing is answered to those who do not.
    pub(crate) is_needed: bool,
    /// The public client that the page is at the authorization server.
    pub(crate) client_id: Option<String>,
    /// Where that server is: the only other place that the page may ask.
    pub(crate) issuer_origin: Option<String>,
}

#[derive(Clone)]
struct Guard {
    endpoint: HttpService,
    policy: HeaderValue,
}

/// The page's files, and how people sign in on it.
pub(crate) fn page(endpoint: &HttpService, sign_in: PageSignIn) -> Router {
    let policy = match &sign_in.issuer_origin {
        Some(origin) => format!("{CONTENT_SECURITY_POLICY} {origin}"),
        None => CONTENT_SECURITY_POLICY.to_owned(),
    };
    let told = json!({ "needed": sign_in.is_needed, "clientId": sign_in.client_id }).to_string();
    let told = ([(header::CONTENT_TYPE, "application/json")], told);
    let routes = Router::new()
        .route("/", get(assets::index))
        .route("/assets/{*path}", get(assets::asset))
        .route("/sign-in", get(move || std::future::ready(told)));
    // An issuer that is no header's value is none to be asked.
    let policy = HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static(CONTENT_SECURITY_POLICY));
    guarded(routes, endpoint, policy)
}

/// What the page needs and MCP has no words for.
pub(crate) fn page_api(library: &Library, endpoint: &HttpService) -> Router {
    let routes = Router::new()
        .route("/library/changes", get(page_api::changes))
        .route("/library/clients", get(page_api::clients))
        .route("/library/diagnostics", get(page_api::diagnostics))
        .route("/library/facts", get(page_api::facts))
        .route("/library/prompts", get(page_api::prompts))
        .route("/library/prompts/{name}", get(page_api::prompt))
        .with_state(library.clone());
    guarded(routes, endpoint, HeaderValue::from_static(CONTENT_SECURITY_POLICY))
}

/// The routes, for hosts and origins that the endpoint serves too, and for
/// callers that are not refused.
fn guarded(routes: Router, endpoint: &HttpService, policy: HeaderValue) -> Router {
    let guard = Guard { endpoint: endpoint.clone(), policy };
    routes.layer(middleware::from_fn_with_state(guard, admit))
}

async fn admit(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let mut response = match (guard.endpoint.admit(&head), head.extensions.get::<Denial>()) {
        (Err(reason), _) => (StatusCode::FORBIDDEN, format!("{reason}.\n")).into_response(),
        (Ok(()), Some(denial)) => refused(denial),
        (Ok(()), None) => next.run(Request::from_parts(head, body)).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, guard.policy);
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn refused(denial: &Denial) -> Response {
    let mut response = (denial.status, format!("{}.\n", denial.message)).into_response();
    if let Some(challenge) = &denial.challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge.clone());
    }
    if let Some(seconds) = denial.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
