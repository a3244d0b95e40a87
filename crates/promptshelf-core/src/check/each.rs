//! The check of each prompt, once, after the prompts that it includes.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use super::{FindPrompt, Missing, Scope, Uris, drafts, prompt};
use crate::{
    catalog::{Catalog, find},
    definition::{BrokenFile, PromptDefinition, Requirements},
    diagnostic::{Code, Diagnostic, nearest},
    interrupt::is_interrupted,
    prompt::Prompt,
};

/// The longest chain of prompts that is followed, whatever the library allows: each link uses the stack.
const MAX_DEPTH: usize = 64;

/// The number of findings from which on each prompt has only one.
const MAX_FOUND: usize = 3_000;

pub(super) struct Prompts<'a> {
    definitions: &'a [Arc<PromptDefinition>],
    by_name: HashMap<&'a str, usize>,
    slots: RefCell<Vec<Slot>>,
    /// Prompts under check: each includes the next one.
    open: RefCell<Vec<usize>>,
    duplicates: HashSet<String>,
    excluded: HashMap<(usize, String), &'a str>,
    broken: RefCell<HashMap<(usize, String), Vec<Requirements>>>,
    drafts: &'a [BrokenFile],
    previous: &'a [Arc<Prompt>],
    /// Whether broken prompts keep their version in `previous`.
    keeps_previous: bool,
    found: RefCell<Vec<Diagnostic>>,
}

#[derive(Clone)]
enum Slot {
    Waiting,
    Open,
    /// `None` for a broken prompt.
    Done(Option<Arc<Prompt>>),
}

impl<'a> Prompts<'a> {
    pub(super) fn new(
        definitions: &'a [Arc<PromptDefinition>],
        duplicates: HashSet<String>,
        drafts: &'a [BrokenFile],
        previous: &'a [Arc<Prompt>],
    ) -> Prompts<'a> {
        let mut broken: HashMap<(usize, String), Vec<Requirements>> = HashMap::new();
        for file in drafts {
            broken.entry((file.from, file.path.as_str().into())).or_default().push(file.requirements.clone());
        }
        Prompts {
            definitions,
            by_name: definitions.iter().enumerate().map(|(index, it)| (it.name.as_str(), index)).collect(),
            slots: RefCell::new(vec![Slot::Waiting; definitions.len()]),
            open: RefCell::default(),
            duplicates,
            excluded: HashMap::new(),
            broken: RefCell::new(broken),
            drafts,
            previous,
            keeps_previous: true,
            found: RefCell::default(),
        }
    }

    /// Treats definitions that exclude each other like broken files: what was served of them before stays.
    pub(super) fn with_excluded(mut self, excluded: &'a [Arc<PromptDefinition>]) -> Prompts<'a> {
        for definition in excluded {
            let key = (definition.origin.from, definition.origin.source.path.clone());
            let requirements = Requirements::Known(definition.access.as_deref().cloned());
            self.broken.borrow_mut().entry(key.clone()).or_default().push(requirements);
            self.excluded.insert(key, &definition.name);
        }
        self
    }

    pub(super) fn without_previous(self) -> Prompts<'a> {
        Prompts { keeps_previous: false, ..self }
    }

    pub(super) fn check_all(&self, catalog: &Catalog, diagnostics: &mut Vec<Diagnostic>) -> Vec<Arc<Prompt>> {
        let uris = Uris::Checked(&catalog.resources.fixed);
        let unread = about_files(diagnostics, &UNREAD);
        let mismatched = about_files(diagnostics, &[Code::ContentMismatch, Code::InvalidMedia]);
        let budget = Arc::new(catalog.policy.budget);
        let (prompts, unread, mismatched) = (Some(self as _), &unread, &mismatched);
        let lints = RefCell::default();
        let scope = Scope { budget, files: &catalog.files, uris: &uris, catalog, prompts, unread, mismatched, lints };
        for index in 0..self.definitions.len() {
            if is_interrupted() {
                break;
            }
            self.check(index, &scope);
        }
        for draft in self.drafts {
            drafts::check(draft, &scope, diagnostics);
        }
        diagnostics.append(&mut self.found.borrow_mut());
        let done = |slot: &Slot| match slot {
            Slot::Done(Some(prompt)) => Some(Arc::clone(prompt)),
            _ => None,
        };
        self.slots.borrow().iter().filter_map(done).collect()
    }

    /// Whether any prompt of the previous catalog can stay without a definition.
    pub(super) fn keeps_any(&self) -> bool {
        self.keeps_previous && !self.broken.borrow().is_empty()
    }

    /// Whether a prompt of the previous catalog stays without a definition: its file is broken, requires no more of
    /// callers than before.
    pub(super) fn keeps(&self, prompt: &Prompt) -> bool {
        let Prompt { definition, .. } = prompt;
        let broken = self.broken.borrow();
        if broken.is_empty() || !self.keeps_previous {
            return false;
        }
        let file = (definition.origin.from, prompt.source().path.clone());
        let Some(requirements) = broken.get(&file) else { return false };
        if self.excluded.get(&file).is_some_and(|name| *name != prompt.name().as_str()) {
            return false;
        }
        requirements.iter().all(|one| one.leave(definition.access.as_deref()))
    }

    fn before(&self, definition: &PromptDefinition) -> Option<&'a Arc<Prompt>> {
        fn key(it: &PromptDefinition) -> (usize, &str) {
            (it.origin.from, &it.origin.source.path)
        }
        find(self.previous, &definition.name).filter(|before| key(&before.definition) == key(definition))
    }

    /// Checks a prompt, unless it was checked before.
    fn check(&self, index: usize, scope: &Scope<'_>) {
        let definition = &self.definitions[index];
        match &mut self.slots.borrow_mut()[index] {
            slot @ Slot::Waiting => *slot = Slot::Open,
            _ => return,
        }
        self.open.borrow_mut().push(index);
        let outcome = match self.before(definition).filter(|before| prompt::is_unchanged(before, definition, scope)) {
            Some(same) => Ok(Arc::clone(same)),
            None => prompt::check(definition.clone(), scope).map(Arc::new),
        };
        self.open.borrow_mut().pop();
        let done = match outcome {
            Ok(prompt) => {
                self.report(prompt.uses().warnings.iter().cloned());
                Some(prompt)
            }
            Err(found) => {
                self.report(found.into_iter());
                let key = (definition.origin.from, definition.origin.source.path.clone());
                self.broken
                    .borrow_mut()
                    .entry(key)
                    .or_default()
                    .push(Requirements::Known(definition.access.as_deref().cloned()));
                None
            }
        };
        self.slots.borrow_mut()[index] = Slot::Done(done);
    }

    fn report(&self, found: impl Iterator<Item = Diagnostic>) {
        let mut all = self.found.borrow_mut();
        if all.len() < MAX_FOUND {
            all.extend(found);
        } else {
            all.extend(found.min_by_key(|diagnostic| !diagnostic.is_error()));
        }
    }

    fn is_draft(&self, name: &str) -> bool {
        self.drafts.iter().filter_map(|draft| draft.draft.as_ref()).any(|draft| draft.name == name)
    }
}

impl FindPrompt for Prompts<'_> {
    fn name_in(&self, path: &str) -> Option<&str> {
        let is_of = |definition: &&Arc<PromptDefinition>| definition.origin.source.path == path;
        let broken = || self.drafts.iter().find(|file| file.path == path).map(|file| &*file.name);
        self.definitions.iter().find(is_of).map(|definition| &*definition.name).or_else(broken)
    }

    fn find(&self, name: &str, scope: &Scope<'_>) -> Result<Arc<Prompt>, Missing> {
        let index = self.by_name.get(name).copied();
        if let Some(start) = self.open.borrow().iter().position(|open| Some(*open) == index) {
            let cycle =
                self.open.borrow()[start..].iter().map(|open| self.definitions[*open].name.to_string()).collect();
            return Err(Missing::Cycle([cycle, vec![name.to_owned()]].concat()));
        }
        if let Some(index) = index {
            if matches!(self.slots.borrow()[index], Slot::Waiting) && self.open.borrow().len() >= MAX_DEPTH {
                return Err(Missing::TooDeep);
            }
            self.check(index, scope);
            if let Slot::Done(Some(prompt)) = &self.slots.borrow()[index] {
                return Ok(Arc::clone(prompt));
            }
        }
        match find(self.previous, name).filter(|prompt| self.keeps(prompt)) {
            Some(prompt) => Ok(Arc::clone(prompt)),
            None if index.is_some() || self.duplicates.contains(name) || self.is_draft(name) => Err(Missing::Broken),
            None => Err(Missing::Unknown(nearest(name, self.by_name.keys().copied()).map(str::to_owned))),
        }
    }
}

/// The codes of findings about files that are left out.
pub(super) const UNREAD: [Code; 4] = [Code::TooLarge, Code::Unreadable, Code::Outside, Code::NotUtf8];

pub(super) fn about_files(diagnostics: &[Diagnostic], codes: &[Code]) -> BTreeMap<String, Diagnostic> {
    let is_wanted = |found: &&Diagnostic| codes.contains(&found.code) && found.related.is_empty();
    diagnostics.iter().filter(is_wanted).map(|found| (found.location.source.path.to_string(), found.clone())).collect()
}
