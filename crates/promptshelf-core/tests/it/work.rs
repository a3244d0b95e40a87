//! The work of renderings: every operation of the template language on large values is stopped by the budget before
//! it takes much longer than as many steps.

use std::time::Duration;

use promptshelf_core::{
    ArgumentDefinition, ArgumentType, Bindings, Budget, Definitions, Interrupt, Policy, PromptDefinition, RawArguments,
    RenderError, check,
};

use crate::filters;

/// Processor time that this thread has used; independent of other programs.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).expect("less than a second"))
}

/// Expressions on `t` and `u`, equal texts of 32 kB; `capitals`, another one; `words` and `copy`, lists of 2,000 words;
/// `rows`, a list of 500 mappings; `map`, a mapping with 500 members; `n`, a large number. Next to them there is every filter.
const OPERATIONS: &[&str] = &[
    "'b' in t",
    "t in t",
    "'x' in words",
    "'x' not in words",
    "words in rows",
    "rows in rows",
    "'x' in map",
    "words is in rows",
    "'x' is in words",
    "'b' in t|list",
    "t == u",
    "t < u",
    "t < u < t",
    "words == copy",
    "rows != rows|list",
    "map == map|chain({})",
    "words < copy",
    "t is eq u",
    "t is sameas u",
    "words is ge(copy)",
    "t[1:]",
    "t[:-1]",
    "t[::-1]",
    "words[1:]",
    "words[::-1]",
    "words[5:9]",
    "words[-1:]",
    "words[1:][n]",
    "(words + words)[n]",
    "range(n)[n - 1]",
    "range(n)",
    "t ~ t",
    "t + t",
    "words ~ ''",
    "rows ~ rows",
    "words + words",
    "words + words == copy + copy",
    "t * 2",
    "words * 2",
    "2 * words",
    "((1,) * n) * n",
    "[t] * n",
    "'x' in [1] * n",
    "loop.cycle(*words)",
    "dict(map)",
    "namespace(map)",
    "namespace(**map)",
    "{t: 1}",
    "map[t]",
    "capitals is upper",
    "t is lower",
    "t is startingwith(u)",
    "t is endingwith(u)",
    "words is startingwith(u)",
    "t|trim(u)",
    "t|int(default=0)",
    "t|float(default=0)",
    "t|split('a')",
    "t|split('')",
    "t|replace('a', 'b')",
    "t|indent",
    "t|fence",
    "t|xml('x')",
    "t|batch(10)",
    "t|select('in', t)",
    "words|join",
    "words|reverse|first",
    "words|sort(case_sensitive=true)",
    "words|batch(3)",
    "words|slice(3)",
    "words|zip(copy)",
    "words|chain(copy)",
    "words|chain(range(n))",
    "words|map('default', 1)",
    "words|select('eq', 'x')",
    "words|select",
    "words|reject('in', copy)",
    "words|select('in', words)",
    "words|join(t)",
    "words|map('list')",
    "rows|map(attribute='a')",
    "rows|selectattr('a', 'in', copy)",
    "rows|rejectattr('a')",
    "rows|sum(attribute='b')",
    "rows|sort(attribute='a,b')",
    "rows|groupby('a')",
    "rows|unique(attribute='a')",
    "rows|json(indent=2)",
    "rows|map('items')",
    "[words, words, words]|sum(start=[])",
    "map|items",
    "map|dictsort",
    "map|dictsort(by='value')",
    "map|list",
    "map|urlencode",
    "map|chain(map)|length",
    "map|string",
    "loop.changed(words)",
    "loop.cycle(t, u)",
    "made()",
    "made() ~ ''",
    "words if words else t",
    "not words",
    "words and t and rows",
];

/// Macros and blocks that repeat the template's own text.
fn preface() -> String {
    format!("{{% macro made() %}}{}{{% endmacro %}}{{% macro f() %}}{{% endmacro %}}", "x".repeat(500))
}

fn catalog(expression: &str, budget: Budget) -> promptshelf_core::Catalog {
    // Nothing is printed: that is limited by the size of the output.
    let body = format!(
        "{}{{% for i in range(100000) %}}{{% for j in range(100000) %}}{{% if ({expression}) is none %}}{{% endif %}}\
         {{% set caught %}}{{% if n == 0 %}}x{{% endif %}}{{% endset %}}{{% endfor %}}{{% endfor %}}",
        preface()
    );
    let json = |name: &str| {
        let mut argument = ArgumentDefinition::new(name).description("V");
        argument.kind = ArgumentType::Json;
        argument
    };
    let text = |name: &str| ArgumentDefinition::new(name).description("V");
    let prompt = PromptDefinition::template("it", body)
        .description("D")
        .argument(text("t"))
        .argument(text("u"))
        .argument(text("capitals"))
        .argument(json("words"))
        .argument(json("copy"))
        .argument(json("rows"))
        .argument(json("map"))
        .argument(json("n"));
    let policy = Policy { budget, value_bytes: 8 << 20, ..Policy::default() };
    let checked = check(Definitions { policy, ..Definitions::from_iter([prompt]) }, None);
    let errors: Vec<_> = checked.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).collect();
    assert!(errors.is_empty(), "{expression}: {errors:?}");
    checked.catalog
}

fn large_values() -> Vec<(&'static str, String)> {
    let text = format!("{}b", "a".repeat(1 << 15));
    let words: Vec<String> = (0..2_000).map(|number| format!("w{}", number % 500)).collect();
    let rows: Vec<_> = (0..500).map(|number| serde_json::json!({ "a": format!("w{number}"), "b": number })).collect();
    let map: serde_json::Map<_, _> = (0..500).map(|number| (format!("w{number}"), number.into())).collect();
    let words = serde_json::to_string(&words).expect("JSON");
    vec![
        ("t", text.clone()),
        ("u", text),
        ("capitals", "A".repeat(1 << 15)),
        ("copy", words.clone()),
        ("words", words),
        ("rows", serde_json::to_string(&rows).expect("JSON")),
        ("map", serde_json::to_string(&map).expect("JSON")),
        ("n", "2000".to_owned()),
    ]
}

fn bound(catalog: &promptshelf_core::Catalog, values: &[(&'static str, String)]) -> Bindings {
    let raw = RawArguments::from_iter(values.iter().map(|(name, value)| (*name, value.as_str())));
    catalog.find("it").expect("it is good").bind(&raw, 8 << 20).expect("valid values")
}

/// Returns the time of a rendering that uses up its budget.
fn cost(expression: &str, fuel: u64, values: &[(&'static str, String)]) -> (Duration, Result<(), RenderError>) {
    let catalog = catalog(expression, Budget { fuel, ..Budget::default() });
    let bindings = bound(&catalog, values);
    let prompt = catalog.find("it").expect("it is good");
    let render = || prompt.render(catalog.render_context(), &bindings).map(drop);
    let before = thread_time();
    let result = render();
    (thread_time() - before, result)
}

/// As many steps as every rendering may spend bytes for.
const STEPS: u64 = (16 << 20) / 64;

/// An operation whose work is not counted costs hundreds of times as much. The nightly run has the exact bound: the parts
/// of an optimized program cost about the same everywhere, those of another one do not.
const MAX_FACTOR: f64 = if cfg!(debug_assertions) { 25.0 } else { 5.0 };

// req: S-54
#[test]
fn every_operation_costs_as_much_as_its_steps() {
    let values = large_values();
    // The conversion of the values.
    let (fixed, _) = cost("n + 1", 10, &values);
    let own = |took: Duration| took.saturating_sub(fixed).as_secs_f64();
    let steps = own(cost("n + 1", STEPS, &values).0);
    let mut slow = Vec::new();
    let filtered = filters().flat_map(|filter| [format!("t|{filter}"), format!("words|{filter}")]);
    for expression in OPERATIONS.iter().map(|&expression| expression.to_owned()).chain(filtered) {
        let expression = &*expression;
        let (mut took, result) = cost(expression, STEPS, &values);
        // The least of several attempts: others on the machine share its caches.
        for _ in 0..5 {
            if own(took) > MAX_FACTOR / 2.0 * steps {
                took = took.min(cost(expression, STEPS, &values).0);
            }
        }
        let factor = own(took) / steps;
        println!("{factor:6.2} {expression}: {result:?}");
        assert!(matches!(result, Err(RenderError::OverBudget(_))), "{expression}: {result:?}");
        if factor > MAX_FACTOR {
            slow.push(format!("{expression}: {factor:.1} times"));
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}

/// Values whose depth, length or sharing grows from one iteration of a loop to the next.
// req: S-54
#[test]
fn growing_values_never_exhaust_stack_or_memory() {
    for (stored, used) in [
        ("[ns.x]", "ns.x"),
        ("{'k': ns.x}", "ns.x ~ ''"),
        ("ns.x|batch(1)", "ns.x"),
        ("(ns.x,)", "ns.x == ns.y"),
        ("dict(k=ns.x)", "ns.x|json"),
        ("ns.x[1:]", "ns.x"),
        ("ns.x * 1", "ns.x|length"),
        ("ns.x + ns.x", "ns.x|length"),
        ("[ns.x, ns.x]", "1 in ns.x"),
        ("ns.x|chain([1])", "ns.x|last"),
        ("ns.x|zip(range(3))", "ns.x|list"),
        ("ns.x|reverse", "ns.x[0]"),
        ("ns", "ns"),
        ("ns", "ns ~ ''"),
        ("ns", "ns == ns.x"),
        ("ns", "ns|string|upper"),
        ("namespace(k=ns.x)", "ns.x"),
        ("[1, ns.x, 2]", "ns.x"),
        ("(1, [0, ns.x, 0], 2)", "ns.x ~ ''"),
        ("dict(a=1, k=ns.x, z=1)", "ns.x"),
        ("{'a': 1, 'k': ns.x, 'z': 1}|items|list", "ns.x"),
        ("ns.x|groupby('a')", "ns.x"),
        ("[1]|batch(2, ns.x)", "ns.x"),
        ("ns.x + ns.x + [ns.x]", "ns.x|length"),
        ("(ns.x ~ '') ~ ns.x", "ns.x|length"),
    ] {
        let body = format!(
            "{{% set ns = namespace(x=[1, 2], y=[1]) %}}{{% for i in range(50000) %}}{{% set ns.x = {stored} %}}\
             {{% endfor %}}{{{{ {used} }}}}"
        );
        let checked = check(Definitions::from_iter([PromptDefinition::template("it", body).description("D")]), None);
        let prompt = checked.catalog.find("it").unwrap_or_else(|| panic!("{stored}: {:?}", checked.diagnostics));
        let before = thread_time();
        let result = prompt.render(checked.catalog.render_context(), &Bindings::default());
        let took = thread_time() - before;
        // Half a second in a debug build; most of them fail at once.
        assert!(took < Duration::from_secs(10), "{stored}, {used}: {took:?} {result:?}");
    }
}

/// Lists that share their parts are as large as the parts are often named: 40 short tags make a million items.
// req: S-504
#[test]
fn comparing_values_with_shared_parts_costs_as_much_as_its_steps() {
    let values = large_values();
    let steps = cost("n + 1", STEPS, &values).0;
    let doubled = |name: &str, first: &str, next: &str| {
        let next = next.replace('x', name);
        format!("{{% set {name} = {first} %}}{}", format!("{{% set {name} = {next} %}}").repeat(26))
    };
    let mut slow = Vec::new();
    for (first, next) in [("[1]", "[x, x]"), ("(1,)", "(x, x)"), ("{'k': 1}", "{'k': x, 'l': x}"), ("[1]", "[x] + [x]")]
    {
        let compared = [
            "a == b",
            "a is in [b]",
            "a in [b]",
            "[1, a]|select('in', [1, b])",
            "[a, b, a, b]|sort",
            "[a, b]|unique",
            "[{'k': a}, {'k': b}]|groupby('k')",
            "[a, b]|max",
        ];
        // All are compared by one function.
        for compared in if next == "[x, x]" { &compared[..] } else { &compared[..1] } {
            let body =
                format!("{}{}{{{{ ({compared}) is none }}}}", doubled("a", first, next), doubled("b", first, next));
            let definitions = Definitions {
                policy: Policy { budget: Budget { fuel: STEPS, ..Budget::default() }, ..Policy::default() },
                ..Definitions::from_iter([PromptDefinition::template("it", body).description("D")])
            };
            let checked = check(definitions, None);
            let prompt = checked.catalog.find("it").unwrap_or_else(|| panic!("{compared}: {:?}", checked.diagnostics));
            assert!(!prompt.is_quick(&Bindings::default()), "{next}: {compared}");
            let before = thread_time();
            let result = prompt.render(checked.catalog.render_context(), &Bindings::default()).map(drop);
            let factor = (thread_time() - before).as_secs_f64() / steps.as_secs_f64();
            println!("{factor:6.2} {next}: {compared}: {result:?}");
            if factor > MAX_FACTOR {
                slow.push(format!("{next}: {compared}: {factor:.1} times"));
            }
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}

/// The rule about texts that steps repeat, and those about operators, leave room for long values.
#[test]
fn loop_over_twenty_thousand_lines_renders() {
    let lines: Vec<String> =
        (0..20_000).map(|number| format!("line {number} of a log that is one megabyte long")).collect();
    let text = lines.join("\n");
    assert!((900_000..1 << 20).contains(&text.len()));
    let body = "{% for line in t|lines %}{% if 'line 7' in line and line != t %}{{ loop.index }}: {{ line ~ '.' }}\n\
                {% endif %}{% endfor %}{% for line in t|lines %}- {{ line }}\n{% endfor %}";
    let prompt = PromptDefinition::template("it", body).description("D").argument(ArgumentDefinition::new("t"));
    let catalog = check(Definitions::from_iter([prompt]), None).catalog;
    let prompt = catalog.find("it").expect("it is good");
    let bindings = prompt.bind(&RawArguments::from_iter([("t", text)]), 1 << 20).expect("a valid value");
    let rendered = prompt.render(catalog.render_context(), &bindings).expect("it renders");
    assert_eq!(rendered.len(), 1);
}

// req: S-55
#[test]
fn interrupt_stops_a_rendering() {
    let body = "{% for i in range(90000) %}{{ i }}{% endfor %}";
    let checked = check(Definitions::from_iter([PromptDefinition::template("it", body).description("D")]), None);
    let prompt = checked.catalog.find("it").expect("it is good");
    let interrupt = Interrupt::new();
    let context = checked.catalog.render_context().interruptible(&interrupt);
    assert!(prompt.render(context, &Bindings::default()).is_ok());
    interrupt.set();
    assert_eq!(prompt.render(context, &Bindings::default()), Err(RenderError::Interrupted));
}
