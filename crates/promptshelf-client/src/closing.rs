//! The end of connections, which goes on after a [`Client`](crate::Client) is dropped.

use std::{mem, sync::Arc, time::Duration};

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The longest wait: for a process that ignores the end of its input and the first signal.
const LIMIT: Duration = Duration::from_secs(6);

static CLOSING: Mutex<Vec<oneshot::Receiver<()>>> = Mutex::new(Vec::new());

/// Held by what has to be closed. It is closed once the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Open {
    _sender: Arc<oneshot::Sender<()>>,
}

/// Held by the owner, who lets go of the connection by dropping it.
pub(crate) struct Owner(Option<oneshot::Receiver<()>>);

pub(crate) fn open() -> (Open, Owner) {
    let (sender, receiver) = oneshot::channel();
    (Open { _sender: Arc::new(sender) }, Owner(Some(receiver)))
}

impl Drop for Owner {
    fn drop(&mut self) {
        let mut closing = CLOSING.lock();
        closing.retain_mut(|receiver| matches!(receiver.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
        closing.extend(self.0.take());
    }
}

/// Waits until the connections of dropped clients are closed, at most six seconds: sessions over HTTP are deleted, and
/// processes have ended. A program calls it before it ends, since its end would interrupt this.
pub async fn closed() {
    let closing = mem::take(&mut *CLOSING.lock());
    tokio::time::timeout(LIMIT, join_all(closing)).await.ok();
}
