//! Every route of the HTTP application, on one screen, and the middleware around them.
//!
//! From the outside: forwarding headers of proxies, the debug log, the layers of every response, and,
//! on routes with data of the library, authentication. Messages sent to `/mcp` are answered by `promptshelf_mcp`.

use std::{any::Any, time::Instant};

use axum::{
    Router,
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use promptshelf_mcp::Server;
use tower_http::{catch_panic::CatchPanicLayer, set_header::SetResponseHeaderLayer, timeout::TimeoutLayer};
use tracing::Level;

#[cfg(feature = "channels")]
use super::basic;
use super::{
    authenticate, discovery,
    options::Options,
    proxy,
    site::{Site, not_found},
};
#[cfg(feature = "channels")]
use crate::api;
use crate::replica::ReplicaMonitor;
#[cfg(feature = "web")]
use crate::web;

/// One year, in seconds. Subdomains may belong to other servers.
const TLS_ONLY: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Builds the router: every route with its middleware.
pub(super) fn routes(site: &Site, options: &Options) -> Router {
    let Site { library, endpoint, .. } = site;
    let server = library.server().clone();
    // Anyone can read it, so it has the default channel only.
    let monitors: Vec<_> = site.monitors().into_iter().take(1).collect();
    let protected = Router::new().route_service("/mcp", endpoint.clone());
    let protected = options.profiles.iter().fold(protected, |routes, (name, profile)| {
        routes.route_service(&format!("/profiles/{name}/mcp"), endpoint.with_profile(*profile))
    });
    // `/library/…`
    #[cfg(feature = "web")]
    let protected = protected.merge(web::page_api(library, endpoint, page_features(options)));
    let protected = site.restricted(protected, options).merge(site.channel_routes(options));
    #[cfg(feature = "channels")]
    let programs = programs(site, options);
    #[cfg(feature = "channels")]
    let protected = protected.merge(api::routes(&programs, library, endpoint, options, has_sign_in(options)));
    #[cfg(feature = "channels")]
    let protected = match &options.folder {
        Some(folder) => protected.merge(api::folder_routes(folder, library, endpoint, has_sign_in(options))),
        None => protected,
    };
    let documents = discovery::routes(library.server(), endpoint, &options.discovery);
    let routes = Router::new()
        .merge(documents)
        .route("/healthz", get(healthy))
        .route("/readyz", get(move || std::future::ready(readiness(&server, &monitors))))
        .fallback(not_found)
        .merge(authenticate::around(protected, library.service(), options));
    #[cfg(feature = "channels")]
    let routes = routes.merge(api::document_route(library, endpoint, options)).merge({
        let langfuse = basic::named(api::langfuse_routes(&programs, library, endpoint));
        basic::translated(authenticate::around(langfuse, library.service(), options))
    });
    // Forges sign their requests, and do not sign in.
    #[cfg(feature = "git")]
    let routes = routes.merge(options.webhooks.routes(library.service()));
    // `/`, `/assets/…` and `/sign-in` are public: they hold nothing of the library.
    #[cfg(feature = "web")]
    let routes = routes.merge(web::page(endpoint, page_sign_in(options)));
    #[cfg(feature = "sign-in")]
    let routes = match &options.sign_in {
        Some(sign_in) => routes.merge(sign_in.metadata_routes()),
        None => routes,
    };
    let routes = if options.strict_transport_security { routes.layer(middleware::from_fn(tls_only)) } else { routes };
    proxy::around(logged(common(routes, options)), &options.proxies)
}

/// The libraries for programs.
#[cfg(feature = "channels")]
fn programs(site: &Site, options: &Options) -> api::ProgramState {
    api::ProgramState::new(&site.library, site.libraries(), options, has_sign_in(options))
}

/// Whether callers sign in.
#[cfg(feature = "channels")]
fn has_sign_in(options: &Options) -> bool {
    #[cfg(feature = "sign-in")]
    return options.sign_in.is_some();
    #[cfg(not(feature = "sign-in"))]
    {
        let _ = options;
        false
    }
}

/// The parts of the server that the page has views for.
#[cfg(feature = "web")]
fn page_features(options: &Options) -> web::PageFeatures {
    let profiles = std::sync::Arc::new(options.profiles.clone());
    #[cfg(feature = "channels")]
    return web::PageFeatures {
        has_channels: options.api.is_some(),
        has_folder: options.folder.is_some(),
        has_sources: options.sources.is_some(),
        has_usage: options.usage.is_some(),
        profiles,
    };
    #[cfg(not(feature = "channels"))]
    web::PageFeatures { profiles, ..web::PageFeatures::default() }
}

/// The sign-in options of the page.
#[cfg(feature = "web")]
fn page_sign_in(options: &Options) -> web::PageSignIn {
    #[cfg(feature = "sign-in")]
    if let Some(sign_in) = &options.sign_in {
        return sign_in.on_page();
    }
    let _ = options;
    web::PageSignIn::default()
}

/// Adds the layers of every route; the first one is the outermost. They are added as one layer
/// because axum boxes each route once for every call of `Router::layer`.
fn common(routes: Router, options: &Options) -> Router {
    let no_store = HeaderValue::from_static("no-store");
    let as_declared = HeaderValue::from_static("nosniff");
    let internal_error: fn(Box<dyn Any + Send>) -> Response = |_| StatusCode::INTERNAL_SERVER_ERROR.into_response();
    routes.layer((
        SetResponseHeaderLayer::overriding(header::X_CONTENT_TYPE_OPTIONS, as_declared),
        SetResponseHeaderLayer::if_not_present(header::CACHE_CONTROL, no_store),
        CatchPanicLayer::custom(internal_error),
        TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, options.request_timeout),
    ))
}

/// Asks browsers to use TLS only for the host of the request.
async fn tls_only(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.split(':').next().unwrap_or_default();
    let is_localhost = name.eq_ignore_ascii_case("localhost");
    let mut response = next.run(request).await;
    if !is_localhost {
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, TLS_ONLY);
    }
    response
}

/// Adds the request log where it is enabled.
fn logged(routes: Router) -> Router {
    if tracing::enabled!(Level::DEBUG) { routes.layer(middleware::from_fn(log)) } else { routes }
}

/// Logs a request without its contents.
async fn log(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let started = Instant::now();
    let response = next.run(request).await;
    let id = response.headers().get("x-request-id").and_then(|id| id.to_str().ok());
    tracing::debug!(request = id, %method, path, status = response.status().as_u16(), took = ?started.elapsed(), "request");
    response
}

/// The liveness handler: the process answers requests.
pub async fn healthy() -> &'static str {
    "ok\n"
}

/// Returns whether `server` accepts requests, as a response to a readiness probe: 200 from its first
/// catalog to its shutdown, then 503; also 503 while requests are refused because they cannot be recorded.
///
/// The state of replicas follows, a line for each. A replica that cannot read its store still serves the last good
/// revision: the status is 200, and the first line begins with `degraded`.
#[must_use]
pub fn readiness(server: &Server, replicas: &[ReplicaMonitor]) -> (StatusCode, String) {
    let replicas: Vec<_> = replicas.iter().map(ReplicaMonitor::status).collect();
    let degraded_since = replicas.iter().filter_map(|replica| replica.degraded_since).min();
    let (status, mut body) = match (server.is_shut_down(), server.service().is_audit_ready(), degraded_since) {
        (true, _, _) => (StatusCode::SERVICE_UNAVAILABLE, "the server is ending\n".to_owned()),
        (false, false, _) => (StatusCode::SERVICE_UNAVAILABLE, "requests cannot be recorded\n".to_owned()),
        (false, true, Some(since)) => (StatusCode::OK, format!("degraded since {since}\n")),
        (false, true, None) => (StatusCode::OK, "ready\n".to_owned()),
    };
    for replica in replicas {
        let (Some(epoch), Some(revision)) = (replica.epoch, replica.revision) else { continue };
        let state = replica.degraded_since.map(|since| format!(", degraded since {since}")).unwrap_or_default();
        let (channel, lag) = (replica.channel, replica.lag.as_secs());
        body.push_str(&format!("channel {channel}: revision {revision}, epoch {epoch}, lag {lag} s{state}\n"));
    }
    (status, body)
}
