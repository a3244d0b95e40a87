//! The keys of one argument, in prompt files and in the variables of a resource.

use std::ops::Range;

use promptshelf_core::{
    ArgumentDefinition, ArgumentType, Choice, Code, CompletionSource, Constraints, Severity,
    invisible::InvisiblePolicy, nearest,
};

use super::{
    draft::GlobCompletion,
    keys::{Holds, Key, Keys, key, keys},
    table::{Table, list, text},
    tree::{Node, Notes, ScalarKind, Value},
};

const TYPES: &[&str] = &["string", "text", "integer", "number", "boolean", "date", "list", "json"];

pub(crate) const KEYS: Keys = Keys {
    keys: &[
        key("name", Holds::Text, "The name of the argument, also as a variable of the template."),
        key("title", Holds::Text, "The display name."),
        key("description", Holds::Text, "A description with an example: many clients show nothing else."),
        key("type", Holds::Word(TYPES), "The type of its values; a single line of text by default."),
        key("enum", Holds::Choices(&CHOICE), "The allowed values."),
        key("pattern", Holds::Text, "A regular expression that must match a part of the value."),
        key("minLength", Holds::Count(0), "The smallest number of characters."),
        key("maxLength", Holds::Count(0), "The largest number of characters."),
        key("minimum", Holds::Number(None), "The smallest number."),
        key("maximum", Holds::Number(None), "The largest number."),
        key("min-length", Holds::Count(0), "The same as `minLength`, in the spelling of TOML."),
        key("max-length", Holds::Count(0), "The same as `maxLength`, in the spelling of TOML."),
        key("required", Holds::Flag, "Whether calls without it are rejected."),
        key("default", Holds::Value, "The value if a call has none."),
        key("examples", Holds::Values, "Example values, for users and for completion."),
        key("complete", Holds::Completion(COMPLETION), "The source of suggestions."),
        key("ask", Holds::Flag, "Whether a form asks for it if a call has no value."),
        key("step", Holds::Count(1), "The step of a guided prompt that asks for it."),
        key("sensitive", Holds::Flag, "Whether its values are left out of audit records, logs and errors."),
        key("audit", Holds::Flag, "Whether audit records contain its values."),
        INVISIBLE,
        key("when", Holds::Text, "A condition over the arguments before it; if false, no form asks for it."),
    ],
    required: &["name"],
};

pub(crate) const INVISIBLE_POLICIES: &[&str] = &["keep", "strip", "reject"];

const INVISIBLE: Key = key(
    "invisible",
    Holds::Word(INVISIBLE_POLICIES),
    "The policy for control, bidirectional and other invisible characters in values; `strip` by default.",
);

const CHOICE: Keys = keys(&[
    key("value", Holds::Text, "The value."),
    key("const", Holds::Text, "The same as `value`, in the spelling of JSON Schema."),
    key("title", Holds::Text, "The display name of the value."),
]);

/// The sources of suggestions. In the last one, every other key is a value of the argument that `by` names.
const COMPLETION: &[Keys] = &[
    Keys { keys: &[key("file", Holds::Text, "A file whose lines are suggested.")], required: &["file"] },
    Keys {
        keys: &[
            key("files", Holds::Text, "A pattern for paths, such as `src/**/*.rs`."),
            key("root", Holds::Text, "The declared root that contains the paths."),
        ],
        required: &["files"],
    },
    Keys {
        keys: &[key("resources", Holds::Text, "A pattern for the URIs of this server's resources.")],
        required: &["resources"],
    },
    Keys { keys: &[key("by", Holds::Text, "The argument whose value selects the suggestions.")], required: &["by"] },
];

pub(crate) fn arguments(
    table: &Table<'_, '_>,
    key: &str,
    notes: &mut Notes<'_>,
) -> (Vec<ArgumentDefinition>, Vec<GlobCompletion>) {
    let (mut arguments, mut globs) = (Vec::new(), Vec::new());
    let Some(node) = table.node(key, notes) else { return (arguments, globs) };
    let Value::List(items) = &node.value else {
        let message = format!("`{key}`: expected a list, found {}", node.kind());
        notes.error(Code::WrongType, &node.span, message).help = Some("start each argument with `- name:`".to_owned());
        return (arguments, globs);
    };
    let path = table.path(key);
    for (index, item) in items.iter().enumerate() {
        let place = format!("{path}.{index}");
        notes.spans.insert(place.clone(), item.span.clone());
        let argument = match item.text() {
            Some(name) => ArgumentDefinition::new(name),
            None => argument(item, index, &format!("{place}."), notes, &mut globs).unwrap_or_default(),
        };
        arguments.push(argument);
    }
    arguments.shrink_to_fit();
    (arguments, globs)
}

fn argument(
    node: &Node,
    index: usize,
    prefix: &str,
    notes: &mut Notes<'_>,
    globs: &mut Vec<GlobCompletion>,
) -> Option<ArgumentDefinition> {
    let table = Table::of(node, prefix, "an argument", notes)?;
    table.expect(&KEYS, Severity::Warning, "in an argument", notes);
    let either = |camel: &'static str, kebab: &'static str| if table.has(kebab) { kebab } else { camel };
    let name = table.required_text("name", "an argument", notes);
    let length = |key, notes: &mut Notes<'_>| table.count(key, 0, notes).and_then(|count| usize::try_from(count).ok());
    let constraints = Constraints {
        pattern: table.text("pattern", notes),
        min_length: length(either("minLength", "min-length"), notes),
        max_length: length(either("maxLength", "max-length"), notes),
        minimum: table.number("minimum", notes),
        maximum: table.number("maximum", notes),
    };
    let argument = ArgumentDefinition {
        description: table.text("description", notes).map(|text| text.trim_end().into()),
        required: table.flag("required", notes).unwrap_or_default(),
        kind: kind(&table, notes),
        title: table.text("title", notes),
        default: table.node("default", notes).and_then(|node| value(node, "`default`", notes)),
        examples: examples(&table, notes),
        choices: choices(&table, notes),
        completion: completion(&table, index, notes, globs),
        ask: table.flag("ask", notes).unwrap_or_default(),
        step: table.count("step", 1, notes).and_then(|step| u32::try_from(step).ok()),
        when: table.text("when", notes),
        sensitive: table.flag("sensitive", notes).unwrap_or_default(),
        audit: table.flag("audit", notes).unwrap_or_default(),
        invisible: invisible(&table, notes),
        name: name.unwrap_or_default(),
        constraints: None,
    };
    Some(argument.constrained(constraints))
}

/// Reads the policy under the key `invisible`.
fn invisible(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> Option<InvisiblePolicy> {
    let written = table.text(INVISIBLE.name, notes)?;
    let policy = InvisiblePolicy::parse(&written);
    if policy.is_none() {
        let span = notes.spans.get(&table.path(INVISIBLE.name)).cloned().unwrap_or_default();
        let known = || InvisiblePolicy::ALL.iter().map(|policy| policy.as_str());
        let message = format!("`invisible`: unknown policy `{written}`");
        notes.error(Code::InvalidValue, &span, message).help = Some(match nearest(&written, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("expected {}", list(known())),
        });
    }
    policy
}

fn kind(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> ArgumentType {
    let Some(written) = table.text("type", notes) else { return ArgumentType::default() };
    let known = || ArgumentType::ALL.iter().map(|kind| kind.as_str());
    ArgumentType::ALL.iter().copied().find(|kind| kind.as_str() == written).unwrap_or_else(|| {
        let span = notes.spans.get(&table.path("type")).cloned().unwrap_or_default();
        let other = match &*written {
            "int" => Some("integer"),
            "float" | "double" => Some("number"),
            "bool" => Some("boolean"),
            "str" => Some("string"),
            "array" => Some("list"),
            "object" => Some("json"),
            _ => nearest(&written, known()),
        };
        notes.error(Code::InvalidValue, &span, format!("unknown type `{written}`")).help = Some(match other {
            Some(other) => format!("did you mean `{other}`?"),
            None => format!("known types are {}", list(known())),
        });
        ArgumentType::default()
    })
}

/// Returns a value in the form that a caller would send: lists and mappings as JSON.
fn value(node: &Node, what: &str, notes: &mut Notes<'_>) -> Option<String> {
    match &node.value {
        Value::Scalar(_) => text(node, what, notes),
        Value::List(_) | Value::Mapping(_) => Some(node.to_json().to_string()),
    }
}

fn examples(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> Vec<String> {
    let Some(node) = table.node("examples", notes) else { return Vec::new() };
    node.items().iter().filter_map(|item| value(item, "an example", notes)).collect()
}

/// Reads the allowed values: scalars, or mappings of `value` (in JSON Schema: `const`) and `title`.
fn choices(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> Vec<Choice> {
    let Some(node) = table.node("enum", notes) else { return Vec::new() };
    let Value::List(items) = &node.value else {
        let message = format!("`enum`: expected a list of values, found {}", node.kind());
        notes.error(Code::WrongType, &node.span, message);
        return Vec::new();
    };
    if items.is_empty() {
        notes.error(Code::InvalidValue, &node.span, "an empty `enum` allows no value").help =
            Some("list the allowed values, or remove `enum`".to_owned());
    }
    let path = table.path("enum");
    let mut found: Vec<(Choice, Range<usize>)> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let prefix = format!("{path}.{index}.");
        let choice = match &item.value {
            Value::Mapping(_) => Table::of(item, &prefix, "a value", notes).and_then(|table| {
                table.expect(&CHOICE, Severity::Warning, "in a value of `enum`", notes);
                let key = if table.has("const") { "const" } else { "value" };
                let title = table.text("title", notes);
                Some(Choice { value: table.required_text(key, "a value of `enum`", notes)?, title })
            }),
            _ => text(item, "a value of `enum`", notes).map(|value| Choice { value, title: None }),
        };
        let Some(choice) = choice else { continue };
        if let Some((_, first)) = found.iter().find(|(known, _)| known.value == choice.value) {
            let first = notes.location(first);
            let message = format!("duplicate value `{}` in `enum`", choice.value);
            let diagnostic = notes.warning(Code::NoEffect, &item.span, message);
            diagnostic.related.push((first, "first defined here".to_owned()));
            continue;
        }
        found.push((choice, item.span.clone()));
    }
    found.into_iter().map(|(choice, _)| choice).collect()
}

fn completion(
    table: &Table<'_, '_>,
    index: usize,
    notes: &mut Notes<'_>,
    globs: &mut Vec<GlobCompletion>,
) -> Option<CompletionSource> {
    let node = table.node("complete", notes)?;
    let prefix = format!("{}.", table.path("complete"));
    let source = match &node.value {
        Value::List(_) => return Some(CompletionSource::Values(texts(node, "a value of `complete`", notes))),
        Value::Mapping(_) => Table::of(node, &prefix, "`complete`", notes)?,
        Value::Scalar(scalar) => {
            let message = format!("`complete`: expected a list or a mapping, found {}", node.kind());
            let help = (scalar.kind == ScalarKind::Text)
                .then(|| format!("write `{{file: {}}}` for the lines of a file", scalar.text));
            notes.error(Code::WrongType, &node.span, message).help = help;
            return None;
        }
    };
    if source.has("by") {
        return by(&source, notes);
    }
    if source.has("file") {
        source.expect(&COMPLETION[0], Severity::Error, "beside `file`", notes);
        return source.text("file", notes).map(CompletionSource::File);
    }
    if source.has("resources") {
        source.expect(&COMPLETION[2], Severity::Error, "beside `resources`", notes);
        return source.text("resources", notes).map(CompletionSource::Resources);
    }
    if source.has("files") {
        source.expect(&COMPLETION[1], Severity::Error, "beside `files`", notes);
        let root = source.text("root", notes);
        let glob = source.text("files", notes)?;
        globs.push(GlobCompletion { argument: index, glob, root, span: node.span.clone() });
        // A placeholder until the folder has been read.
        return Some(CompletionSource::Paths(std::sync::Arc::default()));
    }
    let known = ["by", "file", "files", "resources"];
    let near = source.entries().iter().find_map(|entry| nearest(&entry.key, known));
    notes.error(Code::InvalidCompletion, &node.span, "`complete` has no source of suggestions").help =
        Some(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use a list of values, or one of the keys {}", list(known)),
        });
    None
}

fn by(source: &Table<'_, '_>, notes: &mut Notes<'_>) -> Option<CompletionSource> {
    let mut cases = Vec::new();
    for entry in source.entries().iter().filter(|entry| entry.key != "by") {
        cases.push((entry.key.clone(), texts(&entry.node, "a value of `complete`", notes)));
    }
    let argument = source.text("by", notes)?;
    if cases.is_empty() {
        let message = format!("`by: {argument}` has no values");
        notes.error(Code::InvalidCompletion, &source.node.span, message).help =
            Some("add a key with suggestions for each value of that argument".to_owned());
        return None;
    }
    Some(CompletionSource::By { argument, cases })
}

fn texts(node: &Node, what: &str, notes: &mut Notes<'_>) -> Vec<String> {
    node.items().iter().filter_map(|item| text(item, what, notes)).collect()
}
