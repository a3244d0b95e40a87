//! A TCP proxy that closes connections after a number of messages.

use std::{
    io::ErrorKind,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A proxy in front of a server. It ends with this value.
#[derive(Debug)]
pub struct TcpProxy {
    /// The address of the proxy.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    passing: AtomicU64,
    seen: AtomicU64,
    connections: AtomicU64,
}

impl TcpProxy {
    /// Starts a proxy in front of a port of 127.0.0.1.
    pub async fn start(port: u16) -> TcpProxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (passing, seen, connections) = (AtomicU64::new(u64::MAX), AtomicU64::new(0), AtomicU64::new(0));
        let shared = Arc::new(Shared { passing, seen, connections });
        let state = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                state.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(forward(client, port, Arc::clone(&state)));
            }
        });
        TcpProxy { address, shared, task }
    }

    /// Lets this many messages of clients pass. The next one is lost, and its connection is closed on both sides.
    pub fn cut_after(&self, messages: u64) {
        self.shared.passing.store(messages, Ordering::SeqCst);
    }

    /// Lets everything pass again.
    pub fn mend(&self) {
        self.cut_after(u64::MAX);
    }

    /// Returns the number of connections so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Returns the number of messages of clients so far.
    pub fn messages(&self) -> u64 {
        self.shared.seen.load(Ordering::SeqCst)
    }
}

impl Drop for TcpProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(mut client: TcpStream, port: u16, shared: Arc<Shared>) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let up = async {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let length = from_client.read(&mut buffer).await?;
            shared.seen.fetch_add(1, Ordering::SeqCst);
            let passing = shared.passing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| match left {
                u64::MAX => Some(u64::MAX),
                left => left.checked_sub(1),
            });
            if length == 0 || passing.is_err() {
                return Err::<(), _>(std::io::Error::from(ErrorKind::ConnectionAborted));
            }
            to_server.write_all(&buffer[..length]).await?;
        }
    };
    let down = async {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let length = from_server.read(&mut buffer).await?;
            if length == 0 {
                return Err::<(), _>(std::io::Error::from(ErrorKind::UnexpectedEof));
            }
            to_client.write_all(&buffer[..length]).await?;
        }
    };
    // The end of one direction closes both.
    tokio::try_join!(up, down).ok();
}
