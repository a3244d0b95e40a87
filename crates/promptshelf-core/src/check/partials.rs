//! Partials that a template includes: existence, depth and cycles.

use std::{collections::HashMap, ops::Range, rc::Rc, sync::Arc};

use super::Scope;
use crate::{
    diagnostic::{Code, Diagnostic, Location, SourceText, nearest},
    template::{Lint, lint::Use},
};

/// The most partials among which one with the same name is looked for.
const MAX_CANDIDATES: usize = 1_000;

/// A text that includes others: a file, and the offset of the template in it.
#[derive(Clone)]
pub(super) struct Including {
    pub(super) source: Arc<SourceText>,
    pub(super) base: usize,
}

impl Including {
    pub(super) fn at(&self, span: &Range<usize>) -> Location {
        Location::new(&self.source, self.base + span.start..self.base + span.end)
    }
}

/// Follows includes from a template, each partial once. Returns the names that each partial uses, and fills
/// `partials` with the texts to compile.
pub(super) fn collect(
    own: &Including,
    first: &[Use],
    scope: &Scope<'_>,
    depth: usize,
    partials: &mut Vec<Arc<SourceText>>,
    found: &mut Vec<Diagnostic>,
) -> Vec<(Including, Rc<Lint>)> {
    let mut walk = Walk { scope, depth, partials, found, lints: Vec::new(), path: Vec::new(), done: HashMap::new() };
    walk.follow(own, first);
    walk.lints
}

struct Walk<'a> {
    scope: &'a Scope<'a>,
    depth: usize,
    partials: &'a mut Vec<Arc<SourceText>>,
    found: &'a mut Vec<Diagnostic>,
    lints: Vec<(Including, Rc<Lint>)>,
    path: Vec<String>,
    done: HashMap<String, Done>,
}

struct Done {
    depth: usize,
    includes: Rc<[Use]>,
}

impl Walk<'_> {
    fn follow(&mut self, own: &Including, includes: &[Use]) {
        for include in includes {
            if self.path.contains(&include.name) {
                let cycle = self.path.iter().chain([&include.name]).map(|part| format!("`{part}`")).collect::<Vec<_>>();
                let message = format!("circular include of partials: {}", cycle.join(" → "));
                self.found.push(
                    Diagnostic::error(Code::CircularInclude, own.at(&include.span), message)
                        .help("remove one of these includes"),
                );
                continue;
            }
            if self.path.len() >= self.depth {
                let message = format!("partials include each other more than {} levels deep", self.depth);
                self.found.push(Diagnostic::error(Code::CircularInclude, own.at(&include.span), message));
                continue;
            }
            let Some(partial) = self.scope.files.partials.get(&include.name) else {
                self.missing(own, include);
                continue;
            };
            if let Some(includes) = self.includes_of(&include.name, partial) {
                self.path.push(include.name.clone());
                self.follow(&Including { source: Arc::clone(partial), base: 0 }, &includes);
                self.path.pop();
            }
        }
    }

    /// Returns the includes of a partial, unless it was followed at this depth before. Each partial is parsed once.
    fn includes_of(&mut self, name: &str, partial: &Arc<SourceText>) -> Option<Rc<[Use]>> {
        let depth = self.path.len();
        if let Some(done) = self.done.get_mut(name) {
            let deeper = depth > done.depth;
            done.depth = done.depth.max(depth);
            return deeper.then(|| Rc::clone(&done.includes));
        }
        self.partials.push(Arc::clone(partial));
        let including = Including { source: Arc::clone(partial), base: 0 };
        let known = self.scope.lints.borrow().get(name).map(Rc::clone);
        let lint = known.unwrap_or_else(|| {
            let lint = Rc::new(Lint::of(&partial.text));
            self.scope.lints.borrow_mut().insert(name.to_owned(), Rc::clone(&lint));
            lint
        });
        let includes: Rc<[Use]> = lint.partials.as_slice().into();
        self.lints.push((including, lint));
        self.done.insert(name.to_owned(), Done { depth, includes: Rc::clone(&includes) });
        Some(includes)
    }

    fn missing(&mut self, own: &Including, include: &Use) {
        let place = own.at(&include.span);
        if let Some((message, help)) = self.scope.prompt_file(&include.name) {
            return self.found.push(Diagnostic::error(Code::MissingPartial, place, message).help(help));
        }
        if let Some(reason) = self.scope.unread.get(&include.name) {
            let message = format!("`{}` cannot be included: {}", include.name, reason.message);
            let found = Diagnostic::error(reason.code, place, message);
            return self.found.push(Diagnostic { help: reason.help.clone(), ..found });
        }
        if self.scope.files.by_path.contains_key(&include.name) {
            let message = format!("`{}` cannot be included: it is not text in UTF-8", include.name);
            return self.found.push(Diagnostic::error(Code::NotUtf8, place, message).help("save it as UTF-8"));
        }
        let message = format!("partial `{}` not found in the library", include.name);
        let partials = || self.scope.files.partials.keys().map(String::as_str);
        // A path without its folder, or without the `_` of its name, is more likely than a slip.
        fn name(path: &str) -> &str {
            path.rsplit('/').next().unwrap_or_default().trim_start_matches('_')
        }
        let wanted = name(&include.name);
        let same = partials().take(MAX_CANDIDATES).find(|path| name(path) == wanted);
        let near = same.or_else(|| nearest(&include.name, partials()));
        let help = near.map_or_else(
            || "paths begin at the library's folder, with `/` between their parts".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        self.found.push(Diagnostic::error(Code::MissingPartial, place, message).help(help));
    }
}
