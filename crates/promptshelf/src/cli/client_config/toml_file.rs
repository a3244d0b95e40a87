//! One entry in a TOML file.

use serde_json::{Map, Value};
use toml_edit::{Array, Decor, DocumentMut, InlineTable, Item, Table, Value as TomlValue, value};

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
    let comments = match (entry, table.get_mut(name)) {
        // In place, so that the order of the tables and comments stay.
        (Some(Value::Object(members)), Some(Item::Table(old))) => {
            let before = place
                .iter()
                .chain([&name])
                .try_fold(parse(text)?, |mut value, key| value.get_mut(*key).map(Value::take));
            update(old, &before.unwrap_or_default(), members);
            None
        }
        (Some(entry), _) => {
            table.insert(name, item(entry));
            None
        }
        (None, _) => {
            table.remove(name).and_then(|old| old.into_table().ok()).map(|old| (old.position(), comments(&old)))
        }
    };
    match comments {
        Some((position, comments)) => put_back(&mut document, position, &comments),
        None => keep_trailing(&mut document, place, name),
    }
    let edited = document.to_string();
    // The library ends every line of a pair with a single line feed.
    let has_crlf = text.contains("\r\n") && text.matches('\n').count() == text.matches("\r\n").count();
    Ok(if has_crlf { edited.replace("\r\n", "\n").replace('\n', "\r\n") } else { edited })
}

/// Changes what differs from the present members.
fn update(table: &mut Table, present: &Value, members: &Map<String, Value>) {
    table.retain(|key, _| members.contains_key(key));
    for (key, member) in members.iter().filter(|(key, member)| present.get(key.as_str()) != Some(member)) {
        table.insert(key, value(inline(member)));
    }
}

/// The comments above a table and its keys.
fn comments(table: &Table) -> String {
    let of = |decor: &Decor| decor.prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default().to_owned();
    let keys = table.iter().filter_map(|(key, _)| table.key(key)).map(|key| of(key.leaf_decor()));
    std::iter::once(of(table.decor())).chain(keys).filter(|text| text.contains('#')).collect()
}

/// Writes comments of a removed table above the table behind it, or to the end of the file.
fn put_back(document: &mut DocumentMut, position: Option<isize>, comments: &str) {
    if comments.is_empty() {
        return;
    }
    let mut next: Option<isize> = None;
    let is_behind = |other: Option<isize>| other.filter(|other| position.is_some_and(|own| *other > own));
    tables(document.as_table_mut(), &mut |table| {
        next = [next, is_behind(table.position())].into_iter().flatten().min();
    });
    let Some(next) = next else {
        let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
        return document.set_trailing(format!("{comments}{trailing}"));
    };
    tables(document.as_table_mut(), &mut |table| {
        if table.position() == Some(next) {
            let own = table.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default().to_owned();
            table.decor_mut().set_prefix(format!("{comments}{own}"));
        }
    });
}

fn tables(table: &mut Table, visit: &mut dyn FnMut(&mut Table)) {
    for (_, item) in table.iter_mut() {
        match item {
            Item::Table(table) => {
                visit(table);
                tables(table, visit);
            }
            Item::ArrayOfTables(all) => all.iter_mut().for_each(|table| {
                visit(table);
                tables(table, visit);
            }),
            _ => {}
        }
    }
}

/// Writes comments at the end of the file above a new table: below it they would become a part of it.
fn keep_trailing(document: &mut DocumentMut, place: &[&str], name: &str) {
    let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
    if !trailing.contains('#') {
        return;
    }
    let mut table = Some(document.as_table_mut());
    for key in place {
        table = table.and_then(|table| table.get_mut(key)).and_then(Item::as_table_mut);
    }
    let new = table.and_then(|table| table.get_mut(name)).and_then(Item::as_table_mut);
    if let Some(new) = new.filter(|new| new.position().is_none()) {
        new.decor_mut().set_prefix(format!("{trailing}\n"));
        document.set_trailing("");
    }
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
