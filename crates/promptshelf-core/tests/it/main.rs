//! Prompts, from definitions to messages, as their authors and callers see them.

mod arguments;
mod cases;
mod catalogs;
mod completions;
mod composition;
mod depth;
mod edited;
mod places;
mod previous;
mod structure;
mod uris;
mod workflow;

use promptshelf_core::{
    ArgumentDefinition, Catalog, Checked, Definitions, Message, Part, PromptDefinition, RawArguments, RenderError,
    check, invisible::InvisiblePolicy,
};

/// A library of these prompts, checked.
fn checked(prompts: impl IntoIterator<Item = PromptDefinition>) -> Checked {
    check(Definitions::from_iter(prompts), None)
}

/// A prompt that takes texts under these names, whatever is in them: templates
/// and filters have to bear what a policy would not let in.
fn prompt(template: &str, arguments: &[&str]) -> PromptDefinition {
    let prompt = PromptDefinition::template("it", template).description("A prompt");
    arguments
        .iter()
        .fold(prompt, |prompt, name| prompt.argument(ArgumentDefinition::new(*name).invisible(InvisiblePolicy::Keep)))
}

/// What the prompt `it` says to these values.
fn render(catalog: &Catalog, given: &RawArguments<'_>) -> Result<Vec<Message>, RenderError> {
    let prompt = catalog.find("it").expect("the prompt was found good");
    let bindings = prompt.bind(given, catalog.policy().value_bytes).expect("the values were found good");
    let parts = prompt.render(catalog.render_context(), &bindings)?;
    let message = |part| match part {
        Part::Message(message) => message,
        Part::Resource { uri, .. } => panic!("{uri} is to be read"),
    };
    Ok(parts.into_iter().map(message).collect())
}
