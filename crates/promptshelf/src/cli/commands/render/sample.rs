//! Values for arguments that a preview was given none for.

use promptshelf_core::{Argument, ArgumentType, CompletionSource, Prompt, Variables};

/// The given values, and samples for what is required besides; the names of
/// those that were filled in.
pub(super) fn complete(prompt: &Prompt, given: &Variables) -> (Variables, Vec<String>) {
    let mut values = given.clone();
    let mut filled = Vec::new();
    for argument in prompt.arguments().iter().filter(|argument| argument.required()) {
        if !values.contains_key(argument.name()) {
            values.insert(argument.name().to_owned(), sample(prompt, argument));
            filled.push(argument.name().to_owned());
        }
    }
    (values, filled)
}

/// What its author shows or tests it with, or else something of the right kind.
fn sample(prompt: &Prompt, argument: &Argument) -> String {
    let tests = prompt.definition().tests.iter().filter(|test| test.error.is_none());
    let tested = tests.filter_map(|test| test.arguments.get(argument.name())).next().cloned();
    let written = argument.examples().first().cloned();
    let chosen = || argument.choices().first().map(|choice| choice.value.clone());
    let completed = || match argument.completion() {
        Some(CompletionSource::Values(values)) => values.first().cloned(),
        Some(CompletionSource::Paths(paths)) => paths.first().cloned(),
        _ => None,
    };
    let definition = argument.definition();
    let number = || definition.minimum.or(definition.maximum).unwrap_or(1.0);
    written.or(tested).or_else(chosen).or_else(completed).unwrap_or_else(|| match argument.kind() {
        ArgumentType::Integer => format!("{:.0}", number()),
        ArgumentType::Number => number().to_string(),
        ArgumentType::Boolean => "true".to_owned(),
        ArgumentType::Date => "2026-07-28".to_owned(),
        ArgumentType::Json => "{}".to_owned(),
        ArgumentType::String | ArgumentType::Text | ArgumentType::List => format!("‹{}›", argument.name()),
    })
}
