use std::collections::BTreeMap;

use promptshelf_core::{
    Access, AccessRule, ArgumentDefinition, ArgumentType, Catalog, Constraints, Definitions, Deprecation, LABELS,
    Origin, PromptDefinition, SourceText, check,
};

use super::{Impact, differences};

fn catalog(prompts: impl IntoIterator<Item = PromptDefinition>, access: Vec<AccessRule>) -> Catalog {
    let prompts = prompts.into_iter().map(Into::into).collect();
    let checked = check(Definitions { prompts, access, ..Definitions::default() }, None);
    let errors: Vec<String> =
        checked.diagnostics.iter().filter(|one| one.is_error()).map(ToString::to_string).collect();
    assert_eq!(errors, [""; 0]);
    checked.catalog
}

fn with(argument: ArgumentDefinition) -> Catalog {
    let name = argument.name.clone();
    catalog([PromptDefinition::template("review", format!("{{{{ {name} }}}}")).argument(argument)], Vec::new())
}

fn words(before: &Catalog, after: &Catalog) -> Vec<(Impact, String)> {
    differences(before, after).into_iter().map(|found| (found.impact, found.text)).collect()
}

#[test]
fn equal_catalogs_have_no_differences() {
    let one = || with(ArgumentDefinition::new("language").choices(["rust", "go"]));
    assert_eq!(words(&one(), &one()), []);
}

#[test]
fn each_change_of_an_argument_is_a_sentence_with_its_effect() {
    let plain = || ArgumentDefinition::new("language");
    let limited = |constraints| plain().constrained(constraints);
    let cases = [
        (
            plain(),
            plain().required(),
            Impact::Breaking,
            "`language` became required: callers that leave it out will fail",
        ),
        (plain().required(), plain(), Impact::Notice, "`language` became optional"),
        (
            plain(),
            plain().kind(ArgumentType::Integer),
            Impact::Breaking,
            "`language` is of type integer now, before string: callers that send other values will fail",
        ),
        (
            plain().kind(ArgumentType::Integer),
            plain(),
            Impact::Notice,
            "`language` is of type string now, before integer",
        ),
        (
            plain(),
            plain().choices(["rust", "go"]),
            Impact::Breaking,
            "`language` only accepts `rust` and `go` now: callers that send other values will fail",
        ),
        (
            plain().choices(["rust", "go"]),
            plain().choices(["rust"]),
            Impact::Breaking,
            "`language` no longer accepts `go`: callers that send it will fail",
        ),
        (
            plain(),
            limited(Constraints { max_length: Some(3), ..Constraints::default() }),
            Impact::Breaking,
            "`language` has at most 3 characters now: callers that send other values will fail",
        ),
        (
            limited(Constraints { max_length: Some(3), ..Constraints::default() }),
            limited(Constraints { max_length: Some(9), ..Constraints::default() }),
            Impact::Notice,
            "`language` has at most 9 characters now",
        ),
        (
            limited(Constraints { pattern: Some("[a-z]+".to_owned()), ..Constraints::default() }),
            plain(),
            Impact::Notice,
            "`language` needs to match no pattern any more",
        ),
        (plain(), plain().default_value("rust"), Impact::Notice, "the default of `language` is now “rust”"),
        (
            ArgumentDefinition { sensitive: true, ..plain() },
            plain(),
            Impact::Opening,
            "`language` is no longer sensitive: its values can appear in logs, errors and links",
        ),
    ];
    for (before, after, impact, text) in cases {
        assert_eq!(words(&with(before), &with(after)), [(impact, text.to_owned())]);
    }
    let found = words(&with(plain()), &with(ArgumentDefinition::new("framework").required()));
    let expected = [
        (Impact::Breaking, "`framework` is new and required: callers that do not send it will fail"),
        (Impact::Notice, "`language` is gone: values that callers send are ignored"),
    ];
    assert_eq!(found, expected.map(|(impact, text)| (impact, text.to_owned())));
}

#[test]
fn sentences_have_a_code_and_values_for_translations() {
    let argument = || ArgumentDefinition::new("language");
    let before = with(argument().choices(["rust", "go", "c"]));
    let after = with(argument().choices(["rust"]).required());
    let found: Vec<(&str, Vec<(&str, String)>)> =
        differences(&before, &after).into_iter().map(|one| (one.code, one.values.into_iter().collect())).collect();
    let name = || ("argument", "language".to_owned());
    let expected =
        [("argument-required", vec![name()]), ("choices-gone", vec![name(), ("values", "`go`, `c`".to_owned())])];
    assert_eq!(found, expected);

    let deprecated = |deprecation: Option<Deprecation>| {
        let mut prompt = PromptDefinition::template("review", "Text.");
        prompt.deprecated = deprecation.map(Box::new);
        catalog([prompt, PromptDefinition::template("check", "Text.")], Vec::new())
    };
    let found = differences(&deprecated(None), &deprecated(Some(Deprecation::new("Too long.").replaced_by("check"))));
    assert_eq!(found[0].code, "deprecated-for");
    assert_eq!(found[0].values, BTreeMap::from([("now", "check".to_owned()), ("message", "“Too long.”".to_owned())]));
}

#[test]
fn prompts_that_come_and_go_are_listed_breaking_first() {
    let of = |names: &[&str]| catalog(names.iter().map(|name| PromptDefinition::template(*name, "Text.")), Vec::new());
    let found = differences(&of(&["a", "b"]), &of(&["b", "c"]));
    let found: BTreeMap<String, (Impact, String)> =
        found.into_iter().map(|found| (found.name, (found.impact, found.text))).collect();
    assert_eq!(found["a"], (Impact::Breaking, "is gone: callers will fail".to_owned()));
    assert_eq!(found["c"], (Impact::Notice, "is new, open to every caller".to_owned()));
    assert_eq!(found.len(), 2);
}

#[test]
fn rules_of_access_are_compared_by_their_effect() {
    let of = |scopes: &[&str]| {
        let access = Access { scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(), ..Access::default() };
        let mut rule = AccessRule::new(access, Origin::new(SourceText::new("promptshelf.toml", "")));
        rule.prompts = vec!["*".to_owned()];
        let rules = if scopes.is_empty() { Vec::new() } else { vec![rule] };
        catalog([PromptDefinition::template("review", "Text.")], rules)
    };
    let (open, closed) = (of(&[]), of(&["code"]));
    let text = "it is open to callers with the scope `code` now, before to every caller: other callers will be refused";
    assert_eq!(words(&open, &closed), [(Impact::Breaking, text.to_owned())]);
    let found = &differences(&open, &closed)[0];
    assert_eq!(found.code, "access-closed");
    assert_eq!(found.values, BTreeMap::from([("before", String::new()), ("now", "scopes: `code`".to_owned())]));
    let text =
        "it is open to every caller now, before to callers with the scope `code`: more callers have access than before";
    assert_eq!(words(&closed, &open), [(Impact::Opening, text.to_owned())]);
}

#[test]
fn other_owners_and_collections_are_notices() {
    let of = |owners: &[&str], collections: &[&str]| {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut prompt = PromptDefinition::template("review", "Text.");
        prompt.labels = LABELS.iter().zip([owned(owners), owned(collections)]).collect();
        catalog([prompt], Vec::new())
    };
    let found = words(&of(&["ada"], &["Starters"]), &of(&["ada", "ben"], &[]));
    let expected = ["has the owners `ada` and `ben` now", "has no collections any more"];
    assert_eq!(found, expected.map(|text| (Impact::Notice, text.to_owned())));
}

#[test]
fn former_names_keep_a_rename_from_breaking_callers() {
    let open = |prompt: PromptDefinition| catalog([prompt], Vec::new());
    let old = open(PromptDefinition::template("old", "x"));
    let renamed = open(PromptDefinition::template("new", "x").alias("old"));
    let found = words(&old, &renamed);
    assert_eq!(found[0], (Impact::Notice, "is called `new` now, and still served under the old name".to_owned()));
    assert!(found.iter().all(|(impact, _)| *impact != Impact::Breaking), "{found:?}");
    let lost = words(&renamed, &open(PromptDefinition::template("new", "x")));
    let gone = "is no longer served under the former name `old`: callers of it will fail";
    assert_eq!(lost, [(Impact::Breaking, gone.to_owned())]);
    // A rename that opens a closed prompt is an opening.
    let role = Access { roles: vec!["boss".to_owned()], ..Access::default() };
    let closed = open(PromptDefinition::template("old", "x").access(role));
    assert!(differences(&closed, &renamed).iter().any(|found| found.code == "access-opened"));
}
