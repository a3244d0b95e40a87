//! Sample values for the required arguments of a prompt, for previews.

use promptshelf_core::{Argument, ArgumentType, CompletionSource, Prompt, Variables};

/// Adds a sample value for each required argument without a value, and returns the names of those arguments.
///
/// ```
/// use promptshelf_author::add_samples;
/// use promptshelf_core::{ArgumentDefinition, Definitions, PromptDefinition, Variables, check};
///
/// let name = ArgumentDefinition::new("name").required();
/// let hello = PromptDefinition::template("hello", "Hello, {{ name }}!").argument(name);
/// let catalog = check(Definitions { prompts: vec![hello.into()], ..Definitions::default() }, None).catalog;
/// let mut values = Variables::new();
/// assert_eq!(add_samples(catalog.find("hello").unwrap(), &mut values), ["name"]);
/// assert_eq!(values["name"], "‹name›");
/// ```
pub fn add_samples(prompt: &Prompt, values: &mut Variables) -> Vec<String> {
    let mut added = Vec::new();
    for argument in prompt.arguments().iter().filter(|argument| argument.required()) {
        if !values.contains_key(argument.name()) {
            values.insert(argument.name().to_owned(), sample(prompt, argument));
            added.push(argument.name().to_owned());
        }
    }
    added
}

/// Returns a value from the argument's examples or tests; otherwise one of the right type.
fn sample(prompt: &Prompt, argument: &Argument) -> String {
    let tests = prompt.definition().tests.iter().filter(|test| test.error.is_none());
    let tested = tests.filter_map(|test| test.arguments.get(argument.name())).next().cloned();
    let written = argument.examples().first().cloned();
    let chosen = || argument.choices().first().map(|choice| choice.value.clone());
    let completed = || match argument.completion() {
        Some(CompletionSource::Values(values)) => values.first().cloned(),
        Some(CompletionSource::Paths(paths) | CompletionSource::RootPaths { paths, .. }) => paths.first().cloned(),
        _ => None,
    };
    let definition = argument.definition();
    let number = || definition.constraints().minimum.or(definition.constraints().maximum).unwrap_or(1.0);
    written.or(tested).or_else(chosen).or_else(completed).unwrap_or_else(|| match argument.kind() {
        ArgumentType::Integer => format!("{:.0}", number()),
        ArgumentType::Number => number().to_string(),
        ArgumentType::Boolean => "true".to_owned(),
        ArgumentType::Date => "2026-07-28".to_owned(),
        ArgumentType::Json => "{}".to_owned(),
        ArgumentType::String | ArgumentType::Text | ArgumentType::List => format!("‹{}›", argument.name()),
    })
}
