//! Composition: partials with parameters, macros, and calls of other prompts.

use std::sync::Arc;

use promptshelf_core::{
    ArgumentDefinition, ArgumentType, Budget, Catalog, Checked, Code, ContentBlock, Definitions, Message, Part, Policy,
    Prompt, PromptDefinition, RawArguments, RenderError, Role, SourceText, check,
};

fn prompt(name: &str, text: &str) -> PromptDefinition {
    PromptDefinition::template(name, text).description("d")
}

fn checked(prompts: impl IntoIterator<Item = PromptDefinition>) -> Checked {
    check(Definitions::from_iter(prompts), None)
}

fn render(catalog: &Catalog, name: &str, raw: &[(&str, &str)]) -> Result<Vec<String>, RenderError> {
    let prompt = catalog.find(name).unwrap_or_else(|| panic!("there is no {name}"));
    let bound = prompt.bind(&RawArguments::from_iter(raw.iter().copied()), 1 << 20).expect("it is complete");
    let parts = prompt.render(catalog.render_context(), &bound)?;
    Ok(parts.iter().map(shown).collect())
}

fn shown(part: &Part) -> String {
    match part {
        Part::Message(Message { role, content: ContentBlock::Text(text) }) => {
            format!("{}: {}", if *role == Role::User { "u" } else { "a" }, text.text)
        }
        other => format!("{other:?}"),
    }
}

fn faults(checked: &Checked) -> Vec<String> {
    checked.diagnostics.iter().map(ToString::to_string).collect()
}

#[test]
fn called_prompt_keeps_its_roles() {
    let greet = prompt("greet", "Hi {{ who }}.{{ role(\"assistant\") }}Hello.")
        .argument(ArgumentDefinition::new("who").required());
    let outer = prompt("outer", "{{ role('assistant') }}One.{{ prompt('greet', who=name) }}Two.")
        .argument(ArgumentDefinition::new("name"));
    let checked = checked([outer, greet]);
    assert_eq!(faults(&checked), Vec::<String>::new());
    let rendered = render(&checked.catalog, "outer", &[("name", "{{ Ada }}")]).expect("it renders");
    assert_eq!(rendered, ["a: One.", "u: Hi {{ Ada }}.", "a: Hello.", "a: Two."]);
}

#[test]
fn call_arguments_are_checked_statically_and_when_rendered() {
    let count = prompt("count", "{{ n + 1 }} {{ tags | length }}")
        .argument(ArgumentDefinition::new("n").kind(ArgumentType::Integer).required())
        .argument(ArgumentDefinition::new("tags").kind(ArgumentType::List).default_value("x"));
    let good = prompt("good", "{{ prompt('count', n=41, tags=['a', 'b']) }}{{ prompt('count', n=text) }}")
        .argument(ArgumentDefinition::new("text"));
    let bad = prompt("bad", "{{ prompt('count', n='many', tag='a') }}{{ prompt('count') }}{{ prompt('cuont', n=1) }}");
    let checked = checked([count, good, bad]);
    let found: Vec<_> =
        checked.diagnostics.iter().map(|it| (it.code, it.location.to_string(), it.message.clone())).collect();
    assert_eq!(
        found,
        [
            (
                Code::InvalidCall,
                "<bad>:1:22".into(),
                "invalid argument of the prompt `count`: `n` must be a whole number, such as 42".into()
            ),
            (Code::InvalidCall, "<bad>:1:34".into(), "the prompt `count` has no argument `tag`".into()),
            (Code::InvalidCall, "<bad>:1:51".into(), "the prompt `count` requires the argument `n`".into()),
            (Code::MissingPrompt, "<bad>:1:72".into(), "prompt `cuont` not found in the library".into()),
        ]
    );
    assert_eq!(checked.diagnostics[1].help.as_deref(), Some("did you mean `tags`?"));
    assert_eq!(checked.diagnostics[3].help.as_deref(), Some("did you mean `count`?"));
    assert_eq!(render(&checked.catalog, "good", &[("text", "1")]).expect("it renders"), ["u: 42 2", "u: 2 1"]);
    let error = render(&checked.catalog, "good", &[("text", "x")]).expect_err("it is no number");
    assert!(
        matches!(&error, RenderError::Rejected(reason) if reason.contains("count") && reason.contains("`n`")),
        "{error}"
    );
}

#[test]
fn circular_calls_are_named() {
    let checked = checked([
        prompt("a", "A{{ prompt('b') }}"),
        prompt("b", "B{{ prompt('c') }}"),
        prompt("c", "C{{ prompt('a') }}"),
        prompt("d", "{{ prompt('d') }}"),
        prompt("e", "{{ prompt('f') }}"),
        prompt("f", "F"),
    ]);
    let circles: Vec<_> = checked
        .diagnostics
        .iter()
        .filter(|it| it.code == Code::CircularInclude)
        .map(|it| it.message.as_str())
        .collect();
    assert_eq!(circles, ["circular call of prompts: `a` → `b` → `c` → `a`", "circular call of prompts: `d` → `d`",]);
    let names: Vec<&str> = checked.catalog.prompts().iter().map(|prompt| prompt.name().as_str()).collect();
    assert_eq!(names, ["e", "f"]);
}

#[test]
fn call_depth_is_limited() {
    let chain = |depth: usize| {
        let link = |number: usize| match number {
            0 => prompt("p0", "end"),
            _ => prompt(&format!("p{number}"), &format!("{{{{ prompt('p{}') }}}}", number - 1)),
        };
        checked((0..depth).rev().map(link))
    };
    let deepest = Budget::default().include_depth;
    assert_eq!(faults(&chain(deepest)), Vec::<String>::new());
    let deeper = chain(deepest + 1);
    assert_eq!(deeper.diagnostics[0].code, Code::CircularInclude);
    assert_eq!(deeper.catalog.prompts().len(), deepest);
    // The check terminates for a chain of any length.
    assert!(!chain(3_000).diagnostics.is_empty());
}

#[test]
fn budget_is_shared_with_called_prompts() {
    let long = prompt("long", "{% for i in range(1000) %}x{% endfor %}");
    let outer = prompt("outer", "{% for i in range(50) %}{{ prompt('long') }}{% endfor %}");
    let budget = |budget| Policy { budget, ..Policy::default() };
    let of = |policy| check(Definitions { policy, ..Definitions::from_iter([long.clone(), outer.clone()]) }, None);
    let fuel = of(budget(Budget { fuel: 20_000, ..Budget::default() }));
    assert!(render(&fuel.catalog, "long", &[]).is_ok());
    assert!(matches!(render(&fuel.catalog, "outer", &[]), Err(RenderError::OverBudget(_))));
    let output = of(budget(Budget { output_bytes: 20_000, ..Budget::default() }));
    assert!(matches!(render(&output.catalog, "outer", &[]), Err(RenderError::OverBudget(_))));
    let messages = of(budget(Budget { messages: 10, ..Budget::default() }));
    assert!(matches!(render(&messages.catalog, "outer", &[]), Err(RenderError::OverBudget(_))));
}

#[test]
fn change_of_called_prompt_reaches_its_caller() {
    let outer = prompt("outer", "{{ prompt('inner') }}");
    let first = checked([outer.clone(), prompt("inner", "one")]);
    let same = first.catalog.find("inner").expect("it is there").source();
    let mut unchanged = prompt("inner", "one");
    unchanged.origin = promptshelf_core::Origin::new(Arc::clone(same));
    let of = |inner: PromptDefinition| Definitions::from_iter([outer.clone(), inner]);
    let find =
        |checked: &Checked, name: &str| -> Arc<Prompt> { Arc::clone(checked.catalog.find(name).expect("it is there")) };

    let second = check(of(unchanged), Some(&first.catalog));
    assert!(Arc::ptr_eq(&find(&first, "outer"), &find(&second, "outer")));
    let third = check(of(prompt("inner", "two")), Some(&second.catalog));
    assert_eq!(render(&third.catalog, "outer", &[]).expect("it renders"), ["u: two"]);
    // A broken inner prompt keeps its last good version, and so does the outer one.
    let fourth = check(of(prompt("inner", "{{ three }}")), Some(&third.catalog));
    assert_eq!(faults(&fourth).len(), 1);
    assert_eq!(render(&fourth.catalog, "outer", &[]).expect("it renders"), ["u: two"]);
    // Its removal breaks the outer one, which keeps its last good version.
    let fifth = check(Definitions::from_iter([outer.clone()]), Some(&fourth.catalog));
    assert_eq!(fifth.diagnostics[0].code, Code::MissingPrompt);
    assert_eq!(render(&fifth.catalog, "outer", &[]).expect("it renders"), ["u: two"]);
    assert!(fifth.catalog.find("inner").is_none());
}

#[test]
fn broken_prompt_cannot_be_called() {
    let checked = checked([prompt("outer", "{{ prompt('inner') }}"), prompt("inner", "{{ x }}")]);
    let codes: Vec<Code> = checked.diagnostics.iter().map(|it| it.code).collect();
    assert_eq!(codes, [Code::UndeclaredArgument, Code::MissingPrompt]);
}

#[test]
fn function_prompt_and_computed_name_are_rejected() {
    let code = PromptDefinition::new("code", |_| Ok(vec![Message::user("x")])).description("d");
    let checked = checked([
        code,
        prompt("a", "{{ prompt('code') }}"),
        prompt("b", "{{ prompt(x) }}{{ prompt() }}{{ prompt('a', 1) }}"),
    ]);
    let messages: Vec<&str> = checked.diagnostics.iter().map(|it| it.message.as_str()).collect();
    assert!(
        messages.contains(&"the prompt `code` is written in code and cannot be called from a template"),
        "{messages:?}"
    );
    assert!(messages.contains(&"the name of the called prompt must be a literal"), "{messages:?}");
    assert!(messages.contains(&"`prompt` requires the name of a prompt"), "{messages:?}");
    assert!(messages.contains(&"the arguments of a prompt must be named"), "{messages:?}");
}

#[test]
fn argument_may_be_named_prompt_if_the_function_is_unused() {
    let argument = || ArgumentDefinition::new("prompt");
    let checked = checked([
        prompt("improve", "Improve: {{ prompt }}").argument(argument()),
        prompt("both", "{{ prompt }}{{ prompt('improve') }}").argument(argument()),
    ]);
    assert_eq!(faults(&checked).len(), 1, "{:?}", faults(&checked));
    assert!(checked.diagnostics[0].message.contains("hides the function"));
    assert_eq!(render(&checked.catalog, "improve", &[("prompt", "x")]).expect("it renders"), ["u: Improve: x"]);
}

#[test]
fn values_cannot_call_prompts() {
    let outer = prompt("outer", "{{ x }}{{ prompt('inner', y=x) }}").argument(ArgumentDefinition::new("x"));
    let inner = prompt("inner", "[{{ y }}]").argument(ArgumentDefinition::new("y"));
    let checked = checked([outer, inner]);
    for value in ["{{ prompt('inner') }}", "\u{fdd0}0:0\u{fdd1}", "prompt('inner')"] {
        let rendered = render(&checked.catalog, "outer", &[("x", value)]).expect("it renders");
        assert_eq!(rendered, [format!("u: {value}"), format!("u: [{value}]")]);
    }
}

fn with_partials(text: &str, partials: &[(&str, &str)]) -> Result<Vec<String>, RenderError> {
    let partials = partials.iter().map(|(path, text)| ((*path).to_owned(), SourceText::new(*path, *text))).collect();
    let prompts = vec![
        prompt("p", text).argument(ArgumentDefinition::new("who").default_value("Ada")),
        prompt("inner", "inner {{ x }}").argument(ArgumentDefinition::new("x")),
    ];
    let checked = check(Definitions { partials, ..Definitions::from_iter(prompts) }, None);
    assert_eq!(faults(&checked), Vec::<String>::new());
    render(&checked.catalog, "p", &[])
}

#[test]
fn partial_takes_parameters_and_calls_prompts() {
    let rendered = with_partials(
        "{{ who }}{% with tone = 'kind', limit = 3 %}{% include '_tone.md' %}{% endwith %}",
        &[("_tone.md", " Be {{ tone }}, {{ limit }} words.{{ prompt('inner', x=tone) }}")],
    );
    assert_eq!(rendered.expect("it renders"), ["u: Ada Be kind, 3 words.", "u: inner kind"]);
}

#[test]
fn parameter_may_share_its_arguments_name() {
    let rendered = with_partials(
        "{% with who = who | upper %}{% include '_x.md' %}{% endwith %}{{ who }}",
        &[("_x.md", "{{ who }} ")],
    );
    assert_eq!(rendered.expect("it renders"), ["u: ADA Ada"]);
    let prompts = vec![prompt("p", "{% with x = y, z = x %}{{ z }}{% endwith %}")];
    let checked = checked(prompts);
    assert_eq!(checked.diagnostics[0].message, "`y` is used but not declared as an argument");
    assert_eq!(checked.diagnostics.len(), 1);
}

#[test]
fn partial_macros_take_parameters() {
    let rendered = with_partials(
        "{% from '_macros.md' import bullet %}{{ bullet(who) }}{{ bullet('Bob', mark='*') }}",
        &[("_macros.md", "{% macro bullet(text, mark='-') %}{{ mark }} {{ text }}\n{% endmacro %}")],
    );
    assert_eq!(rendered.expect("it renders"), ["u: - Ada\n* Bob"]);
}

#[test]
fn missing_parameter_of_a_partial_is_an_error() {
    let partials = [("_tone.md".to_owned(), SourceText::new("_tone.md", "{{ tone }}"))];
    let prompts = vec![prompt("p", "{% with limit = 3 %}{% include '_tone.md' %}{% endwith %}")];
    let checked = check(Definitions { partials: partials.into(), ..Definitions::from_iter(prompts) }, None);
    assert_eq!(checked.diagnostics[0].code, Code::UndeclaredArgument);
}
