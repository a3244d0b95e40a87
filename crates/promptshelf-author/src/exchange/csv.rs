//! Imports the table of prompts.chat: `act`, `prompt`, and optional columns.
//!
//! Source: the project's contribution guide. `act` is the title, `for_devs` is `TRUE` or `FALSE`, `type` is `TEXT` or
//! `STRUCTURED`, and `contributor` a user name. `${name:default}` in a prompt is a variable.

use std::collections::HashMap;

use promptshelf_core::{ArgumentDefinition, Code};

use super::{Foreign, slug, template};
use promptshelf_source::syntax::{Notes, Pieces, argument_name};

const KNOWN_KEYS: &[&str] = &["act", "prompt", "for_devs", "type", "contributor"];

pub(super) fn read(notes: &mut Notes<'_>) -> Vec<Foreign> {
    let text = notes.source.text.clone();
    let mut reader = ::csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let columns: Vec<String> = match reader.headers() {
        Ok(headers) => headers.iter().map(|it| it.trim_start_matches('\u{feff}').trim().to_lowercase()).collect(),
        Err(error) => {
            notes.error(Code::Syntax, &(0..0), format!("cannot read the table: {error}"));
            return Vec::new();
        }
    };
    let column = |name: &str| columns.iter().position(|known| known == name);
    let (Some(act), Some(prompt)) = (column("act"), column("prompt")) else {
        notes.error(Code::MissingKey, &(0..0), "the table needs the columns `act` and `prompt`");
        return Vec::new();
    };
    for other in columns.iter().filter(|column| !KNOWN_KEYS.contains(&&***column)) {
        notes.warning(Code::NotSupported, &(0..0), format!("the column `{other}` has no equivalent and is omitted"));
    }
    let mut prompts = Vec::new();
    let mut taken: HashMap<String, usize> = HashMap::new();
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let at = error.position().map_or(0, |at| usize::try_from(at.byte()).unwrap_or(0));
                notes.error(Code::Syntax, &(at..at), format!("cannot read this row: {error}"));
                break;
            }
        };
        let at = record.position().map_or(0, |at| usize::try_from(at.byte()).unwrap_or(0));
        let (title, text) = (record.get(act).unwrap_or_default().trim(), record.get(prompt).unwrap_or_default());
        if title.is_empty() || text.trim().is_empty() {
            notes.warning(Code::EmptyPrompt, &(at..at), "a row without a title or a prompt is omitted");
            continue;
        }
        let mut path = slug(title);
        let count = taken.entry(path.clone()).and_modify(|count| *count += 1).or_insert(1);
        if *count > 1 {
            path = format!("{path}-{count}");
            notes.warning(
                Code::DuplicateName,
                &(at..at),
                format!("duplicate title `{title}`: this row becomes `{path}`"),
            );
        }
        let value = |name: &str| column(name).and_then(|index| record.get(index)).unwrap_or_default();
        let mut tags = Vec::new();
        if value("for_devs").eq_ignore_ascii_case("true") {
            tags.push("for-developers".to_owned());
        }
        if value("type").eq_ignore_ascii_case("structured") {
            tags.push("structured".to_owned());
        }
        let by = Some(value("contributor")).filter(|by| !by.is_empty());
        let (pieces, arguments) = scan(text).into_parts();
        prompts.push(Foreign {
            path,
            title: Some(title.to_owned()),
            description: Some(by.map_or_else(|| format!("Acts as {title}"), |by| format!("Acts as {title} (by {by})"))),
            tags,
            arguments,
            template: template::of(&pieces),
            ..Foreign::default()
        });
    }
    prompts
}

fn scan(text: &str) -> Pieces {
    let mut pieces = Pieces::default();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let close = rest[start..].find('}').map(|length| start + length);
        let variable = close.and_then(|close| {
            let (name, default) = rest[start + 2..close].split_once(':').unwrap_or((&rest[start + 2..close], ""));
            Some((argument_name(name)?, default, close + 1))
        });
        let Some((name, default, end)) = variable else {
            pieces.text(&rest[..start + 2]);
            rest = &rest[start + 2..];
            continue;
        };
        pieces.text(&rest[..start]);
        pieces.argument(&name, |argument: ArgumentDefinition| match default.trim() {
            "" => argument.required(),
            default => argument.default_value(default),
        });
        rest = &rest[end..];
    }
    pieces.text(rest);
    pieces
}
