//! The state of a legacy conversation: revision, capabilities, subscriptions, log level.
//!
//! On stdio each connection has its own. Over HTTP there are no sessions, so all legacy clients share one, in which
//! only the subscribed resources count: every open stream receives notifications about all of them. A client may
//! receive more than it subscribed to, never less.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{error_code::WireError, followed::Followed, multi_round::Elicitation, revision::Revision};

/// Maximum number of subscribed resources.
const MAX_SUBSCRIBED: usize = 10_000;

/// The state of a legacy conversation.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// The revision agreed on in `initialize`.
    revision: Mutex<Option<Revision>>,
    /// The elicitation support that the client declared in `initialize`.
    elicitation: Mutex<Elicitation>,
    /// The subscribed resources, by URI.
    subscribed: Mutex<HashMap<String, Arc<Followed>>>,
    /// Index of the selected level in [`LOG_LEVELS`](crate::request::LOG_LEVELS).
    log_level: Mutex<Option<usize>>,
    announcing: AtomicBool,
}

impl Conversation {
    /// Returns the revision agreed on in `initialize`.
    pub(crate) fn revision(&self) -> Option<Revision> {
        *lock(&self.revision)
    }

    /// Stores the revision agreed on in `initialize`.
    pub(crate) fn agree(&self, revision: Revision) {
        *lock(&self.revision) = Some(revision);
    }

    pub(crate) fn set_elicitation(&self, elicitation: Elicitation) {
        *lock(&self.elicitation) = elicitation;
    }

    pub(crate) fn elicitation(&self) -> Elicitation {
        *lock(&self.elicitation)
    }

    /// Returns true once: to the caller that has to start sending change notifications.
    pub(crate) fn begin_announcing(&self) -> bool {
        // Called for each request: a load is cheaper than an exchange.
        !self.announcing.load(Ordering::Relaxed) && !self.announcing.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn subscribe(&self, followed: Arc<Followed>) -> Result<(), WireError> {
        let mut subscribed = lock(&self.subscribed);
        let uri = followed.uri().to_owned();
        if subscribed.len() >= MAX_SUBSCRIBED && !subscribed.contains_key(&uri) {
            return Err(WireError::invalid_params(format!(
                "Too many subscribed resources; the limit is {MAX_SUBSCRIBED}"
            )));
        }
        subscribed.insert(uri, followed);
        Ok(())
    }

    pub(crate) fn unsubscribe(&self, uri: &str) {
        lock(&self.subscribed).remove(uri);
    }

    /// Returns the subscribed resources.
    pub(crate) fn subscribed(&self) -> Vec<Arc<Followed>> {
        lock(&self.subscribed).values().cloned().collect()
    }

    pub(crate) fn set_log_level(&self, level: usize) {
        *lock(&self.log_level) = Some(level);
    }

    /// Returns whether the client wants messages of a level.
    pub(crate) fn wants_log(&self, level: usize) -> bool {
        lock(&self.log_level).is_some_and(|least| level >= least)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
