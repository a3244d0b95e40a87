//! Commands in Markdown: text with placeholders for the words after the command, below YAML front matter. The rules
//! of each program are those of its [`CommandRules`].

use std::{ops::Range, sync::Arc};

use promptshelf_core::{ArgumentDefinition, Code, Select, Severity, SourceText, Words};

use super::{
    body_builder::{Pieces, SpanFinder, input_name, not_run},
    client_rules::{CommandRules, Placeholder, PlaceholderNames},
    draft::{Draft, Parsed},
    file_format::ForeignSyntax,
    foreign_folders::NameOrTitle,
    markdown,
    table::Table,
    tree::{Node, Notes},
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
    "mode",
    "subtask",
    "effort",
    "context",
    "hooks",
    "paths",
    "shell",
    "skills",
    "temperature",
    "disable-model-invocation",
    "user-invocable",
    "when_to_use",
    "license",
    "compatibility",
    "metadata",
    "version",
    "tags",
    "category",
    "author",
    "id",
    "globs",
    "alwaysApply",
];

pub(super) const SYNTAX: ForeignSyntax = ForeignSyntax {
    keys: KEYS,
    placeholders: &[
        ("$ARGUMENTS", "The text after the command."),
        ("$1", "A word after the command: the second one in Claude Code, the first one in OpenCode and Codex."),
        ("@", "A file of the project, by its path."),
    ],
};

const MAX_DESCRIPTION: usize = 120;

const TEXT: &str = "arguments";

/// Parses a command. Its arguments are named after `arguments` or `argument-hint`.
pub(super) fn read(source: &Arc<SourceText>, name: &str, rules: &CommandRules) -> Parsed {
    let mut notes = Notes::new(source);
    let (keys, body) = markdown::lenient_parts(&["argument-hint"], &mut notes);
    let mut draft = Draft::without_template(name, &mut notes);
    let definition = draft.edit();
    let (mut hint, mut declared) = (None, Vec::new());
    if let Some(table) = keys.as_ref().and_then(|node| Table::of(node, "", "the front matter", &mut notes)) {
        table.refuse_others(KEYS, Severity::Warning, "in a command", &mut notes);
        definition.title = table.written("title", &mut notes);
        if let Some(NameOrTitle::Title(title)) = table.written("name", &mut notes).map(NameOrTitle::of) {
            definition.title = definition.title.take().or(Some(title));
        }
        definition.version = table.written("version", &mut notes);
        definition.description = table.written("description", &mut notes).map(|text| text.trim_end().into());
        hint = table.written("argument-hint", &mut notes);
        if rules.names == PlaceholderNames::Declared {
            declared = table.node("arguments", &mut notes).map(declared_names).unwrap_or_default();
        }
    }
    let text = &source.text[body.clone()];
    if definition.description.is_none() {
        definition.description = first_line(text);
    }
    let (pieces, arguments) = scan(text, body, hint.as_deref(), &declared, rules, &mut notes).into_parts();
    definition.arguments = arguments;
    let draft = draft.with_body(pieces, &mut notes);
    Parsed::of(draft, notes)
}

fn declared_names(node: &Node) -> Vec<String> {
    let names = node.items().iter().filter_map(Node::text);
    match node.text() {
        Some(text) => text.split_whitespace().map(str::to_owned).collect(),
        None => names.map(str::to_owned).collect(),
    }
}

/// Returns the first line, which the programs show instead of a missing description.
fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty())?;
    Some(line.chars().take(MAX_DESCRIPTION).collect())
}

fn scan(
    text: &str,
    body: Range<usize>,
    hint: Option<&str>,
    declared: &[String],
    rules: &CommandRules,
    notes: &mut Notes<'_>,
) -> Pieces {
    let names: Vec<&str> = declared.iter().map(String::as_str).collect();
    let placeholders = rules.placeholders(text, &names);
    let inputs = Inputs::new(&placeholders, hint, declared, rules);
    inputs.review(text, body.start, &placeholders, rules, notes);
    let source = Arc::clone(notes.source);
    let mut spans = SpanFinder::new(&source.text, body);
    let mut pieces = Pieces::default();
    let mut files: Vec<(&str, Range<usize>)> = Vec::new();
    let mut done = 0;
    for (span, placeholder) in &placeholders {
        pieces.text(&text[done..span.start]);
        done = span.end;
        let written = &text[span.clone()];
        match placeholder {
            Placeholder::Escaped(mark) => pieces.text(&written[*mark..]),
            Placeholder::Shell => {
                not_run(written, &mut spans, notes);
                pieces.text(written);
            }
            Placeholder::File(path) => {
                // The path stays in its sentence, and the file follows after the text.
                pieces.text(written);
                files.push((path, spans.next(written)));
            }
            Placeholder::All | Placeholder::Word(_) | Placeholder::Named(_) => {
                inputs.add(placeholder, written, &mut pieces);
            }
        }
    }
    pieces.text(&text[done..]);
    for (path, span) in files {
        pieces.attach(path, "", span);
    }
    let (body, mut arguments) = pieces.into_parts();
    // Forms ask for arguments in the order of the words.
    arguments.sort_by_key(|argument| inputs.words.iter().position(|(_, named)| named.name == argument.name));
    let mut pieces = Pieces::of(body, arguments);
    if (hint.is_some() || !declared.is_empty()) && inputs.is_empty() && !rules.appended.is_empty() {
        // The programs add the text to a command that does not use it.
        let before = rules.appended.to_owned();
        let words = Words { argument: TEXT.to_owned(), select: Select::All, before, otherwise: String::new() };
        pieces.words(words, |argument| described(argument, hint));
    }
    pieces
}

struct Inputs<'h> {
    /// Those for single words, with the index of each. Empty if one argument holds the whole text.
    words: Vec<(usize, ArgumentDefinition)>,
    is_text: bool,
    keyed: Vec<String>,
    last: Option<usize>,
    hint: Option<&'h str>,
    keeps_missing: bool,
}

impl<'h> Inputs<'h> {
    fn new(
        placeholders: &[(Range<usize>, Placeholder)],
        hint: Option<&'h str>,
        declared: &[String],
        rules: &CommandRules,
    ) -> Inputs<'h> {
        let used = || placeholders.iter().map(|(_, placeholder)| placeholder);
        let mut positions: Vec<usize> = used().filter_map(word).collect();
        positions.sort_unstable();
        positions.dedup();
        let is_named = |it: &Placeholder| matches!(it, Placeholder::Named(_));
        let mut keyed: Vec<String> = Vec::new();
        if rules.names == PlaceholderNames::Capitals {
            for name in used().filter_map(named).filter_map(input_name) {
                if !keyed.contains(&name) {
                    keyed.push(name);
                }
            }
        }
        let uses_names = rules.names == PlaceholderNames::Declared && used().any(is_named);
        let is_text = keyed.is_empty() && !uses_names && used().any(|it| *it == Placeholder::All);
        let last = positions.last().copied().filter(|_| rules.last_takes_rest);
        let mut inputs = Inputs { words: Vec::new(), is_text, keyed, last, hint, keeps_missing: rules.keeps_missing };
        if is_text || !inputs.keyed.is_empty() {
            return inputs;
        }
        if uses_names {
            // Every declared name takes a word, whether or not the text uses it.
            positions.extend(0..declared.len());
            positions.sort_unstable();
            positions.dedup();
        }
        let indexes = run(&positions).to_vec();
        let count = indexes.last().map_or(0, |last| last + 1);
        let names = names(hint, declared, count);
        inputs.words = indexes.into_iter().filter_map(|index| Some((index, names.get(index)?.clone()))).collect();
        inputs
    }

    fn is_empty(&self) -> bool {
        !self.is_text && self.words.is_empty() && self.keyed.is_empty()
    }

    fn argument(&self, index: usize) -> Option<&ArgumentDefinition> {
        self.words.iter().find(|(word, _)| *word == index).map(|(_, argument)| argument)
    }

    fn add(&self, placeholder: &Placeholder, written: &str, pieces: &mut Pieces) {
        let otherwise = if self.keeps_missing { written } else { "" };
        match placeholder {
            Placeholder::Word(index) if self.is_text => {
                let select = if self.last == Some(*index) { Select::From(*index) } else { Select::Word(*index) };
                let (argument, before) = (TEXT.to_owned(), String::new());
                let words = Words { argument, select, before, otherwise: otherwise.to_owned() };
                pieces.words(words, |argument| described(argument, self.hint));
            }
            Placeholder::Word(index) => match self.argument(*index) {
                Some(named) => pieces.words(whole(&named.name, "", otherwise), |_| named.clone()),
                None if !self.keyed.is_empty() => pieces.text(written),
                None => pieces.text(otherwise),
            },
            Placeholder::All if self.is_text => pieces.argument(TEXT, |argument| described(argument, self.hint)),
            Placeholder::All if self.keyed.is_empty() => {
                for (number, (_, named)) in self.words.iter().enumerate() {
                    let space = if number > 0 { " " } else { "" };
                    pieces.words(whole(&named.name, space, ""), |_| named.clone());
                }
            }
            Placeholder::Named(name) if self.keyed.is_empty() => {
                let argument = input_name(name).and_then(|name| self.words.iter().find(|(_, it)| it.name == name));
                match argument {
                    Some((_, named)) => pieces.argument(&named.name, |_| named.clone()),
                    None => pieces.text(written),
                }
            }
            Placeholder::Named(name) => match input_name(name).filter(|name| self.keyed.contains(name)) {
                Some(name) => pieces.argument(&name, ArgumentDefinition::required),
                None => pieces.text(written),
            },
            _ => pieces.text(written),
        }
    }

    /// Reports placeholders that probably are not meant as such.
    fn review(
        &self,
        text: &str,
        base: usize,
        placeholders: &[(Range<usize>, Placeholder)],
        rules: &CommandRules,
        notes: &mut Notes<'_>,
    ) {
        let Some(first) = rules.first.filter(|_| self.keyed.is_empty()) else { return };
        let indexes: Vec<usize> = placeholders.iter().filter_map(|(_, it)| word(it)).collect();
        let starts_late = first == 0 && !indexes.contains(&0) && indexes.contains(&1);
        let mut reported: Vec<usize> = Vec::new();
        for (span, placeholder) in placeholders {
            let Some(index) = word(placeholder).filter(|index| !reported.contains(index)) else { continue };
            let (written, at) = (&text[span.clone()], base + span.start..base + span.end);
            let nth = format!("the {} word after the command", ordinal(index));
            let program = rules.program;
            let escaped = format!("write `\\{written}` if it is plain text");
            if starts_late && index == 1 {
                let message =
                    format!("`{written}` is {nth}: {program} counts from `$0`, and nothing uses the first one");
                let help = format!("write `$0` for the first word; {escaped}");
                notes.warning(Code::WordPosition, &at, message).help = Some(help);
            } else if index > 0 && !indexes.contains(&(index - 1)) {
                let fate = if rules.keeps_missing { "stays as it is written" } else { "is removed" };
                let message =
                    format!("`{written}` is {nth}, and nothing uses the one before it; without it, `{written}` {fate}");
                let found = notes.warning(Code::WordPosition, &at, message);
                found.help = Some(if rules.has_escapes { escaped } else { "count the words without a gap".to_owned() });
                if rules.keeps_missing && !self.is_text {
                    found.severity = Severity::Hint;
                }
            } else {
                continue;
            }
            reported.push(index);
        }
    }
}

/// Returns the positions without a gap, from the first or the second word on. Others are most likely no placeholders:
/// `$5.00`.
fn run(positions: &[usize]) -> &[usize] {
    let start = positions.first().copied().filter(|first| *first < 2);
    let length = start.map_or(0, |start| (start..).zip(positions).take_while(|(index, found)| index == *found).count());
    &positions[..length]
}

fn word(placeholder: &Placeholder) -> Option<usize> {
    match placeholder {
        Placeholder::Word(index) => Some(*index),
        _ => None,
    }
}

fn named(placeholder: &Placeholder) -> Option<&str> {
    match placeholder {
        Placeholder::Named(name) => Some(name),
        _ => None,
    }
}

fn whole(argument: &str, before: &str, otherwise: &str) -> Words {
    Words {
        argument: argument.to_owned(),
        select: Select::All,
        before: before.to_owned(),
        otherwise: otherwise.to_owned(),
    }
}

fn ordinal(index: usize) -> String {
    const WORDS: &[&str] = &["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"];
    WORDS.get(index).map_or_else(|| format!("{}th", index + 1), |word| (*word).to_owned())
}

fn described(argument: ArgumentDefinition, hint: Option<&str>) -> ArgumentDefinition {
    match hint.filter(|hint| !hint.is_empty()) {
        Some(hint) => argument.description(hint),
        None => argument.description("Text after the command"),
    }
}

/// Returns the arguments for the first words. They have the declared names, or those of the hint if it has a word for
/// each; `<word>` is required, and `[word]` is optional.
fn names(hint: Option<&str>, declared: &[String], count: usize) -> Vec<ArgumentDefinition> {
    let words = words(hint.unwrap_or_default());
    let mut named: Vec<ArgumentDefinition> = Vec::new();
    for index in 0..count {
        let hinted = words.get(index);
        let own = declared.get(index).and_then(|name| input_name(name));
        let name = own.or_else(|| input_name(hinted?.0).filter(|_| words.len() >= count));
        let name = name.filter(|name| !named.iter().any(|known| known.name == *name));
        let number = index + 1;
        named.push(match name {
            Some(name) => {
                let described = hinted.map_or(&*name, |(word, _)| word).replace(['-', '_'], " ");
                let required = hinted.is_some_and(|(_, required)| *required);
                ArgumentDefinition { required, ..ArgumentDefinition::new(name).description(described) }
            }
            None => {
                let argument = ArgumentDefinition::new(format!("arg{number}"));
                argument.description(format!("Word {number} after the command"))
            }
        });
    }
    named
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_and_declaration_name_arguments() {
        let names = |hint, declared: &[&str], count| {
            let declared: Vec<String> = declared.iter().map(|name| (*name).to_owned()).collect();
            names(Some(hint), &declared, count).into_iter().map(|it| (it.name, it.required)).collect::<Vec<_>>()
        };
        let named = |name: &str, required| (name.to_owned(), required);
        assert_eq!(names("<pr-number> [priority]", &[], 2), [named("pr_number", true), named("priority", false)]);
        assert_eq!(names("[a]", &[], 2), [named("arg1", false), named("arg2", false)]);
        assert_eq!(names("<a>", &["x-y", "z"], 2), [named("x_y", true), named("z", false)]);
    }

    #[test]
    fn positions_after_a_gap_are_no_arguments() {
        for (positions, expected) in
            [(&[0, 1, 2, 4][..], &[0, 1, 2][..]), (&[1, 2], &[1, 2]), (&[4], &[]), (&[], &[]), (&[1, 5], &[1])]
        {
            assert_eq!(run(positions), expected);
        }
    }
}
