//! One request and its response, from the head of the request to the last byte that the client takes.

use std::{
    fmt, io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, ready},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use http_body::{Frame, SizeHint};
use promptshelf_service::{SlotHolder, address_key};
use tokio::time::{Instant, Sleep, sleep};

use super::{
    Budget, FREE_BYTES, MIN_PROGRESS, Reservation,
    connections::{Activity, Connection},
};

/// A request and its response. It ends when the request has been answered and the client has taken the response.
///
/// It is an extension of the request, so that authentication can report the caller's address and that the request is
/// admitted.
pub(in crate::http) struct Exchange {
    budget: Budget,
    connection: Arc<Connection>,
    is_admitted: OnceLock<()>,
    /// The client's address, if a trusted proxy reported another one than that of the connection.
    address: OnceLock<String>,
    slot: OnceLock<SlotHolder>,
    error: AtomicU8,
    body: Mutex<Option<Reservation>>,
    response: Mutex<Option<Reservation>>,
}

/// Values of [`Exchange::error`].
const STALLED: u8 = 1;
const REFUSED: u8 = 2;

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("connection", &self.connection).finish_non_exhaustive()
    }
}

impl Exchange {
    pub(in crate::http) fn new(budget: &Budget, connection: &Arc<Connection>) -> Arc<Exchange> {
        connection.begin();
        Arc::new(Exchange {
            budget: budget.clone(),
            connection: Arc::clone(connection),
            is_admitted: OnceLock::new(),
            address: OnceLock::new(),
            slot: OnceLock::new(),
            error: AtomicU8::new(0),
            body: Mutex::default(),
            response: Mutex::default(),
        })
    }

    /// Reports that the caller is authenticated: the connection no longer gives way until the exchange ends.
    pub(in crate::http) fn admit(&self, address: Option<std::net::IpAddr>) {
        if self.connection.address().is_none()
            && let Some(address) = address
        {
            // An exchange is admitted once.
            let _ = self.address.set(address_key(address));
        }
        let _ = self.is_admitted.set(());
        self.connection.set(Activity::Answering);
    }

    /// Keeps the slot of a concurrent request until the exchange ends.
    pub(in crate::http) fn keep(&self, slot: SlotHolder) {
        let _ = self.slot.set(slot);
    }

    fn set(&self, activity: Activity) {
        if self.is_admitted.get().is_some() {
            self.connection.set(activity);
        }
    }

    fn address(&self) -> Option<&str> {
        self.address.get().map(String::as_str).or(self.connection.address())
    }

    /// Turns the response into one that is counted until the client has taken it, or into a refusal.
    pub(in crate::http) fn respond(self: &Arc<Exchange>, response: Response) -> Response<ResponseBody> {
        self.set(Activity::Answering);
        drop(lock(&self.body).take());
        let response = match self.error.load(Ordering::Relaxed) {
            STALLED => (StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time\n").into_response(),
            REFUSED => unavailable("Too many bytes of requests are in flight; try again later\n"),
            _ => response,
        };
        let bytes = response.size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
        let response = match bytes.filter(|bytes| *bytes > FREE_BYTES) {
            Some(bytes) => {
                let mut reservation = self.budget.0.response_bytes.open(self.address());
                let is_granted = reservation.grow(bytes);
                *lock(&self.response) = Some(reservation);
                match is_granted {
                    true => response,
                    false => unavailable("Too many bytes of responses wait for their clients; try again later\n"),
                }
            }
            None => response,
        };
        response.map(|body| ResponseBody { body, exchange: Arc::clone(self) })
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.connection.end();
    }
}

fn unavailable(message: &'static str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "5")], message).into_response()
}

fn lock(reservation: &Mutex<Option<Reservation>>) -> MutexGuard<'_, Option<Reservation>> {
    reservation.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The body of a request, which fails when the client stops sending or the budget has no bytes left.
#[derive(Debug)]
pub(in crate::http) struct RequestBody<B> {
    body: B,
    exchange: Arc<Exchange>,
    received: usize,
    waiting: Option<Window>,
}

#[derive(Debug)]
struct Window {
    end: Pin<Box<Sleep>>,
    /// The bytes that had been received at its beginning.
    from: usize,
}

impl<B> RequestBody<B> {
    pub(in crate::http) fn new(body: B, exchange: &Arc<Exchange>) -> RequestBody<B> {
        RequestBody { body, exchange: Arc::clone(exchange), received: 0, waiting: None }
    }

    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let length = self.exchange.budget.progress_timeout();
        let window = match &mut self.waiting {
            Some(window) => window,
            empty => {
                self.exchange.set(Activity::Reading);
                empty.insert(Window { end: Box::pin(sleep(length)), from: self.received })
            }
        };
        loop {
            ready!(window.end.as_mut().poll(cx));
            if self.received - window.from < MIN_PROGRESS {
                self.exchange.budget.stalled();
                return Poll::Ready(self.fail(STALLED));
            }
            window.from = self.received;
            window.end.as_mut().reset(Instant::now() + length);
        }
    }

    fn fail(&self, error: u8) -> io::Error {
        self.exchange.error.store(error, Ordering::Relaxed);
        io::ErrorKind::TimedOut.into()
    }

    /// Counts received bytes, without those that are free.
    fn count(&mut self, bytes: usize) -> bool {
        let before = self.received.max(FREE_BYTES);
        self.received += bytes;
        let counted = self.received.saturating_sub(before);
        if counted == 0 {
            return true;
        }
        let exchange = &self.exchange;
        let mut reservation = lock(&exchange.body);
        reservation.get_or_insert_with(|| exchange.budget.0.request_bytes.open(exchange.address())).grow(counted)
    }
}

impl<B> HttpBody for RequestBody<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<axum::BoxError>,
{
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
            return self.wait(cx).map(|error| Some(Err(error.into())));
        };
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            _ => 0,
        };
        if !self.count(bytes) {
            return Poll::Ready(Some(Err(self.fail(REFUSED).into())));
        }
        if frame.is_none() && self.waiting.take().is_some() {
            self.exchange.set(Activity::Answering);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response, which keeps its exchange until the client has taken it.
#[derive(Debug)]
pub(in crate::http) struct ResponseBody {
    body: Body,
    exchange: Arc<Exchange>,
}

/// A part of a response. hyper drops the body as soon as it has its parts, and a part when it is written.
struct Unsent {
    bytes: Bytes,
    _exchange: Arc<Exchange>,
}

impl AsRef<[u8]> for Unsent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let exchange = &self.exchange;
        let keep = |bytes: Bytes| match bytes.len() > FREE_BYTES {
            true => Bytes::from_owner(Unsent { bytes, _exchange: Arc::clone(exchange) }),
            // The system takes a short response at once.
            false => bytes,
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(keep))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
