//! Rollouts that stay in a store without a server.

use promptshelf_store::{RolloutCounts, RolloutPlan, Store};
use promptshelf_testkit::database::Postgres;

use crate::{
    sample::{actor, channel, publish, tamper},
    sqlite,
};

#[tokio::test(flavor = "multi_thread")]
async fn rollout_that_no_server_applies_is_reported_on_sqlite() {
    let place = sqlite::store().await;
    unapplied_rollout(place.url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rollout_that_no_server_applies_is_reported_on_postgres() {
    unapplied_rollout(Postgres::shared().database()).await;
}

async fn unapplied_rollout(url: String) {
    let store = Store::create(&url.parse().unwrap()).await.unwrap();
    let (c, next) = (channel("c"), channel("next"));
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    publish(&store, "next", 0, &[("a.md", "", "B")]).await.unwrap();
    let plan = RolloutPlan::new(10);
    store.start_rollout(&c, &next, &plan, "", &actor("ada")).await.unwrap();
    let report = async || store.rollouts().await.unwrap().pop().unwrap();
    assert_eq!(report().await.unapplied_since, None);
    // As if the last server had ended 31 seconds ago.
    tamper(&url, "UPDATE ps_rollout SET applied_at = applied_at - 31000000").await;
    let found = report().await;
    assert!(found.unapplied_since.is_some_and(|since| since < found.changed_at), "{found:?}");
    store.advance_rollout(&c, &next, RolloutCounts::default()).await.unwrap();
    assert_eq!(report().await.unapplied_since, None);
    // The row is from before applying was recorded.
    tamper(&url, "UPDATE ps_rollout SET applied_at = NULL").await;
    assert_eq!(report().await.unapplied_since, None);
}
