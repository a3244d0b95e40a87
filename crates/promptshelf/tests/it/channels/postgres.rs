//! The journey of the guide's page on teams on PostgreSQL.

use std::time::Duration;

use promptshelf_testkit::database::Postgres;
use sqlx::{Connection as _, PgConnection, postgres::PgConnectOptions};

use super::{Team, bytes, journey::whole_journey};
use crate::program::Server;

#[tokio::test(flavor = "multi_thread")]
async fn team_works_on_postgresql_as_on_sqlite() {
    let team = Team { store: Postgres::shared().database(), ..Team::without_store() };
    team.fails("15", &["history"]);
    whole_journey(&team);
    // A served channel shows the newest revision.
    let server = Server::start(team.command(&["serve", &team.store, "--http", "127.0.0.1:0"]));
    let (status, answer) = server.request("prompts/list", &serde_json::json!({}));
    assert!(
        status == 200 && answer["result"]["prompts"].as_array().is_some_and(|prompts| prompts.len() > 10),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_postgresql_change_nothing_and_show_no_password() {
    let url = Postgres::shared().database();
    let name = url.rsplit('/').next().expect("a name");
    let mut admin = PgConnection::connect(&url).await.expect("a connection");
    for statement in [
        "CREATE ROLE guest LOGIN PASSWORD 's3cret'".to_owned(),
        format!("REVOKE ALL ON DATABASE {name} FROM PUBLIC"),
        format!("GRANT CONNECT ON DATABASE {name} TO guest"),
    ] {
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut admin).await.expect("a statement");
    }
    let team = Team { store: url.clone(), ..Team::without_store() };
    team.ok(&["init"]);
    let guest = url.replace("postgres@", "guest:s3cret@");
    let missing = guest.replace(&format!("/{name}"), "/nothing");
    for store in [&guest, &missing] {
        for words in [&["history"][..], &["policy", "--channel", "production", "--approvals", "9"]] {
            let ran = team.run(&[words, &["--store", store]].concat());
            assert_ne!(ran.code, "0", "{words:?}");
            assert!(ran.stderr.starts_with("error: ") && !ran.stderr.contains("s3cret"), "{}", ran.stderr);
        }
    }
    assert_eq!(team.json(&["policy", "--channel", "production"])["policy"]["approvals"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_of_the_publisher_leaves_a_whole_revision() {
    let team = Team { store: Postgres::shared().database(), ..Team::without_store() };
    team.ok(&["init"]);
    super::interrupted::write(&team, "prompts", 0);
    team.ok(&["publish", "prompts", "-m", "First"]);
    for (version, moment) in (1..).zip([0, 20, 60, 150].map(Duration::from_millis)) {
        super::interrupted::write(&team, "prompts", version);
        super::interrupted::killed(&team, &["publish", "prompts", "-m", "Next"], moment);
        let copy = format!("copy-{version}");
        team.ok(&["pull", &team.store, &copy]);
        let found = bytes(&team.path(&copy));
        assert!(found.len() == 200 && found.iter().all(|(_, text)| *text == found[0].1), "{moment:?}");
    }
    // No connection of a killed publisher keeps a lock.
    let options: PgConnectOptions = team.store.parse().expect("a URL");
    PgConnection::connect_with(&options).await.expect("a connection");
    team.ok(&["publish", "prompts", "-m", "Last"]);
}
