//! Commands in Markdown, in the form that two coding agents share: `$ARGUMENTS`, `$1` to `$9`, `@file` and ``
//! !`command` `` below YAML front matter.

use std::{ops::Range, sync::Arc};

use promptshelf_core::{ArgumentDefinition, BodyPiece, Severity, SourceText};

use super::{
    body_builder::{Pieces, SpanFinder, argument_name, not_run},
    draft::{Draft, Parsed},
    file_format::ForeignSyntax,
    markdown,
    table::Table,
    tree::Notes,
};

/// Keys that control the program which runs the command. Most of them have no effect here.
const KEYS: &[&str] = &[
    "name",
    "title",
    "description",
    "argument-hint",
    "arguments",
    "allowed-tools",
    "disallowed-tools",
    "tools",
    "model",
    "agent",
    "subtask",
    "effort",
    "context",
    "hooks",
    "paths",
    "disable-model-invocation",
    "user-invocable",
    "when_to_use",
    "license",
    "compatibility",
    "metadata",
    "version",
    "tags",
];

pub(super) const SYNTAX: ForeignSyntax = ForeignSyntax {
    keys: KEYS,
    placeholders: &[
        ("$ARGUMENTS", "The text after the command."),
        ("$1", "The first word after the command; up to `$9`."),
        ("@", "A file of the project, by its path."),
    ],
};

/// The largest length of a substitute for a missing description, in characters.
const MAX_DESCRIPTION: usize = 120;

/// Parses a command. Its arguments are named after `argument-hint`.
pub(super) fn read(source: &Arc<SourceText>, name: &str) -> Parsed {
    let mut notes = Notes::new(source);
    // Most authors write `[one] [two]` here, which is invalid YAML.
    let mut hint_line = None;
    let (keys, body) = markdown::parts(&mut notes, |keys| {
        hint_line = self::hint_line(&source.text, keys);
        hint_line.clone()
    });
    let hint = hint_line.map(|line| {
        let written = source.text[line].split_once(':').map_or("", |(_, hint)| hint).trim();
        written.trim_matches(|c| c == '"' || c == '\'').to_owned()
    });

    let mut draft = Draft::without_template(name, &mut notes);
    let definition = draft.edit();
    if let Some(table) = keys.as_ref().and_then(|node| Table::of(node, "", "the front matter", &mut notes)) {
        table.refuse_others(KEYS, Severity::Warning, "in a command", &mut notes);
        definition.title = table.text("title", &mut notes);
        definition.version = table.text("version", &mut notes);
        definition.description = table.text("description", &mut notes).map(|text| text.trim_end().into());
    }
    let text = &source.text[body.clone()];
    if definition.description.is_none() {
        definition.description = first_line(text);
    }
    let pieces = scan(text, body, hint.as_deref(), &mut notes);
    let (pieces, arguments) = pieces.into_parts();
    definition.arguments = arguments;
    let draft = draft.with_body(pieces, &mut notes);
    Parsed::of(draft, notes)
}

/// Returns the line of the front matter with the hint about arguments, without its line break.
pub(super) fn hint_line(text: &str, keys: Range<usize>) -> Option<Range<usize>> {
    let mut start = keys.start;
    for line in text[keys].split_inclusive('\n') {
        if line.starts_with("argument-hint:") {
            return Some(start..start + line.trim_end_matches(['\n', '\r']).len());
        }
        start += line.len();
    }
    None
}

/// Returns the parts of a text that a command would not treat as text.
pub(crate) fn special(text: &str) -> Vec<&str> {
    placeholders_in(text).into_iter().map(|(span, _)| &text[span]).collect()
}

/// Returns the first line, which the agents show instead of a missing description.
fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty())?;
    Some(line.chars().take(MAX_DESCRIPTION).collect())
}

/// A part of the body that is not text.
#[derive(Debug, PartialEq)]
enum Placeholder<'t> {
    All,
    /// Starts at one.
    Position(usize),
    Shell,
    File(&'t str),
}

fn scan(text: &str, body: Range<usize>, hint: Option<&str>, notes: &mut Notes<'_>) -> Pieces {
    let placeholder = placeholders_in(text);
    let source = Arc::clone(notes.source);
    let mut spans = SpanFinder::new(&source.text, body);
    let highest = placeholder.iter().filter_map(|(_, placeholder)| match placeholder {
        Placeholder::Position(position) => Some(*position),
        _ => None,
    });
    let names = names(hint, highest.max().unwrap_or(0));
    let mut pieces = Pieces::default();
    let mut files: Vec<(&str, &str, Range<usize>)> = Vec::new();
    let mut done = 0;
    for (span, placeholder) in &placeholder {
        pieces.text(&text[done..span.start]);
        done = span.end;
        let written = &text[span.clone()];
        match placeholder {
            Placeholder::All if names.is_empty() => pieces.argument("arguments", |argument| described(argument, hint)),
            Placeholder::All => {
                for (index, named) in names.iter().enumerate() {
                    pieces.text(if index > 0 { " " } else { "" });
                    pieces.argument(&named.name, |_| named.clone());
                }
            }
            Placeholder::Position(position) => {
                let named = &names[position - 1];
                pieces.argument(&named.name, |_| named.clone());
            }
            Placeholder::Shell => {
                not_run(written, &mut spans, notes);
                pieces.text(written);
            }
            Placeholder::File(path) => {
                // The path stays in its sentence, and the file follows after the text.
                pieces.text(written);
                files.push((path, "", spans.next(written)));
            }
        }
    }
    pieces.text(&text[done..]);
    for (path, otherwise, span) in files {
        pieces.attach(path, otherwise, span);
    }
    let (pieces, mut arguments) = pieces.into_parts();
    // Forms ask for arguments in the order of their numbers.
    arguments.sort_by_key(|argument| names.iter().position(|named| named.name == argument.name));
    if arguments.is_empty() && hint.is_some() {
        return with_appendix(pieces, hint);
    }
    Pieces::of(pieces, arguments)
}

/// Adds a placeholder at the end, for a command that announces arguments and does not use them.
fn with_appendix(pieces: Vec<BodyPiece>, hint: Option<&str>) -> Pieces {
    let mut pieces = Pieces::of(pieces, Vec::new());
    pieces.text("\n\n");
    pieces.argument("arguments", |argument| described(argument, hint));
    pieces
}

fn described(argument: ArgumentDefinition, hint: Option<&str>) -> ArgumentDefinition {
    match hint.filter(|hint| !hint.is_empty()) {
        Some(hint) => argument.description(hint),
        None => argument.description("Text after the command"),
    }
}

/// Returns the arguments for `$1` and so on. They are named after the hint if it has a word for each; `<word>` is
/// required, and `[word]` is optional.
fn names(hint: Option<&str>, count: usize) -> Vec<ArgumentDefinition> {
    let words = words(hint.unwrap_or_default());
    let by_number = |number: usize| {
        let argument = ArgumentDefinition::new(format!("arg{number}"));
        argument.description(format!("Word {number} after the command"))
    };
    let mut named: Vec<ArgumentDefinition> = Vec::new();
    for number in 1..=count {
        let word = words.get(number - 1);
        let name = word.and_then(|(word, _)| argument_name(word)).filter(|_| words.len() >= count);
        let name = name.filter(|name| !named.iter().any(|known| known.name == *name));
        named.push(match (name, word) {
            (Some(name), Some((word, required))) => ArgumentDefinition {
                required: *required,
                ..ArgumentDefinition::new(name).description(word.replace(['-', '_'], " "))
            },
            _ => by_number(number),
        });
    }
    named
}

/// Returns the words in brackets, and whether the brackets are angle brackets.
fn words(hint: &str) -> Vec<(&str, bool)> {
    let mut words = Vec::new();
    let mut rest = hint;
    while let Some(open) = rest.find(['[', '<']) {
        let required = rest[open..].starts_with('<');
        let Some(close) = rest[open..].find(if required { '>' } else { ']' }) else { break };
        words.push((&rest[open + 1..open + close], required));
        rest = &rest[open + close + 1..];
    }
    words
}

fn placeholders_in(text: &str) -> Vec<(Range<usize>, Placeholder<'_>)> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(offset) = text[at..].find(['$', '!', '@']) {
        let start = at + offset;
        match one(text, start) {
            Some((end, placeholder)) => {
                all.push((start..end, placeholder));
                at = end;
            }
            None => at = start + 1,
        }
    }
    all
}

fn one(text: &str, start: usize) -> Option<(usize, Placeholder<'_>)> {
    let rest = &text[start..];
    if let Some(after) = rest.strip_prefix("$ARGUMENTS") {
        let end = start + "$ARGUMENTS".len();
        // `$ARGUMENTS[0]` is the first one.
        let index = after.strip_prefix('[').and_then(|after| after.split_once(']')).map(|(index, _)| index);
        return match index.and_then(|index| Some((index.len(), index.parse::<usize>().ok()?))) {
            Some((length, index)) if index < 9 => Some((end + length + 2, Placeholder::Position(index + 1))),
            _ => Some((end, Placeholder::All)),
        };
    }
    if let Some(after) = rest.strip_prefix('$') {
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        // `$10` is an amount of money.
        let position = after[..digits].parse().ok().filter(|position| digits == 1 && *position > 0)?;
        return Some((start + 2, Placeholder::Position(position)));
    }
    if let Some(after) = rest.strip_prefix("!`") {
        let command = after.lines().next().unwrap_or_default();
        let end = command.find('`').filter(|length| *length > 0)?;
        return Some((start + 2 + end + 1, Placeholder::Shell));
    }
    let before = text[..start].chars().next_back();
    if !rest.starts_with('@') || before.is_some_and(|c| !c.is_whitespace() && c != '(') {
        return None;
    }
    let path = rest[1..].split(|c: char| c.is_whitespace() || "`'\"<>|".contains(c)).next().unwrap_or_default();
    let path = path.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    // `@name` mentions a person, and the file of `@$1` is only known at the time of the call.
    let is_path = path.contains(['/', '.']) && !path.contains('$') && !path.ends_with('/');
    is_path.then(|| (start + 1 + path.len(), Placeholder::File(path.strip_prefix("./").unwrap_or(path))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_distinguished_from_prose() {
        let placeholder =
            |text| placeholders_in(text).into_iter().map(|(_, placeholder)| placeholder).collect::<Vec<_>>();
        assert_eq!(placeholder("a $ARGUMENTS b $1 $10 $x $0"), [Placeholder::All, Placeholder::Position(1)]);
        assert_eq!(placeholder("$ARGUMENTS[0] $ARGUMENTS[x]"), [Placeholder::Position(1), Placeholder::All]);
        assert_eq!(placeholder("!`git diff` wow! `x`"), [Placeholder::Shell]);
        assert_eq!(
            placeholder("see @src/a.rs, (@b.md) me@c.de @team @$x.y"),
            [Placeholder::File("src/a.rs"), Placeholder::File("b.md")]
        );
    }

    #[test]
    fn hint_names_arguments() {
        let names =
            |hint, count| names(Some(hint), count).into_iter().map(|it| (it.name, it.required)).collect::<Vec<_>>();
        assert_eq!(names("<pr-number> [priority]", 2), [("pr_number".into(), true), ("priority".into(), false)]);
        assert_eq!(names("[a]", 2), [("arg1".into(), false), ("arg2".into(), false)]);
    }
}
