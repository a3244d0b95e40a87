//! The check of a whole library.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use super::{
    Checked, arrange,
    each::{self, UNREAD, about_files},
    resource, skills,
};
use crate::{
    catalog::{
        AccessInput, AccessTable, Catalog, aliases, close_server_icons, references, review, review_prompt_icons,
        review_resource_icons,
    },
    definition::{BrokenFile, Definitions, PromptDefinition},
    diagnostic::{Code, Diagnostic, Location, MOST_RELATED, SourceText},
    interrupt::{Interrupt, bounded},
    library_files::LibraryFiles,
    prompt::Prompt,
};

/// Checks definitions. Broken prompts keep their version in `previous`, except in a
/// [revision](Definitions::is_revision).
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
    bounded(Interrupt::new, || check_bounded(definitions, previous))
}

fn check_bounded(definitions: Definitions, previous: Option<&Catalog>) -> Checked {
    let Definitions {
        about,
        policy,
        prompts: definitions,
        partials,
        files,
        resources,
        access,
        links,
        roots,
        root_files,
        broken,
        mut diagnostics,
        namespace,
        remote,
        is_revision,
    } = definitions;
    let unread = about_files(&diagnostics, &UNREAD).into_iter();
    let left_out = unread.map(|(path, found)| (path, found.message)).collect();
    let mut files = LibraryFiles { by_path: files, partials, left_out, links, namespace, ..LibraryFiles::default() };
    let mut catalog = Catalog { about, policy, remote, ..Catalog::default() };
    resource::check_all(resources, &mut files, &mut catalog, &mut diagnostics);
    catalog.files = Arc::new(files);

    let selected =
        without_duplicates(definitions.clone(), &broken, previous.filter(|_| !is_revision), &mut diagnostics);
    let previous_skills = previous.map(|previous| &*previous.skills);
    let previous = previous.map_or(&[][..], Catalog::prompts);
    let prompts = each::Prompts::new(&selected.prompts, selected.ambiguous, &broken, previous);
    let prompts = prompts.with_excluded(&selected.excluded);
    let prompts = if is_revision { prompts.without_previous() } else { prompts };
    let mut checked = prompts.check_all(&catalog, &mut diagnostics);

    // The last valid version stays, unless another prompt has its name by now.
    checked.sort_by(|a, b| a.name().cmp(b.name()));
    if prompts.keeps_any() {
        let is_hidden = |prompt: &&Arc<Prompt>| {
            let same = |it: &&Arc<PromptDefinition>| {
                *it.name == *prompt.name().as_str()
                    && it.origin.from == prompt.definition.origin.from
                    && it.origin.source.path == prompt.source().path
            };
            selected.hidden.iter().any(|it| same(&it))
        };
        let is_taken = |name| checked.binary_search_by(|prompt| prompt.name().cmp(name)).is_ok();
        let unchanged = previous.iter().filter(|it| (prompts.keeps(it) || is_hidden(it)) && !is_taken(it.name()));
        let unchanged: Vec<_> = unchanged.cloned().collect();
        checked.extend(unchanged);
        checked.sort_by(|a, b| a.name().cmp(b.name()));
    }
    catalog.prompts = checked.into();
    catalog.aliases = aliases(&catalog.prompts, &mut diagnostics);
    catalog.references = Arc::new(references(&catalog.prompts, &catalog.files));
    let skills = skills::collect(&mut catalog, previous_skills, &mut diagnostics);
    let input = AccessInput { rules: &access, definitions: &definitions, broken: &broken, roots: &roots };
    let Catalog { prompts, resources, files, .. } = &catalog;
    let table = AccessTable::check(&input, prompts, resources, files, &mut diagnostics);
    review(&table, &input, &root_files, (prompts, resources, files), &mut diagnostics);
    catalog.access = Arc::new(table);
    close_server_icons(&mut catalog, &access, &mut diagnostics);
    review_prompt_icons(&catalog, 0..catalog.prompts.len(), &mut diagnostics);
    review_resource_icons(&catalog, &mut diagnostics);
    skills::add(&mut catalog, skills);

    remove_repeated(&mut diagnostics);
    arrange(&mut diagnostics);
    Checked { catalog, diagnostics }
}

/// Removes diagnostics about the content of files that prompts attach: these have one at each place that attaches them.
fn remove_repeated(diagnostics: &mut Vec<Diagnostic>) {
    let is_about_content = |found: &Diagnostic| matches!(found.code, Code::ContentMismatch | Code::InvalidMedia);
    let attached: HashSet<_> = diagnostics
        .iter()
        .filter(|found| is_about_content(found))
        .flat_map(|found| found.related.iter().map(|(file, _)| file.source.path.clone()))
        .collect();
    if !attached.is_empty() {
        diagnostics.retain(|found| {
            !is_about_content(found) || !found.related.is_empty() || !attached.contains(&found.location.source.path)
        });
    }
}

const ORDER: &str = "the order is: prompt files, skills, then the folders of other programs (.agents, .claude, .github, \
                     .gemini, .opencode, .cursor, .codex)";

/// Selects the definition that is served under each name: the one of the first rank. Definitions of the same rank exclude
/// each other, and serving one of them would be a guess. A broken file keeps its name, so that another prompt does not
/// take its place unnoticed.
fn without_duplicates(
    prompts: Vec<Arc<PromptDefinition>>,
    broken: &[BrokenFile],
    previous: Option<&Catalog>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Selected {
    let mut first: HashMap<&str, usize> = HashMap::with_capacity(prompts.len());
    let mut twice: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, prompt) in prompts.iter().enumerate() {
        if let Some(first) = first.insert(&prompt.name, index) {
            twice.entry(&prompt.name).or_insert_with(|| vec![first]).push(index);
        }
    }
    for file in broken.iter().filter(|file| !file.name.is_empty()) {
        if let Some(index) = first.get(&*file.name) {
            twice.entry(&prompts[*index].name).or_insert_with(|| vec![*index]);
        }
    }
    let mut selected = Selected::default();
    let mut left_out: HashSet<usize> = HashSet::new();
    for (name, mut places) in twice {
        let rank = |index: &usize| {
            let origin = &prompts[*index].origin;
            (origin.rank, &*origin.source.path)
        };
        places.sort_by(|a, b| rank(a).cmp(&rank(b)));
        let is_of_one_source = |index: &usize| prompts[*index].origin.from == prompts[places[0]].origin.from;
        let best = places.iter().map(|index| rank(index).0).min().unwrap_or_default();
        let has_name = |file: &&BrokenFile| file.name == name && file.from == prompts[places[0]].origin.from;
        let owner = broken.iter().filter(has_name).filter(|file| file.rank <= best).min_by_key(|file| file.rank);
        let is_first = |index: &usize| rank(index).0 == best || !is_of_one_source(index);
        let firsts: Vec<usize> = places.iter().copied().filter(is_first).collect();
        let at = |index: usize| prompts[index].origin.locate("name");
        let hide = |index: usize, message: String, by: Location| {
            Diagnostic::warning(Code::DuplicateName, at(index), message).also(by, "precedes it").help(ORDER)
        };
        if let Some(owner) = owner {
            let by = Location::file(&SourceText::new(&*owner.path, ""));
            let before = previous.and_then(|previous| previous.find(name));
            for index in places {
                let stays = before.is_some_and(|before| before.source().path == prompts[index].origin.source.path);
                let consequence = if stays { "stays in service until then" } else { "is not served" };
                let message = format!(
                    "the prompt `{name}` is also defined in `{}`, which precedes this file and has an error; this one \
                     {consequence}",
                    owner.path
                );
                let found = Diagnostic::warning(Code::DuplicateName, at(index), message);
                diagnostics.push(found.also(by.clone(), "correct or remove this file").help(ORDER));
                if !stays {
                    left_out.insert(index);
                }
            }
            continue;
        }
        if let [served] = *firsts {
            for index in places.into_iter().filter(|index| *index != served) {
                let path = &prompts[served].origin.source.path;
                let message = format!(
                    "the prompt `{name}` is also defined in `{path}`, which precedes this file; this one is not served"
                );
                diagnostics.push(hide(index, message, at(served)));
                left_out.insert(index);
            }
            continue;
        }
        for index in &places {
            left_out.insert(*index);
            if !firsts.contains(index) {
                let path = &prompts[firsts[0]].origin.source.path;
                let message = format!("the prompt `{name}` is also defined in `{path}`, which precedes this file");
                diagnostics.push(hide(*index, message, at(firsts[0])));
                continue;
            }
            let message = format!("the prompt `{name}` is defined {} times, and none of them is served", firsts.len());
            let mut found = Diagnostic::error(Code::DuplicateName, at(*index), message)
                .help("give each a `name` of its own, or move one away; a version that was served before stays");
            for other in firsts.iter().filter(|other| *other != index).take(MOST_RELATED) {
                found = found.also(at(*other), "also defined here");
            }
            diagnostics.push(found);
        }
        selected.excluded.extend(firsts.iter().map(|index| Arc::clone(&prompts[*index])));
        selected.ambiguous.insert(name.to_owned());
    }
    selected.hidden = left_out.iter().map(|index| Arc::clone(&prompts[*index])).collect();
    selected.prompts = if left_out.is_empty() {
        prompts
    } else {
        let served = prompts.into_iter().enumerate().filter(|(index, _)| !left_out.contains(index));
        served.map(|(_, prompt)| prompt).collect()
    };
    selected
}

#[derive(Default)]
struct Selected {
    prompts: Vec<Arc<PromptDefinition>>,
    /// Definitions that exclude each other: what was served of them before stays.
    excluded: Vec<Arc<PromptDefinition>>,
    /// Definitions that another one precedes. If that one has an error from the start, what was served of them stays.
    hidden: Vec<Arc<PromptDefinition>>,
    ambiguous: HashSet<String>,
}
