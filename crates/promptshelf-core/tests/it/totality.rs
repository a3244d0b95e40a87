//! A template that the check accepts renders for every set of values that the check allows.

use promptshelf_core::{
    ArgumentDefinition, ArgumentType, Catalog, Definitions, Prompt, PromptDefinition, RawArguments, TemplateWords,
    check,
};
use proptest::prelude::*;

/// Arguments of filters and tests, of which each one takes some.
const ARGUMENTS: &[&str] = &[
    "",
    "(1)",
    "(0)",
    "(\"a\")",
    "(\"a\", \"b\")",
    "(2, \"x\")",
    "(attribute=\"a\")",
    "(\"upper\")",
    "(other)",
    "(none)",
    "([1, \"a\"])",
];

/// Values of each type.
fn values(kind: ArgumentType) -> &'static [&'static str] {
    match kind {
        ArgumentType::String => &["", "a", "12", "-1.5", "two words", "{{ x }}"],
        ArgumentType::Text => &["one\ntwo\n", "```\nx"],
        ArgumentType::Integer => &["0", "-9223372036854775808", "7"],
        ArgumentType::Number => &["0.5", "-1e300"],
        ArgumentType::Boolean => &["true", "false"],
        ArgumentType::Date => &["2026-07-28"],
        ArgumentType::List => &["[]", "a,b", "1\n2"],
        ArgumentType::Json => &[
            "null",
            "1",
            "\"a\"",
            "[]",
            "{}",
            "[1,\"a\",null]",
            "{\"a\":1,\"b\":[{}]}",
            "[{\"a\":1},{\"a\":\"x\"},{}]",
            "[[1,2],[3]]",
            "true",
        ],
    }
}

const KINDS: &[ArgumentType] = &[
    ArgumentType::String,
    ArgumentType::Text,
    ArgumentType::Integer,
    ArgumentType::Number,
    ArgumentType::Boolean,
    ArgumentType::Date,
    ArgumentType::List,
    ArgumentType::Json,
];

/// Returns the prompt of a template with the optional arguments `x` and `other`, if the check accepts it.
fn accepted(template: &str, kind: ArgumentType) -> Option<Catalog> {
    let argument = |name: &str| ArgumentDefinition { kind, ..ArgumentDefinition::new(name) };
    let prompt = PromptDefinition::template("p", template).argument(argument("x")).argument(argument("other"));
    Some(check(Definitions::from_iter([prompt]), None).catalog).filter(|catalog| catalog.find("p").is_some())
}

fn rendered(catalog: &Catalog, prompt: &Prompt, given: &[(&str, &str)]) -> Result<(), String> {
    let bound =
        prompt.bind(&RawArguments::from_iter(given.iter().copied()), 1 << 20).map_err(|error| format!("{error:?}"))?;
    prompt.render(catalog.render_context(), &bound).map(drop).map_err(|error| error.to_string())
}

fn renders_for_all(template: &str, kind: ArgumentType, failures: &mut Vec<String>) {
    let Some(catalog) = accepted(template, kind) else { return };
    let prompt = catalog.find("p").expect("it is there");
    let mut given: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
    for value in values(kind) {
        given.push(vec![("x", value)]);
        given.push(vec![("x", value), ("other", value)]);
        given.push(vec![("other", value)]);
    }
    for given in given {
        if let Err(error) = rendered(&catalog, prompt, &given) {
            failures.push(format!("{template} as {} with {given:?}: {error}", kind.as_str()));
        }
    }
}

// req: S-257
#[test]
fn each_filter_and_test_renders_for_all_values() {
    let mut failures = Vec::new();
    for kind in KINDS {
        for arguments in ARGUMENTS {
            for filter in TemplateWords::ALL.filters {
                renders_for_all(&format!("a {{{{ x | {filter}{arguments} }}}}"), *kind, &mut failures);
            }
            for test in TemplateWords::ALL.tests.iter().filter(|test| test.starts_with(char::is_alphabetic)) {
                renders_for_all(&format!("a {{% if x is {test}{arguments} %}}b{{% endif %}}"), *kind, &mut failures);
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn misused_filters_are_mistakes_of_the_template() {
    for template in [
        "{{ x | replace }}",
        "{{ x | replace('', 'a') }}",
        "{{ x | xml('a b') }}",
        "{{ x | indent('a') }}",
        "{{ x is divisibleby }}",
        "{{ x | bool(x) }}",
    ] {
        assert!(accepted(template, ArgumentType::Json).is_none(), "{template}");
    }
    for template in [
        "{{ x | map('upper') }}",
        "{{ x | map(attribute='name') }}",
        "{{ x | groupby('a') }}",
        "{{ x | selectattr('done') }}",
        "{{ x | attr('y') }}",
    ] {
        assert!(accepted(template, ArgumentType::Json).is_some(), "{template}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn chains_of_filters_render_for_all_values(
        filters in prop::collection::vec(prop::sample::select(TemplateWords::ALL.filters), 1..4),
        arguments in prop::collection::vec(prop::sample::select(ARGUMENTS), 4),
        kind in prop::sample::select(KINDS),
    ) {
        let chain: String = filters.iter().zip(&arguments).map(|(filter, arguments)| format!(" | {filter}{arguments}")).collect();
        let mut failures = Vec::new();
        renders_for_all(&format!("a {{{{ x{chain} }}}}{{{{ x.y{chain} }}}}{{% if x{chain} %}}b{{% endif %}}"), kind, &mut failures);
        prop_assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}
