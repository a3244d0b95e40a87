//! How a diagnostic looks: as rustc would show it, and as JSON.

use std::{ops::Range, path::Path, sync::Arc};

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use promptshelf_core::{Diagnostic, Location, Severity, SourceText};
use serde_json::{Value, json};

use crate::output::{visible_at, visible_line};

/// Draws diagnostics of one library.
pub(crate) struct Drawing<'a> {
    /// The library's folder, as it was named.
    pub(crate) folder: &'a Path,
    pub(crate) colours: bool,
    pub(crate) width: usize,
}

impl Drawing<'_> {
    /// A diagnostic with its lines of the file and what to do.
    pub(crate) fn draw(&self, diagnostic: &Diagnostic) -> String {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Hint => Level::NOTE.with_name("hint"),
        };
        let title = level.primary_title(visible_line(&diagnostic.message)).id(diagnostic.code.as_str());
        let main = &diagnostic.location.source;
        let mut group = Group::with_title(title);
        let mut others: Vec<(&Arc<SourceText>, Vec<Mark<'_>>)> = Vec::new();
        let mut marks = vec![Mark { location: &diagnostic.location, kind: AnnotationKind::Primary, label: "" }];
        for (location, label) in &diagnostic.related {
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
            group = group.element(Level::HELP.message(visible_line(help).into_owned()));
        }
        let renderer = if self.colours { Renderer::styled() } else { Renderer::plain() };
        renderer.term_width(self.width).render(&[group])
    }

    /// The lines of one file that marks are in; only its name where there are none to show.
    fn file<'g>(&self, group: Group<'g>, source: &Arc<SourceText>, marks: &[Mark<'_>]) -> Group<'g> {
        let path = visible_line(&self.path(source)).into_owned();
        if source.text.is_empty() {
            return group.element(Origin::path(path));
        }
        let mut places: Vec<usize> =
            marks.iter().map(|mark| mark.location.span()).flat_map(|span| [span.start, span.end]).collect();
        // Only these lines are looked at: a file can be large, and have many mistakes.
        let lines = lines_around(&source.text, &places);
        let first_line = source.text[..lines.start].matches('\n').count() + 1;
        places.iter_mut().for_each(|place| *place -= lines.start);
        let text = visible_at(&source.text[lines], &mut places);
        let annotations = marks.iter().zip(places.chunks_exact(2)).map(|(mark, place)| {
            let label = (!mark.label.is_empty()).then(|| visible_line(mark.label).into_owned());
            mark.annotation(place[0]..place[1]).label(label)
        });
        let annotations: Vec<Annotation<'g>> = annotations.collect();
        group.element(Snippet::source(text).line_start(first_line).path(path).annotations(annotations))
    }

    /// The file's path as a person would open it from where they are.
    fn path(&self, source: &SourceText) -> String {
        path_from_here(self.folder, &source.path)
    }
}

/// The whole lines that hold all these places.
fn lines_around(text: &str, places: &[usize]) -> Range<usize> {
    let first = places.iter().min().map_or(0, |first| *first);
    let last = places.iter().max().map_or(0, |last| *last);
    // The very end of a file is shown at the end of its last line.
    let before = text[..first].strip_suffix('\n').filter(|_| first == text.len()).unwrap_or(&text[..first]);
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[last..].find('\n').map_or(text.len(), |newline| last + newline);
    start..end
}

/// One place to point at.
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

/// A path inside the library, from the current folder.
pub(crate) fn path_from_here(folder: &Path, path: &str) -> String {
    // What is defined in code has no file; its "path" is in angle brackets.
    if folder == Path::new(".") || path.starts_with('<') {
        return path.to_owned();
    }
    folder.join(path).display().to_string()
}

/// What is wrong, for programs. Lines and columns are counted from one, columns
/// in characters.
pub(crate) fn to_json(diagnostics: &[Diagnostic], folder: &Path) -> Value {
    let of = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
    let shown: Vec<Value> = diagnostics
        .iter()
        .map(|diagnostic| {
            let related = diagnostic.related.iter().map(|(location, label)| {
                let mut place = place(location, folder);
                place["label"] = json!(label);
                place
            });
            json!({
                "severity": diagnostic.severity.as_str(),
                "code": diagnostic.code.as_str(),
                "message": diagnostic.message,
                "help": diagnostic.help,
                "location": place(&diagnostic.location, folder),
                "related": related.collect::<Vec<Value>>(),
            })
        })
        .collect();
    let (errors, warnings, hints) = (of(Severity::Error), of(Severity::Warning), of(Severity::Hint));
    json!({ "errors": errors, "warnings": warnings, "hints": hints, "diagnostics": shown })
}

fn place(location: &Location, folder: &Path) -> Value {
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

    fn drawn(diagnostic: &Diagnostic) -> String {
        Drawing { folder: Path::new("prompts"), colours: false, width: 100 }.draw(diagnostic)
    }

    #[test]
    fn a_place_is_drawn_with_its_line_and_with_what_to_do() {
        let source = SourceText::new("hello.md", "---\ndescription: x\n---\nHällo {{ nme }}!\n");
        let at = source.text.find("nme").expect("it is there");
        let found =
            Diagnostic::error(Code::UndeclaredArgument, Location::new(&source, at..at + 3), "`nme` is no argument")
                .help("did you mean `name`?");
        insta::assert_snapshot!(drawn(&found));
    }

    #[test]
    fn places_in_other_files_are_drawn_too() {
        let one = SourceText::new("a.md", "---\nname: x\n---\n");
        let two = SourceText::new("b.md", "---\nname: x\n---\n");
        let found =
            Diagnostic::error(Code::DuplicateName, Location::new(&one, 10..11), "the prompt `x` is defined 2 times")
                .also(Location::new(&two, 10..11), "also defined here");
        insta::assert_snapshot!(drawn(&found));
    }

    #[test]
    fn what_would_steer_the_terminal_is_drawn_as_text() {
        let source = SourceText::new("evil\u{1b}[2J.md", "a\u{1b}[2Jb \u{202e} here\n");
        let at = source.text.find("here").expect("it is there");
        let found =
            Diagnostic::warning(Code::InvisibleCharacter, Location::new(&source, at..at + 4), "\u{1b}]0;title\u{7}");
        let drawn = drawn(&found);
        assert!(!drawn.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{drawn}");
        insta::assert_snapshot!(drawn);
    }

    #[test]
    fn a_file_that_is_no_text_is_only_named() {
        let source = SourceText::new("image.md", "");
        insta::assert_snapshot!(drawn(&Diagnostic::error(
            Code::NotUtf8,
            Location::file(&source),
            "this file is not UTF-8"
        )));
    }

    #[test]
    fn a_place_at_the_very_end_is_drawn() {
        let source = SourceText::new("end.md", "{% if x %}\n");
        let end = source.text.len();
        let found =
            Diagnostic::error(Code::TemplateSyntax, Location::new(&source, end..end), "unexpected end of input");
        insta::assert_snapshot!(drawn(&found));
    }
}
