//! A stream of server-sent events with the notifications of one subscription.
//!
//! Dropping the stream ends the subscription. An idle stream sends comment lines, which keep proxies from closing it
//! and detect a peer that has disappeared.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, Sleep, sleep},
};
use tokio_util::sync::ReusableBoxFuture;

use crate::subscription::Subscription;

const COMMENT: Bytes = Bytes::from_static(b":\n\n");

pub(super) struct Events {
    /// The first bytes of the stream.
    opening: Option<Bytes>,
    /// Waits for notifications; kept between polls, so that no wait is interrupted.
    waiting: ReusableBoxFuture<'static, (Subscription, Option<Vec<Bytes>>)>,
    period: Duration,
    keep_alive: Pin<Box<Sleep>>,
    ended: bool,
    /// Counts the stream as open until dropped.
    _permit: OwnedSemaphorePermit,
}

impl Events {
    /// Creates the stream, with an optional first message. Without one it starts with a comment, because some proxies
    /// hold back the response head until the body starts.
    pub(super) fn new(
        subscription: Subscription,
        first: Option<&Bytes>,
        keep_alive: Duration,
        permit: OwnedSemaphorePermit,
    ) -> Events {
        Events {
            opening: Some(first.map_or(COMMENT, |message| write(std::slice::from_ref(message)))),
            waiting: ReusableBoxFuture::new(wait(subscription)),
            period: keep_alive,
            keep_alive: Box::pin(sleep(keep_alive)),
            ended: false,
            _permit: permit,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(opening) = self.opening.take() {
            return Poll::Ready(Some(opening));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        let bytes = match self.waiting.poll(context) {
            Poll::Ready((subscription, Some(messages))) => {
                self.waiting.set(wait(subscription));
                write(&messages)
            }
            Poll::Ready((subscription, None)) => {
                self.ended = true;
                return Poll::Ready(subscription.end().map(|end| write(&[end])));
            }
            Poll::Pending => {
                ready!(self.keep_alive.as_mut().poll(context));
                COMMENT
            }
        };
        self.keep_alive.as_mut().reset(Instant::now() + self.period);
        Poll::Ready(Some(bytes))
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("ended", &self.ended).finish_non_exhaustive()
    }
}

async fn wait(mut subscription: Subscription) -> (Subscription, Option<Vec<Bytes>>) {
    let messages = subscription.next().await;
    (subscription, messages)
}

/// Encodes messages as events. The JSON of this crate has no line breaks, so each message is one `data` line.
fn write(messages: &[Bytes]) -> Bytes {
    const BEFORE: &[u8] = b"event: message\ndata: ";
    const AFTER: &[u8] = b"\n\n";
    let frame = BEFORE.len() + AFTER.len();
    let mut out = Vec::with_capacity(messages.iter().map(|message| message.len() + frame).sum());
    for message in messages {
        out.extend_from_slice(BEFORE);
        out.extend_from_slice(message);
        out.extend_from_slice(AFTER);
    }
    out.into()
}
