//! Pipes of this process without a thread in between.
//!
//! The other end, or a shell around both, may hold the same open pipe, so that it
//! is never made non-blocking. What is asked first is whether it would block.

use std::{
    io::{self, IoSlice},
    os::fd::{AsFd, OwnedFd},
    pin::Pin,
    task::{Context, Poll, ready},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    pipe::PIPE_BUF,
};
use tokio::{
    fs::File,
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf, unix::AsyncFd},
};

/// What is longer is written by another thread, in one piece. What is not, is
/// written in pieces that a pipe with room in it takes without waiting.
const SHORT: usize = 4 * PIPE_BUF;

/// stdin, when it is something that one can wait for.
#[derive(Debug)]
pub(super) struct Input(AsyncFd<OwnedFd>);

impl Input {
    #[expect(deprecated, reason = "it is unsound for descriptors that somebody else closes, and this one is owned")]
    pub(super) fn stdin() -> Option<Input> {
        let pipe = io::stdin().as_fd().try_clone_to_owned().ok()?;
        AsyncFd::with_interest(pipe, Interest::READABLE).ok().map(Input)
    }
}

impl AsyncRead for Input {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(context))?;
            // Whoever else reads from the same pipe may have been faster.
            if !is_ready(self.0.get_ref(), PollFlags::IN) {
                guard.clear_ready();
                continue;
            }
            let room = buffer.initialize_unfilled();
            match rustix::io::read(self.0.get_ref(), room) {
                Ok(read) => {
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}

/// Whether something can be done at once. What fails here fails there too.
fn is_ready(pipe: impl AsFd, what: PollFlags) -> bool {
    poll(&mut [PollFd::new(&pipe, what)], Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Writes as if the pipe were non-blocking, for this one time (Linux 6.5 and later).
#[cfg(target_os = "linux")]
fn without_waiting(pipe: impl AsFd, pieces: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
    const HERE: u64 = u64::MAX;
    rustix::io::pwritev2(pipe, pieces, HERE, rustix::io::ReadWriteFlags::NOWAIT)
}

/// A pipe to write to. What would wait for a reader waits on another thread.
#[derive(Debug)]
pub(super) struct Output {
    own: OwnedFd,
    threaded: File,
    /// Whether the other thread may still be writing.
    is_waiting: bool,
}

impl Output {
    pub(super) fn new(own: OwnedFd) -> io::Result<Output> {
        let threaded = File::from_std(own.try_clone()?.into());
        Ok(Output { own, threaded, is_waiting: false })
    }

    /// Writes as much as fits at once; `None` where that is nothing.
    fn at_once(&self, pieces: &[IoSlice<'_>]) -> Option<io::Result<usize>> {
        if self.is_waiting {
            return None;
        }
        #[cfg(target_os = "linux")]
        match without_waiting(&self.own, pieces) {
            Err(Errno::INTR | Errno::AGAIN) => return None,
            // Older kernels, and sandboxes that do not know the call.
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM | Errno::SPIPE) => {}
            written => return Some(written.map_err(io::Error::from)),
        }
        let bytes = first(pieces);
        if bytes.len() > SHORT || !is_ready(&self.own, PollFlags::OUT) {
            return None;
        }
        match rustix::io::write(&self.own, &bytes[..bytes.len().min(PIPE_BUF)]) {
            Err(Errno::INTR | Errno::AGAIN) => None,
            written => Some(written.map_err(io::Error::from)),
        }
    }
}

/// The first piece with something in it.
fn first<'a>(pieces: &'a [IoSlice<'_>]) -> &'a [u8] {
    pieces.iter().find(|piece| !piece.is_empty()).map_or(&[], |piece| piece)
}

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(written) = self.at_once(pieces) {
            return Poll::Ready(written);
        }
        self.is_waiting = true;
        Pin::new(&mut self.threaded).poll_write(context, first(pieces))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_waiting {
            ready!(Pin::new(&mut self.threaded).poll_flush(context))?;
            self.is_waiting = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}
