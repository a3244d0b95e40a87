//! What a face for people shows of a library beside what the protocol has words
//! for. The same rules and limits hold for it.

use std::sync::Arc;

use promptshelf_core::{Catalog, Prompt, cursor::ListKind};

use crate::{Caller, Rejection, Service, Slot, View, access, limit::Class};

/// What a caller sees of all prompts at once.
#[derive(Clone, Debug)]
pub struct Shelf {
    /// The catalog that it is of.
    pub catalog: Arc<Catalog>,
    view: View,
    caller: Caller,
}

impl Shelf {
    /// The prompts that the caller's lists show.
    pub fn shown(&self) -> impl Iterator<Item = &Arc<Prompt>> {
        let shows = |index: &usize| self.view.shows(&self.catalog, ListKind::Prompts, *index);
        self.at(shows)
    }

    /// Those among them that the caller may use.
    pub fn usable(&self) -> impl Iterator<Item = &Arc<Prompt>> {
        self.at(|index| access::may_use(&self.catalog, &self.caller, *index))
    }

    fn at(&self, fits: impl Fn(&usize) -> bool) -> impl Iterator<Item = &Arc<Prompt>> {
        let prompts = self.catalog.prompts();
        prompts.iter().enumerate().filter(move |(index, _)| fits(index)).map(|(_, prompt)| prompt)
    }
}

impl Service {
    /// What a caller sees of all prompts at once.
    ///
    /// # Errors
    ///
    /// When the caller asks too much.
    pub fn shelf(&self, caller: &Caller) -> Result<Shelf, Rejection> {
        let mut call = self.begin(caller, Class::Other, "shelf")?;
        let catalog = self.catalog();
        call.note("generation", || catalog.generation().into());
        let view = View::of(caller, &catalog);
        call.end(Ok(Shelf { catalog, view, caller: caller.by_itself() }))
    }

    /// A prompt's definition, for a caller who may use it.
    ///
    /// # Errors
    ///
    /// [`Rejection::UnknownPrompt`] and [`Rejection::InsufficientScope`].
    pub fn describe(&self, caller: &Caller, name: &str) -> Result<(Arc<Catalog>, Arc<Prompt>), Rejection> {
        let mut call = self.begin(caller, Class::Other, "describe")?;
        let catalog = self.catalog();
        call.name("prompt", name);
        call.note("generation", || catalog.generation().into());
        let found = access::find(&catalog, caller, name);
        call.end(found.map(|prompt| (catalog, prompt)))
    }

    /// Whether a caller sees what is wrong with the library, with the lines of
    /// whatever file: all of it, or nothing.
    ///
    /// # Errors
    ///
    /// [`Rejection::InsufficientScope`] where a rule shows that there is
    /// something to see.
    pub fn sees_diagnostics(&self, caller: &Caller) -> Result<bool, Rejection> {
        let call = self.begin(caller, Class::Other, "diagnostics")?;
        call.end(access::may_see_diagnostics(&self.catalog(), caller))
    }

    /// Lets a caller wait for the next load, as one of its subscriptions, for as
    /// long as the slot is held. Waiting tells nothing, and leaves no record.
    ///
    /// # Errors
    ///
    /// When the caller asks too much.
    pub fn wait(&self, caller: &Caller) -> Result<Option<Slot>, Rejection> {
        drop(self.meter.admit(caller, Class::Other)?);
        self.meter.subscribe(caller)
    }
}
