//! Lines that are on their way to the client.
//!
//! A client that does not read what it has asked for is not read either, until
//! it does: otherwise its answers would pile up here without a bound.

use std::{
    future::poll_fn,
    io, mem,
    sync::{Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use bytes::{Buf as _, Bytes};
use bytes_utils::SegmentedBuf;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _, BufWriter},
    sync::Notify,
};
use tokio_util::sync::CancellationToken;

/// The most bytes that may wait before the input is left alone.
const MOST_BYTES: usize = 32 << 20;

/// What a waiting line costs besides its bytes.
const BYTES_PER_LINE: usize = 4 << 10;

/// A line and its end.
const SEGMENTS: usize = 2;

/// With so many lines it is whoever writes that goes on. With fewer, more is
/// written in pieces; with more, a client that has asked for many things at once
/// waits for all of them, and then the server for the client.
const ENOUGH_LINES: usize = 4;

/// Where lines wait. Not a channel, because whoever writes takes all of them
/// together, and because what is bounded is their bytes.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    waiting: Mutex<Waiting>,
    /// There are lines, or there will be none any more.
    came: Notify,
    /// There is room again.
    room: Notify,
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: SegmentedBuf<Bytes>,
    /// Of all lines that are not written yet, those included that are being written.
    cost: usize,
}

impl WriteQueue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line, without its end. When nobody writes any more it goes nowhere.
    pub(super) fn push(&self, line: Bytes) {
        let mut waiting = self.lock();
        let is_first = !waiting.lines.has_remaining();
        waiting.cost += line.len() + BYTES_PER_LINE;
        waiting.lines.push(line);
        waiting.lines.push(Bytes::from_static(b"\n"));
        drop(waiting);
        if is_first {
            self.came.notify_one();
        }
    }

    /// Waits until more may come.
    pub(super) async fn has_room(&self) {
        loop {
            // Made before the look, so that what happens behind it is not missed.
            let room = self.room.notified();
            let (cost, lines) = {
                let waiting = self.lock();
                (waiting.cost, waiting.lines.segments() / SEGMENTS)
            };
            if lines >= ENOUGH_LINES {
                step_back().await;
            }
            if cost <= MOST_BYTES {
                return;
            }
            tokio::select! {
                () = room => {}
                () = self.closed.cancelled() => return,
            }
        }
    }

    /// From here on nothing is written but what is waiting.
    pub(super) fn close(&self) {
        self.closed.cancel();
        self.came.notify_one();
    }

    /// Waits until nothing is written any more.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Waits for lines and takes them, with what they cost; `None` when there will be none.
    async fn take(&self) -> Option<(SegmentedBuf<Bytes>, usize)> {
        loop {
            {
                let mut waiting = self.lock();
                if waiting.lines.has_remaining() {
                    return Some((mem::take(&mut waiting.lines), waiting.cost));
                }
            }
            if self.closed.is_cancelled() {
                return None;
            }
            self.came.notified().await;
        }
    }

    /// Writes lines as they come, until the outbox is closed. When writing fails, it is.
    pub(super) async fn write_to(&self, output: impl AsyncWrite + Unpin) -> io::Result<()> {
        let _closed = self.closed.clone().drop_guard();
        // Few lines are copied into one piece, many are handed over as they are.
        let mut output = BufWriter::new(output);
        while let Some((mut lines, cost)) = self.take().await {
            output.write_all_buf(&mut lines).await?;
            output.flush().await?;
            self.lock().cost -= cost;
            self.room.notify_waiters();
        }
        Ok(())
    }
}

/// Lets others go on. Not the runtime's own way, which asks the system for news before.
async fn step_back() {
    let mut has_stepped = false;
    poll_fn(|context| {
        if mem::replace(&mut has_stepped, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tokio::{io::AsyncReadExt as _, time::timeout};

    use super::*;

    fn line(bytes: usize) -> Bytes {
        Bytes::from(vec![b'x'; bytes])
    }

    #[tokio::test]
    async fn lines_come_out_in_their_order_each_with_its_end() {
        let outbox = WriteQueue::default();
        let lines = [line(1), line(20_000), line(0), line(70_000), line(3)];
        lines.iter().for_each(|line| outbox.push(line.clone()));
        outbox.close();
        let mut written = Vec::new();
        outbox.write_to(&mut written).await.expect("a vector takes everything");
        let expected: Vec<u8> = lines.iter().flat_map(|line| [&line[..], b"\n"].concat()).collect();
        assert!(written == expected);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_asks_for_room_waits_until_lines_are_read() {
        let outbox = Arc::new(WriteQueue::default());
        let (mut client, output) = tokio::io::duplex(1 << 20);
        let writing = tokio::spawn({
            let outbox = Arc::clone(&outbox);
            async move { outbox.write_to(output).await }
        });
        let lines = MOST_BYTES / (1 << 20) + 1;
        for _ in 0..lines {
            outbox.push(line(1 << 20));
        }
        timeout(Duration::from_secs(1), outbox.has_room()).await.expect_err("nobody reads");
        let mut read = vec![0; lines * ((1 << 20) + 1)];
        client.read_exact(&mut read).await.expect("it is written");
        timeout(Duration::from_secs(1), outbox.has_room()).await.expect("everything is read");
        outbox.close();
        writing.await.expect("it ends").expect("nothing fails");
    }

    #[tokio::test(start_paused = true)]
    async fn when_nobody_can_read_it_is_closed_and_keeps_nobody_waiting() {
        let outbox = WriteQueue::default();
        for _ in 0..=MOST_BYTES / (1 << 20) {
            outbox.push(line(1 << 20));
        }
        let (client, output) = tokio::io::duplex(64);
        drop(client);
        outbox.write_to(output).await.expect_err("nobody is there");
        timeout(Duration::from_secs(1), async {
            outbox.closed().await;
            outbox.has_room().await;
        })
        .await
        .expect("nobody waits");
    }
}
