//! Prompts made of others: partials with parameters, macros, and whole prompts.

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

fn render(catalog: &Catalog, name: &str, given: &[(&str, &str)]) -> Result<Vec<String>, RenderError> {
    let prompt = catalog.find(name).unwrap_or_else(|| panic!("there is no {name}"));
    let bound = prompt.bind(&RawArguments::from_iter(given.iter().copied()), 1 << 20).expect("it is complete");
    let parts = prompt.render(catalog.render_context(), &bound)?;
    Ok(parts.iter().map(said).collect())
}

fn said(part: &Part) -> String {
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
fn another_prompts_messages_come_in_with_their_roles() {
    let greet = prompt("greet", "Hi {{ who }}.{{ role(\"assistant\") }}Hello.")
        .argument(ArgumentDefinition::new("who").required());
    let outer = prompt("outer", "{{ role('assistant') }}One.{{ prompt('greet', who=name) }}Two.")
        .argument(ArgumentDefinition::new("name"));
    let checked = checked([outer, greet]);
    assert_eq!(faults(&checked), Vec::<String>::new());
    let said = render(&checked.catalog, "outer", &[("name", "{{ Ada }}")]).expect("it renders");
    assert_eq!(said, ["a: One.", "u: Hi {{ Ada }}.", "a: Hello.", "a: Two."]);
}

#[test]
fn its_arguments_are_checked_when_they_are_written_out_and_again_when_they_are_given() {
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
                "the prompt `count` does not take this: `n` has to be a whole number, such as 42".into()
            ),
            (Code::InvalidCall, "<bad>:1:34".into(), "the prompt `count` has no argument `tag`".into()),
            (Code::InvalidCall, "<bad>:1:51".into(), "the prompt `count` needs the argument `n`".into()),
            (Code::MissingPrompt, "<bad>:1:72".into(), "there is no prompt `cuont` in the library".into()),
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
fn circles_are_found_and_named() {
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
    assert_eq!(
        circles,
        [
            "prompts bring each other in in a circle: `a` → `b` → `c` → `a`",
            "prompts bring each other in in a circle: `d` → `d`",
        ]
    );
    let names: Vec<&str> = checked.catalog.prompts().iter().map(|prompt| prompt.name().as_str()).collect();
    assert_eq!(names, ["e", "f"]);
}

#[test]
fn prompts_stand_in_each_other_only_so_deep() {
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
    // However long it is, following it ends.
    assert!(!chain(3_000).diagnostics.is_empty());
}

#[test]
fn the_budget_is_one_for_all() {
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
fn a_change_of_the_inner_prompt_reaches_the_outer_one() {
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
    // A broken inner prompt stays as it was, and with it the outer one.
    let fourth = check(of(prompt("inner", "{{ three }}")), Some(&third.catalog));
    assert_eq!(faults(&fourth).len(), 1);
    assert_eq!(render(&fourth.catalog, "outer", &[]).expect("it renders"), ["u: two"]);
    // One that is gone breaks the outer one, whose last good version stays.
    let fifth = check(Definitions::from_iter([outer.clone()]), Some(&fourth.catalog));
    assert_eq!(fifth.diagnostics[0].code, Code::MissingPrompt);
    assert_eq!(render(&fifth.catalog, "outer", &[]).expect("it renders"), ["u: two"]);
    assert!(fifth.catalog.find("inner").is_none());
}

#[test]
fn a_broken_prompt_cannot_be_brought_in() {
    let checked = checked([prompt("outer", "{{ prompt('inner') }}"), prompt("inner", "{{ x }}")]);
    let codes: Vec<Code> = checked.diagnostics.iter().map(|it| it.code).collect();
    assert_eq!(codes, [Code::UndeclaredArgument, Code::MissingPrompt]);
}

#[test]
fn a_prompt_in_code_and_a_computed_name_are_refused() {
    let code = PromptDefinition::new("code", |_| Ok(vec![Message::user("x")])).description("d");
    let checked = checked([
        code,
        prompt("a", "{{ prompt('code') }}"),
        prompt("b", "{{ prompt(x) }}{{ prompt() }}{{ prompt('a', 1) }}"),
    ]);
    let messages: Vec<&str> = checked.diagnostics.iter().map(|it| it.message.as_str()).collect();
    assert!(messages.contains(&"the prompt `code` is written in code and cannot be brought in"), "{messages:?}");
    assert!(messages.contains(&"the prompt to bring in has to be written out"), "{messages:?}");
    assert!(messages.contains(&"`prompt` needs the name of a prompt"), "{messages:?}");
    assert!(messages.contains(&"the arguments of a prompt are given by their names"), "{messages:?}");
}

#[test]
fn an_argument_may_be_called_prompt_where_the_function_is_not_used() {
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
fn no_value_can_bring_in_a_prompt() {
    let outer = prompt("outer", "{{ x }}{{ prompt('inner', y=x) }}").argument(ArgumentDefinition::new("x"));
    let inner = prompt("inner", "[{{ y }}]").argument(ArgumentDefinition::new("y"));
    let checked = checked([outer, inner]);
    for value in ["{{ prompt('inner') }}", "\u{fdd0}0:0\u{fdd1}", "prompt('inner')"] {
        let said = render(&checked.catalog, "outer", &[("x", value)]).expect("it renders");
        assert_eq!(said, [format!("u: {value}"), format!("u: [{value}]")]);
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
fn a_partial_takes_parameters_and_brings_in_prompts() {
    let said = with_partials(
        "{{ who }}{% with tone = 'kind', limit = 3 %}{% include '_tone.md' %}{% endwith %}",
        &[("_tone.md", " Be {{ tone }}, {{ limit }} words.{{ prompt('inner', x=tone) }}")],
    );
    assert_eq!(said.expect("it renders"), ["u: Ada Be kind, 3 words.", "u: inner kind"]);
}

#[test]
fn a_parameter_may_have_the_name_of_the_argument_that_it_is_given() {
    let said = with_partials(
        "{% with who = who | upper %}{% include '_x.md' %}{% endwith %}{{ who }}",
        &[("_x.md", "{{ who }} ")],
    );
    assert_eq!(said.expect("it renders"), ["u: ADA Ada"]);
    let prompts = vec![prompt("p", "{% with x = y, z = x %}{{ z }}{% endwith %}")];
    let checked = checked(prompts);
    assert_eq!(checked.diagnostics[0].message, "`y` is used but not declared as an argument");
    assert_eq!(checked.diagnostics.len(), 1);
}

#[test]
fn macros_of_a_partial_take_parameters() {
    let said = with_partials(
        "{% from '_macros.md' import bullet %}{{ bullet(who) }}{{ bullet('Bob', mark='*') }}",
        &[("_macros.md", "{% macro bullet(text, mark='-') %}{{ mark }} {{ text }}\n{% endmacro %}")],
    );
    assert_eq!(said.expect("it renders"), ["u: - Ada\n* Bob"]);
}

#[test]
fn what_a_partial_needs_and_is_not_given_is_an_error() {
    let partials = [("_tone.md".to_owned(), SourceText::new("_tone.md", "{{ tone }}"))];
    let prompts = vec![prompt("p", "{% with limit = 3 %}{% include '_tone.md' %}{% endwith %}")];
    let checked = check(Definitions { partials: partials.into(), ..Definitions::from_iter(prompts) }, None);
    assert_eq!(checked.diagnostics[0].code, Code::UndeclaredArgument);
}
