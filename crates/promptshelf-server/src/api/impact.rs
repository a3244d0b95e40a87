//! Differences for callers, with the recent calls that they affect.

use std::collections::BTreeSet;

use jiff::Timestamp;
use promptshelf_author::{AffectedCalls, Difference, Subject};
use promptshelf_store::{ChannelName, UsageQuery};
use promptshelf_wire::{DifferenceInWords, UsageReport};

use super::call::Context;
use crate::usage::{IMPACT_WINDOW, recent_calls, report_of};

const MAX_PROMPTS: usize = 20;

/// Describes differences of a channel. Without figures, the recent calls are left out.
pub(super) async fn in_words(
    call: &Context,
    channel: &ChannelName,
    differences: Vec<Difference>,
) -> Vec<DifferenceInWords> {
    let report = report(call, &differences).await;
    let describe = |found: Difference| {
        let recent = report.as_ref().and_then(|report| recent_calls(&found, channel.as_str(), report));
        let (impact, subject) = (found.impact.as_str(), found.subject.as_str());
        let Difference { name, code, values, text, .. } = found;
        DifferenceInWords { impact, subject, name, code, values, text, recent }
    };
    differences.into_iter().map(describe).collect()
}

async fn report(call: &Context, differences: &[Difference]) -> Option<UsageReport> {
    let log = call.state.usage.as_ref()?;
    let counts = |found: &&Difference| found.subject == Subject::Prompt && found.affects != AffectedCalls::Unknown;
    let names: BTreeSet<&str> = differences.iter().filter(counts).map(|found| found.name.as_str()).collect();
    let since = Timestamp::now().checked_sub(IMPACT_WINDOW).ok();
    let prompts: Vec<Option<String>> = match names.len() {
        0 => return None,
        1..=MAX_PROMPTS => names.into_iter().map(|name| Some(name.to_owned())).collect(),
        _ => vec![None],
    };
    let mut report = UsageReport::default();
    for prompt in prompts {
        match log.figures(&UsageQuery { since, prompt }).await {
            Ok(figures) => {
                report.prompts.extend(report_of(since, &figures, true, log.min_callers()).prompts);
            }
            Err(error) => {
                // The comparison itself does not need the figures.
                tracing::warn!("the figures of usage cannot be read: {error}");
                return None;
            }
        }
    }
    Some(report)
}
