//! Subscriptions to changes of a server's lists, which are opened again when they end.

use std::sync::Weak;

use rmcp::{
    ServiceError,
    model::{ErrorCode, SubscriptionFilter},
    service::{Peer, RoleClient},
};
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
    time::{Instant, sleep},
};

use crate::{
    backoff::{Backoff, LONGEST_PAUSE},
    client::Client,
    client_handler::count_change,
};

impl Client {
    /// Subscribes to changes of the server's lists of prompts and, for a server with skills, of resources. Must be
    /// called inside a Tokio runtime.
    ///
    /// Servers of revision 2026-07-28 and later receive a subscription; older ones notify every client. A server
    /// without the `listChanged` capability never notifies. A subscription that ends is opened again, and counts as a
    /// change then: what changed in the meantime is only in the lists.
    #[must_use]
    pub fn changes(&self) -> Changes {
        let receiver = self.handler().subscribe();
        let (established, subscribed) = oneshot::channel();
        let subscription = self.has_subscriptions().then(|| {
            let listener = Listener {
                server: self.label().to_owned(),
                peer: self.peer().clone(),
                changes: self.handler().change_counter(),
                has_skills: self.has_skills(),
            };
            tokio::spawn(listener.run(established))
        });
        Changes { receiver, subscription, subscribed: Some(subscribed) }
    }

    fn has_subscriptions(&self) -> bool {
        !self.is_legacy()
            && self.has_capability(|capabilities| {
                capabilities.prompts.as_ref().is_some_and(|prompts| prompts.list_changed == Some(true))
            })
    }
}

/// A subscription to changes of a list of prompts; dropping it ends the subscription. See [`Client::changes`].
#[derive(Debug)]
pub struct Changes {
    receiver: watch::Receiver<u64>,
    subscription: Option<JoinHandle<()>>,
    subscribed: Option<oneshot::Receiver<()>>,
}

impl Changes {
    /// Waits until the server has accepted or refused the subscription; returns at once if it needs or offers none.
    /// Earlier changes may be missed, so that a list has to be requested after it.
    pub async fn subscribed(&mut self) {
        if let Some(subscribed) = self.subscribed.take() {
            subscribed.await.ok();
        }
    }

    /// Waits for the next change; several changes since the last call count as one. Returns `false` once the
    /// connection is closed.
    pub async fn next(&mut self) -> bool {
        self.receiver.changed().await.is_ok()
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        if let Some(subscription) = &self.subscription {
            subscription.abort();
        }
    }
}

struct Listener {
    server: String,
    peer: Peer<RoleClient>,
    changes: Weak<watch::Sender<u64>>,
    has_skills: bool,
}

impl Listener {
    /// Keeps a subscription open until the connection is closed, or the server does not know subscriptions.
    async fn run(self, established: oneshot::Sender<()>) {
        let mut backoff = Backoff::default();
        let mut established = Some(established);
        loop {
            let began = Instant::now();
            let ended = self.listen(&mut established).await;
            if self.peer.is_transport_closed() || ended.as_ref().is_err_and(is_unknown_method) {
                return;
            }
            if began.elapsed() >= LONGEST_PAUSE {
                backoff.reset();
            }
            if backoff.is_first() {
                let reason =
                    ended.err().map_or_else(|| "the server has ended it".to_owned(), |error| error.to_string());
                tracing::info!(server = self.server, "the subscription to changes is opened again: {reason}");
            }
            sleep(backoff.pause()).await;
        }
    }

    /// Opens a subscription and notes its notifications until it ends. `established` is there for the first one only.
    async fn listen(&self, established: &mut Option<oneshot::Sender<()>>) -> Result<(), ServiceError> {
        let established = established.take();
        let mut subscription = self.peer.listen(self.filter()).await?;
        match established {
            Some(established) => _ = established.send(()),
            None => {
                self.peer.clear_response_cache().await;
                self.note_change();
            }
        }
        while subscription.next().await?.is_some() {
            self.note_change();
        }
        Ok(())
    }

    fn filter(&self) -> SubscriptionFilter {
        let filter = SubscriptionFilter::builder().prompts_list_changed();
        // The extension has no notification of its own: skills are resources.
        if self.has_skills { filter.resources_list_changed().build() } else { filter.build() }
    }

    fn note_change(&self) {
        if let Some(changes) = self.changes.upgrade() {
            count_change(&changes);
        }
    }
}

fn is_unknown_method(error: &ServiceError) -> bool {
    matches!(error, ServiceError::McpError(error) if error.code == ErrorCode::METHOD_NOT_FOUND)
}
