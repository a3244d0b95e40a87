//! A shared handle of the current catalog, with replacement and observers.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::catalog::{Catalog, Change};

type Observer = Box<dyn Fn(&Change) + Send + Sync>;

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
        self.0.observers.lock().push(Box::new(observer));
    }

    fn announce(&self, change: impl FnOnce(&Catalog) -> (Option<Catalog>, Change)) -> Change {
        let observers = self.0.observers.lock();
        let (catalog, change) = change(&self.current());
        if let Some(catalog) = catalog {
            self.0.current.store(Arc::new(catalog));
        }
        for observer in observers.iter() {
            observer(&change);
        }
        change
    }
}
