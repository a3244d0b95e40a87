//! Compares the result of a test with its expectations.

use promptshelf_core::{CompletionTest, ContentBlock, Message, ResourceBody, TestDefinition};

use super::{Mismatch, TargetError, golden::difference};

/// Returns whether a test renders the prompt; one that only completes an argument does not.
pub(super) fn needs_messages(test: &TestDefinition) -> bool {
    let only_completes = TestDefinition {
        name: test.name.clone(),
        arguments: test.arguments.clone(),
        complete: test.complete.clone(),
        ..TestDefinition::default()
    };
    test.complete.is_none() || only_completes != *test
}

/// Returns the messages to compare further. `Err` ends the test: with a mismatch, or without one if
/// the expected error occurred.
pub(super) fn success_or_error(
    test: &TestDefinition,
    answer: Result<Vec<Message>, TargetError>,
) -> Result<Vec<Message>, Option<Mismatch>> {
    match (answer, &test.error) {
        (Ok(messages), None) => Ok(messages),
        (Ok(messages), Some(expected)) => Err(Some(Mismatch::new(
            format!("expected an error with \"{expected}\", got messages:"),
            all_text(&messages),
        ))),
        (Err(error), expected) => {
            let error = error.to_string();
            match expected {
                Some(expected) if error.contains(expected.as_str()) => Err(None),
                Some(expected) => {
                    Err(Some(Mismatch::new(format!("expected an error with \"{expected}\", got:"), error)))
                }
                None => Err(Some(Mismatch::new("the prompt cannot be used with these arguments:", error))),
            }
        }
    }
}

pub(super) fn messages(test: &TestDefinition, messages: &[Message]) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    let text = all_text(messages);
    for expected in test.contains.iter().filter(|expected| !text.contains(expected.as_str())) {
        mismatches.push(Mismatch::new(format!("\"{expected}\" is missing in:"), &*text));
    }
    for refused in test.not_contains.iter().filter(|refused| text.contains(refused.as_str())) {
        let line = text.lines().find(|line| line.contains(refused.as_str())).unwrap_or(&text);
        mismatches.push(Mismatch::new(format!("\"{refused}\" must not occur, found in:"), line));
    }
    if let Some(expected) = test.equals.as_deref().filter(|expected| expected.trim() != text.trim()) {
        mismatches.push(Mismatch::new("the messages differ:", difference(expected.trim(), text.trim())));
    }
    let roles: Vec<&str> = messages.iter().map(|message| message.role.as_str()).collect();
    let expected: Vec<&str> = test.roles.iter().map(|role| role.as_str()).collect();
    mismatches.extend(sequence("roles", &expected, &roles));
    let kinds: Vec<&str> = messages.iter().map(|message| message.content.kind()).collect();
    let expected: Vec<&str> = test.kinds.iter().map(String::as_str).collect();
    mismatches.extend(sequence("kinds", &expected, &kinds));
    mismatches
}

fn sequence(what: &str, expected: &[&str], found: &[&str]) -> Option<Mismatch> {
    if expected.is_empty() || expected == found {
        return None;
    }
    Some(Mismatch::new(format!("the {what} differ:"), format!("-{}\n+{}", expected.join(", "), found.join(", "))))
}

fn all_text(messages: &[Message]) -> String {
    let text = |message: &Message| match &message.content {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Resource(resource) => match &resource.contents.body {
            ResourceBody::Text(text) => text.to_string(),
            ResourceBody::Blob(_) => resource.contents.uri.to_string(),
        },
        ContentBlock::Link(link) => format!("{} {}", link.name, link.uri),
        ContentBlock::Image(_) | ContentBlock::Audio(_) => String::new(),
    };
    let texts: Vec<String> = messages.iter().map(text).filter(|text| !text.is_empty()).collect();
    texts.join("\n\n")
}

pub(super) fn completions(test: &CompletionTest, answer: Result<Vec<String>, TargetError>) -> Vec<Mismatch> {
    let suggested = match answer {
        Ok(values) => values,
        Err(error) => return vec![Mismatch::new("the argument cannot be completed:", error.to_string())],
    };
    let argument = &test.argument;
    let has = |value: &&String| suggested.contains(value);
    let missing = test.contains.iter().filter(|value| !has(value));
    let missing = missing.map(|value| format!("`{value}` is missing in the suggestions for `{argument}`:"));
    let extra = test.not_contains.iter().filter(has);
    let extra = extra.map(|value| format!("unexpected suggestion `{value}` for `{argument}`:"));
    missing.chain(extra).map(|sentence| Mismatch::new(sentence, suggested.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use promptshelf_core::Role;

    use super::*;

    #[test]
    fn expectations_are_independent() {
        let rendered = [Message::user("Hello, Ada!"), Message::assistant("Hi.")];
        let good = TestDefinition {
            contains: vec!["Ada".to_owned()],
            not_contains: vec!["Grace".to_owned()],
            equals: Some("Hello, Ada!\n\nHi.\n".to_owned()),
            roles: vec![Role::User, Role::Assistant],
            kinds: vec!["text".to_owned(), "text".to_owned()],
            ..TestDefinition::default()
        };
        assert_eq!(messages(&good, &rendered), []);
        let bad = TestDefinition {
            contains: vec!["Grace".to_owned()],
            not_contains: vec!["Hi".to_owned()],
            equals: Some("Hello, Ada!".to_owned()),
            roles: vec![Role::User],
            kinds: vec!["text".to_owned(), "image".to_owned()],
            ..TestDefinition::default()
        };
        let mismatches = messages(&bad, &rendered);
        let sentences: Vec<&str> = mismatches.iter().map(|mismatch| mismatch.message.as_str()).collect();
        assert_eq!(
            sentences,
            [
                "\"Grace\" is missing in:",
                "\"Hi\" must not occur, found in:",
                "the messages differ:",
                "the roles differ:",
                "the kinds differ:",
            ]
        );
        assert_eq!(mismatches[3].details, "-user\n+user, assistant");
    }

    #[test]
    fn completion_test_does_not_render() {
        let complete = Some(CompletionTest::default());
        assert!(!needs_messages(&TestDefinition { complete: complete.clone(), ..TestDefinition::default() }));
        let contains = vec!["x".to_owned()];
        assert!(needs_messages(&TestDefinition { complete, contains, ..TestDefinition::default() }));
        assert!(needs_messages(&TestDefinition::default()));
    }
}
