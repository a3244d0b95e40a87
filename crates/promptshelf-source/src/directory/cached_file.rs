//! One file of the library, read and understood, and taken over from the last
//! reading when it has not changed.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use promptshelf_core::{
    Code, Diagnostic, Icon, LibraryFile, PromptDefinition, Requirements, ResourceBody, Seldom, SourceText,
};
use smol_str::SmolStr;

use super::{
    icons,
    walk::{FoundFile, at, refused},
};
use crate::{
    confined_dir::{ConfinedDir, FileBytes, FileError},
    file_role::FileRole,
    file_state::{FileState, FileStateHash},
    format::{BrokenDraft, Draft, requirements},
    media_type,
};

/// What a file was at one reading.
#[derive(Clone, Debug)]
pub(super) struct CachedFile {
    /// `None` where the file could not be read, so that it is tried again.
    state: Option<FileStateHash>,
    /// Whether the state alone tells that nothing has changed.
    settled: bool,
    pub(super) content: Arc<FileContent>,
}

/// What a file's bytes came to mean. The same as long as the bytes are.
#[derive(Debug)]
pub(super) struct FileContent {
    pub(super) kind: ContentKind,
    pub(super) diagnostics: Seldom<Vec<Diagnostic>>,
    pub(super) len: u64,
    /// Differs between any two contents of one file.
    pub(super) number: u64,
}

/// A number that nothing had before.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[derive(Debug)]
pub(super) enum ContentKind {
    /// A prompt; without a draft, one that is broken.
    Prompt { source: Arc<SourceText>, draft: Option<Draft>, broken: Option<Box<BrokenDraft>> },
    /// A file, and its text when others may include it.
    Asset { file: Arc<LibraryFile>, partial: Option<Arc<SourceText>> },
    /// Something that should be a prompt and cannot be read, and what it asks of callers.
    UnreadablePrompt(Box<Requirements>),
    /// Nothing that anybody will miss yet.
    Absent,
}

/// How files are read.
#[derive(Clone, Copy)]
pub(super) struct ReadContext<'a> {
    pub(super) root: &'a ConfinedDir,
    pub(super) limit: u64,
    /// When the reading began.
    pub(super) now: SystemTime,
    /// Texts that stand in the place of files.
    pub(super) unsaved: &'a BTreeMap<String, Arc<str>>,
}

impl ReadContext<'_> {
    /// Reads one file, or takes over what it was before.
    pub(super) fn entry(&self, found: &FoundFile, role: FileRole, before: Option<&CachedFile>) -> CachedFile {
        let path = &found.path;
        let before = before.filter(|before| before.content.kind.is(role));
        if let Some(text) = self.unsaved.get(path.as_str()) {
            let state = FileState::unsaved(text.len() as u64);
            let content = match before.filter(|before| before.content.is_still(text.as_bytes(), &state)) {
                Some(before) => Arc::clone(&before.content),
                None => Arc::new(FileContent::of(path, role, text.as_bytes().to_vec(), &state)),
            };
            return CachedFile { state: None, settled: false, content };
        }
        if let Some(before) = before.filter(|before| before.settled && before.state.is_some()) {
            let state = found.state.or_else(|| self.root.state(path).ok());
            if state.map(|state| state.hash64()) == before.state {
                return before.clone();
            }
        }
        match self.root.read(path, self.limit) {
            Ok(FileBytes { bytes, state }) => {
                let content = match before.filter(|before| before.content.is_still(&bytes, &state)) {
                    Some(before) => Arc::clone(&before.content),
                    None => Arc::new(FileContent::of(path, role, bytes, &state)),
                };
                CachedFile { state: Some(state.hash64()), settled: state.is_settled(self.now), content }
            }
            Err(refusal) => {
                let diagnostics: Vec<Diagnostic> = refused(path, &refusal, self.limit).into_iter().collect();
                // A prompt that vanished or turned into something else is meant
                // to be gone; one that cannot be read just now is not.
                let stays = matches!(refusal, FileError::Io(_) | FileError::TooLarge(_));
                let requirements = || match refusal {
                    // It has grown, and what it says by now is not read.
                    FileError::TooLarge(_) => Requirements::Unknown,
                    _ => Requirements::Known(None),
                };
                let kind = if stays && role.is_prompt() {
                    ContentKind::UnreadablePrompt(Box::new(requirements()))
                } else {
                    ContentKind::Absent
                };
                CachedFile { state: None, settled: false, content: Arc::new(FileContent::refused(kind, diagnostics)) }
            }
        }
    }
}

impl ReadContext<'_> {
    /// Reads a file anew that is as it was but for what it holds.
    pub(super) fn again(&self, path: &SmolStr, before: &CachedFile) -> CachedFile {
        let role = match &before.content.kind {
            ContentKind::Asset { .. } => FileRole::Asset,
            _ => FileRole::of(path),
        };
        self.entry(&FoundFile { path: path.clone(), state: None }, role, Some(before))
    }
}

impl CachedFile {
    /// Whether it need not be read anew before somebody says so.
    pub(super) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Whether the file was read and came to mean something.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.content.kind, ContentKind::Prompt { .. } | ContentKind::Asset { .. })
    }

    /// What stands for a prompt whose folder cannot be read just now.
    pub(super) fn lost(&self) -> Option<CachedFile> {
        let requirements = self.content.kind.requirements()?;
        let content = Arc::new(FileContent::refused(ContentKind::UnreadablePrompt(Box::new(requirements)), Vec::new()));
        Some(CachedFile { state: None, settled: false, content })
    }
}

impl ContentKind {
    /// What a prompt's file asks of callers; nothing where it is none's.
    pub(super) fn requirements(&self) -> Option<Requirements> {
        match self {
            ContentKind::Prompt { draft: Some(draft), .. } => {
                Some(Requirements::Known(draft.definition.access.clone()))
            }
            ContentKind::Prompt { source, draft: None, .. } => Some(requirements(source)),
            ContentKind::UnreadablePrompt(requirements) => Some((**requirements).clone()),
            ContentKind::Asset { .. } | ContentKind::Absent => None,
        }
    }

    fn is(&self, role: FileRole) -> bool {
        match self {
            ContentKind::Prompt { .. } | ContentKind::UnreadablePrompt(_) => role.is_prompt(),
            ContentKind::Asset { .. } => !role.is_prompt(),
            ContentKind::Absent => false,
        }
    }
}

impl FileContent {
    /// A prompt that says everything itself: nothing of it stands in other
    /// files, and nothing is wrong with how it is written.
    pub(super) fn by_itself(&self) -> Option<&PromptDefinition> {
        let ContentKind::Prompt { draft: Some(draft), broken: None, .. } = &self.kind else { return None };
        let is_whole = |icon: &Icon| icons::is_uri(&icon.src);
        let is_alone = draft.globs.is_empty() && draft.definition.icons.iter().all(is_whole);
        (is_alone && self.diagnostics.is_empty()).then_some(&draft.definition)
    }

    /// A file that is not read, again and again with the same words, is no change.
    fn refused(kind: ContentKind, diagnostics: Vec<Diagnostic>) -> FileContent {
        let mut hasher = DefaultHasher::new();
        for diagnostic in &diagnostics {
            diagnostic.message.hash(&mut hasher);
        }
        FileContent { kind, diagnostics: diagnostics.into(), len: 0, number: hasher.finish() }
    }

    fn of(path: &SmolStr, role: FileRole, bytes: Vec<u8>, state: &FileState) -> FileContent {
        let len = state.len();
        match role {
            FileRole::Prompt(format) => match String::from_utf8(bytes) {
                Ok(text) => {
                    let source = SourceText::new(path.clone(), text);
                    let parsed = format.read(&source);
                    let draft = parsed.draft.map(|mut draft| {
                        draft.definition.origin.modified = state.modified();
                        draft.definition.settle();
                        draft
                    });
                    FileContent {
                        kind: ContentKind::Prompt { source, draft, broken: parsed.broken.map(Box::new) },
                        diagnostics: parsed.diagnostics.into(),
                        len,
                        number: next_number(),
                    }
                }
                Err(error) => {
                    let message = format!(
                        "this file is not UTF-8: byte {} belongs to no character",
                        error.utf8_error().valid_up_to()
                    );
                    let diagnostic = at(path, Code::NotUtf8, true, message).help("save it as UTF-8");
                    // What is no text is beside its keys, more often than not.
                    let readable = String::from_utf8_lossy(error.as_bytes()).into_owned();
                    let kind =
                        ContentKind::UnreadablePrompt(Box::new(requirements(&SourceText::new(path.clone(), readable))));
                    FileContent { kind, diagnostics: vec![diagnostic].into(), len, number: next_number() }
                }
            },
            FileRole::Asset => FileContent::file(path, bytes, state),
        }
    }

    fn file(path: &SmolStr, bytes: Vec<u8>, state: &FileState) -> FileContent {
        let len = state.len();
        let mut mime_type = media_type::of(path, &bytes);
        let mut diagnostics = Vec::new();
        if let Some(found) = media_type::contradiction(&mime_type, &bytes) {
            let message = format!("the name says {}, and the bytes are {}", mime_type.as_str(), found.as_str());
            diagnostics.push(
                at(path, Code::ContentMismatch, false, message).help("rename the file, or save it in the other format"),
            );
            mime_type = found;
        }
        let body = media_type::body(&mime_type, bytes);
        let partial = match &body {
            ResourceBody::Text(text) => Some(SourceText::new(path.clone(), &**text)),
            ResourceBody::Blob(_) => None,
        };
        let file = LibraryFile { path: path.to_string(), mime_type, body, modified: state.modified() };
        FileContent {
            kind: ContentKind::Asset { file: Arc::new(file), partial },
            diagnostics: diagnostics.into(),
            len,
            number: next_number(),
        }
    }

    /// Whether bytes that were read anew say what is known already.
    fn is_still(&self, bytes: &[u8], state: &FileState) -> bool {
        match &self.kind {
            ContentKind::Prompt { source, draft, .. } => {
                let modified = draft.as_ref().and_then(|draft| draft.definition.origin.modified);
                source.text.as_bytes() == bytes && (draft.is_none() || modified == state.modified())
            }
            ContentKind::Asset { file, .. } => {
                let same = match &file.body {
                    ResourceBody::Text(text) => text.as_bytes() == bytes,
                    ResourceBody::Blob(blob) => blob.bytes() == bytes,
                };
                same && file.modified == state.modified()
            }
            ContentKind::UnreadablePrompt(_) | ContentKind::Absent => false,
        }
    }
}
