//! Approvals: the definitions that an operator has accepted, and those that wait, in two files.
//!
//! The server writes the definitions that wait, and the operator's command the approved ones. The first list of a server
//! is approved as it is.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use crate::{
    definition::Definition,
    state_file::{read, write},
};

pub(crate) type DefinitionMap = BTreeMap<String, Definition>;

/// The approved definitions of one server, and those that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approvals {
    approved: PathBuf,
    pending: PathBuf,
}

/// A definition that waits for an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DefinitionChange {
    /// The name of the prompt at the other server.
    pub name: String,
    /// The approved definition; `None` for a new prompt.
    pub before: Option<Definition>,
    /// The definition that waits.
    pub after: Definition,
}

impl Approvals {
    /// Creates the approvals of the source `name`, in files of a folder that only the operator can write.
    #[must_use]
    pub fn new(folder: &Path, name: &str) -> Approvals {
        Approvals {
            approved: folder.join(format!("{name}.approved.json")),
            pending: folder.join(format!("{name}.pending.json")),
        }
    }

    /// Returns the definitions that wait.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub fn pending(&self) -> io::Result<Vec<DefinitionChange>> {
        let approved = self.read_approved()?.unwrap_or_default();
        let pending: DefinitionMap = read(&self.pending)?.unwrap_or_default();
        let waiting = pending.into_iter().filter(|(name, after)| approved.get(name) != Some(after));
        let change = |(name, after): (String, Definition)| DefinitionChange {
            before: approved.get(&name).cloned(),
            name,
            after,
        };
        Ok(waiting.map(change).collect())
    }

    /// Approves definitions that wait. A running server serves them within seconds.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or written.
    pub fn approve(&self, changes: &[DefinitionChange]) -> io::Result<()> {
        let mut approved = self.read_approved()?.unwrap_or_default();
        approved.extend(changes.iter().map(|change| (change.name.clone(), change.after.clone())));
        write(&self.approved, &approved)
    }

    /// Returns the approved definitions; `None` before the first list.
    pub(crate) fn read_approved(&self) -> io::Result<Option<DefinitionMap>> {
        read(&self.approved)
    }

    pub(crate) fn approve_first(&self, definitions: &DefinitionMap) -> io::Result<()> {
        write(&self.approved, definitions)
    }

    pub(crate) fn set_pending(&self, definitions: &DefinitionMap) -> io::Result<()> {
        match read::<DefinitionMap>(&self.pending) {
            Ok(Some(known)) if known == *definitions => Ok(()),
            Ok(None) if definitions.is_empty() => Ok(()),
            _ => write(&self.pending, definitions),
        }
    }
}
