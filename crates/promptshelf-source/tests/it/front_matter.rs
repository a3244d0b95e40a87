//! Front matter: every mistake is reported with its line and column, in one pass.

use std::sync::Arc;

use promptshelf_core::{
    ArgumentType, Body, BodyPiece, CompletionSource, Diagnostic, LABELS, MAX_LABEL_CHARS, invisible::InvisiblePolicy,
};

use crate::library::{Library, broken};

/// Reads the definition of a file without mistakes.
fn read(text: &str) -> Arc<promptshelf_core::PromptDefinition> {
    let library = Library::of(&[("p.md", text)]);
    assert_eq!(library.mistakes(), [""; 0]);
    library.read().prompts.remove(0)
}

fn mistakes(text: &str) -> Vec<String> {
    Library::of(&[("p.md", text)]).mistakes()
}

fn body(definition: &promptshelf_core::PromptDefinition) -> &str {
    match &definition.body {
        Body::Template { range } => &definition.origin.source.text[range.clone()],
        Body::Function(_) | Body::Pieces(_) => panic!("a file has a template"),
    }
}

#[test]
fn file_without_front_matter_is_a_prompt() {
    let library = Library::of(&[("git/commit.md", "Write a message.")]);
    let definition = library.read().prompts.remove(0);
    assert_eq!(definition.name, "git-commit");
    assert_eq!(body(&definition), "Write a message.");
    assert!(definition.origin.modified.is_some());
}

#[test]
fn former_names_that_lead_elsewhere_are_reported() {
    let new = "---\ndescription: A\naliases: [old, new, old, other, spare]\n---\nx";
    let files = [
        ("new.md", new),
        ("other.md", "---\ndescription: B\n---\nx"),
        ("third.md", "---\ndescription: C\naliases: [spare]\n---\nx"),
    ];
    let checked = promptshelf_core::check(Library::of(&files).read(), None);
    let found: Vec<_> = checked.diagnostics.iter().map(|found| (found.to_string(), found.is_error())).collect();
    assert_eq!(
        found,
        [
            "new.md:3:16: warning[duplicate-name]: `new` is the name of the prompt, or stands here twice (remove it)",
            "new.md:3:21: warning[duplicate-name]: `old` is the name of the prompt, or stands here twice (remove it)",
            "new.md:3:26: warning[duplicate-name]: the former name `other` leads to the prompt `other` instead (remove it)",
            "third.md:3:11: warning[duplicate-name]: the former name `spare` leads to the prompt `new` instead (remove it)",
        ]
        .map(|text| (text.to_owned(), false))
    );
    let of =
        |name: &str| checked.catalog.position_of_alias(name).map(|at| checked.catalog.prompts()[at].name().as_str());
    assert_eq!([of("old"), of("spare"), of("other"), of("new")], [Some("new"), Some("new"), None, None]);
    assert_eq!(mistakes("---\ndescription: A\naliases: [two words]\n---\nx").len(), 1);
}

#[test]
fn every_key_is_read() {
    let definition = read(
        "---
name: review
title: Review
description: >
  Looks at
  code
icons: [https://example.com/a.png, {src: 'data:image/png;base64,AA==', mimeType: image/png, sizes: [48x48, any], theme: dark}]
version: 1.10
tags: [code, 2]
_meta: {example.com/a: {b: [1, 2.5, true, null, x]}}
arguments:
  - name: code
    title: Code
    description: The code
    required: true
    type: text
    minLength: 1
    maxLength: 100
    invisible: keep
    pattern: \"^.\"
  - name: count
    type: integer
    default: 05
    minimum: 1
    maximum: 9.5
    examples: [1, 2]
  - name: language
    enum: [rust, {value: NO, title: Norwegian}, {const: on}, 1.0]
    complete: [a, 1]
  - name: framework
    complete:
      by: language
      rust: [axum, actix]
      1.0: one
  - {name: lines, complete: {file: lines.txt}}
  - {name: logs, complete: {resources: 'logs://*'}}
  - {name: tags, type: list, default: [a, b], examples: [[a], b]}
  - {name: options, type: json, default: {a: 1}}
  - plain
---
Body",
    );
    assert_eq!(definition.name, "review");
    assert_eq!(definition.description.as_deref(), Some("Looks at code"));
    assert_eq!(definition.version.as_deref(), Some("1.10"));
    assert_eq!(definition.tags, ["code", "2"]);
    assert_eq!(definition.icons.len(), 2);
    assert_eq!(definition.icons[1].sizes, ["48x48", "any"]);
    assert_eq!(
        serde_json::Value::Object(definition.meta.clone()).to_string(),
        r#"{"example.com/a":{"b":[1,2.5,true,null,"x"]}}"#
    );
    let arguments = &definition.arguments;
    assert_eq!(arguments.len(), 9);
    assert!(arguments[0].required && arguments[0].kind == ArgumentType::Text);
    assert_eq!((arguments[0].invisible, arguments[1].invisible), (Some(InvisiblePolicy::Keep), None));
    assert_eq!((arguments[0].constraints().min_length, arguments[0].constraints().max_length), (Some(1), Some(100)));
    assert_eq!(arguments[1].default.as_deref(), Some("05"));
    assert_eq!((arguments[1].constraints().minimum, arguments[1].constraints().maximum), (Some(1.0), Some(9.5)));
    assert_eq!(arguments[1].examples, ["1", "2"]);
    let values: Vec<_> = arguments[2].choices.iter().map(|choice| (&*choice.value, choice.title.as_deref())).collect();
    assert_eq!(values, [("rust", None), ("NO", Some("Norwegian")), ("on", None), ("1.0", None)]);
    assert!(matches!(&arguments[2].completion, Some(CompletionSource::Values(values)) if *values == ["a", "1"]));
    match &arguments[3].completion {
        Some(CompletionSource::By { argument, cases }) => {
            assert_eq!(argument, "language");
            assert_eq!(cases[0], ("rust".to_owned(), vec!["axum".to_owned(), "actix".to_owned()]));
            assert_eq!(cases[1], ("1.0".to_owned(), vec!["one".to_owned()]));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(&arguments[4].completion, Some(CompletionSource::File(path)) if path == "lines.txt"));
    assert!(matches!(&arguments[5].completion, Some(CompletionSource::Resources(glob)) if glob == "logs://*"));
    assert_eq!(arguments[6].default.as_deref(), Some(r#"["a","b"]"#));
    assert_eq!(arguments[6].examples, [r#"["a"]"#, "b"]);
    assert_eq!(arguments[7].default.as_deref(), Some(r#"{"a":1}"#));
    assert_eq!(arguments[8].name, "plain");
    assert_eq!(body(&definition), "Body");
}

#[test]
fn parts_of_a_definition_have_spans() {
    let definition = read("---\ntitle: Ü\narguments:\n  - name: a\n    default: ß x\n  - name: b\n---\n");
    let at = |part: &str| definition.origin.locate(part).to_string();
    assert_eq!(at("title"), "p.md:2:8");
    assert_eq!(at("arguments.0"), "p.md:4:5");
    assert_eq!(at("arguments.0.default"), "p.md:5:14");
    assert_eq!(at("arguments.0.pattern"), "p.md:4:5");
    assert_eq!(at("arguments.1.name"), "p.md:6:11");
    assert_eq!(at("description"), "p.md:1:1");
}

#[test]
fn yaml_1_1_booleans_are_text_and_crlf_is_accepted() {
    let definition = read(
        "\u{feff}---\r\ntitle: NO\r\ndescription: on\r\narguments:\r\n  - name: a\r\n    default: yes\r\n---\r\nHello\r\n",
    );
    assert_eq!(definition.title.as_deref(), Some("NO"));
    assert_eq!(definition.description.as_deref(), Some("on"));
    assert_eq!(definition.arguments[0].default.as_deref(), Some("yes"));
    assert_eq!(body(&definition), "Hello\r\n");
}

#[test]
fn key_without_a_value_counts_as_missing() {
    let definition = read("---\ntitle:\ndescription: ~\narguments:\nicons:\n---\nHello");
    assert_eq!((definition.title.as_ref(), definition.description.as_ref()), (None, None));
    assert!(definition.arguments.is_empty());
    assert_eq!(read("---\n---\nHello").name, "p");
    assert_eq!(read("---\n# nothing yet\n---\nHello").name, "p");
}

#[test]
fn all_mistakes_are_reported_in_one_pass() {
    assert_eq!(
        mistakes(
            "---
title: [a]
desciption: d
icons: [http://example.com/a.png, {sizes: 3, theme: dusk}, ftp://x, [x]]
tags: {a: b}
_meta: x
arguments:
  - nme: code
    required: yes
    type: strng
  - name: a
    required: 'true'
    minLength: x
    maxLength: -1
    minimum: x
    enum: []
    default: {{ a }}
  - [x]
  - name: b
    type: int
    enum: 5
    complete: lines.txt
  - name: c
    enum: [a, a, {title: x}]
    complete: {fils: x}
  - name: d
    complete: {by: a}
  - name: e
    complete: {file: x, root: y}
    zzz: 1
---
"
        ),
        [
            "p.md:2:8: error[wrong-type]: `title`: expected text, found a list",
            "p.md:3:1: warning[unknown-key]: unknown key `desciption` in a prompt file (did you mean `description`?)",
            "p.md:4:9: error[invalid-value]: icons over `http:` are not allowed (use `https:`, or a file of the library)",
            "p.md:4:36: error[missing-key]: missing key `src` in an icon",
            "p.md:4:43: error[invalid-value]: invalid icon size `3` (expected a size such as `48x48`, or `any`)",
            "p.md:4:53: error[invalid-value]: unknown icon theme `dusk` (did you mean `dark`?)",
            "p.md:4:60: error[invalid-value]: icons over `ftp:` are not allowed (use `https:`, `data:` or a file of the library)",
            "p.md:4:69: error[wrong-type]: an icon: expected a path, a URL or a mapping, found a list",
            "p.md:5:7: error[wrong-type]: an entry of `tags`: expected text, found a mapping",
            "p.md:6:8: error[wrong-type]: `_meta`: expected a mapping, found text",
            "p.md:8:5: warning[unknown-key]: unknown key `nme` in an argument (did you mean `name`?)",
            "p.md:8:5: error[missing-key]: missing key `name` in an argument",
            "p.md:9:15: error[wrong-type]: `required`: expected `true` or `false`, found text (write `true`, without quotes)",
            "p.md:10:11: error[invalid-value]: unknown type `strng` (did you mean `string`?)",
            "p.md:12:15: error[wrong-type]: `required`: expected `true` or `false`, found text (write `true`, without quotes)",
            "p.md:13:16: error[wrong-type]: `minLength`: expected a whole number, found text",
            "p.md:14:16: error[invalid-value]: `maxLength`: expected at least 0",
            "p.md:15:14: error[wrong-type]: `minimum`: expected a number, found text",
            "p.md:16:11: error[invalid-value]: an empty `enum` allows no value (list the allowed values, or remove `enum`)",
            "p.md:17:14: error[syntax]: a value that starts with `{{` or `{%` must be quoted (write it as `\"{{ … }}\"`)",
            "p.md:18:5: error[wrong-type]: an argument: expected a mapping, found a list",
            "p.md:20:11: error[invalid-value]: unknown type `int` (did you mean `integer`?)",
            "p.md:21:11: error[wrong-type]: `enum`: expected a list of values, found a number",
            "p.md:22:15: error[wrong-type]: `complete`: expected a list or a mapping, found text (write `{file: lines.txt}` for the lines of a file)",
            "p.md:24:15: warning[no-effect]: duplicate value `a` in `enum`",
            "p.md:24:19: error[missing-key]: missing key `value` in a value of `enum`",
            "p.md:25:15: error[invalid-completion]: `complete` has no source of suggestions (did you mean `file`?)",
            "p.md:27:15: error[invalid-completion]: `by: a` has no values (add a key with suggestions for each value of that argument)",
            "p.md:29:25: error[unknown-key]: unknown key `root` beside `file` (known keys are `file`)",
            "p.md:30:5: warning[unknown-key]: unknown key `zzz` in an argument (known keys are `name`, `title`, `description`, `type`, `enum`, `pattern`, `minLength`, `maxLength`, `minimum`, `maximum`, `min-length`, `max-length`, `required`, `default`, `examples`, `complete`, `ask`, `step`, `sensitive`, `audit`, `invisible` and `when`)",
        ]
    );
}

/// Invalid lines of YAML, each with the expected messages.
#[test]
fn invalid_yaml_lines_are_reported_and_the_rest_is_read() {
    for (keys, expected) in [
        ("icons: [a, b\ndescription: x", &["2:8 this `[` is not closed"][..]),
        ("icons: {a: b\ndescription: x", &["2:8 this `{` is not closed"]),
        ("icons: [a, b]]", &["2:14 unexpected `]` without an opening bracket"]),
        ("description: 'it's fine'", &["2:18 unexpected text after the closing quotation mark"]),
        ("description: \"a\" b", &["2:18 unexpected text after the closing quotation mark"]),
        ("description: *x", &["2:14 an unquoted text cannot start with `*`"]),
        ("  description: x\ntitle: y", &["3:1 the indentation of this line does not match the lines around it"]),
        ("description:x\ntitle: y", &["2:12 missing space after this `:`"]),
        ("title My prompt\nversion: 1", &["2:1 expected `key: value`"]),
        ("title: a\nversion = 1\n", &["3:1 expected `key: value`"]),
        ("arguments:\n- name: a\n - name: c", &["4:2 the indentation of this line does not match the lines around it"]),
        (
            "arguments:\n  - name: a\n  title: c",
            &["4:3 the indentation of this line does not match the lines around it"],
        ),
        ("description: |\n  a\n b", &["4:2 the indentation of this line does not match the lines around it"]),
        (r#"description: "a\d""#, &["2:16 unknown escape sequence in double quotes"]),
        (
            "description: &a x\ntags: [*a]",
            &["2:14 an unquoted text cannot start with `&`", "3:8 aliases are not supported"],
        ),
        ("description: - a", &["2:14 a list cannot start on the line of its key"]),
        ("description: a\n\ttitle: b", &["3:1 tabs are not allowed in the indentation"]),
        ("title:\ta", &["2:7 a tab stands after the colon or the dash"]),
        (
            "arguments:\n  - name: a\n    description: this: that\n  - name: b\n    description: \"open\n  - name: c\n    enum: [x, y\ntitle: \"z\ntitel: x\nversion: []",
            &[
                "4:22 unexpected second `: ` in one line",
                "6:18 this quotation mark is not closed",
                "8:11 this `[` is not closed",
                "9:8 this quotation mark is not closed",
                "10:1 unknown key `titel` in a prompt file",
                "11:10 `version`: expected text, found a list",
            ],
        ),
    ] {
        let text = format!("---\n{keys}\n---\n");
        let found = Library::of(&[("p.md", &*text)]).read().diagnostics;
        let messages_of = |found: &Diagnostic| {
            let (line, column) = found.location.line_column();
            format!("{line}:{column} {}", found.message)
        };
        assert_eq!(found.iter().map(messages_of).collect::<Vec<_>>(), expected, "{text}");
    }
}

#[test]
fn invalid_yaml_is_reported_at_its_position() {
    let quoted = "a value that starts with `{{` or `{%` must be quoted (write it as `\"{{ … }}\"`)";
    let lines = "(write lines such as `description: Reviews a change`)";
    let closed = "(add the same mark at the end of the text)";
    for (text, expected) in [
        ("---\ntitle: x\nhello", "1:1: error[syntax]: the front matter is not closed (add a line `---` between the keys and the text)".to_owned()),
        ("---\ntitle: {{ x }} y\n---\n", format!("2:8: error[syntax]: {quoted}")),
        ("---\ntitle: {% if x %}\n---\n", format!("2:8: error[syntax]: {quoted}")),
        ("---\ntitle: Review: ü\n---\n", "2:14: error[syntax]: unexpected second `: ` in one line (quote the value: `\"Review: ü\"`)".to_owned()),
        ("---\nversion: ü\ntitle: a\n description: b\n---\n", "4:2: error[syntax]: this line is indented more deeply than the key above it, which already has a value (use the same indentation for all keys of one level)".to_owned()),
        ("---\narguments:\n\t- name: x\n---\n", "3:1: error[syntax]: tabs are not allowed in the indentation (indent with spaces)".to_owned()),
        ("---\ntitle: @x\n---\n", "2:8: error[syntax]: an unquoted text cannot start with `@` (quote it)".to_owned()),
        ("---\ntitle: 'x\n---\n", format!("2:8: error[syntax]: this quotation mark is not closed {closed}")),
        ("---\ntitle: a\ntitle: b\n---\n", "3:1: error[syntax]: duplicate key `title` (keep one of them)".to_owned()),
        ("---\ntitle: &a x\n---\n", "2:8: error[syntax]: an unquoted text cannot start with `&` (quote it)".to_owned()),
        ("---\ntitle: !x y\n---\n", "2:8: error[syntax]: the type `!x` is not supported (quote a text that starts with `!`)".to_owned()),
        ("---\n? [a]\n: b\n---\n", "2:3: error[syntax]: a key: expected text, found a list".to_owned()),
        ("---\njust text\n---\n", format!("2:1: error[wrong-type]: the front matter: expected a mapping, found text {lines}")),
        ("---\n- a\n---\n", format!("2:1: error[wrong-type]: the front matter: expected a mapping, found a list {lines}")),
    ] {
        assert_eq!(mistakes(text), [format!("p.md:{expected}")], "{text:?}");
        assert_eq!(broken(&Library::of(&[("p.md", text)]).read()), ["p.md"], "{text:?}");
    }
}

#[test]
fn typographic_quotes_around_a_value_are_reported() {
    let found = |keys: &str| {
        let all = mistakes(&format!("---\n{keys}\n---\nBody {{{{ a }}}}\n"));
        all.into_iter().filter(|line| line.contains("typographic")).count()
    };
    let argument = |keys: &str| format!("arguments:\n  - name: a\n    {keys}");
    for (keys, count) in [
        (argument("enum: [“x”]"), 1),
        (argument("enum: [“x”, „y“, ‘z’, «w»]"), 4),
        (argument("enum:\n      - “x”"), 1),
        (argument("enum: [“a, b”]"), 2),
        (argument("default: ‘x’"), 1),
        ("description: “Says hello”".to_owned(), 1),
        ("tags: [“x”]".to_owned(), 1),
        // Text, or quoted as it should be.
        ("description: “Hello” and “bye”".to_owned(), 0),
        ("description: Say “hello”".to_owned(), 1 - 1),
        ("description: \"“Hello”\"".to_owned(), 0),
        ("description: the users’".to_owned(), 0),
        (argument("enum: ['“x”']"), 0),
        (argument("enum: [don’t]"), 0),
    ] {
        assert_eq!(found(&keys), count, "{keys}");
    }
}

#[test]
fn oversized_and_deeply_nested_yaml_is_rejected() {
    let deep = format!("---\na: {}\n---\n", "[".repeat(100_000));
    let wide = format!("---\ntags: [{}]\n---\n", "a,".repeat(30_000));
    let long = format!("---\ntitle: {}\n---\n", "a".repeat(2 << 20));
    let bomb = format!("---\na: &a [x]\n{}---\n", (0..9).map(|n| format!("b{n}: [*a, *a]\n")).collect::<String>());
    for text in [deep, wide, long, bomb] {
        let mistakes = mistakes(&text);
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        assert!(mistakes[0].contains("error["), "{mistakes:?}");
    }
}

#[test]
fn mistakes_beyond_the_limit_are_counted() {
    let keys: String = (0..150).map(|index| format!("k{index}: x\n")).collect();
    let mistakes = mistakes(&format!("---\n{keys}---\nhello"));
    assert_eq!(mistakes.len(), 101);
    assert_eq!(mistakes[100], "p.md:102:1: error[too-many]: 50 further mistakes from here on are not listed");
}

#[test]
fn labels_are_read_and_bounded() {
    for label in LABELS {
        let text = |value: &str| format!("---\n{}: '{value}'\n---\nText.\n", label.key);
        let most = "x".repeat(MAX_LABEL_CHARS);
        for value in ["team-a", &most] {
            assert_eq!(read(&text(value)).labels.get(label.key), [value], "{}", label.key);
        }
        for value in ["", " ", &format!("{most}x")] {
            let found = mistakes(&text(value));
            assert!(found.len() == 1 && found[0].starts_with("p.md:2:"), "{found:?}");
        }
    }
}

#[test]
fn unloadable_icons_and_unknown_policies_are_reported() {
    let mistakes = mistakes(
        "---
icons: ['data:image/png;base64,A', 'data:text/html,x', 'data:image/png', 'https://a b', 'data:image/svg+xml,%3Csvg/%3E']
arguments:
  - {name: a, invisible: strp}
  - {name: b, invisible: [keep]}
---
{{ a }} {{ b }}",
    );
    let expected = [
        "p.md:2:9: error[invalid-value]: an icon's data is not valid base64 (encode it again, or use a file of the library)",
        "p.md:2:36: error[invalid-value]: an icon's data must be an image (encode it again, or use a file of the library)",
        "p.md:2:56: error[invalid-value]: an icon's data URI has no comma before its data (encode it again, or use a file of the library)",
        "p.md:2:74: error[invalid-value]: an icon's `src` is not a URI (encode it again, or use a file of the library)",
        "p.md:4:26: error[invalid-value]: `invisible`: unknown policy `strp` (did you mean `strip`?)",
        "p.md:5:26: error[wrong-type]: `invisible`: expected text, found a list",
    ];
    assert_eq!(mistakes, expected);
}

#[test]
fn text_without_a_template_is_plain() {
    let text = "---\ndescription: x\ntemplate: false\n---\n\nTOKEN: ${{ secrets.TOKEN }} {% if %} {#\n";
    let Body::Pieces(pieces) = &read(text).body else { panic!("a plain text") };
    assert_eq!(*pieces, [BodyPiece::Text("TOKEN: ${{ secrets.TOKEN }} {% if %} {#\n".to_owned())]);
    assert!(matches!(read("---\ntemplate: true\n---\n{{ \"a\" }}\n").body, Body::Template { .. }));
    let found = mistakes("---\ntemplate: false\narguments: [a]\n---\n{{ a }}\n");
    assert!(found[0].starts_with("p.md:3:1: error") && found[0].contains("cannot use arguments"), "{found:?}");
}
