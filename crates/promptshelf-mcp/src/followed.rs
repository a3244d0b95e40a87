//! Resources that somebody follows, each looked at once a change, however many
//! follow it.
//!
//! What a follower keeps of a resource is a pointer. When the last of them is
//! gone, so is what is kept of the resource.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use promptshelf_service::{Caller, Service, View};

/// The longest URI that is followed, in bytes.
pub(crate) const MAX_URI_BYTES: usize = 2_048;

/// The most resources that are followed at once, by all together.
const MAX_FOLLOWED: usize = 100_000;

/// A resource that somebody follows.
#[derive(Debug)]
pub(crate) struct Followed {
    caller: Caller,
    uri: Arc<str>,
    /// Held while it is looked at, so that nobody looks at the same time.
    seen: tokio::sync::Mutex<Seen>,
    known: Arc<Mutex<Known>>,
}

/// What a resource held. Changes are counted by [`Service::tick`].
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    version: Option<u64>,
    /// After which change it was looked at.
    looked: Option<u64>,
    /// After which change it held something else than before.
    changed: u64,
}

impl Followed {
    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    /// The last change after which it held something else than before.
    pub(crate) async fn changed(&self, service: &Service) -> u64 {
        let tick = service.tick();
        let mut seen = self.seen.lock().await;
        if seen.looked.is_none_or(|looked| looked < tick) {
            let version = service.view(&self.caller).version(&self.uri).await;
            if seen.looked.is_some() && version != seen.version {
                seen.changed = tick;
            }
            (seen.version, seen.looked) = (version, Some(tick));
        }
        seen.changed
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let mut known = lock(&self.known);
        let Known { followed, entries } = &mut *known;
        let Some(of_caller) = followed.get_mut(&self.caller) else { return };
        // Somebody may have begun to follow it again in the meantime.
        if of_caller.get(&self.uri).is_some_and(|followed| followed.strong_count() == 0) {
            of_caller.remove(&self.uri);
            *entries -= 1;
        }
        if of_caller.is_empty() {
            followed.remove(&self.caller);
        }
    }
}

/// Everything that is followed.
#[derive(Debug, Default)]
pub(crate) struct Register {
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    followed: HashMap<Caller, HashMap<Arc<str>, Weak<Followed>>>,
    entries: usize,
}

impl Register {
    /// A resource to follow; the same for all who follow it. `None` when too
    /// many are followed, or it is not for this server to follow.
    pub(crate) fn follow(&self, view: &View, uri: &str) -> Option<Arc<Followed>> {
        if uri.len() > MAX_URI_BYTES || !view.serves(uri) {
            return None;
        }
        // All requests of a caller are one follower.
        let caller = &view.caller().principal();
        let mut known = lock(&self.known);
        let there = known.followed.get(caller).and_then(|of_caller| of_caller.get(uri)?.upgrade());
        if there.is_some() {
            return there;
        }
        if known.entries >= MAX_FOLLOWED {
            return None;
        }
        let uri: Arc<str> = uri.into();
        let (caller, seen) = (caller.clone(), tokio::sync::Mutex::default());
        let followed = Arc::new(Followed { caller, uri: Arc::clone(&uri), seen, known: Arc::clone(&self.known) });
        let of_caller = known.followed.entry(followed.caller.clone()).or_default();
        if of_caller.insert(uri, Arc::downgrade(&followed)).is_none() {
            known.entries += 1;
        }
        Some(followed)
    }
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use promptshelf_core::{
        CatalogHandle, Definitions, Origin, ResourceContent, ResourceDefinition, SourceText, check,
    };

    use super::*;

    #[test]
    fn nothing_is_kept_of_what_nobody_follows() {
        let content = ResourceContent::Template("{{ path }}".into());
        let origin = Origin::new(SourceText::new("promptshelf.toml", ""));
        let resource = ResourceDefinition::from_source("docs:///{+path}", content, origin);
        let definitions = Definitions { resources: vec![resource], ..Definitions::default() };
        let service = Service::new(CatalogHandle::new(check(definitions, None).catalog));
        let register = Register::default();
        let follow = |uri: &str| register.follow(&service.view(&Caller::anonymous()), uri);
        let first = follow("docs:///a").expect("it is served");
        assert!(Arc::ptr_eq(&first, &follow("docs:///a").expect("it is served")));
        assert!(follow("other:///a").is_none());
        let all: Vec<_> = (1..MAX_FOLLOWED).map(|number| follow(&format!("docs:///{number}"))).collect();
        assert!(all.iter().all(Option::is_some));
        assert!(follow("docs:///one-more").is_none());
        assert!(follow("docs:///a").is_some(), "what is followed already takes no place");
        drop(all);
        assert!(follow("docs:///one-more").is_some());
        drop(first);
        let known = lock(&register.known);
        assert_eq!((known.entries, known.followed.len()), (0, 0));
    }
}
