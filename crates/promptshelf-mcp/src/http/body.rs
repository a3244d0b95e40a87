//! Bodies: a request's, read with a bound, and those of answers.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;

use super::events::Events;

/// The body of an answer.
#[derive(Debug)]
pub struct HttpBody(Kind);

#[derive(Debug)]
enum Kind {
    Full(Full<Bytes>),
    /// Boxed, so that the answers that nearly everybody gets stay small.
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

/// A body with nothing in it.
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

/// Why a body could not be read.
#[derive(Debug)]
pub(super) enum Unread {
    TooLarge,
    BrokeOff,
}

/// The most of a refused body that is taken and forgotten.
const MOST_FORGOTTEN: u64 = 16 << 20;

/// Takes a body that is refused and forgets it, as far as that is bearable: most
/// clients send everything before they read why nobody wants it, and a connection
/// that is closed meanwhile tells them nothing.
pub(super) async fn forget<B: Body>(mut body: Pin<&mut B>) {
    let mut left = MOST_FORGOTTEN;
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

/// Reads a body. One that comes in one piece is not copied.
pub(super) async fn read<B: Body>(mut body: Pin<&mut B>, limit: usize) -> Result<Bytes, Unread> {
    let expected = body.size_hint().lower();
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    poll_fn(|context| {
        loop {
            let frame = match body.as_mut().poll_frame(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(Unread::BrokeOff)),
                Poll::Ready(Some(Ok(frame))) => frame,
            };
            // Trailers say nothing to us.
            let Ok(mut data) = frame.into_data() else { continue };
            if data.remaining() > limit - first.len() - joined.len() {
                return Poll::Ready(Err(Unread::TooLarge));
            }
            if first.is_empty() && joined.is_empty() {
                first = data.copy_to_bytes(data.remaining());
                continue;
            }
            if joined.is_empty() {
                joined.reserve(usize::try_from(expected).map_or(limit, |expected| expected.min(limit)));
                joined.put(std::mem::take(&mut first));
            }
            joined.put(data);
        }
    })
    .await?;
    Ok(if joined.is_empty() { first } else { joined.freeze() })
}
