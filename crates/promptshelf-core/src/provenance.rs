//! Provenance: the source and the revision or commit that a catalog was made from, and the version of each prompt in it.

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::invisible;

const MAX_APPROVERS: usize = 20;

const MAX_PERSON: usize = 200;

const MAX_TEXT: usize = 1_000;

/// The origin of prompts: the name of their source, and the revision of a channel or the commit of a git repository.
///
/// ```
/// use promptshelf_core::{PromptProvenance, Provenance};
///
/// let mut provenance = Provenance::new("production", 7);
/// provenance.insert("hello", PromptProvenance::new(2, [0xab; 32], ["Ada"]));
/// assert_eq!(provenance.prompt("hello").unwrap().approved_by(), ["Ada"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    source: Option<Arc<str>>,
    channel: Option<(Arc<str>, u64)>,
    revision_digest: Option<Box<str>>,
    commit: Option<CommitProvenance>,
    prompts: BTreeMap<Box<str>, PromptProvenance>,
}

impl Provenance {
    /// Creates the provenance of a revision of a channel, without prompts.
    pub fn new(channel: impl Into<Arc<str>>, revision: u64) -> Provenance {
        Provenance { channel: Some((channel.into(), revision)), ..Provenance::default() }
    }

    /// Sets the digest of the channel's revision, as hexadecimal digits.
    #[must_use]
    pub fn with_revision_digest(self, digest: Option<String>) -> Provenance {
        Provenance { revision_digest: digest.map(Into::into), ..self }
    }

    /// Creates the provenance of a commit, whose prompts have no versions.
    #[must_use]
    pub fn of_commit(commit: CommitProvenance) -> Provenance {
        Provenance { commit: Some(commit), ..Provenance::default() }
    }

    /// Sets the name of the source.
    #[must_use]
    pub fn with_source(self, name: impl Into<Arc<str>>) -> Provenance {
        Provenance { source: Some(name.into()), ..self }
    }

    /// Adds a prompt, or replaces its version.
    pub fn insert(&mut self, prompt: impl Into<Box<str>>, provenance: PromptProvenance) {
        self.prompts.insert(prompt.into(), provenance);
    }

    /// The name of the source.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// The name of the channel.
    #[must_use]
    pub fn channel(&self) -> Option<&str> {
        self.channel.as_ref().map(|(name, _)| &**name)
    }

    /// The number of the channel's revision.
    #[must_use]
    pub fn revision(&self) -> Option<u64> {
        self.channel.as_ref().map(|(_, revision)| *revision)
    }

    /// The digest of the channel's revision: equal ones have equal histories.
    #[must_use]
    pub fn revision_digest(&self) -> Option<&str> {
        self.revision_digest.as_deref()
    }

    /// The commit.
    #[must_use]
    pub fn commit(&self) -> Option<&CommitProvenance> {
        self.commit.as_ref()
    }

    /// Returns the version of a prompt.
    #[must_use]
    pub fn prompt(&self, name: &str) -> Option<&PromptProvenance> {
        self.prompts.get(name)
    }

    /// Whether lists show the same for both, but for the number of the revision and the commit.
    pub(crate) fn is_listed_like(&self, other: &Provenance) -> bool {
        self.source == other.source
            && self.channel() == other.channel()
            && self.commit.is_some() == other.commit.is_some()
            && self.prompts == other.prompts
    }
}

impl<N: Into<Box<str>>> Extend<(N, PromptProvenance)> for Provenance {
    fn extend<I: IntoIterator<Item = (N, PromptProvenance)>>(&mut self, prompts: I) {
        self.prompts.extend(prompts.into_iter().map(|(name, provenance)| (name.into(), provenance)));
    }
}

/// The commit of a git repository that prompts come from. Control characters and invisible ones are removed from all
/// texts, which are cut to 1,000 characters, and names of people to 200.
///
/// ```
/// use promptshelf_core::CommitProvenance;
///
/// let commit = CommitProvenance::new("https://git.example/prompts.git", "4b825dc642cb6eb9a060e54bf8d69288fbee4904")
///     .folder("prompts")
///     .author("Ada <ada@example.com>");
/// assert_eq!(commit.signer(), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitProvenance {
    url: Box<str>,
    id: Box<str>,
    folder: Box<str>,
    author: Box<str>,
    signer: Option<Box<str>>,
}

impl CommitProvenance {
    /// Creates a provenance from the URL of the repository, without credentials, and the id of the commit.
    #[must_use]
    pub fn new(url: &str, id: &str) -> CommitProvenance {
        CommitProvenance {
            url: visible(url, MAX_TEXT).into(),
            id: visible(id, MAX_TEXT).into(),
            folder: Box::default(),
            author: Box::default(),
            signer: None,
        }
    }

    /// Sets the path of the library's folder in the repository.
    #[must_use]
    pub fn folder(self, path: &str) -> CommitProvenance {
        CommitProvenance { folder: visible(path, MAX_TEXT).into(), ..self }
    }

    /// Sets the author, as the commit names it: not verified.
    #[must_use]
    pub fn author(self, author: &str) -> CommitProvenance {
        CommitProvenance { author: visible(author, MAX_PERSON).into(), ..self }
    }

    /// Sets the verified signer.
    #[must_use]
    pub fn signed_by(self, signer: &str) -> CommitProvenance {
        CommitProvenance { signer: Some(visible(signer, MAX_PERSON).into()), ..self }
    }

    /// The URL of the repository, without credentials.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The id of the commit, in hexadecimal digits.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The path of the library's folder in the repository; empty for the whole repository.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.folder
    }

    /// The author, as the commit names it: not verified.
    #[must_use]
    pub fn author_name(&self) -> &str {
        &self.author
    }

    /// The verified signer; `None` if signatures are not required.
    #[must_use]
    pub fn signer(&self) -> Option<&str> {
        self.signer.as_deref()
    }
}

fn visible(text: &str, limit: usize) -> String {
    let visible = invisible::stripped(text);
    visible.chars().filter(|c| !c.is_control()).take(limit).collect()
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
        let names = approved_by.into_iter().map(|name| visible(name.as_ref(), MAX_PERSON));
        let names = names.filter(|name| !name.is_empty());
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
        assert_eq!(of(&[&"x".repeat(300)])[0].len(), MAX_PERSON);
        assert_eq!(of(&["name"; 30]).len(), MAX_APPROVERS);
    }
}
