//! Documents for discovery before a connection: the server card and the catalog. Both are drafts, public, and off by
//! default.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use promptshelf_mcp::{DiscoveryDocument, HttpService, Server};

/// The documents that are served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// Whether `/mcp/server-card` is served.
    pub server_card: bool,
    /// Whether `/.well-known/ai-catalog.json` is served.
    pub catalog: bool,
    /// The URL of `/mcp` for clients. By default that of the request.
    pub url: Option<String>,
    /// Whether URLs of requests begin with `https`.
    pub is_tls: bool,
}

struct Document {
    server: Server,
    endpoint: HttpService,
    discovery: Discovery,
    make: fn(&Server, &str) -> DiscoveryDocument,
}

pub(super) fn routes(server: &Server, endpoint: &HttpService, discovery: &Discovery) -> Router {
    let route = |make| {
        let (server, endpoint, discovery) = (server.clone(), endpoint.clone(), discovery.clone());
        let document = Document { server, endpoint, discovery, make };
        get(respond).options(preflight).with_state(Arc::new(document))
    };
    let mut routes = Router::new();
    if discovery.server_card {
        routes = routes.route("/mcp/server-card", route(Server::server_card));
    }
    if discovery.catalog {
        routes = routes.route("/.well-known/ai-catalog.json", route(Server::ai_catalog));
    }
    routes
}

async fn respond(State(document): State<Arc<Document>>, request: Request) -> Response {
    let (mut head, _) = request.into_parts();
    // Every page may read the document; only the host matters, which its text can contain.
    head.headers.remove(header::ORIGIN);
    if let Err(reason) = document.endpoint.admit(&head) {
        return (StatusCode::FORBIDDEN, reason).into_response();
    }
    let url = match &document.discovery.url {
        Some(url) => url.clone(),
        None => {
            let host = head.headers.get(header::HOST).and_then(|host| host.to_str().ok());
            let host = host.or_else(|| head.uri.authority().map(axum::http::uri::Authority::as_str));
            let scheme = if document.discovery.is_tls { "https" } else { "http" };
            format!("{scheme}://{}/mcp", host.unwrap_or("localhost"))
        }
    };
    let made = (document.make)(&document.server, &url);
    let is_known = names(&head.headers, &made.etag);
    let mut response = if is_known { StatusCode::NOT_MODIFIED.into_response() } else { made.body.into_response() };
    let headers = response.headers_mut();
    if !is_known {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(made.media_type));
    }
    if let Ok(etag) = HeaderValue::from_str(&made.etag) {
        headers.insert(header::ETAG, etag);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    allow_reading(headers);
    response
}

async fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    allow_reading(response.headers_mut());
    response
}

fn allow_reading(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("Content-Type"));
}

/// Returns whether `If-None-Match` names an entity tag. The comparison is weak (RFC 9110, section 13.1.2).
fn names(headers: &HeaderMap, etag: &str) -> bool {
    let values = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}
