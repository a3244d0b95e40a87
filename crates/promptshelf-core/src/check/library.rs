//! The check of a whole library.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use super::{
    each, resource,
    result::{Checked, arrange},
    skills,
};
use crate::{
    catalog::{
        AccessInput, AccessTable, Catalog, PromptList, close_server_icons, references, review, review_prompt_icons,
        review_resource_icons,
    },
    definition::{Definitions, PromptDefinition},
    diagnostic::{Code, Diagnostic},
    library_files::LibraryFiles,
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
    let mut files = LibraryFiles { by_path: files, declared: BTreeMap::new(), partials, links, namespace };
    let mut catalog = Catalog { about, policy, remote, ..Catalog::default() };
    resource::check_all(resources, &mut files, &mut catalog, &mut diagnostics);
    catalog.files = Arc::new(files);

    let (prompts, duplicates) = without_duplicates(definitions.clone(), &mut diagnostics);
    let none = PromptList::default();
    let previous_skills = previous.map(|previous| &*previous.skills);
    let previous = previous.map_or(&none, |previous| &previous.prompts);
    let prompts = each::Prompts::new(&prompts, duplicates, &broken, previous);
    let prompts = if is_revision { prompts.without_previous() } else { prompts };
    let mut checked = prompts.check_all(&catalog, &mut diagnostics);

    // The last valid version stays, unless another prompt has its name by now.
    checked.sort_by(|a, b| a.name().cmp(b.name()));
    if prompts.keeps_any() {
        let is_taken = |name| checked.binary_search_by(|prompt| prompt.name().cmp(name)).is_ok();
        let unchanged = previous.iter().filter(|prompt| prompts.keeps(prompt) && !is_taken(prompt.name()));
        let unchanged: Vec<_> = unchanged.cloned().collect();
        checked.extend(unchanged);
        checked.sort_by(|a, b| a.name().cmp(b.name()));
    }
    catalog.called_prompts =
        Arc::new(checked.iter().flat_map(|prompt| prompt.uses().prompts.keys().cloned()).collect());
    catalog.prompts = PromptList::from_sorted(&checked);
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

/// Removes prompts that share a name, and reports all of them: serving either would be a guess.
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
