//! Figures about the use of prompts.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use promptshelf_core::usage::{FormCounts, UsageFigures, UsageKey};
use promptshelf_store::{Store, UsageQuery};

const HOUR: i64 = 60 * 60;
const DAY: i64 = 24 * HOUR;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

/// The figures of calls of a prompt by these callers; each left out the argument `x`.
fn calls(prompt: &str, callers: std::ops::Range<u64>) -> BTreeMap<UsageKey, UsageFigures> {
    let key = UsageKey {
        channel: "production".to_owned(),
        prompt: prompt.to_owned(),
        version: 3,
        client: "editor".to_owned(),
        client_version: "1.0".to_owned(),
        protocol: "2026-07-28".to_owned(),
        method: "prompts/get".to_owned(),
        outcome: "ok".to_owned(),
    };
    let mut figures = UsageFigures { count: callers.end - callers.start, ..UsageFigures::default() };
    figures.left_out.insert("x".to_owned(), figures.count);
    figures.taken.insert("y".to_owned(), figures.count);
    figures.bytes_out = 100 * figures.count;
    figures.forms = FormCounts { accepted: figures.count, declined: 2 * figures.count, cancelled: 1 };
    for caller in callers {
        figures.callers.add(caller);
        figures.latencies.add(Duration::from_millis(2));
    }
    [(key, figures)].into()
}

async fn all(store: &Store, since: Option<Timestamp>) -> BTreeMap<String, (u64, u64)> {
    let figures = store.usage(&UsageQuery { since, prompt: None }).await.unwrap();
    figures.into_iter().map(|(key, figures)| (key.prompt, (figures.count, figures.callers.count()))).collect()
}

pub(crate) async fn figures_of_batches_are_merged_and_each_batch_counts_once(store: Store) {
    let key = store.usage_key().await.unwrap();
    assert_eq!(store.usage_key().await.unwrap(), key, "it is that of the store");
    let now = at(400 * DAY + 90);
    store.add_usage("a", now, &calls("hello", 0..3)).await.unwrap();
    // The answer to the first commit may have been lost.
    store.add_usage("a", now, &calls("hello", 0..3)).await.unwrap();
    store.add_usage("b", at(400 * DAY + HOUR - 1), &calls("hello", 2..6)).await.unwrap();
    store.add_usage("c", at(400 * DAY + HOUR), &calls("bye", 0..1)).await.unwrap();
    let expected = [("bye".to_owned(), (1, 1)), ("hello".to_owned(), (7, 6))];
    assert_eq!(all(&store, None).await, expected.clone().into());
    assert_eq!(all(&store, Some(at(400 * DAY + HOUR))).await, expected[..1].iter().cloned().collect());
    let hello = UsageQuery { since: None, prompt: Some("hello".to_owned()) };
    let (key, figures) = store.usage(&hello).await.unwrap().pop_first().unwrap();
    assert_eq!((key.version, key.client.as_str(), figures.left_out["x"]), (3, "editor", 7));
    assert_eq!((figures.taken["y"], figures.bytes_out), (7, 700));
    assert_eq!(figures.forms, FormCounts { accepted: 7, declined: 14, cancelled: 2 });
    let median = figures.latencies.quantile(0.5).unwrap().as_micros();
    assert!((1_740..2_260).contains(&median), "{median}");
    // Several servers write at the same time.
    let writers = (0..8).map(|number| {
        let store = store.clone();
        tokio::spawn(async move { store.add_usage(&format!("w{number}"), now, &calls("hello", 0..1)).await })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap().unwrap();
    }
    assert_eq!(all(&store, None).await["hello"], (15, 6));
}

pub(crate) async fn old_hours_become_days_and_older_ones_are_removed(store: Store) {
    for hour in 0..50 {
        let id = format!("hour {hour}");
        store.add_usage(&id, at(100 * DAY + hour * HOUR), &calls("hello", 0..2)).await.unwrap();
    }
    let before = all(&store, None).await;
    let keep = Duration::from_secs(30 * 24 * 60 * 60);
    // A week after the second day, so that two days are merged, and the hours of the third one stay.
    for _ in 0..2 {
        store.roll_up_usage(at(109 * DAY + HOUR), keep).await.unwrap();
        assert_eq!(all(&store, None).await, before, "nothing is lost");
    }
    let since = all(&store, Some(at(101 * DAY + 5 * HOUR))).await;
    assert_eq!(since["hello"].0, 2 * (24 + 2), "the second day counts as a whole");
    store.roll_up_usage(at(131 * DAY + HOUR), keep).await.unwrap();
    assert_eq!(all(&store, None).await["hello"].0, 2 * (24 + 2), "the first day is too old");
    store.roll_up_usage(at(200 * DAY), keep).await.unwrap();
    assert!(all(&store, None).await.is_empty());
}
