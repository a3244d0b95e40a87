//! Guarded rollouts.

use promptshelf_store::{ChannelName, GroupCounts, RolloutCounts, RolloutPlan, Store, StoreError};

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
    assert_eq!(state.progress.counts, counts(720, 80, 0), "no count is lost");
    let above = store.set_rollout(&production, None, 101, &actor("Ada")).await.unwrap_err();
    assert!(matches!(above, StoreError::InvalidInput { .. }), "{above}");
    let state = store.set_rollout(&production, None, 25, &actor("Ada")).await.unwrap();
    assert_eq!((state.percent, state.changed_by.as_str()), (25, "Ada"));
    let state = store.advance_rollout(&production, &next, &plan, counts(90, 30, 30)).await.unwrap().unwrap();
    assert!(state.is_stopped && state.percent == 0, "{state:?}");
    let begun = store.begin_rollout(&production, &next, &plan).await.unwrap();
    assert_eq!((begun.percent, begun.is_stopped), (0, true), "a restart does not start it again");
    assert_eq!((begun.changed_at, begun.reason), (state.changed_at, state.reason));
    let state = store.set_rollout(&production, Some(&next), 50, &actor("Ada")).await.unwrap();
    assert_eq!((state.percent, state.is_stopped), (50, false));
    let state = store.stop_rollout(&production, None, "a complaint", &actor("Bob")).await.unwrap();
    assert_eq!((state.percent, state.is_stopped, state.reason.as_str()), (0, true, "a complaint"));
    let other = store.stop_rollout(&next, None, "none", &actor("Bob")).await.unwrap_err();
    assert!(matches!(other, StoreError::NotFound { .. }), "{other}");
}
