//! Explanations and definitions of the word at a position.

use gen_lsp_types::{Contents, Definition, DefinitionResponse, Hover, Location, MarkupContent, MarkupKind, Range};
use promptshelf_core::{Deprecation, Prompt, PromptDefinition, TemplateWords};

use super::{Cursor, Place, Workspace, completion::about, position, vocabulary};

pub(super) fn hover(workspace: &Workspace, path: &str, text: &str, cursor: &Cursor<'_>) -> Option<Hover> {
    let word = cursor.word;
    let explanation = match cursor.place {
        Place::Key { parents: ref within } => workspace.keys(path, within).into_iter().find(|(key, _)| key == word)?.1,
        Place::String { callee: "prompt" } => prompt(workspace.catalog().find(word)?),
        Place::Value { ref path } if path.last() == Some(&"replacement") => prompt(workspace.catalog().find(word)?),
        Place::String { callee: "attach" | "link" | "include" | "import" | "from" } | Place::Value { .. } => {
            file(workspace, word)?
        }
        Place::Filter => match vocabulary::about(vocabulary::FILTERS, word) {
            Some(about) => about.to_owned(),
            None if TemplateWords::ALL.filters.contains(&word) => format!("`{word}`: a filter of Jinja."),
            None => return None,
        },
        Place::CallArgument { prompt } => about(workspace.catalog().find(prompt)?.argument(word)?.definition()),
        Place::Expression | Place::Statement => {
            let users = workspace.users(path);
            let argument = users.iter().flat_map(|it| &it.arguments).find(|argument| argument.name == word);
            match argument {
                Some(argument) => format!("**{word}**\n\n{}", about(argument)),
                None => vocabulary::about(vocabulary::FUNCTIONS, word)?.to_owned(),
            }
        }
        Place::String { .. } | Place::Test | Place::Text => return None,
    };
    Some(Hover {
        contents: Contents::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value: explanation }),
        range: Some(position::range(text, &cursor.span)),
    })
}

fn prompt(prompt: &Prompt) -> String {
    let mut text = format!("**{}**", prompt.title().unwrap_or(prompt.name().as_str()));
    if let Some(Deprecation { message, replacement }) = prompt.deprecation() {
        let replacement = replacement.as_ref().map(|name| format!(", use `{name}` instead")).unwrap_or_default();
        let message = message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
        text.push_str(&format!("\n\n**Deprecated**{replacement}{message}"));
    }
    if let Some(description) = prompt.description() {
        text.push_str(&format!("\n\n{description}"));
    }
    for argument in prompt.arguments() {
        let required = if argument.required() { ", required" } else { "" };
        let description = argument.description().unwrap_or_default();
        text.push_str(&format!("\n- `{}` ({}{required}) {description}", argument.name(), argument.kind().as_str()));
    }
    text
}

fn file(workspace: &Workspace, path: &str) -> Option<String> {
    if let Some(file) = workspace.catalog().file(path) {
        return Some(format!("`{path}`: {}, {} bytes", file.mime_type.as_str(), file.body.len()));
    }
    let (resource, _) = workspace.catalog().find_resource(path)?;
    Some(format!("**{}**\n\n{}", resource.name(), resource.description().unwrap_or_default()))
}

pub(super) fn definition(workspace: &Workspace, path: &str, cursor: &Cursor<'_>) -> Option<DefinitionResponse> {
    let word = cursor.word;
    let location = match cursor.place {
        Place::String { callee: "prompt" } => {
            let prompt = workspace.catalog().find(word)?;
            part(workspace, prompt.definition(), "name")
        }
        Place::Value { ref path } if path.last() == Some(&"replacement") => {
            part(workspace, workspace.catalog().find(word)?.definition(), "name")
        }
        Place::String { .. } | Place::Value { .. } => {
            let is_text = workspace.partials().any(|partial| partial.path == word);
            if !is_text && workspace.catalog().file(word).is_none() {
                return None;
            }
            Location { uri: workspace.uri(word).into(), range: Range::default() }
        }
        Place::CallArgument { prompt } => argument(workspace, workspace.catalog().find(prompt)?.definition(), word)?,
        Place::Expression | Place::Statement | Place::Filter | Place::Test => {
            workspace.users(path).into_iter().find_map(|it| argument(workspace, it, word))?
        }
        Place::Key { .. } | Place::Text => return None,
    };
    Some(DefinitionResponse::Definition(Definition::Location(location)))
}

fn argument(workspace: &Workspace, definition: &PromptDefinition, name: &str) -> Option<Location> {
    let index = definition.arguments.iter().position(|argument| argument.name == name)?;
    Some(part(workspace, definition, &format!("arguments.{index}.name")))
}

fn part(workspace: &Workspace, definition: &PromptDefinition, part: &str) -> Location {
    let found = definition.origin.locate(part);
    let range = position::range(&found.source.text, &found.span());
    Location { uri: workspace.uri(&found.source.path).into(), range }
}
