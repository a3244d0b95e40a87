//! Agent Skills: a file `SKILL.md` in a folder of its own.
//!
//! Facts: the Agent Skills specification (agentskills.io): `name` and `description` are required, and the text below
//! contains instructions without arguments. In its own skills (`.claude/skills`), Claude Code replaces the
//! placeholders of its commands too.

use std::sync::Arc;

use promptshelf_core::{Severity, SkillSource, SourceText};

use super::{
    body_builder::Pieces,
    client_rules::CLAUDE_CODE,
    command,
    draft::{Draft, Parsed},
    file_format::{ForeignSyntax, Format},
    foreign_folders::{self, NameOrTitle},
    markdown,
    table::Table,
    tree::{Node, Notes},
};

pub(crate) const FILE: &str = "SKILL.md";

pub(super) const FORMAT: Format = Format {
    matches: |path| {
        let is_file = path.rsplit_once('/').is_some_and(|(_, name)| name == FILE);
        is_file && (!path.starts_with('.') || foreign_folders::is_in_skills(path))
    },
    name: |path| path.rsplit('/').nth(1).unwrap_or_default().to_owned(),
    read,
    syntax: ForeignSyntax { placeholders: &[], ..command::SYNTAX },
};

pub(super) const CLAUDE_FORMAT: Format = Format {
    matches: |path| foreign_folders::below(path, ".claude/skills").is_some() && (FORMAT.matches)(path),
    read: |source, name| {
        let mut parsed = command::read(source, name, &CLAUDE_CODE);
        if let Some(draft) = &mut parsed.draft
            && is_with_files(source)
        {
            let (keys, _) = markdown::lenient_parts(&[], &mut Notes::new(source));
            draft.edit().skill = Some(folder(keys.as_ref()));
        }
        parsed
    },
    syntax: command::SYNTAX,
    ..FORMAT
};

/// Whether the other files of a skill are read, so that it can be served as one: those in hidden folders are not.
fn is_with_files(source: &SourceText) -> bool {
    !source.path.starts_with('.') && source.path.ends_with(FILE)
}

fn folder(keys: Option<&Node>) -> SkillSource {
    let all = keys.map(Node::to_json);
    SkillSource::Folder(Arc::new(all.and_then(|all| all.as_object().cloned()).unwrap_or_default()))
}

fn read(source: &Arc<SourceText>, name: &str) -> Parsed {
    let mut notes = Notes::new(source);
    let (keys, body) = markdown::lenient_parts(&[], &mut notes);
    let mut draft = Draft::without_template(name, &mut notes);
    if is_with_files(source) {
        draft.edit().skill = Some(folder(keys.as_ref()));
    }
    if let Some(table) = keys.as_ref().and_then(|node| Table::of(node, "", "the front matter", &mut notes)) {
        table.refuse_others(FORMAT.syntax.keys, Severity::Warning, "in a skill", &mut notes);
        draft.edit().title = table.written("title", &mut notes);
        match table.written("name", &mut notes).map(NameOrTitle::of) {
            Some(NameOrTitle::Name(name)) => draft.edit().name = name,
            Some(NameOrTitle::Title(title)) => {
                foreign_folders::warn_of_title("name", name, &mut notes);
                let definition = draft.edit();
                definition.title = definition.title.take().or(Some(title));
            }
            None => {}
        }
        draft.edit().description = table.written("description", &mut notes).map(|text| text.trim_end().into());
        draft.edit().version = table.written("version", &mut notes);
    }
    let mut pieces = Pieces::default();
    pieces.text(&source.text[body]);
    let draft = draft.with_body(pieces.into_parts().0, &mut notes);
    Parsed::of(draft, notes)
}
