//! Diagnostics as workflow commands, which GitHub Actions displays next to the source lines.

use std::path::Path;

use promptshelf_core::{Diagnostic, Location, Severity};

use super::diagnostics::path_from_here;

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

#[cfg(test)]
mod tests {
    use promptshelf_core::{Code, SourceText};

    use super::*;

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
