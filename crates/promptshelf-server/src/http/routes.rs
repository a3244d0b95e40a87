//! Every route of the HTTP application, on one screen. Those with data of the library have authentication.
//!
//! What surrounds all of them is in `around`. Messages sent to `/mcp` are answered by `promptshelf_mcp`.

use axum::{Router, http::StatusCode, routing::get};
use promptshelf_mcp::Server;

#[cfg(feature = "channels")]
use super::basic;
use super::{
    authenticate::Authentication,
    discovery,
    options::Options,
    site::{self, Site, not_found},
};
#[cfg(feature = "channels")]
use crate::api;
use crate::replica::ReplicaMonitor;
#[cfg(feature = "web")]
use crate::web;

pub(super) fn routes(site: &Site, options: &Options) -> Router {
    let Site { library, endpoint, .. } = site;
    let server = library.server().clone();
    // Anyone can read it, so it has the default channel only.
    let monitors: Vec<_> = site.monitors().into_iter().take(1).collect();
    let needed = Needed::of(options);
    // Details can name internal hosts: they are for the log and the operator's listener.
    let missing =
        move || needed.missing().map(|_| "the keys of the sign-in are missing; the log has the reason".to_owned());
    let state = Needed::of(options);
    let authentication = Authentication::new(library.service(), options);
    let mcp = |endpoint| site::message_service(&authentication, site.access(options), endpoint);
    let endpoints = Router::new().route_service("/mcp", mcp(endpoint.clone()));
    let endpoints = options.profiles.iter().fold(endpoints, |routes, (name, profile)| {
        routes.route_service(&format!("/profiles/{name}/mcp"), mcp(endpoint.with_profile(*profile)))
    });
    let protected = site.channel_routes(options);
    // `/library/…`
    #[cfg(feature = "web")]
    let protected = protected.merge(site.restricted(web::page_api(library, endpoint, page_features(options)), options));
    #[cfg(feature = "channels")]
    let programs = programs(site, options);
    #[cfg(feature = "channels")]
    let protected = protected.merge(api::routes(&programs, library, &programs.site, options));
    #[cfg(feature = "channels")]
    let protected = match &options.folder {
        Some(folder) => protected.merge(api::folder_routes(folder, library, programs.site.clone())),
        None => protected,
    };
    let documents = discovery::routes(library.server(), endpoint, &options.discovery);
    let routes = Router::new()
        .merge(documents)
        .route("/healthz", get(healthy))
        .route("/readyz", get(move || std::future::ready(public_readiness(&server, &monitors, missing(), &state))))
        .fallback(not_found)
        .merge(endpoints)
        .merge(authentication.around(protected));
    #[cfg(feature = "channels")]
    let routes = routes.merge(api::document_route(library, endpoint, options)).merge({
        let langfuse = basic::named(api::langfuse_routes(&programs, library, endpoint));
        basic::translated(authentication.around(langfuse))
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
    // Handlers become services once, and not for every request.
    routes.with_state(())
}

#[cfg(feature = "channels")]
fn programs(site: &Site, options: &Options) -> api::ProgramState {
    let trust = if options.sign_in.is_some() { api::Trust::SignIn } else { api::Trust::Everyone };
    let rules = options.channel_access.values().chain(&options.source_access);
    let names = rules.flat_map(|access| &access.users).chain(&options.reserved_names);
    #[cfg(feature = "sign-in")]
    let names = names.chain(options.sign_in.iter().flat_map(super::auth::SignIn::token_names));
    let reserved = names.map(|name| promptshelf_core::identity(name)).collect();
    let shared = api::Site {
        reserved: std::sync::Arc::new(reserved),
        service: site.library.service().clone(),
        endpoint: site.endpoint.clone(),
        trust,
        sign_in: options.sign_in.clone(),
        channel_access: std::sync::Arc::new(options.channel_access.clone()),
        source_access: options.source_access.clone(),
        gate: site.gate.clone(),
    };
    api::ProgramState::new(&site.library, site.libraries(), options, shared)
}

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

#[cfg(feature = "web")]
fn page_sign_in(options: &Options) -> web::PageSignIn {
    #[cfg(feature = "sign-in")]
    if let Some(sign_in) = &options.sign_in {
        return sign_in.on_page();
    }
    let _ = options;
    web::PageSignIn::default()
}

/// The liveness handler: the process answers requests.
pub async fn healthy() -> &'static str {
    "ok\n"
}

/// What a server needs in order to serve everything: the keys of the sign-in, and room in the store.
#[derive(Clone)]
pub(super) struct Needed {
    #[cfg(feature = "sign-in")]
    sign_in: Option<super::auth::SignIn>,
    #[cfg(feature = "channels")]
    store: Option<crate::channels::StoreHandle>,
    #[cfg(feature = "channels")]
    sources: Option<promptshelf_source::SourceSet>,
}

impl Needed {
    pub(super) fn of(options: &Options) -> Needed {
        let _ = options;
        Needed {
            #[cfg(feature = "sign-in")]
            sign_in: options.sign_in.clone(),
            #[cfg(feature = "channels")]
            store: options.api.as_ref().map(|api| api.store.clone()),
            #[cfg(feature = "channels")]
            sources: options.sources.clone(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        #[cfg(feature = "channels")]
        return self.store.as_ref().is_some_and(crate::channels::StoreHandle::is_full);
        #[cfg(not(feature = "channels"))]
        false
    }

    /// Returns the sources whose state an operator should change, each with the reason.
    pub(super) fn warnings(&self) -> impl Iterator<Item = (String, String)> {
        #[cfg(feature = "channels")]
        let found = self.sources.as_ref().map(promptshelf_source::SourceSet::statuses).unwrap_or_default();
        #[cfg(not(feature = "channels"))]
        let found: Vec<promptshelf_source::SourceStatus> = Vec::new();
        found.into_iter().filter_map(|source| Some((source.name, source.warning?)))
    }

    /// Returns why the sign-in cannot verify tokens.
    pub(super) fn missing(&self) -> Option<String> {
        #[cfg(feature = "sign-in")]
        return self.sign_in.as_ref().and_then(super::auth::SignIn::missing_keys);
        #[cfg(not(feature = "sign-in"))]
        None
    }
}

/// Returns the readiness for everyone: names of sources, and details, are for the log and the operator's listener.
fn public_readiness(
    server: &Server,
    replicas: &[ReplicaMonitor],
    missing: Option<String>,
    state: &Needed,
) -> (StatusCode, String) {
    let (status, mut body) = readiness(server, replicas, missing, state.is_full());
    if state.warnings().next().is_some() {
        body.push_str("a source needs a change by the operator; the log has the reason\n");
    }
    (status, body)
}

/// Returns whether `server` accepts requests, as a response to a readiness probe: 200 from its first
/// catalog to its shutdown, then 503; also 503 while requests are refused because they cannot be recorded, and with
/// `missing`, the reason why callers cannot sign in.
///
/// The state of replicas follows, a line for each. A replica that cannot read its store still serves the last good
/// revision, and so does one whose disk is full: the status is 200, and the first line begins with `degraded`.
pub(super) fn readiness(
    server: &Server,
    replicas: &[ReplicaMonitor],
    missing: Option<String>,
    is_full: bool,
) -> (StatusCode, String) {
    let replicas: Vec<_> = replicas.iter().map(ReplicaMonitor::status).collect();
    let degraded_since = replicas.iter().filter_map(|replica| replica.degraded_since).min();
    let problem = match missing {
        _ if server.is_shut_down() => Some("the server is ending".to_owned()),
        _ if !server.service().is_audit_ready() => Some("requests cannot be recorded".to_owned()),
        missing => missing,
    };
    let (status, mut body) = match (problem, degraded_since) {
        (Some(problem), _) => (StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n")),
        (None, Some(since)) => (StatusCode::OK, format!("degraded since {since}\n")),
        (None, None) if is_full => (StatusCode::OK, String::new()),
        (None, None) => (StatusCode::OK, "ready\n".to_owned()),
    };
    if is_full {
        body.push_str("degraded: the disk of the store is full, and nothing can be published\n");
    }
    for replica in replicas {
        let (Some(epoch), Some(revision)) = (replica.epoch, replica.revision) else { continue };
        let state = replica.degraded_since.map(|since| format!(", degraded since {since}")).unwrap_or_default();
        let (channel, lag) = (replica.channel, replica.lag.as_secs());
        let digest = replica.digest.as_deref().and_then(|digest| digest.get(..12));
        let digest = digest.map(|digest| format!(", digest {digest}")).unwrap_or_default();
        body.push_str(&format!("channel {channel}: revision {revision}{digest}, epoch {epoch}, lag {lag} s{state}\n"));
    }
    (status, body)
}
