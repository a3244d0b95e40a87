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
    Blob, Code, Diagnostic, Icon, LibraryFile, MimeType, PromptDefinition, Requirements, ResourceBody, Seldom,
    SourceText,
};
use smol_str::SmolStr;

use super::{
    icons,
    names::Use,
    walk::{Found, at, refused},
};
use crate::{
    confined::{Confined, FileBytes, Mark, Refusal, Stamp},
    format::{BrokenDraft, Draft, demands},
    media_type,
};

/// What a file was at one reading.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// `None` where the file could not be read, so that it is tried again.
    stamp: Option<Mark>,
    /// Whether the stamp alone tells that nothing has changed.
    settled: bool,
    pub(super) content: Arc<Content>,
}

/// What a file's bytes came to mean. The same as long as the bytes are.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) meaning: Meaning,
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
pub(super) enum Meaning {
    /// A prompt; without a draft, one that is broken.
    Prompt { source: Arc<SourceText>, draft: Option<Draft>, broken: Option<Box<BrokenDraft>> },
    /// A file, and its text when others may include it.
    File { file: Arc<LibraryFile>, partial: Option<Arc<SourceText>> },
    /// Something that should be a prompt and cannot be read, and what it asks of callers.
    Lost(Box<Requirements>),
    /// Nothing that anybody will miss yet.
    Nothing,
}

/// How files are read.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub(super) root: &'a Confined,
    pub(super) limit: u64,
    /// When the reading began.
    pub(super) now: SystemTime,
    /// Texts that stand in the place of files.
    pub(super) unsaved: &'a BTreeMap<String, Arc<str>>,
}

impl Reading<'_> {
    /// Reads one file, or takes over what it was before.
    pub(super) fn entry(&self, found: &Found, role: Use, before: Option<&Entry>) -> Entry {
        let path = &found.path;
        let before = before.filter(|before| before.content.meaning.is(role));
        if let Some(text) = self.unsaved.get(path.as_str()) {
            let stamp = Stamp::unsaved(text.len() as u64);
            let content = match before.filter(|before| before.content.is_still(text.as_bytes(), &stamp)) {
                Some(before) => Arc::clone(&before.content),
                None => Arc::new(Content::of(path, role, text.as_bytes().to_vec(), &stamp)),
            };
            return Entry { stamp: None, settled: false, content };
        }
        if let Some(before) = before.filter(|before| before.settled && before.stamp.is_some()) {
            let stamp = found.stamp.or_else(|| self.root.stamp(path).ok());
            if stamp.map(|stamp| stamp.mark()) == before.stamp {
                return before.clone();
            }
        }
        match self.root.read(path, self.limit) {
            Ok(FileBytes { bytes, stamp }) => {
                let content = match before.filter(|before| before.content.is_still(&bytes, &stamp)) {
                    Some(before) => Arc::clone(&before.content),
                    None => Arc::new(Content::of(path, role, bytes, &stamp)),
                };
                Entry { stamp: Some(stamp.mark()), settled: stamp.is_settled(self.now), content }
            }
            Err(refusal) => {
                let diagnostics: Vec<Diagnostic> = refused(path, &refusal, self.limit).into_iter().collect();
                // A prompt that vanished or turned into something else is meant
                // to be gone; one that cannot be read just now is not.
                let stays = matches!(refusal, Refusal::Failed(_) | Refusal::TooLarge(_));
                let demands = || match refusal {
                    // It has grown, and what it says by now is not read.
                    Refusal::TooLarge(_) => Requirements::Unknown,
                    _ => Requirements::Known(None),
                };
                let meaning =
                    if stays && role.is_prompt() { Meaning::Lost(Box::new(demands())) } else { Meaning::Nothing };
                Entry { stamp: None, settled: false, content: Arc::new(Content::refused(meaning, diagnostics)) }
            }
        }
    }
}

impl Reading<'_> {
    /// Reads a file anew that is as it was but for what it holds.
    pub(super) fn again(&self, path: &SmolStr, before: &Entry) -> Entry {
        let role = match &before.content.meaning {
            Meaning::File { .. } => Use::File,
            _ => Use::of(path),
        };
        self.entry(&Found { path: path.clone(), stamp: None }, role, Some(before))
    }
}

impl Entry {
    /// Whether it need not be read anew before somebody says so.
    pub(super) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Whether the file was read and came to mean something.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.content.meaning, Meaning::Prompt { .. } | Meaning::File { .. })
    }

    /// What stands for a prompt whose folder cannot be read just now.
    pub(super) fn lost(&self) -> Option<Entry> {
        let demands = self.content.meaning.demands()?;
        let content = Arc::new(Content::refused(Meaning::Lost(Box::new(demands)), Vec::new()));
        Some(Entry { stamp: None, settled: false, content })
    }
}

impl Meaning {
    /// What a prompt's file asks of callers; nothing where it is none's.
    pub(super) fn demands(&self) -> Option<Requirements> {
        match self {
            Meaning::Prompt { draft: Some(draft), .. } => Some(Requirements::Known(draft.definition.access.clone())),
            Meaning::Prompt { source, draft: None, .. } => Some(demands(source)),
            Meaning::Lost(demands) => Some((**demands).clone()),
            Meaning::File { .. } | Meaning::Nothing => None,
        }
    }

    fn is(&self, role: Use) -> bool {
        match self {
            Meaning::Prompt { .. } | Meaning::Lost(_) => role.is_prompt(),
            Meaning::File { .. } => !role.is_prompt(),
            Meaning::Nothing => false,
        }
    }
}

impl Content {
    /// A prompt that says everything itself: nothing of it stands in other
    /// files, and nothing is wrong with how it is written.
    pub(super) fn by_itself(&self) -> Option<&PromptDefinition> {
        let Meaning::Prompt { draft: Some(draft), broken: None, .. } = &self.meaning else { return None };
        let is_whole = |icon: &Icon| icons::is_uri(&icon.src);
        let is_alone = draft.globs.is_empty() && draft.definition.icons.iter().all(is_whole);
        (is_alone && self.diagnostics.is_empty()).then_some(&draft.definition)
    }

    /// A file that is not read, again and again with the same words, is no change.
    fn refused(meaning: Meaning, diagnostics: Vec<Diagnostic>) -> Content {
        let mut hasher = DefaultHasher::new();
        for diagnostic in &diagnostics {
            diagnostic.message.hash(&mut hasher);
        }
        Content { meaning, diagnostics: diagnostics.into(), len: 0, number: hasher.finish() }
    }

    fn of(path: &SmolStr, role: Use, bytes: Vec<u8>, stamp: &Stamp) -> Content {
        let len = stamp.len();
        match role {
            Use::Prompt(format) => match String::from_utf8(bytes) {
                Ok(text) => {
                    let source = SourceText::new(path.clone(), text);
                    let parsed = format.read(&source);
                    let draft = parsed.draft.map(|mut draft| {
                        draft.definition.origin.modified = stamp.modified();
                        draft.definition.settle();
                        draft
                    });
                    Content {
                        meaning: Meaning::Prompt { source, draft, broken: parsed.broken.map(Box::new) },
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
                    let meaning = Meaning::Lost(Box::new(demands(&SourceText::new(path.clone(), readable))));
                    Content { meaning, diagnostics: vec![diagnostic].into(), len, number: next_number() }
                }
            },
            Use::File => Content::file(path, bytes, stamp),
        }
    }

    fn file(path: &SmolStr, bytes: Vec<u8>, stamp: &Stamp) -> Content {
        let len = stamp.len();
        let mut mime_type = media_type::of(path, &bytes);
        let mut diagnostics = Vec::new();
        if let Some(found) = media_type::contradiction(&mime_type, &bytes) {
            let message = format!("the name says {}, and the bytes are {}", mime_type.as_str(), found.as_str());
            diagnostics.push(
                at(path, Code::ContentMismatch, false, message).help("rename the file, or save it in the other format"),
            );
            mime_type = found;
        }
        let body = body(&mime_type, bytes);
        let partial = match &body {
            ResourceBody::Text(text) => Some(SourceText::new(path.clone(), &**text)),
            ResourceBody::Blob(_) => None,
        };
        let file = LibraryFile { path: path.to_string(), mime_type, body, modified: stamp.modified() };
        Content {
            meaning: Meaning::File { file: Arc::new(file), partial },
            diagnostics: diagnostics.into(),
            len,
            number: next_number(),
        }
    }

    /// Whether bytes that were read anew say what is known already.
    fn is_still(&self, bytes: &[u8], stamp: &Stamp) -> bool {
        match &self.meaning {
            Meaning::Prompt { source, draft, .. } => {
                let modified = draft.as_ref().and_then(|draft| draft.definition.origin.modified);
                source.text.as_bytes() == bytes && (draft.is_none() || modified == stamp.modified())
            }
            Meaning::File { file, .. } => {
                let same = match &file.body {
                    ResourceBody::Text(text) => text.as_bytes() == bytes,
                    ResourceBody::Blob(blob) => blob.bytes() == bytes,
                };
                same && file.modified == stamp.modified()
            }
            Meaning::Lost(_) | Meaning::Nothing => false,
        }
    }
}

/// Text where the type says so and the bytes are UTF-8; bytes otherwise.
pub(crate) fn body(mime_type: &MimeType, bytes: Vec<u8>) -> ResourceBody {
    if !media_type::is_text(mime_type) {
        return ResourceBody::Blob(Blob::new(bytes));
    }
    match String::from_utf8(bytes) {
        Ok(text) => ResourceBody::Text(text.into()),
        Err(error) => ResourceBody::Blob(Blob::new(error.into_bytes())),
    }
}
