//! Prompts over the Model Context Protocol.
//!
//! A [`Server`] speaks all five revisions on stdio and on Streamable HTTP, both
//! eras side by side. Over HTTP it keeps nothing between two requests, so that
//! replicas need no stickiness; over stdio the pipe itself is the conversation.
//!
//! ```no_run
//! # async fn example(service: promptshelf_service::Service) -> std::io::Result<()> {
//! let server = promptshelf_mcp::Server::new(service);
//! server.serve_stdio(tokio::io::empty(), tokio::io::sink()).await
//! # }
//! ```
//!
//! The way of a request: [`http`] or [`stdio`] takes the bytes, `jsonrpc` reads
//! the message, `request` its members, `dispatch` asks the service, `to_wire`
//! or `error_code` writes the answer.
//!
//! What is deliberately not here: how prompts are stored, and who may do what.

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
mod request;
mod revision;
pub mod stdio;
mod subscription;
mod to_wire;

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use promptshelf_service::{Caller, Service};
use tokio_util::sync::CancellationToken;

pub use http::{HttpBody, HttpOptions, HttpService};
pub use multi_round::StateKey;
pub use revision::{Era, Revision};

use crate::{conversation::Conversation, followed::Register, page::Pages};

/// A prompt server. Cheap to clone; clones are the same server.
#[derive(Clone, Debug)]
pub struct Server {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    service: Service,
    pages: Pages,
    /// What legacy clients over HTTP have said that is of any use without
    /// knowing who said it.
    crowd: Arc<Conversation>,
    state_key: StateKey,
    followed: Register,
    shutdown: CancellationToken,
    /// The number of the next request; where it begins is different for each start.
    requests: AtomicU64,
    /// How many subscriptions are open.
    subscriptions: AtomicUsize,
}

impl Server {
    /// A server of what a service offers.
    #[must_use]
    pub fn new(service: Service) -> Server {
        Server::with_state_key(service, StateKey::random())
    }

    /// A server that shares a key with others, so that a guided prompt can
    /// begin on one and end on another.
    #[must_use]
    pub fn with_state_key(service: Service, state_key: StateKey) -> Server {
        let inner = Inner {
            service,
            pages: Pages::default(),
            crowd: Arc::default(),
            state_key,
            followed: Register::default(),
            shutdown: CancellationToken::new(),
            requests: AtomicU64::new(random()),
            subscriptions: AtomicUsize::new(0),
        };
        Server { inner: Arc::new(inner) }
    }

    /// The service behind it.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.inner.service
    }

    /// Ends every stream and every conversation in the way the protocol asks
    /// for. Requests that are being answered are answered.
    pub fn shutdown(&self) {
        self.inner.shutdown.cancel();
    }

    /// Whether it has been shut down.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.inner.shutdown.is_cancelled()
    }

    /// How many subscriptions are open, those of older revisions included.
    #[must_use]
    pub fn subscriptions(&self) -> usize {
        self.inner.subscriptions.load(Ordering::Relaxed)
    }

    /// A caller with the number of a request, unless it has one already: by
    /// that logs, records and traces know the request.
    pub(crate) fn numbered(&self, caller: &Caller) -> Caller {
        let caller = caller.clone();
        if caller.request().is_some() {
            return caller;
        }
        caller.with_request(self.inner.requests.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn subscribed(&self) -> &AtomicUsize {
        &self.inner.subscriptions
    }

    pub(crate) fn pages(&self) -> &Pages {
        &self.inner.pages
    }

    pub(crate) fn crowd(&self) -> &Arc<Conversation> {
        &self.inner.crowd
    }

    pub(crate) fn state_key(&self) -> &StateKey {
        &self.inner.state_key
    }

    pub(crate) fn followed(&self) -> &Register {
        &self.inner.followed
    }

    /// Waits for [`shutdown`](Server::shutdown), for whoever holds requests open
    /// beside the server's own.
    pub async fn closing(&self) {
        self.inner.shutdown.cancelled().await;
    }

    pub(crate) fn shutdown_token(&self) -> &CancellationToken {
        &self.inner.shutdown
    }
}

/// Returns a random number from the operating system.
///
/// # Panics
///
/// If the operating system has no random numbers.
fn random() -> u64 {
    getrandom::u64().expect("the operating system has random numbers")
}
