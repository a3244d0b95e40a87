//! One line: which era it is of, and what becomes of it.

use std::{
    future::poll_fn,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use bytes::Bytes;
use foldhash::HashMap;
use futures_util::FutureExt as _;
use promptshelf_service::Caller;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{outbox::WriteQueue, question::Questions};
use crate::{
    Server,
    conversation::Conversation,
    dispatch::{Answer, Asking, Context},
    error_code::WireError,
    jsonrpc::{self, Fault, Incoming, Message, Notification, Request, RequestId},
    request::check_batch,
    revision::Revision,
    subscription::Subscription,
};

/// The most requests that are answered, and subscriptions that are open, at once.
const MAX_IN_FLIGHT: usize = 4_096;

/// One pair of pipes.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) server: Server,
    pub(super) caller: Caller,
    pub(super) conversation: Arc<Conversation>,
    pub(super) outbox: Arc<WriteQueue>,
    pub(super) in_flight: InFlight,
    pub(super) questions: Questions,
    pub(super) tasks: TaskTracker,
    /// The input has ended.
    pub(super) ended: CancellationToken,
}

/// What became of a request.
enum Taken {
    Answered(Answer),
    /// Its answer comes when the subscription ends.
    Subscribed,
    Cancelled,
}

/// Requests that have no answer yet, and how to stop each.
#[derive(Debug, Default)]
pub(super) struct InFlight(Mutex<HashMap<RequestId, CancellationToken>>);

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request can begin. An id that waits for an answer already
    /// cannot be told from the new one.
    fn check(&self, id: &RequestId) -> Result<(), WireError> {
        let waiting = self.lock();
        if waiting.len() >= MAX_IN_FLIGHT {
            return Err(WireError::invalid_request("Too many requests are waiting for an answer"));
        }
        if waiting.contains_key(id) {
            return Err(WireError::invalid_request("A request with this id is waiting for its answer"));
        }
        Ok(())
    }

    /// Notes a request that has to wait for something, unless it is noted already.
    fn begin(&self, id: &RequestId) -> CancellationToken {
        self.lock().entry(id.clone()).or_default().clone()
    }

    fn end(&self, id: &RequestId) {
        self.lock().remove(id);
    }

    fn cancel(&self, id: &RequestId) {
        if let Some(token) = self.lock().get(id) {
            token.cancel();
        }
    }

    pub(super) fn cancel_all(&self) {
        self.lock().values().for_each(CancellationToken::cancel);
    }
}

impl Pipe {
    /// Takes a line: answers what is to be answered.
    pub(super) async fn take(self: Arc<Pipe>, line: Bytes) {
        match jsonrpc::parse(&line) {
            Ok(Incoming::One(message)) => {
                if let Some(answer) = self.message(Ok(message)).await {
                    self.outbox.push(answer);
                }
            }
            Ok(Incoming::Batch(messages)) => self.batch(messages).await,
            Err(fault) => {
                self.server.unread(self.server.begins(), fault.error.word());
                self.outbox.push(jsonrpc::error(fault.id.as_ref(), &fault.error));
            }
        }
    }

    /// Takes several messages and answers them together.
    async fn batch(self: &Arc<Pipe>, messages: Vec<Result<Message<'_>, Fault>>) {
        if !self.conversation.revision().is_some_and(Revision::has_batches) {
            let error = WireError::invalid_request("One line holds one message");
            return self.outbox.push(jsonrpc::error(None, &error));
        }
        if let Err(error) = check_batch(&messages) {
            return self.outbox.push(jsonrpc::error(None, &error));
        }
        let mut answers: Vec<Bytes> = Vec::new();
        let mut bytes = 0;
        for message in messages {
            let message = match message {
                Ok(Message::Request(request)) if bytes > jsonrpc::MAX_BATCH_ANSWER => {
                    let error = WireError::invalid_request("The batch asks for too much at once");
                    Err(Fault { id: Some(request.id), error })
                }
                other => other,
            };
            if let Some(answer) = self.message(message).await {
                bytes += answer.len();
                answers.push(answer);
            }
        }
        if let Some(answers) = jsonrpc::batch(&answers) {
            self.outbox.push(answers);
        }
    }

    async fn message(self: &Arc<Pipe>, message: Result<Message<'_>, Fault>) -> Option<Bytes> {
        match message {
            Ok(Message::Request(request)) => self.request(request).await,
            Ok(Message::Notification(notification)) => {
                self.notification(&notification);
                None
            }
            Ok(Message::Response(reply)) => {
                self.questions.answer(reply);
                None
            }
            Err(fault) => Some(jsonrpc::error(fault.id.as_ref(), &fault.error)),
        }
    }

    fn notification(self: &Arc<Pipe>, notification: &Notification<'_>) {
        match &*notification.method {
            "notifications/cancelled" => {
                let params = &notification.params;
                if let (Ok(()), Some(id)) = (params.check(), params.request_id().and_then(RequestId::parse)) {
                    self.in_flight.cancel(&id);
                }
            }
            "notifications/initialized" if self.conversation.revision().is_some() => self.announce(),
            _ => {}
        }
    }

    /// Answers a request, unless it is cancelled or its answer is a stream.
    async fn request(self: &Arc<Pipe>, request: Request<'_>) -> Option<Bytes> {
        if let Err(error) = self.in_flight.check(&request.id) {
            return Some(jsonrpc::error(Some(&request.id), &error));
        }
        let caller = self.server.numbered(&self.caller);
        let answering = async {
            let mut answering = pin!(AssertUnwindSafe(self.answer(&request, &caller)).catch_unwind());
            // Nearly every answer is ready at once, before anybody could cancel it.
            let answer = match poll_fn(|context| Poll::Ready(answering.as_mut().poll(context))).await {
                Poll::Ready(answer) => answer,
                Poll::Pending => {
                    let cancelled = self.in_flight.begin(&request.id);
                    tokio::select! {
                        biased;
                        () = cancelled.cancelled() => return Taken::Cancelled,
                        answer = answering => answer,
                    }
                }
            };
            match answer {
                Ok(Some(answer)) => Taken::Answered(answer),
                Ok(None) => Taken::Subscribed,
                Err(_) => Taken::Answered(Answer::error(Some(&request.id), &WireError::internal())),
            }
        };
        let outcome = |taken: &Taken| match taken {
            Taken::Answered(answer) => answer.outcome,
            Taken::Subscribed => "ok",
            Taken::Cancelled => "cancelled",
        };
        let trace = || request.params.trace();
        let answer = match self.server.observed(&caller, &request.method, trace, pin!(answering), outcome).await {
            Taken::Answered(answer) => Some(answer.body),
            // It stays in flight until it ends.
            Taken::Subscribed => return None,
            Taken::Cancelled => None,
        };
        self.in_flight.end(&request.id);
        answer
    }

    async fn answer(self: &Arc<Pipe>, request: &Request<'_>, caller: &Caller) -> Option<Answer> {
        match self.try_answer(request, caller).await {
            Ok(answer) => answer,
            Err(error) => Some(Answer::error(Some(&request.id), &error)),
        }
    }

    async fn try_answer(self: &Arc<Pipe>, request: &Request<'_>, caller: &Caller) -> Result<Option<Answer>, WireError> {
        let params = &request.params;
        params.check()?;
        let meta = params.meta()?;
        let agreed = self.conversation.revision();
        let revision = if meta.is_modern() {
            let version = meta.require()?;
            let revision = Revision::parse(version).filter(|revision| revision.is_modern());
            revision.ok_or_else(|| WireError::unsupported_version(version))?
        } else {
            match (agreed, &*request.method) {
                (Some(revision), _) => revision,
                (None, "initialize" | "ping") => Revision::NEWEST_LEGACY,
                // Neither era: the error of the modern one names the keys that it misses.
                (None, _) => return meta.require().and(Err(WireError::internal())),
            }
        };
        if revision.is_modern() && request.method == "subscriptions/listen" {
            self.listen(request, caller).await?;
            return Ok(None);
        }
        if !revision.is_modern() && request.method != "initialize" && agreed.is_some() {
            self.announce();
        }
        let asking = match meta.client_capabilities() {
            Some(capabilities) if revision.is_modern() => Asking::Rounds(capabilities),
            _ if revision.has_elicitation_requests() => Asking::Requests(&**self, self.conversation.elicitation()),
            _ => Asking::Never,
        };
        let context = Context { revision, caller, conversation: &self.conversation, asking };
        Ok(Some(self.server.answer(context, request).await))
    }

    /// Opens a subscription. Its acknowledgment is written before it runs, so
    /// that nothing of it can come earlier.
    async fn listen(self: &Arc<Pipe>, request: &Request<'_>, caller: &Caller) -> Result<(), WireError> {
        let id = request.id.clone();
        let cancelled = self.in_flight.begin(&id);
        let (mut subscription, acknowledgment) =
            Subscription::listen(&self.server, caller, &id, request.params.notifications()).await?;
        self.outbox.push(acknowledgment);
        let pipe = Arc::clone(self);
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = cancelled.cancelled() => {}
                () = pipe.ended.cancelled() => {}
                () = pipe.tell(&mut subscription) => {
                    if let Some(end) = subscription.end() {
                        pipe.outbox.push(end);
                    }
                }
            }
            pipe.in_flight.end(&id);
        });
        Ok(())
    }

    /// Tells a legacy client of changes from now on, once. Whoever asks for it
    /// has seen an `initialize`: untagged notifications mean nothing to a modern
    /// client.
    fn announce(self: &Arc<Pipe>) {
        if !self.conversation.begin_announcing() {
            return;
        }
        let Ok(mut subscription) = Subscription::of_conversation(&self.server, &self.caller, &self.conversation) else {
            return;
        };
        let pipe = Arc::clone(self);
        self.tasks.spawn(async move {
            tokio::select! {
                () = pipe.ended.cancelled() => {}
                () = pipe.tell(&mut subscription) => {}
            }
        });
    }

    /// Writes what a subscription has to tell, until the server shuts down.
    async fn tell(&self, subscription: &mut Subscription) {
        while let Some(messages) = subscription.next().await {
            self.outbox.has_room().await;
            messages.into_iter().for_each(|message| self.outbox.push(message));
        }
    }
}
