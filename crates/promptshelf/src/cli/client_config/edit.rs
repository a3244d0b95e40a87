//! Setting and removing one entry in the text of a configuration file.

#[cfg(test)]
mod tests;

use std::ops::Range;

use jsonc_parser::{
    CollectOptions, CommentCollectionStrategy, ParseOptions,
    ast::{Object, Value as Ast},
    common::{Range as AstRange, Ranged as _},
    cst::{CstInputValue, CstRootNode},
    parse_to_ast,
    tokens::{Token, TokenAndRange},
};
use promptshelf_author::clients::{Configuration, ConfigurationFormat};
use serde_json::{Map, Value};

use super::{
    EditError, not_a_mapping,
    text_edit::{line_end, line_start, replaced},
    toml_file, yaml_file,
};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) container: &'static [&'static str],
    pub(crate) value: Value,
}

/// The byte order mark, which some editors on Windows write.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Parses a file to a value; an empty file is an empty mapping.
pub(crate) fn parse(format: ConfigurationFormat, text: &str) -> Result<Value, EditError> {
    let text = text.trim_start_matches(BYTE_ORDER_MARK);
    let (value, name) = match format {
        ConfigurationFormat::Toml => (toml_file::parse(text), "TOML"),
        ConfigurationFormat::Yaml => (yaml_file::parse(text), "YAML"),
        _ => (json(text), "JSON"),
    };
    let value = value.map_err(|error| EditError::new(format!("it is not valid {name}: {error}")))?;
    match value {
        Value::Object(_) => Ok(value),
        Value::Null => Ok(Value::Object(Map::new())),
        other => Err(EditError::new(format!("expected a mapping, found {}", kind(&other)))),
    }
}

pub(crate) fn find_entry(configuration: &Configuration, whole: &Value, name: &str) -> Option<Entry> {
    let value = entries(configuration, whole)?.get(name)?.clone();
    Some(Entry { container: container(configuration, whole), value })
}

/// Returns the container with the entries of all servers.
pub(crate) fn entries<'v>(configuration: &Configuration, whole: &'v Value) -> Option<&'v Value> {
    container(configuration, whole).iter().try_fold(whole, |value, key| value.get(key))
}

pub(crate) fn container(configuration: &Configuration, whole: &Value) -> &'static [&'static str] {
    let exists = |container: &&&'static [&'static str]| {
        container.iter().try_fold(whole, |value, key| value.get(key)).is_some_and(Value::is_object)
    };
    let containers = configuration.containers;
    containers.iter().find(exists).or(containers.last()).copied().unwrap_or_default()
}

/// Returns the text with an entry set, or removed for `None`. The result is parsed, and must differ from the original in
/// this entry only.
pub(crate) fn with_entry(
    configuration: &Configuration,
    text: &str,
    name: &str,
    entry: Option<&Value>,
) -> Result<String, EditError> {
    let format = configuration.format;
    let before = parse(format, text)?;
    let place = container(configuration, &before);
    let (mark, content) = without_mark(text);
    let edited = match format {
        ConfigurationFormat::Toml => toml_file::edit(content, place, name, entry)?,
        ConfigurationFormat::Yaml => yaml_file::edit(content, place, name, entry)?,
        _ => edit_json(content, place, name, entry)?,
    };
    let expected = expected(before, place, name, entry)?;
    if parse(format, &edited).ok().map(without_empty(place)) != Some(without_empty(place)(expected)) {
        return Err(EditError::new("the entry cannot be changed without changing other parts; edit the file by hand"));
    }
    Ok(format!("{mark}{edited}"))
}

/// Returns the text without the container of the entries, if that is empty and has no comments.
pub(crate) fn without_empty_container(configuration: &Configuration, text: &str) -> String {
    let (mark, content) = without_mark(text);
    let place = parse(configuration.format, content).map(|whole| container(configuration, &whole));
    let edited = match (configuration.format, place) {
        (ConfigurationFormat::Json, Ok([container])) => without_empty_member(content, container).ok().flatten(),
        (ConfigurationFormat::Yaml, Ok([container])) => yaml_file::without_empty_container(content, container),
        // Tables of TOML need none.
        _ => None,
    };
    edited.map_or_else(|| text.to_owned(), |edited| format!("{mark}{edited}"))
}

fn without_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 })
}

/// Removes an empty container, which formats write or leave out.
fn without_empty(place: &'static [&'static str]) -> impl Fn(Value) -> Value {
    move |mut whole| {
        if let [.., _] = place {
            for length in (1..=place.len()).rev() {
                let (last, above) = place[..length].split_last().unwrap_or((&"", &[]));
                let parent = above.iter().try_fold(&mut whole, |value, key| value.get_mut(*key));
                if let Some(Value::Object(parent)) = parent {
                    let is_empty = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
                    if parent.get(*last).is_some_and(is_empty) {
                        parent.shift_remove(*last);
                    }
                }
            }
        }
        whole
    }
}

fn expected(mut whole: Value, place: &[&str], name: &str, entry: Option<&Value>) -> Result<Value, EditError> {
    let mut value = &mut whole;
    for key in place {
        let Value::Object(object) = value else { return Err(not_a_mapping(place)) };
        value = object.entry(*key).or_insert_with(|| Value::Object(Map::new()));
        if value.is_null() {
            *value = Value::Object(Map::new());
        }
    }
    let Value::Object(entries) = value else { return Err(not_a_mapping(place)) };
    match entry {
        Some(entry) => entries.insert(name.to_owned(), entry.clone()),
        None => entries.shift_remove(name),
    };
    Ok(whole)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
        Value::String(_) => "text",
        Value::Number(_) => "a number",
        Value::Bool(_) => "true or false",
        Value::Null => "nothing",
    }
}

/// JSON with comments and trailing commas, and nothing else.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

fn json(text: &str) -> Result<Value, EditError> {
    jsonc_parser::parse_to_serde_value(text, &OPTIONS).map_err(|error| EditError::new(error.to_string()))
}

fn edit_json(text: &str, place: &[&str], name: &str, entry: Option<&Value>) -> Result<String, EditError> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let collected = CollectOptions { comments: CommentCollectionStrategy::Off, tokens: true };
    let parsed = parse_to_ast(text, &collected, &OPTIONS).map_err(|error| EditError::new(error.to_string()))?;
    let object = object_at(parsed.value.as_ref(), place)?;
    if let Some(object) = object {
        reject_duplicates(object, name)?;
    }
    match (entry, object.and_then(|object| Some((object, object.get(name)?)))) {
        (Some(entry), _) => with_json(text, place, name, entry),
        (None, Some((object, property))) => {
            Ok(without_property(text, object, property.range(), &parsed.tokens.unwrap_or_default()))
        }
        (None, None) => Ok(text.to_owned()),
    }
}

fn without_empty_member(text: &str, name: &str) -> Result<Option<String>, EditError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS);
    let parsed = parsed.map_err(|error| EditError::new(error.to_string()))?;
    let object = object_at(parsed.value.as_ref(), &[name])?
        .filter(|object| &text[object.range().start..object.range().end] == "{}");
    object.map(|_| edit_json(text, &[], name, None)).transpose()
}

fn object_at<'v>(root: Option<&'v Ast<'v>>, place: &[&str]) -> Result<Option<&'v Object<'v>>, EditError> {
    let Some(root) = root else { return Ok(None) };
    let mut object = root.as_object().ok_or_else(|| not_a_mapping(&[]))?;
    for key in place {
        reject_duplicates(object, key)?;
        let Some(property) = object.get(key) else { return Ok(None) };
        object = property.value.as_object().ok_or_else(|| not_a_mapping(place))?;
    }
    Ok(Some(object))
}

/// Rejects a key that appears twice: parsers differ in which of them counts.
fn reject_duplicates(object: &Object<'_>, key: &str) -> Result<(), EditError> {
    match object.properties.iter().filter(|property| property.name.as_str() == key).count() {
        0 | 1 => Ok(()),
        _ => Err(EditError::new(format!("the key `{key}` appears twice; keep one of them"))),
    }
}

fn with_json(text: &str, place: &[&str], name: &str, entry: &Value) -> Result<String, EditError> {
    let root = CstRootNode::parse(text, &OPTIONS).map_err(|error| EditError::new(error.to_string()))?;
    let mut object = root.object_value_or_create().ok_or_else(|| not_a_mapping(&[]))?;
    for key in place {
        object = object.object_value_or_create(key).ok_or_else(|| not_a_mapping(place))?;
    }
    match object.get(name) {
        Some(property) => property.set_value(input(entry)),
        None => {
            object.append(name, input(entry));
        }
    }
    Ok(root.to_string())
}

/// Cuts a property with one comma, its lines, and a comment at their end. Other comments stay.
fn without_property(text: &str, object: &Object<'_>, property: AstRange, tokens: &[TokenAndRange<'_>]) -> String {
    let is_comma = |token: &&TokenAndRange<'_>| token.token == Token::Comma;
    let after = tokens.iter().find(|token| token.range.start >= property.end).filter(is_comma);
    let before = tokens.iter().rev().find(|token| token.range.end <= property.start).filter(is_comma);
    let mut cut = property.start..property.end;
    let mut cuts = Vec::new();
    match (after.map(|comma| comma.range), before.map(|comma| comma.range)) {
        (Some(comma), _) if text[cut.end..comma.start].trim().is_empty() => cut.end = comma.end,
        (Some(comma), _) => cuts.push(comma.start..comma.end + blanks(&text[comma.end..])),
        (None, Some(comma)) => cuts.push(comma.start..comma.end),
        (None, None) => {}
    }
    let (start, end) = (line_start(text, cut.start), line_end(text, cut.end));
    let (lead, rest) = (&text[start..cut.start], text[cut.end..end].trim());
    if lead.trim().is_empty() && (rest.is_empty() || is_one_comment(rest)) {
        cut = start..end;
    } else if rest.is_empty() || after.is_none() {
        cut.start -= lead.len() - lead.trim_end_matches([' ', '\t']).len();
    } else {
        cut.end += blanks(&text[cut.end..]);
    }
    cuts.push(cut);
    let removed: usize = cuts.iter().map(Range::len).sum();
    let edited = replaced(text, cuts.into_iter().map(|cut| (cut, String::new())).collect());
    let inside = object.range.start + 1..object.range.end - 1 - removed;
    if edited[inside.clone()].trim().is_empty() { replaced(&edited, vec![(inside, String::new())]) } else { edited }
}

fn blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t']).len()
}

fn is_one_comment(text: &str) -> bool {
    text.starts_with("//")
        || text.strip_prefix("/*").is_some_and(|rest| rest.split_once("*/").is_some_and(|(_, rest)| rest.is_empty()))
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(key, value)| (key.clone(), input(value))).collect())
        }
    }
}
