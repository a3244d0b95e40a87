//! Binding of arguments: all problems of a call at once, for any input.

use promptshelf_core::{
    ArgumentDefinition, ArgumentType, Bindings, Constraints, Definitions, Policy, Problem, Prompt, PromptDefinition,
    RawArgumentValue, RawArguments, Value, check,
    invisible::{InvisiblePolicy, hidden, stripped},
};
use proptest::prelude::*;

use std::sync::Arc;

use crate::checked;

fn definition() -> impl Strategy<Value = ArgumentDefinition> {
    let kind = prop::sample::select(ArgumentType::ALL.to_vec());
    (kind, any::<bool>(), prop::option::of(0_usize..4), prop::option::of("[a-c.*+]{1,4}")).prop_map(
        |(kind, required, bound, pattern)| {
            let textual = matches!(kind, ArgumentType::String | ArgumentType::Text | ArgumentType::List);
            let numeric = matches!(kind, ArgumentType::Integer | ArgumentType::Number);
            let constraints = Constraints {
                pattern: pattern.filter(|_| textual),
                min_length: bound.filter(|_| textual),
                #[expect(clippy::cast_precision_loss, reason = "it is less than four")]
                minimum: bound.filter(|_| numeric).map(|bound| bound as f64),
                ..Constraints::default()
            };
            ArgumentDefinition { kind, required, ..ArgumentDefinition::default() }.constrained(constraints)
        },
    )
}

fn prompt(mut definitions: Vec<ArgumentDefinition>) -> Option<Arc<Prompt>> {
    let mut prompt = PromptDefinition::template("it", "x");
    for (index, definition) in definitions.iter_mut().enumerate() {
        definition.name = format!("a{index}");
    }
    prompt.arguments = definitions;
    checked([prompt]).catalog.find("it").cloned()
}

fn value() -> impl Strategy<Value = RawArgumentValue<'static>> {
    prop_oneof![
        8 => "(true|-?[0-9]{1,20}|[0-9.e+-]{0,6}|[a-c, \n]{0,8}|\\[[a-c\",0-9]{0,8}\\]|\\{\"a\":[0-9]\\}|2026-0[0-9]-3[01]|.{0,12}|\\$[0-9]|\\$ARGUMENTS)"
            .prop_map(|text| RawArgumentValue::Text(text.into())),
        1 => Just(RawArgumentValue::Other("1".into())),
    ]
}

fn raw(values: &[(usize, RawArgumentValue<'static>)]) -> RawArguments<'static> {
    let mut raw = RawArguments::new();
    for (index, value) in values {
        raw.push(format!("a{index}"), value.clone());
    }
    raw
}

/// Binds each argument by itself and returns all problems.
fn one_by_one(definitions: &[ArgumentDefinition], raw: &RawArguments<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, definition) in definitions.iter().enumerate() {
        let mut alone = definition.clone();
        alone.name = format!("a{index}");
        let mut prompt = PromptDefinition::template("it", "x");
        prompt.arguments = vec![alone];
        let catalog = checked([prompt]).catalog;
        let prompt = catalog.find("it").expect("it was good before");
        problems.extend(prompt.bind(raw, 100).err().into_iter().flatten());
    }
    problems
}

/// Reasons without the hint at a misspelt name, which depends on the other arguments.
fn without_hints(problems: &[Problem]) -> Vec<(Arc<str>, &str)> {
    let reason = |problem: &'_ Problem| problem.reason.find("; did you").unwrap_or(problem.reason.len());
    problems.iter().map(|problem| (Arc::from(problem.argument.as_str()), &problem.reason[..reason(problem)])).collect()
}

proptest! {
    #[test]
    fn problems_follow_argument_order(
        definitions in prop::collection::vec(definition(), 1..6),
        values in prop::collection::vec((0_usize..8, value()), 0..8),
    ) {
        let Some(prompt) = prompt(definitions.clone()) else { return Ok(()) };
        let raw = raw(&values);
        let alone = one_by_one(&definitions, &raw);
        match prompt.bind(&raw, 100) {
            Ok(_) => prop_assert_eq!(alone, []),
            Err(problems) => prop_assert_eq!(without_hints(&problems), without_hints(&alone)),
        }
    }

    #[test]
    fn binding_is_idempotent(
        definitions in prop::collection::vec(definition(), 1..6),
        values in prop::collection::vec((0_usize..8, value()), 0..8),
    ) {
        let Some(prompt) = prompt(definitions) else { return Ok(()) };
        let Ok(first) = prompt.bind(&raw(&values), 100) else { return Ok(()) };
        let written = first.to_variables();
        let second = prompt.bind(&RawArguments::from(&written), usize::MAX);
        prop_assert_eq!(second.as_ref().map(Bindings::to_variables), Ok(written));
    }

    #[test]
    fn stripping_is_idempotent(
        text in "[a1 é語א😀🏴\r\n\t\u{0}\u{85}\u{ad}\u{180b}\u{1820}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{fe0e}\u{fe0f}\u{feff}\u{e0067}\u{e0062}\u{e007f}\u{e0100}]{0,24}"
    ) {
        let once = stripped(&text).into_owned();
        prop_assert_eq!(hidden(&once).next(), None);
        prop_assert_eq!(&*stripped(&once), once.as_str());
        let value = text.trim_start_matches('\u{feff}');
        prop_assert_eq!(bound(ArgumentDefinition::default().required(), &text), Ok(stripped(value).into_owned()));
    }

    #[test]
    fn value_of_maximum_length_is_bound(bytes in 0_usize..50, limit in 0_usize..50) {
        let prompt = prompt(vec![ArgumentDefinition::default()]).expect("it is good");
        let value = "x".repeat(bytes);
        prop_assert_eq!(prompt.bind(&RawArguments::from_iter([("a0", value)]), limit).is_ok(), bytes <= limit);
    }
}

#[test]
fn last_of_duplicate_names_wins() {
    let prompt = prompt(vec![ArgumentDefinition::default()]).expect("it is good");
    let bindings = prompt.bind(&RawArguments::from_iter([("a0", "one"), ("a0", "two")]), 100).expect("binds");
    assert_eq!(bindings.get("a0"), Some(&Value::Text("two".into())));
}

// req: C10
#[test]
fn thousand_unknown_names_are_cheap() {
    let prompt = prompt(vec![ArgumentDefinition::default().required()]).expect("it is good");
    let names: Vec<String> = (0..1_000).map(|n| format!("{n}{}", "y".repeat(10_000))).collect();
    let problems =
        prompt.bind(&names.iter().map(|name| (name.as_str(), "")).collect(), 100).expect_err("a0 is missing");
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].to_string(), "`a0` is required");
}

#[test]
fn functions_read_any_value_as_text() {
    let mut number = ArgumentDefinition::default().kind(ArgumentType::Number);
    number.default = Some("2.50".into());
    let list = ArgumentDefinition::default().kind(ArgumentType::List);
    let prompt = prompt(vec![number, list, ArgumentDefinition::default()]).expect("it is good");
    let bindings = prompt.bind(&RawArguments::from_iter([("a1", "[\"x, y\", \"z\"]")]), 100).expect("binds");
    assert_eq!((&*bindings.text("a0"), &*bindings.text("a1"), &*bindings.text("a2")), ("2.5", "x, y, z", ""));
    assert_eq!(bindings.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a0", "a1"]);
}

/// Returns the text that a prompt receives for a value, or the problem that its caller receives.
fn bound(argument: ArgumentDefinition, value: &str) -> Result<String, String> {
    let prompt = prompt(vec![argument]).expect("it is good");
    match prompt.bind(&RawArguments::from_iter([("a0", value)]), 1_000) {
        Ok(bindings) => Ok(bindings.to_variables().remove("a0").unwrap_or_else(|| "nothing".to_owned())),
        Err(problems) => Err(problems[0].to_string()),
    }
}

// req: C14, R-1, S-32
#[test]
fn invisible_characters_are_stripped_by_default() {
    let text = || ArgumentDefinition::default().kind(ArgumentType::Text);
    let hidden = "pay\u{202e}\tme\u{200b}\r\nnow\u{e0041}\u{2028}!\0";
    assert_eq!(bound(text(), hidden).as_deref(), Ok("pay\tme\r\nnow\n!"));
    assert_eq!(bound(text().invisible(InvisiblePolicy::Keep), hidden).as_deref(), Ok(hidden));
    assert_eq!(
        bound(text().invisible(InvisiblePolicy::Reject), hidden).expect_err("it is refused"),
        "`a0` must not contain U+202E, which reorders the text that follows, as its character 4"
    );
    for policy in InvisiblePolicy::ALL {
        let ordinary = "two\nlines, a\ttab, 👩\u{200d}💻, می\u{200c}خواهم";
        assert_eq!(bound(text().invisible(*policy), ordinary).as_deref(), Ok(ordinary));
    }
}

// req: S-32
#[test]
fn json_escapes_follow_the_invisible_policy() {
    let json = |policy| ArgumentDefinition::default().kind(ArgumentType::Json).invisible(policy);
    let spelled = r#"{"k\u200b":["a\u202eb",1]}"#;
    assert_eq!(bound(json(InvisiblePolicy::Strip), spelled).as_deref(), Ok(r#"{"k":["ab",1]}"#));
    let refused = bound(json(InvisiblePolicy::Reject), spelled).expect_err("it is refused");
    assert!(refused.contains("U+"), "{refused}");
    let mut list = ArgumentDefinition::default().kind(ArgumentType::List);
    assert_eq!(bound(list.clone(), r#"["a\u0007b","c"]"#).as_deref(), Ok(r#"["ab","c"]"#));
    list.constraints.get_or_insert_default().min_length = Some(1);
    let refused = bound(list, r#"["\u0007"]"#).expect_err("nothing is left of the item");
    assert!(refused.contains("1 character or more"), "{refused}");
}

#[test]
fn value_stripped_to_nothing_counts_as_absent() {
    assert_eq!(bound(ArgumentDefinition::default().default_value("x"), "\u{200b}").as_deref(), Ok("x"));
    assert_eq!(bound(ArgumentDefinition::default(), "\u{feff}\u{200b}").as_deref(), Ok("nothing"));
    assert_eq!(bound(ArgumentDefinition::default().required(), "\u{200b}").as_deref(), Ok(""));
    assert_eq!(bound(ArgumentDefinition::default().kind(ArgumentType::Integer), "4\u{200b}2").as_deref(), Ok("42"));
}

#[test]
fn policy_change_applies_to_unchanged_prompts() {
    let definitions = |invisible| Definitions {
        prompts: vec![PromptDefinition::template("it", "{{ a }}").argument(ArgumentDefinition::new("a")).into()],
        policy: Policy { invisible, ..Policy::default() },
        ..Definitions::default()
    };
    let raw = || RawArguments::from_iter([("a", "x\u{202e}")]);
    let first = check(definitions(InvisiblePolicy::Strip), None).catalog;
    assert_eq!(first.find("it").expect("it is there").bind(&raw(), 100).expect("binds").text("a"), "x");
    let second = check(definitions(InvisiblePolicy::Reject), Some(&first)).catalog;
    assert!(second.find("it").expect("it is there").bind(&raw(), 100).is_err());
}
