//! The recent calls that a change would break: differences of two catalogs, joined with usage metrics.

use std::{collections::BTreeSet, time::Duration};

use promptshelf_author::{AffectedCalls, Difference, Subject};
use promptshelf_store::{BrokenCalls, Effect};
use promptshelf_wire::{AffectedWord, PromptUsage, RecentCalls, UsageReport};

/// The age of the oldest calls that count: 30 days.
pub const IMPACT_WINDOW: Duration = Duration::from_secs(30 * 24 * 60 * 60);

const RENDERING: [&str; 2] = ["prompts/get", "tools/call"];

/// Returns the recent calls that a difference of a channel affects; `None` if names of arguments do not decide it.
///
/// `report` has the figures of the last 30 days with [details](super::report_of), so that channels are separated.
#[must_use]
pub fn recent_calls(difference: &Difference, channel: &str, report: &UsageReport) -> Option<RecentCalls> {
    if difference.subject != Subject::Prompt {
        return None;
    }
    of_calls(&difference.name, &difference.affects, channel, report)
}

/// Returns the recent calls that an effect of a proposal breaks; `None` as for [`of`](recent_calls).
#[must_use]
pub fn recent_calls_of_effect(effect: &Effect, channel: &str, report: &UsageReport) -> Option<RecentCalls> {
    let calls = match effect.calls.clone()? {
        BrokenCalls::All => AffectedCalls::All,
        BrokenCalls::Omitting(argument) => AffectedCalls::Omitting(argument),
        BrokenCalls::Sending(argument) => AffectedCalls::Sending(argument),
    };
    of_calls(effect.prompt.as_deref()?, &calls, channel, report)
}

fn of_calls(prompt: &str, calls: &AffectedCalls, channel: &str, report: &UsageReport) -> Option<RecentCalls> {
    let (which, argument) = match calls {
        AffectedCalls::All => (AffectedWord::All, None),
        AffectedCalls::Omitting(argument) => (AffectedWord::Omit, Some(argument.clone())),
        AffectedCalls::Sending(argument) => (AffectedWord::Send, Some(argument.clone())),
        _ => return None,
    };
    let mut recent = RecentCalls { which, argument, calls: 0, affected: 0, clients: 0 };
    let mut clients = BTreeSet::new();
    let is_counted = |row: &&PromptUsage| {
        let is_call = match which {
            // A template without rendering is gone too.
            AffectedWord::All => row.method != "completion/complete",
            _ => RENDERING.contains(&row.method.as_str()),
        };
        row.name == prompt && row.channel.as_deref() == Some(channel) && row.outcome == "ok" && is_call
    };
    for row in report.prompts.iter().filter(is_counted) {
        // A version that did not have the argument has no figure of it.
        let omitting = recent.argument.as_ref().map(|name| row.left_out.get(name).copied().unwrap_or(row.count));
        let affected = match which {
            AffectedWord::All => row.count,
            AffectedWord::Omit => omitting.unwrap_or_default(),
            AffectedWord::Send => row.count.saturating_sub(omitting.unwrap_or_default()),
        };
        recent.calls += row.count;
        recent.affected += affected;
        if affected > 0 {
            clients.insert(row.client.as_str());
        }
    }
    recent.clients = clients.len() as u64;
    Some(recent)
}

#[cfg(test)]
mod tests {
    use crate::usage::report_of;
    use promptshelf_author::differences;
    use promptshelf_core::{
        ArgumentDefinition, Catalog, Choice, Definitions, PromptDefinition, check,
        usage::{UsageFigures, UsageKey},
    };

    use super::*;

    fn catalog(arguments: Vec<ArgumentDefinition>) -> Catalog {
        let mut prompt = PromptDefinition::template("review", "Review.");
        prompt.arguments = arguments;
        check(Definitions::from_iter([prompt]), None).catalog
    }

    /// Client, method, outcome, number of calls, and how many of them left out each argument.
    type Row<'a> = (&'a str, &'a str, &'a str, u64, &'a [(&'a str, u64)]);

    fn report(rows: &[Row<'_>]) -> UsageReport {
        let figures = rows.iter().map(|(client, method, outcome, count, left_out)| {
            let key = UsageKey {
                channel: "production".to_owned(),
                prompt: "review".to_owned(),
                client: (*client).to_owned(),
                method: (*method).to_owned(),
                outcome: (*outcome).to_owned(),
                ..UsageKey::default()
            };
            let left_out = left_out.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
            (key, UsageFigures { count: *count, left_out, ..UsageFigures::default() })
        });
        report_of(None, &figures.collect(), true, 5)
    }

    fn sentences(before: &Catalog, after: &Catalog, channel: &str, report: &UsageReport) -> Vec<String> {
        let found = differences(before, after);
        let sentence = |found: &Difference| recent_calls(found, channel, report).map(|calls| calls.to_string());
        found.iter().filter_map(sentence).collect()
    }

    // req: S-204
    #[test]
    fn differences_name_the_share_of_affected_calls() {
        let framework = || ArgumentDefinition::new("framework");
        let choice = |words: &[&str]| {
            let mut argument = framework();
            argument.choices = words.iter().map(|word| Choice { value: (*word).to_owned(), title: None }).collect();
            catalog(vec![argument])
        };
        let figures = report(&[
            ("editor", "prompts/get", "ok", 1_000, &[("framework", 490)]),
            ("ci", "tools/call", "ok", 200, &[("framework", 2)]),
            // Before the version with this argument.
            ("old", "prompts/get", "ok", 4, &[]),
            ("bad", "prompts/get", "invalid-arguments", 900, &[("framework", 900)]),
            ("docs", "prompts/describe", "ok", 10, &[]),
            ("docs", "completion/complete", "ok", 500, &[]),
        ]);
        let (optional, required) = (catalog(vec![framework()]), catalog(vec![framework().required()]));
        let is = |before: &Catalog, after: &Catalog, expected: &str| {
            assert_eq!(sentences(before, after, "production", &figures), [expected]);
        };
        let none = catalog(Vec::new());
        is(&optional, &required, "41 % of calls leave it out (496 of 1,204 in the last 30 days, 3 clients)");
        is(&optional, &none, "58 % of calls send it (708 of 1,204 in the last 30 days, 2 clients)");
        is(
            &choice(&["a", "b"]),
            &choice(&["a"]),
            "58 % of calls send it (708 of 1,204 in the last 30 days, 2 clients)",
        );
        is(&none, &required, "called 1,214 times by 4 clients in the last 30 days");
        is(&none, &check(Definitions::default(), None).catalog, "called 1,214 times by 4 clients in the last 30 days");
        assert_eq!(sentences(&optional, &required, "staging", &figures), ["not called in the last 30 days"]);
        assert!(sentences(&required, &optional, "production", &figures).is_empty());
    }

    #[test]
    fn small_share_is_not_shown_as_zero() {
        let recent = RecentCalls {
            which: AffectedWord::Omit,
            argument: Some("a".to_owned()),
            calls: 1_000_000,
            affected: 1,
            clients: 1,
        };
        assert_eq!(
            recent.to_string(),
            "less than 1 % of calls leave it out (1 of 1,000,000 in the last 30 days, 1 client)"
        );
        let none = RecentCalls { affected: 0, clients: 0, ..recent };
        assert_eq!(none.to_string(), "none of 1,000,000 calls in the last 30 days leave it out");
    }
}
