//! A shared handle of the current catalog, with replacement and observers.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::catalog::{Catalog, Change};

struct Observer {
    is_alive: Box<dyn Fn() -> bool + Send + Sync>,
    notify: Box<dyn Fn(&Change) + Send + Sync>,
}

/// The current catalog, shared: clones refer to the same one.
///
/// A reader takes [`current`](CatalogHandle::current) once and uses that catalog to the end of its work; later
/// replacements do not affect it.
#[derive(Clone)]
pub struct CatalogHandle(Arc<Place>);

struct Place {
    current: ArcSwap<Catalog>,
    observers: Mutex<Vec<Observer>>,
}

impl std::fmt::Debug for CatalogHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CatalogHandle(generation {})", self.current().generation())
    }
}

impl CatalogHandle {
    /// Creates a handle with a first catalog.
    #[must_use]
    pub fn new(catalog: Catalog) -> CatalogHandle {
        CatalogHandle(Arc::new(Place { current: ArcSwap::from_pointee(catalog), observers: Mutex::default() }))
    }

    /// Returns the current catalog. Takes no lock.
    #[must_use]
    pub fn current(&self) -> Arc<Catalog> {
        self.0.current.load_full()
    }

    /// Replaces the current catalog, with the next serial number, and notifies the observers of the change.
    pub fn replace(&self, catalog: Catalog) -> Change {
        self.announce(|current| {
            let catalog = catalog.with_serial(current.serial() + 1);
            let change = Change::between(current, &catalog);
            (Some(catalog), change)
        })
    }

    /// Notifies the observers that the content of resources may have changed, though the catalog did not.
    pub fn touch(&self) -> Change {
        self.announce(|current| {
            (
                None,
                Change {
                    generation: current.generation(),
                    prompts: false,
                    resources: false,
                    contents: true,
                    tools: false,
                },
            )
        })
    }

    /// Calls `observer` after every change, one change after the other. The observer must be quick, and must not
    /// replace the catalog.
    pub fn observe(&self, observer: impl Fn(&Change) + Send + Sync + 'static) {
        self.add(Observer { is_alive: Box::new(|| true), notify: Box::new(observer) });
    }

    /// Observes changes like [`observe`](CatalogHandle::observe) for as long as `owner` exists.
    pub fn observe_for<T: Send + Sync + 'static>(
        &self,
        owner: &Arc<T>,
        observer: impl Fn(&Change) + Send + Sync + 'static,
    ) {
        let owner = Arc::downgrade(owner);
        let is_alive = move || owner.strong_count() > 0;
        self.add(Observer { is_alive: Box::new(is_alive), notify: Box::new(observer) });
    }

    fn add(&self, observer: Observer) {
        let mut observers = self.0.observers.lock();
        observers.retain(|observer| (observer.is_alive)());
        observers.push(observer);
    }

    fn announce(&self, change: impl FnOnce(&Catalog) -> (Option<Catalog>, Change)) -> Change {
        let observers = self.0.observers.lock();
        let (catalog, change) = change(&self.current());
        if let Some(catalog) = catalog {
            self.0.current.store(Arc::new(catalog));
        }
        for observer in observers.iter().filter(|observer| (observer.is_alive)()) {
            (observer.notify)(&change);
        }
        change
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn observers_end_with_their_owners() {
        let handle = CatalogHandle::new(crate::check(crate::Definitions::default(), None).catalog);
        let seen = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 {
            let owner = Arc::new(());
            let count = Arc::clone(&seen);
            handle.observe_for(&owner, move |_| _ = count.fetch_add(1, Ordering::Relaxed));
            handle.touch();
        }
        handle.touch();
        assert_eq!(seen.load(Ordering::Relaxed), 3);
        assert_eq!(handle.0.observers.lock().len(), 1);
    }
}
