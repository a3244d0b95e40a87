//! VS Code's prompt files: `*.prompt.md`, in `.github/prompts` and elsewhere.
//!
//! Facts: VS Code's documentation, *Use prompt files*: `${input:name}` and `${input:name:placeholder}` ask the user.
//! The editor fills in `${selection}`, `${file}` and similar variables; they are arguments here, because only the
//! client can provide them. A file whose `arguments:` are a list of names, or of mappings with a `name`, has the native
//! format.

use std::{collections::HashSet, sync::Arc};

use promptshelf_core::{ArgumentDefinition, Severity, SourceText, is_variable_name};

use super::{
    body_builder::{Pieces, input_name},
    draft::{Draft, Parsed},
    file_format::{ForeignSyntax, Format},
    foreign_folders::{NameOrTitle, name_from_path},
    markdown,
    table::Table,
    tree::{Node, Notes, Value},
};

const SUFFIX: &str = ".prompt.md";

const KEYS: &[&str] = &[
    "name",
    "description",
    "argument-hint",
    "agent",
    "mode",
    "model",
    "tools",
    "title",
    "handoffs",
    "target",
    "mcp-servers",
    "version",
    "author",
    "tags",
    "category",
];

const VARIABLES: &[(&str, &str)] = &[
    ("selection", "The selected text"),
    ("selectedText", "The selected text"),
    ("file", "The path of the open file"),
    ("fileBasename", "The name of the open file"),
    ("fileDirname", "The folder of the open file"),
    ("fileBasenameNoExtension", "The name of the open file, without its extension"),
    ("workspaceFolder", "The path of the project"),
    ("workspaceFolderBasename", "The name of the project's folder"),
];

const SYNTAX: ForeignSyntax = ForeignSyntax {
    keys: KEYS,
    placeholders: &[
        ("${input:name:hint}", "A value that the user enters."),
        ("${selection}", "The selected text."),
        ("${file}", "The path of the open file."),
    ],
};

pub(super) const FORMAT: Format = Format {
    matches: |path| path.ends_with(SUFFIX) && path.len() > SUFFIX.len(),
    name: |path| name_from_path(path, SUFFIX),
    read,
    syntax: SYNTAX,
};

fn read(source: &Arc<SourceText>, name: &str) -> Parsed {
    let mut notes = Notes::new(source);
    let (keys, body) = markdown::lenient_parts(&[], &mut notes);
    let has = |node: &Node, key: &str, fits: &dyn Fn(&Node) -> bool| match &node.value {
        Value::Mapping(entries) => entries.iter().any(|entry| entry.key == key && fits(&entry.node)),
        _ => false,
    };
    let are_ours = |node: &Node| {
        let items = node.items();
        let names: HashSet<&str> = items.iter().filter_map(Node::text).filter(|name| is_variable_name(name)).collect();
        let mappings = items.iter().filter(|item| has(item, "name", &|_| true)).count();
        !items.is_empty() && names.len() + mappings == items.len()
    };
    let is_ours = keys.as_ref().is_some_and(|node| has(node, "arguments", &are_ours));
    if is_ours {
        return markdown::read(source, name);
    }
    let mut draft = Draft::without_template(name, &mut notes);
    if let Some(table) = keys.as_ref().and_then(|node| Table::of(node, "", "the front matter", &mut notes)) {
        table.refuse_others(KEYS, Severity::Warning, "in a prompt file of VS Code", &mut notes);
        let definition = draft.edit();
        definition.title = table.written("title", &mut notes);
        definition.description = table.written("description", &mut notes).map(|text| text.trim_end().into());
        match table.written("name", &mut notes).map(NameOrTitle::of) {
            Some(NameOrTitle::Name(name)) => definition.name = name,
            Some(NameOrTitle::Title(title)) => definition.title = definition.title.take().or(Some(title)),
            None => {}
        }
    }
    let mut pieces = Pieces::default();
    scan(&source.text[body], &mut pieces);
    let (pieces, arguments) = pieces.into_parts();
    draft.edit().arguments = arguments;
    let draft = draft.with_body(pieces, &mut notes);
    Parsed::of(draft, notes)
}

fn scan(text: &str, pieces: &mut Pieces) {
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let close = rest[start..].find('}').map(|length| start + length);
        let argument = close.and_then(|close| Some((argument(&rest[start + 2..close])?, close + 1)));
        match argument {
            Some((argument, end)) => {
                pieces.text(&rest[..start]);
                pieces.argument(&argument.name, |_| argument.clone());
                rest = &rest[end..];
            }
            None => {
                pieces.text(&rest[..start + 2]);
                rest = &rest[start + 2..];
            }
        }
    }
    pieces.text(rest);
}

fn argument(variable: &str) -> Option<ArgumentDefinition> {
    if let Some(input) = variable.strip_prefix("input:") {
        let (name, hint) = input.split_once(':').unwrap_or((input, ""));
        let argument = ArgumentDefinition::new(input_name(name)?).required();
        return Some(if hint.trim().is_empty() { argument } else { argument.description(hint.trim()) });
    }
    let (name, description) = VARIABLES.iter().find(|(name, _)| *name == variable)?;
    Some(ArgumentDefinition::new(*name).description(*description))
}
