//! Arbitrary templates with arbitrary values. Values are text: the messages of a template do not depend on them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use promptshelf_core::{ArgumentDefinition, Definitions, RawArguments, Part, PromptDefinition, RenderError, check};

/// Templates with a known structure: two messages, the first with the user role.
const KNOWN: [&str; 6] = [
    "{{ a }}{{ role('assistant') }}{{ b }}x",
    "x{{ a | fence }}{{ role('assistant') }}{{ b | quote }}x",
    "x{{ a | xml('a') }}{{ role('assistant') }}{{ b | json }}",
    "x{% for l in a | lines %}{{ l | upper }}{% endfor %}{{ role('assistant') }}x{{ b }}",
    "x{% set c %}{{ a }}{% endset %}{{ c }}{{ role('assistant') }}{{ b | replace('a', a) }}x",
    "x{{ a | trim | indent(2) }}{{ role('assistant') }}x{{ [a, b] | join(a) }}",
];

fn render(template: &str, a: &str, b: &str) -> Option<Result<Vec<Part>, RenderError>> {
    let arguments = ["a", "b"].map(|name| ArgumentDefinition::new(name).description("A value"));
    let prompt = arguments.into_iter().fold(PromptDefinition::template("it", template), PromptDefinition::argument);
    let catalog = check(Definitions::from_iter([prompt]), None).catalog;
    let prompt = catalog.find("it")?;
    let bindings = prompt.bind(&RawArguments::from_iter([("a", a), ("b", b)]), 10_000).ok()?;
    Some(prompt.render(catalog.render_context(), &bindings))
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.splitn(3, '\u{1}');
    let (template, a, b) =
        (parts.next().unwrap_or_default(), parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let _ = render(template, a, b);
    let known = KNOWN[bytes.len() % KNOWN.len()];
    // A message with only white space is dropped; all others stay unchanged.
    let (a, b) = (format!("a{template}{a}"), format!("b{b}"));
    if let Some(Ok(parts)) = render(known, &a, &b) {
        assert_eq!(parts.len(), 2, "{known}");
    }
});
