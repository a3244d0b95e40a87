//! Tables of the keys in a prompt file. The parser, completion in editors and the JSON Schema all use the same tables.

#[cfg(feature = "schema")]
mod schema;

/// The keys of a mapping.
#[derive(Debug)]
pub struct Keys {
    /// The keys, in the order in which files are written.
    pub keys: &'static [Key],
    /// Those that have to be there.
    pub required: &'static [&'static str],
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The key as it is written.
    pub name: &'static str,
    /// A description in one sentence.
    pub about: &'static str,
    /// The values it takes.
    pub holds: Holds,
}

/// The type of a key's value.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Holds {
    /// A scalar, taken as it is written.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A whole number of at least this value.
    Count(u64),
    /// A number, within bounds if they are set.
    Number(Option<(f64, f64)>),
    /// A text, or a list of texts.
    Texts,
    /// One of these words, or a list of them.
    Words(&'static [&'static str]),
    /// A scalar, or any other JSON value.
    Value,
    /// A [`Value`](Holds::Value), or a list of them.
    Values,
    /// A mapping of arbitrary keys to arbitrary values.
    Object,
    /// A mapping of arbitrary keys to scalars.
    Pairs,
    /// A list of scalars or of mappings.
    Choices(&'static Keys),
    /// A text, a mapping, or a list of these.
    TextsOrTables(&'static Keys),
    /// A text, a flag, or a mapping.
    TextOrTable(&'static Keys),
    /// A list of texts or of mappings.
    ListOfTextsOrTables(&'static Keys),
    /// A mapping.
    Table(&'static Keys),
    /// A list of mappings.
    Tables(&'static Keys),
    /// A source of suggestions: a list, or one of several mappings.
    Completion(&'static [Keys]),
}

pub(crate) const fn key(name: &'static str, holds: Holds, about: &'static str) -> Key {
    Key { name, about, holds }
}

/// Creates a table without required keys.
pub(crate) const fn keys(keys: &'static [Key]) -> Keys {
    Keys { keys, required: &[] }
}

impl Keys {
    /// Returns every name.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }

    /// Returns the position of a key in the canonical order.
    #[must_use]
    pub fn rank(&self, name: &str) -> usize {
        self.keys.iter().position(|key| key.name == name).unwrap_or(self.keys.len())
    }

    /// A key by its name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}
