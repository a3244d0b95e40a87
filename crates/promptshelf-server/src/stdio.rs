//! The process's own stdin and stdout as the transport of one client.
//!
//! On Linux, anonymous pipes are opened again through `/proc/self/fd` and used with tokio's
//! non-blocking pipes: the flag `O_NONBLOCK` belongs to an open file, which a shell or the parent may
//! share, so it is never set on the inherited one. Everything else (files, terminals, sockets, named
//! pipes, other systems) is read and written by tokio's threads for blocking I/O.
//!
//! Lines, messages and the order of responses are deliberately elsewhere, in `promptshelf_mcp::stdio`.

use std::io;

use promptshelf_mcp::Server;
use tokio::sync::oneshot;
use tokio_util::{io::InspectWriter, task::AbortOnDropHandle};

use crate::library::Library;

impl Library {
    /// Serves the client at the other end of stdin and stdout, until stdin ends, stdout is closed or the
    /// server is shut down.
    ///
    /// From here on stdout belongs to the protocol: on Unix, other output of this process to stdout is
    /// redirected to stderr. Needs a Tokio runtime with I/O and time enabled.
    ///
    /// Where stdin is not a pipe, a thread may still wait for its next bytes when this future has
    /// completed, and dropping the runtime would wait for that thread:
    /// use `Runtime::shutdown_background`, or exit the process.
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
        let (unanswered, is_answered) = oneshot::channel();
        let _reload_task = self.loader().spawn_after(async { drop(is_answered.await) });
        serve(self.server(), unanswered).await
    }
}

/// Drops `unanswered` at the first write.
async fn serve(server: &Server, unanswered: oneshot::Sender<()>) -> io::Result<()> {
    let mut unanswered = Some(unanswered);
    let output = InspectWriter::new(protocol_output()?, move |_| drop(unanswered.take()));
    let server = server.clone();
    // A task, because waking the future that `block_on` was called with takes a system call each time.
    let serving = AbortOnDropHandle::new(tokio::spawn(async move {
        #[cfg(target_os = "linux")]
        if let Some(input) = linux::reopen_to_read(&io::stdin()) {
            return server.serve_stdio(input, output).await;
        }
        server.serve_stdio(tokio::io::stdin(), output).await
    }));
    match serving.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

#[cfg(target_os = "linux")]
type Output = tokio_util::either::Either<tokio::net::unix::pipe::Sender, tokio::fs::File>;

#[cfg(all(unix, not(target_os = "linux")))]
type Output = tokio::fs::File;

/// Reserves stdout for the protocol: other output of this process to stdout, such as that of a
/// prompt's own code, goes to stderr from here on.
#[cfg(unix)]
fn protocol_output() -> io::Result<Output> {
    use std::os::fd::AsFd as _;

    let inherited = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    #[cfg(target_os = "linux")]
    return Ok(linux::output(inherited));
    #[cfg(not(target_os = "linux"))]
    Ok(tokio::fs::File::from_std(inherited.into()))
}

#[cfg(not(unix))]
fn protocol_output() -> io::Result<tokio::io::Stdout> {
    Ok(tokio::io::stdout())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        fs,
        os::fd::{AsFd, AsRawFd, OwnedFd},
        path::PathBuf,
    };

    use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
    use tokio::{fs::File, net::unix::pipe};
    use tokio_util::either::Either;

    /// The capacity of stdout in bytes, where the system allows it: several pages of a list, so that a
    /// client with several requests at once is not waited for after each. The default is 64 KiB.
    pub(super) const CAPACITY: usize = 256 << 10;

    /// Returns the path of an anonymous pipe (see proc(5) for the form of the link).
    ///
    /// Named pipes are left out: one that is opened again after its writers have gone never reports its end.
    fn path_of_pipe(inherited: &impl AsRawFd) -> Option<PathBuf> {
        let path = PathBuf::from(format!("/proc/self/fd/{}", inherited.as_raw_fd()));
        let is_anonymous = fs::read_link(&path).ok()?.to_str()?.starts_with("pipe:[");
        is_anonymous.then_some(path)
    }

    /// Opens a pipe again, non-blocking. `None` if it is not an anonymous pipe, or belongs to another
    /// user, or `/proc` is not mounted.
    pub(super) fn reopen_to_read(inherited: &impl AsRawFd) -> Option<pipe::Receiver> {
        pipe::OpenOptions::new().open_receiver(path_of_pipe(inherited)?).ok()
    }

    /// Also `None` if the pipe has lost its reader: the first write to the inherited one reports that.
    fn reopen_to_write(inherited: &impl AsRawFd) -> Option<pipe::Sender> {
        pipe::OpenOptions::new().open_sender(path_of_pipe(inherited)?).ok()
    }

    pub(super) fn output(inherited: OwnedFd) -> super::Output {
        match reopen_to_write(&inherited) {
            Some(pipe) => {
                enlarge(&pipe);
                Either::Left(pipe)
            }
            None => Either::Right(File::from_std(inherited.into())),
        }
    }

    /// Enlarges a pipe to [`CAPACITY`]. A user with many pipes may have reached the system's limit;
    /// then the pipe stays as it is.
    fn enlarge(pipe: impl AsFd) {
        if fcntl_getpipe_size(&pipe).is_ok_and(|size| size < CAPACITY) {
            let _ = fcntl_setpipe_size(&pipe, CAPACITY);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
