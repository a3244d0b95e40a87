//! Bounds, outages and jumps of the clock.

use promptshelf_core::{CatalogHandle, Definitions, PromptDefinition, check};
use promptshelf_service::{Caller, Service};
use promptshelf_store::{Store, StoreUrl};
use promptshelf_wire::NameUse;

use super::*;

fn figures(keys: impl Iterator<Item = (String, String)>) -> BTreeMap<UsageKey, UsageFigures> {
    let figure = |(prompt, client)| {
        (UsageKey { prompt, client, ..UsageKey::default() }, UsageFigures { count: 1, ..UsageFigures::default() })
    };
    keys.map(figure).collect()
}

// req: S-186
#[test]
fn waiting_figures_and_names_of_clients_are_bounded() {
    let mut state = State::default();
    let clients = (0..2_000).map(|number| ("it".to_owned(), format!("client-{number:04}")));
    assert_eq!(state.collect(figures(clients), 0), 0);
    assert_eq!(state.waiting[&0].len(), MAX_CLIENTS + 1, "the rest is `other`");
    assert_eq!(state.calls(), 2_000);
    let prompts = (0..MAX_KEYS + 7).map(|number| (format!("prompt-{number}"), "other".to_owned()));
    let lost = state.collect(figures(prompts), 2 * HOUR);
    assert_eq!(lost as usize, MAX_CLIENTS + 1 + 7);
    assert_eq!(state.calls() + lost, 2_000 + MAX_KEYS as u64 + 7, "each call is counted or lost");
    let again = [("prompt-0".to_owned(), "other".to_owned())].into_iter();
    let other = figures(again);
    let known = state.waiting[&(2 * HOUR)].contains_key(other.keys().next().expect("one"));
    assert_eq!(state.collect(other, 2 * HOUR), u64::from(!known), "a known key needs no space");
}

#[test]
fn figures_in_memory_expire() {
    let mut state = State::default();
    for hour in 0..10 {
        state.collect(figures([("it".to_owned(), String::new())].into_iter()), hour * HOUR);
    }
    let now = Timestamp::from_second(10 * HOUR).expect("a time");
    state.expire(now, Duration::from_secs(3 * 60 * 60));
    assert_eq!(state.waiting.keys().copied().collect::<Vec<_>>(), [7 * HOUR, 8 * HOUR, 9 * HOUR]);
}

/// A log with a service that it counts; the store need not exist.
fn counting(store: Option<&StoreUrl>) -> (UsageLog, Service) {
    let prompts = (0..20).map(|number| PromptDefinition::template(format!("prompt-{number}"), "Say hello."));
    let catalog = check(Definitions { prompts: prompts.map(Into::into).collect(), ..Definitions::default() }, None);
    let usage = Usage::new();
    let retention = Duration::from_secs(30 * 24 * 60 * 60);
    let log = UsageLog::new(&usage, store.map(|url| StoreHandle::new(url.clone())), retention, 5);
    (log, Service::new(CatalogHandle::new(catalog.catalog)).with_usage(&usage, ""))
}

fn call(service: &Service, number: usize) {
    service.describe(&Caller::local(), &format!("prompt-{}", number % 20)).expect("it exists");
}

fn url(folder: &tempfile::TempDir) -> StoreUrl {
    format!("sqlite:{}", folder.path().join("team.db").display()).parse().expect("a URL")
}

async fn stored(store: &Store) -> u64 {
    let figures = store.usage(&UsageQuery::default()).await.expect("figures");
    figures.values().map(|figures| figures.count).sum()
}

// req: S-186
#[tokio::test]
async fn figures_of_an_hour_without_a_store_are_written_afterwards() {
    let folder = tempfile::tempdir().expect("a folder");
    let (log, service) = counting(Some(&url(&folder)));
    let start = Timestamp::from_second(1_800_000_000 + HOUR / 2).expect("a time");
    let at = |number: i64| start + jiff::SignedDuration::from_secs(10 * number);
    for number in 0..360 {
        call(&service, number);
        log.write(at(number as i64), WRITE_TIMEOUT).await.expect_err("the store is missing");
    }
    assert_eq!(log.loss(), UsageLoss { lost: 0, waiting: 360 });
    let hours: Vec<i64> = log.0.state.lock().await.waiting.keys().copied().collect();
    assert_eq!(hours, [1_800_000_000, 1_800_000_000 + HOUR], "at most 20 keys in each of two hours");
    let store = Store::create(&url(&folder)).await.expect("a store");
    log.write(at(360), WRITE_TIMEOUT).await.expect("written");
    assert_eq!((stored(&store).await, log.loss()), (360, UsageLoss { lost: 0, waiting: 0 }));
}

// req: S-186
#[tokio::test]
async fn figures_of_a_long_outage_are_bounded_and_the_rest_is_counted_as_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let (log, service) = counting(Some(&url(&folder)));
    // Almost as many keys as may wait, of an earlier hour.
    let keys = (0..MAX_KEYS - 5).map(|number| (format!("earlier-{number}"), String::new()));
    assert_eq!(log.0.state.lock().await.collect(figures(keys), 0), 0);
    let now = Timestamp::from_second(HOUR).expect("a time");
    for round in 1..=2 {
        (0..20).for_each(|number| call(&service, number));
        log.write(now, WRITE_TIMEOUT).await.expect_err("the store is missing");
        let (lost, waiting) = (15 * round, (MAX_KEYS - 5) as u64 + 5 * round);
        assert_eq!(log.loss(), UsageLoss { lost, waiting }, "five of the 20 prompts have space");
    }
}

// req: S-226
#[tokio::test]
async fn clock_that_jumps_removes_no_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::create(&url(&folder)).await.expect("a store");
    let (log, service) = counting(Some(&url(&folder)));
    let (in_memory, of_memory) = counting(None);
    // Over the roll-up to days, beyond the retention, to the start of Unix time, and back.
    let present = 1_800_000_000;
    let times = [0, 9 * DAY, 0, 400 * DAY, 400 * DAY + HOUR, 0, HOUR, -HOUR, -present, HOUR];
    for (number, jump) in times.into_iter().enumerate() {
        let now = Timestamp::from_second(present + jump).expect("a time");
        call(&service, number);
        call(&of_memory, number);
        log.write(now, WRITE_TIMEOUT).await.expect("written");
        in_memory.write(now, WRITE_TIMEOUT).await.expect("kept");
        assert_eq!(stored(&store).await, number as u64 + 1, "after {jump}");
        let kept = in_memory.0.state.lock().await.calls();
        assert_eq!(kept, number as u64 + 1, "after {jump}");
    }
    assert_eq!(log.loss(), UsageLoss { lost: 0, waiting: 0 });
}

#[tokio::test]
async fn first_call_after_the_start_counts_its_caller() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::create(&url(&folder)).await.expect("a store");
    let (log, service) = counting(Some(&url(&folder)));
    log.begin().await;
    call(&service, 1);
    log.write(Timestamp::now(), WRITE_TIMEOUT).await.expect("written");
    let figures = store.usage(&UsageQuery::default()).await.expect("figures");
    assert_eq!(figures.values().map(|figures| figures.callers.count()).collect::<Vec<_>>(), [1]);
}

#[test]
fn rows_of_channels_are_separate_and_former_names_are_marked() {
    let key = |channel: &str, prompt: &str, outcome: &str| UsageKey {
        channel: channel.to_owned(),
        prompt: prompt.to_owned(),
        version: 3,
        method: "prompts/get".to_owned(),
        outcome: outcome.to_owned(),
        ..UsageKey::default()
    };
    let one = || UsageFigures { count: 1, ..UsageFigures::default() };
    // Version 3 of one channel is another text than that of the other.
    let keys = [key("next", "hello", "failed"), key("production", "hello", "ok"), key("production", "greet", "ok")];
    let listed = BTreeMap::from([
        ("hello".to_owned(), NameUse::Prompt),
        ("greet".to_owned(), NameUse::AliasOf("hello".to_owned())),
        ("salute".to_owned(), NameUse::AliasOf("bye".to_owned())),
        ("bye".to_owned(), NameUse::Deprecated),
    ]);
    let report = report_of(None, &keys.into_iter().map(|key| (key, one())).collect(), false, 0).marked(&listed, None);
    let rows: Vec<_> = report
        .prompts
        .iter()
        .map(|row| (&*row.name, row.channel.as_deref(), &*row.outcome, row.deprecated, row.alias_of.as_deref()))
        .collect();
    assert!(rows.contains(&("hello", Some("next"), "failed", false, None)), "{rows:?}");
    assert!(rows.contains(&("hello", Some("production"), "ok", false, None)), "{rows:?}");
    assert!(rows.contains(&("greet", Some("production"), "ok", true, Some("hello"))), "{rows:?}");
    assert_eq!((rows.len(), report.unused), (3, vec!["bye".to_owned()]));
}
