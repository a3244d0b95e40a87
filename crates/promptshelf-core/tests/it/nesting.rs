//! Limits of templates that are nested too deeply for the stack, or very long.

use promptshelf_core::{Checked, Code, Definitions, RawArguments, SourceText, check};

use crate::{checked, prompt, render};

const DEEP: usize = 20_000;

fn nested(open: &str, inside: &str, close: &str, times: usize) -> String {
    format!("{}{inside}{}", open.repeat(times), close.repeat(times))
}

/// One template for each kind of deep syntax tree.
fn deep_templates(times: usize) -> Vec<(&'static str, String)> {
    vec![
        ("conditions", nested("{% if true %}", "x", "{% endif %}", times)),
        ("loops", nested("{% for x in [1] %}", "x", "{% endfor %}", times)),
        ("filter blocks", nested("{% filter upper %}", "x", "{% endfilter %}", times)),
        ("macros", nested("{% macro m() %}", "x", "{% endmacro %}", times)),
        ("branches", format!("{{% if false %}}{}{{% endif %}}", "{% elif false %}x".repeat(times))),
        ("branches in branches", nested("{% if false %}{% elif false %}", "x", "{% endif %}", times)),
        ("else in else", nested("{% if false %}{% else %}", "x", "{% endif %}", times)),
        ("parentheses", format!("{{{{ {} }}}}", nested("(", "1", ")", times))),
        ("lists", format!("{{{{ {} }}}}", nested("[", "1", "]", times))),
        ("mappings", format!("{{{{ {} }}}}", nested("{1:", "1", "}", times))),
        ("calls", format!("{{{{ {} }}}}", nested("range(", "1", ")", times))),
        ("signs", format!("{{{{ {}1 }}}}", "-".repeat(times))),
        ("negations", format!("{{{{ {}1 }}}}", "not ".repeat(times))),
        ("filters", format!("{{{{ 1{} }}}}", "|upper".repeat(times))),
        ("filter arguments", format!("{{{{ 1{} }}}}", nested("|default(1", "", ")", times))),
        ("attributes", format!("{{{{ [1]{} }}}}", ".x".repeat(times))),
        ("items", format!("{{{{ [1]{} }}}}", "[0]".repeat(times))),
        ("calls of calls", format!("{{{{ range{} }}}}", "(1)".repeat(times))),
        ("sums", format!("{{{{ 1{} }}}}", "+1".repeat(times))),
        ("powers", format!("{{{{ 1{} }}}}", "**1".repeat(times))),
        ("texts", format!("{{{{ 1{} }}}}", "~1".repeat(times))),
        ("either", format!("{{{{ 1{} }}}}", " or 1".repeat(times))),
        ("both", format!("{{{{ 1{} }}}}", " and 1".repeat(times))),
        ("tests", format!("{{{{ 1{} }}}}", " is defined".repeat(times))),
        ("comparisons", format!("{{{{ 1{} }}}}", " < 1".repeat(times))),
        ("memberships", format!("{{{{ 1{} }}}}", " not in [1]".repeat(times))),
        ("choices", format!("{{{{ {}1 }}}}", "1 if true else ".repeat(times))),
        ("calls in conditions", {
            let calls = format!("{{{{ {} }}}}", nested("range(", "1", ")", times));
            nested("{% if true %}", &calls, "{% endif %}", times)
        }),
        ("filters in branches", {
            let filters = format!("{{{{ 1{} }}}}", "|upper".repeat(times));
            format!("{{% if false %}}{}{filters}{{% endif %}}", "{% elif false %}x".repeat(times))
        }),
        ("slices", format!("{{{{ [1]{} }}}}", "[0:1]".repeat(times))),
        // Values that are set from themselves: no tag is deep.
        ("lists of lists", set_from_itself("[x]", times)),
        ("tuples of tuples", set_from_itself("(x, 1)", times)),
        ("mappings of mappings", set_from_itself("{1: x}", times)),
        ("chosen lists", set_from_itself("[x] if true else 2", times)),
        ("batches", set_from_itself("[1] | batch(1)", times).replacen("[1]", "x", times)),
        ("batches of items", set_from_itself("x | map('batch', 1)", times)),
        ("pairs", set_from_itself("x | zip(x)", times)),
        ("dictionaries", set_from_itself("dict(a=x)", times)),
        ("namespaces", set_from_itself("namespace(a=x)", times)),
        ("lists in a loop", {
            let sets = "{% set x = [x] %}".repeat(times.min(4_000));
            format!("{{% for i in [1] %}}{{% set x = 1 %}}{sets}{{% endfor %}}")
        }),
        ("several names", {
            let sets = "{% set x, y = [x], 1 %}".repeat(times.min(4_000));
            format!("{{% set x = 1 %}}{sets}")
        }),
    ]
}

fn set_from_itself(value: &str, times: usize) -> String {
    format!("{{% set x = 1 %}}{}", format!("{{% set x = {value} %}}").repeat(times.min(4_000)))
}

// req: S-495
#[test]
fn conditions_never_exhaust_the_stack_or_the_memory() {
    let huge = "(\"x\" * 100000000)";
    let conditions = [
        "-".repeat(DEEP) + "1",
        "not ".repeat(DEEP) + "1",
        "a or ".repeat(DEEP) + "a",
        format!("a{}", ".b".repeat(DEEP)),
        nested("(", "1", ")", DEEP),
        nested("[", "1", "]", DEEP),
        format!("a{}", " ~ a".repeat(DEEP)),
    ];
    for condition in conditions {
        let only = promptshelf_core::ArgumentDefinition::new("b").when(&condition);
        let definition = promptshelf_core::PromptDefinition::template("it", "{{ a }}{{ b }}")
            .argument(promptshelf_core::ArgumentDefinition::new("a"))
            .argument(only);
        let Checked { diagnostics, .. } = checked([definition]);
        assert!(diagnostics.iter().any(promptshelf_core::Diagnostic::is_error), "{}", &condition[..20]);
    }
    // Constants are computed by the metered operators when a condition is evaluated, and not while it is compiled.
    let condition = [huge; 12].join(" ~ ");
    let only = promptshelf_core::ArgumentDefinition::new("b").when(condition);
    let definition = promptshelf_core::PromptDefinition::template("it", "{{ a }}{{ b }}")
        .argument(promptshelf_core::ArgumentDefinition::new("a"))
        .argument(only);
    let Checked { catalog, diagnostics } = checked([definition]);
    assert!(!diagnostics.iter().any(promptshelf_core::Diagnostic::is_error), "{diagnostics:?}");
    assert_eq!(render(&catalog, &RawArguments::from_iter([("a", "A"), ("b", "B")])).expect("renders").len(), 1);
}

// req: S-495
#[test]
fn constants_are_not_computed_by_the_check() {
    let huge = "('x' * 100000000)";
    for template in [
        format!("{{% include {huge} %}}"),
        format!("{{{{ attach({huge}) }}}}"),
        format!("{{{{ role({huge}) }}}}"),
        format!("{{{{ prompt({huge}) }}}}"),
        format!("{{{{ 1 | default({}) }}}}", vec![huge; 60].join(" ~ ")),
        format!("{{% if 1 is divisibleby({huge}) %}}x{{% endif %}}"),
    ] {
        let Checked { diagnostics, .. } = checked([prompt(&template, &[])]);
        assert!(diagnostics.iter().all(|found| found.message.len() < 1_000), "{template}");
    }
}

#[test]
fn nesting_never_exhausts_the_stack() {
    for (what, template) in deep_templates(DEEP) {
        let Checked { catalog, diagnostics } = checked([prompt(&template, &[])]);
        let is_refused = diagnostics.iter().any(|found| found.code == Code::TemplateSyntax);
        // A comparison with many operands is long, not deep.
        assert!(is_refused || what == "comparisons", "{what}: {diagnostics:?}");
        assert_eq!(is_refused, catalog.prompts().is_empty(), "{what}");
    }
}

#[test]
fn partials_never_exhaust_the_stack() {
    for (what, template) in deep_templates(DEEP) {
        let mut definitions = Definitions::from_iter([prompt("{% include '_x' %}", &[])]);
        definitions.partials.insert("_x".into(), SourceText::new("_x", template));
        let diagnostics = check(definitions, None).diagnostics;
        assert!(diagnostics.iter().any(|found| found.location.source.path == "_x") || what == "comparisons", "{what}");
    }
}

#[test]
fn realistic_nesting_renders() {
    for (what, template) in deep_templates(20) {
        let Checked { catalog, diagnostics } = checked([prompt(&format!("x{template}"), &[])]);
        assert!(diagnostics.is_empty(), "{what}: {diagnostics:?}");
        // Some of these templates are meaningless, but none may crash.
        let _ = render(&catalog, &RawArguments::new());
    }
}

#[test]
fn deepest_accepted_template_renders() {
    for times in [40, 70, 100, 140, 199] {
        for (what, template) in deep_templates(times) {
            let Checked { catalog, .. } = checked([prompt(&format!("x{template}"), &[])]);
            if catalog.find("it").is_some() {
                let _ = render(&catalog, &RawArguments::new());
            } else {
                assert!(times > 40, "{what} is refused at {times}");
            }
        }
    }
}

#[test]
fn long_table_is_not_deep() {
    let rows = (0..5_000).map(|row| format!("[{row}, 'a' ~ 'b', (1 + 2) * 3]")).collect::<Vec<_>>().join(", ");
    let template = format!("{{% set rows = [{rows}] %}}{{{{ rows | length }}}}");
    let Checked { catalog, diagnostics } = checked([prompt(&template, &[])]);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert_eq!(render(&catalog, &RawArguments::new()), Ok(vec![promptshelf_core::Message::user("5000")]));
}

#[test]
fn huge_template_is_accepted() {
    let template = "Line with {{ x }} and {% if x %}more{% endif %}.\n".repeat(40_000);
    let Checked { catalog, diagnostics } = checked([prompt(&template, &["x"])]);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let messages = render(&catalog, &RawArguments::from_iter([("x", "y")])).expect("renders");
    assert_eq!(messages.len(), 1);
}

#[test]
fn recursive_macros_terminate() {
    let template = "{% macro m(n) %}{{ n }}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}";
    let Checked { catalog, diagnostics } = checked([prompt(template, &[])]);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert!(render(&catalog, &RawArguments::new()).is_err());
}

#[test]
fn deepest_json_is_printed() {
    let mut definition = prompt("{{ x }}{{ x | json }}{{ x | fence }}", &["x"]);
    definition.arguments[0].kind = promptshelf_core::ArgumentType::Json;
    let catalog = checked([definition]).catalog;
    let deepest = nested("[", "", "]", 127);
    assert!(render(&catalog, &RawArguments::from_iter([("x", deepest)])).is_ok());
    let too_deep = nested("[", "", "]", 100_000);
    let prompt = catalog.find("it").expect("it is there");
    assert!(prompt.bind(&RawArguments::from_iter([("x", too_deep)]), usize::MAX).is_err());
}
