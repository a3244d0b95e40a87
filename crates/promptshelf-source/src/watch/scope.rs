//! The scope of a change: which files have to be looked at again.

use std::collections::BTreeSet;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChangeScope {
    Anywhere,
    Paths(BTreeSet<String>),
}

impl ChangeScope {
    /// Widens the scope so that it covers `other` too.
    pub(super) fn add(&mut self, other: ChangeScope) {
        match (&mut *self, other) {
            (ChangeScope::Paths(paths), ChangeScope::Paths(more)) => paths.extend(more),
            _ => *self = ChangeScope::Anywhere,
        }
    }
}
