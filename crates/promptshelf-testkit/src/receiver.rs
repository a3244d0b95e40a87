//! A receiver of webhooks on a real socket, which fails, hangs and redirects as a test wants.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Instant,
};

use crate::PATIENCE;
use parking_lot::{Condvar, Mutex, MutexGuard};

/// The answer to a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A status without a body.
    Status(u16),
    /// A redirect (307) to a URL.
    Redirect(String),
    /// A status with a body without an end.
    Endless,
    /// No answer; the connection stays open.
    Hang,
    /// The connection is closed without an answer.
    Close,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The headers; names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The exact body.
    pub body: String,
}

/// A receiver of webhooks, until it is dropped.
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The answers to the next requests; 204 after them.
    answers: VecDeque<Answer>,
    received: Vec<Request>,
    connections: usize,
    held: Vec<TcpStream>,
    is_over: bool,
}

impl Receiver {
    /// Starts a receiver that answers the next requests as listed, and 204 to later ones.
    pub fn start(answers: impl IntoIterator<Item = Answer>) -> Receiver {
        Receiver::at("127.0.0.1:0", answers)
    }

    /// Starts a receiver at the address of an earlier one.
    pub fn at(address: &str, answers: impl IntoIterator<Item = Answer>) -> Receiver {
        let listener = TcpListener::bind(address).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        shared.lock().answers.extend(answers);
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut state = of_thread.lock();
                if state.is_over {
                    return;
                }
                state.connections += 1;
                drop(state);
                let shared = Arc::clone(&of_thread);
                thread::spawn(move || shared.serve(stream));
            }
        });
        Receiver { address, shared }
    }

    /// The address, as host and port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A URL of the receiver.
    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Sets the answers to the next requests; 204 after them.
    pub fn answer(&self, answers: impl IntoIterator<Item = Answer>) {
        self.shared.lock().answers = answers.into_iter().collect();
    }

    /// Returns the requests so far.
    pub fn received(&self) -> Vec<Request> {
        self.shared.lock().received.clone()
    }

    /// Returns the number of connections so far, also those without a request.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections
    }

    /// Waits until there are this many requests, and returns them.
    pub fn wait_for(&self, count: usize) -> Vec<Request> {
        let begun = Instant::now();
        let mut state = self.shared.lock();
        while state.received.len() < count {
            let left = PATIENCE.saturating_sub(begun.elapsed());
            assert!(!left.is_zero(), "{} of {count} requests: {:?}", state.received.len(), state.received);
            self.shared.changed.wait_for(&mut state, left);
        }
        state.received.clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_over = true;
        state.held.clear();
        drop(state);
        // The thread that accepts connections ends with the next one.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Reads one request and answers it. A client that gives up ends the thread.
    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some((name, value)) => headers.insert(name.to_lowercase(), value.to_owned()),
                None if line.trim_end().is_empty() => break,
                None => None,
            };
        }
        let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body = String::from_utf8(body).expect("webhooks are UTF-8");
        let mut state = self.lock();
        let answer = state.answers.pop_front().unwrap_or(Answer::Status(204));
        state.received.push(Request { headers, body });
        if matches!(answer, Answer::Hang) {
            state.held.push(stream.try_clone().ok()?);
        }
        drop(state);
        self.changed.notify_all();
        match answer {
            Answer::Hang | Answer::Close => {}
            Answer::Status(status) => write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n").ok()?,
            Answer::Redirect(url) => {
                write!(stream, "HTTP/1.1 307 X\r\nLocation: {url}\r\nContent-Length: 0\r\n\r\n").ok()?;
            }
            Answer::Endless => {
                write!(stream, "HTTP/1.1 200 X\r\n\r\n").ok()?;
                while stream.write_all(&[b'x'; 4_096]).is_ok() {}
            }
        }
        Some(())
    }
}
