//! The error of a template that does not compile.

use std::ops::Range;

use crate::diagnostic::{Code, Diagnostic, Location};

/// A template that does not compile.
#[derive(Clone, Debug)]
pub(crate) struct CompileError {
    pub(crate) message: String,
    /// Bytes of the template.
    pub(crate) span: Range<usize>,
    pub(crate) help: Option<String>,
}

impl CompileError {
    pub(crate) fn at(self, location: Location) -> Diagnostic {
        Diagnostic { help: self.help, ..Diagnostic::error(Code::TemplateSyntax, location, self.message) }
    }

    pub(super) fn new(error: &minijinja::Error, text: &str) -> CompileError {
        let message = match error.detail() {
            Some(detail) => detail.to_owned(),
            None => error.kind().to_string(),
        };
        let span = error.range().unwrap_or_else(|| line_span(text, error.line().unwrap_or(1)));
        CompileError { message, span, help: None }
    }
}

pub(super) fn bytes(span: minijinja::machinery::Span) -> Range<usize> {
    span.start_offset as usize..span.end_offset as usize
}

/// Returns the bytes of a line, counted from one.
fn line_span(text: &str, line: usize) -> Range<usize> {
    let start = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    let end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
    start..end
}
