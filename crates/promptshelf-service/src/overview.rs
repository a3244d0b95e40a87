//! Operations of the web page beyond MCP, under the same access rules and limits.

use std::sync::Arc;

use promptshelf_core::{Prompt, cursor::ListKind};

use crate::{
    access, answer::Answer, audit::Method, caller::Caller, limit::RequestClass, rejection::Rejection, service::Service,
    slot::Slot, view::View,
};

/// All prompts at once, as one caller sees them.
#[derive(Clone, Debug)]
pub struct LibraryOverview {
    view: View,
}

impl LibraryOverview {
    /// Returns the catalog and the caller.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Returns the prompts that the caller's lists show.
    pub fn listed(&self) -> impl Iterator<Item = &Arc<Prompt>> {
        self.filter(|index| self.view.shows(ListKind::Prompts, index))
    }

    /// Returns the prompts that the caller may use.
    pub fn usable(&self) -> impl Iterator<Item = &Arc<Prompt>> {
        self.filter(|index| access::may_use(self.view.catalog(), self.view.caller(), index))
    }

    fn filter(&self, includes: impl Fn(usize) -> bool) -> impl Iterator<Item = &Arc<Prompt>> {
        let prompts = self.view.catalog().prompts();
        prompts.iter().enumerate().filter(move |(index, _)| includes(*index)).map(|(_, prompt)| prompt)
    }
}

impl Service {
    /// Returns all prompts at once, as `caller` sees them.
    ///
    /// # Errors
    ///
    /// Those of limits.
    pub fn overview(&self, caller: &Caller) -> Result<LibraryOverview, Rejection> {
        let mut call = self.begin(caller, RequestClass::Other, Method::Overview)?;
        let view = self.view(caller);
        call.note_generation(view.catalog());
        call.end(Ok(LibraryOverview { view }))
    }

    /// Returns a prompt's definition, if the caller may use the prompt.
    ///
    /// # Errors
    ///
    /// [`Rejection::UnknownPrompt`], [`Rejection::InsufficientScope`], and those of limits.
    pub fn describe(&self, caller: &Caller, name: &str) -> Result<Answer<Arc<Prompt>>, Rejection> {
        let mut call = self.begin(caller, RequestClass::Other, Method::Describe)?;
        let view = self.view(caller);
        call.note_text("prompt", name);
        call.note_generation(view.catalog());
        let found = access::find(view.catalog(), caller, name);
        if let Ok(prompt) = &found {
            let alias = Some(name).filter(|name| *name != prompt.name().as_str());
            call.count(self.counted(&view, "prompts/describe", prompt).map(|call| call.under(alias)));
        }
        let prompt = call.end(found)?;
        Ok(Answer::new(view, prompt))
    }

    /// Returns whether a caller may see the library's diagnostics, which quote lines of any file: all or none.
    ///
    /// # Errors
    ///
    /// [`Rejection::InsufficientScope`] if the rule that hides them is visible, and those of limits.
    pub fn sees_diagnostics(&self, caller: &Caller) -> Result<bool, Rejection> {
        let call = self.begin(caller, RequestClass::Other, Method::Diagnostics)?;
        call.end(access::may_see_diagnostics(&self.catalog(), caller))
    }

    /// Counts a caller that waits for the next load as one of its subscriptions, until the slot is dropped. Waiting
    /// reveals nothing and leaves no record.
    ///
    /// # Errors
    ///
    /// Those of limits.
    pub fn wait(&self, caller: &Caller) -> Result<Option<Slot>, Rejection> {
        drop(self.meter.admit(caller, RequestClass::Other)?);
        self.meter.subscribe(caller)
    }
}
