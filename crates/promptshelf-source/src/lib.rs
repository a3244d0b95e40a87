//! Where prompts come from: a folder of files that becomes definitions, is
//! watched, and is loaded into a catalog that others read.
//!
//! ```no_run
//! use promptshelf_source::{Directory, Loader};
//!
//! # async fn example() -> Result<(), promptshelf_source::SourceError> {
//! let loader = Loader::open(vec![Box::new(Directory::new("prompts"))])?;
//! let catalog = loader.handle().current();
//! let following = loader.spawn(); // reloads until it is dropped
//! # drop(following);
//! # Ok(())
//! # }
//! ```
//!
//! [`Directory`] reads a folder, [`Fixed`] holds definitions made in code, and
//! a [`Loader`] merges any number of sources. For prompts in a new place,
//! implement [`Source`]; everything behind it stays the same.
//!
//! Who asks for a prompt, and how it goes over a wire, is deliberately not
//! here: this crate fills a [`CatalogHandle`](promptshelf_core::CatalogHandle)
//! and knows nobody who reads from it.

mod confined;
mod directory;
mod error;
mod exchange;
mod fixed;
mod format;
pub mod layout;
mod loader;
mod manifest;
mod media_type;
mod resource;
pub mod schema;
pub mod settings;
mod watch;

use std::{fmt, sync::Arc};

use promptshelf_core::{Definitions, PromptDefinition};
use tokio::sync::Notify;

pub use directory::Directory;
pub use error::SourceError;
pub use exchange::{ExportFormat, Exported, ImportFormat, Imported, ImportedFile, export, import};
pub use fixed::Fixed;
pub use format::ForeignWords;
pub use loader::{Follower, Loader, Report};

/// Where definitions come from: reads everything, and says when to read again.
///
/// A source never decides what is served. It hands over what it found, with
/// diagnostics for what it could not understand, and goes on with the rest.
pub trait Source: Send + Sync {
    /// Reads everything, unless it is still what `known` stands for.
    ///
    /// May block on files or sockets; a [`Loader`] calls it where that does no
    /// harm, and never twice at a time. After an error, or with `known` of
    /// `None`, it reads everything.
    ///
    /// # Errors
    ///
    /// [`SourceError`] where nothing can be read at all. A single broken file
    /// is no error: it becomes a diagnostic among the definitions.
    fn read(&self, known: Option<Fingerprint>) -> Result<Option<Reading>, SourceError>;

    /// Says when to read again, until what is returned is dropped. A nudge too
    /// many costs one reading; a nudge too few leaves old prompts standing.
    ///
    /// Returns when every later change will be noticed, and may block until then.
    /// Never fails: a source that cannot watch reads again from time to time.
    fn follow(&self, nudge: ReloadSignal) -> WatchGuard;
}

impl<S: Source + ?Sized> Source for Arc<S> {
    fn read(&self, known: Option<Fingerprint>) -> Result<Option<Reading>, SourceError> {
        (**self).read(known)
    }

    fn follow(&self, nudge: ReloadSignal) -> WatchGuard {
        (**self).follow(nudge)
    }
}

/// What one reading of a source gave.
pub struct Reading {
    /// Stands for exactly these definitions.
    pub revision: Fingerprint,
    /// What is another one than before, where the source knows that nothing else is.
    edited: Option<Vec<PromptDefinition>>,
    whole: Box<dyn FnOnce() -> Result<Definitions, SourceError> + Send>,
}

impl Reading {
    /// Everything that the source defines.
    #[must_use]
    pub fn new(revision: Fingerprint, definitions: Definitions) -> Reading {
        Reading { revision, edited: None, whole: Box::new(move || Ok(definitions)) }
    }

    /// Prompts that were edited since the revision that was asked about, each
    /// under its own name and in its own file, and nothing else was. `whole` is
    /// asked for everything where that is not enough.
    ///
    /// It costs a large library less than everything would, and says the same.
    #[must_use]
    pub fn edited(
        revision: Fingerprint,
        prompts: Vec<PromptDefinition>,
        whole: impl FnOnce() -> Result<Definitions, SourceError> + Send + 'static,
    ) -> Reading {
        Reading { revision, edited: Some(prompts), whole: Box::new(whole) }
    }

    /// The prompts that were edited, where the source knows that nothing else was.
    #[must_use]
    pub fn only_edited(&self) -> Option<&[PromptDefinition]> {
        self.edited.as_deref()
    }

    /// Everything that the source defines.
    ///
    /// # Errors
    ///
    /// [`SourceError`] where it has to be read for that, and cannot be.
    pub fn definitions(self) -> Result<Definitions, SourceError> {
        (self.whole)()
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reading({:?}, edited {:?})", self.revision, self.edited.as_ref().map(Vec::len))
    }
}

/// Stands for what a source held at one moment: equal revisions of one source
/// mean equal definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// A counter or a hash; what it is, is the source's own business.
    #[must_use]
    pub fn new(number: u64) -> Fingerprint {
        Fingerprint(number)
    }
}

/// Asks for a new reading. Many nudges before the reading starts are one.
#[derive(Clone, Default)]
pub struct ReloadSignal(Arc<Notify>);

impl ReloadSignal {
    /// One that nobody has given yet.
    #[must_use]
    pub fn new() -> ReloadSignal {
        ReloadSignal::default()
    }

    /// Asks for a new reading.
    pub fn give(&self) {
        self.0.notify_one();
    }

    /// Waits until a nudge has been given since the last wait.
    pub async fn given(&self) {
        self.0.notified().await;
    }
}

impl fmt::Debug for ReloadSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReloadSignal")
    }
}

/// Nudges come until this is dropped.
#[must_use = "dropping it ends the following"]
pub struct WatchGuard(#[expect(dead_code, reason = "held to be dropped")] Option<Box<dyn Send + Sync>>);

impl WatchGuard {
    /// Holds something whose drop ends the nudges.
    pub fn until_dropped(guard: impl Send + Sync + 'static) -> WatchGuard {
        WatchGuard(Some(Box::new(guard)))
    }

    /// For a source that never changes.
    pub fn nothing() -> WatchGuard {
        WatchGuard(None)
    }
}

impl fmt::Debug for WatchGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WatchGuard")
    }
}
