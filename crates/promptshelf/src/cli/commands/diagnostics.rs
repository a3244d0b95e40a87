//! Formats of diagnostics: annotated source lines in the style of rustc, and JSON.

use std::{ops::Range, path::Path, sync::Arc};

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use promptshelf_core::{Diagnostic, Location, Severity, SourceText};
use serde_json::{Value, json};

use crate::output::{broken, visible_at, visible_line};

pub(crate) fn to_github(diagnostics: &[Diagnostic], folder: &Path) -> String {
    diagnostics.iter().map(|diagnostic| line(diagnostic, folder)).collect()
}

fn line(diagnostic: &Diagnostic, folder: &Path) -> String {
    let level = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Hint => "notice",
    };
    let Location { source, .. } = &diagnostic.location;
    let end = diagnostic.location.span().end;
    let (line, column) = diagnostic.location.line_column();
    let (end_line, end_column) = Location::new(source, end..end).line_column();
    let path = escape_property(&path_from_here(folder, &source.path));
    // GitHub rejects columns in an annotation of several lines.
    let columns = if line == end_line { format!(",col={column},endColumn={end_column}") } else { String::new() };
    let message = match &diagnostic.help {
        Some(help) => format!("{}\nhelp: {help}", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let code = diagnostic.code;
    format!("::{level} file={path},line={line},endLine={end_line}{columns},title={code}::{}\n", escape(&message))
}

fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn escape_property(value: &str) -> String {
    escape(value).replace(':', "%3A").replace(',', "%2C")
}

/// The columns before the text of a help, with the number of a line.
const HELP: usize = "100 = help: ".len();

/// The most related locations that people are shown; JSON has all.
const MOST_RELATED: usize = 5;

pub(crate) struct DiagnosticFormat<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) colours: bool,
    pub(crate) width: usize,
    /// Whether messages are broken at the width, as on a terminal.
    pub(crate) is_broken: bool,
}

impl DiagnosticFormat<'_> {
    pub(crate) fn format(&self, diagnostic: &Diagnostic) -> String {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Hint => Level::NOTE.with_name("hint"),
        };
        let preface = diagnostic.severity.as_str().len() + diagnostic.code.as_str().len() + "[]: ".len();
        let message = self.broken(&diagnostic.message, preface);
        let title = level.primary_title(message).id(diagnostic.code.as_str());
        let main = &diagnostic.location.source;
        let mut group = Group::with_title(title);
        let mut others: Vec<(&Arc<SourceText>, Vec<Mark<'_>>)> = Vec::new();
        let mut marks = vec![Mark { location: &diagnostic.location, kind: AnnotationKind::Primary, label: "" }];
        for (location, label) in diagnostic.related.iter().take(MOST_RELATED) {
            let mark = Mark { location, kind: AnnotationKind::Context, label };
            if location.source.path == main.path {
                marks.push(mark);
            } else if let Some((_, marks)) = others.iter_mut().find(|(source, _)| source.path == location.source.path) {
                marks.push(mark);
            } else {
                others.push((&location.source, vec![mark]));
            }
        }
        group = self.file(group, main, &marks);
        for (source, marks) in &others {
            group = self.file(group, source, marks);
        }
        if let Some(help) = &diagnostic.help {
            group = group.element(Level::HELP.message(self.broken(help, HELP)));
        }
        let renderer = if self.colours { Renderer::styled() } else { Renderer::plain() };
        renderer.term_width(self.width).render(&[group])
    }

    fn broken(&self, text: &str, preface: usize) -> String {
        let text = visible_line(text);
        if self.is_broken {
            broken(&text, self.width.saturating_sub(preface).max(20), "", "")
        } else {
            text.into_owned()
        }
    }

    /// Adds the marked lines of one file to a group; only the path if the text of the file is unknown.
    fn file<'g>(&self, group: Group<'g>, source: &Arc<SourceText>, marks: &[Mark<'_>]) -> Group<'g> {
        let path = visible_line(&self.path(source)).into_owned();
        if source.text.is_empty() {
            return group.element(Origin::path(path));
        }
        let mut offsets: Vec<usize> =
            marks.iter().map(|mark| mark.location.span()).flat_map(|span| [span.start, span.end]).collect();
        // Only these lines are escaped and measured, because a large file can have many mistakes.
        let lines = lines_around(&source.text, &offsets);
        let first_line = source.text[..lines.start].matches('\n').count() + 1;
        offsets.iter_mut().for_each(|offset| *offset -= lines.start);
        let text = visible_at(&source.text[lines], &mut offsets);
        let annotations = marks.iter().zip(offsets.chunks_exact(2)).map(|(mark, span)| {
            let label = (!mark.label.is_empty()).then(|| visible_line(mark.label).into_owned());
            mark.annotation(span[0]..span[1]).label(label)
        });
        let annotations: Vec<Annotation<'g>> = annotations.collect();
        group.element(Snippet::source(text).line_start(first_line).path(path).annotations(annotations))
    }

    fn path(&self, source: &SourceText) -> String {
        path_from_here(self.folder, &source.path)
    }
}

fn lines_around(text: &str, offsets: &[usize]) -> Range<usize> {
    let first = offsets.iter().min().map_or(0, |first| *first);
    let last = offsets.iter().max().map_or(0, |last| *last);
    // The end of a file is marked at the end of its last line.
    let before = text[..first].strip_suffix('\n').filter(|_| first == text.len()).unwrap_or(&text[..first]);
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[last..].find('\n').map_or(text.len(), |newline| last + newline);
    start..end
}

struct Mark<'a> {
    location: &'a Location,
    kind: AnnotationKind,
    label: &'a str,
}

impl Mark<'_> {
    fn annotation<'g>(&self, span: Range<usize>) -> Annotation<'g> {
        self.kind.span(span)
    }
}

pub(crate) fn path_from_here(folder: &Path, path: &str) -> String {
    // Prompts defined in code have no file; their "path" is in angle brackets.
    if folder == Path::new(".") || path.starts_with('<') {
        return path.to_owned();
    }
    folder.join(path).display().to_string()
}

/// Converts diagnostics to JSON. Lines and columns are counted from one, columns in characters.
pub(crate) fn to_json(diagnostics: &[Diagnostic], folder: &Path) -> Value {
    let count_of = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
    let entries: Vec<Value> = diagnostics
        .iter()
        .map(|diagnostic| {
            let related = diagnostic.related.iter().map(|(location, label)| {
                let mut position = position(location, folder);
                position["label"] = json!(label);
                position
            });
            json!({
                "severity": diagnostic.severity.as_str(),
                "code": diagnostic.code.as_str(),
                "message": diagnostic.message,
                "help": diagnostic.help,
                "location": position(&diagnostic.location, folder),
                "related": related.collect::<Vec<Value>>(),
            })
        })
        .collect();
    let (errors, warnings, hints) = (count_of(Severity::Error), count_of(Severity::Warning), count_of(Severity::Hint));
    json!({ "items": entries, "next": null, "errors": errors, "warnings": warnings, "hints": hints })
}

fn position(location: &Location, folder: &Path) -> Value {
    let end = location.span().end;
    let (line, column) = location.line_column();
    let (end_line, end_column) = Location::new(&location.source, end..end).line_column();
    json!({
        "path": path_from_here(folder, &location.source.path),
        "line": line, "column": column, "endLine": end_line, "endColumn": end_column,
    })
}

#[cfg(test)]
mod tests {
    use promptshelf_core::Code;

    use super::*;

    fn formatted(diagnostic: &Diagnostic) -> String {
        DiagnosticFormat { folder: Path::new("prompts"), colours: false, width: 100, is_broken: false }
            .format(diagnostic)
    }

    #[test]
    fn messages_have_the_width_of_the_terminal() {
        let source = SourceText::new("hello.md", "---\ndescription: x\n---\nHello!\n");
        let text = "a sentence with many words that is much longer than the terminal is wide";
        let found = Diagnostic::error(Code::Syntax, Location::new(&source, 0..3), text).help(text);
        let format = DiagnosticFormat { folder: Path::new("."), colours: false, width: 40, is_broken: true };
        insta::assert_snapshot!(format.format(&found));
    }

    #[test]
    fn span_is_marked_with_line_and_help() {
        let source = SourceText::new("hello.md", "---\ndescription: x\n---\nHällo {{ nme }}!\n");
        let at = source.text.find("nme").expect("in the source");
        let found =
            Diagnostic::error(Code::UndeclaredArgument, Location::new(&source, at..at + 3), "unknown argument `nme`")
                .help("did you mean `name`?");
        insta::assert_snapshot!(formatted(&found));
    }

    #[test]
    fn related_files_are_included() {
        let one = SourceText::new("a.md", "---\nname: x\n---\n");
        let two = SourceText::new("b.md", "---\nname: x\n---\n");
        let found =
            Diagnostic::error(Code::DuplicateName, Location::new(&one, 10..11), "the prompt `x` is defined 2 times")
                .also(Location::new(&two, 10..11), "also defined here");
        insta::assert_snapshot!(formatted(&found));
    }

    #[test]
    fn control_characters_are_escaped() {
        let source = SourceText::new("evil\u{1b}[2J.md", "a\u{1b}[2Jb \u{202e} here\n");
        let at = source.text.find("here").expect("in the source");
        let found =
            Diagnostic::warning(Code::InvisibleCharacter, Location::new(&source, at..at + 4), "\u{1b}]0;title\u{7}");
        let formatted = formatted(&found);
        assert!(!formatted.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{formatted}");
        insta::assert_snapshot!(formatted);
    }

    #[test]
    fn binary_file_has_only_a_path() {
        let source = SourceText::new("image.md", "");
        insta::assert_snapshot!(formatted(&Diagnostic::error(
            Code::NotUtf8,
            Location::file(&source),
            "this file is not UTF-8"
        )));
    }

    #[test]
    fn span_at_end_of_file_is_marked() {
        let source = SourceText::new("end.md", "{% if x %}\n");
        let end = source.text.len();
        let found =
            Diagnostic::error(Code::TemplateSyntax, Location::new(&source, end..end), "unexpected end of input");
        insta::assert_snapshot!(formatted(&found));
    }

    #[test]
    fn message_cannot_start_another_command() {
        let source = SourceText::new("a,b.md", "one\ntwo\n");
        let found =
            Diagnostic::error(Code::Syntax, Location::new(&source, 4..7), "50%\n::error::x").help("do something else");
        assert_eq!(
            to_github(&[found], Path::new(".")),
            "::error file=a%2Cb.md,line=2,endLine=2,col=1,endColumn=4,title=syntax::50%25%0A::error::x%0Ahelp: do something else\n"
        );
    }
}
