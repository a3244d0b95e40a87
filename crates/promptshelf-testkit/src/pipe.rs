//! A pair of pipes with one JSON-RPC message a line.
//!
//! It sends any bytes, so that a test can send malformed messages.

use std::process::Stdio;

use serde_json::Value;
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf,
        WriteHalf, duplex, split,
    },
    process::{Child, Command},
};

use crate::{in_time, served::Served};

const PIPE_BYTES: usize = 1 << 16;

/// The client's ends.
pub struct Pipe {
    input: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    output: Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
    served: Served,
}

impl Pipe {
    /// Creates a pipe to a server in this process. `serve` gets the server's ends, and spawns it.
    pub fn memory(serve: impl FnOnce(ReadHalf<DuplexStream>, WriteHalf<DuplexStream>) -> Served) -> Pipe {
        let (ours, theirs) = duplex(PIPE_BYTES);
        let (input, output) = split(theirs);
        let served = serve(input, output);
        let (output, input) = split(ours);
        Pipe::new(Box::new(input), Box::new(output), served)
    }

    /// Starts a program with pipes for stdin and stdout.
    pub fn program(mut command: Command) -> Pipe {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        let input = child.stdin.take().expect("its stdin");
        let output = child.stdout.take().expect("its stdout");
        Pipe::new(Box::new(input), Box::new(output), Served::Program(child))
    }

    fn new(
        input: Box<dyn AsyncWrite + Send + Unpin>,
        output: Box<dyn AsyncRead + Send + Unpin>,
        served: Served,
    ) -> Pipe {
        Pipe { input: Some(input), output: BufReader::new(output).lines(), served }
    }

    /// Sends bytes and the end of the line.
    pub async fn send(&mut self, line: &[u8]) {
        self.send_part(line).await;
        self.send_part(b"\n").await;
    }

    /// Sends a message.
    pub async fn notify(&mut self, message: &Value) {
        self.send(message.to_string().as_bytes()).await;
    }

    /// Sends bytes as they are.
    pub async fn send_part(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("an open input");
        let written = async {
            input.write_all(bytes).await?;
            input.flush().await
        };
        in_time("writing to the server", written).await.expect("the server reads");
    }

    /// Receives the next message.
    pub async fn receive(&mut self) -> Value {
        self.next().await.expect("a line before the end")
    }

    /// Receives the next message; `None` at the end of the output. Every line must be a message.
    pub async fn next(&mut self) -> Option<Value> {
        let line = self.next_line().await?;
        Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("expected a protocol line, got {line:?}")))
    }

    /// Receives the next line as it is; `None` at the end of the output.
    pub async fn next_line(&mut self) -> Option<String> {
        in_time("reading from the server", self.output.next_line()).await.expect("an intact pipe")
    }

    /// Sends a message and receives the next one.
    pub async fn request(&mut self, message: &Value) -> Value {
        self.notify(message).await;
        self.receive().await
    }

    /// Takes the input out, for a task that writes while the test reads.
    ///
    /// # Panics
    ///
    /// If the input is closed.
    pub fn take_input(&mut self) -> Box<dyn AsyncWrite + Send + Unpin> {
        self.input.take().expect("an open input")
    }

    /// Puts back an input that was taken out.
    pub fn put_input(&mut self, input: Box<dyn AsyncWrite + Send + Unpin>) {
        self.input = Some(input);
    }

    /// Closes the input, as a client does that ends.
    pub async fn close(&mut self) {
        if let Some(mut input) = self.input.take() {
            // The program may have ended first.
            input.shutdown().await.ok();
        }
    }

    /// Closes the client's end of the output.
    pub fn stop_reading(&mut self) {
        let nothing: Box<dyn AsyncRead + Send + Unpin> = Box::new(tokio::io::empty());
        self.output = BufReader::new(nothing).lines();
    }

    /// Asks the server to end, as an operator does.
    pub fn shut_down(&mut self) {
        self.served.shut_down();
    }

    /// Returns the program that serves.
    pub fn process(&mut self) -> &mut Child {
        self.served.program()
    }

    /// Closes the input and returns the remaining messages; the server must end without an error.
    pub async fn end(mut self) -> Vec<Value> {
        self.close().await;
        let mut rest = Vec::new();
        while let Some(message) = self.next().await {
            rest.push(message);
        }
        self.served.ended().await;
        rest
    }
}
