//! Guarded rollouts.

use std::time::Duration;

use promptshelf_store::{
    ChannelName, GroupCounts, RolloutChangeKind, RolloutCounts, RolloutPlan, RolloutReport, Store, StoreError,
};

use crate::sample::{actor, channel, publish};

fn counts(stable: u64, candidate: u64, errors: u64) -> RolloutCounts {
    let mut groups = [GroupCounts::default(), GroupCounts::default()];
    (groups[0].calls, groups[1].calls, groups[1].errors) = (stable, candidate, errors);
    RolloutCounts::new(groups[0], groups[1])
}

pub(crate) async fn replicas_agree_on_a_rollout_and_a_stop(store: Store) {
    let (production, next) = (ChannelName::production(), channel("next"));
    let mut plan = RolloutPlan::new(10);
    plan.errors = Some(2.0);
    let missing = store.begin_rollout(&production, &next, &plan).await.unwrap_err();
    assert!(matches!(missing, StoreError::NotFound { .. }), "{missing}");
    publish(&store, "production", 0, &[("a.md", "", "one")]).await.unwrap();
    publish(&store, "next", 0, &[("a.md", "", "two")]).await.unwrap();
    let same = store.begin_rollout(&production, &production, &plan).await.unwrap_err();
    assert!(matches!(same, StoreError::InvalidInput { .. }), "{same}");
    assert_eq!(store.advance_rollout(&production, &next, &plan, counts(1, 1, 0)).await.unwrap(), None);
    // Replicas start at the same time.
    let replicas = (0..8).map(|_| {
        let (store, production, next) = (store.clone(), production.clone(), next.clone());
        tokio::spawn(async move {
            store.begin_rollout(&production, &next, &plan).await?;
            store.advance_rollout(&production, &next, &plan, counts(90, 10, 0)).await
        })
    });
    for replica in replicas.collect::<Vec<_>>() {
        assert_eq!(replica.await.unwrap().unwrap().unwrap().percent, 10);
    }
    let state = store.rollouts().await.unwrap().pop().unwrap();
    assert_eq!(state.counts, counts(720, 80, 0), "no count is lost");
    let above = store.set_rollout(&production, None, 101, "", None, &actor("Ada")).await.unwrap_err();
    assert!(matches!(above, StoreError::InvalidInput { .. }), "{above}");
    let state = store.set_rollout(&production, None, 25, "more", None, &actor("Ada")).await.unwrap();
    assert_eq!((state.percent, state.changed_by.as_str()), (25, "Ada"));
    let state = store.advance_rollout(&production, &next, &plan, counts(90, 30, 30)).await.unwrap().unwrap();
    assert!(state.is_stopped && state.percent == 0, "{state:?}");
    let begun = store.begin_rollout(&production, &next, &plan).await.unwrap();
    assert_eq!((begun.percent, begun.is_stopped), (0, true), "a restart does not start it again");
    assert_eq!((begun.changed_at, begun.reason), (state.changed_at, state.reason));
    let state = store.set_rollout(&production, Some(&next), 50, "again", None, &actor("Ada")).await.unwrap();
    assert_eq!((state.percent, state.is_stopped), (50, false));
    let state = store.stop_rollout(&production, None, "a complaint", &actor("Bob")).await.unwrap();
    assert_eq!((state.percent, state.is_stopped, state.reason.as_str()), (0, true, "a complaint"));
    let other = store.stop_rollout(&next, None, "none", &actor("Bob")).await.unwrap_err();
    assert!(matches!(other, StoreError::NotFound { .. }), "{other}");
}

/// The kind, the share, the author and whether a server made the change.
fn change(report: &RolloutReport, number: u64) -> (RolloutChangeKind, u8, &str, bool) {
    let found = report.history.iter().find(|change| change.number == number).expect("a change");
    (found.kind, found.percent, &found.changed_by, found.is_automatic)
}

pub(crate) async fn every_change_of_a_rollout_is_recorded_with_its_figures(store: Store) {
    let (production, next) = (ChannelName::production(), channel("next"));
    publish(&store, "production", 0, &[("a.md", "", "one")]).await.unwrap();
    publish(&store, "next", 0, &[("a.md", "", "two")]).await.unwrap();
    let mut plan = RolloutPlan::new(10);
    (plan.errors, plan.steps) = (Some(2.0), Some(Duration::ZERO));
    // Replicas start at the same time: one of them begins it.
    let replicas = (0..4).map(|_| {
        let (store, production, next) = (store.clone(), production.clone(), next.clone());
        tokio::spawn(async move { store.begin_rollout(&production, &next, &plan).await })
    });
    for replica in replicas.collect::<Vec<_>>() {
        replica.await.unwrap().unwrap();
    }
    let report = store.rollouts().await.unwrap().pop().unwrap();
    assert_eq!(report.history.len(), 1, "{report:?}");
    let next_step = report.next.unwrap();
    assert_eq!((next_step.percent, next_step.missing_calls), (20, 20));
    store.advance_rollout(&production, &next, &plan, counts(180, 20, 0)).await.unwrap();
    // A person with the name of the server is not the server.
    let seen = store.rollouts().await.unwrap().pop().unwrap().changed_at;
    let set = store.set_rollout(&production, None, 50, "faster", Some(seen), &actor("promptshelf")).await.unwrap();
    assert_eq!((set.history[0].counts, set.counts), (counts(180, 20, 0), counts(0, 0, 0)));
    store.advance_rollout(&production, &next, &plan, counts(90, 30, 30)).await.unwrap();
    // A page that still shows the share from before does not continue it.
    let late = store.set_rollout(&production, None, 60, "", Some(set.changed_at), &actor("Ada")).await.unwrap_err();
    assert!(matches!(late, StoreError::Changed { .. }), "{late}");
    let report = store.rollouts().await.unwrap().pop().unwrap();
    assert!(report.is_stopped && report.next.is_none() && report.plan == Some(plan), "{report:?}");
    assert_eq!(report.history.iter().map(|change| change.number).collect::<Vec<_>>(), [4, 3, 2, 1]);
    assert_eq!(change(&report, 1), (RolloutChangeKind::Begin, 10, "promptshelf", true));
    assert_eq!(change(&report, 2), (RolloutChangeKind::Step, 20, "promptshelf", true));
    assert_eq!(change(&report, 3), (RolloutChangeKind::Set, 50, "promptshelf", false));
    assert_eq!(change(&report, 4), (RolloutChangeKind::Stop, 0, "promptshelf", true));
    assert_eq!((report.history[0].counts, report.history[0].revision), (counts(90, 30, 30), 1));
    assert_eq!(report.history[0].reason, "errors: 30 of 30 with the new version, 0 of 90 without");
}
