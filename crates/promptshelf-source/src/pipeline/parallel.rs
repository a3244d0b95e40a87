//! Parallel reading of many files.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    thread,
};

use promptshelf_core::{Interrupt, is_interrupted};
use smol_str::SmolStr;

use super::{
    cached_file::{CachedFile, ReadContext},
    found_files::FoundFile,
};
use crate::file_role::FileRole;

/// The number of files that a thread takes at a time, large enough to make contention rare.
const CHUNK: usize = 64;

/// The largest number of threads: more would wait for the same disk.
const MAX_THREADS: usize = 8;

/// Reads all files, and reuses the unchanged ones from `before`. Returns the files by path, and the number of files
/// that were left out because of the size limit.
pub(super) fn read_all(
    found: Vec<FoundFile>,
    context: &ReadContext<'_>,
    before: &[(SmolStr, CachedFile)],
    declared: &HashSet<String>,
    library_bytes: u64,
) -> (Vec<(SmolStr, CachedFile)>, usize) {
    let threads = match found.len().div_ceil(CHUNK) {
        // On Linux, finding the number of processors reads several files.
        0 | 1 => 1,
        chunks => thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS).min(chunks),
    };
    let job = Job {
        found: &found,
        context,
        before,
        declared,
        next: AtomicUsize::new(0),
        bytes: AtomicU64::new(0),
        library_bytes,
    };
    let mut chunks = if threads <= 1 {
        job.work()
    } else {
        let bounds = Interrupt::current();
        let work = || bounds.as_ref().map_or_else(|| job.work(), |bounds| bounds.scope(|| job.work()));
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let join = |worker: thread::ScopedJoinHandle<'_, _>| match worker.join() {
                Ok(chunks) => chunks,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            workers.into_iter().flat_map(join).collect()
        })
    };
    chunks.sort_unstable_by_key(|(start, _)| *start);
    let read = chunks.into_iter().flat_map(|(_, entries)| entries);
    let mut left_out = 0;
    let entries = found.into_iter().zip(read).filter_map(|(found, entry)| {
        left_out += usize::from(entry.is_none());
        Some((found.path, entry?))
    });
    (entries.collect(), left_out)
}

struct Job<'a> {
    found: &'a [FoundFile],
    context: &'a ReadContext<'a>,
    before: &'a [(SmolStr, CachedFile)],
    declared: &'a HashSet<String>,
    next: AtomicUsize,
    bytes: AtomicU64,
    library_bytes: u64,
}

/// The index of the first file of a chunk, and its files; `None` for a file beyond the size limit.
type Chunk = (usize, Vec<Option<CachedFile>>);

impl Job<'_> {
    fn work(&self) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        loop {
            let start = self.next.fetch_add(CHUNK, Ordering::Relaxed);
            let Some(rest) = self.found.get(start..).filter(|rest| !rest.is_empty()) else { return chunks };
            let files = &rest[..rest.len().min(CHUNK)];
            chunks.push((start, (start..).zip(files).map(|(index, found)| self.file(index, found)).collect()));
        }
    }

    fn file(&self, index: usize, found: &FoundFile) -> Option<CachedFile> {
        // The contents are in memory by then, so the limit has to apply during the read and not only afterwards.
        if self.bytes.load(Ordering::Relaxed) > self.library_bytes || is_interrupted() {
            return None;
        }
        let role = match self.context.role(&found.path) {
            FileRole::Prompt(_) if self.declared.contains(&*found.path) => FileRole::Asset,
            role => role,
        };
        // Most files are where they were.
        let before = self.before.get(index).filter(|(path, _)| *path == found.path).or_else(|| {
            let index = self.before.binary_search_by(|(path, _)| path.as_str().cmp(&found.path)).ok()?;
            self.before.get(index)
        });
        let before = before.map(|(_, entry)| entry);
        let entry = self.context.read(found, role, before);
        let bytes = self.bytes.fetch_add(entry.content.len, Ordering::Relaxed) + entry.content.len;
        (bytes <= self.library_bytes).then_some(entry)
    }
}
