//! The parts of a library that are needed to resolve references between its files.

use std::{collections::BTreeMap, sync::Arc};

use promptshelf_core::{ArgumentDefinition, Code, CompletionSource, Diagnostic, Links, Location, Origin};

use super::{
    ReadFiles,
    globs::{GlobError, GlobIndex, Matches},
    homes::Homes,
};
use crate::{
    format::GlobCompletion,
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
                        GlobError::Invalid(reason) => {
                            format!("invalid path pattern `{}`: {reason}", completion.glob)
                        }
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
