//! The tests of a prompt file: the entries under `tests`.

use std::collections::HashSet;

use promptshelf_core::{ArgumentDefinition, Code, CompletionTest, Role, Severity, TestDefinition, Variables, nearest};

use super::{
    keys::{Holds, Keys, key, keys},
    table::{Table, list},
    tree::{Entry, Node, Notes, Value},
};

const ROLES: &[&str] = &["user", "assistant"];
const KINDS: &[&str] = &["text", "image", "audio", "resource", "resource_link"];

pub(crate) const GOLDEN: &str = ".golden.md";

pub(crate) const KEYS: Keys = keys(&[
    key("name", Holds::Text, "The name of the test."),
    key("arguments", Holds::Pairs, "The values of the arguments."),
    key("contains", Holds::Texts, "Texts that the messages must contain."),
    key("not_contains", Holds::Texts, "Texts that the messages must not contain."),
    key("equals", Holds::Text, "The whole text of the messages, without white space at both ends."),
    key("roles", Holds::Words(ROLES), "The role of each message."),
    key("kinds", Holds::Words(KINDS), "The kind of each content block."),
    key("error", Holds::Text, "A text that the error for these values must contain."),
    key(
        "golden",
        Holds::Text,
        "A file in the folder of the prompt, ending in `.golden.md`, with the expected messages.",
    ),
    key("complete", Holds::Table(&COMPLETE), "A completion to test instead of messages."),
]);

const COMPLETE: Keys = Keys {
    keys: &[
        key("argument", Holds::Text, "The argument."),
        key("value", Holds::Text, "The text typed so far."),
        key("context", Holds::Pairs, "The values of the other arguments."),
        key("contains", Holds::Texts, "Values that must be suggested."),
        key("not_contains", Holds::Texts, "Values that must not be suggested."),
    ],
    required: &["argument"],
};

pub(super) fn tests(
    table: &Table<'_, '_>,
    arguments: &[ArgumentDefinition],
    notes: &mut Notes<'_>,
) -> Vec<TestDefinition> {
    let Some(node) = table.node("tests", notes) else { return Vec::new() };
    let Value::List(items) = &node.value else {
        let message = format!("`tests`: expected a list, found {}", node.kind());
        notes.error(Code::WrongType, &node.span, message).help = Some("start each test with `- `".to_owned());
        return Vec::new();
    };
    let path = table.path("tests");
    let names: HashSet<&str> = arguments.iter().map(|argument| argument.name.as_str()).collect();
    let arguments = (arguments, &names);
    let tests = items.iter().enumerate().map(|(index, item)| {
        let place = format!("{path}.{index}");
        notes.spans.insert(place.clone(), item.span.clone());
        test(item, &format!("{place}."), arguments, notes).unwrap_or_default()
    });
    tests.collect()
}

/// The arguments of a prompt, and their names.
type Declared<'a> = (&'a [ArgumentDefinition], &'a HashSet<&'a str>);

fn test(node: &Node, prefix: &str, arguments: Declared<'_>, notes: &mut Notes<'_>) -> Option<TestDefinition> {
    let table = Table::of(node, prefix, "a test", notes)?;
    table.expect(&KEYS, Severity::Warning, "in a test", notes);
    let values = table.pairs("arguments", notes);
    known(&table, "arguments", &values, arguments, notes);
    let test = TestDefinition {
        name: table.text("name", notes),
        arguments: values,
        contains: table.texts("contains", notes),
        not_contains: table.texts("not_contains", notes),
        equals: table.text("equals", notes),
        roles: words(&table, "roles", ROLES, notes).iter().filter_map(|word| Role::parse(word)).collect(),
        kinds: words(&table, "kinds", KINDS, notes),
        error: table.text("error", notes),
        golden: golden(&table, notes),
        complete: complete(&table, arguments, notes),
    };
    let expects = |entry: &&Entry| !["name", "arguments"].contains(&&*entry.key);
    let mut expected = table.entries().iter().filter(expects).map(|entry| entry.key.as_str());
    let asks = |key: &str| !["error", "complete"].contains(&key);
    if test.error.is_some() && expected.clone().any(asks) {
        let span = notes.spans.get(&table.path("error")).cloned().unwrap_or_default();
        let message = "a test that expects an error cannot also expect messages";
        notes.error(Code::InvalidValue, &span, message).help = Some("split it into two tests".to_owned());
    } else if expected.next().is_none() {
        let message = "this test only expects that the prompt renders";
        notes.warning(Code::NoEffect, &(node.span.start..node.span.start), message).help =
            Some("add one of `contains`, `equals`, `roles`, `kinds`, `golden`, `error` and `complete`".to_owned());
    }
    Some(test)
}

fn complete(table: &Table<'_, '_>, arguments: Declared<'_>, notes: &mut Notes<'_>) -> Option<CompletionTest> {
    let node = table.node("complete", notes)?;
    let prefix = format!("{}.", table.path("complete"));
    let table = Table::of(node, &prefix, "`complete`", notes)?;
    table.expect(&COMPLETE, Severity::Warning, "in `complete`", notes);
    let argument = table.required_text("argument", "`complete`", notes)?;
    known(&table, "argument", &Variables::from([(argument.clone(), String::new())]), arguments, notes);
    let context = table.pairs("context", notes);
    known(&table, "context", &context, arguments, notes);
    Some(CompletionTest {
        argument,
        value: table.text("value", notes).unwrap_or_default(),
        context,
        contains: table.texts("contains", notes),
        not_contains: table.texts("not_contains", notes),
    })
}

/// Reports values for arguments that the prompt does not have.
fn known(
    table: &Table<'_, '_>,
    key: &str,
    values: &Variables,
    (arguments, names): Declared<'_>,
    notes: &mut Notes<'_>,
) {
    for name in values.keys().filter(|name| !names.contains(name.as_str())) {
        let span = notes.spans.get(&table.path(key)).cloned().unwrap_or_default();
        // In their order, so that the suggestion is the same each time.
        let near = nearest(name, arguments.iter().map(|argument| argument.name.as_str()))
            .map(|near| format!("did you mean `{near}`?"));
        notes.error(Code::UndeclaredArgument, &span, format!("the prompt has no argument `{name}`")).help = near;
    }
}

fn words(table: &Table<'_, '_>, key: &str, known: &[&str], notes: &mut Notes<'_>) -> Vec<String> {
    let words = table.texts(key, notes);
    for (index, word) in words.iter().enumerate().filter(|(_, word)| !known.contains(&word.as_str())) {
        let path = table.path(key);
        let span = notes.spans.get(&format!("{path}.{index}")).or_else(|| notes.spans.get(&path));
        let span = span.cloned().unwrap_or_default();
        notes.error(Code::InvalidValue, &span, format!("`{key}`: unknown value `{word}`")).help =
            Some(match nearest(word, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("expected {}", list(known.iter().copied())),
            });
    }
    words
}

fn golden(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> Option<String> {
    let file = table.text("golden", notes)?;
    if file.ends_with(GOLDEN) && !file.contains(['/', '\\']) && file.len() > GOLDEN.len() {
        return Some(file);
    }
    let span = notes.spans.get(&table.path("golden")).cloned().unwrap_or_default();
    notes.error(Code::InvalidValue, &span, format!("invalid name of a golden file `{file}`")).help =
        Some(format!("use a file in the folder of the prompt whose name ends with `{GOLDEN}`"));
    None
}
