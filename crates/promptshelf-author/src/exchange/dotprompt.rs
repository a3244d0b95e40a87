//! Imports Google's dotprompt files: `*.prompt`.
//!
//! Source: dotprompt's documentation and `parse.ts` of its implementation. Lines of `#` and empty lines before the front
//! matter, such as a licence, are skipped. YAML front matter with `input.schema` and `input.default`, a Handlebars body,
//! partials in files that begin with `_`, and `name.variant.prompt` for variants.

use std::ops::Range;

use promptshelf_core::{ArgumentDefinition, Code};

use super::{Foreign, entries, get, handlebars, lose_others, picoschema, slug, stem, text_of, typed};
use promptshelf_source::syntax::{Node, Notes, front_matter, parse_markdown, parse_yaml};

pub(super) fn read(notes: &mut Notes<'_>) -> Vec<Foreign> {
    let (keys, body) = parts(notes);
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
                let (kind, value) = typed(&entry.node);
                match prompt.arguments.iter_mut().find(|argument| argument.name == entry.key) {
                    Some(argument) => {
                        argument.default = Some(value);
                        argument.required = false;
                    }
                    None => prompt.arguments.push(ArgumentDefinition {
                        kind,
                        ..ArgumentDefinition::new(entry.key.clone()).default_value(value)
                    }),
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
    prompt.template = handlebars::translate(body, &prompt.arguments, notes);
    vec![prompt]
}

/// Returns the front matter and the text, without the comments before them.
fn parts(notes: &mut Notes<'_>) -> (Option<Node>, Range<usize>) {
    let text = &notes.source.text;
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let is_skipped = |line: &&str| line.starts_with('#') || line.trim().is_empty();
    let header: usize = text[start..].split_inclusive('\n').take_while(is_skipped).map(str::len).sum();
    match front_matter(&text[start + header..]).filter(|_| header > 0) {
        Some((keys, body)) => {
            let shifted = |range: Range<usize>| start + header + range.start..start + header + range.end;
            (parse_yaml(shifted(keys), notes), shifted(body))
        }
        None => parse_markdown(notes),
    }
}
