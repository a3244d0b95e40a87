//! Everything that was read becomes definitions: what one file says of others
//! is followed here.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::Path,
    sync::Arc,
};

use promptshelf_core::{
    ArgumentDefinition, BrokenFile, Code, CompletionSource, Definitions, Diagnostic, LibraryFile, Location, Origin,
    PromptDefinition, ResourceDefinition,
};
use smol_str::SmolStr;

use super::{
    entry::{Entry, Meaning},
    globs::{Fault, Globs, Matches},
    icons::Icons,
    last::Last,
    resources,
    walk::at,
};
use crate::{
    Fingerprint, Reading,
    confined::Confined,
    format::{Draft, GlobCompletion},
    manifest::Manifest,
};

/// All that one reading found.
pub(super) struct Assembly<'a> {
    pub(super) path: &'a Path,
    pub(super) root: &'a Confined,
    pub(super) manifest: &'a Manifest,
    pub(super) globs: &'a Globs,
}

impl Assembly<'_> {
    /// The definitions, unless they are those that `known` stands for.
    pub(super) fn definitions(&self, known: Option<Fingerprint>, last: &mut Last) -> Option<Reading> {
        let mut diagnostics = [&*last.manifest_diagnostics, &*last.diagnostics].concat();
        let files = files(&last.entries);
        let icons = Icons::new(&files);
        let (resources, access) = resources::definitions(self, &files, &icons, &mut diagnostics);
        let revision = last.number(self.rest(&last.entries, &resources, &diagnostics)).revision();
        if known == Some(revision) {
            return None;
        }
        let mut about = self.manifest.about.clone();
        let mut origin = Origin::new(Arc::clone(&self.manifest.source));
        origin.spans.clone_from(&self.manifest.icon_spans);
        icons.resolve(&mut about.icons, |part| origin.locate(part), &mut diagnostics);

        let (mut prompts, mut broken) = (Vec::with_capacity(last.entries.len()), Vec::new());
        let mut partials = BTreeMap::new();
        for (path, entry) in &last.entries {
            diagnostics.extend(entry.content.diagnostics.iter().cloned());
            let meaning = &entry.content.meaning;
            let lost = || meaning.demands().map(|demands| BrokenFile::new(&**path, demands));
            match meaning {
                Meaning::Prompt { draft: Some(draft), .. } => {
                    let (definition, is_good) = self.prompt(draft, &icons, &mut diagnostics);
                    if is_good {
                        prompts.push(definition);
                    } else {
                        let draft = Some(Box::new(definition));
                        broken.extend(lost().map(|file| BrokenFile { draft, has_all_arguments: true, ..file }));
                    }
                }
                Meaning::Prompt { broken: Some(found), .. } => {
                    let (definition, _) = self.prompt(&found.draft, &icons, &mut diagnostics);
                    let has_all_arguments = found.has_all_arguments;
                    let draft = Some(Box::new(definition));
                    broken.extend(lost().map(|file| BrokenFile { draft, has_all_arguments, ..file }));
                }
                Meaning::Prompt { .. } | Meaning::Lost(_) => broken.extend(lost()),
                Meaning::File { partial, .. } => {
                    if let Some(partial) = partial {
                        partials.insert(path.to_string(), Arc::clone(partial));
                    }
                }
                Meaning::Nothing => {}
            }
        }
        if prompts.is_empty() && broken.is_empty() {
            diagnostics.push(at(".", Code::EmptyLibrary, false, "there is no prompt in this folder").help(
                "write one in a file such as `hello.md`; files of [[resources]] and names with a leading `_` are no prompts",
            ));
        }
        drop(icons);
        diagnostics.sort_by(|a, b| {
            let place = |found: &Diagnostic| found.location.span().start;
            (&a.location.source.path, place(a)).cmp(&(&b.location.source.path, place(b)))
        });
        let definitions = Definitions {
            about,
            policy: self.manifest.policy.clone(),
            prompts,
            partials,
            files,
            resources,
            access,
            broken,
            diagnostics,
        };
        Some(Reading::new(revision, definitions))
    }

    /// A number for all that the definitions are made of, besides the entries.
    fn rest(&self, entries: &[(SmolStr, Entry)], resources: &[ResourceDefinition], diagnostics: &[Diagnostic]) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.manifest.source.text.hash(&mut hasher);
        for (_, entry) in entries {
            if let Meaning::Prompt { draft: Some(draft), .. } = &entry.content.meaning {
                for glob in draft.globs.iter() {
                    // Asked here, and answered from memory later.
                    self.globs.matches(glob.root.as_deref(), &glob.glob).ok();
                }
            }
        }
        self.globs.fingerprint().hash(&mut hasher);
        for resource in resources {
            (&resource.uri, resource.size, resource.annotations.last_modified).hash(&mut hasher);
        }
        for diagnostic in diagnostics {
            (&diagnostic.location.source.path, &diagnostic.message).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The definition, and whether it can be used.
    fn prompt(&self, draft: &Draft, icons: &Icons<'_>, diagnostics: &mut Vec<Diagnostic>) -> (PromptDefinition, bool) {
        let mut definition = draft.definition.clone();
        let origin = &draft.definition.origin;
        if !definition.icons.is_empty() {
            icons.resolve(&mut definition.icons, |part| origin.locate(part), diagnostics);
        }
        // What is not changed here stays shared with the draft.
        let is_good =
            draft.globs.is_empty() || self.complete(&mut definition.arguments, &draft.globs, origin, diagnostics);
        (definition, is_good)
    }

    /// Puts paths in the place of patterns; `false` when one cannot work.
    pub(super) fn complete(
        &self,
        arguments: &mut [ArgumentDefinition],
        globs: &[GlobCompletion],
        origin: &Origin,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> bool {
        let mut is_good = true;
        for completion in globs {
            let location = Location::new(&origin.source, completion.span.clone());
            match self.globs.matches(completion.root.as_deref(), &completion.glob) {
                Ok(Matches { paths, is_cut }) => {
                    if let Some(message) = doubt(&paths, is_cut, &completion.glob) {
                        diagnostics.push(Diagnostic::warning(Code::InvalidCompletion, location, message));
                    }
                    if let Some(argument) = arguments.get_mut(completion.argument) {
                        argument.completion = Some(CompletionSource::Paths(paths));
                    }
                }
                Err(fault) => {
                    let message = match fault {
                        Fault::UnknownRoot => {
                            format!("there is no root `{}`", completion.root.as_deref().unwrap_or_default())
                        }
                        Fault::Invalid(reason) => format!("`{}` is no pattern for paths: {reason}", completion.glob),
                    };
                    let help = "roots are declared under [roots] in promptshelf.toml";
                    diagnostics.push(Diagnostic::error(Code::InvalidCompletion, location, message).help(help));
                    is_good = false;
                }
            }
        }
        is_good
    }
}

fn files(entries: &[(SmolStr, Entry)]) -> BTreeMap<String, Arc<LibraryFile>> {
    let file = |(path, entry): &(SmolStr, Entry)| match &entry.content.meaning {
        Meaning::File { file, .. } => Some((path.to_string(), Arc::clone(file))),
        _ => None,
    };
    entries.iter().filter_map(file).collect()
}

fn doubt(paths: &[String], is_cut: bool, glob: &str) -> Option<String> {
    match paths.len() {
        0 => Some(format!("no file matches `{glob}`")),
        most if is_cut => Some(format!("more than {most} files match `{glob}`, and the others are left out")),
        _ => None,
    }
}
