//! Validation and handling of HTTP requests.
//!
//! The checks run in the order of the specification where it defines one, and otherwise in that of its conformance
//! suite. The first failed check determines the response. No part of a body is read before host, origin and
//! authentication have been checked.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use futures_util::TryFutureExt as _;
use http::{HeaderMap, Method, Request, Response, StatusCode, request::Parts};
use http_body::Body;
use promptshelf_core::BoxFuture;
use promptshelf_service::{
    Caller, format_seconds,
    pool::{self, Amount},
};

use super::{
    Endpoint, Events,
    body::{self, BodyError, HttpBody},
    header, host_check,
    reply::{self, Denial, ForeignRequest, refusal},
    session,
};
use crate::{
    dispatch::{Answer, Asking, Context},
    error_code::{INTERNAL_ERROR, WireError, echo},
    jsonrpc::{self, Fault, Incoming, Message, Notification, check_batch},
    request::{Params, RequestMeta},
    revision::{Era, Revision},
    subscription::Subscription,
};

/// The size in bytes above which a message is handled in the pool: parsing, rendering and encoding megabytes takes
/// milliseconds, in which a thread of the runtime could answer a hundred small requests. Below it, a change of threads
/// costs more than it saves.
const LARGE_BYTES: usize = 128 << 10;

enum Output {
    Response(Answer),
    Stream(Box<Events>),
}

impl Endpoint {
    pub(super) async fn respond<B: Body>(self: &Arc<Self>, request: Request<B>) -> Response<HttpBody> {
        let (head, body) = request.into_parts();
        let started = self.server.begins();
        let caller = self.server.caller_of(&head.extensions);
        let faulty = |fault: Fault| {
            self.server.unread(started, fault.error.word());
            reply::fault(&fault)
        };
        let mut response = match self.host_check.admit(&head) {
            Ok(origin) => {
                let denial = head.extensions.get::<Denial>().filter(|_| head.method != Method::OPTIONS);
                let mut response = match denial.map(reply::denial) {
                    Some((response, outcome)) => {
                        self.server.unread(started, outcome);
                        response
                    }
                    None => {
                        let handled = self.handle(&head, &caller, body).await;
                        handled.unwrap_or_else(|fault| faulty(self.refused(&caller, fault)))
                    }
                };
                if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && header::has_content_coding(&head.headers)
                {
                    reply::accept_no_coding(response.headers_mut());
                }
                if let Some(origin) = origin {
                    host_check::allow_reading(response.headers_mut(), origin);
                }
                response
            }
            Err(reason) => {
                let request = caller.request_id();
                if let Some(further) = self.refused_hosts.admit() {
                    let named = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).map(echo);
                    let (host, origin) = (named(http::header::HOST), named(http::header::ORIGIN));
                    tracing::warn!(
                        request,
                        host,
                        origin,
                        reason,
                        further,
                        "request refused: see `allow-hosts` and `allow-origins` in [http] of server.toml"
                    );
                }
                let mut response = faulty(refusal(StatusCode::FORBIDDEN, reason));
                response.extensions_mut().insert(ForeignRequest::of(&head.headers));
                response
            }
        };
        reply::add_request_id(response.headers_mut(), &caller);
        response
    }

    /// Counts a refused message.
    fn refused(&self, caller: &Caller, fault: Fault) -> Fault {
        Fault { error: self.server.refused(caller, fault.error), ..fault }
    }

    async fn handle<B: Body>(
        self: &Arc<Self>,
        head: &Parts,
        caller: &Caller,
        body: B,
    ) -> Result<Response<HttpBody>, Fault> {
        match head.method {
            Method::POST => {}
            Method::GET => return self.open_legacy_stream(&head.headers, caller),
            Method::OPTIONS => {
                let mut response = reply::options();
                host_check::allow_sending(response.headers_mut(), &head.headers);
                return Ok(response);
            }
            Method::DELETE if session::is_named(&head.headers) => return self.end_session(&head.headers, caller),
            _ => return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed; expected POST")),
        }
        let mut body = pin!(body);
        self.admit_body(head, body.as_mut(), header::JSON).await?;
        if !header::accepts_response(&head.headers) {
            let message = "Not acceptable; responses are application/json or text/event-stream";
            return Err(refusal(StatusCode::NOT_ACCEPTABLE, message));
        }
        let bytes = self.read_body(head, body).await?;
        if bytes.len() <= LARGE_BYTES {
            return self.message(&head.headers, caller, &bytes).await;
        }
        let (endpoint, headers, of_caller) = (Arc::clone(self), head.headers.clone(), caller.clone());
        // Boxed: every request, also a small one, would have room for it.
        let handling: BoxFuture<'static, _> =
            Box::pin(async move { endpoint.message(&headers, &of_caller, &bytes).await });
        pool::run_future(caller, Amount::Small, move || handling)
            .await
            .unwrap_or_else(|_| Err(WireError::internal().into()))
    }

    async fn message(&self, headers: &HeaderMap, caller: &Caller, bytes: &[u8]) -> Result<Response<HttpBody>, Fault> {
        match jsonrpc::parse(bytes)? {
            Incoming::One(Message::Request(request)) => Ok(self.request(headers, caller, &request).await),
            Incoming::One(Message::Notification(notification)) => self.notification(headers, caller, &notification),
            Incoming::One(Message::Response(_)) => self.response(headers, caller),
            // Boxed: every message would have room for it.
            Incoming::Batch(batch) => Box::pin(self.batch(headers, caller, batch)).await,
        }
    }

    pub(super) async fn admit_body<B: Body>(
        &self,
        head: &Parts,
        body: Pin<&mut B>,
        media_type: &str,
    ) -> Result<(), Fault> {
        if body.size_hint().lower() > self.max_body_bytes as u64 {
            return Err(self.too_large(head, body).await);
        }
        if header::has_content_coding(&head.headers) {
            let message = "Unsupported content coding; send the body without Content-Encoding";
            return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        if !header::has_body_of(&head.headers, media_type) {
            let message = format!("Unsupported content type; expected {media_type}");
            return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        Ok(())
    }

    pub(super) async fn read_body<B: Body>(&self, head: &Parts, mut body: Pin<&mut B>) -> Result<Bytes, Fault> {
        match body::read(body.as_mut(), self.max_body_bytes).await {
            Ok(bytes) => Ok(bytes),
            Err(BodyError::TooLarge) => Err(self.too_large(head, body).await),
            Err(BodyError::Interrupted) => Err(WireError::parse("The body ended early").into()),
        }
    }

    async fn too_large<B: Body>(&self, head: &Parts, body: Pin<&mut B>) -> Fault {
        // A client that sent `Expect` waits with the body until it is admitted.
        if !head.headers.contains_key(http::header::EXPECT) {
            body::discard(body).await;
        }
        let message = format!("Message too large; the limit is {} bytes", self.max_body_bytes);
        refusal(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    async fn request(
        &self,
        headers: &HeaderMap,
        caller: &Caller,
        request: &jsonrpc::Request<'_>,
    ) -> Response<HttpBody> {
        let answering = self.try_request(headers, caller, request).map_err(|fault| self.refused(caller, fault));
        let answering = pin!(answering);
        let outcome = |output: &Result<Output, Fault>| match output {
            Ok(Output::Response(answer)) => answer.outcome,
            Ok(Output::Stream(_)) => "ok",
            Err(fault) => fault.error.word(),
        };
        let trace = || request.params.trace().or_else(|| header::trace(headers));
        match self.server.observed(caller, &request.method, trace, answering, outcome).await {
            Ok(Output::Response(answer)) => {
                let begins_session = request.method == "initialize" && answer.outcome == "ok";
                let mut response = reply::json(answer);
                if begins_session {
                    session::begin(response.headers_mut());
                }
                response
            }
            Ok(Output::Stream(events)) => reply::events(*events),
            Err(fault) => reply::fault(&fault),
        }
    }

    async fn try_request(
        &self,
        headers: &HeaderMap,
        caller: &Caller,
        request: &jsonrpc::Request<'_>,
    ) -> Result<Output, Fault> {
        let with_id = |error| Fault { id: Some(request.id.clone()), error };
        let (meta, era) = read_meta(headers, &request.params).map_err(with_id)?;
        let revision = match era {
            Era::Modern => {
                let revision = header::modern_revision(headers, meta).map_err(with_id)?;
                self.check_modern(headers, request).map_err(with_id)?;
                if request.method == "subscriptions/listen" {
                    return self.listen(caller, request).await.map_err(with_id);
                }
                revision
            }
            // Its body names the revision.
            Era::Legacy if request.method == "initialize" => Revision::NEWEST_LEGACY,
            // Without an ID: the headers are invalid for any body.
            Era::Legacy => self.legacy_revision(headers, caller)?,
        };
        let asking = match meta.client_capabilities() {
            Some(capabilities) if revision.is_modern() => Asking::Rounds(capabilities),
            _ => Asking::Never,
        };
        Ok(Output::Response(self.answer(headers, revision, asking, caller, request).await))
    }

    fn check_modern(&self, headers: &HeaderMap, request: &jsonrpc::Request<'_>) -> Result<(), WireError> {
        header::check_method(headers, &request.method)?;
        if !self.server.has_modern_method(&request.method) {
            return Err(WireError::method_not_found(&request.method, Era::Modern));
        }
        header::check_name(headers, &request.method, &request.params)
    }

    fn notification(
        &self,
        headers: &HeaderMap,
        caller: &Caller,
        notification: &Notification<'_>,
    ) -> Result<Response<HttpBody>, Fault> {
        let (meta, era) = read_meta(headers, &notification.params)?;
        match era {
            Era::Modern => header::check_modern_notification(headers, meta, &notification.method)?,
            Era::Legacy => drop(self.legacy_revision(headers, caller)?),
        }
        // All notifications from clients concern state that this server does not keep: an `initialize` handshake, or
        // another request in progress.
        Ok(reply::accepted())
    }

    /// Accepts a response from a client. This server sends no requests over HTTP.
    fn response(&self, headers: &HeaderMap, caller: &Caller) -> Result<Response<HttpBody>, Fault> {
        if header::names_modern_revision(headers) {
            return Err(WireError::invalid_request("This protocol revision has no responses from clients").into());
        }
        self.legacy_revision(headers, caller)?;
        Ok(reply::accepted())
    }

    /// Returns the revision of a legacy request, whose session must not have ended.
    fn legacy_revision(&self, headers: &HeaderMap, caller: &Caller) -> Result<Revision, WireError> {
        let revision = header::legacy_revision(headers)?;
        self.ended_sessions.check(headers, caller)?;
        Ok(revision)
    }

    fn end_session(&self, headers: &HeaderMap, caller: &Caller) -> Result<Response<HttpBody>, Fault> {
        if header::names_modern_revision(headers) {
            return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, "This protocol revision has no sessions"));
        }
        self.legacy_revision(headers, caller)?;
        self.ended_sessions.end(headers, caller);
        Ok(reply::no_content())
    }

    async fn batch(
        &self,
        headers: &HeaderMap,
        caller: &Caller,
        batch: Vec<Result<Message<'_>, Fault>>,
    ) -> Result<Response<HttpBody>, Fault> {
        if header::names_modern_revision(headers) || !self.legacy_revision(headers, caller)?.has_batches() {
            return Err(WireError::no_batches().into());
        }
        check_batch(&batch)?;
        let mut out = Vec::new();
        for (index, message) in batch.into_iter().enumerate() {
            // The first member has been counted as the HTTP request.
            let admitted = match caller.address().filter(|_| index > 0) {
                Some(address) => self.server.service().admit_address(address),
                None => Ok(()),
            };
            let admitted = admitted.map_err(|rejection| WireError::rejected(&rejection, Revision::V2025_03_26));
            let answer = match message {
                Ok(Message::Request(request)) => match admitted.and_then(|()| read_meta(headers, &request.params)) {
                    _ if out.len() > jsonrpc::MAX_BATCH_ANSWER => {
                        let error = WireError::invalid_request("The responses of this batch are too large");
                        Answer::error(Some(&request.id), &error)
                    }
                    Ok(_) => {
                        let answering = self.answer(headers, Revision::V2025_03_26, Asking::Never, caller, &request);
                        let answering = pin!(answering);
                        let trace = || request.params.trace().or_else(|| header::trace(headers));
                        let outcome = |answer: &Answer| answer.outcome;
                        self.server.observed(caller, &request.method, trace, answering, outcome).await
                    }
                    Err(error) => Answer::error(Some(&request.id), &error),
                },
                Ok(Message::Notification(_) | Message::Response(_)) => continue,
                Err(fault) => Answer::error(fault.id.as_ref(), &fault.error),
            };
            out.push(if out.is_empty() { b'[' } else { b',' });
            out.extend_from_slice(&answer.body);
        }
        if out.is_empty() {
            return Ok(reply::accepted());
        }
        out.push(b']');
        Ok(reply::json(Answer::ok(out.into())))
    }

    async fn answer(
        &self,
        headers: &HeaderMap,
        revision: Revision,
        asking: Asking<'_>,
        caller: &Caller,
        request: &jsonrpc::Request<'_>,
    ) -> Answer {
        let conversation = self.server.shared_conversation();
        let context = Context { revision, caller, conversation, asking, headers: Some(headers) };
        let mut answering = Box::pin(self.server.answer(context, request));
        let caught = caught(caller, &request.method, answering.as_mut());
        let answer = match tokio::time::timeout(self.request_timeout, caught).await {
            Ok(answer) => answer,
            Err(_) => {
                promptshelf_service::timed_out(|| drop(answering));
                let (id, method, limit) = (caller.request_id(), &*request.method, self.request_timeout);
                tracing::warn!(request = id, method, ?limit, "request was not answered in time");
                Err(too_slow(limit))
            }
        };
        answer.unwrap_or_else(|error| Answer::error(Some(&request.id), &error))
    }

    async fn listen(&self, caller: &Caller, request: &jsonrpc::Request<'_>) -> Result<Output, WireError> {
        let permit = Arc::clone(&self.streams).try_acquire_owned().map_err(|_| too_many_streams())?;
        let opening = pin!(Subscription::listen(&self.server, caller, &request.id, request.params.notifications()));
        let (subscription, acknowledgment) = caught(caller, &request.method, opening).await??;
        Ok(Output::Stream(Box::new(Events::new(subscription, Some(&acknowledgment), self.keep_alive, permit))))
    }

    fn open_legacy_stream(&self, headers: &HeaderMap, caller: &Caller) -> Result<Response<HttpBody>, Fault> {
        if header::names_modern_revision(headers) {
            let message = "This protocol revision has no GET stream; use subscriptions/listen";
            return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, message));
        }
        self.legacy_revision(headers, caller)?;
        if !header::accepts_events(headers) {
            let message = "Model Context Protocol endpoint: send messages with POST, or open a stream with GET and \
                           `Accept: text/event-stream`";
            return Err(refusal(StatusCode::NOT_ACCEPTABLE, message));
        }
        let permit = Arc::clone(&self.streams).try_acquire_owned().map_err(|_| too_many_streams())?;
        let subscription = Subscription::of_conversation(&self.server, caller, self.server.shared_conversation())
            .map_err(|rejection| WireError::rejected(&rejection, Revision::NEWEST_LEGACY))?;
        Ok(reply::events(Events::new(subscription, None, self.keep_alive, permit)))
    }
}

/// Returns `_meta` and the era of a message: modern if the headers or the body have anything that only modern
/// messages have.
fn read_meta<'p, 'a>(headers: &HeaderMap, params: &'p Params<'a>) -> Result<(&'p RequestMeta<'a>, Era), WireError> {
    let named = header::names_modern_revision(headers);
    params.check().map_err(|error| {
        // The members that a modern message requires are missing, too.
        if named { WireError { status: 400, ..error } } else { error }
    })?;
    let meta = params.meta()?;
    let era = if named || meta.is_modern() { Era::Modern } else { Era::Legacy };
    Ok((meta, era))
}

fn too_many_streams() -> WireError {
    WireError {
        code: INTERNAL_ERROR,
        message: "Too many streams are open; try again later".to_owned(),
        data: None,
        status: StatusCode::SERVICE_UNAVAILABLE.as_u16(),
        is_for_model: false,
    }
}

fn too_slow(limit: Duration) -> WireError {
    let seconds = format_seconds(limit.as_secs());
    let message =
        format!("The request was not answered within {seconds}; try again, and tell the operator if it happens again");
    WireError { status: StatusCode::GATEWAY_TIMEOUT.as_u16(), message, ..WireError::internal() }
}

/// Runs a request and catches a panic: a bug in one request must not appear to its client as a connection error.
async fn caught<T>(
    caller: &Caller,
    method: &str,
    mut answering: Pin<&mut impl Future<Output = T>>,
) -> Result<T, WireError> {
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        // The panic hook has logged the message and the location.
        Err(_) => {
            tracing::error!(request = caller.request_id(), method, "request failed with a panic");
            Poll::Ready(Err(WireError::internal()))
        }
    })
    .await
}
