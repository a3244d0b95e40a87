//! Imports Google's dotprompt files: `*.prompt`.
//!
//! Source: dotprompt's documentation. YAML front matter with `input.schema` and `input.default`, a Handlebars body,
//! partials in files that begin with `_`, and `name.variant.prompt` for variants.

use promptshelf_core::Code;

use super::{Foreign, entries, get, handlebars, lose_others, picoschema, slug, stem, text_of};
use promptshelf_source::syntax::{Notes, parse_markdown};

pub(super) fn read(notes: &mut Notes<'_>) -> Vec<Foreign> {
    let (keys, body) = parse_markdown(notes);
    if notes.has_errors() {
        return Vec::new();
    }
    let stem = stem(&notes.source.path, ".prompt").to_owned();
    let mut prompt = Foreign { path: slug(&stem), is_partial: stem.starts_with('_'), ..Foreign::default() };
    if prompt.is_partial {
        prompt.path = format!("_{}", slug(&stem));
    }
    if let Some(keys) = &keys {
        lose_others(keys, &["name", "description", "input"], notes);
        if let Some(name) = text_of(keys, "name") {
            prompt.path = slug(&name);
        }
        prompt.description = text_of(keys, "description");
        if let Some(input) = get(keys, "input") {
            lose_others(input, &["schema", "default"], notes);
            if let Some(schema) = get(input, "schema") {
                prompt.arguments = picoschema::arguments(schema, notes);
            }
            for entry in get(input, "default").map(entries).unwrap_or_default() {
                let value = entry.node.text().map_or_else(|| entry.node.to_json().to_string(), str::to_owned);
                match prompt.arguments.iter_mut().find(|argument| argument.name == entry.key) {
                    Some(argument) => {
                        argument.default = Some(value);
                        argument.required = false;
                    }
                    None => prompt
                        .arguments
                        .push(promptshelf_core::ArgumentDefinition::new(entry.key.clone()).default_value(value)),
                }
            }
        }
    }
    if prompt.is_partial && !prompt.arguments.is_empty() {
        notes.warning(
            Code::NotSupported,
            &(0..0),
            "a partial cannot declare arguments; it uses those of the including prompt",
        );
    }
    prompt.template = handlebars::translate(body, notes);
    vec![prompt]
}
