//! Prompts of GitHub Models: `*.prompt.yml` and `*.prompt.yaml`.
//!
//! Facts: GitHub's documentation, *Storing prompts in GitHub repositories*: `messages` with `role` and `content`,
//! placeholders `{{name}}`, `testData` with a value for each, and the expected answer of the model under `expected`.
//!
//! Each row of `testData` becomes a test: the prompt accepts the values, and its messages contain them. `model`,
//! `modelParameters` and `evaluators` configure the program that calls the model. A system message becomes a user
//! message here, because MCP has no system role.

use std::{ops::Range, sync::Arc};

use promptshelf_core::{ArgumentDefinition, Code, Role, Severity, SourceText, TestDefinition, nearest};

use super::{
    body_builder::{Pieces, SpanFinder, input_name},
    draft::{Draft, Parsed},
    file_format::{ForeignSyntax, Format},
    foreign_folders,
    table::Table,
    tree::{Node, Notes, Value},
    yaml,
};

const ENDINGS: &[&str] = &[".prompt.yml", ".prompt.yaml"];

const KEYS: &[&str] = &[
    "name",
    "description",
    "model",
    "modelParameters",
    "messages",
    "testData",
    "evaluators",
    "responseFormat",
    "jsonSchema",
];

const SYNTAX: ForeignSyntax = ForeignSyntax { keys: KEYS, placeholders: &[("{{name}}", "A required value.")] };

pub(super) const FORMAT: Format = Format {
    matches: |path| ENDINGS.iter().any(|ending| path.ends_with(ending) && path.len() > ending.len()),
    name: |path| {
        let path = &*foreign_folders::with_small_ending(path);
        let ending = ENDINGS.iter().find(|ending| path.ends_with(*ending)).copied().unwrap_or_default();
        foreign_folders::name_from_path(path, ending)
    },
    read,
    syntax: SYNTAX,
};

fn read(source: &Arc<SourceText>, name: &str) -> Parsed {
    let mut notes = Notes::new(source);
    let start = if source.text.starts_with('\u{feff}') { 3 } else { 0 };
    let tree = yaml::parse(start..source.text.len(), &mut notes);
    let mut draft = Draft::without_template(name, &mut notes);
    let mut pieces = Pieces::default();
    let table = tree.as_ref().and_then(|node| Table::of(node, "", "the file", &mut notes));
    if let Some(table) = &table {
        table.refuse_others(KEYS, Severity::Warning, "in a prompt of GitHub Models", &mut notes);
        draft.edit().title = table.text("name", &mut notes);
        draft.edit().description = table.text("description", &mut notes).map(|text| text.trim_end().into());
        match table.node("messages", &mut notes) {
            Some(messages) => messages_of(messages, &mut pieces, &mut notes),
            None => {
                notes.error(Code::MissingKey, &(0..0), "missing key `messages`");
            }
        }
    } else if !notes.has_errors() {
        notes.error(Code::MissingKey, &(0..0), "missing key `messages`");
    }
    let (pieces, arguments) = pieces.into_parts();
    draft.edit().arguments = arguments;
    if let Some(table) = &table {
        let tests = tests(table, &draft.definition.arguments, &mut notes);
        draft.edit().tests = tests;
    }
    let draft = draft.with_body(pieces, &mut notes);
    Parsed::of(draft, notes)
}

fn messages_of(messages: &Node, pieces: &mut Pieces, notes: &mut Notes<'_>) {
    for (index, message) in messages.items().iter().enumerate() {
        let prefix = format!("messages.{index}.");
        let Some(table) = Table::of(message, &prefix, "a message", notes) else { continue };
        table.refuse_others(&["role", "content"], Severity::Warning, "in a message", notes);
        let role = table.required_text("role", "a message", notes);
        let content = table.required_text("content", "a message", notes);
        let span = |key: &str, notes: &Notes<'_>| notes.spans.get(&table.path(key)).cloned().unwrap_or_default();
        match role.as_deref() {
            Some("assistant") => pieces.role(Role::Assistant),
            Some("user" | "system" | "developer") => pieces.role(Role::User),
            Some(other) => {
                let at = span("role", notes);
                notes.error(Code::InvalidValue, &at, format!("unknown role `{other}`")).help =
                    Some("known roles are `system`, `user` and `assistant`".to_owned());
            }
            None => {}
        }
        if let Some(content) = content {
            let at = span("content", notes);
            placeholders(&content, at, pieces, notes);
        }
    }
}

/// Adds a text with placeholders `{{name}}`. Each of them becomes a required argument.
pub(crate) fn placeholders(text: &str, span: Range<usize>, pieces: &mut Pieces, notes: &mut Notes<'_>) {
    let source = Arc::clone(notes.source);
    let mut spans = SpanFinder::new(&source.text, span);
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let Some(close) = rest[start..].find("}}").map(|length| start + length) else { break };
        let written = &rest[start..close + 2];
        let inner = rest[start + 2..close].trim();
        let is_word = inner.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        match input_name(inner).filter(|_| is_word) {
            Some(name) => {
                pieces.text(&rest[..start]);
                pieces.argument(&name, promptshelf_core::ArgumentDefinition::required);
                rest = &rest[close + 2..];
            }
            None => {
                let at = spans.next(written);
                let message = format!("invalid placeholder `{written}`; this is plain text");
                notes.warning(Code::NotSupported, &at, message);
                pieces.text(&rest[..start + 2]);
                rest = &rest[start + 2..];
            }
        }
    }
    pieces.text(rest);
}

/// Turns every row of `testData` into a test.
fn tests(table: &Table<'_, '_>, arguments: &[ArgumentDefinition], notes: &mut Notes<'_>) -> Vec<TestDefinition> {
    let Some(rows) = table.node("testData", notes) else { return Vec::new() };
    // Evaluators may use columns that no message contains.
    let judges = table.node("evaluators", notes).map(|node| node.to_json().to_string()).unwrap_or_default();
    let is_judged = |key: &str| key == "expected" || judges.contains(&format!("{{{{{key}}}}}"));
    let mut tests = Vec::new();
    for row in rows.items() {
        let Value::Mapping(entries) = &row.value else {
            let message = format!("a row of `testData`: expected a mapping, found {}", row.kind());
            notes.warning(Code::WrongType, &row.span, message);
            continue;
        };
        let mut test = TestDefinition::default();
        for entry in entries {
            let value = entry.node.text().map_or_else(|| entry.node.to_json().to_string(), str::to_owned);
            let name = input_name(&entry.key).filter(|name| arguments.iter().any(|it| it.name == *name));
            if let Some(name) = name {
                test.contains.extend(Some(value.trim()).filter(|value| !value.is_empty()).map(str::to_owned));
                test.arguments.insert(name, value);
            } else if !is_judged(&entry.key) {
                let message = format!("no message uses `{{{{{}}}}}`", entry.key);
                let near = nearest(&entry.key, arguments.iter().map(|argument| argument.name.as_str()));
                notes.warning(Code::NoEffect, &entry.key_span, message).help =
                    near.map(|near| format!("did you mean `{near}`?"));
            }
        }
        notes.spans.insert(format!("tests.{}", tests.len()), row.span.clone());
        tests.push(test);
    }
    tests
}
