//! The parts of a text: symbols, folded regions, coloured words of templates, and defaults beside the arguments.

use std::ops::Range;

use gen_lsp_types::{
    BaseSymbolInformation, DocumentSymbol, FoldingRange, FoldingRangeKind, InlayHint, InlayHintKind, Label, Location,
    Position, SemanticToken, SymbolKind, SymbolTag, WorkspaceSymbol,
};
use promptshelf_core::{PromptDefinition, TemplateAnalysis};
use promptshelf_source::ForeignSyntax;

use super::{Workspace, front_matter, is_word, position};

/// The most symbols of a whole workspace in an answer.
const MAX_SYMBOLS: usize = 500;

/// The longest default that is shown beside an argument, in characters.
const MAX_DEFAULT: usize = 30;

/// Returns the symbols of a file: a prompt with its arguments, tests and messages, and macros.
pub(super) fn symbols(workspace: &Workspace, path: &str, text: &str) -> Vec<DocumentSymbol> {
    let mut parts = Vec::new();
    let own = workspace.definition(path).filter(|it| *it.origin.source.text == *text);
    if let Some(prompt) = own {
        for (index, argument) in prompt.arguments.iter().enumerate() {
            let span = prompt.origin.locate(&format!("arguments.{index}.name")).span();
            parts.push(symbol(text, &argument.name, SymbolKind::Variable, span.clone(), span));
        }
        for (index, test) in prompt.tests.iter().enumerate() {
            let span = prompt.origin.locate(&format!("tests.{index}")).span();
            let name = test.name.clone().unwrap_or_else(|| format!("test {}", index + 1));
            parts.push(symbol(text, &name, SymbolKind::Event, span.clone(), span));
        }
    }
    if has_template(path) {
        for tag in tags(text) {
            match tag.words(text).as_slice() {
                ["macro", name, ..] => {
                    parts.push(symbol(text, name, SymbolKind::Function, tag.span.clone(), tag.span.clone()));
                }
                ["role", role, ..] => {
                    parts.push(symbol(text, role, SymbolKind::String, tag.span.clone(), tag.span.clone()));
                }
                _ => {}
            }
        }
    }
    let Some(prompt) = own else { return parts };
    let mut whole = symbol(text, name_of(prompt, path), SymbolKind::Module, 0..text.len(), 0..0);
    whole.detail = prompt.description.as_deref().map(str::to_owned);
    whole.children = Some(parts);
    vec![whole]
}

fn name_of<'a>(prompt: &'a PromptDefinition, path: &'a str) -> &'a str {
    if prompt.name.is_empty() { path } else { &prompt.name }
}

fn symbol(text: &str, name: &str, kind: SymbolKind, whole: Range<usize>, span: Range<usize>) -> DocumentSymbol {
    #[expect(deprecated, reason = "the type has a field that `tags` has replaced")]
    DocumentSymbol {
        name: name.to_owned(),
        detail: None,
        kind,
        tags: None,
        deprecated: None,
        range: position::range(text, &whole),
        selection_range: position::range(text, &span),
        children: None,
    }
}

/// Returns the prompts, arguments, partials and resources whose names contain the letters of the query in their order.
pub(super) fn of_workspace(workspace: &Workspace, query: &str) -> Vec<WorkspaceSymbol> {
    let query: Vec<char> = query.to_lowercase().chars().collect();
    let fits = |name: &str| {
        let mut letters = name.chars().flat_map(char::to_lowercase);
        query.iter().all(|wanted| letters.any(|letter| letter == *wanted))
    };
    let mut symbols = Vec::new();
    // The places are looked for when the name fits.
    let mut add = |name: &str, kind, container: Option<&str>, location: &dyn Fn() -> Location, is_deprecated: bool| {
        if symbols.len() < MAX_SYMBOLS && fits(name) {
            symbols.push(WorkspaceSymbol {
                location: location().into(),
                data: None,
                base_symbol_information: BaseSymbolInformation {
                    name: name.to_owned(),
                    kind,
                    tags: is_deprecated.then(|| vec![SymbolTag::Deprecated]),
                    container_name: container.map(str::to_owned),
                },
            });
        }
    };
    for prompt in workspace.catalog().prompts().iter() {
        let (name, definition) = (prompt.name().as_str(), prompt.definition());
        let at = |part: &str| {
            let found = definition.origin.locate(part);
            let range = position::range(&found.source.text, &found.span());
            Location { uri: workspace.uri(&found.source.path).into(), range }
        };
        add(name, SymbolKind::Module, None, &|| at("name"), prompt.deprecation().is_some());
        for (index, argument) in definition.arguments.iter().enumerate() {
            let at = || at(&format!("arguments.{index}.name"));
            add(&argument.name, SymbolKind::Variable, Some(name), &at, false);
        }
    }
    let start = |path: &str| Location { uri: workspace.uri(path).into(), range: Default::default() };
    for partial in workspace.partials() {
        add(&partial.path, SymbolKind::File, None, &|| start(&partial.path), false);
    }
    for resource in workspace.catalog().resources() {
        add(resource.uri(), SymbolKind::Object, None, &|| start(super::LIBRARY_FILE), false);
    }
    symbols
}

/// Returns the regions that can be folded: front matter, blocks and comments of templates, and messages.
pub(super) fn folds(path: &str, text: &str) -> Vec<FoldingRange> {
    let mut folds = Vec::new();
    let starts: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    let line = |at: usize| u32::try_from(starts.partition_point(|start| *start <= at)).unwrap_or(u32::MAX);
    let mut add = |span: Range<usize>, kind: Option<FoldingRangeKind>| {
        let (start, end) = (line(span.start), line(span.end));
        if start < end {
            folds.push(FoldingRange {
                start_line: start,
                start_character: None,
                end_line: end,
                end_character: None,
                kind,
                collapsed_text: None,
            });
        }
    };
    if let Some(keys) = front_matter(text) {
        add(0..keys.end, None);
    }
    if !has_template(path) {
        return folds;
    }
    let (mut open, mut message): (Vec<(&str, usize)>, Option<usize>) = (Vec::new(), None);
    for tag in tags(text) {
        if tag.kind == TagKind::Comment {
            add(tag.span.clone(), Some(FoldingRangeKind::Comment));
            continue;
        }
        match tag.words(text).as_slice() {
            ["role", ..] => {
                let before = message.replace(tag.span.start);
                before.into_iter().for_each(|before| add(before..tag.span.start.saturating_sub(1), None));
            }
            // `{% set a = 1 %}` has no end.
            ["set", ..] if tag.inside(text).contains('=') => {}
            [word, ..] if tag.kind == TagKind::Statement && word.starts_with("end") => {
                let block = word.trim_start_matches("end");
                if let Some(at) = open.iter().rposition(|(opened, _)| *opened == block) {
                    let (_, start) = open[at];
                    open.truncate(at);
                    add(start..tag.span.start, None);
                }
            }
            [word, ..] if tag.kind == TagKind::Statement => open.push((word, tag.span.start)),
            _ => {}
        }
    }
    if let Some(start) = message {
        add(start..text.trim_end().len(), None);
    }
    folds
}

fn has_template(path: &str) -> bool {
    ForeignSyntax::for_path(path).is_none() && !path.ends_with(".toml") && !path.ends_with(".yml")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TagKind {
    Expression,
    Statement,
    Comment,
}

/// A tag of a template, with its delimiters.
#[derive(Debug)]
struct Tag {
    kind: TagKind,
    span: Range<usize>,
}

impl Tag {
    fn inside<'t>(&self, text: &'t str) -> &'t str {
        let inside = &text[self.span.start + 2..self.span.end];
        let inside = inside.strip_suffix("}}").or(inside.strip_suffix("%}")).unwrap_or(inside);
        inside.trim_matches('-').trim()
    }

    fn words<'t>(&self, text: &'t str) -> Vec<&'t str> {
        if self.kind == TagKind::Comment {
            return Vec::new();
        }
        self.inside(text).split(|c| !is_word(c)).filter(|word| !word.is_empty()).take(3).collect()
    }
}

/// Returns the tags of a template outside of `raw`, in their order; a tag without an end reaches to the end of its line.
fn tags(text: &str) -> Vec<Tag> {
    let mut at = front_matter(text).map_or(0, |keys| keys.end);
    let (mut tags, mut is_raw) = (Vec::new(), false);
    // The kinds of tags that nothing closes any more.
    let mut unclosed: Vec<TagKind> = Vec::new();
    while let Some(open) = text[at..].find('{').map(|open| at + open) {
        let (kind, close) = match text.as_bytes().get(open + 1) {
            Some(b'{') => (TagKind::Expression, "}}"),
            Some(b'%') => (TagKind::Statement, "%}"),
            Some(b'#') => (TagKind::Comment, "#}"),
            _ => {
                at = open + 1;
                continue;
            }
        };
        let rest = &text[open + 2..];
        let end = if unclosed.contains(&kind) { None } else { rest.find(close) }.map(|end| open + 2 + end + 2);
        if end.is_none() && !unclosed.contains(&kind) {
            unclosed.push(kind);
        }
        let end = end.unwrap_or_else(|| rest.find('\n').map_or(text.len(), |newline| open + 2 + newline));
        at = end;
        let tag = Tag { kind, span: open..end };
        let words = tag.words(text);
        if is_raw && words.first() != Some(&"endraw") {
            at = open + 2;
            continue;
        }
        is_raw = kind == TagKind::Statement && words.first() == Some(&"raw");
        tags.push(tag);
    }
    tags
}

/// The kinds of words, in the order of their numbers.
pub(super) const TOKEN_TYPES: [&str; 8] =
    ["keyword", "variable", "function", "string", "number", "comment", "parameter", "property"];

#[derive(Clone, Copy)]
enum Token {
    Keyword,
    Variable,
    Function,
    String,
    Number,
    Comment,
    Parameter,
    Property,
}

const OPERATORS: [&str; 12] =
    ["and", "or", "not", "in", "is", "if", "else", "as", "recursive", "ignore", "missing", "context"];

/// Returns the coloured words of the front matter and the template of a file.
pub(super) fn tokens(path: &str, text: &str) -> Vec<SemanticToken> {
    let mut found: Vec<(Range<usize>, Token)> = Vec::new();
    if let Some(keys) = front_matter(text) {
        key_words(text, keys, &mut found);
    }
    if has_template(path) {
        for tag in tags(text) {
            match tag.kind {
                TagKind::Comment => found.push((tag.span, Token::Comment)),
                kind => words(text, tag.span.start + 2..tag.span.end, kind == TagKind::Statement, &mut found),
            }
        }
    }
    // Each token is found from the one before: counting from the beginning would be quadratic.
    let (mut tokens, mut before) = (Vec::new(), (0, 0));
    let (mut reached, mut at) = (0, Position::default());
    for (span, token) in found {
        // Editors take one line at a time.
        let mut start = span.start;
        for line in text[span].split_inclusive('\n') {
            let length: usize = line.trim_end_matches(['\r', '\n']).chars().map(char::len_utf16).sum();
            if length > 0 {
                for c in text[reached..start].chars() {
                    if c == '\n' {
                        at = Position { line: at.line + 1, character: 0 };
                    } else {
                        at.character += if c.len_utf16() == 1 { 1 } else { 2 };
                    }
                }
                reached = start;
                let delta_start = if at.line == before.0 { at.character - before.1 } else { at.character };
                tokens.push(SemanticToken {
                    delta_line: at.line - before.0,
                    delta_start,
                    length: u32::try_from(length).unwrap_or(u32::MAX),
                    token_type: token as u32,
                    token_modifiers_bitset: 0,
                });
                before = (at.line, at.character);
            }
            start += line.len();
        }
    }
    tokens
}

/// Adds the keys of front matter, the names of arguments, and the words of conditions. Other values are text.
fn key_words(text: &str, keys: Range<usize>, found: &mut Vec<(Range<usize>, Token)>) {
    let mut above: Vec<(usize, &str)> = Vec::new();
    // The indentation of a key whose value is the lines below it.
    let mut block: Option<usize> = None;
    let mut next = keys.start;
    for line in text[keys].split_inclusive('\n') {
        let start = next;
        next += line.len();
        let spaces = line.len() - line.trim_start_matches(' ').len();
        let depth = line.len() - line.trim_start_matches([' ', '-']).len();
        if line.trim().is_empty() || block.is_some_and(|key| spaces > key) {
            continue;
        }
        block = None;
        let content = line[depth..].trim_end();
        if content.starts_with('#') {
            found.push((start + depth..start + depth + content.len(), Token::Comment));
            continue;
        }
        let is_key = |key: &str| !key.is_empty() && key.chars().all(|c| is_word(c) || c == '-');
        let Some((key, value)) = content.split_once(':').filter(|(key, _)| is_key(key)) else { continue };
        let at = start + depth;
        found.push((at..at + key.len(), Token::Property));
        above.retain(|(other, _)| *other < depth);
        let value_at = at + content.len() - value.trim_start().len();
        let value = value.trim();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let inner = match quote {
            Some(quote) => value[1..].split(quote).next().unwrap_or_default(),
            None => value.split(" #").next().unwrap_or_default().trim_end(),
        };
        let span = value_at + quote.map_or(0, char::len_utf8)..value_at + quote.map_or(0, char::len_utf8) + inner.len();
        let is_name = key == "name" && matches!(above.as_slice(), [(_, "arguments")]);
        if value.starts_with(['|', '>']) {
            block = Some(depth);
        } else if is_name || key == "by" {
            found.push((span, Token::Parameter));
        } else if key == "when" {
            words(text, span, false, found);
        }
        above.push((depth, key));
    }
}

fn words(text: &str, span: Range<usize>, is_statement: bool, found: &mut Vec<(Range<usize>, Token)>) {
    let (end, mut at) = (span.end, span.start);
    let (mut last, mut depth, mut is_first) = (String::new(), 0_usize, is_statement);
    while let Some(c) = text[at..end].chars().next() {
        let start = at;
        at += c.len_utf8();
        match c {
            '"' | '\'' => {
                let mut is_escaped = false;
                for c in text[at..end].chars() {
                    at += c.len_utf8();
                    if c == '\n' || c == text[start..].chars().next().unwrap_or(c) && !is_escaped {
                        break;
                    }
                    is_escaped = c == '\\' && !is_escaped;
                }
                found.push((start..at, Token::String));
                last = "text".to_owned();
            }
            c if c.is_ascii_digit() => {
                at += text[at..end].len()
                    - text[at..end].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
                found.push((start..at, Token::Number));
                last = "number".to_owned();
            }
            c if is_word(c) => {
                at += text[at..end].len() - text[at..end].trim_start_matches(is_word).len();
                let word = &text[start..at];
                let next = text[at..end].trim_start();
                let token = if last == "." {
                    Token::Property
                } else if last == "|" || matches!(last.as_str(), "is" | "is not") && word != "not" {
                    Token::Function
                } else if is_first || OPERATORS.contains(&word) {
                    Token::Keyword
                } else if next.starts_with('(') {
                    Token::Function
                } else if depth > 0 && next.starts_with('=') && !next.starts_with("==") {
                    Token::Parameter
                } else {
                    Token::Variable
                };
                is_first = false;
                found.push((start..at, token));
                last = if last == "is" && word == "not" { "is not".to_owned() } else { word.to_owned() };
            }
            c if c.is_whitespace() => {}
            c => {
                match c {
                    '(' | '[' => depth += 1,
                    ')' | ']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                last = c.to_string();
            }
        }
    }
}

/// Returns the defaults of the arguments beside the places in a range at which a template uses them.
pub(super) fn hints(workspace: &Workspace, path: &str, text: &str, range: &Range<usize>) -> Vec<InlayHint> {
    if !has_template(path) {
        return Vec::new();
    }
    let body =
        front_matter(text).map_or(0, |keys| text[keys.end..].find('\n').map_or(text.len(), |at| keys.end + at + 1));
    let users = workspace.users(path);
    let hint = |used: promptshelf_core::TemplateUse| {
        let end = body + used.span.end;
        let defaults = users.iter().map(|user| user.arguments.iter().find(|argument| argument.name == used.name));
        let mut defaults =
            defaults.map(|argument| argument.and_then(|it| it.default.as_ref()).map(ToString::to_string));
        let default = defaults.next().flatten().filter(|default| !default.is_empty())?;
        // The prompts that share a partial may differ.
        if !range.contains(&end) || defaults.any(|other| other.as_ref() != Some(&default)) {
            return None;
        }
        let mut shown: String = default.lines().next().unwrap_or_default().chars().take(MAX_DEFAULT).collect();
        if shown.len() < default.len() {
            shown.push('…');
        }
        Some(InlayHint {
            position: position::position(text, end),
            label: Label::String(format!(" = {shown}")),
            kind: Some(InlayHintKind::Parameter),
            text_edits: None,
            tooltip: None,
            padding_left: None,
            padding_right: None,
            data: None,
        })
    };
    TemplateAnalysis::of(&text[body..]).variables.into_iter().filter_map(hint).collect()
}
