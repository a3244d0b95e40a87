//! The stdio transport: one conversation over an input and an output, one message a line.
//!
//! Both eras share the transport: a request with modern `_meta` is modern, whatever came before it, and
//! everything else depends on `initialize`. Only protocol lines are written to the output.
//!
//! Opening the process's own stdin and stdout is deliberately elsewhere (`promptshelf_server`).

mod lines;
mod write_queue;

use std::{
    collections::HashMap,
    future::{poll_fn, ready},
    io, mem,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use lines::{Line, Lines};
use parking_lot::{Mutex, MutexGuard};
use promptshelf_core::BoxFuture;
use promptshelf_service::Caller;
use serde_json::{Value, json, value::RawValue};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::oneshot,
};
use tokio_util::{
    codec::FramedRead,
    sync::{CancellationToken, ReusableBoxFuture},
    task::{AbortOnDropHandle, TaskTracker},
};
use write_queue::WriteQueue;

use crate::{
    Server,
    conversation::Conversation,
    dispatch::{Answer, Asking, Context},
    error_code::WireError,
    jsonrpc::{self, Fault, Incoming, Message, Notification, Reply, Request, RequestId, check_batch},
    multi_round::Ask,
    revision::Revision,
    subscription::Subscription,
};

/// The longest line that is read, in bytes.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// The time that requests have to finish once the input has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

impl Server {
    /// Serves the local caller, until the input ends, the output is closed, or the server shuts down.
    /// Requests that came before the end are answered, for at most five seconds.
    ///
    /// A line of more than [`MAX_LINE_BYTES`] is refused without being buffered. When responses of
    /// 32 MiB wait for a client that does not read, its input is not read either.
    ///
    /// # Errors
    ///
    /// When the input cannot be read or the output cannot be written. A closed output
    /// ([`io::ErrorKind::BrokenPipe`]) is a regular end.
    pub async fn serve_stdio<R, W>(&self, input: R, output: W) -> io::Result<()>
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let write_queue = Arc::new(WriteQueue::default());
        let writer = AbortOnDropHandle::new(tokio::spawn({
            let write_queue = Arc::clone(&write_queue);
            async move { write_queue.write_to(output).await }
        }));
        let connection = Arc::new(Connection {
            server: self.clone(),
            caller: Caller::local(),
            conversation: Arc::new(Conversation::default()),
            write_queue,
            in_flight: InFlight::default(),
            elicitations: Elicitations::default(),
            tasks: TaskTracker::new(),
            ended: CancellationToken::new(),
        });
        let read = read_lines(&connection, input).await;
        connection.tasks.close();
        // Subscriptions end now; other requests may finish. At a shutdown of the server subscriptions
        // end by themselves, with the response that the protocol requires.
        if !self.shutdown_token().is_cancelled() {
            connection.ended.cancel();
        }
        // The client cannot respond any more.
        connection.elicitations.cancel_all();
        if tokio::time::timeout(DRAIN_TIMEOUT, connection.tasks.wait()).await.is_err() {
            tracing::warn!("the input ended and requests in progress did not finish in time; they were cancelled");
            connection.in_flight.cancel_all();
        }
        connection.write_queue.close();
        let written = writer.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        read.and(match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        })
    }
}

async fn read_lines(connection: &Arc<Connection>, input: impl AsyncRead + Unpin) -> io::Result<()> {
    let mut lines = FramedRead::new(input, Lines::new(MAX_LINE_BYTES));
    let mut slot = ReusableBoxFuture::new(ready(()));
    // One future for all lines, so that its registration is not repeated for each.
    let mut ended = pin!(async {
        tokio::select! {
            () = connection.server.shutdown_token().cancelled() => {}
            () = connection.write_queue.closed() => {}
        }
    });
    loop {
        let line = tokio::select! {
            // Lines first. The end is noticed while lines keep coming, too: reading yields from time to
            // time (tokio's budget), and so does a write queue with enough lines in it.
            biased;
            line = async {
                connection.write_queue.capacity().await;
                lines.next().await
            } => line,
            () = &mut ended => return Ok(()),
        };
        match line.transpose()? {
            None => return Ok(()),
            Some(Line::Whole(line)) if line.trim_ascii().is_empty() => {}
            // Nearly every response is ready at the first poll and is queued before the next line is
            // read; a request that waits continues as a task.
            Some(Line::Whole(line)) => {
                slot.set(Arc::clone(connection).handle(line));
                if poll_fn(|context| Poll::Ready(slot.poll(context))).await.is_pending() {
                    drop(connection.tasks.spawn(mem::replace(&mut slot, ReusableBoxFuture::new(ready(())))));
                }
            }
            Some(Line::TooLong) => {
                let error = WireError::parse(format!("A line can be at most {MAX_LINE_BYTES} bytes long"));
                connection.write_queue.push(jsonrpc::error(None, &error));
            }
        }
    }
}

const MAX_IN_FLIGHT: usize = 4_096;

#[derive(Debug, Default)]
struct InFlight(Mutex<HashMap<RequestId, CancellationToken>>);

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.0.lock()
    }

    /// Checks whether a request can begin: there is capacity, and its ID is not in use.
    fn check(&self, id: &RequestId) -> Result<(), WireError> {
        let requests = self.lock();
        if requests.len() >= MAX_IN_FLIGHT {
            return Err(WireError::invalid_request("Too many requests are waiting for an answer"));
        }
        if requests.contains_key(id) {
            return Err(WireError::invalid_request("A request with this id is waiting for its answer"));
        }
        Ok(())
    }

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

    fn cancel_all(&self) {
        self.lock().values().for_each(CancellationToken::cancel);
    }
}

/// The result of an elicitation, `None` for an error or the end of the conversation.
type ElicitationResult = Option<Box<RawValue>>;

#[derive(Debug, Default)]
struct Elicitations {
    count: AtomicU64,
    pending: Mutex<HashMap<String, oneshot::Sender<ElicitationResult>>>,
}

impl Elicitations {
    fn lock(&self) -> parking_lot::MutexGuard<'_, HashMap<String, oneshot::Sender<ElicitationResult>>> {
        self.pending.lock()
    }

    /// Completes the elicitation that `reply` responds to; an unknown ID is ignored.
    fn respond(&self, reply: Reply<'_>) {
        let id = reply.id.and_then(|id| serde_json::from_str::<String>(id.as_json()).ok());
        let pending = id.and_then(|id| self.lock().remove(&id));
        if let Some(pending) = pending {
            let _ = pending.send(reply.result.map(ToOwned::to_owned));
        }
    }

    /// Sends `elicitation/create` and waits for its result.
    async fn request(&self, write_queue: &WriteQueue, params: &Value) -> ElicitationResult {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let pending = Pending { elicitations: self, write_queue, id: format!("promptshelf-{number}") };
        let (sender, result) = oneshot::channel();
        self.lock().insert(pending.id.clone(), sender);
        write_queue.push(jsonrpc::request(&pending.id, "elicitation/create", params));
        result.await.ok().flatten()
    }

    /// Completes every elicitation without a result.
    fn cancel_all(&self) {
        self.lock().clear();
    }
}

struct Pending<'a> {
    elicitations: &'a Elicitations,
    write_queue: &'a WriteQueue,
    id: String,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        // The request that asks was cancelled: the form would stay open.
        if self.elicitations.lock().remove(&self.id).is_some() {
            let params = json!({ "requestId": self.id });
            self.write_queue.push(jsonrpc::notification("notifications/cancelled", &params));
        }
    }
}

#[derive(Debug)]
struct Connection {
    server: Server,
    caller: Caller,
    conversation: Arc<Conversation>,
    write_queue: Arc<WriteQueue>,
    in_flight: InFlight,
    elicitations: Elicitations,
    tasks: TaskTracker,
    ended: CancellationToken,
}

enum Outcome {
    Answered(Answer),
    Subscribed,
    Cancelled,
}

impl Connection {
    /// Handles one line and queues its response, if there is one.
    async fn handle(self: Arc<Connection>, line: Bytes) {
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
        // A client may send a ping before it is initialized.
        if !revision.is_modern() && !["initialize", "ping"].contains(&&*request.method) && agreed.is_some() {
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
