//! Diagnostics as workflow commands, which GitHub Actions shows beside the lines.

use std::path::Path;

use promptshelf_core::{Diagnostic, Location, Severity};

use super::diagnostics::path_from_here;

/// One line a diagnostic.
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
    let path = property(&path_from_here(folder, &source.path));
    // Columns of several lines are refused.
    let columns = if line == end_line { format!(",col={column},endColumn={end_column}") } else { String::new() };
    let message = match &diagnostic.help {
        Some(help) => format!("{}\nhelp: {help}", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let code = diagnostic.code;
    format!("::{level} file={path},line={line},endLine={end_line}{columns},title={code}::{}\n", text(&message))
}

fn text(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(value: &str) -> String {
    text(value).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use promptshelf_core::{Code, SourceText};

    use super::*;

    #[test]
    fn nothing_in_a_message_can_begin_another_command() {
        let source = SourceText::new("a,b.md", "one\ntwo\n");
        let found =
            Diagnostic::error(Code::Syntax, Location::new(&source, 4..7), "50%\n::error::x").help("do something else");
        assert_eq!(
            to_github(&[found], Path::new(".")),
            "::error file=a%2Cb.md,line=2,endLine=2,col=1,endColumn=4,title=syntax::50%25%0A::error::x%0Ahelp: do something else\n"
        );
    }
}
