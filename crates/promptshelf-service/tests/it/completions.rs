//! Completion of prompt arguments and of resource template variables.

use promptshelf_core::{
    ArgumentDefinition, CompletionSource, Definitions, PromptDefinition, ResourceContent, Variables,
};
use promptshelf_service::{Caller, Reference, Rejection, Service};

use crate::{now, prompts, resource, service};

fn log_service() -> Service {
    let by = CompletionSource::By {
        argument: "language".into(),
        cases: vec![("rust".into(), vec!["axum".into()]), ("python".into(), vec!["django".into()])],
    };
    let prompt = PromptDefinition::template("review", "{{ language }}{{ framework }}")
        .argument(ArgumentDefinition::new("language").choices(["rust", "python"]))
        .argument(ArgumentDefinition::new("framework").complete(by));
    let mut logs = resource("logs://{day}", ResourceContent::Template("{{ day }}".into()));
    logs.variables = vec![ArgumentDefinition::new("day").choices(["monday", "tuesday"])];
    service(Definitions { resources: vec![logs], ..prompts([prompt]) })
}

fn complete(
    reference: Reference<'_>,
    argument: &str,
    typed: &str,
    known: &[(&str, &str)],
) -> Result<Vec<String>, Rejection> {
    let known: Variables = known.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    now(log_service().complete(&Caller::local(), reference, argument, typed, &known))
        .map(|found| found.into_value().values)
}

// req: E5
#[test]
fn completion_uses_known_arguments() {
    let review = Reference::Prompt("review");
    assert_eq!(complete(review, "language", "ru", &[]), Ok(vec!["rust".into()]));
    assert_eq!(complete(review, "framework", "", &[("language", "python")]), Ok(vec!["django".into()]));
}

// req: E9
#[test]
fn variables_of_a_resource_template_are_completed() {
    assert_eq!(complete(Reference::Resource("logs://{day}"), "day", "t", &[]), Ok(vec!["tuesday".into()]));
}

// req: E7
#[test]
fn unknown_target_is_not_completed() {
    let sentence = |answer: Result<Vec<String>, Rejection>| answer.expect_err("it is rejected").to_string();
    assert_eq!(sentence(complete(Reference::Prompt("reviw"), "language", "", &[])), "Unknown prompt: reviw");
    assert_eq!(
        sentence(complete(Reference::Prompt("review"), "lang", "", &[])),
        "Unknown argument: lang; expected one of language, framework"
    );
    assert_eq!(
        sentence(complete(Reference::Resource("logs://monday"), "day", "", &[])),
        "Resource not found: logs://monday"
    );
    assert_eq!(
        sentence(complete(Reference::Resource("logs://{day}"), "month", "", &[])),
        "Unknown argument: month; expected one of day"
    );
}
