//! A stream that fails when its peer does not read.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

use super::{Budget, MIN_PROGRESS};

/// A stream whose writes fail with [`io::ErrorKind::TimedOut`] if the peer takes less than [`MIN_PROGRESS`] within the
/// budget's progress time-out. Reading is not bounded here, because an idle connection reads nothing either.
#[derive(Debug)]
pub(in crate::http) struct Progressing<S> {
    stream: S,
    budget: Budget,
    /// Set from the first write that has to wait until everything is written.
    blocked: Option<Box<Window>>,
}

/// A time in which the peer has to take something.
#[derive(Debug)]
struct Window {
    end: Pin<Box<Sleep>>,
    length: Duration,
    written: usize,
}

impl<S> Progressing<S> {
    pub(in crate::http) fn new(stream: S, budget: &Budget) -> Progressing<S> {
        Progressing { stream, budget: budget.clone(), blocked: None }
    }

    fn follow<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        count: impl Fn(&T) -> usize,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        match written {
            Poll::Ready(Ok(value)) => {
                if let Some(window) = &mut self.blocked {
                    window.written += count(&value);
                }
                Poll::Ready(Ok(value))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => self.wait(cx).map(Err),
        }
    }

    /// Waits for the end of a window without enough progress.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let budget = &self.budget;
        let window = self.blocked.get_or_insert_with(|| {
            let length = budget.progress_timeout();
            Box::new(Window { end: Box::pin(sleep(length)), length, written: 0 })
        });
        loop {
            ready!(window.end.as_mut().poll(cx));
            if window.written < MIN_PROGRESS {
                budget.stalled();
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            window.written = 0;
            window.end.as_mut().reset(Instant::now() + window.length);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Progressing<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Progressing<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.follow(written, |bytes| *bytes, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.follow(written, |bytes| *bytes, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        let flushed = ready!(self.follow(flushed, |()| 0, cx));
        self.blocked = None;
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.follow(ended, |()| 0, cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::{super::ConnectionLimits, *};

    // req: S-58
    #[tokio::test(start_paused = true)]
    async fn peer_that_reads_too_little_is_given_up() {
        let budget = Budget::new(&ConnectionLimits::default());
        let patience = budget.progress_timeout();
        let answer = vec![b'x'; 10 * MIN_PROGRESS];
        for (bytes, is_enough) in [(0, false), (1_000, false), (MIN_PROGRESS, true)] {
            let (mut client, server) = duplex(1_000);
            let mut server = Progressing::new(server, &budget);
            let reading = tokio::spawn(async move {
                let mut buffer = vec![0; bytes];
                loop {
                    tokio::time::sleep(patience / 2).await;
                    if bytes > 0 && client.read_exact(&mut buffer).await.is_err() {
                        return;
                    }
                }
            });
            let begun = Instant::now();
            let written = async {
                server.write_all(&answer).await?;
                server.flush().await
            };
            let written = written.await;
            assert_eq!(written.is_ok(), is_enough, "{bytes} bytes: {written:?} after {:?}", begun.elapsed());
            assert!(is_enough || begun.elapsed() < patience + Duration::from_secs(1), "{:?}", begun.elapsed());
            // A connection that was slow once has the whole time for its next response.
            assert!(!is_enough || server.blocked.is_none());
            reading.abort();
        }
        assert_eq!(budget.usage().closed.last(), Some(&("stalled", 2)));
    }
}
