//! The files of a library: read and parsed in parallel, and reused by the next read while they are unchanged.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    string::FromUtf8Error,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::SystemTime,
};

use parking_lot::Mutex;
use promptshelf_core::{
    Code, Diagnostic, Interrupt, LibraryFile, Location, MimeType, Requirements, ResourceBody, Severity, SourceText,
    is_interrupted,
};
use smol_str::SmolStr;

use super::{
    partial,
    walk::{FoundFile, at, unread_file},
};
use crate::{
    encoding::{CONVERTIBLE, decoded},
    file_role::FileRole,
    format::{BrokenDraft, Draft, Format, foreign_folders, requirements},
    mark::Mark,
    media_type,
    tree::{FileBytes, FileData, FileError, FileState, FileStateHash, Tree},
};

#[derive(Clone, Debug)]
pub(super) struct CachedFile {
    /// `None` if the file could not be read, so that the next read tries again.
    state: Option<FileStateHash>,
    is_stable: bool,
    pub(super) content: Arc<FileContent>,
}

/// The parsed content of a file. Shared between reads while the bytes are the same.
#[derive(Debug)]
pub(super) struct FileContent {
    pub(super) kind: ContentKind,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) len: u64,
    pub(super) number: u64,
}

/// Returns a number that was not returned before.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[derive(Debug)]
pub(super) enum ContentKind {
    /// A prompt; a broken one has no draft.
    Prompt { source: Arc<SourceText>, draft: Option<Draft>, broken: Option<Box<BrokenDraft>> },
    /// A file, with its text if prompts can include it.
    Asset { file: Arc<LibraryFile>, partial: Option<Arc<SourceText>> },
    /// A file that should be a prompt and cannot be read, with the access requirements of the prompt.
    UnreadablePrompt(Box<Requirements>),
    /// A copy of a prompt that `sync` or `export` wrote for another program.
    Generated,
    /// Nothing was ever read at the path.
    Absent,
}

#[derive(Clone, Copy)]
pub(super) struct ReadContext<'a> {
    pub(super) root: &'a Tree,
    pub(super) limit: u64,
    pub(super) now: SystemTime,
    pub(super) homes: &'a Homes,
    pub(super) shared: &'a SharedBodies,
}

/// The bodies of files that share their bytes, for the time of one read: a change may name one content many times.
#[derive(Debug, Default)]
pub(super) struct SharedBodies(Mutex<HashMap<BytesKey, ResourceBody>>);

/// The address and length of bytes that the tree holds, and whether they are read as text.
type BytesKey = (usize, usize, bool);

impl SharedBodies {
    /// The size from which bodies are shared: for smaller ones the search would cost more than a copy.
    const MIN: usize = 64 << 10;

    fn body(&self, mime_type: &MimeType, bytes: FileData) -> ResourceBody {
        let FileData::Shared(shared) = &bytes else { return media_type::body(mime_type, bytes.into_vec()) };
        if shared.len() < SharedBodies::MIN {
            return media_type::body(mime_type, bytes.into_vec());
        }
        let key = (shared.as_ptr().addr(), shared.len(), media_type::is_text(mime_type));
        let mut bodies = self.0.lock();
        bodies.entry(key).or_insert_with(|| media_type::body(mime_type, shared.to_vec())).clone()
    }
}

impl ReadContext<'_> {
    pub(super) fn role(&self, path: &str) -> FileRole {
        FileRole::of(&self.homes.path(path))
    }

    pub(super) fn read(&self, found: &FoundFile, role: FileRole, before: Option<&CachedFile>) -> CachedFile {
        let path = &found.path;
        let before = before.filter(|before| before.content.kind.is(role));
        if let Some(before) = before.filter(|before| before.is_stable && before.content.len <= self.limit) {
            let state = found.state.or_else(|| self.root.state(path).ok());
            if state.map(|state| state.hash64()) == before.state {
                return before.clone();
            }
        }
        match self.root.read(path, self.limit) {
            Ok(FileBytes { bytes, state }) => {
                let content = match before.filter(|before| before.content.is_unchanged(&bytes, &state)) {
                    Some(before) => Arc::clone(&before.content),
                    None => Arc::new(self.content(path, role, bytes, &state)),
                };
                CachedFile { state: Some(state.hash64()), is_stable: state.is_stable(self.now), content }
            }
            Err(error) => {
                let diagnostics: Vec<Diagnostic> = unread_file(path, &error, self.limit).into_iter().collect();
                // A prompt that was deleted or replaced by something else is meant to be gone; one that cannot be
                // read at the moment is not.
                let still_exists = matches!(error, FileError::Io(_) | FileError::TooLarge(_));
                let requirements = || match error {
                    // The requirements may have changed together with the size.
                    FileError::TooLarge(_) => Requirements::Unknown,
                    _ => Requirements::Known(None),
                };
                let kind = if still_exists && role.is_prompt() {
                    ContentKind::UnreadablePrompt(Box::new(requirements()))
                } else {
                    ContentKind::Absent
                };
                CachedFile {
                    state: None,
                    is_stable: false,
                    content: Arc::new(FileContent::unreadable(kind, diagnostics)),
                }
            }
        }
    }
}

impl ReadContext<'_> {
    fn content(&self, path: &SmolStr, role: FileRole, bytes: FileData, state: &FileState) -> FileContent {
        match role {
            FileRole::Prompt(format) => FileContent::prompt(path, &self.homes.path(path), format, bytes, state),
            FileRole::Asset => FileContent::file(path, bytes, self.shared, state),
        }
    }
}

impl CachedFile {
    /// Returns the entry for a prompt whose folder cannot be read at the moment.
    pub(super) fn unreadable(&self) -> Option<CachedFile> {
        let requirements = self.content.kind.requirements()?;
        let content =
            Arc::new(FileContent::unreadable(ContentKind::UnreadablePrompt(Box::new(requirements)), Vec::new()));
        Some(CachedFile { state: None, is_stable: false, content })
    }
}

impl ContentKind {
    /// Returns the access requirements of a prompt's file; `None` for other files.
    pub(super) fn requirements(&self) -> Option<Requirements> {
        match self {
            ContentKind::Prompt { draft: Some(draft), .. } => {
                Some(Requirements::Known(draft.definition.access.as_deref().cloned()))
            }
            ContentKind::Prompt { source, draft: None, .. } => Some(requirements(source)),
            ContentKind::UnreadablePrompt(requirements) => Some((**requirements).clone()),
            ContentKind::Generated | ContentKind::Asset { .. } | ContentKind::Absent => None,
        }
    }

    fn is(&self, role: FileRole) -> bool {
        match self {
            ContentKind::Prompt { .. } | ContentKind::Generated | ContentKind::UnreadablePrompt(_) => role.is_prompt(),
            ContentKind::Asset { .. } => !role.is_prompt(),
            ContentKind::Absent => false,
        }
    }
}

impl FileContent {
    /// Creates the content of an unreadable file. Its number depends on the diagnostics only, so a repeated failure
    /// does not count as a change.
    fn unreadable(kind: ContentKind, diagnostics: Vec<Diagnostic>) -> FileContent {
        let mut hasher = DefaultHasher::new();
        for diagnostic in &diagnostics {
            diagnostic.message.hash(&mut hasher);
        }
        FileContent { kind, diagnostics, len: 0, number: hasher.finish() }
    }

    fn prompt(path: &SmolStr, place: &str, format: &'static Format, bytes: FileData, state: &FileState) -> FileContent {
        let len = state.len();
        match String::from_utf8(bytes.into_vec()) {
            // All such files have one number: a change of them changes nothing here.
            Ok(text) if Mark::find(&text).is_some() => {
                FileContent { kind: ContentKind::Generated, diagnostics: Vec::new(), len, number: 0 }
            }
            Ok(text) => {
                let source = SourceText::new(path.clone(), text);
                let parsed = format.read_at(place, &source);
                let draft = parsed.draft.map(|mut draft| {
                    let definition = draft.edit();
                    definition.origin.modified = state.modified();
                    definition.arguments.shrink_to_fit();
                    draft
                });
                FileContent {
                    kind: ContentKind::Prompt { source, draft, broken: parsed.broken.map(Box::new) },
                    diagnostics: parsed.diagnostics,
                    len,
                    number: next_number(),
                }
            }
            Err(error) => {
                let (source, diagnostic) = not_utf8(path, &error);
                let requirements =
                    if Format::is_native(place) { requirements(&source) } else { Requirements::Known(None) };
                let kind = ContentKind::UnreadablePrompt(Box::new(requirements));
                FileContent { kind, diagnostics: vec![diagnostic], len, number: next_number() }
            }
        }
    }

    fn file(path: &SmolStr, bytes: FileData, shared: &SharedBodies, state: &FileState) -> FileContent {
        let len = state.len();
        let mut mime_type = media_type::of(path, &bytes);
        let mut diagnostics = Vec::new();
        if let Some(found) = media_type::contradiction(&mime_type, &bytes) {
            let message =
                format!("the file name implies {}, but the content is {}", mime_type.as_str(), found.as_str());
            let code =
                if media_type::is_unusable(&mime_type, &found) { Code::InvalidMedia } else { Code::ContentMismatch };
            diagnostics.push(at(path, code, false, message).help("rename the file, or save it in the other format"));
            mime_type = found;
        }
        let has_mark = media_type::has_mark(&bytes);
        let body = shared.body(&mime_type, bytes);
        let mut partial = None;
        match &body {
            ResourceBody::Text(text) => {
                let (source, faults) = partial::of(path, text);
                if faults.iter().any(Diagnostic::is_error) {
                    return FileContent::unreadable(ContentKind::Absent, faults);
                }
                diagnostics.extend(faults);
                partial = Some(source);
            }
            ResourceBody::Blob(blob) => {
                if mime_type.as_str() == "text/markdown"
                    && let Err(error) = String::from_utf8(blob.bytes().to_vec())
                {
                    let (_, found) = not_utf8(path, &error);
                    diagnostics.push(Diagnostic { severity: Severity::Warning, ..found });
                }
            }
        }
        let file = LibraryFile { path: path.to_string(), mime_type, body, has_mark, modified: state.modified() };
        FileContent {
            kind: ContentKind::Asset { file: Arc::new(file), partial },
            diagnostics,
            len,
            number: next_number(),
        }
    }

    /// Whether bytes that were read again equal this content.
    fn is_unchanged(&self, bytes: &[u8], state: &FileState) -> bool {
        match &self.kind {
            ContentKind::Prompt { source, draft, .. } => {
                let modified = draft.as_ref().and_then(|draft| draft.definition.origin.modified);
                source.text.as_bytes() == bytes && (draft.is_none() || modified == state.modified())
            }
            ContentKind::Asset { file, .. } => {
                let same = match &file.body {
                    ResourceBody::Text(text) => media_type::is_text_of(text, bytes),
                    ResourceBody::Blob(blob) => blob.bytes() == bytes,
                };
                same && file.has_mark == media_type::has_mark(bytes) && file.modified == state.modified()
            }
            ContentKind::Generated | ContentKind::UnreadablePrompt(_) | ContentKind::Absent => false,
        }
    }
}

/// Returns the text of a file in another encoding, as far as it can be read, and the diagnostic at the first character
/// that shows it.
fn not_utf8(path: &SmolStr, error: &FromUtf8Error) -> (Arc<SourceText>, Diagnostic) {
    let bytes = error.as_bytes();
    let units = |of: fn([u8; 2]) -> u16| -> String {
        let units = bytes[2..].chunks_exact(2).map(|pair| of([pair[0], pair[1]]));
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    let (text, encoding) = match bytes {
        [0xff, 0xfe, ..] => (units(u16::from_le_bytes), "UTF-16"),
        [0xfe, 0xff, ..] => (units(u16::from_be_bytes), "UTF-16"),
        _ => (String::from_utf8_lossy(bytes).into_owned(), "another encoding"),
    };
    let at = match encoding {
        "UTF-16" => 0,
        _ => error.utf8_error().valid_up_to(),
    };
    let source = SourceText::new(path.clone(), text);
    let end = source.text.ceil_char_boundary(at + 1);
    let message = format!("this file is not UTF-8, but {encoding}");
    let help = if decoded(bytes).is_some() {
        format!("{CONVERTIBLE}; editors offer the encoding under *Save As* or in the status bar")
    } else if encoding == "UTF-16" {
        "a character of it is damaged: compare it with the original, and save it as UTF-8".to_owned()
    } else {
        "which one cannot be told from its bytes: open it in the encoding that it was saved in, such as Windows-1252 (Western \
         Europe), 1250 (Central Europe) or 1251 (Cyrillic), and save it as UTF-8"
            .to_owned()
    };
    let found = Diagnostic::error(Code::NotUtf8, Location::new(&source, at..end), message).help(help);
    (source, found)
}

/// The hidden folders of other programs in which folders of the library would be, by their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Homes {
    /// The place of the library itself, such as `.claude/commands`; empty for a library of prompt files.
    library: &'static str,
    plugins: Vec<(String, &'static str)>,
    /// Whether the folder of a plugin has files of the library, too: a manifest makes it a library like any other.
    is_library: bool,
}

impl Homes {
    /// Looks for plugins in the folders around `commands` and `skills`.
    pub(super) fn new(library: &'static str, is_library: bool, root: &Tree, files: &[FoundFile]) -> Homes {
        let around = |found: &FoundFile| foreign_folders::around_plugin(&found.path).map(str::to_owned);
        let mut folders: BTreeSet<String> = files.iter().filter_map(around).collect();
        if library.is_empty() {
            folders.insert(String::new());
        }
        let home =
            |folder: &str| foreign_folders::plugin_home(|manifest| root.state(&format!("{folder}{manifest}")).is_ok());
        let plugins = folders.into_iter().map(|folder| (home(&folder), folder));
        Homes {
            library,
            is_library,
            plugins: plugins.filter(|(home, _)| !home.is_empty()).map(|(home, folder)| (folder, home)).collect(),
        }
    }

    pub(super) fn path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        let is_of_plugin = |rest: &str| {
            let is_inside = ["commands/", "skills/"].iter().any(|inner| rest.starts_with(inner));
            !rest.starts_with('.') && (is_inside || !self.is_library)
        };
        let plugin = self.plugins.iter().filter_map(|(folder, home)| Some((path.strip_prefix(&**folder)?, home)));
        let plugin = plugin.filter(|(rest, _)| is_of_plugin(rest));
        match plugin.min_by_key(|(rest, _)| rest.len()) {
            Some((rest, home)) => Cow::Owned(format!("{home}/{rest}")),
            None if self.library.is_empty() => Cow::Borrowed(path),
            None => Cow::Owned(format!("{}/{path}", self.library)),
        }
    }

    /// Returns the paths of files that would be prompts if no plugin were around them.
    pub(super) fn outside_of_plugins<'f>(&self, files: &'f [FoundFile]) -> Vec<&'f str> {
        let is_left_out = |path: &&str| FileRole::of(path).is_prompt() && !FileRole::of(&self.path(path)).is_prompt();
        files.iter().filter(|_| !self.plugins.is_empty()).map(|found| found.path.as_str()).filter(is_left_out).collect()
    }
}

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
        // Most files are where they were.
        let before = self.before.get(index).filter(|(path, _)| *path == found.path).or_else(|| {
            let index = self.before.binary_search_by(|(path, _)| path.as_str().cmp(&found.path)).ok()?;
            self.before.get(index)
        });
        let before = before.map(|(_, entry)| entry);
        let entry = match before.filter(|before| found.is_unchanged && before.is_stable) {
            Some(same) => same.clone(),
            None => {
                let role = match self.context.role(&found.path) {
                    FileRole::Prompt(_) if self.declared.contains(&*found.path) => FileRole::Asset,
                    role => role,
                };
                self.context.read(found, role, before)
            }
        };
        let bytes = self.bytes.fetch_add(entry.content.len, Ordering::Relaxed) + entry.content.len;
        (bytes <= self.library_bytes).then_some(entry)
    }
}
