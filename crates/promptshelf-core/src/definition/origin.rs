//! Where a definition comes from, down to its parts.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use arcstr::ArcStr;

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
    parts: ArcStr,
    /// As many places: two numbers for each, or four where the file is so long
    /// that they take two each, the lower half first.
    places: Box<[u16]>,
}

impl Spans {
    /// Where a part stands.
    #[must_use]
    pub fn get(&self, part: &str) -> Option<Range<usize>> {
        let at = self.parts.lines().position(|known| known == part)?;
        let each = self.places.len() / self.parts.lines().count();
        Some(match *self.places.get(at * each..)?.get(..each)? {
            [start, end] => start.into()..end.into(),
            [start, start_high, end, end_high] => joined(start, start_high)..joined(end, end_high),
            _ => return None,
        })
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

/// The halves of a number, the lower one first.
fn halves(at: usize) -> [u16; 2] {
    // A location is moved into its text, wherever it would be.
    let at = u32::try_from(at).unwrap_or(u32::MAX).to_le_bytes();
    [u16::from_le_bytes([at[0], at[1]]), u16::from_le_bytes([at[2], at[3]])]
}

/// The number of which these are the halves.
fn joined(low: u16, high: u16) -> usize {
    usize::from(low) | usize::from(high) << u16::BITS
}

/// The most different texts that are kept to be shared.
const SHARED: usize = 1024;

/// A text that others have, too.
fn shared(text: String) -> ArcStr {
    static KNOWN: Mutex<BTreeSet<ArcStr>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(text.as_str()) {
        return known.clone();
    }
    if known.len() >= SHARED {
        // A library is mostly written alike; whoever writes otherwise shares nothing.
        known.clear();
    }
    let text = ArcStr::from(text);
    known.insert(text.clone());
    text
}

impl From<BTreeMap<String, Range<usize>>> for Spans {
    fn from(spans: BTreeMap<String, Range<usize>>) -> Spans {
        // No key of a prompt file that is looked for has a line break in it.
        let (mut parts, mut bytes) = (String::new(), Vec::with_capacity(2 * spans.len()));
        for (part, span) in spans.iter().filter(|(part, _)| !part.contains(['\n', '\r'])) {
            parts.push_str(part);
            parts.push('\n');
            bytes.extend([span.start, span.end]);
        }
        let narrow: Result<_, _> = bytes.iter().map(|at| u16::try_from(*at)).collect();
        let places = narrow.unwrap_or_else(|_| bytes.iter().flat_map(|at| halves(*at)).collect());
        Spans { parts: shared(parts), places }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_short_files_and_in_long_ones() {
        let mut spans = Spans::default();
        assert_eq!(spans.get("name"), None);
        spans.insert("name".to_owned(), 7..0xffff);
        assert_eq!(spans.get("name"), Some(7..0xffff));
        spans.insert("body".to_owned(), 0x1_0000..0x12_3456);
        assert_eq!((spans.get("name"), spans.get("body")), (Some(7..0xffff), Some(0x1_0000..0x12_3456)));
        spans.insert("body".to_owned(), 1..2);
        assert_eq!((spans.get("name"), spans.get("body")), (Some(7..0xffff), Some(1..2)));
        assert_eq!(spans.get("title"), None);
    }
}
