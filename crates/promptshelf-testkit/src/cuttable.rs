//! A TCP proxy whose connections can be cut silently, as by a firewall that forgets them.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// Forwards connections to an address. Its threads end with the process.
#[derive(Clone, Debug)]
pub struct CuttableProxy {
    address: SocketAddr,
    /// Even while connections are forwarded, odd while they are cut. A connection belongs to the number at its start.
    state: Arc<AtomicU64>,
}

impl CuttableProxy {
    /// Starts a proxy on a free port.
    pub fn to(target: SocketAddr) -> CuttableProxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::<AtomicU64>::default();
        let proxy = CuttableProxy { address, state };
        let accepting = proxy.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let began = accepting.state.load(Ordering::SeqCst);
                // A cut connection is accepted, and nothing ever answers.
                let server = if began.is_multiple_of(2) { TcpStream::connect(target).ok() } else { None };
                let Some(server) = server else {
                    if began % 2 == 1 {
                        thread::spawn(move || discard(client));
                    }
                    continue;
                };
                for (from, to) in [(client.try_clone(), server.try_clone()), (server.try_clone(), client.try_clone())] {
                    let (from, to) = (from.expect("a descriptor"), to.expect("a descriptor"));
                    let state = Arc::clone(&accepting.state);
                    thread::spawn(move || forward(from, to, &state, began));
                }
            }
        });
        proxy
    }

    /// The address to connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts all connections: their ends stay open, and nothing arrives any more, also after [`heal`](Self::heal). New
    /// ones get no answer.
    pub fn cut(&self) {
        self.state.fetch_or(1, Ordering::SeqCst);
    }

    /// Forwards new connections again.
    pub fn heal(&self) {
        if self.state.load(Ordering::SeqCst) % 2 == 1 {
            self.state.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, state: &AtomicU64, began: u64) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut buffer).unwrap_or(0);
        if state.load(Ordering::SeqCst) != began {
            return discard(from);
        }
        if read == 0 || to.write_all(&buffer[..read]).is_err() {
            // The other direction may still have something to forward.
            to.shutdown(std::net::Shutdown::Write).ok();
            return;
        }
    }
}

/// Reads and forgets until the peer closes.
fn discard(mut stream: TcpStream) {
    let mut buffer = vec![0; 4 << 10];
    while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                thread::spawn(move || {
                    let mut byte = [0];
                    while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
                });
            }
        });
        address
    }

    fn is_echoed(mut stream: &TcpStream) -> bool {
        let mut byte = [0];
        stream.write_all(b"x").is_ok() && stream.read_exact(&mut byte).is_ok()
    }

    #[test]
    fn cut_connection_stays_open_and_silent_and_a_new_one_works_after_healing() {
        let proxy = CuttableProxy::to(echo());
        let connect = |timeout| {
            let stream = TcpStream::connect(proxy.address()).expect("a connection");
            stream.set_read_timeout(Some(timeout)).expect("a timeout");
            stream
        };
        let old = connect(Duration::from_millis(200));
        old.set_read_timeout(Some(crate::PATIENCE)).expect("a timeout");
        assert!(is_echoed(&old));
        proxy.cut();
        let cut = connect(Duration::from_millis(200));
        old.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
        assert!(!is_echoed(&old) && !is_echoed(&cut));
        proxy.heal();
        assert!(is_echoed(&connect(crate::PATIENCE)));
        assert!(!is_echoed(&old) && !is_echoed(&cut), "a cut connection stays cut");
        drop((old, cut));
    }
}
