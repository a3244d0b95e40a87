//! The largest amount of memory of one rendering.
//!
//! The bound holds for the default budget and values of the default size, one megabyte. It covers all memory in use
//! at one time: values, intermediate text, sentinels and messages.

use peak_alloc::PeakAlloc;
use promptshelf_core::{ArgumentDefinition, ArgumentType, Definitions, PromptDefinition, RawArguments, check};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const BOUND: usize = 320 << 20;

/// Templates in which the caller chooses `x`, a long text, `l`, a list of long or many items, `j`, JSON, and `n`, a
/// number.
const TEMPLATES: &[&str] = &[
    "{{ x }}{{ x }}{{ x | fence | quote | xml('x') | json | urlencode }}",
    "{{ x | replace('a', x) }}",
    "{{ x | indent(n) }}",
    "{{ x | join(x) }}",
    "{{ x | list | join(x) }}",
    "{{ l | join(x) }}",
    "{{ l | map('replace', 'a', x) | join }}",
    "{{ l | map('replace', 'a', x) | list | length }}",
    "{{ x | split('a') | list | length }}",
    "{{ x | list | batch(1) | list | length }}",
    "{{ x | list | sort | unique | list | length }}",
    "{{ [1] | batch(n, x) }}",
    "{{ [1] | slice(n) }}",
    "{{ '-' * n }}",
    "{{ ([x] * n) | json }}",
    "{{ [x] * n }}",
    "{% for i in range(n) %}{{ x }}{% endfor %}",
    "{% for i in l %}{{ x }}{% endfor %}",
    "{% set all %}{% for i in l %}{{ x }}{% endfor %}{% endset %}{{ all | length }}",
    "{% filter fence %}{% for i in l %}{{ x }}{{ l }}{% endfor %}{% endfilter %}",
    "{% macro m(y) %}{{ y }}{{ y }}{% endmacro %}{{ m(m(m(m(m(m(m(m(x)))))))) }}",
    "{% for i in l %}{% set y = x | upper %}{% endfor %}.",
    "{% for i in l %}{{ link('https://example.org', title=x, description=x) }}{% endfor %}",
    "{% for i in l %}{% set y = link('https://example.org', title=x) %}{% endfor %}.",
    "{% for i in l %}{{ role('user') }}x{% endfor %}",
    "{{ j }}{{ j | pprint }}{{ j | json(indent=2) }}",
    "{% set n_s = namespace(t='') %}{% for i in l %}{% set n_s.t = n_s.t ~ x %}{% endfor %}{{ n_s.t | length }}",
    "{% set n_s = namespace(t=x) %}{% for i in range(n) %}{% set n_s.t = n_s.t ~ n_s.t %}{% endfor %}{{ n_s.t | length }}",
    "{% set n_s = namespace(t=x) %}{% for i in range(n) %}{% set n_s.t = n_s.t + n_s.t -%}{% endfor %}{{ n_s.t | length }}",
    "{% set n_s = namespace(t=l) %}{% for i in range(n) %}{% set n_s.t = n_s.t + n_s.t %}{% endfor %}{{ n_s.t | list | length }}",
    "{% set n_s = namespace(t=[]) %}{% for i in l %}{% set n_s.t = n_s.t + ['- ' ~ x] %}{% endfor %}{{ n_s.t | length }}",
    "{% set n_s = namespace(t=[]) %}{% for i in range(n) %}{% set n_s.t = [[x ~ i, l]] + n_s.t %}{% endfor %}{{ n_s.t | length }}",
    "{% set n_s = namespace(t=x) %}{% for i in range(n) %}{% set n_s.t, b = n_s.t ~ n_s.t, 1 %}{% endfor %}{{ n_s.t | length }}",
    "{% macro m(y, n) %}{% if n %}{{ m(y ~ y, n - 1) | length }}{% endif %}{% endmacro %}{{ m(x, 40) }}",
    "{% macro m(y) %}{% for i in range(9) %}{% set z = m(y ~ i) %}{% endfor %}{% endmacro %}{{ m(x) }}",
    "{% set y = x ~ x %}{% set y = y ~ y %}{% set y = y ~ y %}{% set y = y ~ y %}{% set y = y ~ y %}{% set y = y ~ y %}\
     {% set y = y ~ y %}{% set y = y ~ y %}{% set y = y ~ y %}{% set y = y ~ y %}{{ y | length }}",
    "{% set y %}{% for i in range(99999) %}REPEATED{% endfor %}{% endset %}{{ y | length }}",
    "{% macro m() %}REPEATED{% endmacro %}{% set y %}{% for i in range(99999) %}{{ m() ~ '' }}{% endfor %}{% endset %}{{ y | length }}",
    "{{ (1,) * n }}{{ [(1,) * n] * n }}{{ 'x' * n * n }}{{ n * 'x' * 2 * n }}",
    "{% for i in j recursive %}{{ loop(i) }}{{ i | length }}{% endfor %}",
];

// req: R-12, S-38
#[test]
fn rendering_takes_at_most_320_megabytes() {
    let megabyte = 1 << 20;
    let rounds = [
        ("a".repeat(megabyte), "a,".repeat(megabyte / 2), format!("[{}1]", "1,".repeat(megabyte / 2 - 2)), "99999"),
        (
            "\u{FDD0}".repeat(megabyte / 3),
            "a".repeat(megabyte),
            format!("[{}1]", "[],".repeat(megabyte / 3 - 2)),
            "99999999",
        ),
    ];
    for template in TEMPLATES {
        let kinds = [
            ("x", ArgumentType::Text),
            ("l", ArgumentType::List),
            ("j", ArgumentType::Json),
            ("n", ArgumentType::Integer),
        ];
        let template = template.replace("REPEATED", &"text ".repeat(4_000));
        let prompt = kinds.into_iter().fold(PromptDefinition::template("it", &*template), |prompt, (name, kind)| {
            prompt.argument(ArgumentDefinition::new(name).kind(kind))
        });
        let catalog = check(Definitions::from_iter([prompt]), None).catalog;
        let prompt = catalog.find("it").unwrap_or_else(|| panic!("{template} is no template"));
        for (x, l, j, n) in &rounds {
            let values = [("x", x.as_str()), ("l", l), ("j", j), ("n", n)];
            let before = MEMORY.current_usage();
            MEMORY.reset_peak_usage();
            let bindings = prompt.bind(&RawArguments::from_iter(values), megabyte).expect("the values are good");
            // It may be rejected, but must not take more memory.
            let _ = prompt.render(catalog.render_context(), &bindings);
            let used = MEMORY.peak_usage().saturating_sub(before);
            assert!(used < BOUND, "{template} took {used} bytes with n = {n}");
        }
    }
}
