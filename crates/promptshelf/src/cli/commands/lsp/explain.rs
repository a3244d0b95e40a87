//! What the cursor is on, and where that is defined.

use gen_lsp_types::{Contents, Definition, DefinitionResponse, Hover, Location, MarkupContent, MarkupKind, Range};
use promptshelf_core::{Prompt, PromptDefinition, TemplateWords};

use super::{
    complete::about,
    cursor::{Cursor, Place},
    place,
    shelf::Shelf,
    words,
};

pub(super) fn hover(shelf: &Shelf, path: &str, text: &str, cursor: &Cursor<'_>) -> Option<Hover> {
    let word = cursor.word;
    let said = match cursor.place {
        Place::Key { path: ref within } => shelf.keys(path, within).into_iter().find(|(key, _)| key == word)?.1,
        Place::String { of: "prompt" } => prompt(shelf.catalog().find(word)?),
        Place::String { of: "attach" | "link" | "include" | "import" | "from" } | Place::Value { .. } => {
            file(shelf, word)?
        }
        Place::Filter => match words::about(words::FILTERS, word) {
            Some(about) => about.to_owned(),
            None if TemplateWords::ALL.filters.contains(&word) => format!("`{word}`: a filter of Jinja."),
            None => return None,
        },
        Place::RawArguments { prompt } => about(shelf.catalog().find(prompt)?.argument(word)?.definition()),
        Place::Expression | Place::Statement => {
            let users = shelf.users(path);
            let argument = users.iter().flat_map(|it| &it.arguments).find(|argument| argument.name == word);
            match argument {
                Some(argument) => format!("**{word}**\n\n{}", about(argument)),
                None => words::about(words::FUNCTIONS, word)?.to_owned(),
            }
        }
        Place::String { .. } | Place::Test | Place::Text => return None,
    };
    Some(Hover {
        contents: Contents::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value: said }),
        range: Some(place::range(text, &cursor.span)),
    })
}

fn prompt(prompt: &Prompt) -> String {
    let mut said = format!("**{}**", prompt.title().unwrap_or(prompt.name().as_str()));
    if let Some(description) = prompt.description() {
        said.push_str(&format!("\n\n{description}"));
    }
    for argument in prompt.arguments() {
        let required = if argument.required() { ", required" } else { "" };
        let description = argument.description().unwrap_or_default();
        said.push_str(&format!("\n- `{}` ({}{required}) {description}", argument.name(), argument.kind().as_str()));
    }
    said
}

fn file(shelf: &Shelf, path: &str) -> Option<String> {
    if let Some(file) = shelf.catalog().file(path) {
        return Some(format!("`{path}`: {}, {} bytes", file.mime_type.as_str(), file.body.len()));
    }
    let (resource, _) = shelf.catalog().find_resource(path)?;
    Some(format!("**{}**\n\n{}", resource.name(), resource.description().unwrap_or_default()))
}

pub(super) fn definition(shelf: &Shelf, path: &str, cursor: &Cursor<'_>) -> Option<DefinitionResponse> {
    let word = cursor.word;
    let location = match cursor.place {
        Place::String { of: "prompt" } => {
            let prompt = shelf.catalog().find(word)?;
            part(shelf, prompt.definition(), "name")
        }
        Place::String { .. } | Place::Value { .. } => {
            let is_text = shelf.partials().any(|partial| partial.path == word);
            if !is_text && shelf.catalog().file(word).is_none() {
                return None;
            }
            Location { uri: shelf.uri(word).into(), range: Range::default() }
        }
        Place::RawArguments { prompt } => argument(shelf, shelf.catalog().find(prompt)?.definition(), word)?,
        Place::Expression | Place::Statement | Place::Filter | Place::Test => {
            shelf.users(path).into_iter().find_map(|it| argument(shelf, it, word))?
        }
        Place::Key { .. } | Place::Text => return None,
    };
    Some(DefinitionResponse::Definition(Definition::Location(location)))
}

fn argument(shelf: &Shelf, definition: &PromptDefinition, name: &str) -> Option<Location> {
    let index = definition.arguments.iter().position(|argument| argument.name == name)?;
    Some(part(shelf, definition, &format!("arguments.{index}.name")))
}

fn part(shelf: &Shelf, definition: &PromptDefinition, part: &str) -> Location {
    let found = definition.origin.locate(part);
    let range = place::range(&found.source.text, &found.span());
    Location { uri: shelf.uri(&found.source.path).into(), range }
}
