//! Definitions in; a catalog and diagnostics out.
//!
//! One broken prompt never takes another one down, and a prompt that was good
//! before stays as it was. What has not changed since the previous catalog is
//! taken over from it instead of being compiled again.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use crate::{
    access::AccessTable,
    catalog::{Catalog, Files, PromptList},
    definition::{Budget, Definitions, LibraryFile, PromptDefinition},
    diagnostic::{Code, Diagnostic},
    resource::Resource,
};

mod arguments;
mod calls;
mod drafts;
mod each;
mod edited;
mod partials;
mod pieces;
mod prompt;
mod resource;

pub use edited::check_edited;

/// The most other places that are named with one mistake.
const MOST_RELATED: usize = 5;

/// What checking gives.
#[derive(Debug)]
pub struct Checked {
    /// Everything that can be served.
    pub catalog: Catalog,
    /// Everything that is wrong, by file and place.
    pub diagnostics: Vec<Diagnostic>,
}

/// What prompts are checked against.
struct Shelf<'a> {
    /// That of the catalog, for every template to share.
    budget: Arc<Budget>,
    files: &'a Files,
    uris: &'a Uris<'a>,
    catalog: &'a Catalog,
    /// Absent where no prompt can be brought in.
    prompts: Option<&'a each::Prompts<'a>>,
    /// Files that are there but were not read, with the reason.
    unread: &'a BTreeMap<String, Diagnostic>,
}

/// URIs of the resources that have a fixed one.
enum Uris<'a> {
    /// As they are declared: none of them is checked yet.
    Declared(Vec<String>),
    Checked(&'a [Arc<Resource>]),
}

impl Uris<'_> {
    fn any(&self, fits: impl Fn(&str) -> bool) -> bool {
        match self {
            Uris::Declared(uris) => uris.iter().any(|uri| fits(uri)),
            Uris::Checked(resources) => resources.iter().any(|resource| fits(resource.uri())),
        }
    }
}

/// Checks definitions. Prompts of `previous` stay in place of those that are
/// broken now.
///
/// ```
/// use promptshelf_core::{Code, Definitions, PromptDefinition, check};
///
/// let broken = PromptDefinition::template("broken", "Hello {{ nme }}").description("Greets");
/// let checked = check(Definitions::from_iter([broken]), None);
/// assert_eq!(checked.diagnostics[0].code, Code::UndeclaredArgument);
/// assert!(checked.catalog.prompts().is_empty());
/// ```
#[must_use]
pub fn check(definitions: Definitions, previous: Option<&Catalog>) -> Checked {
    let Definitions { about, policy, prompts, partials, files, resources, access, broken, mut diagnostics } =
        definitions;
    let mut files = Files { by_path: files, declared: BTreeMap::new(), partials };
    let mut catalog = Catalog { about, policy, ..Catalog::default() };
    resource::check_all(resources, &mut files, &mut catalog, &mut diagnostics);
    catalog.files = Arc::new(files);

    let (prompts, duplicates) = without_duplicates(prompts, &mut diagnostics);
    let none = PromptList::default();
    let previous = previous.map_or(&none, |previous| &previous.prompts);
    let prompts = each::Prompts::new(&prompts, duplicates, &broken, previous);
    let mut checked = prompts.check_all(&catalog, &mut diagnostics);

    // The last good version stays, unless another prompt has its name by now.
    checked.sort_by(|a, b| a.name().cmp(b.name()));
    if prompts.keeps_any() {
        let is_taken = |name| checked.binary_search_by(|prompt| prompt.name().cmp(name)).is_ok();
        let kept = previous.iter().filter(|prompt| prompts.keeps(prompt) && !is_taken(prompt.name()));
        let kept: Vec<_> = kept.cloned().collect();
        checked.extend(kept);
        checked.sort_by(|a, b| a.name().cmp(b.name()));
    }
    catalog.brought_in = Arc::new(checked.iter().flat_map(|prompt| prompt.uses.prompts.keys().cloned()).collect());
    catalog.prompts = PromptList::from_sorted(&checked);
    catalog.access = Arc::new(AccessTable::check(&access, &catalog, &mut diagnostics));

    arrange(&mut diagnostics);
    Checked { catalog, diagnostics }
}

/// Puts diagnostics in order, each once.
fn arrange(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    // What is wrong with a partial is found once for each prompt that includes it.
    diagnostics.dedup_by(|again, first| {
        let is_same = again.sort_key() == first.sort_key() && again.severity == first.severity;
        if is_same {
            let new = again.related.drain(..).filter(|it| !first.related.contains(it)).collect::<Vec<_>>();
            first.related.extend(new.into_iter().take(MOST_RELATED.saturating_sub(first.related.len())));
        }
        is_same
    });
}

/// Two prompts of one name: which one is meant nobody can know, so neither is
/// served, and both are named.
fn without_duplicates(
    prompts: Vec<Arc<PromptDefinition>>,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Vec<Arc<PromptDefinition>>, HashSet<String>) {
    let mut first: HashMap<&str, usize> = HashMap::with_capacity(prompts.len());
    let mut twice: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, prompt) in prompts.iter().enumerate() {
        if let Some(first) = first.insert(&prompt.name, index) {
            twice.entry(prompt.name.to_string()).or_insert_with(|| vec![first]).push(index);
        }
    }
    for (name, places) in &twice {
        for index in places {
            let message = format!("the prompt `{name}` is defined {} times, and none of them is served", places.len());
            let mut diagnostic = Diagnostic::error(Code::DuplicateName, prompts[*index].origin.locate("name"), message)
                .help("give each a `name` of its own, or move one away");
            for other in places.iter().filter(|other| *other != index) {
                diagnostic = diagnostic.also(prompts[*other].origin.locate("name"), "also defined here");
            }
            diagnostics.push(diagnostic);
        }
    }
    let unique = prompts.into_iter().filter(|prompt| !twice.contains_key(prompt.name.as_str())).collect();
    (unique, twice.into_keys().collect())
}

impl LibraryFile {
    /// Whether clients can read it by its own URI: no part of its path begins with `_`.
    #[must_use]
    pub fn is_served(&self) -> bool {
        !self.path.split('/').any(|part| part.starts_with('_'))
    }
}
