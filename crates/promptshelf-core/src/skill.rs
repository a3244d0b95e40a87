//! Skills: folders of files for agents (Agent Skills specification, agentskills.io), and their URIs (MCP extension
//! `io.modelcontextprotocol/skills`).
//!
//! Elsewhere: which prompts and folders are skills (`check::skills`).

use std::{collections::BTreeMap, sync::Arc};

use sha2::{Digest as _, Sha256};

use crate::{
    content::{Meta, ResourceBody},
    definition::{AccessSet, LibraryFile, encoded_path},
};

/// The file that makes a folder a skill.
pub(crate) const MANIFEST: &str = "SKILL.md";

const SCHEME: &str = "skill://";

/// A skill: a `SKILL.md` and its supporting files.
#[derive(Debug)]
pub struct Skill {
    pub(crate) name: String,
    pub(crate) uri: String,
    pub(crate) frontmatter: Arc<Meta>,
    /// All files, by their path below the skill's folder.
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
                    let uri = uri_of(&self.name, &path[..prefix.len() + name.len()]);
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

/// The skills of a catalog, by name.
#[derive(Debug, Default, PartialEq)]
pub struct Skills(pub(crate) BTreeMap<String, Arc<Skill>>);

impl Skills {
    /// Returns whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the skills after a name, or over all of them, sorted by name.
    pub fn after<'s>(&'s self, name: Option<&'s str>) -> impl Iterator<Item = &'s Arc<Skill>> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.0.range::<str, _>((name.map_or(Unbounded, Excluded), Unbounded)).map(|(_, skill)| skill)
    }

    /// Returns the skill with this URI of its `SKILL.md`.
    #[must_use]
    pub fn find(&self, uri: &str) -> Option<&Arc<Skill>> {
        self.containing(uri).filter(|skill| skill.uri == uri)
    }

    /// Returns the skill that a URI lies in, whether or not anything exists at the URI.
    #[must_use]
    pub fn containing(&self, uri: &str) -> Option<&Arc<Skill>> {
        self.0.get(split(uri)?.0)
    }

    /// Returns the file with this URI. Each file has one URI: other spellings of it are unknown.
    #[must_use]
    pub fn file(&self, uri: &str) -> Option<&SkillFile> {
        let (name, path) = split(uri)?;
        self.0.get(name)?.files.get(&*decoded(path)?).filter(|file| file.uri == uri)
    }

    /// Returns the skill and the children of the folder with this URI.
    #[must_use]
    pub fn folder(&self, uri: &str) -> Option<(&Arc<Skill>, Vec<SkillChild<'_>>)> {
        let (name, path) = split(uri)?;
        let skill = self.0.get(name)?;
        let path = decoded(path)?;
        if uri_of(name, &path) != uri {
            return None;
        }
        let children = skill.children(&path);
        (!children.is_empty()).then_some((skill, children))
    }
}

/// Splits a URI into the name of the skill and the encoded path below it.
fn split(uri: &str) -> Option<(&str, &str)> {
    let path = uri.strip_prefix(SCHEME)?;
    Some(path.split_once('/').unwrap_or((path, "")))
}

fn decoded(path: &str) -> Option<std::borrow::Cow<'_, str>> {
    percent_encoding::percent_decode_str(path).decode_utf8().ok()
}
