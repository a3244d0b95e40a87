//! Repeated refusals of a caller, which are counted instead of recorded one by one: a caller that sends requests to be
//! refused would otherwise replace the records of everything else.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use serde_json::{Value, json};

/// The number of refusals of one kind that are recorded in full within an interval.
const IN_FULL: u64 = 10;
/// The time that one count covers.
const INTERVAL: Duration = Duration::from_secs(60);
const SEARCH: Duration = Duration::from_secs(1);
/// Maximum number of counts at once; beyond it all are recorded and start again.
const MAX_COUNTS: usize = 1_024;

/// The kind of a refusal: refusals that are equal are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Refusal {
    pub(super) caller: String,
    pub(super) address: Option<String>,
    pub(super) method: &'static str,
    pub(super) outcome: &'static str,
}

#[derive(Debug)]
struct Count {
    begun: Instant,
    /// The time of the first refusal that was only counted.
    since: Timestamp,
    refusals: u64,
}

#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    counts: HashMap<Refusal, Count>,
    /// Counts that made room for others, and wait to be recorded.
    displaced: Vec<Value>,
    searched: Option<Instant>,
}

impl Refusals {
    /// Counts a refusal. Returns whether it is recorded in full.
    pub(super) fn admit(&self, refusal: &Refusal) -> bool {
        let State { counts, displaced, .. } = &mut *self.state();
        if counts.len() >= MAX_COUNTS && !counts.contains_key(refusal) {
            displaced.extend(counts.drain().filter_map(|(refusal, count)| record(&refusal, &count)));
        }
        let new = || Count { begun: Instant::now(), since: Timestamp::now(), refusals: 0 };
        let count = counts.entry(refusal.clone()).or_insert_with(new);
        count.refusals += 1;
        if count.refusals == IN_FULL + 1 {
            count.since = Timestamp::now();
        }
        count.refusals <= IN_FULL
    }

    /// Removes the counts of intervals that have passed, or all of them, and returns their records.
    pub(super) fn take(&self, all: bool) -> Vec<Value> {
        let State { counts, displaced, searched } = &mut *self.state();
        let mut records = std::mem::take(displaced);
        // Called for each refusal: a search of all counts each time would make refusals expensive.
        if !all && searched.is_some_and(|searched| searched.elapsed() < SEARCH) {
            return records;
        }
        *searched = Some(Instant::now());
        let passed = counts.extract_if(|_, count| all || count.begun.elapsed() >= INTERVAL);
        records.extend(passed.filter_map(|(refusal, count)| record(&refusal, &count)));
        records
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the record of refusals that were not recorded in full.
fn record(refusal: &Refusal, count: &Count) -> Option<Value> {
    let further = count.refusals.checked_sub(IN_FULL).filter(|further| *further > 0)?;
    let mut record = json!({
        "time": format!("{:.3}", Timestamp::now()),
        "since": format!("{:.3}", count.since),
        "caller": refusal.caller,
        "method": refusal.method,
        "outcome": refusal.outcome,
        "count": further,
    });
    if let Some(address) = &refusal.address {
        record["address"] = address.as_str().into();
    }
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(caller: &str, outcome: &'static str) -> Refusal {
        Refusal { caller: caller.to_owned(), address: Some("10.0.0.1".to_owned()), method: "get", outcome }
    }

    // req: S-79
    #[test]
    fn refusals_are_counted_per_caller_and_reason() {
        let refusals = Refusals::default();
        let in_full = (0..5_000).filter(|_| refusals.admit(&refusal("eve", "unknown-prompt"))).count();
        assert_eq!(in_full as u64, IN_FULL);
        assert!(
            refusals.admit(&refusal("eve", "invalid-arguments")) && refusals.admit(&refusal("ada", "unknown-prompt"))
        );
        assert!(refusals.take(false).is_empty(), "the interval has not passed");
        let records = refusals.take(true);
        assert_eq!(records.len(), 1, "{records:?}");
        assert_eq!(
            (&records[0]["caller"], &records[0]["outcome"], &records[0]["count"]),
            (&json!("eve"), &json!("unknown-prompt"), &json!(4_990))
        );
        assert!(refusals.take(true).is_empty() && refusals.admit(&refusal("eve", "unknown-prompt")));
    }

    // req: S-79
    #[test]
    fn many_callers_are_bounded_and_counted() {
        let refusals = Refusals::default();
        let mut in_full = 0;
        for number in 0..20_000 {
            let caller = refusal(&format!("caller {}", number % 1_500), "too-many-requests");
            in_full += u64::from(refusals.admit(&caller));
            assert!(refusals.state().counts.len() <= MAX_COUNTS);
        }
        let counted: u64 = refusals.take(true).iter().filter_map(|record| record["count"].as_u64()).sum();
        assert_eq!(in_full + counted, 20_000);
    }
}
