//! The state of a legacy conversation: revision, capabilities, subscriptions, log level.
//!
//! On stdio each connection has its own. HTTP has no sessions, so all legacy clients share one, in which only
//! subscribed resources and log levels count: every open stream receives notifications about all of them. A client may
//! receive more than it subscribed to, never less: a caller can unsubscribe only from its own subscriptions, and has a
//! share of them. Anonymous callers are distinguished by their addresses.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use promptshelf_service::{Caller, ClientTag, Usage};

use crate::{error_code::WireError, followed::Followed, multi_round::Elicitation, revision::Revision};

/// Maximum number of subscribed resources, of all callers and of one. The local user is the only caller of its
/// conversation, and has no share.
const MAX_SUBSCRIBED: usize = 10_000;
const MAX_SUBSCRIBED_PER_CALLER: usize = 1_000;

/// The callers whose log level is kept.
const MAX_LOG_LEVELS: usize = 1_024;

/// The longest declaration of a client program that is kept, in bytes.
const MAX_DECLARATION: usize = 1_024;

#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// The revision agreed on in `initialize`.
    revision: Mutex<Option<Revision>>,
    /// The elicitation support that the client declared in `initialize`.
    elicitation: Mutex<Elicitation>,
    /// The client program as declared in `initialize`. HTTP has no conversations, and keeps none.
    client: Mutex<Option<Box<str>>>,
    /// The subscribed resources, by [`Caller::limit_key`] and URI.
    subscribed: Mutex<HashMap<String, HashMap<String, Arc<Followed>>>>,
    /// The level that each caller selected last, as an index of [`LOG_LEVELS`](crate::request::LOG_LEVELS), by
    /// [`Caller::limit_key`].
    log_levels: Mutex<VecDeque<(String, usize)>>,
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

    /// Stores the client program that `initialize` declares, unless it is very long.
    pub(crate) fn set_client(&self, declared: Option<&str>) {
        *lock(&self.client) = declared.filter(|declared| declared.len() <= MAX_DECLARATION).map(Box::from);
    }

    /// Returns the tag of the client program that `initialize` declared.
    pub(crate) fn client(&self, usage: &Usage, protocol: &'static str) -> Option<ClientTag> {
        lock(&self.client).as_deref().map(|declared| usage.client(declared, protocol))
    }

    /// Returns true once: to the caller that has to start sending change notifications.
    pub(crate) fn begin_announcing(&self) -> bool {
        // Called for each request: a load is cheaper than an exchange.
        !self.announcing.load(Ordering::Relaxed) && !self.announcing.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn subscribe(&self, caller: &Caller, followed: Arc<Followed>) -> Result<(), WireError> {
        let mut subscribed = lock(&self.subscribed);
        let (key, uri) = (caller.limit_key(), followed.uri().to_owned());
        let all: usize = subscribed.values().map(HashMap::len).sum();
        let own = subscribed.get(&key);
        let share = if caller.is_local() { MAX_SUBSCRIBED } else { MAX_SUBSCRIBED_PER_CALLER };
        let limits = [(own.map_or(0, HashMap::len), share), (all, MAX_SUBSCRIBED)];
        if let Some((_, limit)) = limits.into_iter().find(|(used, limit)| used >= limit)
            && own.is_none_or(|own| !own.contains_key(&uri))
        {
            return Err(WireError::invalid_params(format!("Too many subscribed resources; the limit is {limit}")));
        }
        subscribed.entry(key).or_default().insert(uri, followed);
        Ok(())
    }

    pub(crate) fn unsubscribe(&self, caller: &Caller, uri: &str) {
        let mut subscribed = lock(&self.subscribed);
        let key = caller.limit_key();
        let Some(own) = subscribed.get_mut(&key) else { return };
        own.remove(uri);
        if own.is_empty() {
            subscribed.remove(&key);
        }
    }

    /// Returns the subscribed resources; one of several callers occurs once for each.
    pub(crate) fn subscribed(&self) -> Vec<Arc<Followed>> {
        lock(&self.subscribed).values().flat_map(HashMap::values).cloned().collect()
    }

    /// Stores the level that a caller selects.
    pub(crate) fn set_log_level(&self, caller: &Caller, level: usize) {
        let (key, mut levels) = (caller.limit_key(), lock(&self.log_levels));
        levels.retain(|(of, _)| *of != key);
        if levels.len() == MAX_LOG_LEVELS {
            levels.pop_front();
        }
        levels.push_back((key, level));
    }

    pub(crate) fn wants_log(&self, caller: &Caller, level: usize) -> bool {
        let (key, levels) = (caller.limit_key(), lock(&self.log_levels));
        levels.iter().any(|(of, least)| *of == key && level >= *least)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use promptshelf_core::{
        CatalogHandle, Definitions, Origin, ResourceContent, ResourceDefinition, SourceText, check,
    };
    use promptshelf_service::Service;

    use super::*;
    use crate::followed::Registry;

    // req: O9
    #[test]
    fn log_level_is_that_of_its_caller() {
        let conversation = Conversation::default();
        let caller = |last: u16| Caller::anonymous().with_address([198, 18, (last / 256) as u8, last as u8].into());
        assert!(!conversation.wants_log(&caller(0), 7));
        for (number, level) in [(0, 3), (0, 1), (1, 5)] {
            conversation.set_log_level(&caller(number), level);
        }
        assert!(conversation.wants_log(&caller(0), 1) && !conversation.wants_log(&caller(0), 0));
        assert!(conversation.wants_log(&caller(1), 5) && !conversation.wants_log(&caller(1), 1));
        for number in 2..=MAX_LOG_LEVELS as u16 {
            conversation.set_log_level(&caller(number), 0);
        }
        assert!(!conversation.wants_log(&caller(0), 7), "the oldest one is forgotten");
        assert!(conversation.wants_log(&caller(1), 7) && lock(&conversation.log_levels).len() == MAX_LOG_LEVELS);
    }

    // req: S-60
    #[test]
    fn each_caller_has_a_share_of_subscriptions() {
        let content = ResourceContent::Template("{{ path }}".into());
        let origin = Origin::new(SourceText::new("promptshelf.toml", ""));
        let resource = ResourceDefinition::from_source("docs:///{+path}", content, origin);
        let definitions = Definitions { resources: vec![resource], ..Definitions::default() };
        let service = Service::new(CatalogHandle::new(check(definitions, None).catalog));
        let (registry, conversation) = (Registry::default(), Conversation::default());
        let subscribe = |caller: &Caller, number: usize| {
            let followed = registry.follow(&service.view(caller), &format!("docs:///{number}"));
            conversation.subscribe(caller, followed.expect("it is served"))
        };
        let callers: Vec<Caller> =
            (0..11).map(|last| Caller::anonymous().with_address([192, 0, 2, last].into())).collect();
        for number in 0..MAX_SUBSCRIBED_PER_CALLER {
            subscribe(&callers[0], number).expect("a share");
        }
        let refusal = subscribe(&callers[0], MAX_SUBSCRIBED_PER_CALLER).expect_err("no more than a share");
        assert!(refusal.message.contains("1000"), "{}", refusal.message);
        subscribe(&callers[0], 0).expect("it has this one");
        for caller in &callers[1..10] {
            for number in 0..MAX_SUBSCRIBED_PER_CALLER {
                subscribe(caller, number).expect("a share");
            }
        }
        assert!(subscribe(&callers[10], 0).is_err(), "all shares are taken");
        conversation.unsubscribe(&callers[3], "docs:///7");
        assert!(subscribe(&callers[10], 0).is_ok());
    }
}
