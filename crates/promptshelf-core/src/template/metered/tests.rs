use minijinja::{Environment, Value};
use serde_json::json;

use super::{
    super::{depth::TOO_DEEP, environment::base},
    metered, parse,
};

fn values() -> Value {
    Value::from(minijinja::value::Serde(json!({
        "a": "some text", "b": "text", "n": 3, "m": -2, "f": 1.5, "yes": true, "nothing": null,
        "list": ["x", "text", 3, "y"], "other": ["y", "z"], "rows": [[1, "one"], [2, "two"]],
        "map": { "text": 1, "k": [1, 2, 3], "inner": { "k": "v" } }, "empty": [],
    })))
}

fn rendered(environment: &Environment<'_>, text: &str) -> Result<String, String> {
    let mut environment = environment.clone();
    environment.set_fuel(Some(1_000_000));
    let place = |error: minijinja::Error| {
        format!(
            "{:?} {} in line {}",
            error.kind(),
            error.detail().unwrap_or_default(),
            error.line().unwrap_or_default()
        )
    };
    environment.add_template_owned("it", text.to_owned()).map_err(place)?;
    environment.get_template("it").and_then(|template| template.render(values())).map_err(place)
}

const TEMPLATES: &[&str] = &[
    "",
    "plain {{ a }}\n",
    "plain\n\n",
    "{{ b in a }}{{ b in list }}{{ 'k' in map }}{{ 'q' not in list }}{{ n in nothing_known }}",
    "{{ not b in list }} {{ b in list and n in list or yes }}",
    "{{ a in ['x', 'y'] }}{{ a == 'x' }}{{ 'x' == a }}",
    "{{ list[1:3] }}|{{ list[::-1] }}|{{ a[2:4] }}|{{ a[:-1] }}|{{ a[::2] }}|{{ nothing_known[1:] }}|{{ list[n-2:][0] }}",
    "{{ a == b }}{{ a != b }}{{ a < b }}{{ a <= b }}{{ a > b }}{{ list >= other }}{{ list == list }}",
    "{{ 1 < n < 5 }}{{ a < b < a }}{{ b in list in rows }}{{ 1 < n not in list }}",
    "{{ a ~ b ~ n ~ '!' ~ list }}{{ a + b + a }}{{ list + other + other }}{{ n + 1 - 2 + m }}{{ (a + b)|length }}",
    "{{ a * 3 }}{{ n * n }}{{ f * 2 }}{{ list * 2 }}{{ 3 * b }}{{ '-' * 10 }}{{ (1,) * 3 }}{{ n * 2 + 1 }}{{ 0 * a }}",
    "{{ nothing_known * 2 }}",
    "{{ 'x' ~ n }}\n{{ 2 * nothing_known }}",
    "{{ n ** 2 ** 2 }}{{ -n ** 2 }}{{ 7 // 2 % 2 }}{{ (n - 1) - 1 }}{{ n - (1 - 1) }}{{ 2 * (n + 1) }}{{ -m }}{{ - -n }}",
    "{{ list[0] }}{{ list[n] }}{{ list[-1] }}{{ map['k'] }}{{ map[b] }}{{ map.k[n - 2] }}{{ map['inner'].k }}{{ rows[0][1] }}",
    "{{ range(9)[m] }}{{ (list + other)[5] }}{{ map.inner[('k')] }}{{ list.1 }}{{ (1.5)|int }}{{ a.x.y.z }}",
    "{{ a if b in list else b }}{{ a if not yes }}{{ (a if yes else b) ~ b }}{{ 'x' if yes else 'y' if n else 'z' }}",
    "{{ a|upper|replace('T', b)|length + 1 }}{{ -n|abs }}{{ (-n)|abs }}{{ [a, b]|join(', ') }}",
    "{{ b is in list }}{{ n is odd }}{{ n is not even }}{{ n is divisibleby 3 }}{{ a is upper or n is number }}{{ b is eq 'text' }}",
    "{{ list|select('string')|list }}{{ list|map('string')|join }}{{ list|select('in', other)|list }}{{ rows|map(attribute=1)|list }}",
    "{{ {'a': [1, (2,), ()], n: b in a} }}{{ [] }}{{ (1, 2, b in a) }}{{ {} }}",
    "{% for x in list if x in other %}{{ loop.index + 1 }}{{ loop.cycle('a', 'b') }}{{ x }}{% else %}none{% endfor %}",
    "{% for k, v in map|items %}{{ k ~ v }}{% endfor %}{% for (x, y), z in [((1, 2), 3)] %}{{ x * y * z }}{% endfor %}",
    "{% for x in empty %}{% else %}{{ a ~ b }}{% endfor %}{% for x, in [[1]] %}{{ x ~ '' }}{% endfor %}",
    "{% for x in rows recursive %}{% if x is iterable and x is not string %}<{{ loop(x) }}>{% else %}{{ x ~ '' }}{% endif %}{% endfor %}",
    "{% for x in rows recursive %}{{ loop.depth ~ '' }}{{ loop(x)|upper if x is sequence else x }}{% endfor %}",
    "{% for x in list %}{% if x == b %}{% continue %}{% elif x == a %}{% break %}{% else %}{{ x }}{% endif %}{{ loop.changed(x == n) }}{% endfor %}",
    "{% if a in list %}1{% elif b in list %}2{% else %}3{% endif %}{% if n %}{% if b in a %}4{% endif %}{% endif %}",
    "{% if n > 9 %}1{% else %}{% if b in a %}2{% endif %}3{% endif %}",
    "{% with x = b in a, y = n * 2, (p, q) = rows[0] %}{{ x }}{{ y }}{{ p ~ q }}{% endwith %}{% with %}{{ a ~ b }}{% endwith %}",
    "{% set x = a ~ b %}{% set x, y = a ~ b, n %}{{ x }}{{ y }}{% set x %}{{ a }} raw { {% endset %}{{ x ~ x }}",
    "{% set x | upper | replace('A', 'b') %}a{{ a }}{% endset %}{{ x }}{% filter lower|title %}A {{ a ~ b }}{% endfilter %}",
    "{% set ns = namespace(t='', l=[], m={}) %}{% for i in range(5) %}{% set ns.t = ns.t ~ i %}{% set ns.l = ns.l + [i ~ a] %}\
     {% set ns.m = {'x': i, 'y': ns.t} %}{% set ns.t, ns.u = ns.t ~ 'x', (1, [ns.t]) %}{% endfor %}{{ ns.t }}{{ ns.l }}{{ ns.m }}{{ ns.u }}",
    "{% set ns = namespace() %}{% set ns.t %}{{ a ~ b }}{% endset %}{{ ns.t }}{% set ns.x = a if yes else b %}{{ ns.x }}",
    "{% macro m(x, y='d', z=n * 2) %}[{{ x ~ y }}{{ z }}{{ caller() if caller else '' }}]{% endmacro %}{{ m(a) }}{{ m(a, z=1) ~ m(y=b, x='') }}\
     {% call m('c') %}inside {{ b in a }}{% endcall %}{% call(q) m(*[a, b], **{'z': 0}) %}{{ q }}{% endcall %}{% set r = m(a)|upper %}{{ r }}",
    "{% macro deep(k) %}{{ k }}{% if k > 0 %}{{ deep(k - 1) ~ '.' }}{% endif %}{% endmacro %}{{ deep(n) }}{% do deep(b in a) %}",
    "{% raw %}{{ not }} {% a %}{% endraw %}{{ a ~ b }}{# comment #}{ {{ b }}} {'{{ b ~ '' }}",
    "  {%- if a ~ b -%}  x  {%- endif -%}  y {%+ if yes %} {{- a ~ b -}} z {% endif %}\n\n",
    "{{ dict(map, z=a in b) }}{{ dict(x=1) }}{{ namespace(map).k }}{{ list|chain(other)|list }}{{ map|chain({'q': 1})|dictsort }}",
    "{{ list|batch(2)|list }}{{ list|slice(2)|list }}{{ list|zip(other)|list }}{{ list|reverse|first }}{{ list|last }}{{ list|unique|list }}",
    "{{ rows|sum(attribute='0') }}{{ [[1], [2]]|sum(start=[]) }}{{ rows|groupby(1)|list }}{{ other|sort(reverse=true) }}{{ other|min ~ other|max }}",
    "{% block one %}{{ a ~ b }}{% endblock %}{{ self.one() }}{{ self.one() ~ '' }}",
    "{{ 'it''s' ~ \"a\\\"b\\n\" }}{{ a ~ 'multi\nline' }}{{ a ~ 1_000 ~ 0x1f ~ 1e3 ~ 2.50 ~ true ~ none }}",
    "{% set x = 'a' 'b' ~ a %}{{ x }}{{ (a ~ b).x }}{{ (a ~ b)[0:2] }}{{ [a, b][0] ~ (a, b)[1] }}{{ {'k': a ~ b}.k }}",
    "{% do list %}",
    "{{ a +",
    "{{ a + 1 }}",
    "\n{{ list\n+ 1 }}",
    "{{ a ~ b }}\n{#\n#}\n{{\nn\n*\nmap.k\n}}",
    "{{ a ~ b }}\n{{\nn\n+\nnothing_known.x\n}}",
    "{{ a ~ b }}\n{%- if yes -%}\n\n{{ n in n }}{% endif %}",
    "{{ a ~ b }}\n{% for x in list %}\n{{ x\n  | int\n }}{{ fail() }}{% endfor %}",
    "{% set x = 'two\nlines' ~ a %}\n{{ a - b }}",
    "{{ a ~ a|nothing_known }}",
    "{% include 'none' ignore missing %}{{ a ~ b }}",
    "{{ a ~ b }}{% include 'none' %}",
];

#[test]
fn metered_template_renders_the_same() {
    let environment = base();
    let mut different = Vec::new();
    for text in TEMPLATES {
        let made = metered(text);
        let (ours, engines) = (rendered(&environment, &made), rendered(&environment, text));
        if ours != engines {
            different.push(format!("{text}\n{made}\n{ours:?}\n{engines:?}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n\n"));
}

#[test]
fn cheap_templates_stay_as_they_are() {
    for text in [
        "{{ a }} {{ map.k[0] }} {{ list|upper }}{% if a == 'x' %}{{ n + 1 }}{% endif %}",
        "{% for x in list %}{{ loop.index0 * 2 }}{% if x in ['a', 'b'] %}{{ role('user') }}{% endif %}{% endfor %}",
        "{% set x = a %}{% macro m() %}{% endmacro %}{{ m() }}{{ -1 * 3 }}",
    ] {
        assert_eq!(metered(text), text);
    }
    assert_eq!(metered("{{ a in list }}"), "{{ a|__in(list) }}{##}");
    assert_eq!(metered("{{ a ~ '-' ~ b }}"), "{{ a|__text(2) ~ '-' ~ b|__text(1) }}{##}");
}

/// Chains as long as `depth` allows them.
#[test]
fn long_chains_are_not_nested() {
    let environment = base();
    let chain = |first: &str, next: &str| format!("{{{{ {first}{} }}}}", next.repeat(95));
    for text in [
        chain("a", " ~ b"),
        chain("n", " + m"),
        chain("n", " * m * 0"),
        chain("a", "|upper"),
        chain("a", " and a in list"),
        chain("yes", " == yes == yes"),
        chain("a", " if n else a"),
        chain("", "not "),
    ] {
        let text = text.replace("not  }}", "not a in list }}");
        let made = metered(&text);
        assert_eq!(rendered(&environment, &made), rendered(&environment, &text), "{made}");
    }
}

#[test]
fn form_that_cannot_be_parsed_is_reported() {
    let nested = |depth: usize| format!("{{{{ {}a{} }}}}", "(a ~ ".repeat(depth), ")".repeat(depth));
    let check = |text: &str| super::check(&parse(text, "", Default::default()).expect("a template"), text);
    assert!(check(&nested(20)).is_ok());
    let indexed = format!("{{{{ a{} }}}}", "[n]".repeat(95));
    let error = check(&indexed).expect_err("nested too deeply");
    assert_eq!((error.message.as_str(), error.span), (TOO_DEEP, 0..indexed.len()));
}
