//! Imports Microsoft's prompty files: `*.prompty`.
//!
//! Source: the prompty specification. YAML front matter with `inputs` (a list with `name` and `kind`, or in version 1
//! a mapping with `type`), `sample` with a value for each, `template` with `format` (`jinja2` or `mustache`), and a
//! body in which a line such as `system:` starts a message of that role.

use std::ops::Range;

use promptshelf_core::{ArgumentDefinition, ArgumentType, Choice, Code, Role};

use super::{Foreign, entries, get, handlebars, lose_others, slug, stem, template, text_of, typed};
use promptshelf_source::syntax::{Node, Notes, Value, argument_name, parse_markdown};

pub(super) fn read(notes: &mut Notes<'_>) -> Vec<Foreign> {
    let (keys, body) = parse_markdown(notes);
    if notes.has_errors() {
        return Vec::new();
    }
    let mut prompt = Foreign { path: slug(stem(&notes.source.path, ".prompty")), ..Foreign::default() };
    let mut is_mustache = false;
    if let Some(keys) = &keys {
        let known =
            ["name", "displayName", "description", "version", "tags", "inputs", "sample", "template", "metadata"];
        lose_others(keys, &known, notes);
        let name = text_of(keys, "name");
        prompt.path = name.as_deref().map_or_else(|| prompt.path.clone(), slug);
        prompt.title = text_of(keys, "displayName").or(name.filter(|name| *name != prompt.path));
        prompt.description = text_of(keys, "description");
        prompt.version = text_of(keys, "version");
        let tags =
            get(keys, "tags").or_else(|| get(get(keys, "metadata")?, "tags")).map(Node::items).unwrap_or_default();
        prompt.tags = tags.iter().filter_map(|tag| tag.text().map(str::to_owned)).collect();
        if let Some(metadata) = get(keys, "metadata") {
            lose_others(metadata, &["tags"], notes);
        }
        let format = get(keys, "template").and_then(|node| match node.text() {
            Some(text) => Some(text.to_owned()),
            None => text_of(node, "format").or_else(|| get(node, "format").and_then(|format| text_of(format, "kind"))),
        });
        is_mustache = format.is_some_and(|format| format.contains("mustache"));
        prompt.arguments = inputs(get(keys, "inputs"), get(keys, "sample"), notes);
    }
    prompt.template = conversation(body, is_mustache.then_some(&*prompt.arguments), notes);
    vec![prompt]
}

fn inputs(inputs: Option<&Node>, sample: Option<&Node>, notes: &mut Notes<'_>) -> Vec<ArgumentDefinition> {
    let mut arguments = Vec::new();
    let mut typed_inputs = Vec::new();
    match inputs.map(|node| &node.value) {
        Some(Value::List(list)) => {
            for node in list {
                match text_of(node, "name") {
                    Some(name) => {
                        arguments.extend(argument(&name, node, notes));
                        typed_inputs.extend(written_kind(node).map(|_| name));
                    }
                    None => {
                        notes.warning(Code::MissingKey, &node.span, "an input without a name is omitted");
                    }
                }
            }
        }
        Some(Value::Mapping(each)) => {
            for entry in each {
                arguments.extend(argument(&entry.key, &entry.node, notes));
                typed_inputs.extend(written_kind(&entry.node).map(|_| entry.key.clone()));
            }
        }
        _ => {}
    }
    for entry in sample.map(entries).unwrap_or_default() {
        let (kind, value) = typed(&entry.node);
        let Some(name) = argument_name(&entry.key) else { continue };
        match arguments.iter_mut().find(|argument| argument.name == name) {
            Some(argument) => {
                // Without a type, a value has that of its sample: conditions depend on it.
                if argument.kind == ArgumentType::String && !typed_inputs.contains(&argument.name) {
                    argument.kind = kind;
                }
                argument.examples.push(value);
            }
            // An input can be declared by its sample alone.
            None => arguments.push(ArgumentDefinition {
                kind,
                examples: vec![value],
                ..ArgumentDefinition::new(name).required()
            }),
        }
    }
    arguments
}

fn written_kind(node: &Node) -> Option<String> {
    text_of(node, "kind").or_else(|| text_of(node, "type"))
}

fn argument(name: &str, node: &Node, notes: &mut Notes<'_>) -> Option<ArgumentDefinition> {
    let Some(ours) = argument_name(name).filter(|ours| ours == name) else {
        notes.warning(
            Code::NotSupported,
            &node.span,
            format!("`{name}` is not a valid name of an argument and is omitted"),
        );
        return None;
    };
    let value = if node.text().is_some() { Some(node) } else { get(node, "default").or_else(|| get(node, "example")) };
    let kind = match written_kind(node).as_deref() {
        Some("integer") => ArgumentType::Integer,
        Some("number" | "float") => ArgumentType::Number,
        Some("boolean") => ArgumentType::Boolean,
        Some("array" | "object") => ArgumentType::Json,
        Some(media @ ("image" | "audio" | "file" | "thread")) => {
            notes.warning(Code::NotSupported, &node.span, format!("`{name}` had the kind `{media}` and becomes text"));
            ArgumentType::String
        }
        None => value.map_or(ArgumentType::String, |value| typed(value).0),
        Some(_) => ArgumentType::String,
    };
    // Version 1 also allows the plain value.
    let default = node.text().map(str::to_owned).or_else(|| text_of(node, "default"));
    let flag = text_of(node, "required").map(|flag| flag == "true");
    let choices = get(node, "enumValues").or_else(|| get(node, "enum")).map(Node::items).unwrap_or_default();
    let choice = |node: &Node| node.text().map(|value| Choice { value: value.to_owned(), title: None });
    Some(ArgumentDefinition {
        description: text_of(node, "description"),
        required: flag.unwrap_or(default.is_none()) && default.is_none(),
        kind,
        choices: choices.iter().filter_map(choice).collect(),
        examples: text_of(node, "example").into_iter().chain(text_of(node, "sample")).collect(),
        default,
        ..ArgumentDefinition::new(ours)
    })
}

/// Translates the body: role lines become calls of `role`. The arguments are those of a Mustache template.
fn conversation(body: Range<usize>, mustache: Option<&[ArgumentDefinition]>, notes: &mut Notes<'_>) -> String {
    let text = notes.source.text[body.clone()].to_owned();
    let mut out = String::new();
    let (mut start, mut at) = (body.start, body.start);
    let put = |range: Range<usize>, out: &mut String, notes: &mut Notes<'_>| match mustache {
        Some(arguments) => out.push_str(&handlebars::translate(range, arguments, notes)),
        None => out.push_str(&notes.source.text[range]),
    };
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if let Some(word) = speaker(line) {
            put(start..at, &mut out, notes);
            let role = match &*word {
                "assistant" => Role::Assistant,
                "user" => Role::User,
                other => {
                    super::lose_role(other, &(at..at + line.trim_end().len()), notes);
                    Role::User
                }
            };
            if !out.trim().is_empty() || role == Role::Assistant {
                out.push_str(&template::role(role));
            }
            start = end;
        }
        at = end;
    }
    put(start..body.end, &mut out, notes);
    out
}

/// Returns the role of a line such as `system:`, in any letter case and with optional properties in brackets.
fn speaker(line: &str) -> Option<String> {
    let word = line.trim().strip_suffix(':')?;
    let word = word.split('[').next().unwrap_or(word).trim_start_matches('#').trim().to_ascii_lowercase();
    ["system", "user", "assistant", "developer", "tool", "function"].contains(&&*word).then_some(word)
}
