//! Options of the HTTP application.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use promptshelf_core::Access;
use promptshelf_mcp::{HttpOptions, Profile};

use super::{budget::ConnectionLimits, discovery::Discovery, proxy::Proxies};

/// Options of the HTTP application.
///
/// ```
/// use std::time::Duration;
///
/// let mut options = promptshelf_server::http::Options::default();
/// options.mcp.allowed_hosts = vec!["prompts.example.com".to_owned()];
/// options.request_timeout = Duration::from_secs(10);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Bounds and checks of the MCP endpoint.
    pub mcp: HttpOptions,
    /// How callers authenticate. `None`, the default, serves anonymous callers.
    #[cfg(feature = "sign-in")]
    pub sign_in: Option<super::auth::SignIn>,
    /// The management API of a store, at `/api/v1`. None by default. Without sign-in every caller may use all of it.
    #[cfg(feature = "channels")]
    pub api: Option<crate::api::Api>,
    /// The reader of versions that are not served at present, for programs. None by default.
    #[cfg(feature = "channels")]
    pub versions: Option<crate::api::Versions>,
    /// Editing of the served folder, at `/api/v1/folder` and on the page. None by default. Without sign-in every caller
    /// may change every file.
    #[cfg(feature = "channels")]
    pub folder: Option<crate::api::FolderApi>,
    /// The webhooks at `/api/v1/hooks/{source}`. None by default.
    #[cfg(feature = "git")]
    pub webhooks: super::Webhooks,
    /// The log of usage that the API reports. None by default. It counts the calls of libraries that were built with its
    /// counters.
    #[cfg(feature = "channels")]
    pub usage: Option<crate::usage::UsageLog>,
    /// The sources that the API reports and reads again. None by default. Without sign-in every caller may do both.
    #[cfg(feature = "channels")]
    pub sources: Option<promptshelf_source::SourceSet>,
    /// The requirements of channels, by name. For a caller who does not meet them the channel does not exist. None by
    /// default.
    pub channel_access: HashMap<String, Arc<Access>>,
    /// The requirements of all other channels of the store, for the API: those of the source that the default channel is.
    /// None by default.
    pub source_access: Option<Arc<Access>>,
    /// Further names of callers that no token of the API may have: those in the operator's access rules. None by default.
    pub reserved_names: Vec<String>,
    /// Delivery profiles by name: the default library is also served at `/profiles/NAME/mcp`, and each channel at
    /// `/channels/CHANNEL/profiles/NAME/mcp`, with results that the profile changes. None by default.
    pub profiles: BTreeMap<String, Profile>,
    /// Documents for discovery. None by default.
    pub discovery: Discovery,
    /// The reverse proxies whose forwarding headers are trusted. None by default.
    pub proxies: Proxies,
    /// Whether responses ask browsers to use TLS only for this host, for a year (RFC 6797). Off by default; turn it on
    /// with [`App::serve_tls`](super::App::serve_tls), or behind a proxy that terminates TLS and does not do so itself.
    /// Responses to `localhost` never do: the request would apply to every other server on it.
    pub strict_transport_security: bool,
    /// Limits of connections, and of the memory that clients can occupy. They do not apply to
    /// [`router`](super::router), whose connections belong to another server.
    pub limits: ConnectionLimits,
    /// The time until a response must begin, 60 seconds by default; later is a 504, or a 408 if the request has not arrived. Streams may last longer.
    pub request_timeout: Duration,
    /// The time that a connection may be idle, and that a request's head may take to arrive. 75 seconds by default.
    pub idle_timeout: Duration,
    /// The time that open connections have to finish at a shutdown. 5 seconds by default.
    pub shutdown_timeout: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            mcp: HttpOptions::default(),
            #[cfg(feature = "sign-in")]
            sign_in: None,
            #[cfg(feature = "channels")]
            api: None,
            #[cfg(feature = "channels")]
            versions: None,
            #[cfg(feature = "channels")]
            folder: None,
            #[cfg(feature = "git")]
            webhooks: super::Webhooks::default(),
            #[cfg(feature = "channels")]
            usage: None,
            #[cfg(feature = "channels")]
            sources: None,
            channel_access: HashMap::new(),
            source_access: None,
            reserved_names: Vec::new(),
            profiles: BTreeMap::new(),
            discovery: Discovery::default(),
            proxies: Proxies::default(),
            strict_transport_security: false,
            limits: ConnectionLimits::default(),
            request_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(75),
            shutdown_timeout: Duration::from_secs(5),
        }
    }
}
