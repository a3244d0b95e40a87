//! Followed resources, each compared once for each change, however many subscriptions follow it.
//!
//! A subscription holds an `Arc`. Dropping the last one removes the resource from the registry.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::{Mutex, MutexGuard};
use promptshelf_service::{Caller, Service, View};

/// Maximum length of a followed URI, in bytes.
pub(crate) const MAX_URI_BYTES: usize = 2_048;

/// Maximum number of followed resources, of all subscriptions together and of one caller. The local user has no share.
const MAX_FOLLOWED: usize = 100_000;
const MAX_FOLLOWED_PER_CALLER: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Followed {
    caller: Caller,
    /// The [`Caller::limit_key`] in whose share it is: the first one of several anonymous callers.
    share: String,
    uri: Arc<str>,
    /// Locked during the comparison, so that subscriptions do not compare at the same time.
    comparison: tokio::sync::Mutex<Comparison>,
    resources: Arc<Mutex<Resources>>,
}

/// The last comparison. Changes are numbered by [`Service::tick`].
#[derive(Clone, Copy, Debug, Default)]
struct Comparison {
    version: Option<u64>,
    compared_at: Option<u64>,
    changed_at: u64,
}

impl Followed {
    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    pub(crate) async fn changed(&self, service: &Service) -> u64 {
        let tick = service.tick();
        let mut comparison = self.comparison.lock().await;
        if comparison.compared_at.is_none_or(|compared_at| compared_at < tick) {
            let version = service.view(&self.caller).version(&self.uri).await;
            if comparison.compared_at.is_some() && version != comparison.version {
                comparison.changed_at = tick;
            }
            (comparison.version, comparison.compared_at) = (version, Some(tick));
        }
        comparison.changed_at
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let mut resources = lock(&self.resources);
        let Resources { followed, shares, entries } = &mut *resources;
        // Another subscription may follow it again by now, in the share of its caller.
        match shares.get_mut(&self.share) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(shares.remove(&self.share)),
        }
        let Some(of_caller) = followed.get_mut(&self.caller) else { return };
        if of_caller.get(&self.uri).is_some_and(|followed| followed.strong_count() == 0) {
            of_caller.remove(&self.uri);
            *entries -= 1;
        }
        if of_caller.is_empty() {
            followed.remove(&self.caller);
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Registry {
    resources: Arc<Mutex<Resources>>,
}

#[derive(Debug, Default)]
struct Resources {
    followed: HashMap<Caller, HashMap<Arc<str>, Weak<Followed>>>,
    shares: HashMap<String, usize>,
    entries: usize,
}

impl Registry {
    /// Returns the resource for a URI, shared by all its subscriptions. `None` if too many are followed, in all or by
    /// this caller, or if the caller may not read it.
    pub(crate) fn follow(&self, view: &View, uri: &str) -> Option<Arc<Followed>> {
        if uri.len() > MAX_URI_BYTES || !view.serves(uri) {
            return None;
        }
        // All requests of a caller count as one follower.
        let caller = &view.caller().principal();
        let mut resources = lock(&self.resources);
        let existing = resources.followed.get(caller).and_then(|of_caller| of_caller.get(uri)?.upgrade());
        if existing.is_some() {
            return existing;
        }
        let share = view.caller().limit_key();
        let most = if caller.is_local() { MAX_FOLLOWED } else { MAX_FOLLOWED_PER_CALLER };
        if resources.entries >= MAX_FOLLOWED || resources.shares.get(&share).is_some_and(|count| *count >= most) {
            return None;
        }
        *resources.shares.entry(share.clone()).or_default() += 1;
        let uri: Arc<str> = uri.into();
        let (caller, comparison) = (caller.clone(), tokio::sync::Mutex::default());
        let followed = Arc::new(Followed {
            caller,
            share,
            uri: Arc::clone(&uri),
            comparison,
            resources: Arc::clone(&self.resources),
        });
        let of_caller = resources.followed.entry(followed.caller.clone()).or_default();
        if of_caller.insert(uri, Arc::downgrade(&followed)).is_none() {
            resources.entries += 1;
        }
        Some(followed)
    }
}

fn lock(resources: &Mutex<Resources>) -> MutexGuard<'_, Resources> {
    resources.lock()
}

#[cfg(test)]
mod tests {
    use promptshelf_core::{
        CatalogHandle, Definitions, Origin, ResourceContent, ResourceDefinition, SourceText, check,
    };

    use super::*;

    // req: S-60
    #[test]
    fn dropped_resource_leaves_registry_and_share() {
        let content = ResourceContent::Template("{{ path }}".into());
        let origin = Origin::new(SourceText::new("promptshelf.toml", ""));
        let resource = ResourceDefinition::from_source("docs:///{+path}", content, origin);
        let definitions = Definitions { resources: vec![resource], ..Definitions::default() };
        let service = Service::new(CatalogHandle::new(check(definitions, None).catalog));
        let register = Registry::default();
        let follow_by = |caller: &Caller, uri: &str| register.follow(&service.view(caller), uri);
        let follow = |uri: &str| follow_by(&Caller::local(), uri);
        let first = follow("docs:///a").expect("it is served");
        assert!(Arc::ptr_eq(&first, &follow("docs:///a").expect("it is served")));
        assert!(follow("other:///a").is_none());
        let all: Vec<_> = (1..MAX_FOLLOWED).map(|number| follow(&format!("docs:///{number}"))).collect();
        assert!(all.iter().all(Option::is_some));
        assert!(follow("docs:///one-more").is_none());
        assert!(follow("docs:///a").is_some(), "a followed resource takes no further place");
        drop(all);
        assert!(follow("docs:///one-more").is_some());

        let [ada, bob] = [1, 2].map(|last| Caller::anonymous().with_address([192, 0, 2, last].into()));
        let of_ada: Vec<_> =
            (0..MAX_FOLLOWED_PER_CALLER).map(|number| follow_by(&ada, &format!("docs:///{number}"))).collect();
        assert!(of_ada.iter().all(Option::is_some));
        assert!(follow_by(&ada, "docs:///one-more").is_none());
        let of_bob = follow_by(&bob, "docs:///one-more");
        assert!(of_bob.is_some(), "another address has a share of its own");
        drop((first, of_ada, of_bob));
        let resources = lock(&register.resources);
        assert_eq!((resources.entries, resources.followed.len(), resources.shares.len()), (0, 0, 0));
    }
}
