//! Where a definition comes from, down to its parts.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use crate::diagnostic::{Location, SourceText};

/// Where a definition comes from, down to its parts.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The file.
    pub source: Arc<SourceText>,
    /// Which of several sources the file is from.
    pub from: usize,
    /// When the file last changed, where known.
    pub modified: Option<jiff::Timestamp>,
    /// Bytes of the file for parts of the definition, by a path such as
    /// `arguments.0.default`. Parts without an entry are where the nearest
    /// enclosing part is.
    pub spans: Spans,
}

impl Origin {
    /// A file of which no parts are known yet.
    #[must_use]
    pub fn new(source: Arc<SourceText>) -> Origin {
        Origin { source, from: 0, modified: None, spans: Spans::default() }
    }

    /// Where a part of the definition stands.
    ///
    /// ```
    /// use promptshelf_core::{Origin, SourceText};
    ///
    /// let mut origin = Origin::new(SourceText::new("a.md", "---\nname: a\n---\n"));
    /// origin.spans.insert("name".into(), 10..11);
    /// assert_eq!(origin.locate("name").to_string(), "a.md:2:7");
    /// assert_eq!(origin.locate("arguments.0").to_string(), "a.md:1:1");
    /// ```
    #[must_use]
    pub fn locate(&self, part: &str) -> Location {
        let mut part = part;
        loop {
            if let Some(span) = self.spans.get(part) {
                return Location::new(&self.source, span);
            }
            match part.rfind('.') {
                Some(dot) => part = &part[..dot],
                None => return Location::file(&self.source),
            }
        }
    }
}

/// Bytes of a file, by the path of a part. Every prompt of a library has some
/// and they are looked at only when something is wrong, so that they are kept
/// in as little room as can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spans {
    /// A part's path a line. Prompts that are written alike share it.
    parts: Arc<str>,
    /// As many places.
    places: Box<[(u32, u32)]>,
}

impl Spans {
    /// Where a part stands.
    #[must_use]
    pub fn get(&self, part: &str) -> Option<Range<usize>> {
        let (start, end) = *self.places.get(self.parts.lines().position(|known| known == part)?)?;
        Some(start as usize..end as usize)
    }

    /// Says where a part stands.
    pub fn insert(&mut self, part: String, span: Range<usize>) {
        let mut all: BTreeMap<String, Range<usize>> = BTreeMap::new();
        for known in self.parts.lines() {
            all.extend(self.get(known).map(|span| (known.to_owned(), span)));
        }
        all.insert(part, span);
        *self = all.into();
    }
}

impl Default for Spans {
    fn default() -> Spans {
        Spans { parts: shared(String::new()), places: Box::default() }
    }
}

/// The most different texts that are kept to be shared.
const SHARED: usize = 1024;

/// A text that others have, too.
fn shared(text: String) -> Arc<str> {
    static KNOWN: Mutex<BTreeSet<Arc<str>>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(text.as_str()) {
        return Arc::clone(known);
    }
    if known.len() >= SHARED {
        // A library is mostly written alike; whoever writes otherwise shares nothing.
        known.clear();
    }
    let text: Arc<str> = text.into();
    known.insert(Arc::clone(&text));
    text
}

impl From<BTreeMap<String, Range<usize>>> for Spans {
    fn from(spans: BTreeMap<String, Range<usize>>) -> Spans {
        // A location is moved into its text, wherever it would be.
        let byte = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        // No key of a prompt file that is looked for has a line break in it.
        let (mut parts, mut places) = (String::new(), Vec::with_capacity(spans.len()));
        for (part, span) in spans.iter().filter(|(part, _)| !part.contains(['\n', '\r'])) {
            parts.push_str(part);
            parts.push('\n');
            places.push((byte(span.start), byte(span.end)));
        }
        Spans { parts: shared(parts), places: places.into() }
    }
}
