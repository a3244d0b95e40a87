//! The reading of a library: from a tree of files to definitions. Folders and files in memory take the same way.
//!
//! A read has four steps: the manifest, the names and states of all files, the contents of the changed files (in
//! parallel), and the references between files. The parsed files stay in memory until the next read.
//!
//! How changes are noticed is deliberately elsewhere: in the sources.

mod assemble;
mod cached_file;
mod globs;
mod partial;
mod resources;
mod walk;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::Path,
    sync::Arc,
    time::SystemTime,
};

use promptshelf_core::{Code, Diagnostic, Interrupt, Location, Severity, SourceText};
use smol_str::SmolStr;

pub(crate) use self::walk::{WalkOptions, unread_file, walk};
use self::{
    assemble::LibraryContext,
    cached_file::{CachedFile, Homes, ReadContext, SharedBodies},
    globs::GlobIndex,
    walk::{FoundFile, WalkResult, at},
};
use crate::{
    error::SourceError,
    file_role::{self, MANIFEST},
    format::foreign_folders,
    manifest::Manifest,
    memory_tree::MemoryFile,
    root_grants::RootGrants,
    source::{Fingerprint, Snapshot},
    tree::{FileError, Tree},
    watch::WatchedTrees,
};

/// The largest manifest, in bytes.
const MANIFEST_BYTES: u64 = 4 << 20;

/// What the next read may reuse.
#[derive(Debug, Default)]
pub(crate) struct LastRead {
    manifest: Option<Arc<Manifest>>,
    files: ReadFiles,
}

/// The files of a library, read and parsed.
#[derive(Debug, Default)]
struct ReadFiles {
    /// Sorted by path.
    entries: Vec<(SmolStr, CachedFile)>,
    homes: Homes,
    /// About the names of files and folders.
    diagnostics: Vec<Diagnostic>,
    links: Vec<(String, String)>,
    /// The number of skills that `sync` wrote.
    generated: usize,
    /// Whether the entries are all files of the library, each with a single path.
    is_plain: bool,
}

/// One read of a library, from a tree of files to definitions.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    pub(crate) roots: &'a RootGrants,
    /// Texts of an editor in place of files in a folder.
    pub(crate) unsaved: BTreeMap<String, MemoryFile>,
    /// The paths of the files that may have changed since the last read; `None` for all.
    pub(crate) changed: Option<&'a BTreeSet<String>>,
    /// The number of the tree in memory: another number is another tree.
    pub(crate) tree: u64,
    pub(crate) is_lenient: bool,
    /// Told which folders the library is made of.
    pub(crate) watched: &'a WatchedTrees,
}

impl Reading<'_> {
    pub(crate) fn read(self, last: &mut LastRead) -> Result<Snapshot, SourceError> {
        Interrupt::bounded(|| self.read_bounded(last))
    }

    fn read_bounded(self, last: &mut LastRead) -> Result<Snapshot, SourceError> {
        let roots = self.roots;
        let root = roots.open_library(self.unsaved)?;
        let before = last.manifest.clone();
        let (manifest, mut diagnostics) = read_manifest(roots, &root, before.as_ref(), self.is_lenient)?;
        let is_same = before.is_some_and(|before| Arc::ptr_eq(&before, &manifest));
        last.manifest = Some(Arc::clone(&manifest));

        let folders = manifest.roots.values().filter_map(|declared| roots.watched_folder(&declared.path));
        self.watched.set(roots.library_folder().map(Path::to_path_buf).into_iter().chain(folders).collect());

        let found = self.changed.filter(|_| is_same).and_then(|changed| last.files.found(&root, changed));
        let (files, globs) = read_files(roots, &root, &manifest, found, &last.files, &mut diagnostics);
        let library = LibraryContext::new(roots, &root, &manifest, &globs, &files);
        let (definitions, rest) = library.definitions(&files, diagnostics);
        let mut hasher = DefaultHasher::new();
        (rest, self.tree).hash(&mut hasher);
        for (path, entry) in &files.entries {
            (path, entry.content.number).hash(&mut hasher);
        }
        last.files = files;
        Ok(Snapshot::new(Fingerprint::new(hasher.finish()), definitions))
    }
}

/// Returns the manifest; if it is invalid, the last valid one with the mistakes in the present one.
///
/// A tree in memory is read the same at any time, because several servers may read it: an invalid manifest is an
/// error, and an empty one is not half of a save.
fn read_manifest(
    roots: &RootGrants,
    root: &Tree,
    last: Option<&Arc<Manifest>>,
    is_lenient: bool,
) -> Result<(Arc<Manifest>, Vec<Diagnostic>), SourceError> {
    let fallback = last.filter(|_| roots.library_folder().is_some());
    let rejected = |code, message: String| vec![at(MANIFEST, code, true, message)];
    let read = root.read(MANIFEST, MANIFEST_BYTES).map(|file| file.bytes.into_vec());
    let parsed = match read {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => match last {
                Some(last) if *last.source.text == *text => {
                    return Ok((Arc::clone(last), last.diagnostics.clone()));
                }
                // The file is empty while an editor that truncates it first is saving.
                Some(last) if text.trim().is_empty() && fallback.is_some() && !last.source.text.trim().is_empty() => {
                    let message = "the file is empty; its previous content stays in effect";
                    Err(vec![at(MANIFEST, Code::Syntax, false, message)])
                }
                _ if is_lenient => Ok(Manifest::understood(SourceText::new(MANIFEST, text))),
                _ => Manifest::parse(SourceText::new(MANIFEST, text)),
            },
            Err(_) => Err(rejected(Code::NotUtf8, "this file is not UTF-8".to_owned())),
        },
        Err(FileError::NotFound) => match last {
            Some(last) if last.source.text.is_empty() => return Ok((Arc::clone(last), Vec::new())),
            _ => Ok(Manifest::none()),
        },
        Err(error) => Err(unread_file(MANIFEST, &error, MANIFEST_BYTES)
            .map(|found| Diagnostic { severity: Severity::Error, ..found })
            .into_iter()
            .collect()),
    };
    match (parsed, fallback) {
        (Ok(manifest), _) => {
            let diagnostics = manifest.diagnostics.clone();
            Ok((Arc::new(manifest), diagnostics))
        }
        (Err(diagnostics), Some(last)) => Ok((Arc::clone(last), diagnostics)),
        (Err(diagnostics), None) if is_lenient => Ok((Arc::new(Manifest::none()), diagnostics)),
        (Err(diagnostics), None) => {
            Err(SourceError::manifest(roots.library_folder().unwrap_or(Path::new("")), diagnostics))
        }
    }
}

/// Returns the path of the folder inside a project, if the folder is one in which another program stores prompts. A folder
/// with a manifest is a library like any other.
fn home(roots: &RootGrants, manifest: &Manifest) -> &'static str {
    let Some(folder) = roots.library_folder().filter(|_| manifest.source.text.is_empty()) else { return "" };
    foreign_folders::home(&fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf()))
}

fn read_files(
    roots: &RootGrants,
    root: &Tree,
    manifest: &Manifest,
    found: Option<WalkResult>,
    last: &ReadFiles,
    diagnostics: &mut Vec<Diagnostic>,
) -> (ReadFiles, GlobIndex) {
    let limits = &manifest.limits;
    let found = found.unwrap_or_else(|| {
        let states = !last.entries.is_empty();
        let options = WalkOptions { files: limits.files, states, foreign_folders: true, golden_files: false };
        let mut found = walk(root, options);
        let named = left_out_names(&found.files, &found.named);
        found.diagnostics.extend(named);
        found
    });
    diagnostics.extend_from_slice(&found.diagnostics);
    let globs = GlobIndex::new(roots, manifest, found.files.iter().map(|found| &found.path));
    let homes = Homes::new(home(roots, manifest), !manifest.source.text.is_empty(), root, &found.files);
    let outside = homes.outside_of_plugins(&found.files);
    if !outside.is_empty() {
        let verb = if outside.len() == 1 { "file is" } else { "files are" };
        let message = format!(
            "{} {verb} not served: {} a plugin, whose prompts are in `commands` and `skills`: {}",
            outside.len(),
            if outside.len() == 1 { "it is in" } else { "they are in" },
            named(&outside)
        );
        let location = Location::file(&SourceText::new(".", ""));
        let help = "to serve them, too, create a `promptshelf.toml` with a line such as `[server]`";
        diagnostics.push(Diagnostic::warning(Code::LeftOut, location, message).help(help));
    }
    // In other homes files are read in other formats.
    let before = if homes == last.homes { &last.entries[..] } else { &[] };
    let shared = SharedBodies::default();
    let reading =
        ReadContext { root, limit: limits.file_bytes, now: SystemTime::now(), homes: &homes, shared: &shared };
    let mut is_declared = resources::declared(manifest, &globs);
    is_declared.extend(file_role::beside_skills(found.files.iter().map(|found| found.path.as_str())));
    let (mut entries, left_out) =
        cached_file::read_all(found.files, &reading, before, &is_declared, limits.library_bytes);
    if left_out > 0 {
        let message =
            format!("the library has more than {} bytes; {left_out} files are left out", limits.library_bytes);
        let help = "raise `library-bytes` under [limits] in promptshelf.toml";
        diagnostics.push(at(".", Code::TooMany, true, message).help(help));
    }
    let unread = |path: &str| found.unread.iter().any(|folder| path.starts_with(&**folder));
    let unreadable = before.iter().filter(|(path, _)| unread(path));
    entries.extend(unreadable.filter_map(|(path, entry)| Some((path.clone(), entry.unreadable()?))));
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    // If only a part of a folder can be read, the files of that part occur twice.
    entries.dedup_by(|(next, _), (first, _)| next == first);
    entries.shrink_to_fit();
    let is_plain = left_out == 0 && found.unread.is_empty() && found.links.is_empty();
    let WalkResult { diagnostics, links, generated, .. } = found;
    (ReadFiles { entries, homes, diagnostics, links, generated, is_plain }, globs)
}

impl ReadFiles {
    /// Returns the files of the last read, if they are all that a walk would find now: only files with these paths have
    /// changed, and they are still files.
    fn found(&self, root: &Tree, changed: &BTreeSet<String>) -> Option<WalkResult> {
        let is_known = |path: &String| {
            self.entries.binary_search_by(|(known, _)| known.as_str().cmp(path)).is_ok() && root.is_plain_file(path)
        };
        let file = |(path, _): &(SmolStr, CachedFile)| FoundFile {
            path: path.clone(),
            state: None,
            is_unchanged: !changed.contains(path.as_str()),
        };
        (self.is_plain && changed.iter().all(is_known)).then(|| WalkResult {
            files: self.entries.iter().map(file).collect(),
            diagnostics: self.diagnostics.clone(),
            generated: self.generated,
            ..WalkResult::default()
        })
    }
}

const MOST_NAMED: usize = 3;

/// Returns the hints about files that look like prompts and are none by their names.
fn named(paths: &[&str]) -> String {
    let shown: Vec<String> = paths.iter().take(MOST_NAMED).map(|path| format!("`{path}`")).collect();
    let more = paths.len().saturating_sub(MOST_NAMED);
    shown.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

fn left_out_names(files: &[FoundFile], elsewhere: &[String]) -> Vec<Diagnostic> {
    let fitting = |is_meant: fn(&str) -> bool| -> Vec<&str> {
        let elsewhere = elsewhere.iter().map(String::as_str);
        let mut paths: Vec<&str> =
            files.iter().map(|found| &*found.path).chain(elsewhere).filter(|path| is_meant(path)).collect();
        paths.sort_unstable();
        paths
    };
    let hint = |message: String, help: &str| {
        let location = Location::file(&SourceText::new(".", ""));
        Diagnostic::hint(Code::LeftOut, location, message).help(help)
    };
    let verb = |count: usize| if count == 1 { "file is" } else { "files are" };
    let mut hints = Vec::new();
    let documents = fitting(file_role::is_project_document);
    if !documents.is_empty() {
        let count = documents.len();
        let message = format!("{count} {} not read as prompts, by their names: {}", verb(count), named(&documents));
        hints.push(hint(message, "to serve one as a prompt, rename it in small letters, such as `changelog.md`"));
    }
    let rules = fitting(|path| path.ends_with(foreign_folders::RULE_ENDING));
    if !rules.is_empty() {
        let message = match rules.len() {
            1 => format!("1 rule of Cursor is no prompt: {}", named(&rules)),
            count => format!("{count} rules of Cursor are no prompts: {}", named(&rules)),
        };
        hints.push(hint(message, "rules are for Cursor alone; a prompt is a file such as `review.md`"));
    }
    let skills = fitting(|path| file_role::is_named_only(path) && file_role::is_mistaken_skill(path));
    if !skills.is_empty() {
        let count = skills.len();
        let message = format!("{count} {} no skill, by the name: {}", verb(count), named(&skills));
        hints.push(hint(message, "rename the text of a skill to `SKILL.md`, in these letters"));
    }
    let others = fitting(|path| {
        file_role::is_other_markdown(path)
            || file_role::is_named_only(path)
                && !path.ends_with(foreign_folders::RULE_ENDING)
                && !file_role::is_mistaken_skill(path)
    });
    if !others.is_empty() {
        let count = others.len();
        let message = format!("{count} {} not read as prompts, by their endings: {}", verb(count), named(&others));
        hints.push(hint(message, "rename a prompt so that it ends in `.md`"));
    }
    hints
}
