//! JUnit XML reports, for CI servers.

use std::{fmt::Write, time::Duration};

use super::outcome::TestOutcome;

/// Returns a JUnit XML report with a suite for each prompt. `show_path` maps a file's path inside the library
/// to the path in the report.
///
/// ```
/// use promptshelf_author::testing::junit;
///
/// assert!(junit(&[], |path| path.to_owned()).contains("tests=\"0\" failures=\"0\""));
/// ```
#[must_use]
pub fn junit(outcomes: &[TestOutcome], show_path: impl Fn(&str) -> String) -> String {
    let failed = |outcomes: &[TestOutcome]| outcomes.iter().filter(|outcome| !outcome.mismatches.is_empty()).count();
    let seconds =
        |outcomes: &[TestOutcome]| outcomes.iter().map(|outcome| outcome.duration).sum::<Duration>().as_secs_f64();
    let mut report = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        report,
        "<testsuites name=\"promptshelf\" tests=\"{}\" failures=\"{}\" time=\"{:.3}\">",
        outcomes.len(),
        failed(outcomes),
        seconds(outcomes)
    );
    for suite in outcomes.chunk_by(|a, b| a.prompt == b.prompt) {
        let Some(first) = suite.first() else { continue };
        let prompt = escaped(&first.prompt);
        let _ = writeln!(
            report,
            "  <testsuite name=\"{prompt}\" tests=\"{}\" failures=\"{}\" time=\"{:.3}\">",
            suite.len(),
            failed(suite),
            seconds(suite)
        );
        for outcome in suite {
            let name = escaped(&outcome.test);
            let (line, _) = outcome.location.line_column();
            let file = escaped(&show_path(&outcome.location.source.path));
            let _ = write!(
                report,
                "    <testcase classname=\"{prompt}\" name=\"{name}\" file=\"{file}\" line=\"{line}\" time=\"{:.3}\"",
                outcome.duration.as_secs_f64()
            );
            if outcome.mismatches.is_empty() {
                report.push_str("/>\n");
                continue;
            }
            report.push_str(">\n");
            for mismatch in &outcome.mismatches {
                let (message, details) = (escaped(&mismatch.message), escaped(&mismatch.details));
                let _ = writeln!(report, "      <failure message=\"{message}\">{details}</failure>");
            }
            report.push_str("    </testcase>\n");
        }
        report.push_str("  </testsuite>\n");
    }
    report.push_str("</testsuites>\n");
    report
}

/// Escapes text for XML 1.0, which cannot represent control characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            '\u{fffe}' | '\u{ffff}' => escaped.extend(c.escape_default()),
            c if c.is_control() => escaped.extend(c.escape_default()),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use promptshelf_core::{Location, SourceText};

    use super::{super::outcome::Mismatch, *};

    #[test]
    fn report_has_only_valid_xml_characters() {
        let outcome = |prompt: &str, mismatches| TestOutcome {
            prompt: prompt.to_owned(),
            test: "a \"b\"".to_owned(),
            location: Location::new(&SourceText::new("a.md", "\n\n\n\n\n\n    x"), 10..11),
            mismatches,
            updated: None,
            duration: Duration::ZERO,
        };
        let mismatch = Mismatch::new("1 < 2", "a & b\u{1b}\n");
        let report = junit(&[outcome("one", Vec::new()), outcome("two", vec![mismatch])], |path| format!("x/{path}"));
        let case = r#"<testcase classname="one" name="a &quot;b&quot;" file="x/a.md" line="7" time="0.000"/>"#;
        assert!(report.contains(case), "{report}");
        assert!(report.contains(r#"<failure message="1 &lt; 2">a &amp; b\u{1b}"#), "{report}");
        assert!(report.contains(r#"<testsuites name="promptshelf" tests="2" failures="1""#), "{report}");
    }
}
