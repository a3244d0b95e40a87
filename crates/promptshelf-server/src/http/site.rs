//! The libraries of an application, each with its MCP endpoint: one library, or the channels of a store.

use std::{collections::HashMap, convert::Infallible, sync::Arc};

#[cfg(feature = "web")]
use axum::middleware::{self, Next};
use axum::{
    Router,
    body::Body,
    extract::{Path, Request, State},
    http::{Extensions, StatusCode},
    response::{IntoResponse, Response},
    routing::any,
};
use promptshelf_core::Access;
use promptshelf_mcp::{HttpOptions, HttpService, http::Denial};
use promptshelf_service::{Caller, Few};
use tower::{Service, service_fn};

use super::{authenticate::Authentication, options::Options};
use crate::{library::Library, replica::ReplicaMonitor};

/// A channel for [`App::with_channels`](super::App::with_channels).
#[derive(Clone, Debug)]
pub struct Channel {
    /// The name in its path, `/channels/NAME/mcp`.
    pub name: String,
    /// The library that follows the channel.
    pub library: Library,
    /// The state of the replica.
    pub monitor: ReplicaMonitor,
}

/// Admits callers to channels. Who is refused learns only that the channel does not exist; log and audit have the reason.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    service: promptshelf_service::Service,
    refused: Arc<Few>,
}

impl Gate {
    pub(crate) fn new(service: &promptshelf_service::Service) -> Gate {
        Gate { service: service.clone(), refused: Arc::default() }
    }

    pub(crate) fn admits(&self, caller: &Caller, channel: &str, access: &Arc<Access>) -> bool {
        let is_refused = self.log_refusal(caller, channel, access);
        if is_refused {
            self.service.record_hidden_channel(caller, channel);
        }
        !is_refused
    }

    /// Returns whether a caller is refused, and logs it: for an operation with a record of its own.
    pub(crate) fn log_refusal(&self, caller: &Caller, channel: &str, access: &Arc<Access>) -> bool {
        let Some(lacks) = caller.lacks(access) else { return false };
        if let Some(further) = self.refused.admit() {
            let (request, caller) = (caller.request_id(), caller.name());
            tracing::info!(
                request,
                caller,
                further,
                "the channel {channel} is hidden from this caller: {lacks} (see [channels.{channel}] of server.toml, or the \
                 access of its source)"
            );
        }
        true
    }
}

/// The libraries of an application. The first one is served at `/mcp`.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) library: Library,
    pub(super) endpoint: HttpService,
    /// All channels, the default one first. Empty for a library that is not a channel.
    channels: Vec<(Channel, HttpService)>,
    pub(super) gate: Gate,
}

impl Site {
    pub(super) fn new(library: &Library, options: &HttpOptions) -> Site {
        let endpoint = library.server().http(options.clone());
        Site { library: library.clone(), endpoint, channels: Vec::new(), gate: Gate::new(library.service()) }
    }

    pub(super) fn with_channels(default: &Channel, others: &[Channel], options: &HttpOptions) -> Site {
        let site = Site::new(&default.library, options);
        let others = others.iter().map(|channel| (channel.clone(), channel.library.server().http(options.clone())));
        let channels = std::iter::once((default.clone(), site.endpoint.clone())).chain(others).collect();
        Site { channels, ..site }
    }

    pub(super) fn with_options(&self, options: &HttpOptions) -> Site {
        let replaced = |(channel, endpoint): &(Channel, HttpService)| (channel.clone(), endpoint.with_options(options));
        Site {
            library: self.library.clone(),
            endpoint: self.endpoint.with_options(options),
            channels: self.channels.iter().map(replaced).collect(),
            gate: self.gate.clone(),
        }
    }

    pub(super) fn shutdown(&self) {
        self.library.server().shutdown();
        self.channels.iter().for_each(|(channel, _)| channel.library.server().shutdown());
    }

    pub(super) fn monitors(&self) -> Vec<ReplicaMonitor> {
        self.channels.iter().map(|(channel, _)| channel.monitor.clone()).collect()
    }

    #[cfg(feature = "channels")]
    pub(super) fn libraries(&self) -> Vec<(Option<String>, Library)> {
        if self.channels.is_empty() {
            return vec![(None, self.library.clone())];
        }
        self.channels.iter().map(|(channel, _)| (Some(channel.name.clone()), channel.library.clone())).collect()
    }

    /// The requirements of the default channel.
    pub(super) fn access(&self, options: &Options) -> Option<Restriction> {
        let (channel, _) = self.channels.first()?;
        let access = options.channel_access.get(&channel.name).cloned()?;
        Some(Restriction { gate: self.gate.clone(), channel: channel.name.clone(), access })
    }

    #[cfg(feature = "web")]
    pub(super) fn restricted(&self, routes: Router, options: &Options) -> Router {
        async fn admit(State(access): State<Restriction>, request: Request, next: Next) -> Response {
            if access.admits(request.extensions()) {
                next.run(request).await
            } else {
                not_found().await.into_response()
            }
        }
        match self.access(options) {
            Some(access) => routes.route_layer(middleware::from_fn_with_state(access, admit)),
            None => routes,
        }
    }

    pub(super) fn channel_routes(&self, options: &Options) -> Router {
        if self.channels.is_empty() {
            return Router::new();
        }
        let entry = |(channel, endpoint): &(Channel, HttpService)| {
            let profiles = options.profiles.iter();
            let entry = ChannelEntry {
                endpoint: endpoint.clone(),
                profiles: profiles.map(|(name, profile)| (name.clone(), endpoint.with_profile(*profile))).collect(),
                access: options.channel_access.get(&channel.name).map(|access| Restriction {
                    gate: self.gate.clone(),
                    channel: channel.name.clone(),
                    access: Arc::clone(access),
                }),
            };
            (channel.name.clone(), entry)
        };
        let table =
            ChannelTable { endpoint: self.endpoint.clone(), channels: self.channels.iter().map(entry).collect() };
        Router::new()
            .route("/channels/{name}/mcp", any(call))
            .route("/channels/{name}/profiles/{profile}/mcp", any(call_with_profile))
            .with_state(Arc::new(table))
    }
}

struct ChannelTable {
    /// Sends refusals; which endpoint does so cannot be observed.
    endpoint: HttpService,
    channels: HashMap<String, ChannelEntry>,
}

struct ChannelEntry {
    endpoint: HttpService,
    profiles: HashMap<String, HttpService>,
    access: Option<Restriction>,
}

/// The requirements of a channel.
#[derive(Clone)]
pub(super) struct Restriction {
    gate: Gate,
    channel: String,
    access: Arc<Access>,
}

impl Restriction {
    /// Whether a request may pass to the channel. The endpoint sends the refusal of a caller who is not authenticated.
    fn admits(&self, extensions: &Extensions) -> bool {
        let is_admitted = |caller| self.gate.admits(caller, &self.channel, &self.access);
        extensions.get::<Denial>().is_some() || extensions.get::<Caller>().is_some_and(is_admitted)
    }
}

async fn call(State(table): State<Arc<ChannelTable>>, Path(name): Path<String>, request: Request) -> Response {
    pass(&table, &name, None, request).await
}

async fn call_with_profile(
    State(table): State<Arc<ChannelTable>>,
    Path((name, profile)): Path<(String, String)>,
    request: Request,
) -> Response {
    pass(&table, &name, Some(&profile), request).await
}

/// Passes a request to a channel. The response for a channel that the caller may not use equals that for a channel that
/// does not exist, also before sign-in.
async fn pass(table: &ChannelTable, name: &str, profile: Option<&str>, request: Request) -> Response {
    let extensions = request.extensions();
    let is_usable = |entry: &&ChannelEntry| entry.access.as_ref().is_none_or(|access| access.admits(extensions));
    let endpoint = match (extensions.get::<Denial>(), table.channels.get(name).filter(is_usable), profile) {
        (Some(_), _, _) => Some(&table.endpoint),
        (None, Some(entry), Some(profile)) => entry.profiles.get(profile),
        (None, Some(entry), None) => Some(&entry.endpoint),
        (None, None, _) => None,
    };
    let Some(endpoint) = endpoint else { return not_found().await.into_response() };
    endpoint.answer(request).await.map(Body::new)
}

/// The service of an MCP endpoint, with authentication and the access rule of its channel. It calls them as functions:
/// as middleware of axum they would box the rest of the way once more for each request.
pub(super) fn message_service(
    authentication: &Authentication,
    access: Option<Restriction>,
    endpoint: HttpService,
) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static {
    let shared = Arc::new((authentication.clone(), access, endpoint));
    service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move {
            let (authentication, access, endpoint) = &*shared;
            let answering = authentication.answer(request, async |request| {
                if access.as_ref().is_none_or(|access| access.admits(request.extensions())) {
                    endpoint.answer(request).await.map(Body::new)
                } else {
                    not_found().await.into_response()
                }
            });
            Ok(answering.await)
        }
    })
}

pub(super) async fn not_found() -> (StatusCode, &'static str) {
    (StatusCode::NOT_FOUND, "There is nothing here. MCP clients connect to /mcp.\n")
}
