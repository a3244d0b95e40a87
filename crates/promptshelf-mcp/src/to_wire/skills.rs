//! Encoding of skills (extension `io.modelcontextprotocol/skills`).

use std::sync::Arc;

use promptshelf_core::{Meta, Skill, SkillChild, SkillFile};
use promptshelf_service::{Answer, FolderPage, SkillPage};
use serde::Serialize;

use super::Modern;
use crate::{json::write, revision::Revision};

const DIRECTORY: &str = "inode/directory";

#[derive(Serialize)]
struct WireSkill<'a> {
    uri: &'a str,
    frontmatter: &'a Meta,
    resources: Vec<WireSkillFile<'a>>,
}

#[derive(Serialize)]
struct WireSkillFile<'a> {
    uri: &'a str,
    digest: &'a str,
    size: u64,
}

impl<'a> WireSkill<'a> {
    fn new(skill: &'a Skill) -> WireSkill<'a> {
        let file = |file: &'a SkillFile| WireSkillFile { uri: file.uri(), digest: file.digest(), size: file.size() };
        WireSkill { uri: skill.uri(), frontmatter: skill.frontmatter(), resources: skill.files().map(file).collect() }
    }
}

/// Writes the result of `skills/list`.
pub(crate) fn list(page: &Answer<SkillPage>, revision: Revision, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Result<'a> {
        skills: Vec<WireSkill<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        next_cursor: Option<&'a str>,
        #[serde(flatten)]
        modern: Modern<'a>,
    }
    let SkillPage { skills, next_cursor } = page.value();
    let skills = skills.iter().map(|skill| WireSkill::new(skill)).collect();
    let modern = Modern::cacheable(page.view(), revision);
    write(out, &Result { skills, next_cursor: next_cursor.as_deref(), modern });
}

/// Writes the result of `skills/get`.
pub(crate) fn one(answer: &Answer<Arc<Skill>>, revision: Revision, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Result<'a> {
        skill: WireSkill<'a>,
        #[serde(flatten)]
        modern: Modern<'a>,
    }
    let modern = Modern::cacheable(answer.view(), revision);
    write(out, &Result { skill: WireSkill::new(answer.value()), modern });
}

/// Writes the result of `resources/directory/read`.
pub(crate) fn folder(page: &Answer<FolderPage>, revision: Revision, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Child<'a> {
        uri: &'a str,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        mime_type: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Result<'a> {
        resources: Vec<Child<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        next_cursor: Option<&'a str>,
        #[serde(flatten)]
        modern: Modern<'a>,
    }
    let FolderPage { skill, uri, children, next_cursor, .. } = page.value();
    // The folder is one of the answer's own catalog.
    let found = page.view().catalog().skills().folder(uri).map(|(_, children)| children).unwrap_or_default();
    let shown = found.iter().filter(|child| children.binary_search_by(|uri| uri.as_str().cmp(child.uri())).is_ok());
    let child = |child: &'_ SkillChild<'_>| -> (String, String, bool, String, Option<u64>) {
        match child {
            SkillChild::File(file) if file.uri() == skill.uri() => (
                file.uri().to_owned(),
                skill.name().to_owned(),
                true,
                file.file().mime_type.as_str().to_owned(),
                Some(file.size()),
            ),
            SkillChild::File(file) => (
                file.uri().to_owned(),
                file.name().to_owned(),
                false,
                file.file().mime_type.as_str().to_owned(),
                Some(file.size()),
            ),
            SkillChild::Folder { uri, name } => (uri.clone(), (*name).to_owned(), false, DIRECTORY.to_owned(), None),
        }
    };
    let rows: Vec<_> = shown.map(child).collect();
    let resources = rows.iter().map(|(uri, name, is_manifest, mime_type, size)| Child {
        uri,
        name,
        description: skill.description().filter(|_| *is_manifest),
        mime_type,
        size: *size,
    });
    let modern = Modern::complete(page.view(), revision);
    write(out, &Result { resources: resources.collect(), next_cursor: next_cursor.as_deref(), modern });
}
