//! Questions to the person at the other end: requests of the server's own.

use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use promptshelf_core::BoxFuture;
use serde_json::{Value, value::RawValue};
use tokio::sync::oneshot;

use super::line::Pipe;
use crate::{
    jsonrpc::{self, Reply},
    multi_round::Ask,
};

type Answer = Option<Box<RawValue>>;

/// Questions that wait for an answer, by id.
#[derive(Debug, Default)]
pub(super) struct Questions {
    asked: AtomicU64,
    waiting: Mutex<HashMap<String, oneshot::Sender<Answer>>>,
}

impl Questions {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<Answer>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an answer; one that nobody waits for is passed over.
    pub(super) fn answer(&self, reply: Reply<'_>) {
        let id = reply.id.and_then(|id| serde_json::from_str::<String>(id.as_json()).ok());
        let waiting = id.and_then(|id| self.lock().remove(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.send(reply.result.map(ToOwned::to_owned));
        }
    }

    /// Lets every question go unanswered.
    pub(super) fn give_up(&self) {
        self.lock().clear();
    }
}

/// Forgets a question when nobody waits for its answer any more.
struct Waiting<'a> {
    questions: &'a Questions,
    id: String,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.questions.lock().remove(&self.id);
    }
}

impl Ask for Pipe {
    fn ask(&self, params: Value) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let number = self.questions.asked.fetch_add(1, Ordering::Relaxed);
            let waiting = Waiting { questions: &self.questions, id: format!("promptshelf-{number}") };
            let (sender, answer) = oneshot::channel();
            self.questions.lock().insert(waiting.id.clone(), sender);
            self.outbox.push(jsonrpc::request(&waiting.id, "elicitation/create", &params));
            answer.await.ok().flatten()
        })
    }
}
