//! Results of operations, each with the view that it was made from.
//!
//! Only this crate creates an [`Answer`], and its parts cannot be exchanged. A front end therefore cannot combine a
//! result with the cache scope or the server information of a catalog that was loaded later.
//!
//! Elsewhere: how the results are made (`operations`).

use std::sync::Arc;

use promptshelf_core::{Message, Page, Prompt, cursor::ListKind};

use crate::view::View;

/// The result of an operation, and the view that it was made from.
#[derive(Clone, Debug)]
pub struct Answer<T> {
    view: View,
    value: T,
    foreign: Option<Arc<str>>,
}

impl<T> Answer<T> {
    pub(crate) fn new(view: View, value: T) -> Answer<T> {
        Answer { view, value, foreign: None }
    }

    pub(crate) fn of_source(self, source: Option<Arc<str>>) -> Answer<T> {
        Answer { foreign: source, ..self }
    }

    /// Returns the name of the source on another server that a resource comes from.
    pub fn foreign_source(&self) -> Option<&str> {
        self.foreign.as_deref()
    }

    /// Returns the catalog and the caller that the result was made for.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Returns the result.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// Returns the result alone.
    pub fn into_value(self) -> T {
        self.value
    }

    pub(crate) fn parts_mut(&mut self) -> (&View, &mut T) {
        (&self.view, &mut self.value)
    }
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct ListPage {
    /// The list.
    pub list: ListKind,
    /// The page's indexes in the catalog's list, and the cursor of the next page.
    pub page: Page,
}

impl Answer<ListPage> {
    /// Returns the indexes, in the catalog's list, of the page's items that the caller sees.
    pub fn shown(&self) -> impl Iterator<Item = usize> + '_ {
        let ListPage { list, page } = self.value();
        page.range.clone().filter(|index| self.view.shows(*list, *index))
    }
}

/// A rendered prompt.
#[derive(Clone, Debug)]
pub struct RenderedPrompt {
    /// The prompt.
    pub prompt: Arc<Prompt>,
    /// The former name that was asked for, if it was not the present one.
    pub alias: Option<String>,
    /// Its messages.
    pub messages: Vec<Message>,
}

impl Answer<RenderedPrompt> {
    /// Replaces the messages by a function of them.
    pub fn map_messages(&mut self, change: impl FnOnce(&Prompt, Vec<Message>) -> Vec<Message>) {
        let messages = std::mem::take(&mut self.value.messages);
        self.value.messages = change(&self.value.prompt, messages);
    }
}

/// The target of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference<'a> {
    /// An argument of the prompt with this name.
    Prompt(&'a str),
    /// A variable of the resource template with this URI template.
    Resource(&'a str),
}
