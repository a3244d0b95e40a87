//! Elicitation requests of the server to a legacy client, and the responses that they wait for.

use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::{Value, value::RawValue};
use tokio::sync::oneshot;

use super::write_queue::WriteQueue;
use crate::jsonrpc::{self, Reply};

/// The result of an elicitation, `None` for an error or the end of the conversation.
type ElicitationResult = Option<Box<RawValue>>;

#[derive(Debug, Default)]
pub(super) struct Elicitations {
    count: AtomicU64,
    pending: Mutex<HashMap<String, oneshot::Sender<ElicitationResult>>>,
}

impl Elicitations {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<ElicitationResult>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes the elicitation that `reply` responds to; an unknown ID is ignored.
    pub(super) fn respond(&self, reply: Reply<'_>) {
        let id = reply.id.and_then(|id| serde_json::from_str::<String>(id.as_json()).ok());
        let pending = id.and_then(|id| self.lock().remove(&id));
        if let Some(pending) = pending {
            let _ = pending.send(reply.result.map(ToOwned::to_owned));
        }
    }

    /// Sends `elicitation/create` and waits for its result.
    pub(super) async fn request(&self, write_queue: &WriteQueue, params: &Value) -> ElicitationResult {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let pending = Pending { elicitations: self, id: format!("promptshelf-{number}") };
        let (sender, result) = oneshot::channel();
        self.lock().insert(pending.id.clone(), sender);
        write_queue.push(jsonrpc::request(&pending.id, "elicitation/create", params));
        result.await.ok().flatten()
    }

    /// Completes every elicitation without a result.
    pub(super) fn cancel_all(&self) {
        self.lock().clear();
    }
}

struct Pending<'a> {
    elicitations: &'a Elicitations,
    id: String,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.elicitations.lock().remove(&self.id);
    }
}
