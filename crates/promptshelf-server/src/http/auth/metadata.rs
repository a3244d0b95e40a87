//! The metadata of the protected resource (RFC 9728): document, URL and routes.

use axum::{
    Router,
    http::{HeaderValue, header},
    routing::{MethodRouter, get},
};
use serde_json::json;

use super::{options::SignInOptions, url};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Returns the routes of the document, which are public: its own path and, for clients that look only
/// there, the root. Empty without an authorization server.
pub(super) fn routes(options: &SignInOptions) -> Router {
    let routes = Router::new();
    let (Some(document), Some(url)) = (document(options), document_url(options)) else { return routes };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
    ];
    let preflight = [
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
        (header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET")),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("mcp-protocol-version")),
    ];
    let method_router: MethodRouter =
        get(move || std::future::ready((headers, document))).options(move || std::future::ready(preflight));
    let routes = routes.route(WELL_KNOWN, method_router.clone());
    match url::path_of(&url) {
        WELL_KNOWN => routes,
        path => routes.route(path, method_router),
    }
}

fn document(options: &SignInOptions) -> Option<String> {
    let (issuer, resource) = (options.issuer.as_ref()?, options.resource.as_ref()?);
    let mut document = json!({
        "resource": resource,
        "authorization_servers": [issuer.issuer],
        "bearer_methods_supported": ["header"],
    });
    let scopes: Vec<&String> = options.scopes_supported.iter().filter(|scope| *scope != "offline_access").collect();
    if !scopes.is_empty() {
        document["scopes_supported"] = json!(scopes);
    }
    Some(document.to_string())
}

/// Returns the document's URL: the well-known path is inserted between the host and the path of the
/// resource (RFC 9728, section 3.1).
pub(super) fn document_url(options: &SignInOptions) -> Option<String> {
    options.issuer.as_ref()?;
    let resource = options.resource.as_deref()?;
    let path = url::path_of(resource);
    let origin = resource.strip_suffix(path)?;
    Some(format!("{origin}{WELL_KNOWN}{}", path.trim_end_matches('/')))
}
