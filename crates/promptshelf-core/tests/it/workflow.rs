//! Guided prompts: the order of forms, and mistakes in steps and conditions.

use promptshelf_core::{
    Answers, ArgumentDefinition, Code, Definitions, PromptDefinition, RawArguments, StepDefinition, Variables, check,
};

fn prompt(arguments: Vec<ArgumentDefinition>, text: &str) -> PromptDefinition {
    let prompt = PromptDefinition::template("guided", text).description("Asks");
    arguments.into_iter().fold(prompt, PromptDefinition::argument)
}

fn faults(prompt: PromptDefinition) -> Vec<(Code, String)> {
    let checked = check(Definitions::from_iter([prompt]), None);
    checked.diagnostics.into_iter().map(|diagnostic| (diagnostic.code, diagnostic.message)).collect()
}

fn step(number: u32) -> StepDefinition {
    StepDefinition { number, ..StepDefinition::default() }
}

#[test]
fn condition_uses_earlier_arguments_only() {
    let first = ArgumentDefinition::new("first").ask().when("second == \"x\" or frist");
    let second = ArgumentDefinition::new("second").ask();
    assert_eq!(
        faults(prompt(vec![first, second], "{{ first }}{{ second }}")),
        [
            (Code::InvalidCondition, "the condition uses `second`, which is not declared before `first`".to_owned()),
            (Code::InvalidCondition, "the condition uses the unknown argument `frist`".to_owned()),
        ]
    );
}

#[test]
fn condition_cannot_use_a_later_step() {
    let late = ArgumentDefinition::new("late").ask().step(2);
    let early = ArgumentDefinition::new("early").ask().when("late");
    assert_eq!(
        faults(prompt(vec![late, early], "{{ late }}{{ early }}")),
        [(
            Code::InvalidCondition,
            "`late` is asked for in a later step than `early`, whose condition uses it".to_owned()
        )]
    );
}

#[test]
fn invalid_condition_is_an_error() {
    let argument = ArgumentDefinition::new("a").ask().when("1 +");
    let found = faults(prompt(vec![argument], "{{ a }}"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, Code::InvalidCondition);
}

// req: I17, R-11
#[test]
fn form_that_asks_for_a_secret_warns() {
    let ask = |name: &str| prompt(vec![ArgumentDefinition::new(name).ask()], &format!("{{{{ {name} }}}}"));
    for secret in ["password", "db_password", "API_KEY", "client_secret", "accessToken"] {
        let codes: Vec<Code> = faults(ask(secret)).into_iter().map(|(code, _)| code).collect();
        assert_eq!(codes, [Code::AsksForSecret], "{secret}");
    }
    for open in ["token_count", "language", "passage"] {
        assert!(faults(ask(open)).is_empty(), "{open}");
    }
    let typed = prompt(vec![ArgumentDefinition::new("password")], "{{ password }}");
    assert!(faults(typed).is_empty(), "a client that sends it knows what it sends");
}

#[test]
fn settings_without_effect_are_reported() {
    let argument = ArgumentDefinition::new("a").step(2).when("true");
    let mut prompt = prompt(vec![argument], "{{ a }}");
    prompt.steps = vec![step(3)];
    let codes: Vec<Code> = faults(prompt).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [Code::NoEffect; 3]);
}

// req: I17
#[test]
fn step_is_described_once_and_opens_https_pages_only() {
    let mut prompt = prompt(vec![ArgumentDefinition::new("a").ask()], "{{ a }}");
    let page = |number, url: &str| StepDefinition { url: Some(url.into()), ..step(number) };
    prompt.steps = vec![step(1), step(1), page(1, "https://example.org"), page(2, "http://example.org")];
    let codes: Vec<Code> = faults(prompt).into_iter().map(|(code, _)| code).collect();
    // Without a file, both duplicates have the same location and are one diagnostic.
    assert_eq!(codes, [Code::InvalidValue, Code::DuplicateName, Code::InvalidCondition]);
}

#[test]
fn argument_used_by_a_condition_is_used() {
    let purpose = ArgumentDefinition::new("purpose").choices(["short", "long"]);
    let details = ArgumentDefinition::new("details").ask().when("purpose == \"long\"");
    assert_eq!(faults(prompt(vec![purpose, details], "{{ details }}")), []);
}

#[test]
fn steps_follow_their_numbers_and_skip_complete_ones() {
    let arguments = vec![
        ArgumentDefinition::new("c").ask().step(30),
        ArgumentDefinition::new("a").ask().step(4),
        ArgumentDefinition::new("b").ask().step(4).when("a == \"more\""),
    ];
    let definitions = Definitions::from_iter([prompt(arguments, "{{ a }}{{ b }}{{ c }}")]);
    let catalog = check(definitions, None).catalog;
    let prompt = catalog.find("guided").expect("it is there");
    let fields = |raw: &RawArguments<'_>, answers: &Answers| {
        prompt
            .next_form(raw, answers)
            .map(|form| (form.step, form.fields.iter().map(|field| field.name().to_owned()).collect::<Vec<_>>()))
    };
    let nothing = RawArguments::new();
    let mut answers = Answers::default();
    assert_eq!(fields(&nothing, &answers), Some((4, vec!["a".to_owned()])));
    let more = RawArguments::from_iter([("a", "more")]);
    assert_eq!(fields(&more, &answers), Some((4, vec!["b".to_owned()])));
    assert_eq!(fields(&RawArguments::from_iter([("a", "less")]), &answers), Some((30, vec!["c".to_owned()])));
    // An argument that an answer makes relevant is not requested if its step is already finished.
    answers.values = Variables::from([("a".to_owned(), "more".to_owned())]);
    answers.passed.insert(4);
    assert_eq!(fields(&nothing, &answers), Some((30, vec!["c".to_owned()])));
    answers.passed.insert(30);
    assert_eq!(fields(&nothing, &answers), None);
}

#[test]
fn sent_arguments_precede_form_answers() {
    let definitions = Definitions::from_iter([prompt(vec![ArgumentDefinition::new("a").ask()], "{{ a }}")]);
    let catalog = check(definitions, None).catalog;
    let prompt = catalog.find("guided").expect("it is there");
    let answers = Answers {
        values: [("a", "form"), ("other", "x")].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        ..Answers::default()
    };
    let bound = |raw: &RawArguments<'_>| {
        prompt.bind(&prompt.with_answers(raw, &answers), 100).expect("it is complete").text("a").into_owned()
    };
    assert_eq!(bound(&RawArguments::from_iter([("a", "caller")])), "caller");
    assert_eq!(bound(&RawArguments::from_iter([("a", "")])), "form");
    assert_eq!(prompt.with_answers(&RawArguments::new(), &answers).len(), 1);
}
