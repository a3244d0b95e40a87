//! Forms of servers before revision 2026-07-28, which ask in the middle of a request.
//!
//! No request of a caller depends on an earlier one, so that no request to the other server is kept open while a user
//! fills in a form. A question without an answer ends the request. The next request of the caller repeats it, and its
//! answers so far are given to the questions in their order. A question that differs from the one that was answered ends
//! it too.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use promptshelf_client::{Elicitation, ElicitationHandler, ElicitationMode, ElicitationResponse, FormValues};
use promptshelf_core::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;

/// An answered question.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answered {
    /// The fingerprint of the question.
    pub(crate) question: String,
    /// The `ElicitResult` of the user.
    pub(crate) response: Value,
}

pub(crate) enum Interruption {
    /// A question without an answer, and its fingerprint.
    Asked(Box<Elicitation>, String),
    /// Another question than the one that was answered.
    Differs,
}

/// Answers the questions of one connection: those of the single request in progress, and declines all others.
#[derive(Default)]
pub(crate) struct Replay {
    active: Mutex<Option<Active>>,
    /// The number of questions without a request.
    declined: AtomicU64,
}

struct Active {
    answers: VecDeque<Answered>,
    interrupt: Option<oneshot::Sender<Interruption>>,
}

pub(crate) struct Playing<'a>(&'a Replay);

impl Drop for Playing<'_> {
    fn drop(&mut self) {
        *self.0.active.lock() = None;
    }
}

impl Replay {
    pub(crate) fn begin(&self, answers: &[Answered]) -> (Playing<'_>, oneshot::Receiver<Interruption>) {
        let (interrupt, interrupted) = oneshot::channel();
        let active = Active { answers: answers.iter().cloned().collect(), interrupt: Some(interrupt) };
        *self.active.lock() = Some(active);
        (Playing(self), interrupted)
    }

    /// Returns the number of questions that were declined because they belong to no request.
    pub(crate) fn declined(&self) -> u64 {
        self.declined.load(Ordering::Acquire)
    }

    fn answer(&self, elicitation: Elicitation) -> ElicitationResponse {
        let mut active = self.active.lock();
        let Some(active) = active.as_mut() else {
            self.declined.fetch_add(1, Ordering::AcqRel);
            return ElicitationResponse::Decline;
        };
        let question = fingerprint(&elicitation);
        let interruption = match active.answers.pop_front() {
            Some(answered) if answered.question == question => return response(&answered.response),
            Some(_) => Interruption::Differs,
            None => Interruption::Asked(Box::new(elicitation), question),
        };
        active.answers.clear();
        // Later questions of the same request are cancelled like this one.
        if let Some(interrupt) = active.interrupt.take() {
            drop(interrupt.send(interruption));
        }
        ElicitationResponse::Cancel
    }
}

impl ElicitationHandler for Replay {
    fn elicit(&self, elicitation: Elicitation) -> BoxFuture<'_, ElicitationResponse> {
        Box::pin(std::future::ready(self.answer(elicitation)))
    }
}

/// Returns a text that differs between different questions, bounded in length. Not secret, and the state that has it is
/// signed: a collision only means that the other server receives an answer to another one of its own questions.
fn fingerprint(elicitation: &Elicitation) -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    elicitation.message.hash(&mut hasher);
    match &elicitation.mode {
        ElicitationMode::Url { url } => url.hash(&mut hasher),
        mode => format!("{mode:?}").hash(&mut hasher),
    }
    format!("{:016x}", hasher.finish())
}

fn response(result: &Value) -> ElicitationResponse {
    match result["action"].as_str() {
        Some("accept") => {
            let values = result.get("content").and_then(Value::as_object).cloned();
            ElicitationResponse::Accept(values.unwrap_or_else(FormValues::new))
        }
        Some("decline") => ElicitationResponse::Decline,
        _ => ElicitationResponse::Cancel,
    }
}
