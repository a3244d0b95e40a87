//! Diagnostics of access rules: rules that match nothing, that close more than they name, and open prompts that contain
//! restricted content.

use std::{collections::HashSet, sync::Arc};

use super::{
    DeclaredNames,
    access::{AccessInput, AccessTable},
    pattern::{ANY, Pattern},
    rule::{CheckedRule, Uri},
};
use crate::{
    definition::{Access, AccessRule, AccessSet},
    diagnostic::{Code, Diagnostic, Location},
    interrupt::is_interrupted,
    library_files::LibraryFiles,
    prompt::Prompt,
    resource::Resources,
    template::Lint,
};

const MAX_COMPARED: usize = 20_000;

pub(crate) fn review(
    table: &AccessTable,
    input: &AccessInput<'_>,
    root_files: &[String],
    (prompts, resources, files): (&[Arc<Prompt>], &Resources, &LibraryFiles),
    found: &mut Vec<Diagnostic>,
) {
    if !table.restricts_contents() || table.rules.iter().any(|rule| rule.is_closed) {
        return;
    }
    let library = Reviewed { input, root_files, resources, files };
    for (rule, written) in table.rules.iter().zip(input.rules) {
        if is_interrupted() {
            return;
        }
        library.matches(rule, written, found);
    }
    library.other_names(table, found);
    for index in 0..prompts.len() {
        review_prompt(table, index, (prompts, resources, files), found);
    }
}

fn review_prompt(
    table: &AccessTable,
    index: usize,
    (prompts, resources, files): (&[Arc<Prompt>], &Resources, &LibraryFiles),
    found: &mut Vec<Diagnostic>,
) {
    let Some(prompt) = prompts.get(index).filter(|_| table.restricts_contents()) else { return };
    let own = table.prompt_set(index);
    for (action, name, set) in contained(table, prompt, (prompts, resources, files)) {
        if requires_more(&set, own) {
            found.push(grant(prompt, name, action));
        }
    }
}

/// Returns what a prompt calls and includes, with its access rules: all callers of the prompt receive these texts.
pub(super) fn contained<'p>(
    table: &AccessTable,
    prompt: &'p Prompt,
    (prompts, resources, files): (&[Arc<Prompt>], &Resources, &LibraryFiles),
) -> Vec<(&'static str, &'p str, AccessSet)> {
    let uses = prompt.uses();
    let called = uses.prompts.values().map(|called| {
        let name = called.name().as_str();
        let set = super::position(prompts, name).map_or(&[][..], |index| table.prompt_set(index));
        ("calls the prompt", name, set.to_vec())
    });
    let partials = uses.partials.iter();
    let included =
        partials.map(|partial| ("includes the file", &*partial.path, table.path(&partial.path, resources, files)));
    called.chain(included).collect()
}

fn requires_more(set: &[std::sync::Arc<Access>], than: &[std::sync::Arc<Access>]) -> bool {
    !set.iter().all(|access| than.contains(access))
}

fn grant(prompt: &Prompt, name: &str, action: &str) -> Diagnostic {
    let source = prompt.source();
    let lint = Lint::of(&source.text);
    let called = lint.calls.iter().map(|call| &call.target).chain(&lint.partials);
    let span = called.into_iter().find(|used| used.name == name).map(|used| used.span.clone());
    let location = Location::new(source, span.unwrap_or_default());
    let message = format!(
        "the prompt `{}` {action} `{name}`, whose access rule requires more: all callers of `{}` receive its text",
        prompt.name(),
        prompt.name()
    );
    Diagnostic::warning(Code::RestrictedContent, location, message)
        .help("give both the same access rule, or leave it so if these callers may receive the text")
}

struct Reviewed<'a> {
    input: &'a AccessInput<'a>,
    root_files: &'a [String],
    resources: &'a Resources,
    files: &'a LibraryFiles,
}

impl Reviewed<'_> {
    /// Reports every part of a rule that matches nothing.
    fn matches(&self, rule: &CheckedRule, written: &AccessRule, found: &mut Vec<Diagnostic>) {
        let mut report = |part: &str, index: usize, text: &str, thing: &str| {
            let location = written.origin.locate(&format!("{part}.{index}"));
            let message =
                format!("no {thing} of this library matches `{text}`, so this part of the rule closes nothing");
            found.push(
                Diagnostic::warning(Code::UnmatchedRule, location, message)
                    .help("correct it, or remove it; `promptshelf list` and `promptshelf resources` show all names"),
            );
        };
        let drafts = self.input.broken.iter().filter_map(|file| file.draft.as_ref());
        let prompts = || self.input.definitions.iter().chain(drafts.clone());
        for (index, glob) in rule.prompts.iter().enumerate() {
            let fits = |name: &String| glob.fits(&format!("{}{name}", rule.prefix));
            if !prompts().any(|prompt| fits(&prompt.name) || prompt.aliases.iter().any(fits)) {
                report("prompts", index, &glob.text, "prompt");
            }
        }
        for (index, tag) in rule.tags.iter().enumerate() {
            if !prompts().any(|prompt| prompt.tags.contains(tag)) {
                report("tags", index, tag, "tag of a prompt");
            }
        }
        for (index, (folder, text)) in rule.folders.iter().zip(&written.folders).enumerate() {
            let prompt_files = prompts().map(|prompt| prompt.origin.source.path.as_str());
            let broken = self.input.broken.iter().map(|file| file.path.as_str());
            let files = self.files.by_path.keys().chain(self.root_files).map(String::as_str);
            let is_root = || self.input.roots.values().any(|root| folder.contains(&format!("{root}/_")));
            if !prompt_files.chain(broken).chain(files).any(|path| folder.contains(path)) && !is_root() {
                report("folders", index, text, "folder");
            }
        }
        for (index, glob) in rule.resources.iter().enumerate() {
            if !self.is_resource(glob) {
                report("resources", index, &glob.text, "resource");
            }
        }
    }

    fn is_resource(&self, glob: &Pattern) -> bool {
        let any = |template: &str| glob.fits(template) || glob.overlaps(&with_any(template));
        self.resources.find(&glob.text).is_some()
            || self.resources.fixed.iter().any(|resource| glob.fits(resource.uri()))
            || self.resources.templates.iter().any(|template| any(template.uri()))
            || self.files.by_path.keys().any(|path| self.files.library_uris(path).any(|uri| glob.fits(&uri)))
            || (glob.is_literal() && self.files.find(&glob.text).is_some())
    }

    /// Reports rules that name a file by some of its declared URIs only.
    fn other_names(&self, table: &AccessTable, found: &mut Vec<Diagnostic>) {
        let rules = table.rules.iter().zip(self.input.rules).filter(|(rule, _)| !rule.resources.is_empty());
        let mut open: Vec<_> = rules.collect();
        let names = table.names(self.resources, self.files);
        let fixed = names.fixed.keys().chain(self.root_files).chain(self.files.by_path.keys());
        let mut seen = HashSet::new();
        let places = fixed.map(|path| self.files.links.place(path)).filter(|place| seen.insert(place.clone()));
        for place in places.take(MAX_COMPARED) {
            if open.is_empty() || is_interrupted() {
                return;
            }
            let known = names.of_file(&place);
            if known.declared.len() < 2 {
                continue;
            }
            open.retain(|(rule, written)| {
                let is_named = |names: &&DeclaredNames| {
                    names.uris.iter().chain([&names.declaration]).any(|uri| rule.fits_uri(&Uri::new(uri)))
                };
                let (named, other): (Vec<_>, Vec<_>) = known.declared.iter().partition(is_named);
                let ([named, ..], [other, ..]) = (&*named, &*other) else { return true };
                if known.paths.iter().any(|path| rule.fits_path(path)) {
                    return true;
                }
                let message = format!(
                    "this rule names `{}`, and also closes `{}`: both are the file `{place}`",
                    named.shown(),
                    other.shown()
                );
                let part = if written.origin.spans.get("resources.0").is_some() { "resources.0" } else { "access" };
                let location = written.origin.locate(part);
                found.push(
                    Diagnostic::warning(Code::PartlyNamedFile, location, message)
                        .help("name every URI of the file, or its folder with `folders`"),
                );
                false
            });
        }
    }
}

impl DeclaredNames {
    /// Returns a URI without free parts, or else the declaration.
    fn shown(&self) -> &str {
        self.uris.iter().find(|uri| !uri.contains(ANY)).unwrap_or(&self.declaration)
    }
}

fn with_any(template: &str) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        text.push_str(ANY);
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    text + rest
}

impl AccessTable {
    fn prompt_set(&self, index: usize) -> &AccessSet {
        static NONE: AccessSet = AccessSet::new();
        let place = self.place(crate::cursor::ListKind::Prompts, index);
        place.and_then(|place| self.sets().get(place)).unwrap_or(&NONE)
    }
}
