//! The keys that stand in a file, kept as tables: what is read, what is
//! completed in an editor and what a schema says come from the same lines.

/// A mapping whose keys are known.
#[derive(Debug)]
pub struct Keys {
    /// The keys, in the order in which files are written.
    pub keys: &'static [Key],
    /// Those that have to be there.
    pub required: &'static [&'static str],
}

/// One key.
#[derive(Debug)]
pub struct Key {
    /// The key as it is written.
    pub name: &'static str,
    /// What it is for, as one sentence.
    pub about: &'static str,
    /// The values it takes.
    pub holds: Holds,
}

/// What stands behind a key.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Holds {
    /// A scalar, taken as it is written.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A whole number of at least this.
    Count(u64),
    /// A number; with bounds where there are any.
    Number(Option<(f64, f64)>),
    /// A text, or a list of texts.
    Texts,
    /// The same, of these words only.
    Words(&'static [&'static str]),
    /// A scalar, or what else JSON can be.
    Value,
    /// One such value, or a list of them.
    Values,
    /// Keys of the author's own with any values.
    Object,
    /// Keys of the author's own with scalars.
    Pairs,
    /// A list of scalars or of such mappings.
    Choices(&'static Keys),
    /// A text, such a mapping, or a list of these.
    TextsOrTables(&'static Keys),
    /// A list of texts or of such mappings.
    ListOfTextsOrTables(&'static Keys),
    /// One such mapping.
    Table(&'static Keys),
    /// A list of such mappings.
    Tables(&'static Keys),
    /// Where suggestions come from: a list, or one of several mappings.
    Completion(&'static [Keys]),
    /// Something that somebody else reads.
    Foreign,
}

/// A key of a table.
pub(crate) const fn key(name: &'static str, holds: Holds, about: &'static str) -> Key {
    Key { name, about, holds }
}

/// A table of which every key can be left out.
pub(crate) const fn keys(keys: &'static [Key]) -> Keys {
    Keys { keys, required: &[] }
}

impl Keys {
    /// Returns every name.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }

    /// Where a key stands in the order in which files are written.
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
