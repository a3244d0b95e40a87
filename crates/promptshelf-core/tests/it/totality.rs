//! A template that the check accepts renders for every set of values that the check allows.

use promptshelf_core::{
    ArgumentDefinition, ArgumentType, Catalog, ContentBlock, Definitions, Message, Part, Prompt, PromptDefinition,
    RawArguments, RenderError, TemplateWord, TemplateWords, check,
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

/// Limits, and files and URIs that a value names, are no failures of the template. What a function inserts must stay whole.
fn rendered(catalog: &Catalog, prompt: &Prompt, given: &[(&str, &str)]) -> Result<(), String> {
    let bound =
        prompt.bind(&RawArguments::from_iter(given.iter().copied()), 1 << 20).map_err(|error| format!("{error:?}"))?;
    match prompt.render(catalog.render_context(), &bound) {
        Ok(_) | Err(RenderError::OverBudget(_) | RenderError::Rejected(_)) => Ok(()),
        Err(RenderError::TemplateFailed(message)) if message.starts_with("the result of role()") => Ok(()),
        Err(error) => Err(format!("{error:?}")),
    }
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
            for TemplateWord { name, .. } in TemplateWords::ALL.filters {
                renders_for_all(&format!("a {{{{ x | {name}{arguments} }}}}"), *kind, &mut failures);
            }
            for TemplateWord { name, .. } in TemplateWords::ALL.tests {
                renders_for_all(&format!("a {{% if x is {name}{arguments} %}}b{{% endif %}}"), *kind, &mut failures);
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// Expressions with each operator, in which `{a}` and `{b}` are operands.
const OPERATIONS: &[&str] = &[
    "{a} + {b}",
    "{a} - {b}",
    "{a} * {b}",
    "{a} / {b}",
    "{a} // {b}",
    "{a} % {b}",
    "{a} ** {b}",
    "-{a}",
    "{a} ~ {b}",
    "{a} == {b}",
    "{a} != {b}",
    "{a} < {b}",
    "{a} <= {b}",
    "{a} > {b}",
    "{a} >= {b}",
    "{a} < {b} < {a}",
    "{a} in {b}",
    "{a} not in {b}",
    "{a} and {b}",
    "{a} or {b}",
    "not {a}",
    "{a} if {b} else {a}",
    "{a}[{b}]",
    "{a}[0]",
    "{a}['a']",
    "{a}.a",
    "{a}[{b}:]",
    "{a}[:{b}]",
    "{a}[1:2]",
    "{a}[::{b}]",
    "{a}[::-1]",
    "[{a}, {b}]",
    "{'k': {a}, {b}: 1}",
    "range({a})",
    "range(1, {a})",
    "dict({a})",
    "{a} | default({b})",
    "{a} is in({b})",
    "loop.index + {a}",
    "{a}.upper()",
    "{a}({b})",
    "m({a})",
    "m({a}, {b})",
    "m({a}, {b}, 1)",
    "m(q={a})",
    "m(z={a})",
    "loop({a})",
    "loop.cycle({a})",
    "loop.changed({a}, {b})",
    "m(*{a})",
    "m(**{a})",
    "{a}(*{b}, **{a})",
    "dict(**{a})",
    "namespace({a})",
    "namespace(**{a})",
    "range(*{a})",
    "range({a}, {b}, {a})",
    "loop.cycle(*{a})",
    "loop.changed()",
    "loop()",
    "loop.unknown({a})",
    "loop[{a}]",
    "caller({a})",
    "{a} is divisibleby {b}",
    "{a} + {b} is odd",
    "[{a}]|map({b})|list",
    "{a}[{b}:{a}:{b}]",
    "{{a} or {b}: {a}}",
    "attach({a})",
    "attach({a}, mime={b}, uri={a}, priority={b}, audience={a})",
    "link({a}, title={b}, name={a}, description={b}, mime={a})",
    "link('https://example.org/', priority={a}, audience={b}, title={a}, name={b})",
    "role('user', priority={a}, audience={b})",
    "attach('https://example.org/', **{a})",
];

const OPERANDS: &[&str] =
    &["x", "other", "x.a", "x[0]", "1", "0", "2.5", "'t'", "[1]", "none", "true", "(x)", "(x | length)"];

/// Templates in which `{e}` is an expression.
const USES: &[&str] = &[
    "a {{ {e} }}",
    "a {% if {e} %}b{% endif %}",
    "a {% for i in {e} %}{{ i }}{{ loop.index }}{% else %}n{% endfor %}",
    "a {% for i in {e} if i > 1 %}{{ i }}{% endfor %}",
    "a {% for i, j in {e} %}{{ i }}{{ j }}{% endfor %}",
    "a {% for (i, j), k in {e} %}{{ i }}{{ j }}{{ k }}{% endfor %}",
    "a {% for i in {e} recursive %}{{ i }}{{ loop(i.a) }}{% endfor %}",
    "a {% set v = {e} %}{{ v }}",
    "a {% set v, w = {e} %}{{ v }}{{ w }}",
    "a {% with v = {e} %}{{ v }}{% endwith %}",
    "a {% set n = namespace(v=1) %}{% set n.v = {e} %}{{ n.v }}",
    "a {% macro m(p, q={e}) %}{{ p }}{{ q }}{% endmacro %}{{ m({e}) }}{{ m() }}{{ {e} }}",
    "a {% macro m(p, q) %}{{ p }}{{ q }}{% endmacro %}{% set f = {e} %}{{ f(1) }}",
    "a {% macro m(p, q) %}{{ p }}{{ caller(p) }}{% endmacro %}{% call(y) m({e}) %}{{ y }}{% endcall %}",
    "a {% for i in [1, 2] recursive %}{{ i }}{{ {e} }}{% endfor %}",
    "a {{ prompt }}{{ ({e}) | join(', ') }}",
    "a {% set n.v = {e} %}{{ n.v }}{% set x.v %}{{ {e} }}{% endset %}",
    "a {% set n = {e} %}{% set n.v, w = {e} %}{% set n.v.w = 1 %}",
    "a {% if x %}{% macro m(p) %}{{ loop.index }}{% endmacro %}{% endif %}{{ m({e}) }}{% call m({e}) %}{% endcall %}",
    "a {% for i in [1] recursive %}{% else %}{{ loop({e}) }}{% endfor %}{{ {e} }}",
    "a {% for i in [1] recursive %}{% if i %}{{ loop({e}) }}{% endif %}{% for j in [2] %}{{ loop({e}) }}{% endfor %}{% endfor %}",
    "a {% filter upper %}{{ {e} }}{% endfilter %}{% do m({e}) %}{% with (v, w) = {e}, u = v %}{{ u }}{% endwith %}",
];

/// What the templates call and assign to.
const PREFACE: &str = "{% macro m(p, q) %}{{ p }}{{ q }}{{ caller(p) if q }}{% endmacro %}{% set n = namespace(v=1) %}";

fn with_operands(template: &str, a: &str, b: &str) -> String {
    template.replace("{a}", a).replace("{b}", b)
}

// req: S-383
#[test]
fn each_operator_and_use_renders_for_all_values() {
    let mut failures = Vec::new();
    use ArgumentType::{Integer, Json, List, String};
    for kind in &[String, Integer, List, Json] {
        for operation in OPERATIONS {
            let (mut all, is_binary) = ("a ".to_owned(), operation.contains("{b}"));
            for operand in OPERANDS.iter().take(if is_binary { OPERANDS.len() } else { 1 }) {
                for (a, b) in [("x", *operand), (*operand, "x")] {
                    let one = format!("{PREFACE}{{{{ {} }}}}", with_operands(operation, a, b));
                    if accepted(&one, *kind).is_some() {
                        all.push_str(&one);
                    }
                }
            }
            renders_for_all(&all, *kind, &mut failures);
        }
        for template in USES {
            for expression in OPERANDS.iter().copied().chain(["x | items", "x | dictsort", "-x", "x + 1", "other[1:]"])
            {
                renders_for_all(&format!("{PREFACE}{}", template.replace("{e}", expression)), *kind, &mut failures);
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// Returns the text of a template with the integers `a` of 7 and `b` of 2, the text `t`, and nothing for `n`.
fn text_of(template: &str) -> String {
    let integer = |name: &str| ArgumentDefinition { kind: ArgumentType::Integer, ..ArgumentDefinition::new(name) };
    let prompt = PromptDefinition::template("p", format!("={template}="));
    let prompt = prompt.argument(integer("a")).argument(integer("b")).argument(integer("n"));
    let prompt = prompt.argument(ArgumentDefinition::new("t"));
    let checked = check(Definitions::from_iter([prompt]), None);
    let found = checked.catalog.find("p").unwrap_or_else(|| panic!("{template}: {:?}", checked.diagnostics));
    let bound = found.bind(&RawArguments::from_iter([("a", "7"), ("b", "2"), ("t", "text")]), 1 << 20).expect("values");
    let parts = found.render(checked.catalog.render_context(), &bound).expect("a rendering");
    let [Part::Message(Message { content: ContentBlock::Text(text), .. })] = &parts[..] else { panic!("{parts:?}") };
    text.text[1..text.text.len() - 1].to_owned()
}

#[test]
fn operators_calculate_and_give_nothing_where_they_do_not_fit() {
    for (template, expected) in [
        ("{{ a + b * 3 - 1 }}", "12"),
        ("{{ (a + b) * 3 }}", "27"),
        ("{{ ((a) + (b)) * (3) - (a - (b)) }}", "22"),
        ("{{ a - b - 1 }} {{ a - (b - 1) }}", "4 6"),
        ("{{ a / b }} {{ a // b }} {{ a % b }} {{ -a // b }} {{ -a % b }} {{ a % -b }}", "3.5 3 1 -4 1 -1"),
        ("{{ b ** 3 ** 2 }} {{ b ** -1 }} {{ -b ** 2 }} {{ (-b) ** 2 }}", "64 0.5 4 4"),
        ("{{ a+b }}{{ -a }} {{ a +-b }} {{ a--b }} {{ -(a) }} {{ -a|abs }}", "9-7 5 9 -7 7"),
        ("{{ 't' + t + 'x' }} {{ t ~ (a + b) }} {{ '-' * 3 }} {{ b * t }}", "ttextx text9 --- texttext"),
        ("{{ [a] + [b] }} {{ [a] * 2 }} {{ ([a] + [b])[1] + 1 }}", "[7,2] [7,7] 3"),
        ("{{ a + b | abs }} {{ (a - 9) | abs }} {{ a + 1 if b > 1 else b }}", "9 2 8"),
        ("{{ a+1 == 8 and 2+b < a }} {{ a in [b+5] }} {{ a not in [1] }}", "true true true"),
        ("{{ 0.1 + 0.2 > 0.3 }} {{ 7.5 // 2 }} {{ 7.5 % 2 }} {{ true + 1 }}", "true 3 1.5 2"),
        ("{% for i in [1, 2] %}{{ loop.index + a }},{% endfor %}", "8,9,"),
        ("{% for k, v in {'x': a + 1}|items %}{{ k }}{{ v }}{% endfor %}{% set p, q = (a, b) %}{{ p - q }}", "x85"),
        (
            "{{ 1 in a|list }}{{ a in [a]|list }} {{ (b if a < 1 else 3) + 1 }} {{ (not a) + 1 }} {{ 1 + (a > 1) }}",
            "falsetrue 4 1 2",
        ),
        (
            "{% for i in not a %}x{% endfor %}{% for i in [a] if not i in [b] %}{{ i }}{% endfor %}{{ not 1 not in [a + b - 8] }}",
            "7true",
        ),
        ("{{ ---a }} {{ -(-a) }} {{ - -(a + b) }} {{ a - -(-b) }}", "-7 7 9 5"),
        (
            "{{ (a + b)|string ~ 'x' }} {{ [a|string + 'y', (a|string)[0:1]] }} {{ a + b if not n else b }}",
            "9x [\"7y\",\"7\"] 9",
        ),
        ("{{ {'k': a - b}.k }} {{ [a, b][a - 6] }} {{ t[a - 6:b] }} {{ t[::-1] }}", "5 2 e txet"),
        (
            "{{ t[1:3] }} {{ t[:-1] }} {{ t[-2:] }} {{ t[::2] }} {{ t[3:0:-1] }} {{ t[1:3:-1] }}|{{ t[5:] }}",
            "ex tex xt tx txe |",
        ),
        (
            "{{ [a, b, 1][1:] }} {{ [a, b, 1][::-1] }} {{ [][::-1] }} {{ ([a] + [b])[:1] }} {{ [a][t:n:0] }}",
            "[2,1] [1,2,7] [] [7] [7]",
        ),
        ("{{ {'k': t[1:]}.k[:1] }} {{ (t)[{'a': 1}.a:b+1] }}{{ n[1:] }}{{ a[1:] }}", "e ex"),
        (
            "{% for i in range(b, a, b) %}{{ i }}{% endfor %} {{ range(3)|list }} {{ range(t)|list }} {{ range(2, 0, -1)|list }}",
            "246 [0,1,2] [] [2,1]",
        ),
        ("{{ 9223372036854775807 * 2 }}", "18446744073709551614"),
        ("{{ n + 1 }}{{ a + n }}{{ -n }}{{ n * 2 }}{{ a / 0 }}{{ a % 0 }}{{ a + t }}{{ 10 ** 400 }}", ""),
        ("{% for i in a %}x{% else %}none{% endfor %}{% for i in n %}x{% endfor %}{{ 1 in a }}", "nonefalse"),
        ("{% for i, j in [[1, 2], 3, [4]] %}{{ i }}{{ j }};{% endfor %}", "12;;;"),
    ] {
        assert_eq!(text_of(template), expected, "{template}");
    }
}

#[test]
fn calculations_with_other_types_are_mistakes_of_the_template() {
    use ArgumentType::{Date, Integer, Json, List, Number, String, Text};
    for (kinds, templates) in [
        (&[String, Text, Date, List][..], &["x - 1", "2 / x", "x % 2", "-x", "x + 1", "other // x"][..]),
        (&[Integer, Number, List], &["'a' + x", "x + 'a'"]),
    ] {
        for (kind, template) in kinds.iter().flat_map(|kind| templates.iter().map(move |template| (kind, template))) {
            assert!(accepted(&format!("a {{{{ {template} }}}}"), *kind).is_none(), "{template} {}", kind.as_str());
        }
    }
    for (kind, template) in [
        (String, "{{ x + 'a' }}{{ x * 3 }}{{ x | int - 1 }}{{ (x | length) / 2 }}"),
        (Json, "{{ x - 1 }}{{ x + 'a' }}"),
        (Integer, "{{ x - 1 }}{{ x ~ 'a' }}{{ -x }}"),
        (String, "{% set x = 1 %}{{ x - 1 }}{% for other in [1] %}{{ other - 1 }}{% endfor %}"),
    ] {
        assert!(accepted(template, kind).is_some(), "{template}");
    }
}

#[test]
fn calls_that_never_give_anything_are_mistakes_of_the_template() {
    const MACRO: &str = "{% macro m(p, q=1) %}{{ p }}{{ q }}{{ caller() if caller }}{% endmacro %}";
    for text in [
        "{{ m(1, 2, 3) }}",
        "{{ m(z=1) }}",
        "{{ m(1, p=2) }}",
        "{{ x.upper() }}",
        "{{ self.b() }}",
        "{{ super() }}",
        "{{ attach(*x) }}",
        "{{ attach('a.txt')[1:] }}",
        "{% call m(1, 2, 3) %}{% endcall %}",
    ] {
        assert!(accepted(&format!("{MACRO}{text}"), ArgumentType::Json).is_none(), "{text}");
    }
    for text in [
        "{{ m() }}{{ m(1, q=2) }}{{ dict(x, a=1) }}{{ namespace(a=1) }}{{ m(*x) }}",
        "{% for i in x %}{{ loop.cycle('a', 'b') }}{% endfor %}{% call m(1) %}a{% endcall %}",
        "{{ self.b() }}{% block b %}x{% endblock %}{% for i in x recursive %}{{ loop(i) }}{% endfor %}",
    ] {
        assert!(accepted(&format!("{MACRO}{text}"), ArgumentType::Json).is_some(), "{text}");
    }
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
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn chains_of_filters_render_for_all_values(
        filters in prop::collection::vec(prop::sample::select(TemplateWords::ALL.filters), 1..4),
        arguments in prop::collection::vec(prop::sample::select(ARGUMENTS), 4),
        kind in prop::sample::select(KINDS),
    ) {
        let chain: String = filters.iter().zip(&arguments).map(|(filter, arguments)| format!(" | {}{arguments}", filter.name)).collect();
        let mut failures = Vec::new();
        renders_for_all(&format!("a {{{{ x{chain} }}}}{{{{ x.y{chain} }}}}{{% if x{chain} %}}b{{% endif %}}"), kind, &mut failures);
        prop_assert!(failures.is_empty(), "{}", failures.join("\n"));
    }

    // req: S-383
    #[test]
    fn nested_operations_render_for_all_values(
        parts in prop::collection::vec(
            (prop::sample::select(OPERATIONS), prop::sample::select(OPERANDS), any::<bool>()), 1..4),
        used in prop::sample::select(USES),
        kind in prop::sample::select(KINDS),
    ) {
        let expression = parts.iter().fold("x".to_owned(), |inner, (operation, operand, is_left)| {
            let inner = format!("({inner})");
            if *is_left { with_operands(operation, &inner, operand) } else { with_operands(operation, operand, &inner) }
        });
        let mut failures = Vec::new();
        renders_for_all(&format!("{PREFACE}{}", used.replace("{e}", &expression)), kind, &mut failures);
        prop_assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}
