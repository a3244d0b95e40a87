//! The web page on which people find, fill in, preview and use prompts.
//!
//! The page is an MCP client of `/mcp`, so that it shows the same prompts as any other client. This
//! module serves its files (`assets`), which are public because they hold nothing of the library, and an
//! API for data that MCP does not carry (`page_api`), for the same callers and by the same rules as `/mcp`.
//!
//! The page's own code is in `assets/js`.

mod assets;
mod page_api;

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use promptshelf_mcp::{
    HttpService, Profile,
    http::{Denial, ForeignRequest},
};
use serde_json::json;

#[cfg(feature = "channels")]
pub(crate) use page_api::described_arguments;

use crate::library::Library;

/// The policy of every response: no foreign sources and no inline scripts. `trusted-types 'none'` makes
/// every conversion of text into markup an error, so that a prompt cannot become part of the page.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data: blob:; media-src data: blob:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'; connect-src 'self'";

const HEADERS: [(header::HeaderName, &str); 3] = [
    (header::REFERRER_POLICY, "no-referrer"),
    (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

#[derive(Clone, Debug, Default)]
pub(crate) struct PageSignIn {
    pub(crate) is_required: bool,
    pub(crate) client_id: Option<String>,
    /// The authorization server's origin, the only other one that the page may send requests to.
    pub(crate) issuer_origin: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PageFeatures {
    /// Whether the API of a store is at `/api/v1`.
    pub(crate) has_channels: bool,
    pub(crate) has_folder: bool,
    pub(crate) has_sources: bool,
    pub(crate) has_usage: bool,
    pub(crate) profiles: Arc<BTreeMap<String, Profile>>,
}

#[derive(Clone)]
struct Checks {
    endpoint: HttpService,
    policy: HeaderValue,
}

/// Returns the public routes: the page's files and its sign-in options.
pub(crate) fn page(endpoint: &HttpService, sign_in: PageSignIn) -> Router {
    let policy = match &sign_in.issuer_origin {
        Some(origin) => format!("{CONTENT_SECURITY_POLICY} {origin}"),
        None => CONTENT_SECURITY_POLICY.to_owned(),
    };
    let sign_in = json!({ "needed": sign_in.is_required, "clientId": sign_in.client_id }).to_string();
    let sign_in = ([(header::CONTENT_TYPE, "application/json")], sign_in);
    let routes = Router::new()
        .route("/", get(assets::index))
        .route("/assets/{*path}", get(assets::asset))
        .route("/sign-in", get(move || std::future::ready(sign_in)));
    // An issuer that is invalid in a header is left out, and the page cannot reach it.
    let policy = HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static(CONTENT_SECURITY_POLICY));
    checked(routes, endpoint, policy)
}

pub(crate) fn page_api(library: &Library, endpoint: &HttpService, features: PageFeatures) -> Router {
    let routes = Router::new()
        .route("/library/changes", get(page_api::changes))
        .route("/library/clients", get(page_api::clients))
        .route("/library/diagnostics", get(page_api::diagnostics))
        .route("/library/facts", get(page_api::facts))
        .route("/library/prompts", get(page_api::prompts))
        .route("/library/prompts/{name}", get(page_api::prompt))
        .route("/library/starters", get(page_api::starters))
        .layer(Extension(features))
        .with_state(library.clone());
    checked(routes, endpoint, HeaderValue::from_static(CONTENT_SECURITY_POLICY))
}

/// Adds the checks of the endpoint (host, origin, authentication) and the headers of every response.
fn checked(routes: Router, endpoint: &HttpService, policy: HeaderValue) -> Router {
    let checks = Checks { endpoint: endpoint.clone(), policy };
    routes.layer(middleware::from_fn_with_state(checks, admit))
}

async fn admit(State(checks): State<Checks>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let mut response = match (checks.endpoint.admit(&head), head.extensions.get::<Denial>()) {
        (Err(reason), _) => {
            let mut response = (StatusCode::FORBIDDEN, format!("{reason}.\n")).into_response();
            response.extensions_mut().insert(ForeignRequest::of(&head.headers));
            response
        }
        (Ok(()), Some(denial)) => refusal(denial),
        (Ok(()), None) => next.run(Request::from_parts(head, body)).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, checks.policy);
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn refusal(denial: &Denial) -> Response {
    let mut response = (denial.status, format!("{}.\n", denial.message)).into_response();
    if let Some(challenge) = &denial.challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge.clone());
    }
    if let Some(seconds) = denial.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
