//! Path patterns, matched against the files of the library or of a declared root.

use std::{
    cell::RefCell,
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::PathBuf,
    sync::Arc,
};

use promptshelf_core::{Glob, is_interrupted};
use smol_str::SmolStr;

use super::walk::{WalkOptions, walk};
use crate::{manifest::Manifest, root_grants::RootGrants};

const MAX_PATHS: usize = 100_000;

const MAX_VISITED: usize = 1_000_000;

/// The files of the library and of its roots, without hidden ones.
pub(super) struct GlobIndex {
    library: Arc<[SmolStr]>,
    roots: HashMap<String, Root>,
    /// Results so far: many prompts often use the same pattern.
    cache: RefCell<HashMap<GlobKey, Result<Matches, GlobError>>>,
}

type GlobKey = (Option<String>, String);

struct Root {
    grants: RootGrants,
    path: PathBuf,
    listing: RefCell<Option<RootListing>>,
}

#[derive(Clone, Default)]
pub(super) struct RootListing {
    pub(super) files: Arc<[SmolStr]>,
    pub(super) links: Arc<[(String, String)]>,
}

#[derive(Clone, Debug)]
pub(super) struct Matches {
    /// Sorted.
    pub(super) paths: Arc<[String]>,
    /// Whether paths beyond [`MAX_PATHS`] were left out.
    pub(super) is_cut: bool,
}

/// The reason why a pattern cannot be used.
#[derive(Clone, Debug)]
pub(super) enum GlobError {
    UnknownRoot,
    Invalid(promptshelf_core::GlobError),
}

impl GlobIndex {
    pub(super) fn new<'f>(
        grants: &RootGrants,
        manifest: &Manifest,
        files: impl Iterator<Item = &'f SmolStr>,
    ) -> GlobIndex {
        let root = |(name, declared): (&String, &crate::manifest::DeclaredRoot)| {
            (name.clone(), Root { grants: grants.clone(), path: declared.path.clone(), listing: RefCell::new(None) })
        };
        GlobIndex {
            library: files.filter(|path| !path.starts_with('.')).cloned().collect(),
            roots: manifest.roots.iter().map(root).collect(),
            cache: RefCell::default(),
        }
    }

    pub(super) fn matches(&self, root: Option<&str>, glob: &str) -> Result<Matches, GlobError> {
        let key = (root.map(str::to_owned), glob.to_owned());
        if let Some(result) = self.cache.borrow().get(&key) {
            return result.clone();
        }
        let result = self.find(root, glob);
        self.cache.borrow_mut().insert(key, result.clone());
        result
    }

    pub(super) fn roots(&self) -> impl Iterator<Item = (&str, RootListing)> {
        self.roots.iter().map(|(name, root)| (name.as_str(), root.listing()))
    }

    pub(super) fn fingerprint(&self) -> u64 {
        let cache = self.cache.borrow();
        let numbers = cache.iter().map(|(key, result)| {
            let mut hasher = DefaultHasher::new();
            (key, result.as_ref().ok().map(|matches| &matches.paths)).hash(&mut hasher);
            hasher.finish()
        });
        // A sum, because the order of a hash map is not defined.
        numbers.fold(0, u64::wrapping_add)
    }

    fn find(&self, root: Option<&str>, glob: &str) -> Result<Matches, GlobError> {
        let matcher = Glob::path(glob).map_err(GlobError::Invalid)?;
        let files = match root {
            None => Arc::clone(&self.library),
            Some(name) => self.roots.get(name).ok_or(GlobError::UnknownRoot)?.listing().files,
        };
        let is_stopped = is_interrupted();
        let mut paths: Vec<String> = files
            .iter()
            .take_while(|_| !is_stopped)
            .filter(|path| matcher.is_match(path.as_str()))
            .take(MAX_PATHS + 1)
            .map(SmolStr::to_string)
            .collect();
        let is_cut = paths.len() > MAX_PATHS;
        paths.truncate(MAX_PATHS);
        Ok(Matches { paths: paths.into(), is_cut })
    }
}

impl Root {
    fn listing(&self) -> RootListing {
        let read = || {
            let Ok(root) = self.grants.open(&self.path) else { return RootListing::default() };
            let found = walk(
                &root,
                WalkOptions { files: MAX_VISITED, states: false, foreign_folders: false, golden_files: false },
            );
            let files = found.files.into_iter().map(|found| found.path).collect();
            RootListing { files, links: found.links.into() }
        };
        self.listing.borrow_mut().get_or_insert_with(read).clone()
    }
}
