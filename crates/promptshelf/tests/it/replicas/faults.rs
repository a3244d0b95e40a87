//! Replicas on PostgreSQL: a killed, a stopped, an unreachable and a restored database, lost notifications, a pooler.

use std::net::SocketAddr;

use promptshelf_testkit::{cuttable::CuttableProxy, database::Postgres};
use rustix::process::Signal;

use super::{
    Author, crowd::crowd, get, got, logged, pooler::Pooler, prompt, replica, signal, until, until_readiness,
    until_served,
};
use crate::program::Server;

/// Waits until the replica is degraded, while every request is answered.
fn until_degraded_without_a_failure(server: &Server, text: &str) {
    until("a degraded replica", || {
        assert_eq!(got(server, "hello").as_deref(), Some(text));
        get(server, "/readyz").1.starts_with("degraded since 20").then_some(())
    });
    for _ in 0..20 {
        assert_eq!(got(server, "hello").as_deref(), Some(text));
    }
}

/// The URL of a store through a proxy of its server.
fn through(store: &str, database: &Postgres, proxy: SocketAddr) -> String {
    let direct = format!("127.0.0.1:{}", database.port());
    assert!(store.contains(&direct), "{store}");
    // No side asks for TLS, which PgBouncer would have to be configured for.
    format!("{}?sslmode=disable", store.replace(&direct, &proxy.to_string()))
}

/// The name of the database of a store.
fn name(store: &str) -> &str {
    store.rsplit('/').next().expect("a name")
}

async fn published(store: &str, text: &str) -> Author {
    let author = Author::at(store).await;
    author.publish([("hello.md", Some(prompt(text)))]).await;
    author
}

// req: S-98
#[tokio::test(flavor = "multi_thread")]
async fn killed_database_fails_no_request_and_its_return_is_noticed() {
    let database = Postgres::start();
    let store = database.database();
    published(&store, "one").await;
    let server = replica(&store, &[]);
    database.kill();
    until_degraded_without_a_failure(&server, "one");
    database.restart();
    until_readiness(&server, "ready\nchannel production: revision 1,");
    published(&store, "two").await;
    until_served(&server, "hello", "two");
    let lines = logged(&server);
    let outages = lines.iter().filter(|line| line.contains("cannot be read, so revision 1 stays in use"));
    assert_eq!(outages.count(), 1, "{lines:?}");
}

// req: S-98
#[tokio::test(flavor = "multi_thread")]
async fn stopped_database_delays_no_request() {
    let database = Postgres::start();
    let store = database.database();
    published(&store, "one").await;
    let server = replica(&store, &[]);
    database.stop();
    until_degraded_without_a_failure(&server, "one");
    database.proceed();
    until_readiness(&server, "ready\nchannel production: revision 1,");
    published(&store, "two").await;
    until_served(&server, "hello", "two");
}

// req: S-98
#[tokio::test(flavor = "multi_thread")]
async fn silently_cut_connections_are_noticed_and_replaced() {
    let database = Postgres::shared();
    let store = database.database();
    let author = published(&store, "one").await;
    let proxy = CuttableProxy::to(([127, 0, 0, 1], database.port()).into());
    let server = replica(&through(&store, database, proxy.address()), &[]);
    until_readiness(&server, "ready\nchannel production: revision 1,");
    proxy.cut();
    author.publish([("hello.md", Some(prompt("two")))]).await;
    until_degraded_without_a_failure(&server, "one");
    proxy.heal();
    until_served(&server, "hello", "two");
    until_readiness(&server, "ready\nchannel production: revision 2,");
    // The listener is new as well: nothing waits for the old connections.
    author.publish([("hello.md", Some(prompt("three")))]).await;
    until_served(&server, "hello", "three");
}

// req: S-98
#[tokio::test(flavor = "multi_thread")]
async fn lost_notifications_are_made_up_for() {
    let database = Postgres::shared();
    let store = database.database();
    let author = published(&store, "text 0").await;
    let server = replica(&store, &[]);
    for count in 1..=3 {
        // The last statement of a listening session is LISTEN.
        let terminate = format!(
            "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{}' AND query LIKE 'LISTEN%'",
            name(&store)
        );
        until("a listener", || (database.sql("postgres", &terminate) != "0").then_some(()));
        let text = format!("text {count}");
        author.publish([("hello.md", Some(prompt(&text)))]).await;
        until_served(&server, "hello", &text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pooler_without_notifications_is_enough() {
    let database = Postgres::shared();
    let store = database.database();
    let pooler = Pooler::of(database);
    let store = through(&store, database, pooler.address());
    let author = published(&store, "one").await;
    let server = replica(&store, &[]);
    for text in ["two", "three"] {
        author.publish([("hello.md", Some(prompt(text)))]).await;
        until_served(&server, "hello", text);
    }
}

/// Ends all sessions of a database, and permits no new ones.
fn close(database: &Postgres, name: &str) {
    database.sql("postgres", &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"));
    let end = format!("SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{name}'");
    until("the end of all sessions", || (database.sql("postgres", &end) == "0").then_some(()));
}

fn open(database: &Postgres, name: &str) {
    database.sql("postgres", &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true"));
}

// req: S-98
#[tokio::test(flavor = "multi_thread")]
async fn restored_backup_is_followed_although_its_revision_is_lower() {
    let database = Postgres::shared();
    let store = database.database();
    let (team, backup) = (name(&store), format!("{}_backup", name(&store)));
    published(&store, "one").await;
    published(&store, "two").await;
    close(database, team);
    database.sql("postgres", &format!("CREATE DATABASE {backup} TEMPLATE {team}"));
    open(database, team);
    let author = published(&store, "lost").await;
    author.publish([("lost.md", Some(prompt("lost")))]).await;
    let replicas = [(); 2].map(|()| replica(&store, &[]));
    replicas.iter().for_each(|server| until_served(server, "lost", "lost"));
    let readiness = until_readiness(&replicas[0], "ready\nchannel production: revision 4,");
    let epoch = |readiness: &str| readiness.split_once("epoch ").expect("an epoch").1[..36].to_owned();
    let lost = epoch(&readiness);
    drop(author);

    close(database, team);
    database.sql("postgres", &format!("DROP DATABASE {team}"));
    database.sql("postgres", &format!("ALTER DATABASE {backup} RENAME TO {team}"));
    open(database, team);
    for server in &replicas {
        until_served(server, "hello", "two");
        assert_eq!(got(server, "lost"), None);
        let readiness = until_readiness(server, "ready\nchannel production: revision 2,");
        assert_eq!(epoch(&readiness), lost, "a lower revision is noticed without a new epoch");
    }
    // Equal numbers of revisions are not taken for the same.
    let author = Author::at(&store).await;
    author.publish([("hello.md", Some(prompt("three")))]).await;
    author.publish([("hello.md", Some(prompt("four")))]).await;
    for server in &replicas {
        until_served(server, "hello", "four");
        let readiness = until_readiness(server, "ready\nchannel production: revision 4,");
        assert_eq!(epoch(&readiness), lost, "nobody has to run a command");
    }
}

/// A frozen process does not see that its sessions end, and wakes up with a revision of the same number.
// req: S-307
#[tokio::test(flavor = "multi_thread")]
async fn frozen_replica_agrees_with_a_restored_database() {
    let database = Postgres::shared();
    let store = database.database();
    let (team, backup) = (name(&store), format!("{}_backup", name(&store)));
    let author = published(&store, "1").await;
    author.publish([("other.md", Some(prompt("1")))]).await;
    close(database, team);
    database.sql("postgres", &format!("CREATE DATABASE {backup} TEMPLATE {team}"));
    open(database, team);
    let author = published(&store, "LOST").await;
    author.publish([("other.md", Some(prompt("LOST")))]).await;
    drop(author);
    let replicas = [(); 2].map(|()| replica(&store, &[]));
    replicas.iter().for_each(|server| until_served(server, "other", "LOST"));
    signal(&replicas[0].child, Signal::STOP);
    close(database, team);
    database.sql("postgres", &format!("DROP DATABASE {team}"));
    database.sql("postgres", &format!("ALTER DATABASE {backup} RENAME TO {team}"));
    open(database, team);
    let author = published(&store, "3").await;
    author.publish([("new.md", Some(prompt("4")))]).await;
    signal(&replicas[0].child, Signal::CONT);
    let head = author.store.head(author.channel()).await.expect("the channel");
    let digest = head.digest.expect("a digest").short();
    for server in &replicas {
        until_readiness(server, &format!("ready\nchannel production: revision 4, digest {digest},"));
        assert_eq!((got(server, "hello").as_deref(), got(server, "other").as_deref()), (Some("3"), Some("1")));
    }
}

// req: S-98
#[tokio::test(flavor = "multi_thread")]
async fn promoted_standby_that_lacks_revisions_is_followed() {
    let mut database = Postgres::start();
    let store = database.database();
    published(&store, "one").await;
    published(&store, "two").await;
    let standby = database.standby();
    // It stops before the primary gets more revisions.
    standby.kill();
    let author = published(&store, "lost").await;
    author.publish([("lost.md", Some(prompt("lost")))]).await;
    let replicas = [(); 2].map(|()| replica(&store, &[]));
    replicas.iter().for_each(|server| until_served(server, "lost", "lost"));
    drop(author);
    database.kill();
    replicas.iter().for_each(|server| assert_eq!(got(server, "lost").as_deref(), Some("lost")));
    // The standby takes over the address of the primary.
    database = standby.promoted_at(database.port());
    for server in &replicas {
        until_served(server, "hello", "two");
        assert_eq!(got(server, "lost"), None);
        until_readiness(server, "ready\nchannel production: revision 2,");
    }
    let author = Author::at(&store).await;
    author.publish([("hello.md", Some(prompt("three")))]).await;
    replicas.iter().for_each(|server| until_served(server, "hello", "three"));
    drop(database);
}

#[tokio::test(flavor = "multi_thread")]
async fn notifications_can_be_switched_off() {
    let database = Postgres::shared();
    let store = database.database();
    let author = published(&store, "one").await;
    let server = replica(&format!("{store}?notifications=off"), &[]);
    for text in ["two", "three"] {
        author.publish([("hello.md", Some(prompt(text)))]).await;
        until_served(&server, "hello", text);
    }
    let listeners =
        format!("SELECT COUNT(*) FROM pg_stat_activity WHERE datname = '{}' AND query LIKE 'LISTEN%'", name(&store));
    assert_eq!(database.sql("postgres", &listeners), "0");
}

// req: S-98
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_publishers_and_eight_replicas_agree_on_postgresql() {
    crowd(&Postgres::shared().database()).await;
}
