//! Every prompt once, and those that it brings in before it.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use super::{Shelf, drafts, prompt};
use crate::{
    catalog::Catalog,
    definition::{BrokenFile, Demands, PromptDefinition},
    diagnostic::{Code, Diagnostic, SourceText, nearest},
    prompt::Prompt,
};

/// The longest way from prompt to prompt that is followed, whatever the
/// library allows: each step takes room on the stack.
const MAX_DEPTH: usize = 64;

/// The prompts of one check.
pub(super) struct Prompts<'a> {
    order: Vec<String>,
    slots: RefCell<HashMap<String, Slot>>,
    /// Those that are being checked: each brings in the next one.
    open: RefCell<Vec<String>>,
    duplicates: HashSet<String>,
    /// By source and path, what each broken file asks of callers.
    broken: RefCell<HashMap<(usize, String), Vec<Demands>>>,
    drafts: &'a [BrokenFile],
    previous: &'a [Arc<Prompt>],
    /// By source, path and name: a file can hold several.
    known: HashMap<(usize, &'a str, &'a str), &'a Arc<Prompt>>,
    found: RefCell<Vec<Diagnostic>>,
}

enum Slot {
    Waiting(Box<PromptDefinition>),
    Open,
    /// `None` for one that is broken.
    Done(Option<Arc<Prompt>>),
}

/// Why a prompt cannot be brought in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It leads back to where it is brought in; names each one on the way.
    Circle(Vec<String>),
    /// Too many prompts stand in each other.
    TooDeep,
    /// It is there, but cannot be served.
    Broken,
    /// There is none; names one that may be meant.
    Unknown(Option<String>),
}

impl<'a> Prompts<'a> {
    pub(super) fn new(
        definitions: Vec<PromptDefinition>,
        duplicates: HashSet<String>,
        drafts: &'a [BrokenFile],
        previous: &'a [Arc<Prompt>],
    ) -> Prompts<'a> {
        let order = definitions.iter().map(|definition| definition.name.clone()).collect();
        let waiting = |definition: PromptDefinition| (definition.name.clone(), Slot::Waiting(Box::new(definition)));
        let mut broken: HashMap<(usize, String), Vec<Demands>> = HashMap::new();
        for file in drafts {
            broken.entry((file.from, file.path.clone())).or_default().push(file.demands.clone());
        }
        let key = |it: &'a Arc<Prompt>| (it.definition.origin.from, &*it.source().path, it.name().as_str());
        Prompts {
            order,
            slots: RefCell::new(definitions.into_iter().map(waiting).collect()),
            open: RefCell::default(),
            duplicates,
            broken: RefCell::new(broken),
            drafts,
            previous,
            known: previous.iter().map(|it| (key(it), it)).collect(),
            found: RefCell::default(),
        }
    }

    /// Checks every prompt; gives those that can be served.
    pub(super) fn check_all(
        &self,
        partials: &BTreeMap<String, Arc<SourceText>>,
        catalog: &Catalog,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Vec<Arc<Prompt>> {
        let uris: Vec<String> = catalog.resources.iter().map(|resource| resource.uri().to_owned()).collect();
        let unread = unread(diagnostics);
        let shelf =
            Shelf { partials, files: &catalog.files, uris: &uris, catalog, prompts: Some(self), unread: &unread };
        for name in &self.order {
            self.check(name, &shelf);
        }
        for draft in self.drafts {
            drafts::check(draft, &shelf, diagnostics);
        }
        diagnostics.append(&mut self.found.borrow_mut());
        let slots = self.slots.borrow();
        let done = |name: &String| match slots.get(name) {
            Some(Slot::Done(Some(prompt))) => Some(Arc::clone(prompt)),
            _ => None,
        };
        self.order.iter().filter_map(done).collect()
    }

    /// Whether a prompt of the previous catalog stays though it is defined no
    /// longer: its file is broken, closes nothing that would stay open, and
    /// nobody else has its name by now.
    pub(super) fn keeps(&self, prompt: &Prompt) -> bool {
        let Prompt { definition, .. } = prompt;
        let broken = self.broken.borrow();
        let Some(demands) = broken.get(&(definition.origin.from, prompt.source().path.clone())) else { return false };
        !self.duplicates.contains(prompt.name().as_str())
            && demands.iter().all(|demands| demands.leave(definition.access.as_ref()))
    }

    /// Checks a prompt that still waits for it.
    fn check(&self, name: &str, shelf: &Shelf<'_>) {
        let definition = match self.slots.borrow_mut().get_mut(name) {
            Some(slot @ Slot::Waiting(_)) => match std::mem::replace(slot, Slot::Open) {
                Slot::Waiting(definition) => *definition,
                _ => return,
            },
            _ => return,
        };
        self.open.borrow_mut().push(name.to_owned());
        let (from, path) = (definition.origin.from, definition.origin.source.path.clone());
        let demands = Demands::Known(definition.access.clone());
        let before = self.known.get(&(from, &*path, name)).copied();
        let outcome = match before.filter(|before| prompt::is_unchanged(before, &definition, shelf)) {
            Some(same) => Ok(Arc::clone(same)),
            None => prompt::check(definition, shelf).map(Arc::new),
        };
        self.open.borrow_mut().pop();
        let done = match outcome {
            Ok(prompt) => {
                self.found.borrow_mut().extend(prompt.warnings.iter().cloned());
                Some(prompt)
            }
            Err(found) => {
                self.found.borrow_mut().extend(found);
                self.broken.borrow_mut().entry((from, path)).or_default().push(demands);
                None
            }
        };
        self.slots.borrow_mut().insert(name.to_owned(), Slot::Done(done));
    }

    fn is_draft(&self, name: &str) -> bool {
        self.drafts.iter().filter_map(|draft| draft.draft.as_ref()).any(|draft| draft.name == name)
    }

    fn find(&self, name: &str, shelf: &Shelf<'_>) -> Result<Arc<Prompt>, Missing> {
        if let Some(start) = self.open.borrow().iter().position(|open| open == name) {
            let open = self.open.borrow();
            return Err(Missing::Circle(open[start..].iter().cloned().chain([name.to_owned()]).collect()));
        }
        let is_waiting = matches!(self.slots.borrow().get(name), Some(Slot::Waiting(_)));
        if is_waiting && self.open.borrow().len() >= MAX_DEPTH {
            return Err(Missing::TooDeep);
        }
        self.check(name, shelf);
        let slots = self.slots.borrow();
        let slot = slots.get(name);
        if let Some(Slot::Done(Some(prompt))) = slot {
            return Ok(Arc::clone(prompt));
        }
        let last_good = self.previous.iter().find(|prompt| prompt.name().as_str() == name && self.keeps(prompt));
        match last_good {
            Some(prompt) => Ok(Arc::clone(prompt)),
            None if slot.is_some() || self.duplicates.contains(name) || self.is_draft(name) => Err(Missing::Broken),
            None => Err(Missing::Unknown(nearest(name, slots.keys().map(String::as_str)).map(str::to_owned))),
        }
    }
}

/// Files that a source has found and not read.
fn unread(diagnostics: &[Diagnostic]) -> BTreeMap<String, Diagnostic> {
    let is_reason = |found: &&Diagnostic| matches!(found.code, Code::TooLarge | Code::Unreadable | Code::Outside);
    diagnostics.iter().filter(is_reason).map(|found| (found.location.source.path.clone(), found.clone())).collect()
}

impl Shelf<'_> {
    /// Another prompt of the library, checked.
    pub(super) fn prompt(&self, name: &str) -> Result<Arc<Prompt>, Missing> {
        self.prompts.ok_or(Missing::Unknown(None))?.find(name, self)
    }
}
