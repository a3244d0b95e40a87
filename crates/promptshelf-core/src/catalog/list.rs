//! The prompts of a catalog by name, in chunks that successive catalogs share.
//!
//! An edited prompt in a large library copies one chunk, and a comparison of two catalogs skips the chunks that they
//! share.

use std::{
    ops::{Index, Range},
    sync::Arc,
};

use crate::prompt::Prompt;

/// The number of prompts of a chunk, except the last one. Near the square root of a large library's size, so that
/// neither a chunk nor the list of chunks is long.
const PIECE: usize = 256;

/// The prompts of a catalog, by name. Clones share all chunks.
#[derive(Clone, Debug, Default)]
pub struct PromptList {
    pieces: Vec<Arc<[Arc<Prompt>]>>,
}

impl PromptList {
    /// Creates a list from prompts that are sorted by name, without duplicates.
    pub(crate) fn from_sorted(prompts: &[Arc<Prompt>]) -> PromptList {
        PromptList { pieces: prompts.chunks(PIECE).map(Arc::from).collect() }
    }

    /// Returns the number of prompts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces.last().map_or(0, |last| (self.pieces.len() - 1) * PIECE + last.len())
    }

    /// Returns whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns the prompt at an index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Arc<Prompt>> {
        self.pieces.get(index / PIECE)?.get(index % PIECE)
    }

    /// Iterates over the prompts, by name.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Prompt>> + Clone {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// Iterates over the prompts of a range of indexes, such as those of a page.
    pub fn range(&self, places: Range<usize>) -> impl Iterator<Item = &Arc<Prompt>> {
        places.map_while(|index| self.get(index))
    }

    /// Returns the index of the prompt with exactly this name.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        let index = self.partition_point(|known| known < name);
        self.get(index).is_some_and(|prompt| prompt.name().as_str() == name).then_some(index)
    }

    /// Returns the number of leading names for which `is_before` is true.
    pub(crate) fn partition_point(&self, is_before: impl Fn(&str) -> bool) -> usize {
        let is_before = |prompt: &Arc<Prompt>| is_before(prompt.name().as_str());
        let whole = self.pieces.partition_point(|piece| piece.last().is_some_and(is_before));
        whole * PIECE + self.pieces.get(whole).map_or(0, |piece| piece.partition_point(is_before))
    }

    pub(crate) fn replace(&mut self, index: usize, prompt: Arc<Prompt>) {
        if let Some(piece) = self.pieces.get_mut(index / PIECE) {
            Arc::make_mut(piece)[index % PIECE] = prompt;
        }
    }

    /// Whether each prompt is listed like the prompt at the same index of another list.
    pub(crate) fn is_listed_like(&self, other: &PromptList) -> bool {
        let mut pieces = self.pieces.iter().zip(&other.pieces).filter(|(one, other)| !Arc::ptr_eq(one, other));
        self.len() == other.len()
            && pieces.all(|(one, other)| one.iter().zip(&**other).all(|(one, other)| one.is_listed_like(other)))
    }
}

impl PromptList {
    pub(crate) fn has_tools_like(&self, other: &PromptList) -> bool {
        let is_tool = |prompt: &&Arc<Prompt>| prompt.definition.tool;
        let mut pieces = self.pieces.iter().zip(&other.pieces).filter(|(one, other)| !Arc::ptr_eq(one, other));
        let is_same = |one: &Arc<Prompt>, other: &Arc<Prompt>| {
            one.is_listed_like(other) && one.definition.arguments == other.definition.arguments
        };
        if self.len() == other.len() {
            return pieces.all(|(one, other)| {
                let pairs = one.iter().zip(&**other);
                pairs.into_iter().all(|(one, other)| {
                    one.definition.tool == other.definition.tool && (!one.definition.tool || is_same(one, other))
                })
            });
        }
        let (mut one, mut other) = (self.iter().filter(is_tool), other.iter().filter(is_tool));
        loop {
            match (one.next(), other.next()) {
                (None, None) => return true,
                (Some(one), Some(other)) if is_same(one, other) => {}
                _ => return false,
            }
        }
    }
}

impl Index<usize> for PromptList {
    type Output = Arc<Prompt>;

    fn index(&self, index: usize) -> &Arc<Prompt> {
        &self.pieces[index / PIECE][index % PIECE]
    }
}
