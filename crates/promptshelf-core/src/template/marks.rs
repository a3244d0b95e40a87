//! Marks: how structure travels through a text that anybody's values are in.

use std::hash::{BuildHasher, RandomState};

use minijinja::{Error, State};

use super::{Attach, Call, Link, Mark, Piece, meter};

/// Opens and closes a mark's frame: characters that Unicode keeps for a
/// program's own use (section 23.7, noncharacters). They only make frames easy
/// to find; what makes a frame a mark is the number in it.
const OPEN: char = '\u{FDD0}';
const CLOSE: char = '\u{FDD1}';

/// The marks of one rendering.
pub(super) struct Marks {
    nonce: String,
    marks: Vec<Mark>,
}

impl Marks {
    fn new() -> Marks {
        // 128 bits from SipHash under keys that the operating system's random
        // numbers seeded: drawn after the caller's values were fixed, never shown.
        // Digits only, so that a filter such as `upper` cannot disguise them.
        let random = || RandomState::new().hash_one(0_u8);
        Marks { nonce: format!("{:020}{:020}", random(), random()), marks: Vec::new() }
    }

    /// Keeps a mark and gives the frame that stands for it in the text.
    pub(super) fn put(state: &mut State<'_, '_>, mark: Mark) -> Result<String, Error> {
        meter::spend(state, size_of::<Mark>() + mark.text_len())?;
        let own = state.get_or_insert_extension_with(Marks::new);
        own.marks.push(mark);
        Ok(format!("{OPEN}{}:{}{CLOSE}", own.nonce, own.marks.len() - 1))
    }

    pub(super) fn take(&mut self) -> Marks {
        Marks { nonce: std::mem::take(&mut self.nonce), marks: std::mem::take(&mut self.marks) }
    }

    /// Cuts a text at its marks. `None` when a frame was altered on its way,
    /// as when a template sends `role(…)` through a filter.
    pub(super) fn cut(&self, text: &str) -> Option<Vec<Piece>> {
        let frame = format!("{OPEN}{}:", self.nonce);
        let mut pieces = Vec::with_capacity(2 * self.marks.len() + 1);
        let mut rest = text;
        while let Some(start) = rest.find(&frame) {
            self.push_text(&mut pieces, &rest[..start])?;
            let after = &rest[start + frame.len()..];
            let (index, after) = after.split_once(CLOSE)?;
            pieces.push(Piece::Mark(self.marks.get(index.parse::<usize>().ok()?)?.clone()));
            rest = after;
        }
        self.push_text(&mut pieces, rest)?;
        Some(pieces)
    }

    fn push_text(&self, pieces: &mut Vec<Piece>, text: &str) -> Option<()> {
        // A lone number means that a frame lost its edges. It must not be shown.
        if text.contains(&self.nonce) {
            return None;
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text.to_owned()));
        }
        Some(())
    }
}

impl Mark {
    /// Bytes of the texts that it holds.
    fn text_len(&self) -> usize {
        let optional = |texts: &[&Option<String>]| -> usize {
            texts.iter().map(|text| text.as_ref().map_or(0, String::len)).sum()
        };
        match self {
            Mark::Role { .. } => 0,
            Mark::Attach(Attach { target, uri, mime, .. }) => target.len() + optional(&[uri, mime]),
            Mark::Prompt(Call { name, arguments }) => {
                name.len() + arguments.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
            }
            Mark::Link(Link { target, name, title, description, mime, .. }) => {
                target.len() + optional(&[name, title, description, mime])
            }
        }
    }
}
