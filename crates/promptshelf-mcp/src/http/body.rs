//! Bodies: bounded reading of requests, and the bodies of responses.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;

use super::Events;

/// The body of a response.
#[derive(Debug)]
pub struct HttpBody(Kind);

#[derive(Debug)]
enum Kind {
    Full(Full<Bytes>),
    Events(Box<Events>),
}

impl HttpBody {
    pub(super) fn full(bytes: Bytes) -> HttpBody {
        HttpBody(Kind::Full(Full::new(bytes)))
    }

    pub(super) fn events(events: Events) -> HttpBody {
        HttpBody(Kind::Events(Box::new(events)))
    }
}

/// Returns an empty body.
impl Default for HttpBody {
    fn default() -> HttpBody {
        HttpBody::full(Bytes::new())
    }
}

impl Body for HttpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Kind::Full(full) => Pin::new(full).poll_frame(context),
            Kind::Events(events) => events.poll_next(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Full(full) => full.is_end_stream(),
            Kind::Events(events) => events.has_ended(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(full) => full.size_hint(),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

/// The reason why a body could not be read.
#[derive(Debug)]
pub(super) enum BodyError {
    TooLarge,
    Interrupted,
}

/// Maximum number of bytes of a refused body that are read and discarded.
const MAX_DISCARDED: u64 = 16 << 20;

/// Reads and discards a refused body up to a bound. Most clients send the whole body before they read the response,
/// and would report a connection error if it were closed earlier.
pub(super) async fn discard<B: Body>(mut body: Pin<&mut B>) {
    let mut left = MAX_DISCARDED;
    if body.size_hint().lower() > left {
        return;
    }
    poll_fn(|context| {
        while left > 0 {
            let Some(Ok(frame)) = ready!(body.as_mut().poll_frame(context)) else { break };
            let bytes = frame.into_data().map_or(0, |data| data.remaining());
            left = left.saturating_sub(bytes as u64);
        }
        Poll::Ready(())
    })
    .await;
}

/// The bytes after which a body lets other tasks of the thread run. Many large bodies that arrive at once would
/// otherwise delay a small request by milliseconds each.
const TURN_BYTES: usize = 64 << 10;

/// Reads a body. A body of one chunk is not copied. Chunks are joined as they arrive: collecting them would need many
/// times the size of a body that arrives in chunks of one byte. The buffer grows with the received bytes, at most to
/// twice their size, because a client can announce a body and never send it.
pub(super) async fn read<B: Body>(mut body: Pin<&mut B>, limit: usize) -> Result<Bytes, BodyError> {
    let expected = body.size_hint().lower();
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    poll_fn(|context| {
        let mut turn = 0;
        loop {
            if turn >= TURN_BYTES && !body.is_end_stream() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let frame = match body.as_mut().poll_frame(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(BodyError::Interrupted)),
                Poll::Ready(Some(Ok(frame))) => frame,
            };
            // Trailers are ignored.
            let Ok(mut data) = frame.into_data() else { continue };
            turn += data.remaining();
            if data.remaining() > limit - first.len() - joined.len() {
                return Poll::Ready(Err(BodyError::TooLarge));
            }
            if first.is_empty() && joined.is_empty() {
                first = data.copy_to_bytes(data.remaining());
                continue;
            }
            let received = first.len() + joined.len() + data.remaining();
            if joined.capacity() < received {
                let expected = usize::try_from(expected).map_or(limit, |expected| expected.min(limit));
                // Beyond the announced size, and for a body of unknown size, `put` doubles the capacity.
                joined.reserve(expected.min(2 * received).max(received) - joined.len());
            }
            if joined.is_empty() {
                joined.put(std::mem::take(&mut first));
            }
            joined.put(data);
        }
    })
    .await?;
    Ok(if joined.is_empty() { first } else { joined.freeze() })
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, pin::pin};

    use futures_util::{
        FutureExt as _,
        stream::{self, Stream},
    };
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};

    use super::*;

    /// A chunk of the size that HTTP libraries read at once.
    const CHUNK: usize = 16 << 10;

    fn chunks(number: usize) -> StreamBody<impl Stream<Item = Result<Frame<Bytes>, Infallible>>> {
        StreamBody::new(stream::iter((0..number).map(|_| Ok(Frame::data(Bytes::from_static(&[b'x'; CHUNK]))))))
    }

    // req: S-55
    #[test]
    fn large_body_yields_and_small_ones_do_not() {
        let mut body = pin!(chunks(64));
        let mut read = pin!(read(body.as_mut(), 4 << 20));
        let mut turns = 1;
        let bytes = loop {
            match read.as_mut().now_or_never() {
                Some(bytes) => break bytes.expect("a body within the limit"),
                None => turns += 1,
            }
        };
        assert_eq!(bytes.len(), 64 * CHUNK);
        assert_eq!(turns, 1 + 64 * CHUNK / TURN_BYTES);

        assert!(super::read(pin!(chunks(3)), 4 << 20).now_or_never().is_some(), "a small body needs one turn");
        let whole = Full::new(Bytes::from(vec![b'x'; 1 << 20]));
        assert!(super::read(pin!(whole), 4 << 20).now_or_never().is_some(), "nothing follows the only chunk");
    }
}
