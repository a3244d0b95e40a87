//! The source of a definition: file, time of change, and spans of its parts.

use std::{cmp::Ordering, collections::BTreeMap, ops::Range, sync::Arc};

use crate::{
    diagnostic::{Location, SourceText},
    timestamp::Timestamp,
};

/// The source of a definition, down to its parts.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The file.
    pub source: Arc<SourceText>,
    /// The number of the source that the file belongs to.
    pub from: usize,
    /// The precedence among definitions of one name: the smallest number is served. Definitions with the same number
    /// exclude each other.
    pub rank: u8,
    /// The names that links to the file would give its prompt. Access rules for them apply to it.
    pub linked_names: Box<[String]>,
    /// The file's time of last change, if known.
    pub modified: Option<Timestamp>,
    /// Byte ranges for parts of the definition, by a path such as
    /// `arguments.0.default`. A part without an entry has the location of the
    /// nearest enclosing part.
    pub spans: Spans,
}

impl Origin {
    /// Creates an origin without spans.
    #[must_use]
    pub fn new(source: Arc<SourceText>) -> Origin {
        Origin { source, from: 0, rank: 0, linked_names: Box::default(), modified: None, spans: Spans::default() }
    }

    /// Returns the location of a part of the definition.
    ///
    /// ```
    /// use promptshelf_core::{Origin, SourceText};
    ///
    /// let mut origin = Origin::new(SourceText::new("a.md", "---\nname: a\n---\n"));
    /// origin.spans.insert("name", 10..11);
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

/// Byte ranges of a file, by the path of a part, such as `arguments.0.default`.
///
/// Every prompt of a library has some, and they are read only to report a
/// mistake: two allocations in all take half the memory of one for each path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// Without separators, in order.
    paths: Box<str>,
    /// For each path its end in `paths`, and its byte range.
    spans: Box<[(u32, Range<u32>)]>,
}

impl Spans {
    /// Returns the byte range of a part.
    #[must_use]
    pub fn get(&self, part: &str) -> Option<Range<usize>> {
        let (mut first, mut end) = (0, self.spans.len());
        while first < end {
            let middle = first.midpoint(end);
            match self.path(middle).cmp(part) {
                Ordering::Less => first = middle + 1,
                Ordering::Greater => end = middle,
                Ordering::Equal => return Some(self.range(middle)),
            }
        }
        None
    }

    /// Sets the byte range of a part.
    pub fn insert(&mut self, part: impl Into<String>, span: Range<usize>) {
        let known = (0..self.spans.len()).map(|at| (self.path(at).to_owned(), self.range(at)));
        let mut spans: BTreeMap<String, Range<usize>> = known.collect();
        spans.insert(part.into(), span);
        *self = spans.into();
    }

    fn path(&self, at: usize) -> &str {
        let end = |at: usize| self.spans.get(at).map_or(0, |(end, _)| *end as usize);
        let start = at.checked_sub(1).map_or(0, end);
        self.paths.get(start..end(at)).unwrap_or_default()
    }

    fn range(&self, at: usize) -> Range<usize> {
        self.spans.get(at).map_or(0..0, |(_, range)| range.start as usize..range.end as usize)
    }
}

impl From<BTreeMap<String, Range<usize>>> for Spans {
    fn from(spans: BTreeMap<String, Range<usize>>) -> Spans {
        let mut paths = String::new();
        // Offsets past 4 GiB are clamped: `Location::new` moves them into the text.
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let spans = spans.into_iter().map(|(path, span)| {
            paths.push_str(&path);
            (offset(paths.len()), offset(span.start)..offset(span.end))
        });
        let spans = spans.collect();
        Spans { paths: paths.into(), spans }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_found_in_short_and_long_files() {
        let mut spans = Spans::default();
        assert_eq!(spans.get("name"), None);
        spans.insert("name", 7..0xffff);
        assert_eq!(spans.get("name"), Some(7..0xffff));
        spans.insert("body", 0x1_0000..0x12_3456);
        assert_eq!((spans.get("name"), spans.get("body")), (Some(7..0xffff), Some(0x1_0000..0x12_3456)));
        spans.insert("body", 1..2);
        assert_eq!((spans.get("name"), spans.get("body")), (Some(7..0xffff), Some(1..2)));
        assert_eq!(spans.get("title"), None);
        assert_eq!((spans.get(""), spans.get("namebody"), spans.get("nam")), (None, None, None));
    }
}
