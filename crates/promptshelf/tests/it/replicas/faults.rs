//! Replicas on PostgreSQL: a killed, a stopped, an unreachable and a restored database, lost notifications, a pooler.

use promptshelf_testkit::{cuttable::CuttableProxy, in_time};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::{
    Author, crowd::crowd, get, got, logged, postgres::Postgres, prompt, replica, until, until_readiness, until_served,
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

async fn published(store: &str, text: &str) -> Author {
    let author = Author::at(store).await;
    author.publish([("hello.md", Some(prompt(text)))]).await;
    author
}

// req: S-98
#[tokio::test(flavor = "multi_thread")]
async fn killed_database_fails_no_request_and_its_return_is_noticed() {
    let mut database = Postgres::start().await;
    published(&database.url("team"), "one").await;
    let server = replica(&database.url("team"), &[]);
    database.kill();
    until_degraded_without_a_failure(&server, "one");
    database.restart().await;
    until_readiness(&server, "ready\nchannel production: revision 1,");
    published(&database.url("team"), "two").await;
    until_served(&server, "hello", "two");
    let lines = logged(&server);
    let outages = lines.iter().filter(|line| line.contains("cannot be read, so revision 1 stays in use"));
    assert_eq!(outages.count(), 1, "{lines:?}");
}

// req: S-98
#[tokio::test(flavor = "multi_thread")]
async fn stopped_database_delays_no_request() {
    let database = Postgres::start().await;
    published(&database.url("team"), "one").await;
    let server = replica(&database.url("team"), &[]);
    database.pause();
    until_degraded_without_a_failure(&server, "one");
    database.resume();
    until_readiness(&server, "ready\nchannel production: revision 1,");
    published(&database.url("team"), "two").await;
    until_served(&server, "hello", "two");
}

// req: S-98
#[tokio::test(flavor = "multi_thread")]
async fn silently_cut_connections_are_noticed_and_replaced() {
    let database = Postgres::start().await;
    let author = published(&database.url("team"), "one").await;
    let proxy = CuttableProxy::to(database.address());
    let server = replica(&database.url_at(proxy.address(), "team"), &[]);
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
    let database = Postgres::start().await;
    let author = published(&database.url("team"), "text 0").await;
    let server = replica(&database.url("team"), &[]);
    let mut admin = PgConnection::connect(&database.url("postgres")).await.expect("a connection");
    for count in 1..=3 {
        // Listeners wait in ClientRead after LISTEN; no other session of the replica is idle for long.
        let terminate = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity \
                         WHERE datname = 'team' AND query LIKE 'LISTEN%'";
        in_time("a listener", async {
            let mut ended = 0_i64;
            while ended == 0 {
                (ended,) = sqlx::query_as(terminate).fetch_one(&mut admin).await.expect("a count");
            }
        })
        .await;
        let text = format!("text {count}");
        author.publish([("hello.md", Some(prompt(&text)))]).await;
        until_served(&server, "hello", &text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pooler_without_notifications_is_enough() {
    let database = Postgres::start().await;
    drop(Author::at(&database.url("team")).await);
    let pooler = database.pooler().await;
    let store = database.url_at(pooler.address(), "team");
    let author = published(&store, "one").await;
    let server = replica(&store, &[]);
    for text in ["two", "three"] {
        author.publish([("hello.md", Some(prompt(text)))]).await;
        until_served(&server, "hello", text);
    }
}

/// Runs statements on a database without other sessions.
async fn alone(database: &Postgres, statements: &[&str]) {
    let mut admin = PgConnection::connect(&database.url("postgres")).await.expect("a connection");
    let refuse = "ALTER DATABASE team ALLOW_CONNECTIONS false";
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'team'";
    sqlx::query(refuse).execute(&mut admin).await.expect("a setting");
    for statement in statements {
        loop {
            sqlx::query(end).execute(&mut admin).await.expect("ended sessions");
            match sqlx::query(AssertSqlSafe((*statement).to_owned())).execute(&mut admin).await {
                Ok(_) => break,
                // A terminated session takes a moment to end.
                Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("55006") => {}
                Err(error) => panic!("{statement}: {error}"),
            }
        }
    }
}

// req: S-98
#[tokio::test(flavor = "multi_thread")]
async fn restored_backup_is_followed_although_its_revision_is_lower() {
    let database = Postgres::start().await;
    let store = database.url("team");
    published(&store, "one").await;
    published(&store, "two").await;
    alone(&database, &["CREATE DATABASE backup TEMPLATE team", "ALTER DATABASE team ALLOW_CONNECTIONS true"]).await;
    let author = published(&store, "lost").await;
    author.publish([("lost.md", Some(prompt("lost")))]).await;
    let replicas = [(); 2].map(|()| replica(&store, &[]));
    replicas.iter().for_each(|server| until_served(server, "lost", "lost"));
    let readiness = until_readiness(&replicas[0], "ready\nchannel production: revision 4,");
    let epoch = |readiness: &str| readiness.split_once("epoch ").expect("an epoch").1[..36].to_owned();
    let lost = epoch(&readiness);
    drop(author);

    alone(
        &database,
        &["DROP DATABASE team", "ALTER DATABASE backup RENAME TO team", "ALTER DATABASE team ALLOW_CONNECTIONS true"],
    )
    .await;
    for server in &replicas {
        until_served(server, "hello", "two");
        assert_eq!(got(server, "lost"), None);
        let readiness = until_readiness(server, "ready\nchannel production: revision 2,");
        assert_eq!(epoch(&readiness), lost, "a lower revision is noticed without a new epoch");
    }
    // With a new epoch, equal numbers of revisions are not taken for the same.
    let author = Author::at(&store).await;
    author.store.new_epoch().await.expect("a new epoch");
    author.publish([("hello.md", Some(prompt("three")))]).await;
    author.publish([("hello.md", Some(prompt("four")))]).await;
    for server in &replicas {
        until_served(server, "hello", "four");
        let readiness = until_readiness(server, "ready\nchannel production: revision 4,");
        assert_ne!(epoch(&readiness), lost);
    }
}

// req: S-98
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_publishers_and_eight_replicas_agree_on_postgresql() {
    let database = Postgres::start().await;
    crowd(&database.url("team")).await;
}
