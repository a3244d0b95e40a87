//! Pipes of this process without a thread in between.
//!
//! The other end, or a shell around both, may hold the same open pipe, so that it
//! is never made non-blocking. Where the system can, a single read or write is
//! made so; everything else asks first whether it would block.

use std::{
    io::{self, IoSlice},
    os::fd::{AsFd, OwnedFd},
    pin::Pin,
    task::{Context, Poll, ready},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FileType, fstat},
    io::Errno,
    pipe::PIPE_BUF,
};
#[cfg(target_os = "linux")]
use rustix::{
    io::{ReadWriteFlags, preadv2, pwritev2},
    pipe::{fcntl_getpipe_size, fcntl_setpipe_size},
};
use tokio::{
    fs::File,
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf, unix::AsyncFd},
};

/// What is longer is written by another thread, in one piece. What is not, is
/// written in pieces that a pipe with room in it takes without waiting.
const SHORT: usize = 4 * PIPE_BUF;

/// What a pipe can hold; 64 KiB is Linux's default, and 1 MiB the most that it allows.
#[cfg(target_os = "linux")]
const WIDE: usize = 256 << 10;

/// stdin, when it is something that one can wait for.
#[derive(Debug)]
pub(super) struct Input {
    pipe: AsyncFd<OwnedFd>,
    /// Whether a single read can be made non-blocking (a pipe's, since Linux 6.5).
    has_nowait: bool,
    /// Whether a read that leaves room has taken all there was: of a terminal
    /// it takes a line.
    is_stream: bool,
}

impl Input {
    pub(super) fn stdin() -> Option<Input> {
        Input::new(io::stdin().as_fd().try_clone_to_owned().ok()?)
    }

    #[expect(deprecated, reason = "it is unsound for descriptors that somebody else closes, and this one is owned")]
    fn new(pipe: OwnedFd) -> Option<Input> {
        let kind = FileType::from_raw_mode(fstat(&pipe).ok()?.st_mode);
        Some(Input {
            pipe: AsyncFd::with_interest(pipe, Interest::READABLE).ok()?,
            has_nowait: cfg!(target_os = "linux"),
            is_stream: matches!(kind, FileType::Fifo | FileType::Socket),
        })
    }
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Input { pipe, has_nowait, is_stream } = &mut *self;
        loop {
            let mut guard = ready!(pipe.poll_read_ready(context))?;
            let room = buffer.initialize_unfilled();
            match read(pipe.get_ref(), room, has_nowait) {
                Ok(read) => {
                    // What comes from here on makes it ready again, and nobody has to ask.
                    if *is_stream && 0 < read && read < room.len() {
                        guard.clear_ready();
                    }
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

/// Reads what there is without waiting for more.
#[cfg_attr(not(target_os = "linux"), expect(unused_variables, reason = "elsewhere no read can be made non-blocking"))]
fn read(pipe: &OwnedFd, room: &mut [u8], has_nowait: &mut bool) -> rustix::io::Result<usize> {
    #[cfg(target_os = "linux")]
    if *has_nowait {
        match preadv2(pipe, &mut [io::IoSliceMut::new(room)], HERE, ReadWriteFlags::NOWAIT) {
            Err(error) if is_unknown(error) => *has_nowait = false,
            read => return read,
        }
    }
    // Whoever else reads from the same pipe may have been faster.
    if is_ready(pipe, PollFlags::IN) { rustix::io::read(pipe, room) } else { Err(Errno::AGAIN) }
}

/// The position of what has none.
#[cfg(target_os = "linux")]
const HERE: u64 = u64::MAX;

/// Whether a call is one that older kernels, sandboxes, or what is no pipe do not know.
#[cfg(target_os = "linux")]
fn is_unknown(error: Errno) -> bool {
    matches!(error, Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM | Errno::SPIPE)
}

/// Whether something can be done at once. What fails here fails there too.
fn is_ready(pipe: impl AsFd, what: PollFlags) -> bool {
    poll(&mut [PollFd::new(&pipe, what)], Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// A pipe to write to. Where it can be written to as if it were non-blocking,
/// whoever writes waits until it has room; elsewhere another thread waits.
#[derive(Debug)]
pub(super) struct Output {
    #[cfg(target_os = "linux")]
    pipe: Option<AsyncFd<OwnedFd>>,
    own: OwnedFd,
    threaded: File,
    /// Whether the other thread may still be writing.
    is_waiting: bool,
}

impl Output {
    pub(super) fn new(own: OwnedFd) -> io::Result<Output> {
        #[cfg(target_os = "linux")]
        widen(&own);
        Ok(Output {
            // A file cannot be waited for.
            #[cfg(target_os = "linux")]
            #[expect(deprecated, reason = "see `Input`")]
            pipe: AsyncFd::with_interest(own.try_clone()?, Interest::WRITABLE).ok(),
            threaded: File::from_std(own.try_clone()?.into()),
            own,
            is_waiting: false,
        })
    }

    /// Writes what there is room for, without another thread; `None` where this
    /// pipe cannot be written to like that (it takes Linux 6.5).
    #[cfg(target_os = "linux")]
    fn without_thread(&self, context: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Option<Poll<io::Result<usize>>> {
        let pipe = self.pipe.as_ref()?;
        loop {
            let mut guard = match pipe.poll_write_ready(context) {
                Poll::Ready(Ok(guard)) => guard,
                Poll::Ready(Err(error)) => return Some(Poll::Ready(Err(error))),
                Poll::Pending => return Some(Poll::Pending),
            };
            match pwritev2(pipe.get_ref(), pieces, HERE, ReadWriteFlags::NOWAIT) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(error) if is_unknown(error) => return None,
                written => return Some(Poll::Ready(written.map_err(io::Error::from))),
            }
        }
    }

    /// Writes as much as fits at once; `None` where that is nothing.
    fn at_once(&self, bytes: &[u8]) -> Option<io::Result<usize>> {
        if bytes.len() > SHORT || !is_ready(&self.own, PollFlags::OUT) {
            return None;
        }
        match rustix::io::write(&self.own, &bytes[..bytes.len().min(PIPE_BUF)]) {
            Err(Errno::INTR | Errno::AGAIN) => None,
            written => Some(written.map_err(io::Error::from)),
        }
    }
}

/// Makes room for some pages of a list, so that a client that asks for several
/// at once is not waited for after each.
#[cfg(target_os = "linux")]
fn widen(pipe: &OwnedFd) {
    // What is no pipe has no size, and whoever has many pipes may have no more room: it stays as it is.
    if fcntl_getpipe_size(pipe).is_ok_and(|size| size < WIDE) {
        let _ = fcntl_setpipe_size(pipe, WIDE);
    }
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
        if !self.is_waiting {
            #[cfg(target_os = "linux")]
            if let Some(written) = self.without_thread(context, pieces) {
                return written;
            }
            // Several pieces come when there is much to write: that is for the other thread, and together.
            if let [piece] = pieces
                && let Some(written) = self.at_once(piece)
            {
                return Poll::Ready(written);
            }
        }
        self.is_waiting = true;
        Pin::new(&mut self.threaded).poll_write_vectored(context, pieces)
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

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        time::Duration,
    };

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_util::bytes::Buf;

    use super::*;

    /// Writes more than a pipe holds, while nobody reads for a while.
    async fn write_to_a_slow_reader(change: impl FnOnce(&mut Output)) {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        let mut output = Output::new(writer).expect("it can be written to");
        change(&mut output);
        let read = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            let mut all = Vec::new();
            std::fs::File::from(reader).read_to_end(&mut all).map(|_| all)
        });
        let line: Vec<u8> = (0..=255).cycle().take(300_000).collect();
        for part in [&line[..], b"\n", b"short\n"] {
            output.write_all(part).await.expect("somebody reads");
        }
        // In two pieces.
        output.write_all_buf(&mut Buf::chain(&line[..], &b"\n"[..])).await.expect("somebody reads");
        output.flush().await.expect("somebody reads");
        drop(output);
        let read = read.join().expect("it reads").expect("it can be read");
        assert!(read == [&line[..], b"\nshort\n", &line, b"\n"].concat());
    }

    /// Reads what comes in pieces, to its end, in a room that it fills at times.
    async fn read_from_a_slow_writer(change: impl FnOnce(&mut Input)) {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        let mut input = Input::new(reader).expect("it can be waited for");
        change(&mut input);
        let written = std::thread::spawn(move || {
            let mut writer = std::fs::File::from(writer);
            for piece in 0..200_u8 {
                let piece = vec![piece; 1 << (piece % 13)];
                writer.write_all(&piece).expect("somebody reads");
                if piece.len() == 1 {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        });
        let (mut all, mut room) = (Vec::new(), [0; 1024]);
        loop {
            match input.read(&mut room).await.expect("it can be read") {
                0 => break,
                read => all.extend_from_slice(&room[..read]),
            }
        }
        written.join().expect("it writes");
        let wanted: Vec<u8> = (0..200_u8).flat_map(|piece| vec![piece; 1 << (piece % 13)]).collect();
        assert!(all == wanted);
    }

    #[tokio::test]
    async fn a_pipe_that_is_empty_is_waited_for() {
        read_from_a_slow_writer(|_| {}).await;
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn where_the_kernel_is_older_it_is_asked_first() {
        read_from_a_slow_writer(|input| input.has_nowait = false).await;
    }

    #[tokio::test]
    async fn of_what_is_no_stream_a_short_read_is_not_the_last() {
        read_from_a_slow_writer(|input| input.is_stream = false).await;
    }

    #[tokio::test]
    async fn a_pipe_that_is_full_is_waited_for() {
        write_to_a_slow_reader(|_| {}).await;
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_pipe_is_made_wide_and_never_narrow() {
        for (before, after) in [(4 << 10, WIDE), (1 << 20, 1 << 20)] {
            let (_reader, writer) = rustix::pipe::pipe().expect("a pipe");
            fcntl_setpipe_size(&writer, before).expect("a pipe can have this size");
            let output = Output::new(writer).expect("it can be written to");
            assert_eq!(fcntl_getpipe_size(&output.own), Ok(after));
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn where_the_kernel_is_older_another_thread_waits() {
        write_to_a_slow_reader(|output| output.pipe = None).await;
    }

    #[tokio::test]
    async fn a_reader_that_has_gone_is_an_error() {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        drop(reader);
        let mut output = Output::new(writer).expect("it can be written to");
        let written = output.write_all(b"line\n").await;
        assert_eq!(written.map_err(|error| error.kind()), Err(io::ErrorKind::BrokenPipe));
    }
}
