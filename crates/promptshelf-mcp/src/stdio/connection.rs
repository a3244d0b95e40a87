//! One stdio client: determines the era of each line, dispatches it and queues the response.

use std::{future::poll_fn, panic::AssertUnwindSafe, pin::pin, sync::Arc, task::Poll};

use bytes::Bytes;
use futures_util::FutureExt as _;
use promptshelf_core::BoxFuture;
use promptshelf_service::Caller;
use serde_json::{Value, value::RawValue};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{elicitations::Elicitations, in_flight::InFlight, write_queue::WriteQueue};
use crate::{
    Server,
    conversation::Conversation,
    dispatch::{Answer, Asking, Context},
    error_code::WireError,
    jsonrpc::{self, Fault, Incoming, Message, Notification, Request, RequestId, check_batch},
    multi_round::Ask,
    revision::Revision,
    subscription::Subscription,
};

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) server: Server,
    pub(super) caller: Caller,
    pub(super) conversation: Arc<Conversation>,
    pub(super) write_queue: Arc<WriteQueue>,
    pub(super) in_flight: InFlight,
    pub(super) elicitations: Elicitations,
    pub(super) tasks: TaskTracker,
    pub(super) ended: CancellationToken,
}

enum Outcome {
    Answered(Answer),
    Subscribed,
    Cancelled,
}

impl Connection {
    /// Handles one line and queues its response, if there is one.
    pub(super) async fn handle(self: Arc<Connection>, line: Bytes) {
        match jsonrpc::parse(&line) {
            Ok(Incoming::One(message)) => {
                if let Some(answer) = self.message(Ok(message)).await {
                    self.write_queue.push(answer);
                }
            }
            Ok(Incoming::Batch(messages)) => self.batch(messages).await,
            Err(fault) => {
                self.server.unread(self.server.begins(), fault.error.word());
                self.write_queue.push(jsonrpc::error(fault.id.as_ref(), &fault.error));
            }
        }
    }

    /// Handles a JSON-RPC batch (revision 2025-03-26); its responses are one line.
    async fn batch(self: &Arc<Connection>, messages: Vec<Result<Message<'_>, Fault>>) {
        if !self.conversation.revision().is_some_and(Revision::has_batches) {
            let error = WireError::invalid_request("One line holds one message");
            return self.write_queue.push(jsonrpc::error(None, &error));
        }
        if let Err(error) = check_batch(&messages) {
            return self.write_queue.push(jsonrpc::error(None, &error));
        }
        let mut answers: Vec<Bytes> = Vec::new();
        let mut bytes = 0;
        for message in messages {
            let message = match message {
                Ok(Message::Request(request)) if bytes > jsonrpc::MAX_BATCH_ANSWER => {
                    let error = WireError::invalid_request("The responses of this batch are too large");
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
            self.write_queue.push(answers);
        }
    }

    async fn message(self: &Arc<Connection>, message: Result<Message<'_>, Fault>) -> Option<Bytes> {
        match message {
            Ok(Message::Request(request)) => self.request(request).await,
            Ok(Message::Notification(notification)) => {
                self.notification(&notification);
                None
            }
            Ok(Message::Response(reply)) => {
                self.elicitations.respond(reply);
                None
            }
            Err(fault) => Some(jsonrpc::error(fault.id.as_ref(), &fault.error)),
        }
    }

    fn notification(self: &Arc<Connection>, notification: &Notification<'_>) {
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

    /// Answers a request; `None` if it is cancelled or opens a subscription.
    async fn request(self: &Arc<Connection>, request: Request<'_>) -> Option<Bytes> {
        if let Err(error) = self.in_flight.check(&request.id) {
            return Some(jsonrpc::error(Some(&request.id), &error));
        }
        let caller = self.server.numbered(&self.caller);
        let answering = async {
            let mut answering = pin!(AssertUnwindSafe(self.answer(&request, &caller)).catch_unwind());
            // Nearly every response is ready at the first poll, before a cancellation could be read.
            let answer = match poll_fn(|context| Poll::Ready(answering.as_mut().poll(context))).await {
                Poll::Ready(answer) => answer,
                Poll::Pending => {
                    let cancelled = self.in_flight.begin(&request.id);
                    tokio::select! {
                        biased;
                        () = cancelled.cancelled() => return Outcome::Cancelled,
                        answer = answering => answer,
                    }
                }
            };
            match answer {
                Ok(Some(answer)) => Outcome::Answered(answer),
                Ok(None) => Outcome::Subscribed,
                Err(_) => Outcome::Answered(Answer::error(Some(&request.id), &WireError::internal())),
            }
        };
        let outcome = |outcome: &Outcome| match outcome {
            Outcome::Answered(answer) => answer.outcome,
            Outcome::Subscribed => "ok",
            Outcome::Cancelled => "cancelled",
        };
        let trace = || request.params.trace();
        let answer = match self.server.observed(&caller, &request.method, trace, pin!(answering), outcome).await {
            Outcome::Answered(answer) => Some(answer.body),
            // In flight until the subscription ends.
            Outcome::Subscribed => return None,
            Outcome::Cancelled => None,
        };
        self.in_flight.end(&request.id);
        answer
    }

    async fn answer(self: &Arc<Connection>, request: &Request<'_>, caller: &Caller) -> Option<Answer> {
        match self.try_answer(request, caller).await {
            Ok(answer) => answer,
            Err(error) => Some(Answer::error(Some(&request.id), &error)),
        }
    }

    async fn try_answer(
        self: &Arc<Connection>,
        request: &Request<'_>,
        caller: &Caller,
    ) -> Result<Option<Answer>, WireError> {
        let params = &request.params;
        params.check()?;
        let meta = params.meta()?;
        let agreed = self.conversation.revision();
        let revision = if meta.is_modern() {
            let version = meta.require()?;
            let revision = Revision::parse(&version).filter(|revision| revision.is_modern());
            revision.ok_or_else(|| WireError::unsupported_version(&version))?
        } else {
            match (agreed, &*request.method) {
                (Some(revision), _) => revision,
                (None, "initialize" | "ping") => Revision::NEWEST_LEGACY,
                // Neither era: the error of the modern one names the missing keys.
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
        let context = Context { revision, caller, conversation: &self.conversation, asking, headers: None };
        Ok(Some(self.server.answer(context, request).await))
    }

    /// Opens a subscription. Its acknowledgment is queued before the task starts, so that it precedes
    /// every notification.
    async fn listen(self: &Arc<Connection>, request: &Request<'_>, caller: &Caller) -> Result<(), WireError> {
        let id = request.id.clone();
        let cancelled = self.in_flight.begin(&id);
        let (mut subscription, acknowledgment) =
            Subscription::listen(&self.server, caller, &id, request.params.notifications()).await?;
        self.write_queue.push(acknowledgment);
        let connection = Arc::clone(self);
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = cancelled.cancelled() => {}
                () = connection.ended.cancelled() => {}
                () = connection.notify(&mut subscription) => {
                    if let Some(end) = subscription.end() {
                        connection.write_queue.push(end);
                    }
                }
            }
            connection.in_flight.end(&id);
        });
        Ok(())
    }

    /// Notifies a legacy client of changes from now on; later calls do nothing. Only after `initialize`,
    /// because a modern client does not understand notifications without a subscription ID.
    fn announce(self: &Arc<Connection>) {
        if !self.conversation.begin_announcing() {
            return;
        }
        let Ok(mut subscription) = Subscription::of_conversation(&self.server, &self.caller, &self.conversation) else {
            return;
        };
        let connection = Arc::clone(self);
        self.tasks.spawn(async move {
            tokio::select! {
                () = connection.ended.cancelled() => {}
                () = connection.notify(&mut subscription) => {}
            }
        });
    }

    /// Queues a subscription's messages, until the server shuts down.
    async fn notify(&self, subscription: &mut Subscription) {
        while let Some(messages) = subscription.next().await {
            self.write_queue.capacity().await;
            messages.into_iter().for_each(|message| self.write_queue.push(message));
        }
    }
}

impl Ask for Connection {
    fn ask(&self, params: Value) -> BoxFuture<'_, Option<Box<RawValue>>> {
        Box::pin(async move { self.elicitations.request(&self.write_queue, &params).await })
    }
}
