//! One entry in a TOML file.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value as TomlValue, value};

use super::{EditError, not_a_mapping};

pub(super) fn parse(text: &str) -> Result<Value, EditError> {
    toml::from_str(text).map_err(|error: toml::de::Error| EditError::new(error.to_string()))
}

pub(super) fn edit(text: &str, place: &[&str], name: &str, entry: Option<&Value>) -> Result<String, EditError> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| EditError::new(error.to_string()))?;
    let mut table: &mut dyn toml_edit::TableLike = document.as_table_mut();
    for key in place {
        let item = table.entry(key).or_insert_with(|| {
            let mut parent = Table::new();
            parent.set_implicit(true);
            Item::Table(parent)
        });
        table = item.as_table_like_mut().ok_or_else(|| not_a_mapping(place))?;
    }
    match entry {
        Some(entry) => {
            let new = item(entry);
            match table.get_mut(name) {
                // In place, so that the order of the tables stays.
                Some(Item::Table(old)) if new.is_table() => {
                    let decor = old.decor().clone();
                    let position = old.position();
                    if let Item::Table(mut new) = new {
                        *new.decor_mut() = decor;
                        new.set_position(position);
                        *old = new;
                    }
                }
                _ => {
                    table.insert(name, new);
                }
            }
        }
        None => {
            table.remove(name);
        }
    }
    let edited = document.to_string();
    // The library ends every line of a pair with a single line feed.
    let has_crlf = text.contains("\r\n") && text.matches('\n').count() == text.matches("\r\n").count();
    Ok(if has_crlf { edited.replace("\r\n", "\n").replace('\n', "\r\n") } else { edited })
}

fn item(entry: &Value) -> Item {
    match entry {
        Value::Object(members) => {
            let mut table = Table::new();
            for (key, member) in members {
                table.insert(key, value(inline(member)));
            }
            Item::Table(table)
        }
        other => value(inline(other)),
    }
}

fn inline(value: &Value) -> TomlValue {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(values) => values.iter().map(inline).collect::<Array>().into(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.as_str(), inline(value))).collect::<InlineTable>().into()
        }
        // TOML has no null; no entry has one.
        Value::Null => "".into(),
    }
}
