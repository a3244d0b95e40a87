//! The report of usage that the API and the command print.

use std::collections::BTreeMap;

use jiff::Timestamp;
use promptshelf_core::usage::{UsageFigures, UsageKey};
use promptshelf_wire::{FormUsage, PromptUsage, UsageReport};

/// The least number of callers that is shown by default.
pub const MIN_CALLERS: u64 = 5;

/// Makes a report of figures. `detail` separates channels, versions of clients and protocols. Fewer callers than
/// `min_callers` are not shown.
#[must_use]
pub fn report_of(
    since: Option<Timestamp>,
    figures: &BTreeMap<UsageKey, UsageFigures>,
    detail: bool,
    min_callers: u64,
) -> UsageReport {
    let mut merged: BTreeMap<UsageKey, UsageFigures> = BTreeMap::new();
    for (key, figures) in figures {
        let mut key = key.clone();
        if !detail {
            (key.channel, key.client_version, key.protocol) = Default::default();
        }
        merged.entry(key).or_default().merge(figures);
    }
    let prompts = merged.into_iter().map(|(key, figures)| entry(key, figures, detail, min_callers));
    UsageReport { since, prompts: prompts.collect(), ..UsageReport::default() }
}

fn entry(key: UsageKey, figures: UsageFigures, detail: bool, min_callers: u64) -> PromptUsage {
    let millis = |share| {
        let latency = figures.latencies.quantile(share).unwrap_or_default();
        // Whole microseconds.
        latency.as_micros() as f64 / 1_000.0
    };
    let callers = figures.callers.count();
    PromptUsage {
        name: key.prompt,
        deprecated: false,
        source: None,
        version: Some(key.version).filter(|version| *version > 0),
        channel: Some(key.channel).filter(|channel| detail && !channel.is_empty()),
        client: Some(key.client).filter(|client| !client.is_empty()).unwrap_or_else(|| "unknown".to_owned()),
        client_version: Some(key.client_version).filter(|_| detail),
        protocol: Some(key.protocol).filter(|_| detail),
        method: key.method,
        outcome: key.outcome,
        count: figures.count,
        callers: Some(callers).filter(|callers| *callers >= min_callers),
        p50_ms: millis(0.5),
        p95_ms: millis(0.95),
        p99_ms: millis(0.99),
        left_out: figures.left_out,
        taken: figures.taken,
        unknown_arguments: figures.unknown_arguments,
        bytes_out: figures.bytes_out,
        forms: FormUsage {
            accepted: figures.forms.accepted,
            declined: figures.forms.declined,
            cancelled: figures.forms.cancelled,
        },
    }
}
