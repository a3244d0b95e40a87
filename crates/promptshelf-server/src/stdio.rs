//! This process's own pipes as a conversation: stdin, and a stdout that nothing
//! else can write to.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use promptshelf_mcp::Server;
use tokio::{io::AsyncWrite, sync::oneshot};
use tokio_util::task::AbortOnDropHandle;

use crate::library::Library;

#[cfg(unix)]
mod pipes;

impl Library {
    /// Serves the client at the other end of stdin and stdout, until stdin ends, stdout is closed or the
    /// server is shut down.
    ///
    /// From here on stdout belongs to the protocol: on Unix, other output of this process to stdout is
    /// redirected to stderr. Needs a Tokio runtime with I/O enabled.
    ///
    /// ```no_run
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let library = promptshelf_server::Library::builder().folder("prompts").build()?;
    /// library.serve_stdio().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When stdin cannot be read or stdout cannot be written. A client that has closed its end of
    /// stdout is not an error.
    pub async fn serve_stdio(self) -> io::Result<()> {
        // Watching starts after the first response, which should not wait for it; before that there is
        // no subscription.
        let (answered, is_answered) = oneshot::channel();
        let _follower = self.loader().spawn_after(async { drop(is_answered.await) });
        serve(self.server(), answered).await
    }
}

/// Serves stdin and stdout until stdin ends or the server is shut down. A
/// client that has closed its end of stdout is no error: it has gone. Tells when
/// the first answer is on its way.
async fn serve(server: &Server, answered: oneshot::Sender<()>) -> io::Result<()> {
    let output = Telling { output: protocol_output()?, answered: Some(answered) };
    let server = server.clone();
    // As a task: the future that a runtime was started with is woken with a system call.
    let served = AbortOnDropHandle::new(tokio::spawn(async move {
        #[cfg(unix)]
        if let Some(input) = pipes::Input::stdin() {
            return server.serve_stdio(input, output).await;
        }
        // A file, or nothing at all: there is nothing to wait for.
        server.serve_stdio(tokio::io::stdin(), output).await
    }));
    match served.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        ended => ended,
    }
}

/// stdout for the protocol alone: whatever else in this process prints (a
/// prompt's own code, a library it uses) is sent to stderr from here on.
#[cfg(unix)]
fn protocol_output() -> io::Result<pipes::Output> {
    use std::os::fd::AsFd;

    let pipe = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    pipes::Output::new(pipe)
}

#[cfg(not(unix))]
fn protocol_output() -> io::Result<tokio::io::Stdout> {
    Ok(tokio::io::stdout())
}

/// An output that tells of the first write to it.
#[derive(Debug)]
struct Telling<W> {
    output: W,
    answered: Option<oneshot::Sender<()>>,
}

impl<W: AsyncWrite + Unpin> Telling<W> {
    fn tell(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready()
            && let Some(answered) = self.answered.take()
        {
            // Whoever would hear it has ended, and so does this.
            answered.send(()).ok();
        }
        written
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Telling<W> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.output).poll_write(context, bytes);
        self.tell(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.output).poll_write_vectored(context, pieces);
        self.tell(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.output.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_shutdown(context)
    }
}
