//! A report in the format of JUnit, which CI servers read.

use std::{fmt::Write, time::Duration};

use super::Outcome;

/// One suite a prompt.
pub(super) fn report(outcomes: &[Outcome]) -> String {
    let failed = |outcomes: &[Outcome]| outcomes.iter().filter(|outcome| !outcome.faults.is_empty()).count();
    let seconds = |outcomes: &[Outcome]| outcomes.iter().map(|outcome| outcome.took).sum::<Duration>().as_secs_f64();
    let mut report = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing into a string cannot fail.
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
            // The path itself can hold colons, as that of a drive does.
            let mut place = outcome.place.rsplitn(3, ':').skip(1);
            let line = place.next().unwrap_or("1");
            let file = escaped(place.next().unwrap_or_default());
            let _ = write!(
                report,
                "    <testcase classname=\"{prompt}\" name=\"{name}\" file=\"{file}\" line=\"{line}\" time=\"{:.3}\"",
                outcome.took.as_secs_f64()
            );
            if outcome.faults.is_empty() {
                report.push_str("/>\n");
                continue;
            }
            report.push_str(">\n");
            for fault in &outcome.faults {
                let (message, details) = (escaped(&fault.sentence), escaped(&fault.details));
                let _ = writeln!(report, "      <failure message=\"{message}\">{details}</failure>");
            }
            report.push_str("    </testcase>\n");
        }
        report.push_str("  </testsuite>\n");
    }
    report.push_str("</testsuites>\n");
    report
}

/// Text for XML 1.0, which has no way to hold control characters.
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
    use super::{super::Fault, *};

    #[test]
    fn a_report_holds_nothing_that_xml_cannot() {
        let outcome = |prompt: &str, faults| Outcome {
            prompt: prompt.to_owned(),
            test: "a \"b\"".to_owned(),
            place: "x/a.md:7:5".to_owned(),
            faults,
            took: Duration::ZERO,
        };
        let fault = Fault::new("1 < 2", "a & b\u{1b}\n");
        let report = report(&[outcome("one", Vec::new()), outcome("two", vec![fault])]);
        let case = r#"<testcase classname="one" name="a &quot;b&quot;" file="x/a.md" line="7" time="0.000"/>"#;
        assert!(report.contains(case), "{report}");
        assert!(report.contains(r#"<failure message="1 &lt; 2">a &amp; b\u{1b}"#), "{report}");
        assert!(report.contains(r#"<testsuites name="promptshelf" tests="2" failures="1""#), "{report}");
    }
}
