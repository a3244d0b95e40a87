//! Streams of events leave the HTTP library once their head is written: from
//! then on a stream needs none of its buffers.
//!
//! hyper keeps two buffers of 8 kB and all that a next request would take for as
//! long as a connection is open, and most streams are silent for hours. So hyper
//! reads the request and writes the head of the answer, and what follows, chunks
//! (RFC 9112, 7.1) and the end of the connection, is written here. The answer
//! says `Connection: close`, so that nobody waits for a further one (9.6). To a
//! client of HTTP/1.0 there are no chunks, and the connection's end is the end (6.3).
//!
//! The two meet in [`Handover`]. hyper asks for a body only when the head is in
//! its buffer, and flushes only when the buffer is empty: the body waits from
//! the first question on, and the socket leaves with it at the next flush.

use std::{
    future::Future,
    io::{self, IoSlice},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Version, header},
    response::Response,
};
use hyper::body::{Body as _, Frame};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Where the body of a connection's answer waits for the socket.
#[derive(Clone, Debug, Default)]
pub(super) struct Handover(Arc<Mutex<Place>>);

#[derive(Debug, Default)]
struct Place {
    waiting: Option<Content>,
    has_left: bool,
}

/// A body, and how it is to be written.
#[derive(Debug)]
struct Content {
    body: Body,
    in_chunks: bool,
}

impl Handover {
    /// Has an answer leave with the socket, if it is a stream of events. `version`
    /// is the request's.
    pub(super) fn detach(&self, response: Response, version: Version) -> Response {
        let headers = response.headers();
        let is_stream = headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream")
            && !headers.contains_key(header::CONTENT_LENGTH);
        if !is_stream {
            return response;
        }
        let mut response = response.map(|body| {
            let content = Content { body, in_chunks: version == Version::HTTP_11 };
            Body::new(Leaving { content: Some(content), handover: self.clone() })
        });
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The body that waits, if there is one.
    fn leave(&self) -> Option<Content> {
        let mut place = self.place();
        let content = place.waiting.take()?;
        place.has_left = true;
        Some(content)
    }
}

/// What hyper has for the body of a stream.
struct Leaving {
    content: Option<Content>,
    handover: Handover,
}

impl hyper::body::Body for Leaving {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Leaving { content, handover } = self.get_mut();
        let mut place = handover.place();
        if place.has_left {
            // The one thing upon which hyper gives a connection up, whatever else it has read from it.
            return Poll::Ready(Some(Err(io::ErrorKind::NotConnected.into())));
        }
        if let Some(content) = content.take() {
            place.waiting = Some(content);
        }
        // The flush that is due now wakes whoever asks.
        Poll::Pending
    }
}

/// What hyper has for a socket, until a stream leaves with it.
pub(super) struct Socket<S> {
    stream: Option<S>,
    handover: Handover,
    streams: Streams,
}

impl<S> Socket<S> {
    pub(super) fn new(stream: S, handover: Handover, streams: Streams) -> Socket<S> {
        Socket { stream: Some(stream), handover, streams }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Some(stream) => Pin::new(stream).poll_read(context, into),
            // To hyper the connection has ended.
            None => Poll::Ready(Ok(())),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> AsyncWrite for Socket<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            Some(stream) => Pin::new(stream).poll_write(context, bytes),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            Some(stream) => Pin::new(stream).poll_write_vectored(context, bytes),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let Some(stream) = &mut this.stream else { return Poll::Ready(Ok(())) };
        ready!(Pin::new(stream).poll_flush(context))?;
        if let Some(content) = this.handover.leave()
            && let Some(socket) = this.stream.take()
        {
            this.streams.spawn(Stream { content, socket, unwritten: Bytes::new(), has_ended: false });
            // So that hyper finds out at once, and frees what it has.
            context.waker().wake_by_ref();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Some(stream) => Pin::new(stream).poll_shutdown(context),
            None => Poll::Ready(Ok(())),
        }
    }
}

/// The streams that have left, and the connections that they may leave.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    open: TaskTracker,
    cut: CancellationToken,
}

impl Streams {
    fn spawn(&self, stream: impl Future<Output = io::Result<()>> + Send + 'static) {
        // Boxed, because what waits for two things at once has room for it twice, and TLS is large.
        let stream = self.cut.clone().run_until_cancelled_owned(Box::pin(stream));
        // Nobody is left who would want to know how it ended.
        drop(self.open.spawn(stream));
    }

    /// Has a connection go on by itself. It ends by itself, too.
    pub(super) fn track(&self, connection: impl Future<Output = ()> + Send + 'static) {
        drop(self.open.spawn(connection));
    }

    /// Waits until everything has ended, and closes the streams that have not until then.
    pub(super) async fn end(&self, deadline: Instant) {
        self.open.close();
        drop(timeout_at(deadline, self.open.wait()).await);
        self.cut.cancel();
        self.open.wait().await;
    }
}

/// A stream that has left: ready when everything is said, or when nobody listens any more.
struct Stream<S> {
    /// Dropped before the socket: who sees that the connection is closed may open another stream.
    content: Content,
    socket: S,
    unwritten: Bytes,
    has_ended: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Future for Stream<S> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.poll_gone(context)?.is_ready() {
            return Poll::Ready(Ok(()));
        }
        loop {
            while !this.unwritten.is_empty() {
                match ready!(Pin::new(&mut this.socket).poll_write(context, &this.unwritten))? {
                    0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    written => drop(this.unwritten.split_to(written)),
                }
            }
            ready!(Pin::new(&mut this.socket).poll_flush(context))?;
            if this.has_ended {
                return Pin::new(&mut this.socket).poll_shutdown(context);
            }
            // Only now: who reads slowly is told of many changes as of one.
            match ready!(Pin::new(&mut this.content.body).poll_frame(context)) {
                Some(frame) => {
                    let data = frame.map_err(io::Error::other)?.into_data().unwrap_or_default();
                    this.unwritten = if this.content.in_chunks { chunk(&data) } else { data };
                }
                None => {
                    this.has_ended = true;
                    this.unwritten = if this.content.in_chunks { LAST } else { Bytes::new() };
                }
            }
        }
    }
}

impl<S: AsyncRead + Unpin> Stream<S> {
    /// Whether the client is gone. Whatever it sends is not looked at: there is no
    /// further answer.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; 512];
        loop {
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.socket).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

/// What stands behind the other chunks.
const LAST: Bytes = Bytes::from_static(b"0\r\n\r\n");

/// Data as a chunk. Without data there is none, because an empty one would be the last.
fn chunk(data: &[u8]) -> Bytes {
    if data.is_empty() {
        return Bytes::new();
    }
    let size = format!("{:x}\r\n", data.len());
    [size.as_bytes(), data, b"\r\n"].concat().into()
}
