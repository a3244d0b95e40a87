//! The output of an evaluation's program.

use std::collections::BTreeMap;

use promptshelf_store::CaseResult;
use serde::Deserialize;

use super::version::Case;

const FORM: &str = "expected one JSON object on stdout such as {\"scores\":{\"score\":0.93}}";

const MAX_REASON: usize = 4_096;

#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) scores: BTreeMap<String, f64>,
    pub(super) cases: Vec<CaseResult>,
    pub(super) model: Option<String>,
    pub(super) cost: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    scores: BTreeMap<String, f64>,
    #[serde(default)]
    cases: Vec<PrintedCase>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    cost: Option<f64>,
}

/// The result of a case. Other members are the program's own.
#[derive(Deserialize)]
struct PrintedCase {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    score: Option<f64>,
    #[serde(default)]
    passed: Option<bool>,
    #[serde(default)]
    reason: Option<String>,
}

impl Verdict {
    /// Parses the output. The results of cases are in the order of the cases, whose names they get unless they have one.
    pub(super) fn parse(output: &[u8], cases: &[Case]) -> Result<Verdict, String> {
        if output.iter().all(u8::is_ascii_whitespace) {
            return Err(format!("the program printed nothing: {FORM}"));
        }
        let printed: Printed = serde_json::from_slice(output).map_err(|error| format!("{FORM}: {error}"))?;
        if printed.scores.is_empty() {
            return Err(format!("the program printed no scores: {FORM}"));
        }
        if printed.cases.len() > cases.len() {
            let (found, sent) = (printed.cases.len(), cases.len());
            return Err(format!("the program printed results of {found} cases, and got {sent}"));
        }
        let named = printed.cases.into_iter().zip(cases).map(|(printed, case)| CaseResult {
            name: printed.name.unwrap_or_else(|| case.name.clone()),
            score: printed.score,
            passed: printed.passed,
            reason: cleaned(&printed.reason.unwrap_or_default()),
        });
        Ok(Verdict { scores: printed.scores, cases: named.collect(), model: printed.model, cost: printed.cost })
    }

    pub(super) fn check(&self, thresholds: &BTreeMap<String, f64>) -> Result<(), String> {
        match thresholds.keys().find(|name| !self.scores.contains_key(*name)) {
            None => Ok(()),
            Some(missing) => {
                let found: Vec<String> = self.scores.keys().map(|name| format!("`{name}`")).collect();
                let found = found.join(", ");
                Err(format!(
                    "the score `{missing}` has a threshold, and the program did not print it: it printed {found}"
                ))
            }
        }
    }
}

/// Returns a reason as it can be stored: often it is the answer of a model.
fn cleaned(reason: &str) -> String {
    let is_kept = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    reason.chars().filter(is_kept).take(MAX_REASON).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str) -> Case {
        Case { name: name.to_owned(), arguments: BTreeMap::new(), messages: serde_json::Value::Null }
    }

    // req: S-196, S-198
    #[test]
    fn output_is_one_object_with_finite_scores() {
        let parse = |text: &str| Verdict::parse(text.as_bytes(), &[case("short"), case("long")]);
        for (text, expected) in [
            ("", "printed nothing"),
            ("\n \n", "printed nothing"),
            ("score: 1", "expected one JSON object"),
            ("{\"scores\":{\"score\":NaN}}", "line 1 column"),
            ("{\"scores\":{\"score\":1e999}}", "out of range"),
            ("{\"scores\":{\"score\":null}}", "invalid type: null"),
            ("{\"scores\":{\"score\":\"0.9\"}}", "invalid type: string"),
            ("{\"scores\":{}}", "no scores"),
            ("{\"score\":0.9}", "unknown field `score`"),
            ("{\"scores\":{\"score\":1}} {}", "trailing characters"),
            ("{\"scores\":{\"score\":1},\"scores\":{\"score\":0}}", "duplicate field"),
            ("{\"scores\":{\"score\":1},\"cases\":[{},{},{}]}", "3 cases, and got 2"),
            ("[1]", "expected"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(Verdict::parse(b"{\"scores\":{\"\xff\":1}}", &[]).is_err());
        let verdict =
            parse("{\"scores\":{\"a\":1},\"cases\":[{\"score\":1,\"reason\":\"x\\u001b[2J\",\"output\":[]}]}");
        let verdict = verdict.expect("it is accepted");
        assert_eq!((verdict.cases[0].name.as_str(), verdict.cases[0].reason.as_str()), ("short", "x[2J"));
        let error = verdict.check(&BTreeMap::from([("b".to_owned(), 0.5)])).expect_err("b is missing");
        assert!(error.contains("`b`") && error.contains("it printed `a`"), "{error}");
    }
}
