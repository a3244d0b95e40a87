//! The deprecation of a prompt: a message, a mapping of `message` and `replacement`, or `true`.

use promptshelf_core::{Code, Deprecation, Severity};

use super::{
    keys::{Holds, Keys, key, keys},
    table::Table,
    tree::{Notes, ScalarKind, Value},
};

pub(crate) const KEYS: Keys = keys(&[
    key("message", Holds::Text, "The reason, or the date of its removal, for people who use the prompt."),
    key("replacement", Holds::Text, "The name of the prompt to use instead."),
]);

/// Reads the deprecation under the key `deprecated`.
pub(crate) fn deprecation(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> Option<Deprecation> {
    let node = table.node("deprecated", notes)?;
    let (message, replacement) = match &node.value {
        Value::Scalar(scalar) if scalar.kind == ScalarKind::Boolean => {
            return scalar.text.eq_ignore_ascii_case("true").then(Deprecation::default);
        }
        Value::Scalar(scalar) => (Some(scalar.text.clone()), None),
        Value::Mapping(_) => {
            let table = Table::of(node, "deprecated.", "`deprecated`", notes)?;
            table.expect(&KEYS, Severity::Warning, "in `deprecated`", notes);
            (table.text("message", notes), table.text("replacement", notes))
        }
        Value::List(_) => {
            let message = format!("`deprecated`: expected a message, a mapping or `true`, found {}", node.kind());
            notes.error(Code::WrongType, &node.span, message).help =
                Some("write a message, or the keys `message` and `replacement`".to_owned());
            return None;
        }
    };
    let is_blank = |text: &Option<String>| text.as_ref().is_some_and(|text| text.trim().is_empty());
    if is_blank(&message) || is_blank(&replacement) {
        notes.error(Code::InvalidValue, &node.span, "`deprecated`: a text is empty").help =
            Some("remove it; `deprecated: true` needs no message".to_owned());
    }
    Some(Deprecation { message: message.map(|text| text.trim_end().to_owned()), replacement })
}

#[cfg(test)]
mod tests {
    use promptshelf_core::SourceText;

    use super::*;
    use crate::syntax::parse_prompt;

    /// Returns the deprecation of a file with this front matter, and the messages of its diagnostics.
    fn read(key: &str) -> (Option<Deprecation>, Vec<String>) {
        let source = SourceText::new("a.md", format!("---\ndescription: A\n{key}\n---\nText"));
        let parsed = parse_prompt(&source).expect("a prompt file");
        let messages = parsed.diagnostics.into_iter().map(|found| found.message).collect();
        (parsed.definition.and_then(|definition| definition.deprecated.as_deref().cloned()), messages)
    }

    #[test]
    fn deprecation_is_a_message_a_mapping_or_true() {
        let by = |replacement: &str| Deprecation::default().replaced_by(replacement);
        for (key, expected) in [
            ("deprecated: Ends in May", Some(Deprecation::new("Ends in May"))),
            ("deprecated: true", Some(Deprecation::default())),
            ("deprecated: false", None),
            ("deprecated:", None),
            ("deprecated: {}", Some(Deprecation::default())),
            ("deprecated: { replacement: b }", Some(by("b"))),
            (
                "deprecated:\n  message: Ends in May\n  replacement: b",
                Some(Deprecation::new("Ends in May").replaced_by("b")),
            ),
        ] {
            assert_eq!(read(key), (expected, Vec::new()), "{key}");
        }
    }

    #[test]
    fn malformed_deprecation_is_an_error() {
        for (key, message) in [
            ("deprecated: [a]", "`deprecated`: expected a message, a mapping or `true`, found a list"),
            ("deprecated: \"\"", "`deprecated`: a text is empty"),
            ("deprecated: { replacement: ' ' }", "`deprecated`: a text is empty"),
            ("deprecated: { message: [a] }", "`message`: expected text, found a list"),
        ] {
            assert_eq!(read(key), (None, vec![message.to_owned()]), "{key}");
        }
        let (read, messages) = read("deprecated: { replaces: b }");
        assert!(read.is_some() && messages[0].starts_with("unknown key `replaces` in `deprecated`"), "{messages:?}");
    }
}
