//! Imports patterns of Fabric: `patterns/NAME/system.md`.
//!
//! Source: Fabric's documentation. A pattern is plain Markdown, named by its folder; `{{input}}` is the user's input,
//! other `{{name}}` are variables, and `{{plugin:…}}` is expanded by the program. Without `{{input}}`, the input
//! follows the text.

use super::{Foreign, slug, template};
use promptshelf_source::syntax::{Notes, Pieces, placeholders};

pub(super) fn read(notes: &mut Notes<'_>) -> Vec<Foreign> {
    let text = notes.source.text.trim_start_matches('\u{feff}').to_owned();
    let start = notes.source.text.len() - text.len();
    let mut pieces = Pieces::default();
    placeholders(&text, start..notes.source.text.len(), &mut pieces, notes);
    let folder = notes.source.path.rsplit('/').nth(1).unwrap_or("pattern");
    let (pieces, mut arguments) = pieces.into_parts();
    let mut template = template::of(&pieces);
    let described = |argument: promptshelf_core::ArgumentDefinition| {
        argument.description("The text that the pattern is applied to")
    };
    match arguments.iter().position(|argument| argument.name == "input") {
        Some(index) => arguments[index] = described(arguments[index].clone()),
        None => {
            template = format!("{}\n\n{{{{ input }}}}\n", template.trim_end());
            arguments.push(described(promptshelf_core::ArgumentDefinition::new("input").required()));
        }
    }
    for argument in arguments.iter_mut().filter(|argument| argument.name == "input") {
        argument.kind = promptshelf_core::ArgumentType::Text;
    }
    let path = slug(folder);
    let description = Some(format!("Fabric's pattern {}", path.replace(['_', '-'], " ")));
    vec![Foreign { path, description, arguments, template, tags: vec!["fabric".to_owned()], ..Foreign::default() }]
}
