//! Arbitrary bytes on stdio: all output consists of protocol lines, and the conversation ends with the input.

#![no_main]

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tokio::io::AsyncWrite;

/// Collects the output.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl AsyncWrite for Written {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fuzz_target!(|bytes: &[u8]| {
    let written = Written::default();
    // A request to a client that never responds ends with the input.
    shelf::wait(shelf::server().serve_stdio(bytes, written.clone())).expect("serving succeeds");
    let written = written.0.lock().expect("no panic");
    for line in written.split_inclusive(|byte| *byte == b'\n') {
        let message: Value = serde_json::from_slice(line).expect("every line is JSON");
        assert!(line.ends_with(b"\n") && (message.is_array() || message["jsonrpc"] == "2.0"));
    }
});
