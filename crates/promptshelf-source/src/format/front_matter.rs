//! The front matter of a native prompt file.

use std::{ops::Range, sync::Arc};

use promptshelf_core::{
    Body, BodyPiece, Code, LABELS, Label, MAX_LABEL_CHARS, Meta, Origin, PromptDefinition, PromptName, Severity,
    SkillSource, nearest,
};

use super::{
    access::access,
    arguments::arguments,
    deprecation::deprecation,
    draft::Draft,
    foreign_folders::warn_of_title,
    icons::icons,
    keys::{Holds, Key, Keys, key, keys},
    prompt_tests::tests,
    steps::steps,
    table::Table,
    tree::{Node, Notes, Value},
};

pub(crate) const KEYS: Keys = keys(&ALL);

const BEFORE_LABELS: &[Key] = &[
    key("name", Holds::Text, "The unique name; derived from the file's path by default."),
    key("aliases", Holds::Texts, "Former names, under which it is still served, marked as deprecated."),
    key("title", Holds::Text, "The display name."),
    key("description", Holds::Text, "The purpose of the prompt, for users who choose one."),
    key("icons", Holds::TextsOrTables(&super::icons::KEYS), "Icons."),
    key("version", Holds::Text, "The version of the prompt."),
    key("tags", Holds::Texts, "Words that group prompts."),
    key("category", Holds::Text, "One word that groups prompts, as in other prompt servers."),
];

const AFTER_LABELS: &[Key] = &[
    key("access", Holds::Table(&super::access::REQUIREMENTS), "The callers that may use it; all by default."),
    key("tool", Holds::Flag, "Whether models may find and use it through tools, if the server offers them."),
    key(
        "deprecated",
        Holds::TextOrTable(&super::deprecation::KEYS),
        "A message for people who still use it, a mapping of `message` and `replacement`, or `true`.",
    ),
    key("skill", Holds::Flag, "Whether it is also served as a skill, with its arguments described in words."),
    key("_meta", Holds::Object, "Additional members for clients that support them."),
    key("template", Holds::Flag, "`false` if the text has no template language: braces and `%` are part of it."),
    key("arguments", Holds::ListOfTextsOrTables(&super::arguments::KEYS), "The arguments, in the order of the form."),
    key("steps", Holds::Tables(&super::steps::KEYS), "The steps of a guided prompt."),
    key("tests", Holds::Tables(&super::prompt_tests::KEYS), "Tests for `promptshelf test`."),
];

const ALL: [Key; BEFORE_LABELS.len() + LABELS.len() + AFTER_LABELS.len()] = {
    let mut all = [key("", Holds::Flag, ""); BEFORE_LABELS.len() + LABELS.len() + AFTER_LABELS.len()];
    let after = BEFORE_LABELS.len() + LABELS.len();
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < BEFORE_LABELS.len() {
            BEFORE_LABELS[at]
        } else if at < after {
            let Label { key: name, about, is_list, .. } = LABELS[at - BEFORE_LABELS.len()];
            key(name, if is_list { Holds::Texts } else { Holds::Text }, about)
        } else {
            AFTER_LABELS[at - after]
        };
        at += 1;
    }
    all
};

/// Creates a definition of the valid parts; it must not be used if there are errors among the notes.
pub(super) fn draft(keys: Option<&Node>, body: Range<usize>, name: &str, notes: &mut Notes<'_>) -> Draft {
    let text = body.clone();
    let mut definition =
        PromptDefinition::from_source(name, Body::Template { range: body }, Origin::new(Arc::clone(notes.source)));
    let mut globs = Vec::new();
    let table = keys.and_then(|node| {
        let table = Table::of(node, "", "the front matter", notes);
        if table.is_none() {
            notes.help("write lines such as `description: Reviews a change`");
        }
        table
    });
    if let Some(table) = table {
        // An unknown key is only a warning: keys of a later release or of another program must not disable the
        // prompt.
        table.expect(&KEYS, Severity::Warning, "in a prompt file", notes);
        for entry in table.entries().iter().filter(|entry| KEYS.find(&entry.key).is_none()) {
            if nearest(&entry.key, KEYS.names()) == Some("access") {
                // A misspelled `access` must not leave the prompt open to everyone.
                let message =
                    format!("`{}` restricts nothing: the access rules of a prompt belong under `access`", entry.key);
                notes.error(Code::UnknownKey, &entry.key_span, message);
            }
        }
        let written = table.text("name", notes);
        definition.title = table.text("title", notes);
        match written {
            Some(written) if !written.trim().is_empty() && PromptName::new(&written).is_err() => {
                warn_of_title("name", name, notes);
                definition.title = definition.title.take().or(Some(written));
            }
            Some(written) => definition.name = written,
            None => {}
        }
        definition.aliases = table.texts("aliases", notes).into();
        for (at, alias) in definition.aliases.iter().enumerate() {
            if let (Err(error), Some(span)) =
                (PromptName::new(alias), notes.spans.get(&format!("aliases.{at}")).cloned())
            {
                notes.error(Code::InvalidName, &span, format!("`aliases`: {error}"));
            }
        }
        definition.description = table.text("description", notes).map(|text| text.trim_end().into());
        definition.version = table.text("version", notes);
        definition.tags = table.texts("tags", notes);
        // Other prompt servers group prompts by this single word.
        definition.tags.extend(table.text("category", notes));
        definition.labels = LABELS.iter().map(|label| (label, label_values(&table, label, notes))).collect();
        definition.access = access(&table, notes).map(Arc::new);
        definition.tool = table.flag("tool", notes).unwrap_or_default();
        definition.deprecated = deprecation(&table, notes).map(Box::new);
        definition.skill = table.flag("skill", notes).unwrap_or_default().then_some(SkillSource::Prompt);
        definition.icons = icons(&table, notes);
        definition.meta = meta(&table, notes);
        (definition.arguments, globs) = arguments(&table, "arguments", notes);
        definition.steps = steps(&table, notes);
        if table.flag("template", notes) == Some(false) {
            plain_text(&table, text, &mut definition, notes);
        }
        definition.tests = tests(&table, &definition.arguments, notes);
    }
    definition.origin.spans = std::mem::take(&mut notes.spans).into();
    Draft { definition: Arc::new(definition), globs }
}

fn label_values(table: &Table<'_, '_>, label: &'static Label, notes: &mut Notes<'_>) -> Vec<String> {
    let key = label.key;
    let values = if label.is_list { table.texts(key, notes) } else { table.text(key, notes).into_iter().collect() };
    let unfit = values.iter().map(|value| value.trim().chars().count());
    if let Some(length) = unfit.into_iter().find(|length| !(1..=MAX_LABEL_CHARS).contains(length))
        && let Some(span) = table.node(key, notes).map(|node| node.span.clone())
    {
        let message = format!("`{key}`: expected 1 to {MAX_LABEL_CHARS} characters, found {length}");
        notes.error(Code::InvalidValue, &span, message);
    }
    values
}

/// Makes the text of a file plain. It cannot use values, so the file declares no arguments.
fn plain_text(table: &Table<'_, '_>, text: Range<usize>, definition: &mut PromptDefinition, notes: &mut Notes<'_>) {
    if let Some(entry) = table.entries().iter().find(|it| it.key == "arguments" && !definition.arguments.is_empty()) {
        let message = "a text with `template: false` cannot use arguments";
        notes.error(Code::NoEffect, &entry.key_span, message).help =
            Some("remove the arguments, or remove `template: false`".to_owned());
    }
    let text = definition.origin.source.text[text].trim_start_matches(['\n', '\r']);
    definition.body = Body::Pieces(vec![BodyPiece::Text(text.to_owned())]);
}

fn meta(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> Meta {
    let Some(node) = table.node("_meta", notes) else { return Meta::new() };
    match (&node.value, node.to_json()) {
        (Value::Mapping(_), serde_json::Value::Object(members)) => members,
        _ => {
            let message = format!("`_meta`: expected a mapping, found {}", node.kind());
            notes.error(Code::WrongType, &node.span, message);
            Meta::new()
        }
    }
}
