//! What a legacy client has said that later messages rest on.
//!
//! On stdio each pipe has its own. Over HTTP nobody has one, because there are
//! no sessions: there, one for all remembers which resources somebody
//! subscribed to, so that every open stream hears of those. That is more than
//! a single client asked for, never less.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{error_code::WireError, followed::Followed, multi_round::Elicitation, revision::Revision};

/// The most resources that can be subscribed to at once.
const MAX_SUBSCRIBED: usize = 10_000;

/// What a legacy client has said.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// What `initialize` agreed on.
    revision: Mutex<Option<Revision>>,
    /// What the client can show, as `initialize` said.
    elicitation: Mutex<Elicitation>,
    /// The resources subscribed to, by URI.
    subscribed: Mutex<HashMap<String, Arc<Followed>>>,
    /// The place of the chosen level in the list of levels.
    log_level: Mutex<Option<usize>>,
    announcing: AtomicBool,
}

impl Conversation {
    /// The revision that `initialize` agreed on.
    pub(crate) fn revision(&self) -> Option<Revision> {
        *lock(&self.revision)
    }

    /// Notes what `initialize` agreed on.
    pub(crate) fn agree(&self, revision: Revision) {
        *lock(&self.revision) = Some(revision);
    }

    /// Notes what the client can show.
    pub(crate) fn set_elicitation(&self, elicitation: Elicitation) {
        *lock(&self.elicitation) = elicitation;
    }

    /// What the client can show.
    pub(crate) fn elicitation(&self) -> Elicitation {
        *lock(&self.elicitation)
    }

    /// True once: for whoever is to tell of changes from now on.
    pub(crate) fn begin_announcing(&self) -> bool {
        // It is asked for with each request: a look costs less than an exchange.
        !self.announcing.load(Ordering::Relaxed) && !self.announcing.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn subscribe(&self, followed: Arc<Followed>) -> Result<(), WireError> {
        let mut subscribed = lock(&self.subscribed);
        let uri = followed.uri().to_owned();
        if subscribed.len() >= MAX_SUBSCRIBED && !subscribed.contains_key(&uri) {
            return Err(WireError::invalid_params(format!("At most {MAX_SUBSCRIBED} resources can be subscribed to")));
        }
        subscribed.insert(uri, followed);
        Ok(())
    }

    pub(crate) fn unsubscribe(&self, uri: &str) {
        lock(&self.subscribed).remove(uri);
    }

    /// The resources subscribed to.
    pub(crate) fn subscribed(&self) -> Vec<Arc<Followed>> {
        lock(&self.subscribed).values().cloned().collect()
    }

    pub(crate) fn set_log_level(&self, level: usize) {
        *lock(&self.log_level) = Some(level);
    }

    /// Whether messages of a level are wanted.
    pub(crate) fn wants_log(&self, level: usize) -> bool {
        lock(&self.log_level).is_some_and(|least| level >= least)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
