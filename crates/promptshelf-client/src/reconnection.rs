//! The least time between streams that a server ends. The server's `retry` can lengthen it, and not shorten it.

use std::sync::Arc;

use futures_util::StreamExt as _;
use parking_lot::Mutex;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;
use tokio::time::{Instant, sleep_until};

use crate::{
    backoff::{Backoff, FIRST_PAUSE},
    http::Events,
};

/// The pause before the next stream. It grows while streams end at once without a message. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Reconnection(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    backoff: Backoff,
    earliest: Option<Instant>,
}

impl Reconnection {
    pub(crate) async fn wait(&self) {
        let earliest = self.0.lock().earliest;
        if let Some(earliest) = earliest {
            sleep_until(earliest).await;
        }
    }

    /// Returns the events of a stream, whose end begins the pause.
    pub(crate) fn follow(&self, events: Events) -> Events {
        let mut followed = Followed { reconnection: self.clone(), began: Instant::now(), has_message: false };
        events.inspect(move |event| followed.note(event)).boxed()
    }
}

struct Followed {
    reconnection: Reconnection,
    began: Instant,
    has_message: bool,
}

impl Followed {
    fn note(&mut self, event: &Result<Sse, SseError>) {
        self.has_message |= event.as_ref().is_ok_and(|event| event.data.is_some());
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let mut state = self.reconnection.0.lock();
        if self.has_message || self.began.elapsed() >= FIRST_PAUSE {
            state.backoff.reset();
        }
        state.earliest = Some(Instant::now() + state.backoff.pause());
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    /// Returns the seconds until the next stream may follow one with the given events.
    async fn pause(reconnection: &Reconnection, events: Vec<Sse>) -> u64 {
        let events = stream::iter(events.into_iter().map(Ok)).boxed();
        reconnection.follow(events).count().await;
        let began = Instant::now();
        reconnection.wait().await;
        began.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn pause_grows_while_streams_are_empty() {
        let reconnection = Reconnection::default();
        for (event, seconds) in
            [(Sse::default().retry(0), [1..=1, 2..=2, 4..=5]), (Sse::default().data("{}"), [1..=1, 1..=1, 1..=1])]
        {
            for seconds in seconds {
                assert!(seconds.contains(&pause(&reconnection, vec![event.clone()]).await), "{event:?}");
            }
        }
    }
}
