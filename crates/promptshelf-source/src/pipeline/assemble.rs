//! Assembly: combines the files that were read into definitions, and resolves the references between them.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use promptshelf_core::{
    ArgumentDefinition, BrokenFile, Code, CompletionSource, Definitions, Diagnostic, Icon, LibraryFile, Links,
    Location, MimeType, Origin, PromptDefinition, ResourceDefinition, SourceText, nearest,
};
use smol_str::SmolStr;

use super::{
    ReadFiles,
    cached_file::{CachedFile, ContentKind, Homes},
    globs::{GlobError, GlobIndex, Matches},
    resources,
    walk::at,
};
use crate::{
    format::{Draft, Format, GlobCompletion, foreign_folders},
    manifest::{DeclaredRoot, Manifest},
    places::{self, Places, join},
    root_grants::RootGrants,
    tree::Tree,
};

pub(super) struct LibraryContext<'a> {
    pub(super) roots: &'a RootGrants,
    pub(super) root: &'a Tree,
    pub(super) manifest: &'a Manifest,
    pub(super) globs: &'a GlobIndex,
    pub(super) homes: &'a Homes,
    pub(super) places: Arc<Places>,
    /// The absolute path of each root, without symbolic links.
    pub(super) folders: BTreeMap<String, String>,
}

const MAX_ROOT_FILES: usize = 20_000;

impl<'a> LibraryContext<'a> {
    pub(super) fn new(
        roots: &'a RootGrants,
        root: &'a Tree,
        manifest: &'a Manifest,
        globs: &'a GlobIndex,
        files: &'a ReadFiles,
    ) -> LibraryContext<'a> {
        let mut places = Places::new(roots.library_path());
        let folder = |declared: &DeclaredRoot| places::text(&roots.path(&declared.path));
        let folders: BTreeMap<String, String> =
            manifest.roots.iter().map(|(name, declared)| (name.clone(), folder(declared))).collect();
        let mut all = files.links.clone();
        for (name, listing) in globs.roots() {
            let Some(folder) = folders.get(name) else { continue };
            let place = |path: &str| places.relative(&join(folder, path));
            all.extend(listing.links.iter().map(|(link, target)| (place(link), place(target))));
        }
        places.links = Links::from_iter(all);
        LibraryContext { roots, root, manifest, globs, homes: &files.homes, places: Arc::new(places), folders }
    }

    pub(super) fn root_places(&self) -> BTreeMap<String, String> {
        self.folders.iter().map(|(name, folder)| (name.clone(), self.places.place(folder))).collect()
    }

    pub(super) fn root_files(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, listing) in self.globs.roots() {
            let Some(folder) = self.folders.get(name) else { continue };
            let left = MAX_ROOT_FILES.saturating_sub(found.len());
            found.extend(listing.files.iter().take(left).map(|path| self.places.place(&join(folder, path))));
        }
        found
    }
}

impl LibraryContext<'_> {
    /// Replaces patterns of completions by the matching paths; returns `false` if a pattern is invalid.
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
                    if let Some(message) = warning(&paths, is_cut, &completion.glob) {
                        diagnostics.push(Diagnostic::warning(Code::InvalidCompletion, location, message));
                    }
                    if let Some(argument) = arguments.get_mut(completion.argument) {
                        argument.completion = Some(match &completion.root {
                            None => CompletionSource::Paths(paths),
                            Some(root) => {
                                let folder = self.folders.get(root).map(String::as_str).unwrap_or_default();
                                CompletionSource::RootPaths { root: self.places.place(folder), paths }
                            }
                        });
                    }
                }
                Err(error) => {
                    let message = match error {
                        GlobError::UnknownRoot => {
                            format!("unknown root `{}`", completion.root.as_deref().unwrap_or_default())
                        }
                        GlobError::Invalid(error) => format!("invalid path pattern {error}"),
                    };
                    let help = "declare roots under [roots] in promptshelf.toml";
                    diagnostics.push(Diagnostic::error(Code::InvalidCompletion, location, message).help(help));
                    is_good = false;
                }
            }
        }
        is_good
    }
}

fn warning(paths: &[String], is_cut: bool, glob: &str) -> Option<String> {
    match paths.len() {
        0 => Some(format!("no file matches `{glob}`")),
        most if is_cut => Some(format!("more than {most} files match `{glob}`; the others are left out")),
        _ => None,
    }
}

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
                "{generated} {} `sync` or `export` wrote for other programs: prompts are served from where they are written",
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

/// The largest icon, in bytes: every list contains all icons.
const MAX_ICON: usize = 64 << 10;

pub(super) struct IconResolver<'a> {
    files: &'a BTreeMap<String, Arc<LibraryFile>>,
    /// Results so far: many prompts often share an icon.
    cache: RefCell<HashMap<Arc<str>, Result<EmbeddedIcon, IconError>>>,
}

#[derive(Clone)]
struct EmbeddedIcon {
    uri: Arc<str>,
    mime_type: MimeType,
}

/// The reason why a file cannot be an icon.
#[derive(Clone)]
struct IconError {
    code: Code,
    message: String,
    help: Option<String>,
}

impl<'a> IconResolver<'a> {
    pub(super) fn new(files: &'a BTreeMap<String, Arc<LibraryFile>>) -> IconResolver<'a> {
        IconResolver { files, cache: RefCell::default() }
    }

    /// Replaces paths by `data:` URIs. An icon that cannot be used is removed with a warning: the prompt works
    /// without it.
    pub(super) fn resolve(
        &self,
        icons: &mut Vec<Icon>,
        locate: impl Fn(&str) -> Location,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let mut index = 0;
        icons.retain_mut(|icon| {
            let place = format!("icons.{index}");
            index += 1;
            if is_uri(&icon.src) {
                return true;
            }
            let result = self.cache.borrow().get(&icon.src).cloned();
            let result = result.unwrap_or_else(|| {
                let result = self.embed(&icon.src);
                self.cache.borrow_mut().insert(Arc::clone(&icon.src), result.clone());
                result
            });
            match result {
                Ok(EmbeddedIcon { uri, mime_type }) => {
                    icon.file = Some(std::mem::replace(&mut icon.src, uri));
                    icon.mime_type.get_or_insert(mime_type);
                    true
                }
                Err(IconError { code, message, help }) => {
                    let mut diagnostic = Diagnostic::warning(code, locate(&place), message);
                    diagnostic.help = help;
                    diagnostics.push(diagnostic);
                    false
                }
            }
        });
    }

    fn embed(&self, path: &str) -> Result<EmbeddedIcon, IconError> {
        let error = |code, message, help| Err(IconError { code, message, help });
        let Some(file) = self.files.get(path) else {
            let near = nearest(path, self.files.keys().map(String::as_str));
            let message = format!("the library has no file `{path}` for this icon");
            return error(Code::MissingFile, message, near.map(|near| format!("did you mean `{near}`?")));
        };
        let mime_type = &file.mime_type;
        if !mime_type.as_str().starts_with("image/") {
            let message = format!("expected an image for an icon, but `{path}` is {}", mime_type.as_str());
            return error(Code::InvalidValue, message, None);
        }
        if file.body.len() > MAX_ICON {
            let message = format!("the icon `{path}` has {} bytes; the limit is {MAX_ICON}", file.body.len());
            return error(
                Code::TooLarge,
                message,
                Some("use a smaller image: every list contains the icon".to_owned()),
            );
        }
        let uri = format!("data:{};base64,{}", mime_type.as_str(), file.blob().base64());
        Ok(EmbeddedIcon { uri: uri.into(), mime_type: mime_type.clone() })
    }
}

/// Whether an icon's source is a URI instead of a path in the library.
pub(super) fn is_uri(src: &str) -> bool {
    let scheme = |scheme: &str| src.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    scheme("https:") || scheme("data:")
}
