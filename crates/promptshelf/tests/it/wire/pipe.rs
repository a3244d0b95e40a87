//! A pair of pipes: to a server in this process, or to the program itself.

use std::{io, path::Path, process::Stdio};

use promptshelf::{Library, mcp::Server, source::ReloadTask};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, Lines, duplex, split},
    process::{Child, Command},
    task::JoinHandle,
};

use super::patiently;
use crate::program::promptshelf;

/// What the pipe between two ends in memory holds.
const PIPE_BYTES: usize = 1 << 16;

/// The client's ends.
pub(crate) struct Pipe {
    input: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    output: Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
    served_by: ServedBy,
}

enum ServedBy {
    Memory { server: Server, serving: JoinHandle<io::Result<()>>, _following: ReloadTask },
    Program(Child),
}

/// The program, about to serve a folder.
pub(crate) fn serving(folder: &Path) -> Command {
    let mut command = Command::from(promptshelf());
    command.arg("serve").arg(folder).kill_on_drop(true);
    command
}

impl Pipe {
    /// A server in this process.
    pub(crate) fn memory(folder: &Path) -> Pipe {
        let library = Library::builder().folder(folder).build().expect("a library");
        let _following = library.loader().spawn();
        let server = library.server().clone();
        let (ours, theirs) = duplex(PIPE_BYTES);
        let (input, output) = split(theirs);
        let answering = server.clone();
        let serving = tokio::spawn(async move { answering.serve_stdio(input, output).await });
        let (output, input) = split(ours);
        Pipe::new(Box::new(input), Box::new(output), ServedBy::Memory { server, serving, _following })
    }

    /// The program with pipes for stdin and stdout.
    pub(crate) fn stdio(folder: &Path) -> Pipe {
        let mut command = serving(folder);
        command.arg("--stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        let input = child.stdin.take().expect("its stdin");
        let output = child.stdout.take().expect("its stdout");
        Pipe::new(Box::new(input), Box::new(output), ServedBy::Program(child))
    }

    fn new(
        input: Box<dyn AsyncWrite + Send + Unpin>,
        output: Box<dyn AsyncRead + Send + Unpin>,
        served_by: ServedBy,
    ) -> Pipe {
        Pipe { input: Some(input), output: BufReader::new(output).lines(), served_by }
    }

    /// Sends bytes, and the end of the line.
    pub(crate) async fn send(&mut self, line: &[u8]) {
        self.send_part(line).await;
        self.send_part(b"\n").await;
    }

    /// Sends bytes as they are.
    pub(crate) async fn send_part(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("an open input");
        let written = async {
            input.write_all(bytes).await?;
            input.flush().await
        };
        patiently("writing to the server", written).await.expect("the server reads");
    }

    /// The next message. Every line has to be one.
    pub(crate) async fn hear(&mut self) -> Value {
        self.next().await.expect("a line before the end")
    }

    /// The next message; `None` at the end of the output.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = patiently("reading from the server", self.output.next_line()).await.expect("a whole pipe")?;
        Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("a protocol line, and not {line:?}")))
    }

    /// Sends a message and gives the next one.
    pub(crate) async fn ask(&mut self, message: &Value) -> Value {
        self.send(message.to_string().as_bytes()).await;
        self.hear().await
    }

    /// Closes the input, as a client does that goes.
    pub(crate) async fn close(&mut self) {
        if let Some(mut input) = self.input.take() {
            // The program may have gone first.
            input.shutdown().await.ok();
        }
    }

    /// Closes the client's end of the output.
    pub(crate) fn stop_reading(&mut self) {
        let nothing: Box<dyn AsyncRead + Send + Unpin> = Box::new(tokio::io::empty());
        self.output = BufReader::new(nothing).lines();
    }

    /// Asks the server to end, as an operator does.
    pub(crate) fn shut_down(&self) {
        match &self.served_by {
            ServedBy::Memory { server, .. } => server.shutdown(),
            ServedBy::Program(child) => terminate(child),
        }
    }

    /// The program, where it is one.
    pub(crate) fn process(&mut self) -> &mut Child {
        match &mut self.served_by {
            ServedBy::Program(child) => child,
            ServedBy::Memory { .. } => panic!("no program serves this pipe"),
        }
    }

    /// Closes the input and gives everything that still comes; the server has
    /// to end cleanly then.
    pub(crate) async fn end(mut self) -> Vec<Value> {
        self.close().await;
        let mut rest = Vec::new();
        while let Some(message) = self.next().await {
            rest.push(message);
        }
        match self.served_by {
            ServedBy::Memory { serving, .. } => {
                patiently("the end", serving).await.expect("no panic").expect("a clean end");
            }
            ServedBy::Program(mut child) => {
                let status = patiently("the end", child.wait()).await.expect("an end");
                assert!(status.success(), "the program ended with {status}");
            }
        }
        rest
    }
}

/// Sends SIGTERM.
pub(crate) fn terminate(child: &Child) {
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(id.expect("a running program"), rustix::process::Signal::TERM).expect("a signal");
}
