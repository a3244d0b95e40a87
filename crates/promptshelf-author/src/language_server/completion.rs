//! Completions at a position.

use std::collections::HashMap;

use gen_lsp_types::{
    CompletionItem, CompletionItemKind as Kind, CompletionItemTag, CompletionItemTextEdit, Documentation,
    MarkupContent, MarkupKind, TextEdit,
};
use promptshelf_core::{ArgumentDefinition, Choice, TemplateWords};
use promptshelf_source::ForeignSyntax;

use super::{Cursor, Place, Workspace, is_word, position};
use crate::fixes::siblings;

/// The most completions in a response; editors ask again after each key.
const MAX_ITEMS: usize = 500;

pub(super) fn items(workspace: &Workspace, path: &str, text: &str, cursor: &Cursor<'_>) -> Vec<CompletionItem> {
    let mut list = List { text, cursor, items: Vec::new(), places: HashMap::new() };
    match cursor.place {
        Place::Key { parents: ref within } => {
            let is_toml = path.ends_with(".toml");
            let (end, is_header) = if is_toml { (" = ", cursor.is_in_brackets(text)) } else { (": ", false) };
            let present = if is_header { Vec::new() } else { siblings(text, cursor.offset) };
            let is_new = |key: &str| (is_toml || !is_of_toml(key)) && !present.contains(&key);
            for (key, about) in workspace.keys(path, within).into_iter().filter(|(key, _)| is_new(key)) {
                list.add(&key, Kind::Property, &about);
                if !is_header {
                    list.last_inserts(&format!("{key}{end}"));
                }
            }
        }
        Place::Value { path: ref key } => {
            values(workspace, path, key, &mut list);
            placeholders(path, text, cursor, &mut list);
        }
        Place::String { callee } => strings(workspace, callee, &mut list),
        Place::Choice { prompt, argument } => {
            for choice in choices(workspace, path, prompt, argument) {
                list.add(&choice.value, Kind::EnumMember, choice.title.as_deref().unwrap_or_default());
            }
        }
        Place::Filter => {
            for filter in TemplateWords::ALL.filters {
                list.add(filter.name, Kind::Function, &filter.markdown());
            }
        }
        Place::Test => {
            for test in TemplateWords::ALL.tests {
                list.add(test.name, Kind::Function, &test.markdown());
            }
        }
        Place::CallArgument { prompt } => {
            let prompt = workspace.catalog().find(prompt);
            for argument in prompt.map(|prompt| prompt.arguments()).unwrap_or_default() {
                list.add(argument.name(), Kind::Variable, &about(argument.definition()));
                list.last_inserts(&format!("{}=", argument.name()));
            }
        }
        Place::Statement => {
            for statement in TemplateWords::ALL.statements {
                list.add(statement.name, Kind::Keyword, &statement.markdown());
            }
        }
        Place::Expression => {
            for definition in workspace.users(path) {
                for argument in &definition.arguments {
                    list.add(&argument.name, Kind::Variable, &about(argument));
                }
            }
            for function in TemplateWords::ALL.functions {
                list.add(function.name, Kind::Function, &function.markdown());
            }
        }
        Place::Text => placeholders(path, text, cursor, &mut list),
    }
    by_use(workspace, &mut list.items);
    list.items.truncate(MAX_ITEMS);
    list.items
}

/// The most bytes of a library in which uses are counted.
const MAX_COUNTED: usize = 1 << 20;

/// Orders completions by how often the library has their words.
fn by_use(workspace: &Workspace, items: &mut [CompletionItem]) {
    let mut counts: HashMap<&str, usize> = items.iter().map(|item| (item.label.as_str(), 0)).collect();
    let mut left = MAX_COUNTED;
    for source in workspace.texts().take_while(|source| {
        left = left.saturating_sub(source.text.len());
        left > 0
    }) {
        let is_part = |c: char| is_word(c) || "-./".contains(c);
        for word in source.text.split(|c| !is_part(c)).map(|word| word.trim_end_matches('.')) {
            if let Some(count) = counts.get_mut(word) {
                *count += 1;
            }
        }
    }
    let counts: HashMap<String, usize> = counts.into_iter().map(|(word, count)| (word.to_owned(), count)).collect();
    // The sort is stable: what is used as often keeps its order.
    items.sort_by_key(|item| std::cmp::Reverse(counts.get(&item.label).copied().unwrap_or_default()));
    for (place, item) in items.iter_mut().enumerate() {
        item.sort_text = Some(format!("{place:04}"));
    }
}

fn is_of_toml(key: &str) -> bool {
    ["min-length", "max-length"].contains(&key)
}

fn values(workspace: &Workspace, path: &str, key: &[&str], list: &mut List<'_>) {
    for word in workspace.values(path, key) {
        list.add(&word, Kind::Value, "");
    }
    match key.last().copied().unwrap_or_default() {
        "file" | "icons" | "src" => workspace.catalog().file_paths().for_each(|file| {
            list.add(file, Kind::File, "");
        }),
        "by" | "when" => {
            for argument in workspace.definition(path).map(|it| it.arguments.as_slice()).unwrap_or_default() {
                list.add(&argument.name, Kind::Variable, &about(argument));
            }
        }
        "replacement" => prompts(workspace, list),
        _ => {}
    }
}

fn prompts(workspace: &Workspace, list: &mut List<'_>) {
    for prompt in workspace.catalog().prompts().iter() {
        let item = list.add(prompt.name().as_str(), Kind::Module, prompt.description().unwrap_or_default());
        item.tags = prompt.deprecation().map(|_| vec![CompletionItemTag::Deprecated]);
    }
}

fn placeholders(path: &str, text: &str, cursor: &Cursor<'_>, list: &mut List<'_>) {
    let Some(words) = ForeignSyntax::for_path(path) else { return };
    let is_part = |c: char| c.is_alphanumeric() || "_${@:".contains(c);
    let start = text[..cursor.offset].trim_end_matches(is_part).len();
    let typed = &text[start..cursor.offset];
    for (place, about) in words.placeholders.iter().filter(|(place, _)| !typed.is_empty() && place.starts_with(typed)) {
        let range = position::range(text, &(start..cursor.offset));
        let edit = TextEdit { range, new_text: (*place).to_owned() };
        list.add(place, Kind::Snippet, about).text_edit = Some(CompletionItemTextEdit::TextEdit(edit));
    }
}

fn strings(workspace: &Workspace, callee: &str, list: &mut List<'_>) {
    match callee {
        "role" => ["user", "assistant"].into_iter().for_each(|role| {
            list.add(role, Kind::EnumMember, "");
        }),
        "include" | "import" | "from" | "extends" => workspace.partials().for_each(|partial| {
            list.add(&partial.path, Kind::File, "");
        }),
        "attach" | "link" => {
            for file in workspace.catalog().file_paths() {
                list.add(file, Kind::File, "");
            }
            for resource in workspace.catalog().resources() {
                list.add(resource.uri(), Kind::Reference, resource.description().unwrap_or_default());
            }
        }
        "prompt" => prompts(workspace, list),
        _ => {}
    }
}

fn choices<'w>(workspace: &'w Workspace, path: &str, prompt: Option<&str>, argument: &str) -> Vec<&'w Choice> {
    compared(workspace, path, prompt, argument).into_iter().flat_map(|argument| &argument.choices).collect()
}

/// Returns the arguments with a name: of a prompt, or of those whose templates contain a file.
pub(super) fn compared<'w>(
    workspace: &'w Workspace,
    path: &str,
    prompt: Option<&str>,
    argument: &str,
) -> Vec<&'w ArgumentDefinition> {
    let users = match prompt {
        Some(prompt) => workspace.named(prompt).into_iter().collect(),
        None => workspace.users(path),
    };
    users.into_iter().flat_map(|user| &user.arguments).filter(|it| it.name == argument).collect()
}

pub(super) fn about(argument: &ArgumentDefinition) -> String {
    let mut about = format!("argument · {}", argument.kind.as_str());
    match &argument.default {
        Some(default) => about.push_str(&format!(" · default `{default}`")),
        None => about.push_str(if argument.required { " · required" } else { " · optional" }),
    }
    if !argument.choices.is_empty() {
        let choices: Vec<&str> = argument.choices.iter().map(|choice| choice.value.as_str()).collect();
        about.push_str(&format!(" · one of {}", choices.join(", ")));
    }
    if let Some(description) = &argument.description {
        about.push_str(&format!("\n\n{description}"));
    }
    about
}

struct List<'t> {
    text: &'t str,
    cursor: &'t Cursor<'t>,
    items: Vec<CompletionItem>,
    /// The places of the labels.
    places: HashMap<String, usize>,
}

impl List<'_> {
    fn add(&mut self, label: &str, kind: Kind, about: &str) -> &mut CompletionItem {
        let index = self.places.get(label).copied().unwrap_or_else(|| {
            self.places.insert(label.to_owned(), self.items.len());
            self.items.push(CompletionItem {
                label: label.to_owned(),
                kind: Some(kind),
                documentation: (!about.is_empty()).then(|| {
                    Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value: about.to_owned() })
                }),
                text_edit: Some(self.edit(label)),
                ..CompletionItem::default()
            });
            self.items.len() - 1
        });
        &mut self.items[index]
    }

    fn last_inserts(&mut self, text: &str) {
        let edit = self.edit(text);
        if let Some(item) = self.items.last_mut() {
            item.text_edit = Some(edit);
        }
    }

    /// Returns an edit that replaces the typed text. Paths contain characters that editors treat as word boundaries,
    /// so the range is explicit.
    fn edit(&self, text: &str) -> CompletionItemTextEdit {
        let range = position::range(self.text, &self.cursor.typed());
        CompletionItemTextEdit::TextEdit(TextEdit { range, new_text: text.to_owned() })
    }
}
