//! Provenance: the revision that a catalog was made from, and the version of each prompt in it.

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::invisible;

/// The largest number of approvers that are kept for a version.
const MAX_APPROVERS: usize = 20;

/// The longest name of an approver, in characters.
const MAX_APPROVER: usize = 200;

/// The channel and the revision that prompts come from, with the version of each.
///
/// ```
/// use promptshelf_core::{PromptProvenance, Provenance};
///
/// let mut provenance = Provenance::new("production", 7);
/// provenance.insert("hello", PromptProvenance::new(2, [0xab; 32], ["Ada"]));
/// assert_eq!(provenance.prompt("hello").unwrap().approved_by(), ["Ada"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    channel: Arc<str>,
    revision: u64,
    prompts: BTreeMap<Box<str>, PromptProvenance>,
}

impl Provenance {
    /// Creates the provenance of a revision, without prompts.
    pub fn new(channel: impl Into<Arc<str>>, revision: u64) -> Provenance {
        Provenance { channel: channel.into(), revision, prompts: BTreeMap::new() }
    }

    /// Adds a prompt, or replaces its version.
    pub fn insert(&mut self, prompt: impl Into<Box<str>>, provenance: PromptProvenance) {
        self.prompts.insert(prompt.into(), provenance);
    }

    /// The name of the channel.
    #[must_use]
    pub fn channel(&self) -> &str {
        &self.channel
    }

    /// The number of the revision.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the version of a prompt.
    #[must_use]
    pub fn prompt(&self, name: &str) -> Option<&PromptProvenance> {
        self.prompts.get(name)
    }

    /// Whether lists show the same for both, but for the number of the revision.
    pub(crate) fn is_listed_like(&self, other: &Provenance) -> bool {
        self.channel == other.channel && self.prompts == other.prompts
    }
}

impl<N: Into<Box<str>>> Extend<(N, PromptProvenance)> for Provenance {
    fn extend<I: IntoIterator<Item = (N, PromptProvenance)>>(&mut self, prompts: I) {
        self.prompts.extend(prompts.into_iter().map(|(name, provenance)| (name.into(), provenance)));
    }
}

/// The version of a prompt.
#[derive(Clone, PartialEq, Eq)]
pub struct PromptProvenance {
    version: u64,
    digest: [u8; 32],
    approved_by: Arc<[String]>,
}

impl PromptProvenance {
    /// Creates a version from its number, the digest of all files that the prompt is made from, and the names of the
    /// reviewers who approved it.
    ///
    /// The names may be any text. Control characters and invisible ones are removed, and at most 20 names of at most 200
    /// characters are kept.
    pub fn new(version: u64, digest: [u8; 32], approved_by: impl IntoIterator<Item: AsRef<str>>) -> PromptProvenance {
        let clean = |name: &str| -> String {
            let visible = invisible::stripped(name);
            visible.chars().filter(|c| !c.is_control()).take(MAX_APPROVER).collect()
        };
        let names = approved_by.into_iter().map(|name| clean(name.as_ref())).filter(|name| !name.is_empty());
        PromptProvenance { version, digest, approved_by: names.take(MAX_APPROVERS).collect() }
    }

    /// The number of the version.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Formats the digest as 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> String {
        let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
        self.digest.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }

    /// The names of the reviewers who approved it.
    #[must_use]
    pub fn approved_by(&self) -> &[String] {
        &self.approved_by
    }
}

impl fmt::Debug for PromptProvenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PromptProvenance({}, {}, {:?})", self.version, self.digest(), self.approved_by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-92
    #[test]
    fn names_of_approvers_are_cleaned_and_bounded() {
        let of = |names: &[&str]| PromptProvenance::new(1, [0; 32], names).approved_by().to_vec();
        assert_eq!(
            of(&["Ada\r\n\u{202e}\u{1b}[31m Lovelace", "\u{200b}", "Größe 😀"]),
            ["Ada[31m Lovelace", "Größe 😀"]
        );
        assert_eq!(of(&[&"x".repeat(300)])[0].len(), MAX_APPROVER);
        assert_eq!(of(&["name"; 30]).len(), MAX_APPROVERS);
    }
}
