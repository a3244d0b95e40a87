//! One conversation over a pair of pipes, one message a line.
//!
//! Both eras share the pipe: a request with modern `_meta` is modern, whatever
//! came before it, and everything else rests on `initialize`. Nothing but
//! protocol lines is ever written.

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

mod line;
mod lines;
mod outbox;
mod question;

use line::{InFlight, Pipe};
use lines::{Line, Lines};
use outbox::WriteQueue;
use question::Questions;

/// The longest line that is read, in bytes.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// For how long requests go on being answered once the input has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

impl Server {
    /// Serves the person at this machine over a pair of pipes, until the input
    /// ends, the output is closed, or the server shuts down. Requests that
    /// came before the end are answered.
    ///
    /// # Errors
    ///
    /// What reading the input or writing the output fails with; a closed output
    /// is no error but an end.
    pub async fn serve_stdio<R, W>(&self, input: R, output: W) -> io::Result<()>
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let outbox = Arc::new(WriteQueue::default());
        let writer = AbortOnDropHandle::new(tokio::spawn({
            let outbox = Arc::clone(&outbox);
            async move { outbox.write_to(output).await }
        }));
        let pipe = Arc::new(Pipe {
            server: self.clone(),
            caller: Caller::local(),
            conversation: Arc::new(Conversation::default()),
            outbox,
            in_flight: InFlight::default(),
            questions: Questions::default(),
            tasks: TaskTracker::new(),
            ended: CancellationToken::new(),
        });
        let read = read_lines(&pipe, input).await;
        pipe.tasks.close();
        // Subscriptions end now, everything else may finish. When the server
        // shuts down they end by themselves, in the way the protocol asks for.
        if !self.shutdown_token().is_cancelled() {
            pipe.ended.cancel();
        }
        // Nobody is there any more to answer a question.
        pipe.questions.give_up();
        if tokio::time::timeout(LAST_ANSWERS, pipe.tasks.wait()).await.is_err() {
            tracing::warn!("requests were left unanswered at the end of the conversation");
            pipe.in_flight.cancel_all();
        }
        pipe.outbox.close();
        let written = writer.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        read.and(match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        })
    }
}

/// Reads lines until there are no more, and takes each of them.
async fn read_lines(pipe: &Arc<Pipe>, input: impl AsyncRead + Unpin) -> io::Result<()> {
    let mut lines = FramedRead::new(input, Lines::new(MAX_LINE_BYTES));
    let mut slot = ReusableBoxFuture::new(ready(()));
    // One for all lines, so that it does not begin to wait anew for each.
    let mut ended = pin!(async {
        tokio::select! {
            () = pipe.server.shutdown_token().cancelled() => {}
            () = pipe.outbox.closed() => {}
        }
    });
    loop {
        let line = tokio::select! {
            // Lines first. The end is seen while they keep coming, too: reading lets others go on
            // from time to time, and so does an outbox with enough in it.
            biased;
            line = async {
                pipe.outbox.has_room().await;
                lines.next().await
            } => line,
            () = &mut ended => return Ok(()),
        };
        match line.transpose()? {
            None => return Ok(()),
            Some(Line::Whole(line)) if line.trim_ascii().is_empty() => {}
            // Nearly every answer is ready at once and is written before the next line is read;
            // what has to wait for something goes on by itself.
            Some(Line::Whole(line)) => {
                slot.set(Arc::clone(pipe).take(line));
                if poll_fn(|context| Poll::Ready(slot.poll(context))).await.is_pending() {
                    drop(pipe.tasks.spawn(mem::replace(&mut slot, ReusableBoxFuture::new(ready(())))));
                }
            }
            Some(Line::TooLong) => {
                let error = WireError::parse(format!("A line can be at most {MAX_LINE_BYTES} bytes long"));
                pipe.outbox.push(jsonrpc::error(None, &error));
            }
        }
    }
}
