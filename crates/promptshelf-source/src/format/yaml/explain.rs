//! Syntax errors in an author's words.

use std::borrow::Cow;

/// Where in a line a value begins that is meant for the template.
pub(super) fn template_value(line: &str) -> Option<usize> {
    let is_start = |at: &usize| {
        let before = line[..*at].trim_end();
        before.len() < *at && before.ends_with([':', '-'])
    };
    line.match_indices("{{").chain(line.match_indices("{%")).map(|(at, _)| at).find(is_start)
}

/// Says in an author's words what the parser found, and what to do about it.
pub(super) fn explain(found: &str, character: Option<char>) -> (Cow<'_, str>, Option<&'static str>) {
    if found.starts_with("tabs disallowed") {
        return ("a tab stands where spaces are needed".into(), Some("indent with spaces"));
    }
    if found.starts_with("mapping values are not allowed") {
        return (
            "a `:` stands where no key can be".into(),
            Some("put quotes around a text that holds `: `, and give keys of one level the same indentation"),
        );
    }
    if let Some(character) = character.filter(|_| found.starts_with("unexpected character")) {
        let message = format!("a text cannot start with {character:?} unless it stands in quotes");
        return (message.into(), Some("put quotes around it"));
    }
    if found.contains("found unknown escape character") {
        return (found.into(), Some("in double quotes a backslash is written twice; in single quotes once"));
    }
    if found.contains("quoted scalar") {
        return ("a quotation mark is not closed".into(), None);
    }
    (found.into(), None)
}
