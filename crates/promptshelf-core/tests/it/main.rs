//! Tests of the public interface, from definitions to messages.

mod arguments;
mod cases;
mod catalog;
mod completion;
mod composition;
mod incremental_check;
mod locations;
mod message_structure;
mod nesting;
mod recheck;
mod resource_uris;
mod totality;
#[cfg(target_os = "linux")]
mod work;
mod workflow;

use promptshelf_core::{
    ArgumentDefinition, Catalog, Checked, Definitions, Message, Part, PromptDefinition, RawArguments, RenderError,
    TemplateWord, TemplateWords, check, invisible::InvisiblePolicy,
};

/// Checks a library of these prompts.
fn checked(prompts: impl IntoIterator<Item = PromptDefinition>) -> Checked {
    check(Definitions::from_iter(prompts), None)
}

/// A prompt with these arguments, which keep invisible characters: templates and filters must be safe even for values
/// that the default policy would change.
fn prompt(template: &str, arguments: &[&str]) -> PromptDefinition {
    let prompt = PromptDefinition::template("it", template).description("A prompt");
    arguments
        .iter()
        .fold(prompt, |prompt, name| prompt.argument(ArgumentDefinition::new(*name).invisible(InvisiblePolicy::Keep)))
}

/// Renders the prompt `it` with these values.
/// Returns each filter with the arguments of its example, such as `join(", ")`.
fn filters() -> impl Iterator<Item = &'static str> {
    TemplateWords::ALL.filters.iter().map(|TemplateWord { name, example, .. }| {
        let begin = example.find(&format!("| {name}")).unwrap_or_else(|| panic!("{name} is not in its example"));
        let used = &example[begin + "| ".len()..];
        let end = if used[name.len()..].starts_with('(') { used.find(')').map(|at| at + 1) } else { None };
        &used[..end.unwrap_or(name.len())]
    })
}

fn render(catalog: &Catalog, raw: &RawArguments<'_>) -> Result<Vec<Message>, RenderError> {
    let prompt = catalog.find("it").expect("the prompt was found good");
    let bindings = prompt.bind(raw, catalog.policy().value_bytes).expect("the values were found good");
    let parts = prompt.render(catalog.render_context(), &bindings)?;
    let message = |part| match part {
        Part::Message(message) => message,
        Part::Resource { uri, .. } => panic!("{uri} is to be read"),
    };
    Ok(parts.into_iter().map(message).collect())
}
