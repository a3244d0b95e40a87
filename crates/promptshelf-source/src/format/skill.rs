//! Agent Skills: a file `SKILL.md` in a folder of its own.
//!
//! Facts: the Agent Skills specification (agentskills.io): `name` and `description` are required, and the text below
//! contains instructions without arguments. In its own skills (`.claude/skills`), Claude Code replaces the
//! placeholders of its commands too.

use std::sync::Arc;

use promptshelf_core::{Severity, SkillSource, SourceText};

use super::{
    body_builder::Pieces,
    command,
    draft::{Draft, Parsed},
    file_format::{ForeignSyntax, Format},
    foreign_folders, markdown,
    table::Table,
    tree::{Node, Notes},
};

/// The file that makes a folder a skill.
pub(crate) const FILE: &str = "SKILL.md";

const KEYS: &[&str] = &["name", "description", "license", "compatibility", "metadata", "allowed-tools", "version"];

pub(super) const FORMAT: Format = Format {
    matches: |path| path.rsplit_once('/').is_some_and(|(_, name)| name == FILE) && !is_in_another_home(path),
    name: |path| {
        let folder = path.rsplit('/').nth(1).unwrap_or_default();
        folder.to_owned()
    },
    read,
    syntax: ForeignSyntax { keys: KEYS, placeholders: &[] },
};

fn is_in_another_home(path: &str) -> bool {
    path.starts_with('.') && foreign_folders::below(path, ".claude/skills").is_none()
}

fn read(source: &Arc<SourceText>, name: &str) -> Parsed {
    if source.path.starts_with(".claude/") {
        // Not served as a skill: supporting files in hidden folders are not read.
        return command::read(source, name);
    }
    let mut notes = Notes::new(source);
    let (keys, body) = markdown::parts(&mut notes, |_| None);
    let mut draft = Draft::without_template(name, &mut notes);
    let all = keys.as_ref().map(Node::to_json);
    let frontmatter = all.and_then(|all| all.as_object().cloned()).unwrap_or_default();
    draft.edit().skill = Some(SkillSource::Folder(Arc::new(frontmatter)));
    if let Some(table) = keys.as_ref().and_then(|node| Table::of(node, "", "the front matter", &mut notes)) {
        table.refuse_others(KEYS, Severity::Warning, "in a skill", &mut notes);
        if let Some(name) = table.text("name", &mut notes) {
            draft.edit().name = name;
        }
        draft.edit().description = table.text("description", &mut notes).map(|text| text.trim_end().into());
        draft.edit().version = table.text("version", &mut notes);
    }
    let mut pieces = Pieces::default();
    pieces.text(&source.text[body]);
    let draft = draft.with_body(pieces.into_parts().0, &mut notes);
    Parsed::of(draft, notes)
}
