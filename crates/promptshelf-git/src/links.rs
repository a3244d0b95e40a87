//! Symbolic links of a commit, followed inside of the served folder as in a folder on disk.

use std::{collections::BTreeMap, ops::Bound};

use promptshelf_source::{FileFault, MemoryFile, is_library_file, is_named_only};

use crate::{
    error::GitError,
    objects::{Entry, Item, Kind, KnownFiles, too_many},
};

/// The largest number of links that lead to one file: as on Linux.
const MAX_HOPS: usize = 40;

/// The longest text of a link, in bytes: as on Linux.
const MAX_TEXT: usize = 4_096;

pub(crate) struct Links<'e, 't> {
    entries: BTreeMap<&'e str, &'e Entry>,
    all: &'e [Entry],
    texts: &'t KnownFiles,
}

/// The place that a path leads to, without links.
enum Place<'e> {
    Entry(&'e Entry),
    Folder(String),
}

impl<'e, 't> Links<'e, 't> {
    pub(crate) fn new(all: &'e [Entry], texts: &'t KnownFiles) -> Links<'e, 't> {
        let has_links = all.iter().any(|entry| entry.kind == Kind::Link);
        let entries = all.iter().filter(|_| has_links).map(|entry| (entry.path.as_str(), entry)).collect();
        Links { entries, all, texts }
    }

    /// Returns the files of the library: a link to a file is a file, and one to a folder has the files of the folder.
    pub(crate) fn items(&self, max_files: usize) -> Result<Vec<Item<'e>>, GitError> {
        let mut items = Items { found: Vec::with_capacity(self.all.len()), expanded: 0, max_files };
        for entry in self.all {
            match entry.kind {
                Kind::Link => self.expand(&entry.path, &entry.path, &mut Vec::new(), &mut items)?,
                _ => items.add(entry.path.clone(), Ok(entry), false),
            }
        }
        Ok(items.found)
    }

    /// Adds what the link at `link` leads to, under the path `path`.
    fn expand(
        &self,
        path: &str,
        link: &str,
        enclosing: &mut Vec<String>,
        items: &mut Items<'e>,
    ) -> Result<(), GitError> {
        items.expanded += 1;
        if items.expanded > items.max_files {
            return Err(too_many(items.max_files));
        }
        let folder = match self.resolve(link) {
            Ok(Place::Entry(entry)) => {
                items.add(path.to_owned(), Ok(entry), true);
                return Ok(());
            }
            Ok(Place::Folder(folder)) => folder,
            Err(fault) => {
                items.add(path.to_owned(), Err(fault), true);
                return Ok(());
            }
        };
        let prefix = if folder.is_empty() { folder.clone() } else { format!("{folder}/") };
        if link.starts_with(&prefix) || enclosing.contains(&folder) {
            items.add(path.to_owned(), Err(FileFault::LinkCycle), true);
            return Ok(());
        }
        enclosing.push(folder);
        for (inner, entry) in self.below(&prefix) {
            let path = format!("{path}/{}", &inner[prefix.len()..]);
            if entry.kind == Kind::Link {
                self.expand(&path, inner, enclosing, items)?;
                continue;
            }
            items.expanded += 1;
            if items.expanded > items.max_files {
                return Err(too_many(items.max_files));
            }
            items.add(path, Ok(entry), true);
        }
        enclosing.pop();
        Ok(())
    }

    fn resolve(&self, path: &str) -> Result<Place<'e>, FileFault> {
        let mut parts: Vec<&str> = path.rsplit('/').collect();
        let (mut place, mut hops) = (String::new(), 0);
        while let Some(part) = parts.pop() {
            match part {
                "" | "." => continue,
                ".." if place.is_empty() => return Err(FileFault::LinkOutside),
                ".." => {
                    place.truncate(place.rfind('/').unwrap_or_default());
                    continue;
                }
                part => {
                    let before = place.len();
                    if before > 0 {
                        place.push('/');
                    }
                    place.push_str(part);
                    match self.entries.get(place.as_str()) {
                        Some(entry) if entry.kind == Kind::Link => {
                            hops += 1;
                            if hops > MAX_HOPS {
                                return Err(FileFault::LinkCycle);
                            }
                            let text = self.texts.get(&entry.id).map(MemoryFile::bytes).unwrap_or_default();
                            let text =
                                std::str::from_utf8(text).ok().filter(|text| (1..=MAX_TEXT).contains(&text.len()));
                            let text = text.ok_or(FileFault::LinkWithoutTarget)?;
                            if text.starts_with('/') {
                                return Err(FileFault::LinkOutside);
                            }
                            place.truncate(before);
                            parts.extend(text.rsplit('/'));
                        }
                        Some(entry) if parts.is_empty() => return Ok(Place::Entry(entry)),
                        Some(_) => return Err(FileFault::LinkWithoutTarget),
                        None if self.below(&format!("{place}/")).next().is_some() => {}
                        None => return Err(FileFault::LinkWithoutTarget),
                    }
                }
            }
        }
        Ok(Place::Folder(place))
    }

    fn below<'p>(&'p self, prefix: &'p str) -> impl Iterator<Item = (&'e str, &'e Entry)> + 'p {
        let found = self.entries.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        found.map(|(path, entry)| (*path, *entry)).take_while(move |(path, _)| path.starts_with(prefix))
    }
}

struct Items<'e> {
    found: Vec<Item<'e>>,
    expanded: usize,
    max_files: usize,
}

impl<'e> Items<'e> {
    fn add(&mut self, path: String, entry: Result<&'e Entry, FileFault>, is_linked: bool) {
        let is_folder = || matches!(entry, Err(FileFault::LinkCycle)) && is_library_file(&format!("{path}/x.md"));
        if is_library_file(&path) || is_named_only(&path) || is_folder() {
            self.found.push(Item { path, entry, is_linked });
        }
    }
}
