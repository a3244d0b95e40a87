//! The libraries of an application, each with its MCP endpoint: one library, or the channels of a store.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Router,
    extract::{Path, Request, State},
    http::{Extensions, StatusCode},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::any,
};
use promptshelf_core::Access;
use promptshelf_mcp::{HttpOptions, HttpService, http::Denial};
use promptshelf_service::Caller;
use tower_service::Service as _;

use super::options::Options;
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

/// The libraries of an application. The first one is served at `/mcp`.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) library: Library,
    pub(super) endpoint: HttpService,
    /// All channels, the default one first. Empty for a library that is not a channel.
    channels: Vec<(Channel, HttpService)>,
}

impl Site {
    pub(super) fn new(library: &Library, options: &HttpOptions) -> Site {
        Site { library: library.clone(), endpoint: library.server().http(options.clone()), channels: Vec::new() }
    }

    pub(super) fn with_channels(default: &Channel, others: &[Channel], options: &HttpOptions) -> Site {
        let site = Site::new(&default.library, options);
        let others = others.iter().map(|channel| (channel.clone(), channel.library.server().http(options.clone())));
        let channels = std::iter::once((default.clone(), site.endpoint.clone())).chain(others).collect();
        Site { channels, ..site }
    }

    /// The same endpoints with other options.
    pub(super) fn with_options(&self, options: &HttpOptions) -> Site {
        let replaced = |(channel, endpoint): &(Channel, HttpService)| (channel.clone(), endpoint.with_options(options));
        Site {
            library: self.library.clone(),
            endpoint: self.endpoint.with_options(options),
            channels: self.channels.iter().map(replaced).collect(),
        }
    }

    /// Ends the streams of all libraries.
    pub(super) fn shutdown(&self) {
        self.library.server().shutdown();
        self.channels.iter().for_each(|(channel, _)| channel.library.server().shutdown());
    }

    /// The monitors of all channels, the default one first.
    pub(super) fn monitors(&self) -> Vec<ReplicaMonitor> {
        self.channels.iter().map(|(channel, _)| channel.monitor.clone()).collect()
    }

    /// All libraries with the names of channels, the default one first.
    #[cfg(feature = "channels")]
    pub(super) fn libraries(&self) -> Vec<(Option<String>, Library)> {
        if self.channels.is_empty() {
            return vec![(None, self.library.clone())];
        }
        self.channels.iter().map(|(channel, _)| (Some(channel.name.clone()), channel.library.clone())).collect()
    }

    /// Adds the access rule of the default channel to the routes of the default library.
    pub(super) fn restricted(&self, routes: Router, options: &Options) -> Router {
        let access = self.channels.first().and_then(|(channel, _)| options.channel_access.get(&channel.name));
        match access {
            Some(access) => routes.route_layer(middleware::from_fn_with_state(Arc::clone(access), admit)),
            None => routes,
        }
    }

    /// The routes of the channels.
    pub(super) fn channel_routes(&self, options: &Options) -> Router {
        if self.channels.is_empty() {
            return Router::new();
        }
        let entry = |(channel, endpoint): &(Channel, HttpService)| {
            let profiles = options.profiles.iter();
            let entry = ChannelEntry {
                endpoint: endpoint.clone(),
                profiles: profiles.map(|(name, profile)| (name.clone(), endpoint.with_profile(*profile))).collect(),
                access: options.channel_access.get(&channel.name).cloned(),
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
    /// The endpoint with each delivery profile.
    profiles: HashMap<String, HttpService>,
    access: Option<Arc<Access>>,
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
    let is_usable = |entry: &&ChannelEntry| entry.access.as_ref().is_none_or(|access| meets(extensions, access));
    let endpoint = match (extensions.get::<Denial>(), table.channels.get(name).filter(is_usable), profile) {
        (Some(_), _, _) => Some(&table.endpoint),
        (None, Some(entry), Some(profile)) => entry.profiles.get(profile),
        (None, Some(entry), None) => Some(&entry.endpoint),
        (None, None, _) => None,
    };
    let Some(endpoint) = endpoint else { return not_found().await.into_response() };
    // An endpoint is always ready, and never fails.
    match endpoint.clone().call(request).await {
        Ok(response) => response.into_response(),
        Err(never) => match never {},
    }
}

async fn admit(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let extensions = request.extensions();
    if extensions.get::<Denial>().is_some() || meets(extensions, &access) {
        return next.run(request).await;
    }
    not_found().await.into_response()
}

fn meets(extensions: &Extensions, access: &Arc<Access>) -> bool {
    extensions.get::<Caller>().is_some_and(|caller| caller.meets(access))
}

/// A hint for people who open the wrong address.
pub(super) async fn not_found() -> (StatusCode, &'static str) {
    (StatusCode::NOT_FOUND, "There is nothing here. MCP clients connect to /mcp.\n")
}
