//! The join of several catalogs into one, under names that never change with other sources.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use super::{Checked, arrange};
use crate::{
    catalog::{AccessTable, Catalog, CatalogPart, aliases},
    cursor::ListKind,
    definition::{About, AccessSet},
    diagnostic::{Code, Diagnostic, Location, SourceText},
    name::PromptName,
    prompt::Prompt,
    resource::{Resource, Resources},
    skill::Skills,
};

/// Joins the catalogs of several sources with `own`, the definitions of the server itself.
///
/// A prompt is served as `prefix` + name: a pure function of its source and its own name. Names and URIs that two
/// sources serve are served by neither, with a diagnostic. Description and list options are those of `own`, or else of
/// the first part. Access rules that bind every source have to be among those of each part.
///
/// ```
/// use promptshelf_core::{CatalogPart, Checked, Definitions, PromptDefinition, check, join};
///
/// let hello = |text| check(Definitions::from_iter([PromptDefinition::template("hello", text)]), None);
/// let part = |source: &str, Checked { catalog, diagnostics }| CatalogPart {
///     source: source.into(),
///     prefix: format!("{source}-").into(),
///     is_foreign: false,
///     server_id: None,
///     catalog: std::sync::Arc::new(catalog),
///     diagnostics: diagnostics.into(),
/// };
/// let own = check(Definitions::default(), None);
/// let joined = join(own, vec![part("team", hello("Hi!")), part("home", hello("Hello!"))]).catalog;
/// assert!(joined.find("team-hello").is_some() && joined.find("home-hello").is_some());
/// ```
#[must_use]
pub fn join(own: Checked, mut parts: Vec<CatalogPart>) -> Checked {
    let Checked { catalog: own, diagnostics: own_found } = own;
    let mut found = merged(&own_found, &parts);
    let (about, mut policy) = (own.about.clone(), own.policy.clone());
    let first = parts.first().map(|part| Arc::clone(&part.catalog));
    let is_described = about != About::default();
    let about = first.iter().filter(|_| !is_described).map(|first| first.about.clone()).next().unwrap_or(about);
    if let Some(first) = first.filter(|_| policy == crate::definition::Policy::default()) {
        policy = first.policy.clone();
    }
    // Each part checks its own bound again.
    policy.value_bytes = parts.iter().map(|part| part.catalog.policy.value_bytes).fold(policy.value_bytes, usize::max);
    let empty: Arc<str> = Arc::from("");
    parts.push(CatalogPart {
        source: Arc::clone(&empty),
        prefix: empty,
        is_foreign: false,
        server_id: None,
        catalog: Arc::new(own),
        diagnostics: Arc::default(),
    });

    let prompts = prompts(&parts, &mut found);
    let fixed = resources(&parts, |catalog| &catalog.resources.fixed, &mut found);
    let templates = resources(&parts, |catalog| &catalog.resources.templates, &mut found);
    let access = |part: usize, list, at: usize| -> AccessSet {
        let catalog = &parts[part].catalog;
        let place = catalog.access_place(list, at);
        place.and_then(|place| catalog.access_sets().get(place)).cloned().unwrap_or_default()
    };
    let is_restricted = parts.iter().any(|part| part.catalog.is_restricted());
    let table = if is_restricted {
        AccessTable::joined(
            prompts.iter().map(|(part, at, _)| access(*part, ListKind::Prompts, *at)),
            fixed.iter().map(|(part, at, _)| access(*part, ListKind::Resources, *at)),
            templates.iter().map(|(part, at, _)| access(*part, ListKind::ResourceTemplates, *at)),
        )
    } else {
        AccessTable::default()
    };
    let listed = |items: Vec<(usize, usize, Arc<Resource>)>| items.into_iter().map(|(_, _, item)| item).collect();
    let prompts: Vec<Arc<Prompt>> = prompts.into_iter().map(|(_, _, prompt)| prompt).collect();
    // The paths of skills begin with the names of their sources, so that none is served twice.
    let skills = parts.iter().flat_map(|part| part.catalog.skills.0.clone()).collect();
    let catalog = Catalog {
        about,
        policy,
        // Each part has reported its own.
        aliases: aliases(&prompts, &mut Vec::new()),
        prompts: prompts.into(),
        resources: Resources { fixed: listed(fixed), templates: listed(templates) },
        access: Arc::new(table),
        skills: Arc::new(Skills(skills)),
        parts: parts.into(),
        ..Catalog::default()
    };
    arrange(&mut found);
    Checked { catalog, diagnostics: found }
}

fn prompts(parts: &[CatalogPart], found: &mut Vec<Diagnostic>) -> Vec<(usize, usize, Arc<Prompt>)> {
    let mut by_name: BTreeMap<PromptName, Vec<(usize, usize)>> = BTreeMap::new();
    for (number, part) in parts.iter().enumerate() {
        for (at, prompt) in part.catalog.prompts().iter().enumerate() {
            match PromptName::new(format!("{}{}", part.prefix, prompt.name())) {
                Ok(name) => by_name.entry(name).or_default().push((number, at)),
                Err(error) => {
                    let message = format!(
                        "the prompt `{}` cannot be served with the prefix `{}` of its source: {error}",
                        prompt.name(),
                        part.prefix
                    );
                    let location = place(part, prompt.definition.origin.locate("name"));
                    found.push(Diagnostic::error(Code::InvalidName, location, message).help("choose a shorter prefix"));
                }
            }
        }
    }
    let mut prompts = Vec::with_capacity(by_name.len());
    for (name, places) in by_name {
        if let [(part, at)] = *places {
            let own = Arc::clone(&parts[part].catalog.prompts()[at]);
            prompts.push((part, at, Arc::new(Prompt::serve(name, part, own))));
            continue;
        }
        let names: Vec<_> = places.iter().map(|(part, _)| shown(&parts[*part])).collect();
        let message =
            format!("the prompt `{name}` is in several sources ({}), and none of them serves it", names.join(", "));
        for (part, at) in places {
            let origin = &parts[part].catalog.prompts()[at].definition.origin;
            let location = place(&parts[part], origin.locate("name"));
            let help = "give the sources different prefixes, or rename one of the prompts";
            found.push(Diagnostic::error(Code::DuplicateName, location, message.clone()).help(help));
        }
    }
    prompts
}

fn resources(
    parts: &[CatalogPart],
    list: impl Fn(&Catalog) -> &Arc<[Arc<Resource>]>,
    found: &mut Vec<Diagnostic>,
) -> Vec<(usize, usize, Arc<Resource>)> {
    let mut by_uri = BTreeMap::<&str, Vec<(usize, usize, &Arc<Resource>)>>::new();
    for (number, part) in parts.iter().enumerate() {
        for (at, resource) in list(&part.catalog).iter().enumerate() {
            by_uri.entry(resource.uri()).or_default().push((number, at, resource));
        }
    }
    let mut served = Vec::with_capacity(by_uri.len());
    for (uri, places) in by_uri {
        if let [(part, at, resource)] = *places {
            served.push((part, at, Arc::clone(resource)));
            continue;
        }
        let names: Vec<_> = places.iter().map(|(part, ..)| shown(&parts[*part])).collect();
        let message =
            format!("the resource `{uri}` is in several sources ({}), and none of them serves it", names.join(", "));
        for (part, _, resource) in places {
            let location = place(&parts[part], resource.definition.origin.locate("uri"));
            found.push(
                Diagnostic::error(Code::DuplicateName, location, message.clone())
                    .help("URIs are the same in all sources: change one of them"),
            );
        }
    }
    served
}

fn shown(part: &CatalogPart) -> &str {
    if part.source.is_empty() { "the server" } else { &part.source }
}

fn place(part: &CatalogPart, location: Location) -> Location {
    if part.source.is_empty() {
        return location;
    }
    let path = format!("{}:{}", part.source, location.source.path);
    Location::new(&SourceText::new(path, Arc::clone(&location.source.text)), location.span())
}

/// Returns the diagnostics of the server and of all parts. A part of a rule that binds every source is reported as
/// unmatched if it matches nothing in any of them.
fn merged(own: &[Diagnostic], parts: &[CatalogPart]) -> Vec<Diagnostic> {
    let is_of_rule = |found: &&Diagnostic| found.code == Code::UnmatchedRule;
    let rules: HashSet<_> = own.iter().filter(is_of_rule).map(|found| Arc::as_ptr(&found.location.source)).collect();
    let is_of_server = |found: &Diagnostic| rules.contains(&Arc::as_ptr(&found.location.source));
    let is_unmatched = |found: &&Diagnostic| {
        !is_of_rule(found) || parts.iter().all(|part| part.diagnostics.iter().any(|theirs| theirs == *found))
    };
    let mut all: Vec<Diagnostic> = own.iter().filter(is_unmatched).cloned().collect();
    for part in parts {
        for diagnostic in part.diagnostics.iter().filter(|found| !is_of_server(found)) {
            let mut diagnostic = diagnostic.clone();
            diagnostic.location = place(part, diagnostic.location);
            diagnostic.related.iter_mut().for_each(|(location, _)| *location = place(part, location.clone()));
            all.push(diagnostic);
        }
    }
    all
}
