//! Expected messages: comparison with the received ones, and recording.

use std::{collections::HashMap, ops::Range};

use serde_json::{Map, Value, json};

/// The maximum width of JSON in a transcript, where it can be wrapped.
const WIDTH: usize = 110;

/// A string without spaces that is longer than this is abbreviated to its beginning.
const LONGEST_WORD: usize = 160;

/// The length of an abbreviated beginning.
const BEGINNING: usize = 48;

/// A response to be written into a transcript.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// The lines to replace.
    pub(crate) place: Range<usize>,
    pub(crate) status: Option<u16>,
    pub(crate) text: String,
}

/// Compares a received message with the expected one, and binds the names in the expected one. The error names the
/// first difference.
pub(crate) fn compare(expected: &Value, came: &Value, names: &mut HashMap<String, String>) -> Result<(), String> {
    match (expected, came) {
        (Value::String(wanted), _) if wanted == "…" => Ok(()),
        (Value::String(wanted), Value::String(came)) => compare_strings(wanted, came, names),
        (Value::Object(wanted), Value::Object(came)) => {
            if let Some(key) = wanted.keys().find(|key| !came.contains_key(*key)) {
                return Err(format!(".{key} is missing"));
            }
            if let Some(key) = came.keys().find(|key| !wanted.contains_key(*key)) {
                return Err(format!(".{key} is there, and is not expected"));
            }
            wanted.iter().try_for_each(|(key, wanted)| {
                compare(wanted, &came[key], names).map_err(|error| format!(".{key}{error}"))
            })
        }
        (Value::Array(wanted), Value::Array(came)) if wanted.len() == came.len() => {
            wanted.iter().zip(came).enumerate().try_for_each(|(at, (wanted, came))| {
                compare(wanted, came, names).map_err(|error| format!("[{at}]{error}"))
            })
        }
        (Value::Array(wanted), Value::Array(came)) => {
            Err(format!(" has {} items, expected {}", came.len(), wanted.len()))
        }
        (wanted, came) if wanted == came => Ok(()),
        (wanted, came) => Err(format!(" is {came}, expected {wanted}")),
    }
}

fn compare_strings(wanted: &str, came: &str, names: &mut HashMap<String, String>) -> Result<(), String> {
    if let Some(name) = wanted.strip_prefix('‹').and_then(|rest| rest.strip_suffix('›')) {
        names.insert(name.to_owned(), came.to_owned());
        return Ok(());
    }
    let same = match beginning(wanted) {
        Some((start, length)) => came.starts_with(start) && came.chars().count() == length,
        None => wanted == came,
    };
    if same { Ok(()) } else { Err(format!(" is {came:?}, expected {wanted:?}")) }
}

/// The parts of `begin…[99]`.
fn beginning(wanted: &str) -> Option<(&str, usize)> {
    let (start, length) = wanted.strip_suffix(']')?.rsplit_once("…[")?;
    Some((start, length.parse().ok()?))
}

/// Formats an actual message for a transcript: earlier wildcards stay, very long words are cut, and the times of
/// files become wildcards.
pub(crate) fn write_down(before: Option<&Value>, came: &Value) -> String {
    let mut out = String::new();
    write(&mut out, &settle(before, came), 0);
    out
}

fn settle(before: Option<&Value>, came: &Value) -> Value {
    match (before, came) {
        (Some(Value::String(wild)), _) if wild == "…" => Value::String(wild.clone()),
        (Some(Value::String(wild)), Value::String(_)) if wild.starts_with('‹') => Value::String(wild.clone()),
        (_, Value::String(text)) if text.chars().count() > LONGEST_WORD && !text.contains(' ') => {
            let start: String = text.chars().take(BEGINNING).collect();
            Value::String(format!("{start}…[{}]", text.chars().count()))
        }
        (before, Value::Object(came)) => {
            let settle = |(key, came): (&String, &Value)| match key.as_str() {
                "lastModified" => (key.clone(), Value::from("…")),
                _ => (key.clone(), settle(before.and_then(|before| before.get(key)), came)),
            };
            Value::Object(came.iter().map(settle).collect())
        }
        (before, Value::Array(came)) => {
            let inside = |at: usize| before.and_then(|before| before.get(at));
            Value::Array(came.iter().enumerate().map(|(at, came)| settle(inside(at), came)).collect())
        }
        (_, came) => came.clone(),
    }
}

fn write(out: &mut String, value: &Value, indent: usize) {
    let line = on_one_line(value);
    if line.chars().count() + indent <= WIDTH {
        out.push_str(&line);
        return;
    }
    let deeper = indent + 2;
    match value {
        Value::Object(members) => {
            out.push('{');
            write_members(out, members, deeper);
            out.push_str(&format!("\n{:indent$}}}", ""));
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(&format!("{}\n{:deeper$}", if at > 0 { "," } else { "" }, ""));
                write(out, item, deeper);
            }
            out.push_str(&format!("\n{:indent$}]", ""));
        }
        _ => out.push_str(&line),
    }
}

fn write_members(out: &mut String, members: &Map<String, Value>, indent: usize) {
    for (at, (key, value)) in members.iter().enumerate() {
        let key = Value::String(key.clone());
        out.push_str(&format!("{}\n{:indent$}{key}: ", if at > 0 { "," } else { "" }, ""));
        write(out, value, indent);
    }
}

fn on_one_line(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let each = |(key, value)| format!("{}: {}", Value::String(String::clone(key)), on_one_line(value));
            format!("{{{}}}", members.iter().map(each).collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(on_one_line).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

#[test]
fn transcript_detects_every_difference() {
    let differs = |expected: Value, came: Value| compare(&expected, &came, &mut HashMap::new()).err();
    assert_eq!(differs(json!({ "a": [1, "x"] }), json!({ "a": [1, "x"] })), None);
    assert_eq!(
        differs(json!({ "a": 1 }), json!({ "a": 1, "b": 2 })).as_deref(),
        Some(".b is there, and is not expected")
    );
    assert_eq!(differs(json!({ "a": 1, "b": 2 }), json!({ "a": 1 })).as_deref(), Some(".b is missing"));
    assert_eq!(differs(json!({ "a": [1] }), json!({ "a": [1, 2] })).as_deref(), Some(".a has 2 items, expected 1"));
    assert_eq!(differs(json!([{ "a": 1 }]), json!([{ "a": "1" }])).as_deref(), Some("[0].a is \"1\", expected 1"));
    assert_eq!(differs(json!({ "a": null }), json!({})).as_deref(), Some(".a is missing"));
}

#[test]
fn transcript_placeholders_match_any_value() {
    let mut names = HashMap::new();
    let expected = json!({ "any": "…", "named": "‹cursor›", "long": "abc…[5]" });
    let came = json!({ "any": { "x": 1 }, "named": "c", "long": "abcde" });
    assert_eq!(compare(&expected, &came, &mut names), Ok(()));
    assert_eq!(names["cursor"], "c");
    assert!(compare(&json!("abc…[5]"), &json!("abcd"), &mut names).is_err());
    assert!(compare(&json!("abc…[5]"), &json!("xbcde"), &mut names).is_err());
    assert!(compare(&json!("‹cursor›"), &json!(7), &mut names).is_err());
    let came = json!({ "lastModified": "2026-01-01T00:00:00Z", "any": 1, "data": "x".repeat(200) });
    let written = write_down(Some(&json!({ "any": "…" })), &came);
    let expected = serde_json::from_str(&written).expect("JSON");
    assert_eq!(compare(&expected, &came, &mut names), Ok(()));
    assert!(written.contains(r#""lastModified": "…""#) && written.contains(r#""any": "…""#), "{written}");
}
