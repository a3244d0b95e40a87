//! Gemini CLI's custom commands: `.gemini/commands/**/*.toml`.
//!
//! Facts: Gemini CLI's documentation, *Custom commands*: `prompt` is required and `description` is optional;
//! `{{args}}` is the text after the command, `@{path}` a file, and `!{command}` a command's output, with balanced
//! braces. A file in a folder is `/folder:name` there and `folder-name` here.

use std::{ops::Range, sync::Arc};

use promptshelf_core::{Code, Severity, SourceText};

use super::{
    body_builder::{Pieces, SpanFinder, closing_brace, not_run},
    draft::{Draft, Parsed},
    file_format::{ForeignSyntax, Format},
    foreign_folders,
    table::Table,
    toml,
    tree::Notes,
};

const ARGS: &str = "{{args}}";

const KEYS: &[&str] = &["prompt", "description"];

const SYNTAX: ForeignSyntax = ForeignSyntax {
    keys: KEYS,
    placeholders: &[(ARGS, "The text after the command."), ("@{", "A file of the project, by its path.")],
};

pub(super) const FORMAT: Format = Format {
    matches: |path| foreign_folders::below(path, ".gemini/commands").is_some() && path.ends_with(".toml"),
    name: |path| foreign_folders::name_from_path(path, ".toml"),
    read,
    syntax: SYNTAX,
};

fn read(source: &Arc<SourceText>, name: &str) -> Parsed {
    let mut notes = Notes::new(source);
    let tree = toml::parse(&mut notes);
    let mut draft = Draft::without_template(name, &mut notes);
    let mut pieces = Pieces::default();
    if let Some(table) = Table::of(&tree, "", "the file", &mut notes) {
        table.refuse_others(KEYS, Severity::Warning, "in a command", &mut notes);
        draft.edit().description = table.text("description", &mut notes);
        if let Some(prompt) = table.required_text("prompt", "a command", &mut notes) {
            let span = notes.spans.get("prompt").cloned().unwrap_or_default();
            scan(&prompt, span, &mut pieces, &mut notes);
        }
    }
    let (pieces, arguments) = pieces.into_parts();
    draft.edit().arguments = arguments;
    let draft = draft.with_body(pieces, &mut notes);
    Parsed::of(draft, notes)
}

fn scan(text: &str, span: Range<usize>, pieces: &mut Pieces, notes: &mut Notes<'_>) {
    let source = Arc::clone(notes.source);
    let mut spans = SpanFinder::new(&source.text, span);
    let mut done = 0;
    let mut at = 0;
    while let Some(offset) = text[at..].find(['{', '!', '@']) {
        let start = at + offset;
        let rest = &text[start..];
        let end = if rest.starts_with(ARGS) {
            start + ARGS.len()
        } else if rest.starts_with("!{") || rest.starts_with("@{") {
            let Some(close) = closing_brace(text, start + 2) else {
                let written = &rest[..2];
                let span = spans.next(written);
                let message =
                    format!("this `{written}` is not closed, so Gemini CLI refuses the command; it is plain text");
                notes.warning(Code::Syntax, &span, message).help = Some(format!(
                    "add the closing `}}`; opening and closing braces inside `{written}…}}` have to match"
                ));
                at = start + 2;
                continue;
            };
            close + 1
        } else {
            at = start + 1;
            continue;
        };
        pieces.text(&text[done..start]);
        let written = &text[start..end];
        match &written[..1] {
            "{" => pieces.argument("args", |argument| argument.description("Text after the command")),
            "!" => {
                not_run(written, &mut spans, notes);
                pieces.text(written);
            }
            _ => file(written, &mut spans, pieces, notes),
        }
        (done, at) = (end, end);
    }
    pieces.text(&text[done..]);
}

fn file(written: &str, spans: &mut SpanFinder<'_>, pieces: &mut Pieces, notes: &mut Notes<'_>) {
    let span = spans.next(written);
    let path = written[2..written.len() - 1].trim();
    if path.contains(ARGS) {
        let message = "a file chosen by the caller is not attached; this is plain text";
        notes.warning(Code::NotSupported, &span, message).help = Some("take the file's text as an argument".to_owned());
        pieces.text(written);
        return;
    }
    pieces.attach(path.strip_prefix("./").unwrap_or(path), written, span);
}
