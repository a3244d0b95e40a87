//! The journey of the guide's page on teams on PostgreSQL.

use std::{fs, process::Stdio, thread, time::Duration};

use promptshelf_testkit::database::Postgres;
use sqlx::{Connection as _, PgConnection, postgres::PgConnectOptions};

use super::{HELLO, Team, bytes, evaluations::gate_journey, journey::whole_journey};
use crate::program::{PATIENCE, Server, ended};

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
async fn gate_holds_on_postgresql_as_on_sqlite() {
    gate_journey(&Team { store: Postgres::shared().database(), ..Team::without_store() });
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

// req: S-413, S-414
#[tokio::test(flavor = "multi_thread")]
async fn team_moves_to_postgresql_and_is_restored_while_it_is_served() {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.ok(&["promote", "--from", "production", "--to", "archive", "-m", "Copy"]);
    let moved = Team { store: Postgres::shared().database(), ..Team::without_store() };
    team.ok(&["store", "copy", "--to", &moved.store]);
    let history = team.json(&["history"]);
    assert_eq!(moved.json(&["history"]), history);
    assert!(team.fails("14", &["store", "copy", "--to", &moved.store]).contains("has data already"));
    let servers = [0, 1].map(|_| Server::start(moved.command(&["serve", &moved.store, "--http", "127.0.0.1:0"])));
    let served = |server: &Server| {
        let (_, answer) =
            server.request("prompts/get", &serde_json::json!({ "name": "hello", "arguments": { "name": "Ada" } }));
        answer["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_default().trim_end().to_owned()
    };
    let wrote = moved.ok(&["store", "backup", "team.backup"]);
    assert!(wrote.starts_with("wrote 1 content and ") && wrote.contains("production: revision 1 ("), "{wrote}");
    moved.write("prompts", &[("hello.md", &HELLO.replace("Say", "Shout"))]);
    moved.ok(&["publish", "prompts", "-m", "Louder", "--emergency", "a test", "--replace"]);
    for server in &servers {
        super::webhooks::until("the new text", || (served(server) == "Shout hello to Ada.").then_some(()));
    }
    let refused = moved.fails("14", &["store", "restore", "team.backup"]);
    assert!(refused.contains("the channels archive, production") && refused.contains("--replace"), "{refused}");
    moved.folder.write("half.backup", "SQLite format 3");
    assert!(moved.run(&["store", "restore", "half.backup", "--replace"]).stderr.contains("is not a whole backup"));
    let restored = moved.ok(&["store", "restore", "team.backup", "--replace"]);
    assert!(restored.contains("every replica reads everything again"), "{restored}");
    for server in &servers {
        super::webhooks::until("the text of the backup", || (served(server) == "Say hello to Ada.").then_some(()));
    }
    assert_eq!(moved.json(&["history"]), history);
    // The same file makes an SQLite store again.
    moved.ok(&["store", "restore", "team.backup", "--store", "sqlite:again.db"]);
    moved.ok(&["store", "verify", "--store", "sqlite:again.db"]);
    assert_eq!(moved.json(&["history", "--store", "sqlite:again.db"]), history);
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

/// An approval is two transactions: the review, and the publish. Between them nothing is lost.
// req: S-95
#[tokio::test(flavor = "multi_thread")]
async fn approval_of_a_killed_reviewer_counts() {
    let team = Team { store: Postgres::shared().database(), ..Team::without_store() };
    team.ok(&["init"]);
    team.policy(&["--approvals", "1", "--four-eyes", "on"]);
    team.write("prompts", &[("hello.md", HELLO)]);
    assert_eq!(team.json(&["publish", "prompts", "-m", "First", "--as", "ada"])["state"], "open");
    // The second transaction waits for the row of the channel.
    let mut holder = PgConnection::connect(&team.store).await.expect("a connection");
    sqlx::raw_sql("BEGIN; SELECT * FROM ps_channel FOR UPDATE").execute(&mut holder).await.expect("a lock");
    let words = team.approval(&["1", "--as", "bob"]);
    let mut command = team.command(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let mut reviewer = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    let deadline = std::time::Instant::now() + PATIENCE;
    while team.json(&["proposals", "1"])["proposal"]["reviews"].as_array().is_none_or(Vec::is_empty) {
        assert!(std::time::Instant::now() < deadline, "no review");
        thread::sleep(Duration::from_millis(20));
    }
    reviewer.kill().expect("a running process");
    ended(&mut reviewer);
    sqlx::raw_sql("ROLLBACK").execute(&mut holder).await.expect("the end of the lock");
    let proposal = team.json(&["proposals", "1"])["proposal"].clone();
    assert_eq!((&proposal["state"], &proposal["lacks"]), (&serde_json::json!("open"), &serde_json::json!([])));
    assert_eq!(team.revision("production"), 0);
    // The same approval again, or that of another reviewer, publishes.
    assert_eq!(team.approve(&["1", "--as", "bob"])["revision"], 1);
    assert_eq!(team.json(&["history"])["items"][0]["approvedBy"], serde_json::json!(["bob"]));
}

/// A certificate authority, and a server's certificate of it.
pub(super) struct Authority {
    pub(super) authority: String,
    pub(super) certificate: String,
    pub(super) key: String,
}

pub(super) fn authority() -> Authority {
    let key = || rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let issuer = rcgen::CertifiedIssuer::self_signed(params, key()).expect("an authority");
    let server = key();
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
    let certificate = params.signed_by(&server, &issuer).expect("a certificate");
    Authority { authority: issuer.pem(), certificate: certificate.pem(), key: server.serialize_pem() }
}

// req: S-94
#[tokio::test(flavor = "multi_thread")]
async fn database_is_verified_with_a_private_authority() {
    let database = Postgres::start();
    let known = authority();
    database.use_tls(&known.certificate, &known.key);
    let team = Team::without_store();
    fs::write(team.path("known.pem"), known.authority).expect("written");
    fs::write(team.path("other.pem"), authority().authority).expect("written");
    let url = database.database();
    let at = |host: &str, parameters: &str| {
        let url = url.replace("@127.0.0.1", &format!("@{host}"));
        format!("{url}?sslmode=verify-full{parameters}")
    };
    team.ok(&["init", &at("localhost", "&sslrootcert=known.pem")]);
    team.ok(&["history", "--store", &at("localhost", "&sslrootcert=known.pem")]);
    for (what, store) in [
        ("another authority", at("localhost", "&sslrootcert=other.pem")),
        ("the authorities of the system", at("localhost", "")),
        ("a name that the certificate does not have", at("127.0.0.1", "&sslrootcert=known.pem")),
    ] {
        let error = team.fails("15", &["history", "--store", &store]);
        assert!(error.contains("TLS") || error.contains("certificate"), "{what}: {error}");
    }
}
