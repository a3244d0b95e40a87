//! The same API on PostgreSQL.

use std::time::{Duration, Instant};

use promptshelf_store::{Store, StoreUrl};
use promptshelf_testkit::database::Postgres;
use tempfile::TempDir;

use super::{BYE, HELLO, Server, conditions, policy_of, proposal, refused, sign_in};
use crate::TIMEOUT;

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_compares_versions_and_its_crash_loses_nothing() {
    let postgres = tokio::task::spawn_blocking(Postgres::start).await.expect("PostgreSQL starts");
    let url: StoreUrl = postgres.database().parse().expect("a URL");
    Store::create(&url).await.expect("a store");
    let folder = TempDir::new().expect("a folder");
    let server = Server::on(url, folder, |builder| builder, |options| options.sign_in = Some(sign_in())).await;
    server.prepare(&policy_of(1)).await;
    conditions::change_at_the_same_time(&server).await;

    postgres.kill();
    let body = proposal(1, &[("hello.md", Some(HELLO), Some(BYE))]);
    let refusal = server.post("paul", "/channels/production/proposals", &body).await;
    assert_eq!(refusal.problem(), refused(503, "store-unreachable"));
    assert_eq!(server.get("paul", "/channels").await.problem(), refused(503, "store-unreachable"));
    tokio::task::block_in_place(|| postgres.restart());
    let started = Instant::now();
    while server.get("paul", "/channels").await.status != 200 {
        assert!(started.elapsed() < TIMEOUT, "the store is reached again");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(server.revision().await, 1);
    server.post("paul", "/channels/production/proposals", &body).await.expect(201);
}
