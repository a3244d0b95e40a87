//! Multi-line values that are inserted between lines of the template without a visible boundary.

use promptshelf_core::{ArgumentType, Code, Diagnostic, Location, Prompt, TemplateAnalysis};
use std::collections::HashSet;

use super::body_of;

pub(super) fn check(prompt: &Prompt, found: &mut Vec<Diagnostic>) {
    let is_long = |name: &str| prompt.argument(name).is_some_and(|argument| argument.kind() == ArgumentType::Text);
    let Some(range) = body_of(prompt).filter(|_| prompt.arguments().iter().any(|it| is_long(it.name()))) else {
        return;
    };
    let text = prompt.source().text.get(range.clone()).unwrap_or_default();
    let template = TemplateAnalysis::of(text);
    let mut named = HashSet::new();
    for used in template.unenclosed.iter().filter(|used| is_long(&used.name)) {
        let edges: Vec<usize> = template.calls.iter().flat_map(|call| [call.span.start, call.span.end]).collect();
        let before = edges.iter().rfind(|edge| **edge <= used.span.start).map_or(0, |edge| *edge);
        let after = edges.iter().find(|edge| **edge >= used.span.end).map_or(text.len(), |edge| *edge);
        let is_message = is_blank(&text[before..used.span.start]) && is_blank(&text[used.span.end..after]);
        if !is_message && stands_alone(text, &used.span) && named.insert(&used.name) {
            let name = &used.name;
            let message = format!("no visible boundary around the value of `{name}`");
            let help = format!("`{{{{ {name} | fence }}}}` or `{{{{ {name} | xml(\"{name}\") }}}}` adds one");
            let place = Location::new(prompt.source(), range.start + used.span.start..range.start + used.span.end);
            found.push(Diagnostic::hint(Code::BareText, place, message).help(help));
        }
    }
}

/// Returns whether a text holds only white space and the delimiters of tags.
fn is_blank(text: &str) -> bool {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '{' | '}' | '-' | '%')).is_empty()
}

/// Returns whether a tag is alone on its line. Inside a sentence, a value is meant to be part of it.
fn stands_alone(text: &str, span: &std::ops::Range<usize>) -> bool {
    let before = text[..span.start].rsplit('\n').next().unwrap_or_default();
    let after = text[span.end..].split('\n').next().unwrap_or_default();
    is_blank(before) && is_blank(after)
}

#[cfg(test)]
mod tests {
    use promptshelf_core::{ArgumentDefinition, ArgumentType, Definitions, PromptDefinition, check};

    use crate::review;

    fn hints(text: &str) -> Vec<String> {
        let argument = ArgumentDefinition::new("code").description("Code").kind(ArgumentType::Text);
        let prompt = PromptDefinition::template("p", text).description("Reviews").argument(argument);
        let checked = check(Definitions::from_iter([prompt]), None);
        review(&checked.catalog, &checked.diagnostics).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn multi_line_text_between_lines_is_reported_once() {
        let found = hints("Review this:\n\n{{ code }}\n\nAgain:\n{{ code | trim }}\n");
        assert_eq!(
            found,
            [
                r#"<p>:3:4: hint[bare-text]: no visible boundary around the value of `code` (`{{ code | fence }}` or `{{ code | xml("code") }}` adds one)"#
            ]
        );
        assert_eq!(hints("Review:\n```\n{{ code }}\n```").len(), 1);
    }

    #[test]
    fn enclosed_or_inline_text_is_accepted() {
        for text in [
            "Review this:\n{{ code | fence }}",
            "Review this:\n{{ code | trim | xml('code') }}",
            "{{ code }}",
            "Review this:\n{{ role('user') }}\n{{ code }}\n{{ role('assistant') }}\nGladly.",
            "My problem is {{ code }}.\nHelp.",
            "Review this:\n{% filter quote %}\n{{ code }}\n{% endfilter %}",
            "Review this:\n{% if code %}\nNow.{% endif %}",
        ] {
            assert_eq!(hints(text), [""; 0], "{text}");
        }
    }
}
