//! What a test expects, compared with what came.

use promptshelf_core::{CompletionTest, ContentBlock, Message, Prompt, RawArguments, ResourceBody, TestDefinition};
use promptshelf_server::Library;
use promptshelf_service::{Caller, Reference};

use super::golden::difference;
use crate::exit::Failure;

/// One thing that is not as a test expects it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) sentence: String,
    /// What was there instead, line by line.
    pub(super) details: String,
}

impl Fault {
    pub(super) fn new(sentence: impl Into<String>, details: impl Into<String>) -> Fault {
        Fault { sentence: sentence.into(), details: details.into() }
    }
}

/// Whether a test has anything to do with messages: one of a completion alone
/// does not fill in the prompt.
pub(super) fn asks_for_messages(test: &TestDefinition) -> bool {
    let only_completes = TestDefinition {
        name: test.name.clone(),
        arguments: test.arguments.clone(),
        complete: test.complete.clone(),
        ..TestDefinition::default()
    };
    test.complete.is_none() || only_completes != *test
}

/// The messages; otherwise what is wrong with there being none, if it is.
pub(super) async fn ask(
    library: &Library,
    prompt: &Prompt,
    test: &TestDefinition,
) -> Result<Vec<Message>, Option<Fault>> {
    let given = RawArguments::from(&test.arguments);
    let answer = library.service().get(&Caller::local(), prompt.name().as_str(), &given).await;
    match (answer, &test.error) {
        (Ok(answer), None) => Ok(answer.into_value().messages),
        (Ok(answer), Some(expected)) => Err(Some(Fault::new(
            format!("an error that says \"{expected}\" was expected, and the prompt says:"),
            said(&answer.value().messages),
        ))),
        (Err(rejection), expected) => {
            let sentence = Failure::from(rejection).sentence;
            match expected {
                Some(expected) if sentence.contains(expected.as_str()) => Err(None),
                Some(expected) => {
                    Err(Some(Fault::new(format!("the error does not say \"{expected}\", but:"), sentence)))
                }
                None => Err(Some(Fault::new("the prompt cannot be used with these arguments:", sentence))),
            }
        }
    }
}

/// Everything about messages that is not as a test expects it.
pub(super) fn messages(test: &TestDefinition, messages: &[Message]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let said = said(messages);
    for expected in test.contains.iter().filter(|expected| !said.contains(expected.as_str())) {
        faults.push(Fault::new(format!("\"{expected}\" is missing in:"), &*said));
    }
    for refused in test.not_contains.iter().filter(|refused| said.contains(refused.as_str())) {
        let line = said.lines().find(|line| line.contains(refused.as_str())).unwrap_or(&said);
        faults.push(Fault::new(format!("\"{refused}\" must not be there, and is:"), line));
    }
    if let Some(expected) = test.equals.as_deref().filter(|expected| expected.trim() != said.trim()) {
        faults.push(Fault::new("the messages say something else:", difference(expected.trim(), said.trim())));
    }
    let roles: Vec<&str> = messages.iter().map(|message| message.role.as_str()).collect();
    let expected: Vec<&str> = test.roles.iter().map(|role| role.as_str()).collect();
    faults.extend(sequence("roles", &expected, &roles));
    let kinds: Vec<&str> = messages.iter().map(|message| message.content.kind()).collect();
    let expected: Vec<&str> = test.kinds.iter().map(String::as_str).collect();
    faults.extend(sequence("kinds", &expected, &kinds));
    faults
}

fn sequence(what: &str, expected: &[&str], found: &[&str]) -> Option<Fault> {
    if expected.is_empty() || expected == found {
        return None;
    }
    Some(Fault::new(format!("the {what} are others:"), format!("-{}\n+{}", expected.join(", "), found.join(", "))))
}

/// Everything that is said, block by block.
fn said(messages: &[Message]) -> String {
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

/// Everything about suggestions that is not as a test expects it.
pub(super) fn completion(library: &Library, prompt: &Prompt, test: &CompletionTest) -> Vec<Fault> {
    let reference = Reference::Prompt(prompt.name().as_str());
    let answer = library.service().complete(&Caller::local(), reference, &test.argument, &test.value, &test.context);
    let suggested = match answer {
        Ok(completions) => completions.into_value().values,
        Err(rejection) => return vec![Fault::new("nothing can be suggested:", rejection.to_string())],
    };
    let argument = &test.argument;
    let has = |value: &&String| suggested.contains(value);
    let missing = test.contains.iter().filter(|value| !has(value));
    let missing = missing.map(|value| format!("`{value}` is not suggested for `{argument}`, but:"));
    let extra = test.not_contains.iter().filter(has);
    let extra = extra.map(|value| format!("`{value}` must not be suggested for `{argument}`, and is:"));
    missing.chain(extra).map(|sentence| Fault::new(sentence, suggested.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use promptshelf_core::Role;

    use super::*;

    #[test]
    fn each_expectation_is_compared_by_itself() {
        let given = [Message::user("Hello, Ada!"), Message::assistant("Hi.")];
        let good = TestDefinition {
            contains: vec!["Ada".to_owned()],
            not_contains: vec!["Grace".to_owned()],
            equals: Some("Hello, Ada!\n\nHi.\n".to_owned()),
            roles: vec![Role::User, Role::Assistant],
            kinds: vec!["text".to_owned(), "text".to_owned()],
            ..TestDefinition::default()
        };
        assert_eq!(messages(&good, &given), []);
        let bad = TestDefinition {
            contains: vec!["Grace".to_owned()],
            not_contains: vec!["Hi".to_owned()],
            equals: Some("Hello, Ada!".to_owned()),
            roles: vec![Role::User],
            kinds: vec!["text".to_owned(), "image".to_owned()],
            ..TestDefinition::default()
        };
        let faults = messages(&bad, &given);
        let sentences: Vec<&str> = faults.iter().map(|fault| fault.sentence.as_str()).collect();
        assert_eq!(
            sentences,
            [
                "\"Grace\" is missing in:",
                "\"Hi\" must not be there, and is:",
                "the messages say something else:",
                "the roles are others:",
                "the kinds are others:",
            ]
        );
        assert_eq!(faults[3].details, "-user\n+user, assistant");
    }

    #[test]
    fn a_test_of_a_completion_alone_does_not_fill_in_the_prompt() {
        let complete = Some(CompletionTest::default());
        assert!(!asks_for_messages(&TestDefinition { complete: complete.clone(), ..TestDefinition::default() }));
        let contains = vec!["x".to_owned()];
        assert!(asks_for_messages(&TestDefinition { complete, contains, ..TestDefinition::default() }));
        assert!(asks_for_messages(&TestDefinition::default()));
    }
}
