//! The signals that end the program: the first one starts a graceful shutdown, the second ends it at once.

use std::io;

use crate::exit::Exit;

pub(super) struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    pub(super) fn listen() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    #[cfg(not(unix))]
    pub(super) fn listen() -> io::Result<Signals> {
        Ok(Signals {})
    }

    #[cfg(unix)]
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for the first signal. The next one then ends the program without waiting for pending requests.
    pub(super) async fn first(mut self) {
        self.next().await;
        tracing::info!("shutting down");
        tokio::spawn(async move {
            self.next().await;
            std::process::exit(Exit::Failed as i32);
        });
    }
}
