//! One channel: changes arrive, restarts, outages, damaged contents.

use std::{fs, process::Stdio};

use promptshelf::mcp::Revision;
use promptshelf_store::StoreError;
use promptshelf_testkit::{client::Client, folder::Folder, http::HttpWire, pipe::Pipe, receiver::Receiver};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    Author, get, got, logged, modern, prompt, promptshelf, replica, serve, signal, sqlite, until, until_readiness,
    until_served,
};
use crate::program::{Server, ended, shown};

const PROMPTS: &str = "notifications/prompts/list_changed";

#[tokio::test(flavor = "multi_thread")]
async fn publish_notifies_clients_of_every_replica_and_transport() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    let author = Author::at(&store).await;
    author.publish([("hello.md", Some(prompt("one")))]).await;
    let revision = Revision::V2026_07_28.as_str();
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut command = tokio::process::Command::from(serve(&store, &[]));
        command.kill_on_drop(true);
        clients.push(Client::over_http(HttpWire::program(command).await, revision).await);
    }
    let mut command = tokio::process::Command::from(promptshelf());
    // The store can come from the environment, where other users of the machine do not see its password.
    command.args(["serve", "--stdio"]).env("PROMPTSHELF_STORE", &store).kill_on_drop(true);
    clients.push(Client::over_pipe(Pipe::program(command), revision).await);
    for client in &mut clients {
        assert_eq!(client.text("hello", &json!({})).await.trim_end(), "one");
        client.listen(json!({ "promptsListChanged": true })).await;
    }
    author.publish([("hello.md", Some(prompt("two"))), ("bye.md", Some(prompt("three")))]).await;
    for client in &mut clients {
        assert_eq!(client.receive().await["method"], PROMPTS);
        assert_eq!(client.text("hello", &json!({})).await.trim_end(), "two");
        assert_eq!(client.text("bye", &json!({})).await.trim_end(), "three");
    }
    for client in clients {
        client.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_replica_returns_with_the_newest_revision() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    let author = Author::at(&store).await;
    author.publish([("hello.md", Some(prompt("one")))]).await;
    let mut server = replica(&store, &[]);
    assert_eq!(got(&server, "hello").as_deref(), Some("one"));
    server.child.kill().expect("a running process");
    ended(&mut server.child);
    author.publish([("hello.md", Some(prompt("two")))]).await;
    assert_eq!(got(&replica(&store, &[]), "hello").as_deref(), Some("two"));
}

/// Waits until the copy on disk has a revision.
fn until_cached(folder: &Folder, revision: u64) {
    let manifest = folder.path().join("cache/channel-production");
    let has_it = format!("\"revision\":{revision}");
    until("the copy on disk", || fs::read_to_string(&manifest).ok()?.contains(&has_it).then_some(()));
}

// req: S-98
#[tokio::test(flavor = "multi_thread")]
async fn restart_serves_from_the_cache_while_the_database_is_away() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    let cache = folder.path().join("cache").display().to_string();
    let author = Author::at(&store).await;
    author.publish([("hello.md", Some(prompt("one"))), ("_part.md", Some("A part.\n".to_owned()))]).await;
    let server = replica(&store, &["--cache", &cache]);
    author.publish([("hello.md", Some(prompt("two")))]).await;
    until_served(&server, "hello", "two");
    until_cached(&folder, 2);
    drop(server);

    let database = folder.path().join("team.db");
    let away = folder.path().join("away.db");
    fs::rename(&database, &away).expect("a file");
    let output = shown(serve(&store, &[]), "");
    assert!(output.starts_with("exit code: 15\n") && output.contains("team.db"), "{output}");
    let server = replica(&store, &["--cache", &cache]);
    assert_eq!(got(&server, "hello").as_deref(), Some("two"));
    let readiness = until_readiness(&server, "degraded since 20");
    assert!(readiness.contains("\nchannel production: revision 2, digest "), "{readiness}");

    fs::rename(&away, &database).expect("a file");
    until_readiness(&server, "ready\nchannel production: revision 2, digest ");
    author.publish([("hello.md", Some(prompt("three")))]).await;
    until_served(&server, "hello", "three");
}

/// The provenance of a prompt in a list: version, channel, revision and digest.
fn provenance(server: &Server, name: &str) -> Value {
    let list = modern(&server.url, "prompts/list", json!({}));
    let prompts = list["result"]["prompts"].as_array().unwrap_or_else(|| panic!("{list}"));
    let prompt = prompts.iter().find(|prompt| prompt["name"] == name).expect("the prompt");
    let member = |key: &str| prompt["_meta"][format!("dev.promptshelf/{key}")].clone();
    json!([member("version"), member("channel"), member("revision"), member("digest")])
}

#[tokio::test(flavor = "multi_thread")]
async fn provenance_of_each_prompt_is_that_of_the_store_also_from_the_cache() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    let cache = folder.path().join("cache").display().to_string();
    let author = Author::at(&store).await.checked();
    author.publish([("hello.md", Some(prompt("one"))), ("bye.md", Some(prompt("bye")))]).await;
    let server = replica(&store, &["--cache", &cache]);
    author.publish([("hello.md", Some(prompt("two")))]).await;
    until_served(&server, "hello", "two");
    let served = author.store.served(author.channel(), 2).await.expect("versions");
    let digest = |name: &str| served.iter().find(|served| served.name == name).expect("a version").digest.to_string();
    let expected =
        [("hello", json!([2, "production", 2, digest("hello")])), ("bye", json!([1, "production", 2, digest("bye")]))];
    for (name, expected) in &expected {
        assert_eq!(provenance(&server, name), *expected);
    }
    until_cached(&folder, 2);
    drop(server);
    fs::rename(folder.path().join("team.db"), folder.path().join("away.db")).expect("a file");
    let server = replica(&store, &["--cache", &cache]);
    for (name, expected) in &expected {
        assert_eq!(provenance(&server, name), *expected);
    }
}

// req: S-97
#[tokio::test(flavor = "multi_thread")]
async fn damaged_cache_is_not_served() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    let cache = folder.path().join("cache").display().to_string();
    Author::at(&store).await.publish([("hello.md", Some(prompt("one")))]).await;
    let server = replica(&store, &["--cache", &cache]);
    until_cached(&folder, 1);
    drop(server);
    for blob in fs::read_dir(folder.path().join("cache/blobs")).expect("a folder") {
        fs::write(blob.expect("an entry").path(), prompt("evil")).expect("a file");
    }
    // The database has the right content.
    let server = replica(&store, &["--cache", &cache]);
    assert_eq!(got(&server, "hello").as_deref(), Some("one"));
    let blobs = folder.path().join("cache/blobs");
    until("a new content", || (fs::read_dir(&blobs).expect("a folder").count() > 0).then_some(()));
    drop(server);
    for blob in fs::read_dir(folder.path().join("cache/blobs")).expect("a folder") {
        fs::write(blob.expect("an entry").path(), prompt("evil")).expect("a file");
    }
    fs::remove_file(folder.path().join("team.db")).expect("a file");
    let output = shown(serve(&store, &["--cache", &cache]), "");
    assert!(output.starts_with("exit code: 15\n") && output.contains("is corrupt"), "{output}");
}

// req: S-98
#[test]
fn unreachable_store_ends_the_start_without_its_password() {
    let mut command = serve("postgres://ada:s3cret@127.0.0.1:1/team", &[]);
    command.env("PROMPTSHELF_LOG", "trace").stdin(Stdio::null());
    let output = shown(command, "");
    assert!(output.starts_with("exit code: 15\n"), "{output}");
    assert!(output.contains("cannot be reached") && !output.contains("s3cret"), "{output}");
}

#[test]
fn unusable_addresses_are_reported() {
    for (address, code, words) in [
        ("sqlite:", 2, "expected `sqlite:PATH`"),
        ("sqlite:team.db#Production", 2, "is not the name of a channel"),
        ("sqlite:team.db#production@7", 2, "follows the newest revision"),
    ] {
        let output = shown(serve(address, &[]), "");
        assert!(output.starts_with(&format!("exit code: {code}\n")) && output.contains(words), "{output}");
    }
    let output = shown(serve("sqlite:missing/team.db", &[]), "");
    assert!(output.starts_with("exit code: 15\n") && output.contains("promptshelf init"), "{output}");
    let output = shown(serve(".", &["--channel", "staging"]), "");
    assert!(output.starts_with("exit code: 2\n") && output.contains("--channel needs a store"), "{output}");
}

/// A backup that is moved to the place of the store: the replica has the old file open, and its log beside the new one.
// req: S-98
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn replaced_sqlite_file_is_noticed() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    let backup = folder.path().join("backup.db");
    let author = Author::at(&store).await;
    author.publish([("hello.md", Some(prompt("one")))]).await;
    author.store.close().await;
    fs::copy(folder.path().join("team.db"), &backup).expect("a copy");
    let author = Author::at(&store).await;
    author.publish([("hello.md", Some(prompt("lost"))), ("lost.md", Some(prompt("lost")))]).await;
    let servers = [(); 2].map(|()| replica(&store, &[]));
    servers.iter().for_each(|server| until_served(server, "lost", "lost"));
    // Not closed: its log stays beside the file.
    drop(author);

    fs::rename(&backup, folder.path().join("team.db")).expect("a file");
    for server in &servers {
        until_served(server, "hello", "one");
        assert_eq!(got(server, "lost"), None);
        until_readiness(server, "ready\nchannel production: revision 1,");
        assert!(logged(server).iter().any(|line| line.contains("was replaced while")));
    }
    let author = Author::at(&store).await;
    author.publish([("hello.md", Some(prompt("two")))]).await;
    servers.iter().for_each(|server| until_served(server, "hello", "two"));
    author.store.close().await;
    // A removed file is reported, and the last good revision stays.
    fs::rename(folder.path().join("team.db"), &backup).expect("a file");
    for server in &servers {
        until_readiness(server, "degraded");
        assert_eq!(got(server, "hello").as_deref(), Some("two"));
    }
    fs::rename(&backup, folder.path().join("team.db")).expect("a file");
    servers.iter().for_each(|server| drop(until_readiness(server, "ready")));
    let mut found = sqlx::SqlitePool::connect(&store).await.expect("a database").acquire().await.expect("a connection");
    let check: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut *found).await.expect("a row");
    assert_eq!(check, "ok");
}

/// Restores a backup over a store.
#[derive(Clone, Copy, Debug)]
enum Restore {
    Moved,
    Copied,
}

/// One replica is frozen, one runs, and one is down while the store goes back and gets another revision with the same
/// number; then they go on. `more` revisions come after it.
async fn replicas_agree_after_a_restore(restore: Restore, more: usize) {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    let (database, backup) = (folder.path().join("team.db"), folder.path().join("backup.db"));
    let published = async |files: &[(&str, &str)]| {
        let author = Author::at(&store).await;
        author.publish(files.iter().map(|(path, text)| (*path, Some(prompt(text))))).await;
        let digest = author.store.head(author.channel()).await.expect("the channel").digest.expect("a digest");
        author.store.close().await;
        digest.short()
    };
    published(&[("one.md", "1"), ("two.md", "1")]).await;
    published(&[("one.md", "2")]).await;
    fs::copy(&database, &backup).expect("a copy");
    published(&[("one.md", "LOST"), ("two.md", "LOST")]).await;
    let caches = ["frozen", "down"].map(|name| folder.path().join(name).display().to_string());
    let frozen = replica(&store, &["--cache", &caches[0]]);
    let running = replica(&store, &[]);
    let down = replica(&store, &["--cache", &caches[1]]);
    for (server, cache) in [(&frozen, "frozen"), (&down, "down")] {
        until_served(server, "two", "LOST");
        let manifest = folder.path().join(cache).join("channel-production");
        until("the copy on disk", || fs::read_to_string(&manifest).ok()?.contains("\"revision\":3").then_some(()));
    }
    until_served(&running, "two", "LOST");
    drop(down);
    signal(&frozen.child, Signal::STOP);
    match restore {
        Restore::Moved => fs::rename(&backup, &database).expect("a file"),
        Restore::Copied => _ = fs::copy(&backup, &database).expect("a file"),
    }
    let mut newest = published(&[("one.md", "3")]).await;
    for number in 0..more {
        newest = published(&[("three.md", &number.to_string())]).await;
    }
    signal(&frozen.child, Signal::CONT);
    let returned = replica(&store, &["--cache", &caches[1]]);
    let head = format!("ready\nchannel production: revision {}, digest {newest},", 3 + more);
    for server in [&frozen, &running, &returned] {
        until_readiness(server, &head);
        assert_eq!(
            (got(server, "one").as_deref(), got(server, "two").as_deref()),
            (Some("3"), Some("1")),
            "{restore:?}"
        );
    }
    // What comes later is built on the right files.
    published(&[("four.md", "4")]).await;
    for server in [&frozen, &running, &returned] {
        until_served(server, "four", "4");
        assert_eq!(got(server, "two").as_deref(), Some("1"), "{restore:?}");
    }
}

// req: S-307
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn frozen_replica_agrees_after_a_moved_backup() {
    for more in [0, 2] {
        replicas_agree_after_a_restore(Restore::Moved, more).await;
    }
}

// req: S-307
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn frozen_replica_agrees_after_a_copied_backup() {
    for more in [0, 2] {
        replicas_agree_after_a_restore(Restore::Copied, more).await;
    }
}

/// Replaces the content of a file's newest version in the database, and returns what it was.
async fn replace_blob(folder: &Folder, path: &str, bytes: Vec<u8>) -> Vec<u8> {
    let database = format!("sqlite:{}", folder.path().join("team.db").display());
    let pool = sqlx::SqlitePool::connect(&database).await.expect("a database");
    let of_path = "digest = (SELECT digest FROM ps_entry WHERE path = $1 AND until IS NULL)";
    let select = sqlx::AssertSqlSafe(format!("SELECT bytes FROM ps_blob WHERE {of_path}"));
    let before: (Vec<u8>,) = sqlx::query_as(select).bind(path).fetch_one(&pool).await.expect("a content");
    let update = sqlx::AssertSqlSafe(format!("UPDATE ps_blob SET bytes = $2 WHERE {of_path}"));
    let done = sqlx::query(update).bind(path).bind(bytes).execute(&pool).await.expect("a change");
    assert_eq!(done.rows_affected(), 1);
    pool.close().await;
    before.0
}

// req: S-97
#[tokio::test(flavor = "multi_thread")]
async fn corrupt_content_is_refused_and_the_last_good_revision_stays() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    let author = Author::at(&store).await;
    author.publish([("hello.md", Some(prompt("one")))]).await;
    let server = replica(&store, &[]);
    until_readiness(&server, "ready\nchannel production: revision 1,");
    // The replica must not read the revision before its content is damaged.
    let two = [("hello.md", "two"), ("bye.md", "bye")].map(|(path, words)| (path.to_owned(), Some(prompt(words))));
    loop {
        signal(&server.child, Signal::STOP);
        match author.try_publish(two.to_vec()).await {
            Ok(_) => break,
            // It was stopped while it wrote usage metrics.
            Err(StoreError::Unreachable { .. }) => signal(&server.child, Signal::CONT),
            Err(error) => panic!("{error}"),
        }
    }
    let good = replace_blob(&folder, "hello.md", prompt("evil").into_bytes()).await;
    signal(&server.child, Signal::CONT);

    let mut verify = promptshelf();
    verify.args(["store", "verify", "--store", &store]);
    let verified = shown(verify, "");
    assert!(verified.starts_with("exit code: 1\n"), "{verified}");
    assert!(verified.contains("production: revision 2 does not fit: the content of hello.md"), "{verified}");
    let readiness = until_readiness(&server, "degraded since 20");
    assert!(readiness.contains("channel production: revision 1,"), "{readiness}");
    assert_eq!(got(&server, "hello").as_deref(), Some("one"));
    assert_eq!(got(&server, "bye"), None, "no part of the revision is served");
    replace_blob(&folder, "hello.md", good).await;
    until_readiness(&server, "ready\nchannel production: revision 2,");
    assert_eq!(got(&server, "hello").as_deref(), Some("two"));
    let lines = logged(&server);
    let errors = lines.iter().filter(|line| line.contains("cannot be read, so revision 1 stays in use"));
    assert_eq!(errors.count(), 1, "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn revision_that_cannot_be_loaded_is_not_served_in_part() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    let author = Author::at(&store).await;
    author.publish([("hello.md", Some(prompt("one")))]).await;
    let receiver = Receiver::start([]);
    let settings = format!(
        "[[webhook]]\nurl = \"{}\"\nevents = [\"broken\"]\nallow-private = true\nsecret = {{ file = \"hook.secret\" }}\n",
        receiver.url()
    );
    folder.write("server.toml", &settings);
    folder.write("hook.secret", "5d41402abc4b2a76b9719d911017c592\n");
    let config = folder.path().join("server.toml");
    let server = replica(&store, &["--config", config.to_str().expect("a path")]);
    let broken = Some("[limits]\nfiles = \"many\"\n".to_owned());
    author.publish([("promptshelf.toml", broken), ("hello.md", Some(prompt("two")))]).await;
    until_readiness(&server, "degraded since 20");
    assert_eq!(got(&server, "hello").as_deref(), Some("one"));
    let event: Value = serde_json::from_str(&receiver.wait_for(1)[0].body).expect("JSON");
    assert_eq!((&event["event"], &event["revision"]), (&json!("broken"), &json!(2)), "{event}");
    assert!(event["findings"][0].as_str().is_some_and(|found| found.contains("cannot load")), "{event}");
    // Another cause of a reload still finds the good revision.
    signal(&server.child, Signal::HUP);
    until("the reload", || server.log.try_iter().any(|line| line.contains("settings reloaded")).then_some(()));
    assert_eq!(got(&server, "hello").as_deref(), Some("one"));
    author.publish([("promptshelf.toml", None), ("hello.md", Some(prompt("three")))]).await;
    until_readiness(&server, "ready\nchannel production: revision 3,");
    assert_eq!(got(&server, "hello").as_deref(), Some("three"));
    assert_eq!(get(&server, "/healthz").0, 200);
    assert_eq!(receiver.received().len(), 1, "a broken revision is announced once");
}
