//! One argument for prompts that have several: the others are written before its value, as `name=value`.

use std::borrow::Cow;

use promptshelf_core::{Argument, Prompt, RawArgumentValue, RawArguments};
use serde_json::{Map, Value};

use super::main_argument;

pub(super) fn list(entry: &mut Map<String, Value>, prompt: &Prompt) {
    let Some(main) = main_argument(prompt).filter(|_| prompt.arguments().len() > 1) else { return };
    let others = prompt.arguments().iter().filter(|argument| argument.name() != main.name());
    let others: Vec<String> = others.map(shown).collect();
    let Some(arguments) = entry.get_mut("arguments").and_then(Value::as_array_mut) else { return };
    arguments.retain(|argument| argument["name"] == main.name());
    if let Some(argument) = arguments.first_mut().and_then(Value::as_object_mut) {
        let own = argument.get("description").and_then(Value::as_str).unwrap_or(main.name()).trim_end_matches('.');
        let text = format!("{own}. Write other values before it: {}", others.join(", "));
        argument.insert("description".to_owned(), text.into());
    }
}

/// Returns `name=…`, with a `*` for an argument without which the prompt cannot be used.
fn shown(argument: &Argument) -> String {
    let choices: Vec<&str> = argument.choices().iter().map(|choice| &*choice.value).collect();
    let values = if choices.is_empty() || choices.len() > 8 { "…".to_owned() } else { choices.join("|") };
    format!("{}={values}{}", argument.name(), if argument.required() { " (required)" } else { "" })
}

/// Reads `name=value` before the value of the shown argument. A value with spaces is between quotation marks. Everything
/// from the first other word on is the value itself, whatever it contains.
pub(super) fn split<'a>(prompt: &Prompt, given: &RawArguments<'a>) -> RawArguments<'a> {
    let Some(main) = main_argument(prompt).filter(|_| prompt.arguments().len() > 1) else { return given.clone() };
    let Some(RawArgumentValue::Text(text)) = given.get(main.name()) else { return given.clone() };
    let (mut rest, mut found) = (&**text, Vec::new());
    while let Some((name, value, after)) = pair(rest, prompt) {
        found.push((name.to_owned(), value.to_owned()));
        rest = after;
    }
    if found.is_empty() {
        return given.clone();
    }
    let own = (!rest.is_empty()).then(|| (main.name().to_owned(), rest.to_owned()));
    let others = given.iter().filter(|(name, _)| *name != main.name());
    let others = others.map(|(name, value)| (Cow::Owned(name.to_owned()), value.clone()));
    let pairs = found.into_iter().chain(own);
    let pairs = pairs.map(|(name, value)| (Cow::Owned(name), RawArgumentValue::Text(Cow::Owned(value))));
    others.chain(pairs).collect()
}

/// Reads one `name=value` at the beginning. Returns the rest without the spaces after it.
fn pair<'t, 'p>(text: &'t str, prompt: &'p Prompt) -> Option<(&'p str, &'t str, &'t str)> {
    let text = text.trim_start();
    let (name, rest) = text.split_once('=')?;
    let name = prompt.argument(name)?.name();
    let (value, after) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
    };
    Some((name, value, after.trim_start()))
}
