//! Locations of diagnostics: lines, columns, spans.

use promptshelf_core::{
    Body, Code, Definitions, Diagnostic, Location, Origin, PromptDefinition, SourceText, check, nearest,
};
use proptest::prelude::*;

/// A prompt whose template begins at an offset of its file.
fn in_file(text: &str, template_begins: usize) -> PromptDefinition {
    let mut prompt = PromptDefinition::template("it", "").description("A prompt");
    prompt.origin = Origin::new(SourceText::new("it.md", text));
    prompt.body = Body::Template { range: template_begins..text.len() };
    prompt
}

fn diagnostics(definitions: Definitions) -> Vec<String> {
    let place = |found: &Diagnostic| {
        let span = found.location.span();
        format!("{} {} {:?}", found.location, found.code, &found.location.source.text[span])
    };
    check(definitions, None).diagnostics.iter().map(place).collect()
}

fn of(prompt: PromptDefinition) -> Vec<String> {
    diagnostics(Definitions::from_iter([prompt]))
}

#[test]
fn locations_count_file_lines_and_columns_in_characters() {
    let head = "---\ndescription: ü\n---\n";
    let text = format!("{head}Ünï {{{{ missing }}}} 😀 {{{{ x | fnce }}}}\n{{% include 'nö' %}}");
    assert_eq!(
        of(in_file(&text, head.len())),
        [
            r#"it.md:4:8 undeclared-argument "missing""#,
            r#"it.md:4:24 undeclared-argument "x""#,
            r#"it.md:4:28 unknown-function "fnce""#,
            r#"it.md:5:12 missing-partial "'nö'""#,
        ]
    );
}

#[test]
fn crlf_locations_are_the_same() {
    let head = "---\r\ndescription: x\r\n---\r\n";
    let text = format!("{head}One\r\nTwo {{{{ missing }}}}\r\n{{% if %}}\r\n");
    assert_eq!(
        of(in_file(&text, head.len())),
        [r#"it.md:5:8 undeclared-argument "missing""#, r#"it.md:6:1 template-syntax "{% if %}""#]
    );
    let text = format!("{head}One\r\nTwo {{{{ missing }}}}\r\nThree {{{{ role('system') }}}}");
    assert_eq!(
        of(in_file(&text, head.len())),
        [r#"it.md:5:8 undeclared-argument "missing""#, r#"it.md:6:15 invalid-call "'system'""#]
    );
}

#[test]
fn locations_are_right_after_65535_lines() {
    let lines = "x\n".repeat(70_000);
    let text = format!("{lines}{{{{ missing }}}}");
    assert_eq!(of(in_file(&text, 0)), [r#"it.md:70001:4 undeclared-argument "missing""#]);
    let text = format!("{lines}{}{{{{ 1 + }}}}", "x".repeat(70_000));
    assert_eq!(of(in_file(&text, 0)), [r#"it.md:70001:70008 template-syntax "}}""#]);
}

#[test]
fn partial_locations_are_in_its_own_file() {
    let mut definitions = Definitions::from_iter([in_file("---\n---\n{% include '_p' %}", 8)]);
    let text = "One\n\n{# comment\n #}{% set y = x %}{{ y | shout }}{{ attach('gone.png') }}";
    definitions.partials.insert("_p".into(), SourceText::new("_p", text));
    assert_eq!(
        diagnostics(definitions),
        [
            r#"_p:4:15 undeclared-argument "x""#,
            r#"_p:4:26 unknown-function "shout""#,
            r#"_p:4:44 missing-file "'gone.png'""#,
        ]
    );
}

#[test]
fn mistake_in_a_shared_partial_is_reported_once() {
    let prompts = ["a", "b", "c"].map(|name| PromptDefinition::template(name, "{% include '_p' %}").description("x"));
    let mut definitions = Definitions::from_iter(prompts);
    definitions.partials.insert("_p".into(), SourceText::new("_p", "{{ role('system') }}{{ x | fnce }}{{ x | gnce }}"));
    let found = check(definitions, None).diagnostics;
    assert_eq!(found.iter().filter(|found| found.code == Code::InvalidCall).count(), 1);
    assert_eq!(found.iter().filter(|found| found.code == Code::UnknownFunction).count(), 2);
    assert_eq!(found.iter().filter(|found| found.code == Code::UndeclaredArgument).count(), 2);
}

proptest! {
    #[test]
    fn location_is_always_inside_its_text(text in "(.|\n|\r\n|😀){0,40}", start in 0_usize..200, end in 0_usize..200) {
        let source = SourceText::new("x", text);
        #[expect(clippy::reversed_empty_ranges, reason = "a range that runs backwards is one of the cases")]
        let spans = [start..end, start..usize::MAX, usize::MAX..0];
        for span in spans {
            let location = Location::new(&source, span);
            let inside = location.span();
            prop_assert!(source.text.get(inside.clone()).is_some());
            let (line, column) = location.line_column();
            let before = &source.text[..inside.start];
            prop_assert_eq!(line, before.split('\n').count());
            prop_assert_eq!(column, before.split('\n').next_back().unwrap_or_default().chars().count() + 1);
        }
    }

    #[test]
    fn nearest_word_is_a_known_one(word in ".{0,20}", known in prop::collection::vec(".{0,20}", 0..8)) {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        if let Some(near) = nearest(&word, known.iter().copied()) {
            prop_assert!(known.contains(&near));
        }
    }

    #[test]
    fn one_typing_error_is_recognized(word in "[a-z]{4,20}", at in 0_usize..4, letter in "[a-z]") {
        let mut slipped = word.clone();
        slipped.replace_range(at..=at, &letter);
        prop_assert_eq!(nearest(&slipped, [word.as_str()]), Some(word.as_str()));
    }
}

#[test]
fn megabyte_word_is_not_compared() {
    let long = "a".repeat(1 << 20);
    assert_eq!(nearest(&long, [long.as_str()]), None);
    assert_eq!(nearest("a", [long.as_str(), "b"]), None);
}
