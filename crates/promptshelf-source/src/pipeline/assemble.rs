//! Assembly of a snapshot: combines the files that were read into definitions, and resolves the references between
//! them.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use promptshelf_core::{
    BrokenFile, Code, Definitions, Diagnostic, LibraryFile, Location, Origin, PromptDefinition, ResourceDefinition,
    SourceText,
};
use smol_str::SmolStr;

use super::{
    ReadFiles,
    cached_file::{CachedFile, ContentKind},
    context::LibraryContext,
    found_files::at,
    icons::IconResolver,
    resources,
};
use crate::{
    format::{Draft, Format, foreign_folders},
    tree::Tree,
};

impl LibraryContext<'_> {
    /// Returns the definitions, and a hash of everything but the files that they depend on.
    pub(super) fn definitions(&self, read: &ReadFiles, mut diagnostics: Vec<Diagnostic>) -> (Definitions, u64) {
        let files = files(&read.entries);
        let icons = IconResolver::new(&files);
        let (resources, access) = resources::definitions(self, &files, &icons, &mut diagnostics);
        let rest = self.rest(&read.entries, &resources, &diagnostics);
        let mut about = self.manifest.about.clone();
        let mut origin = Origin::new(Arc::clone(&self.manifest.source));
        origin.spans.clone_from(&self.manifest.icon_spans);
        icons.resolve(&mut about.icons, |part| origin.locate(part), &mut diagnostics);

        let (mut prompts, mut broken) = (Vec::with_capacity(read.entries.len()), Vec::new());
        let mut partials = BTreeMap::new();
        let mut generated = read.generated;
        for (path, entry) in &read.entries {
            diagnostics.extend(entry.content.diagnostics.iter().cloned());
            let kind = &entry.content.kind;
            if self.is_other_name(path, &read.entries) {
                continue;
            }
            let broken_file = || {
                let (name, rank) = self.name_and_rank(path);
                kind.requirements().map(|it| BrokenFile { name, rank, ..BrokenFile::new(&**path, it) })
            };
            match kind {
                ContentKind::Prompt { draft: Some(draft), .. } => {
                    let linked = self.linked_names(path, &read.entries);
                    let (definition, is_good) = self.prompt(draft, linked, &icons, &mut diagnostics);
                    if is_good {
                        prompts.push(definition);
                    } else {
                        let (name, draft) = (definition.name.to_string(), Some(definition));
                        broken.extend(broken_file().map(|file| BrokenFile {
                            name,
                            draft,
                            has_all_arguments: true,
                            ..file
                        }));
                    }
                }
                ContentKind::Prompt { broken: Some(found), .. } => {
                    let linked = self.linked_names(path, &read.entries);
                    let (definition, _) = self.prompt(&found.draft, linked, &icons, &mut diagnostics);
                    let has_all_arguments = found.has_all_arguments;
                    let (name, draft) = (definition.name.to_string(), Some(definition));
                    broken.extend(broken_file().map(|file| BrokenFile { name, draft, has_all_arguments, ..file }));
                }
                ContentKind::Prompt { .. } | ContentKind::UnreadablePrompt(_) => broken.extend(broken_file()),
                ContentKind::Asset { partial, .. } => {
                    if let Some(partial) = partial {
                        partials.insert(path.to_string(), Arc::clone(partial));
                    }
                }
                ContentKind::Generated => generated += 1,
                ContentKind::Absent => {}
            }
        }
        if prompts.is_empty() && broken.is_empty() {
            diagnostics.push(at(".", Code::EmptyLibrary, false, "this folder contains no prompts").help(
                "write one in a file such as `hello.md`; files of [[resources]] and files whose names start with `_` are not prompts",
            ));
        }
        drop(icons);
        if generated > 0 {
            let message = format!(
                "{generated} {} `sync` or `export` wrote for other programs: the prompts that they come from are served",
                if generated == 1 {
                    "file or skill is left out, which"
                } else {
                    "files and skills are left out, which"
                }
            );
            diagnostics.push(Diagnostic::hint(Code::NoEffect, Location::file(&SourceText::new(".", "")), message));
        }
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
            links: self.places.links.clone(),
            roots: self.root_places(),
            root_files: self.root_files(),
            broken,
            namespace: None,
            remote: None,
            diagnostics,
            is_revision: matches!(self.root, Tree::Memory(_)),
        };
        (definitions, rest)
    }

    /// Whether the file at a path is read under another path: one file is one prompt, however many links lead to it. The
    /// file's own path is used, or else the first link in the order of precedence.
    fn is_other_name(&self, path: &str, entries: &[(SmolStr, CachedFile)]) -> bool {
        let place = self.places.links.place(path);
        if place == path {
            return false;
        }
        let is_prompt = |path: &str| {
            let entry = entries.binary_search_by(|(known, _)| known.as_str().cmp(path));
            entry.is_ok_and(|index| entries[index].1.content.kind.requirements().is_some())
        };
        if !is_prompt(path) {
            return false;
        }
        let names = self.places.links.names(&place);
        let key = |path: &str| (path != place, foreign_folders::rank(&self.homes.path(path)), path.to_owned());
        let own = key(path);
        names.iter().any(|other| other != path && key(other) < own && is_prompt(other))
    }

    /// Returns the names that links to the file at a path would give its prompt.
    fn linked_names(&self, path: &str, entries: &[(SmolStr, CachedFile)]) -> Box<[String]> {
        let names = self.places.links.names(&self.places.links.place(path));
        let name = |other: &String| {
            let index = entries.binary_search_by(|(known, _)| known.as_str().cmp(other)).ok()?;
            match &entries[index].1.content.kind {
                ContentKind::Prompt { draft: Some(draft), .. } => Some(draft.definition.name.clone()),
                kind => kind.requirements().map(|_| self.name_and_rank(other).0),
            }
        };
        names.iter().filter(|other| *other != path).filter_map(name).collect()
    }

    /// Returns the name and the precedence of the prompt at a path, as far as they follow from the path.
    fn name_and_rank(&self, path: &str) -> (String, u8) {
        let path = self.homes.path(path);
        let name = Format::for_path(&path).map(|format| format.name_of(&path)).unwrap_or_default();
        (name, foreign_folders::rank(&path))
    }

    fn rest(
        &self,
        entries: &[(SmolStr, CachedFile)],
        resources: &[ResourceDefinition],
        diagnostics: &[Diagnostic],
    ) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.manifest.source.text.hash(&mut hasher);
        for (_, entry) in entries {
            if let ContentKind::Prompt { draft: Some(draft), .. } = &entry.content.kind {
                for glob in draft.globs.iter() {
                    // Fills the cache of the index, so that the fingerprint includes the matches.
                    self.globs.matches(glob.root.as_deref(), &glob.glob).ok();
                }
            }
        }
        self.globs.fingerprint().hash(&mut hasher);
        (&self.places.links, &self.folders).hash(&mut hasher);
        for resource in resources {
            (&resource.uri, resource.size, resource.annotations.last_modified).hash(&mut hasher);
        }
        for diagnostic in diagnostics {
            (&diagnostic.location.source.path, &diagnostic.message).hash(&mut hasher);
        }
        hasher.finish()
    }

    fn prompt(
        &self,
        draft: &Draft,
        linked_names: Box<[String]>,
        icons: &IconResolver<'_>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> (Arc<PromptDefinition>, bool) {
        let mut definition = Arc::clone(&draft.definition);
        let origin = &draft.definition.origin;
        if !definition.icons.is_empty() {
            icons.resolve(&mut Arc::make_mut(&mut definition).icons, |part| origin.locate(part), diagnostics);
        }
        if !linked_names.is_empty() {
            Arc::make_mut(&mut definition).origin.linked_names = linked_names;
        }
        // Fields that are not changed here stay shared with the draft.
        let is_good = draft.globs.is_empty()
            || self.complete(&mut Arc::make_mut(&mut definition).arguments, &draft.globs, origin, diagnostics);
        (definition, is_good)
    }
}

fn files(entries: &[(SmolStr, CachedFile)]) -> BTreeMap<String, Arc<LibraryFile>> {
    let file = |(path, entry): &(SmolStr, CachedFile)| match &entry.content.kind {
        ContentKind::Asset { file, .. } => Some((path.to_string(), Arc::clone(file))),
        _ => None,
    };
    entries.iter().filter_map(file).collect()
}
