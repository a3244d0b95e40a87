//! The overview of usage that the page draws: totals, days, clients, versions, errors, and prompts that deserve a look.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use promptshelf_core::usage::{UsageFigures, UsageKey};
use promptshelf_wire::{COMPLETION, MAX_USAGE_ENTRIES, UsageDay, UsageGroup, UsageOverview, UsedDeprecated};

/// Figures by the start of their day, in seconds since 1970.
pub type DailyUsage = BTreeMap<i64, BTreeMap<UsageKey, UsageFigures>>;

/// The prompts that the reader sees, by name. A deprecated one has an entry with its replacement.
pub(crate) type ListedPrompts = BTreeMap<String, Option<Deprecated>>;

/// A deprecation with its replacement, if it has one that the reader sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deprecated {
    pub(crate) replacement: Option<String>,
}

#[derive(Default)]
struct Sum {
    figures: UsageFigures,
    failed: u64,
}

impl Sum {
    fn add(&mut self, key: &UsageKey, figures: &UsageFigures) {
        self.figures.merge(figures);
        // A form that was sent, and a call that the client gave up, are not failures of the prompt.
        if !["ok", "asked", "cancelled"].contains(&key.outcome.as_str()) {
            self.failed += figures.count;
        }
    }

    fn millis(&self, share: f64) -> f64 {
        let latency = self.figures.latencies.quantile(share).unwrap_or_default();
        // Whole microseconds.
        latency.as_micros() as f64 / 1_000.0
    }

    fn group(&self, name: &str, min_callers: u64) -> UsageGroup {
        UsageGroup {
            name: name.to_owned(),
            calls: self.figures.count,
            failed: self.failed,
            callers: Some(self.figures.callers.count()).filter(|callers| *callers >= min_callers),
            p50_ms: self.millis(0.5),
            p95_ms: self.millis(0.95),
            p99_ms: self.millis(0.99),
        }
    }
}

#[derive(Default)]
struct Sums(BTreeMap<String, Sum>);

impl Sums {
    fn add(&mut self, name: &str, key: &UsageKey, figures: &UsageFigures) {
        match self.0.get_mut(name) {
            Some(sum) => sum.add(key, figures),
            None => self.0.entry(name.to_owned()).or_default().add(key, figures),
        }
    }

    fn groups(&self, min_callers: u64) -> Vec<UsageGroup> {
        let mut groups: Vec<UsageGroup> = self.0.iter().map(|(name, sum)| sum.group(name, min_callers)).collect();
        groups.sort_by(|one, other| other.calls.cmp(&one.calls).then_with(|| one.name.cmp(&other.name)));
        groups.truncate(MAX_USAGE_ENTRIES);
        groups
    }
}

/// Makes the overview of figures; `selected` is the prompt that they are about, if they are about one. Fewer
/// callers than `min_callers` are not shown.
pub(crate) fn overview_of(
    since: Option<Timestamp>,
    days: &DailyUsage,
    selected: Option<&str>,
    listed: &ListedPrompts,
    source_of: impl Fn(&str) -> Option<Arc<str>>,
    min_callers: u64,
) -> UsageOverview {
    let (mut total, mut of_days) = (Sum::default(), Vec::new());
    let (mut clients, mut prompts, mut sources) = (Sums::default(), Sums::default(), Sums::default());
    let (mut versions, mut outcomes) = (Sums::default(), Sums::default());
    let mut clients_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (start, figures) in days {
        let mut day = Sum::default();
        for (key, figures) in figures.iter().filter(|(key, _)| key.method != COMPLETION) {
            day.add(key, figures);
            total.add(key, figures);
            let client = if key.client.is_empty() { "unknown" } else { &key.client };
            clients.add(client, key, figures);
            prompts.add(&key.prompt, key, figures);
            if let Some(source) = source_of(&key.prompt) {
                sources.add(&source, key, figures);
            }
            outcomes.add(&key.outcome, key, figures);
            if selected.is_some() && key.version > 0 {
                versions.add(&key.version.to_string(), key, figures);
            }
            clients_of.entry(&key.prompt).or_default().insert(client);
        }
        if day.figures.count > 0 {
            of_days.push(UsageDay {
                day: date(*start).to_string(),
                calls: day.figures.count,
                failed: day.failed,
                p50_ms: day.millis(0.5),
                p95_ms: day.millis(0.95),
            });
        }
    }
    let is_used = |name: &str| prompts.0.contains_key(name);
    let unused = listed.keys().filter(|name| selected.is_none() && !is_used(name));
    let mut deprecated: Vec<UsedDeprecated> = listed
        .iter()
        .filter_map(|(name, deprecated)| {
            let (deprecated, sum) = (deprecated.as_ref()?, prompts.0.get(name)?);
            Some(UsedDeprecated {
                name: name.clone(),
                calls: sum.figures.count,
                clients: clients_of.get(name.as_str()).map_or(0, BTreeSet::len),
                replacement: deprecated.replacement.clone(),
            })
        })
        .collect();
    deprecated.sort_by_key(|one| std::cmp::Reverse(one.calls));
    deprecated.truncate(MAX_USAGE_ENTRIES);
    UsageOverview {
        since,
        total: total.group("", min_callers),
        days: of_days,
        clients: clients.groups(min_callers),
        prompts: prompts.groups(min_callers),
        sources: sources.groups(min_callers),
        versions: versions.groups(min_callers),
        outcomes: outcomes.groups(min_callers),
        unused_total: unused.clone().count(),
        unused: unused.take(MAX_USAGE_ENTRIES).cloned().collect(),
        deprecated,
    }
}

fn date(seconds: i64) -> Date {
    Timestamp::from_second(seconds).unwrap_or_default().to_zoned(TimeZone::UTC).date()
}
