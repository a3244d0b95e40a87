//! Explanations and definitions of the word at a position.

use gen_lsp_types::{Contents, Definition, DefinitionResponse, Hover, Location, MarkupContent, MarkupKind, Range};
use promptshelf_core::{
    ContentBlock, Deprecation, Interrupt, Message, Part, Prompt, PromptDefinition, RawArguments, TemplateWord,
    TemplateWords, Variables, bind,
};

use serde_json::{Value, json};

use crate::{add_samples, testing::transcript};

use super::{
    Cursor, Place, Workspace,
    completion::{about, compared},
    position,
};

pub(super) fn hover(workspace: &Workspace, path: &str, text: &str, cursor: &Cursor<'_>) -> Option<Hover> {
    let word = cursor.word;
    let explanation = match cursor.place {
        Place::Key { parents: ref within } => {
            let about = workspace.keys(path, within).into_iter().find(|(key, _)| key == word)?.1;
            let of_prompt = within.is_empty() && ["name", "title", "description"].contains(&word);
            let own = workspace.catalog().prompts().iter().find(|prompt| of_prompt && prompt.source().path == path);
            format!("{about}{}", own.map(|prompt| rendered(workspace, prompt)).unwrap_or_default())
        }
        Place::String { callee: "prompt" } => {
            let called = workspace.catalog().find(word)?;
            format!("{}{}", prompt(called), rendered(workspace, called))
        }
        Place::Value { ref path } if path.last() == Some(&"replacement") => prompt(workspace.catalog().find(word)?),
        Place::String { callee: "attach" | "link" | "include" | "import" | "from" } | Place::Value { .. } => {
            file(workspace, word)?
        }
        Place::Filter => about_word(TemplateWords::ALL.filters, word)?,
        Place::Test => about_word(TemplateWords::ALL.tests, word)?,
        Place::CallArgument { prompt } => about(workspace.catalog().find(prompt)?.argument(word)?.definition()),
        Place::Choice { prompt, argument } => {
            format!("**{argument}**\n\n{}", about(compared(workspace, path, prompt, argument).first()?))
        }
        Place::Statement if let Some(statement) = about_word(TemplateWords::ALL.statements, word) => statement,
        Place::Expression | Place::Statement => match compared(workspace, path, None, word).first() {
            Some(argument) => format!("**{word}**\n\n{}", about(argument)),
            None => {
                let TemplateWords { functions, operators, statements, .. } = TemplateWords::ALL;
                [functions, operators, statements].into_iter().find_map(|words| about_word(words, word))?
            }
        },
        Place::String { .. } | Place::Text => return None,
    };
    Some(Hover {
        contents: Contents::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value: explanation }),
        range: Some(position::range(text, &cursor.span)),
    })
}

fn about_word(words: &'static [TemplateWord], word: &str) -> Option<String> {
    TemplateWords::find(words, word).map(TemplateWord::markdown)
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

/// The longest text of a prompt or partial that is shown, in characters.
const MAX_SHOWN: usize = 2_000;

/// The longest sample value, in bytes.
const MAX_VALUE: usize = 1 << 16;

/// Returns the name of a file's prompt and its messages with sample values; `None` while the file has errors.
pub(super) fn preview(workspace: &Workspace, path: &str) -> Option<Value> {
    let is_broken = workspace.found.iter().any(|found| found.is_error() && found.location.source.path == path);
    let prompts = workspace.catalog().prompts();
    let prompt = prompts.iter().find(|prompt| !is_broken && prompt.source().path == path)?;
    Some(json!({ "name": prompt.name().as_str(), "text": messages(workspace, prompt)? }))
}

/// Returns the messages of a prompt with sample values for its required arguments; `None` if they cannot be rendered here.
fn messages(workspace: &Workspace, prompt: &Prompt) -> Option<String> {
    let mut values = Variables::new();
    add_samples(prompt, &mut values);
    let parts = Interrupt::brief().scope(|| {
        let bindings = bind(prompt.arguments(), &RawArguments::from(&values), MAX_VALUE).ok()?;
        prompt.render(workspace.catalog().render_context(), &bindings).ok()
    });
    let message = |part| match part {
        Part::Message(message) => message,
        Part::Resource { role, uri, .. } => Message { role, content: ContentBlock::text(format!("[{uri}]")) },
    };
    Some(transcript(&parts?.into_iter().map(message).collect::<Vec<_>>()))
}

fn rendered(workspace: &Workspace, prompt: &Prompt) -> String {
    messages(workspace, prompt).map(|text| format!("\n\nWith sample values:\n\n{}", fenced(&text))).unwrap_or_default()
}

fn fenced(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("`````text\n{}\n`````", shown.trim_end())
}

fn file(workspace: &Workspace, path: &str) -> Option<String> {
    let file = workspace.catalog().file(path);
    let text = workspace.partials().find(|partial| partial.path == path);
    if file.is_some() || text.is_some() {
        let about = file.map(|file| format!(": {}, {} bytes", file.mime_type.as_str(), file.body.len()));
        let text = text.map(|text| format!("\n\n{}", fenced(&text.text)));
        return Some(format!("`{path}`{}{}", about.unwrap_or_default(), text.unwrap_or_default()));
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
        Place::Choice { prompt: Some(prompt), argument: name } => argument(workspace, workspace.named(prompt)?, name)?,
        Place::Choice { prompt: None, argument: name } => {
            workspace.users(path).into_iter().find_map(|it| argument(workspace, it, name))?
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
