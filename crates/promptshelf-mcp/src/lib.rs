//! A Model Context Protocol server for prompts.
//!
//! A [`Server`] implements all five revisions on stdio and on Streamable HTTP, in both eras side by side. Over HTTP
//! it keeps no state between two requests, so replicas need no sticky sessions. On stdio each connection is a
//! conversation.
//!
//! ```no_run
//! # async fn example(service: promptshelf_service::Service) -> std::io::Result<()> {
//! let server = promptshelf_mcp::Server::new(service);
//! server.serve_stdio(tokio::io::stdin(), tokio::io::stdout()).await
//! # }
//! ```
//!
//! The path of a request: [`http`] or [`stdio`] receives the bytes, `jsonrpc` parses the message, `request` its
//! parameters, `dispatch` calls the service, and `to_wire` or `error_code` encodes the response.
//!
//! Elsewhere: how prompts are stored (`promptshelf-source`), and access rules (`promptshelf-service`).

mod conversation;
mod dispatch;
mod error_code;
mod followed;
pub mod http;
mod json;
mod jsonrpc;
mod multi_round;
mod observe;
mod page;
mod profile;
mod remote;
mod request;
mod request_options;
mod revision;
mod role_mark;
mod skills;
pub mod stdio;
mod subscription;
mod to_wire;
mod tools;

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use arc_swap::ArcSwap;
use promptshelf_service::{Caller, Service};
use tokio_util::sync::CancellationToken;

pub use http::{HttpBody, HttpOptions, HttpService};
pub use multi_round::StateKey;
pub use profile::Profile;
pub use request_options::{RequestOptions, ToolMode};
pub use revision::{Era, Revision};
pub use to_wire::{DiscoveryDocument, listed_prompt, messages_json};

use crate::{conversation::Conversation, followed::Registry, page::Pages};

/// A prompt server. Cheap to clone; clones share all state.
///
/// ```
/// use promptshelf_core::{CatalogHandle, Definitions, check};
/// use promptshelf_mcp::{HttpOptions, Server};
/// use promptshelf_service::Service;
///
/// let handle = CatalogHandle::new(check(Definitions::default(), None).catalog);
/// let server = Server::new(Service::new(handle));
/// let endpoint = server.http(HttpOptions::default());
/// server.shutdown();
/// assert!(server.is_shut_down());
/// ```
#[derive(Clone, Debug)]
pub struct Server {
    inner: Arc<Inner>,
    delivery: Option<Arc<Delivery>>,
}

/// The number of an HTTP request, which is among its extensions from where it enters on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestNumber(u64);

impl RequestNumber {
    /// Returns the caller in this request.
    #[must_use]
    pub fn of(self, caller: Caller) -> Caller {
        caller.with_request(self.0)
    }

    /// Returns the number as logs, records, traces and responses show it.
    #[must_use]
    pub fn id(self) -> String {
        promptshelf_service::request_id(self.0)
    }
}

#[derive(Debug)]
struct Delivery {
    profile: Profile,
    pages: Pages,
}

#[derive(Debug)]
struct Inner {
    service: Service,
    pages: Pages,
    /// The subscriptions of legacy clients over HTTP, which have no session.
    shared_conversation: Arc<Conversation>,
    state_key: StateKey,
    followed: Registry,
    shutdown: CancellationToken,
    /// The number of the next request; the first one is random.
    requests: AtomicU64,
    subscriptions: AtomicUsize,
    options: ArcSwap<RequestOptions>,
}

impl Server {
    /// Creates a server backed by `service`, with a random state key.
    #[must_use]
    pub fn new(service: Service) -> Server {
        Server::with_state_key(service, StateKey::random())
    }

    /// Creates a server with a given state key. Replicas with the same key can continue each other's guided prompts.
    #[must_use]
    pub fn with_state_key(service: Service, state_key: StateKey) -> Server {
        let inner = Inner {
            service,
            pages: Pages::default(),
            shared_conversation: Arc::default(),
            state_key,
            followed: Registry::default(),
            shutdown: CancellationToken::new(),
            requests: AtomicU64::new(random()),
            subscriptions: AtomicUsize::new(0),
            options: ArcSwap::default(),
        };
        Server { inner: Arc::new(inner), delivery: None }
    }

    /// Returns the same server with a delivery profile: its lists and prompts look different, everything else is shared.
    #[must_use]
    pub fn with_profile(&self, profile: Profile) -> Server {
        let delivery = Delivery { profile, pages: Pages::default() };
        Server { inner: Arc::clone(&self.inner), delivery: Some(Arc::new(delivery)) }
    }

    pub(crate) fn profile(&self) -> Option<&Profile> {
        self.delivery.as_ref().map(|delivery| &delivery.profile)
    }

    /// Returns the service.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.inner.service
    }

    /// Sets the options of all requests from now on.
    pub fn set_request_options(&self, options: RequestOptions) {
        self.inner.options.store(Arc::new(options));
    }

    pub(crate) fn request_options(&self) -> RequestOptions {
        **self.inner.options.load()
    }

    /// Ends all streams and conversations as the protocol requires. Requests in progress are still answered.
    pub fn shutdown(&self) {
        self.inner.shutdown.cancel();
    }

    /// Returns whether the server has been shut down.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.inner.shutdown.is_cancelled()
    }

    /// Returns the number of open subscriptions, including those of legacy clients.
    #[must_use]
    pub fn subscriptions(&self) -> usize {
        self.inner.subscriptions.load(Ordering::Relaxed)
    }

    /// Returns the number of a new request.
    #[must_use]
    pub fn request_number(&self) -> RequestNumber {
        RequestNumber(self.inner.requests.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the caller with a request number, unless it has one. Logs, records and traces identify the request by
    /// it.
    #[must_use]
    pub fn numbered(&self, caller: &Caller) -> Caller {
        let caller = caller.clone();
        if caller.request().is_some() { caller } else { self.request_number().of(caller) }
    }

    /// Returns the caller of a request with its number: both are among its extensions, unless the caller is anonymous and
    /// nobody has counted the request before.
    #[must_use]
    pub fn caller_of(&self, extensions: &::http::Extensions) -> Caller {
        let caller = extensions.get().cloned().unwrap_or_else(Caller::anonymous);
        match extensions.get::<RequestNumber>() {
            Some(number) => number.of(caller),
            None => self.numbered(&caller),
        }
    }

    /// Returns the caller with the client program of the header `User-Agent`, if the use of prompts is counted.
    #[must_use]
    pub fn with_user_agent(&self, caller: Caller, headers: &::http::HeaderMap) -> Caller {
        let Some(usage) = self.service().usage() else { return caller };
        match user_agent(headers) {
            Some(declared) => caller.with_client(usage.client(declared, "http")),
            None => caller,
        }
    }

    pub(crate) fn subscribed(&self) -> &AtomicUsize {
        &self.inner.subscriptions
    }

    pub(crate) fn pages(&self) -> &Pages {
        self.delivery.as_ref().map_or(&self.inner.pages, |delivery| &delivery.pages)
    }

    pub(crate) fn shared_conversation(&self) -> &Arc<Conversation> {
        &self.inner.shared_conversation
    }

    pub(crate) fn state_key(&self) -> &StateKey {
        &self.inner.state_key
    }

    pub(crate) fn followed(&self) -> &Registry {
        &self.inner.followed
    }

    /// Waits for [`shutdown`](Server::shutdown), for other requests that are kept open.
    pub async fn closing(&self) {
        self.inner.shutdown.cancelled().await;
    }

    pub(crate) fn shutdown_token(&self) -> &CancellationToken {
        &self.inner.shutdown
    }
}

/// Returns the client program as the header `User-Agent` declares it.
fn user_agent(headers: &::http::HeaderMap) -> Option<&str> {
    headers.get(::http::header::USER_AGENT)?.to_str().ok()
}

/// Returns a random number from the operating system.
///
/// # Panics
///
/// If the operating system has no random numbers.
fn random() -> u64 {
    getrandom::u64().expect("the operating system has random numbers")
}

/// Returns 128 random bits as 32 hexadecimal digits: an unguessable and unique ID.
fn random_id() -> String {
    format!("{:016x}{:016x}", random(), random())
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
