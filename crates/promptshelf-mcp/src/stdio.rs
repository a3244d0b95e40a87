//! The stdio transport: one conversation over an input and an output, one message a line.
//!
//! Both eras share the transport: a request with modern `_meta` is modern, whatever came before it, and
//! everything else depends on `initialize`. Only protocol lines are written to the output.
//!
//! Opening the process's own stdin and stdout is deliberately elsewhere (`promptshelf_server`).

use std::{
    future::{poll_fn, ready},
    io, mem,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use futures_util::StreamExt as _;
use promptshelf_service::Caller;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::{
    codec::FramedRead,
    sync::{CancellationToken, ReusableBoxFuture},
    task::{AbortOnDropHandle, TaskTracker},
};

use crate::{Server, conversation::Conversation, error_code::WireError, jsonrpc};

mod connection;
mod elicitations;
mod in_flight;
mod lines;
mod write_queue;

use connection::Connection;
use elicitations::Elicitations;
use in_flight::InFlight;
use lines::{Line, Lines};
use write_queue::WriteQueue;

/// The longest line that is read, in bytes.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// The time that requests have to finish once the input has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

impl Server {
    /// Serves the local caller, until the input ends, the output is closed, or the server shuts down.
    /// Requests that came before the end are answered, for at most five seconds.
    ///
    /// A line of more than [`MAX_LINE_BYTES`] is refused without being buffered. When responses of
    /// 32 MiB wait for a client that does not read, its input is not read either.
    ///
    /// # Errors
    ///
    /// When the input cannot be read or the output cannot be written. A closed output
    /// ([`io::ErrorKind::BrokenPipe`]) is a regular end.
    pub async fn serve_stdio<R, W>(&self, input: R, output: W) -> io::Result<()>
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let write_queue = Arc::new(WriteQueue::default());
        let writer = AbortOnDropHandle::new(tokio::spawn({
            let write_queue = Arc::clone(&write_queue);
            async move { write_queue.write_to(output).await }
        }));
        let connection = Arc::new(Connection {
            server: self.clone(),
            caller: Caller::local(),
            conversation: Arc::new(Conversation::default()),
            write_queue,
            in_flight: InFlight::default(),
            elicitations: Elicitations::default(),
            tasks: TaskTracker::new(),
            ended: CancellationToken::new(),
        });
        let read = read_lines(&connection, input).await;
        connection.tasks.close();
        // Subscriptions end now; other requests may finish. At a shutdown of the server subscriptions
        // end by themselves, with the response that the protocol requires.
        if !self.shutdown_token().is_cancelled() {
            connection.ended.cancel();
        }
        // The client cannot respond any more.
        connection.elicitations.cancel_all();
        if tokio::time::timeout(DRAIN_TIMEOUT, connection.tasks.wait()).await.is_err() {
            tracing::warn!("the input ended and requests in progress did not finish in time; they were cancelled");
            connection.in_flight.cancel_all();
        }
        connection.write_queue.close();
        let written = writer.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        read.and(match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        })
    }
}

async fn read_lines(connection: &Arc<Connection>, input: impl AsyncRead + Unpin) -> io::Result<()> {
    let mut lines = FramedRead::new(input, Lines::new(MAX_LINE_BYTES));
    let mut slot = ReusableBoxFuture::new(ready(()));
    // One future for all lines, so that its registration is not repeated for each.
    let mut ended = pin!(async {
        tokio::select! {
            () = connection.server.shutdown_token().cancelled() => {}
            () = connection.write_queue.closed() => {}
        }
    });
    loop {
        let line = tokio::select! {
            // Lines first. The end is noticed while lines keep coming, too: reading yields from time to
            // time (tokio's budget), and so does a write queue with enough lines in it.
            biased;
            line = async {
                connection.write_queue.capacity().await;
                lines.next().await
            } => line,
            () = &mut ended => return Ok(()),
        };
        match line.transpose()? {
            None => return Ok(()),
            Some(Line::Whole(line)) if line.trim_ascii().is_empty() => {}
            // Nearly every response is ready at the first poll and is queued before the next line is
            // read; a request that waits continues as a task.
            Some(Line::Whole(line)) => {
                slot.set(Arc::clone(connection).handle(line));
                if poll_fn(|context| Poll::Ready(slot.poll(context))).await.is_pending() {
                    drop(connection.tasks.spawn(mem::replace(&mut slot, ReusableBoxFuture::new(ready(())))));
                }
            }
            Some(Line::TooLong) => {
                let error = WireError::parse(format!("A line can be at most {MAX_LINE_BYTES} bytes long"));
                connection.write_queue.push(jsonrpc::error(None, &error));
            }
        }
    }
}
