//! The report of usage that the API and the command print.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use promptshelf_core::usage::{UsageFigures, UsageKey};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The least number of callers that is shown by default.
pub const MIN_CALLERS: u64 = 5;

pub(super) const MAX_ENTRIES: usize = 200;

/// The method that calls no prompt.
pub(super) const COMPLETION: &str = "completion/complete";

/// The use of prompts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UsageReport {
    /// The start of the time that the figures are about, to the hour; null for all of them.
    pub since: Option<Timestamp>,
    /// One entry for each combination of prompt, version, client, method and outcome.
    pub prompts: Vec<PromptUsage>,
    /// Prompts that were not called in this time, by name, at most 200; empty if one prompt is selected.
    #[serde(default)]
    pub unused: Vec<String>,
    /// The number of all of them.
    #[serde(default)]
    pub unused_total: usize,
}

/// The use of one version of a prompt by one client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptUsage {
    /// The name of the prompt.
    pub name: String,
    /// Whether the prompt is deprecated at present.
    #[serde(default)]
    pub deprecated: bool,
    /// The name of its source, in a server with several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<String>,
    /// The number of its version; null if the server serves a folder.
    pub version: Option<u64>,
    /// The channel. Only with `detail`; null if the server serves a folder.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub channel: Option<String>,
    /// The name of the client program; `unknown` if it declares none, `other` beyond a bound.
    pub client: String,
    /// The version of the client program. Only with `detail`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client_version: Option<String>,
    /// The revision of the protocol, or `http`. Only with `detail`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub protocol: Option<String>,
    /// The method: `prompts/get`, `completion/complete`, or `prompts/describe` for a template.
    pub method: String,
    /// `ok`, or the code of a refusal.
    pub outcome: String,
    /// The number of calls.
    pub count: u64,
    /// The number of distinct callers; null if there are so few that they could be identified.
    pub callers: Option<u64>,
    /// The latency that half of the calls did not exceed, in milliseconds.
    pub p50_ms: f64,
    /// The latency that 95 % of the calls did not exceed, in milliseconds.
    pub p95_ms: f64,
    /// The latency that 99 % of the calls did not exceed, in milliseconds.
    pub p99_ms: f64,
    /// For arguments that calls left out, the number of those calls. Rendered calls have every argument of this version.
    pub left_out: BTreeMap<String, u64>,
    /// For each argument whose value was one of its fixed suggestions in some calls, the number of those calls.
    #[serde(default)]
    pub taken: BTreeMap<String, u64>,
    /// The size of all answers together, in bytes of text and data.
    #[serde(default)]
    pub bytes_out: u64,
    /// The forms of a guided prompt that users answered.
    #[serde(default)]
    pub forms: FormUsage,
}

/// How often users accepted, declined and cancelled forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub struct FormUsage {
    /// The forms that were filled in.
    pub accepted: u64,
    /// The forms that users refused to fill in.
    pub declined: u64,
    /// The forms that were closed without a choice.
    pub cancelled: u64,
}

impl UsageReport {
    /// Makes a report of figures. `detail` separates channels, versions of clients and protocols. Fewer callers than
    /// `min_callers` are not shown.
    #[must_use]
    pub fn of(
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
        let prompts = merged.into_iter().map(|(key, figures)| PromptUsage::of(key, figures, detail, min_callers));
        UsageReport { since, prompts: prompts.collect(), ..UsageReport::default() }
    }

    /// Marks deprecated prompts, and adds the prompts that were not called; completions do not count. `listed` has the
    /// names of the present prompts, and whether they are deprecated. In a report about the prompt `selected`, no other
    /// one counts as not called.
    #[must_use]
    pub fn marked(mut self, listed: &BTreeMap<String, bool>, selected: Option<&str>) -> UsageReport {
        for one in &mut self.prompts {
            one.deprecated = listed.get(&one.name).copied().unwrap_or_default();
        }
        let calls = self.prompts.iter().filter(|one| one.method != COMPLETION);
        let called: BTreeSet<&str> = calls.map(|one| one.name.as_str()).collect();
        let unused = listed.keys().filter(|name| selected.is_none() && !called.contains(name.as_str()));
        self.unused_total = unused.clone().count();
        self.unused = unused.take(MAX_ENTRIES).cloned().collect();
        self
    }

    /// Names the source of each prompt in a server with several sources.
    #[must_use]
    pub fn with_sources(mut self, source_of: impl Fn(&str) -> Option<Arc<str>>) -> UsageReport {
        for prompt in &mut self.prompts {
            prompt.source = source_of(&prompt.name).map(|source| source.to_string());
        }
        self
    }
}

impl PromptUsage {
    fn of(key: UsageKey, figures: UsageFigures, detail: bool, min_callers: u64) -> PromptUsage {
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
            bytes_out: figures.bytes_out,
            forms: FormUsage {
                accepted: figures.forms.accepted,
                declined: figures.forms.declined,
                cancelled: figures.forms.cancelled,
            },
        }
    }
}
