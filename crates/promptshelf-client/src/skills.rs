//! Skills of a server (extension `io.modelcontextprotocol/skills`, SEP-2640): folders with a `SKILL.md`, whose files
//! are resources.

use std::collections::HashSet;

use futures_core::Stream;
use rmcp::model as wire;

use crate::{
    client::Client, error::ClientError, model::ReadResult, pagination::pages, read_request::read_uncached,
    sdk_error::complete,
};

/// The most files of a skill, and the most bytes of all its files (limits of the extension).
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 16 << 20;
/// The longest path of a file below the folder of its skill, in bytes.
const MAX_PATH_BYTES: usize = 1024;

/// A skill in a server's list.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SkillInfo {
    /// Its name, which is also the name of its folder.
    pub name: String,
    /// The URI of its `SKILL.md`.
    pub uri: String,
    /// All its files, `SKILL.md` included; empty if `problem` is set.
    pub files: Vec<SkillFile>,
    /// The rule of the extension that the entry breaks: such a skill must not be used.
    pub problem: Option<String>,
}

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillFile {
    /// The path below the skill's folder, with `/`. No part of it is empty, `.` or `..`.
    pub path: String,
    /// The URI to [`read`](Client::read).
    pub uri: String,
    /// The SHA-256 digest of the bytes, as `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// The number of bytes.
    pub size: u64,
}

impl Client {
    /// Returns whether the server declares the extension for skills.
    #[must_use]
    pub fn has_skills(&self) -> bool {
        self.has_capability(wire::ServerCapabilities::supports_skills)
    }

    /// Lists the server's skills, like [`prompts`](Client::prompts). An entry that breaks a rule of the extension is
    /// listed with its [`problem`](SkillInfo::problem).
    pub fn skills(&self) -> impl Stream<Item = Result<SkillInfo, ClientError>> + Send + '_ {
        pages(
            self.max_list_entries(),
            move |cursor| async move {
                let request = || async {
                    complete(self.peer().list_skills(cursor.clone()).await?, |page| page.result_type.as_ref())
                };
                let page = self.request(request).await?;
                Ok((page.skills, page.next_cursor))
            },
            |skill| Ok(SkillInfo::from_wire(skill)),
        )
    }

    /// Returns all skills, in the server's order; empty for a server without the extension.
    ///
    /// # Errors
    ///
    /// The first error of [`skills`](Client::skills).
    pub async fn all_skills(&self) -> Result<Vec<SkillInfo>, ClientError> {
        use futures_util::TryStreamExt;

        if self.has_skills() { self.skills().try_collect().await } else { Ok(Vec::new()) }
    }

    /// Reads a file of a skill. Unlike [`read`](Client::read), this never returns a cached content, which could be older
    /// than the digest in the list. The digest is not checked.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Client::read).
    pub async fn read_skill_file(&self, file: &SkillFile) -> Result<ReadResult, ClientError> {
        let params = wire::ReadResourceRequestParams::new(&*file.uri);
        self.request(|| read_uncached(self.peer(), params.clone())).await
    }
}

impl SkillInfo {
    fn from_wire(skill: wire::Skill) -> SkillInfo {
        let (files, problem) = match files(&skill) {
            Ok(files) => (files, None),
            Err(problem) => (Vec::new(), Some(problem)),
        };
        SkillInfo { name: skill.frontmatter.name, uri: skill.uri, files, problem }
    }
}

fn files(skill: &wire::Skill) -> Result<Vec<SkillFile>, String> {
    skill.validate().map_err(|error| error.to_string())?;
    let wire::SkillResources::Files(resources) = &skill.resources else {
        return Err("its files are dynamic: the server sends no list with digests".to_owned());
    };
    if resources.len() > MAX_FILES {
        return Err(format!("it has {} files; the limit of the extension is {MAX_FILES}", resources.len()));
    }
    let bytes = resources.iter().fold(0u64, |sum, file| sum.saturating_add(file.size));
    if bytes > MAX_BYTES {
        return Err(format!("its files have {bytes} bytes; the limit of the extension is {MAX_BYTES}"));
    }
    let root = skill.uri.strip_suffix(wire::SKILL_MD).unwrap_or_default();
    let mut lower = HashSet::new();
    resources
        .iter()
        .map(|file| {
            let path = file.uri.strip_prefix(root).and_then(decoded);
            let path = path.ok_or_else(|| format!("`{}` is not the URI of a file in its folder", file.uri))?;
            if !lower.insert(path.to_lowercase()) {
                return Err(format!("two of its files have the path `{path}`, in any letter case"));
            }
            Ok(SkillFile { path, uri: file.uri.clone(), digest: file.digest.clone(), size: file.size })
        })
        .collect()
}

/// Decodes the path of a URI. `None` if it is not the path of a file below a folder.
fn decoded(path: &str) -> Option<String> {
    let path = percent_encoding::percent_decode_str(path).decode_utf8().ok()?;
    let is_plain = path.len() <= MAX_PATH_BYTES
        && !path.contains(['\\', '\0', '?', '#'])
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    is_plain.then(|| path.into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn skill(files: Value) -> SkillInfo {
        let entry = json!({
            "uri": "skill://team/refunds/SKILL.md",
            "frontmatter": { "name": "refunds", "description": "Handles a refund" },
            "resources": files,
        });
        SkillInfo::from_wire(serde_json::from_value(entry).expect("an entry"))
    }

    fn file(path: &str, size: u64) -> Value {
        json!({
            "uri": format!("skill://team/refunds/{path}"),
            "digest": format!("sha256:{}", "a".repeat(64)),
            "size": size,
        })
    }

    #[test]
    fn files_have_paths_below_the_skill() {
        let skill = skill(json!([file("SKILL.md", 1), file("a%20b/c.txt", 2)]));
        assert_eq!(skill.problem, None);
        let paths: Vec<&str> = skill.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!((skill.name.as_str(), paths), ("refunds", vec!["SKILL.md", "a b/c.txt"]));
    }

    // req: S-215
    #[test]
    fn hostile_entries_have_a_problem() {
        let manifest = || file("SKILL.md", 1);
        let many: Vec<Value> = (0..600).map(|index| file(&format!("{index}.md"), 1)).chain([manifest()]).collect();
        for (files, words) in [
            (json!([manifest(), file("../../etc/passwd", 1)]), "directory"),
            (json!([manifest(), file("a/%2e%2e/%2e%2e/b", 1)]), "file"),
            (json!([manifest(), file("a%2f..%2fb", 1)]), "file"),
            (json!([manifest(), file("a%5cb", 1)]), "file"),
            (json!([manifest(), file("a/", 1)]), "file"),
            (json!([manifest(), file("%ff", 1)]), "file"),
            (json!([manifest(), file("A.md", 1), file("a.md", 1)]), "letter case"),
            (json!([file("a.md", 1)]), "SKILL.md"),
            (json!("dynamic"), "dynamic"),
            (json!(many), "601 files"),
            (json!([manifest(), file("big", 20 << 20)]), "bytes"),
            (json!([manifest(), file("a", u64::MAX), file("b", u64::MAX)]), "bytes"),
        ] {
            let skill = skill(files.clone());
            let problem = skill.problem.unwrap_or_else(|| panic!("{files}"));
            assert!(problem.contains(words) && skill.files.is_empty(), "{problem}");
        }
    }
}
