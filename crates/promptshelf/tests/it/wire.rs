//! Clients of our own at the other end of each wire.
//!
//! [`Pipe`] and [`HttpWire`] know no protocol: they send bytes and take what
//! comes, so that tests can say what no well-behaved client would. [`Client`] is
//! well-behaved.

mod client;
mod folder;
mod headers;
mod http;
mod pipe;

pub(crate) use client::Client;
pub(crate) use folder::{Folder, repository};
pub(crate) use headers::usual_headers;
pub(crate) use http::{Answer, Heard, HttpWire, Request};
pub(crate) use pipe::{Pipe, serving};

use crate::program::PATIENCE;

/// Waits, but not forever.
pub(crate) async fn patiently<T>(what: &str, waiting: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    waited.unwrap_or_else(|_| panic!("{what}: nothing for {PATIENCE:?}"))
}
