//! Queue of lines to be written, and the one task that writes them.
//!
//! While a client does not read its responses, its requests are not read either: otherwise the queue
//! would grow without a bound.

use std::{
    collections::VecDeque,
    future::poll_fn,
    io::{self, IoSlice},
    mem,
    task::Poll,
};

use bytes::{Buf, Bytes};
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _, BufWriter},
    sync::Notify,
};
use tokio_util::sync::CancellationToken;

/// The queued bytes from which no more input is read.
const MAX_BYTES: usize = 32 << 20;

/// The memory that a queued line is counted with besides its bytes.
const BYTES_PER_LINE: usize = 4 << 10;

/// The queued lines from which the reader yields to the writer. With fewer, there are more system calls;
/// with more, a client with many requests at once waits for all responses, and then the server for the
/// client (docs/performance.md, stdio at 16).
const LINES_PER_WRITE: usize = 4;

/// Lines to be written. Not a channel, because the writer takes all lines at once, and because the bound
/// is in bytes.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    queued: Mutex<Queued>,
    pushed: Notify,
    written: Notify,
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct Queued {
    lines: Lines,
    /// The bytes of all unwritten lines, including those that are being written.
    bytes: usize,
}

/// Lines that are written together without being copied together.
#[derive(Debug, Default)]
struct Lines {
    /// None of them is empty.
    segments: VecDeque<Bytes>,
    bytes: usize,
    count: usize,
}

impl Lines {
    fn push(&mut self, line: Bytes) {
        self.count += 1;
        for segment in [line, Bytes::from_static(b"\n")] {
            self.bytes += segment.len();
            self.segments.extend(Some(segment).filter(|segment| !segment.is_empty()));
        }
    }
}

impl Buf for Lines {
    fn remaining(&self) -> usize {
        self.bytes
    }

    fn chunk(&self) -> &[u8] {
        self.segments.front().map_or(&[], |segment| segment)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let filled = slices.iter_mut().zip(&self.segments).map(|(slice, segment)| *slice = IoSlice::new(segment));
        filled.count()
    }

    fn advance(&mut self, mut count: usize) {
        self.bytes -= count;
        while let Some(first) = self.segments.front_mut().filter(|_| count > 0) {
            let taken = count.min(first.len());
            count -= taken;
            if taken < first.len() {
                first.advance(taken);
            } else {
                self.segments.pop_front();
            }
        }
    }
}

impl WriteQueue {
    fn lock(&self) -> MutexGuard<'_, Queued> {
        self.queued.lock()
    }

    /// Queues a line, without its line feed. Once the output has failed, lines are discarded.
    pub(super) fn push(&self, line: Bytes) {
        let mut queued = self.lock();
        let is_first = !queued.lines.has_remaining();
        queued.bytes += line.len() + BYTES_PER_LINE;
        queued.lines.push(line);
        drop(queued);
        if is_first {
            self.pushed.notify_one();
        }
    }

    /// Waits until more may be queued.
    pub(super) async fn capacity(&self) {
        loop {
            // Created before the check, so that a notification after it is not missed.
            let written = self.written.notified();
            let (bytes, lines) = {
                let queued = self.lock();
                (queued.bytes, queued.lines.count)
            };
            if lines >= LINES_PER_WRITE {
                yield_once().await;
            }
            if bytes <= MAX_BYTES {
                return;
            }
            tokio::select! {
                () = written => {}
                () = self.closed.cancelled() => return,
            }
        }
    }

    /// Ends the writer once it has written the queued lines.
    pub(super) fn close(&self) {
        self.closed.cancel();
        self.pushed.notify_one();
    }

    /// Waits until the queue is closed or the output has failed.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Waits for lines and takes all of them, with their size; `None` when the queue is closed and empty.
    async fn take(&self) -> Option<(Lines, usize)> {
        loop {
            {
                let mut queued = self.lock();
                if queued.lines.has_remaining() {
                    return Some((mem::take(&mut queued.lines), queued.bytes));
                }
            }
            if self.closed.is_cancelled() {
                return None;
            }
            self.pushed.notified().await;
        }
    }

    /// Writes lines until the queue is closed. An error closes the queue.
    pub(super) async fn write_to(&self, output: impl AsyncWrite + Unpin) -> io::Result<()> {
        let _closed = self.closed.clone().drop_guard();
        // A short line is copied into one buffer with its line feed; larger ones are written in place.
        let mut output = BufWriter::new(output);
        while let Some((mut lines, bytes)) = self.take().await {
            output.write_all_buf(&mut lines).await?;
            output.flush().await?;
            self.lock().bytes -= bytes;
            self.written.notify_waiters();
        }
        Ok(())
    }
}

/// Yields to other tasks. Unlike `tokio::task::yield_now` it does not poll the I/O driver first, which
/// would take a system call every four lines.
async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if mem::replace(&mut has_yielded, true) {
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
    async fn lines_keep_their_order() {
        let queue = WriteQueue::default();
        let lines = [line(1), line(20_000), line(0), line(70_000), line(3)];
        lines.iter().for_each(|line| queue.push(line.clone()));
        queue.close();
        let mut written = Vec::new();
        queue.write_to(&mut written).await.expect("a vector accepts every write");
        let expected: Vec<u8> = lines.iter().flat_map(|line| [&line[..], b"\n"].concat()).collect();
        assert!(written == expected);
    }

    #[tokio::test(start_paused = true)]
    async fn full_queue_waits_for_the_client() {
        let queue = Arc::new(WriteQueue::default());
        let (mut client, output) = tokio::io::duplex(1 << 20);
        let writing = tokio::spawn({
            let queue = Arc::clone(&queue);
            async move { queue.write_to(output).await }
        });
        let lines = MAX_BYTES / (1 << 20) + 1;
        for _ in 0..lines {
            queue.push(line(1 << 20));
        }
        timeout(Duration::from_secs(1), queue.capacity()).await.expect_err("the client does not read");
        let mut read = vec![0; lines * ((1 << 20) + 1)];
        client.read_exact(&mut read).await.expect("the lines are written");
        timeout(Duration::from_secs(1), queue.capacity()).await.expect("every line has been read");
        queue.close();
        writing.await.expect("the task ends").expect("writing succeeds");
    }

    #[tokio::test(start_paused = true)]
    async fn failed_output_closes_the_queue() {
        let queue = WriteQueue::default();
        for _ in 0..=MAX_BYTES / (1 << 20) {
            queue.push(line(1 << 20));
        }
        let (client, output) = tokio::io::duplex(64);
        drop(client);
        queue.write_to(output).await.expect_err("the client is gone");
        timeout(Duration::from_secs(1), async {
            queue.closed().await;
            queue.capacity().await;
        })
        .await
        .expect("no task waits");
    }
}
