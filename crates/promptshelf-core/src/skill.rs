//! Skills: folders of files for agents (Agent Skills specification, agentskills.io), and their URIs (MCP extension
//! `io.modelcontextprotocol/skills`).
//!
//! Elsewhere: which prompts and folders are skills (`check::skills`).

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use sha2::{Digest as _, Sha256};

use crate::{
    content::{Meta, ResourceBody},
    definition::{AccessSet, LibraryFile, encoded_path},
};

pub(crate) const MANIFEST: &str = "SKILL.md";

const SCHEME: &str = "skill://";

/// A skill: a `SKILL.md` and its supporting files.
#[derive(Debug)]
pub struct Skill {
    pub(crate) name: String,
    /// The part of its URIs that all of its files share: the name, after the namespace of a library that has one.
    pub(crate) path: String,
    pub(crate) uri: String,
    pub(crate) frontmatter: Arc<Meta>,
    pub(crate) files: BTreeMap<String, SkillFile>,
    /// The requirements of the prompt and of all files together: a skill is served as a whole or not at all.
    pub(crate) access: AccessSet,
}

/// A file of a skill.
#[derive(Clone, Debug)]
pub struct SkillFile {
    uri: String,
    digest: String,
    file: Arc<LibraryFile>,
}

/// A direct child of a folder of a skill.
#[derive(Debug)]
pub enum SkillChild<'s> {
    /// A file.
    File(&'s SkillFile),
    /// A folder.
    Folder {
        /// Its URI, without a slash at the end.
        uri: String,
        /// The last part of its path.
        name: &'s str,
    },
}

impl SkillFile {
    /// Creates a file; the digest of the same content in `previous` is used again.
    pub(crate) fn new(skill: &str, path: &str, file: Arc<LibraryFile>, previous: Option<&SkillFile>) -> SkillFile {
        let same = previous.filter(|previous| is_same_body(&previous.file.body, &file.body));
        let digest = same.map_or_else(|| digest(&file.body), |previous| previous.digest.clone());
        SkillFile { uri: uri_of(skill, path), digest, file }
    }

    /// Returns the URI.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the SHA-256 digest of the bytes, as `sha256:` and 64 hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the content.
    #[must_use]
    pub fn file(&self) -> &Arc<LibraryFile> {
        &self.file
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.file.body.len() as u64
    }

    /// Returns the last part of the path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.file.path.rsplit('/').next().unwrap_or_default()
    }
}

fn is_same_body(one: &ResourceBody, other: &ResourceBody) -> bool {
    match (one, other) {
        (ResourceBody::Text(one), ResourceBody::Text(other)) => Arc::ptr_eq(one, other),
        (ResourceBody::Blob(one), ResourceBody::Blob(other)) => std::ptr::eq(one.bytes(), other.bytes()),
        _ => false,
    }
}

fn digest(body: &ResourceBody) -> String {
    let bytes = match body {
        ResourceBody::Text(text) => text.as_bytes(),
        ResourceBody::Blob(blob) => blob.bytes(),
    };
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Returns the URI of a file or folder of a skill; with an empty path that of its root.
pub(crate) fn uri_of(skill: &str, path: &str) -> String {
    let slash = if path.is_empty() { "" } else { "/" };
    format!("{SCHEME}{skill}{slash}{}", encoded_path(path))
}

impl Skill {
    /// Returns the name, which is also the last part of the skill's path.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path, which is unique in a catalog: `NAME`, or `SOURCE/NAME` in a server with several sources.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the URI of its `SKILL.md`.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the front matter of its `SKILL.md`.
    #[must_use]
    pub fn frontmatter(&self) -> &Meta {
        &self.frontmatter
    }

    /// Returns the description in the front matter.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.frontmatter.get("description").and_then(serde_json::Value::as_str)
    }

    /// Iterates over all files, `SKILL.md` included, by path.
    pub fn files(&self) -> impl Iterator<Item = &SkillFile> {
        self.files.values()
    }

    /// Returns the requirements for callers, which apply together.
    #[must_use]
    pub fn access(&self) -> &AccessSet {
        &self.access
    }

    /// Returns the URIs of one of its files: that of callers, and the one that the library itself uses, without its
    /// namespace.
    pub(crate) fn uris_of<'s>(&'s self, file: &'s SkillFile) -> impl Iterator<Item = Cow<'s, str>> {
        let below = file.uri.strip_prefix(SCHEME).and_then(|uri| uri.strip_prefix(&*self.path));
        let own = below.filter(|_| self.path != self.name).map(|below| format!("{SCHEME}{}{below}", self.name));
        [Cow::Borrowed(file.uri.as_str())].into_iter().chain(own.map(Cow::Owned))
    }

    /// Returns the children of a folder by its path below the skill's folder, sorted by URI; empty for
    /// an unknown folder.
    fn children(&self, folder: &str) -> Vec<SkillChild<'_>> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut children: Vec<SkillChild<'_>> = Vec::new();
        for (path, file) in self.files.range(prefix.clone()..) {
            let Some(rest) = path.strip_prefix(&prefix) else { break };
            match rest.split_once('/') {
                None => children.push(SkillChild::File(file)),
                Some((name, _)) => {
                    let uri = uri_of(&self.path, &path[..prefix.len() + name.len()]);
                    if !children.iter().any(|child| child.uri() == uri) {
                        children.push(SkillChild::Folder { uri, name });
                    }
                }
            }
        }
        children.sort_by(|one, other| one.uri().cmp(other.uri()));
        children
    }
}

impl SkillChild<'_> {
    /// Returns the URI.
    #[must_use]
    pub fn uri(&self) -> &str {
        match self {
            SkillChild::File(file) => file.uri(),
            SkillChild::Folder { uri, .. } => uri,
        }
    }
}

/// Two skills are equal if clients see the same entry.
impl PartialEq for Skill {
    fn eq(&self, other: &Skill) -> bool {
        let digests = |skill: &Skill| skill.files.values().map(|file| file.digest.clone()).collect::<Vec<_>>();
        self.uri == other.uri
            && self.frontmatter == other.frontmatter
            && self.files.keys().eq(other.files.keys())
            && digests(self) == digests(other)
    }
}

/// The skills of a catalog, by path.
#[derive(Debug, Default, PartialEq)]
pub struct Skills(pub(crate) BTreeMap<String, Arc<Skill>>);

impl Skills {
    /// Returns whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the skills after a path, or over all of them, sorted by path.
    pub fn after<'s>(&'s self, path: Option<&'s str>) -> impl Iterator<Item = &'s Arc<Skill>> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.0.range::<str, _>((path.map_or(Unbounded, Excluded), Unbounded)).map(|(_, skill)| skill)
    }

    /// Returns the skill with this URI of its `SKILL.md`.
    #[must_use]
    pub fn find(&self, uri: &str) -> Option<&Arc<Skill>> {
        self.containing(uri).filter(|skill| skill.uri == uri)
    }

    /// Returns the skill that a URI lies in, whether or not anything exists at the URI.
    #[must_use]
    pub fn containing(&self, uri: &str) -> Option<&Arc<Skill>> {
        self.split(uri).map(|(skill, _)| skill)
    }

    /// Returns the file with this URI. Each file has one URI: other spellings of it are unknown.
    #[must_use]
    pub fn file(&self, uri: &str) -> Option<&SkillFile> {
        let (skill, path) = self.split(uri)?;
        skill.files.get(&*decoded(path)?).filter(|file| file.uri == uri)
    }

    /// Returns the skill and the children of the folder with this URI.
    #[must_use]
    pub fn folder(&self, uri: &str) -> Option<(&Arc<Skill>, Vec<SkillChild<'_>>)> {
        let (skill, path) = self.split(uri)?;
        let path = decoded(path)?;
        if uri_of(&skill.path, &path) != uri {
            return None;
        }
        let children = skill.children(&path);
        (!children.is_empty()).then_some((skill, children))
    }

    /// Splits a URI into its skill and the encoded path below it. A path of a skill has one part, or two.
    fn split<'u>(&self, uri: &'u str) -> Option<(&Arc<Skill>, &'u str)> {
        let path = uri.strip_prefix(SCHEME)?;
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]).take(2);
        let found = ends.filter_map(|end| Some((self.0.get(&path[..end])?, path[end..].get(1..).unwrap_or_default())));
        found.last()
    }
}

fn decoded(path: &str) -> Option<Cow<'_, str>> {
    percent_encoding::percent_decode_str(path).decode_utf8().ok()
}
