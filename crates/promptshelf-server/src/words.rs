//! Counts in words, for the log and for people.

use promptshelf_core::{Diagnostic, Severity};

/// Formats a number of things: `1 error`, `2 errors`.
#[must_use]
pub fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Formats the result of a check: `2 errors and 1 warning`.
#[must_use]
pub fn count_findings(errors: usize, warnings: usize) -> String {
    match (errors, warnings) {
        (0, 0) => "no findings".to_owned(),
        (errors, 0) => count(errors, "error"),
        (0, warnings) => count(warnings, "warning"),
        (errors, warnings) => format!("{} and {}", count(errors, "error"), count(warnings, "warning")),
    }
}

/// Counts findings in words: errors, warnings and hints.
#[must_use]
pub fn count_all(findings: &[Diagnostic]) -> String {
    let count_of = |severity| findings.iter().filter(|found| found.severity == severity).count();
    let hints = count_of(Severity::Hint);
    let found = count_findings(count_of(Severity::Error), count_of(Severity::Warning));
    if hints > 0 { format!("{found}; {}", count(hints, "hint")) } else { found }
}
