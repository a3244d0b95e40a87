//! Invalid input, wrong addresses and damaged stores: a clear error, and everything stays as it was.

use std::fs;

use super::{BYE, HELLO, Team, bytes};

#[test]
fn missing_store_cannot_be_reached() {
    let team = Team::without_store();
    for words in [&["history"][..], &["proposals"], &["pull", "sqlite:team.db", "copy"], &["store", "gc"]] {
        let error = team.fails("15", words);
        assert!(error.contains("promptshelf init"), "{error}");
    }
    assert!(!team.path("team.db").exists() && !team.path("copy").exists());
    // A server that refuses connections: the port was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let url = format!("postgres://ada:s3cret@127.0.0.1:{port}/prompts");
    let error = team.fails("15", &["history", "--store", &url]);
    assert!(!error.contains("s3cret"), "{error}");
}

// req: S-94
#[test]
fn password_of_a_store_is_never_shown() {
    let team = Team::without_store();
    let url = "postgres://ada:s3cret@127.0.0.1:1/prompts";
    let lines: [&[&str]; 8] = [
        &["history", "--store", url],
        &["history", "--store", url, "--log", "trace"],
        &["history", "--stroe", url],
        &["history", "x", url],
        &["pull", url],
        &["pull", url, "a", "b"],
        &["init", "postgres://ada:s3cret@[/prompts"],
        &["policy", "--store", "postgres://ada:s3cret@127.0.0.1:1/prompts?sslmode=s3cret"],
    ];
    for words in lines {
        let ran = team.run(words);
        assert_ne!(ran.code, "0", "{words:?}");
        assert!(!ran.stdout.contains("s3cret") && !ran.stderr.contains("s3cret"), "{words:?}: {}", ran.stderr);
        assert!(!ran.stderr.is_empty(), "{words:?}");
    }
    let mut command = team.command(&["history"]);
    command.env("PROMPTSHELF_STORE", url);
    assert!(!crate::program::shown(command, "").contains("s3cret"));
    assert!(!team.ok(&["history", "--help"]).contains("s3cret"));
}

#[test]
fn invalid_names_are_usage_errors() {
    let team = Team::with(&[("hello.md", HELLO)]);
    let lines: [&[&str]; 13] = [
        &["history", "--channel", ""],
        &["history", "--channel", "../production"],
        &["history", "--store", "teamdb"],
        &["history", "--store", ""],
        &["history", "--store", "sqlite:"],
        &["history", "--store", "sqlite:team.db#production@2"],
        &["publish", "prompts", "-m", ""],
        &["publish", "prompts", "-m", "x", "--as", ""],
        &["publish", "prompts"],
        &["approve", "one"],
        &["approve", "1", "--digest", "x"],
        &["pull", "sqlite:team.db"],
        &["store", "prune", "--older-than", "yesterday"],
    ];
    for words in lines {
        team.fails("2", words);
    }
    team.fails("2", &["store", "prune"]);
    team.fails("7", &["pull", "sqlite:team.db#nowhere", "copy"]);
    team.fails("7", &["pull", "sqlite:team.db#production@99", "copy"]);
    assert!(!team.path("copy").exists());
    assert_eq!(team.revision("production"), 1);
}

// req: S-93
#[cfg(unix)]
#[test]
fn links_that_lead_outside_are_not_published() {
    let team = Team::with(&[("hello.md", HELLO)]);
    fs::write(team.path("secret.md"), "secret\n").expect("written");
    std::os::unix::fs::symlink("../secret.md", team.path("prompts/linked.md")).expect("a link");
    let said = team.ok(&["publish", "prompts", "-m", "x"]);
    assert!(said.starts_with("left out linked.md: this path leads out of the library\n"), "{said}");
    assert_eq!(team.revision("production"), 1);
}

#[test]
fn unreadable_folders_are_not_published() {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.fails("3", &["publish", "nowhere", "-m", "x"]);
    team.fails("3", &["init", "sqlite:new.db", "--from", "nowhere"]);
    assert!(!team.path("new.db").exists());
    // One gigabyte, without a byte on disk.
    let huge = fs::File::create(team.path("prompts/huge.md")).expect("a file");
    huge.set_len(1 << 30).expect("a sparse file");
    let error = team.fails("3", &["publish", "prompts", "-m", "x"]);
    assert!(error.contains("huge.md") && error.contains("limit"), "{error}");
    fs::remove_file(team.path("prompts/huge.md")).expect("removed");
    fs::write(team.path("prompts/con.md"), HELLO).expect("written");
    let said = team.ok(&["publish", "prompts", "-m", "x"]);
    assert!(said.starts_with("left out con.md: "), "{said}");
    assert_eq!(team.revision("production"), 1);
}

#[test]
fn file_that_is_not_utf_8_is_an_error_of_the_check() {
    let team = Team::with(&[("hello.md", HELLO)]);
    fs::write(team.path("prompts/latin.md"), b"Gr\xfc\xdfe\n").expect("written");
    let shown = team.run(&["publish", "prompts", "-m", "x"]);
    assert_eq!(shown.code, "13");
    assert!(shown.stdout.contains("is open") && shown.stderr.contains("1 error"), "{shown:?}");
    assert_eq!(team.revision("production"), 1);
}

#[test]
fn file_that_is_not_a_store_stays_unchanged() {
    let team = Team::without_store();
    fs::write(team.path("team.db"), "This is a text, and longer than the header of a database file.\n".repeat(40))
        .expect("written");
    let before = fs::read(team.path("team.db")).expect("a file");
    for words in [&["history"][..], &["init"]] {
        let ran = team.run(words);
        assert!(ran.code != "0" && ran.stderr.contains("error: "), "{}", ran.stderr);
    }
    assert_eq!(fs::read(team.path("team.db")).expect("a file"), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn store_of_a_newer_release_stays_unchanged() {
    use sqlx::Connection as _;

    let team = Team::with(&[("hello.md", HELLO)]);
    let url = format!("sqlite:{}", team.path("team.db").display());
    let mut database = sqlx::SqliteConnection::connect(&url).await.expect("a connection");
    sqlx::query("UPDATE ps_library SET major = major + 1").execute(&mut database).await.expect("updated");
    database.close().await.expect("closed");
    for words in [&["history"][..], &["publish", "prompts", "-m", "x"], &["store", "migrate"], &["init"]] {
        let ran = team.run(words);
        assert!(ran.code == "15" && ran.stderr.contains("use a newer release"), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn pull_refuses_folders_with_other_files() {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.write("other", &[("mine.md", BYE)]);
    let before = bytes(&team.path("other"));
    let error = team.fails("14", &["pull", "sqlite:team.db", "other"]);
    assert!(error.contains("mine.md") && error.contains("empty folder"), "{error}");
    assert_eq!(bytes(&team.path("other")), before);
    team.fails("3", &["pull", "sqlite:team.db", "other/mine.md"]);
}

#[test]
fn empty_channel_and_folder_round_trip() {
    let team = Team::new();
    fs::create_dir(team.path("prompts")).expect("a folder");
    assert!(team.ok(&["publish", "prompts", "-m", "Nothing"]).starts_with("no changes"));
    team.ok(&["pull", "sqlite:team.db", "copy"]);
    assert_eq!(team.json(&["history"])["items"].as_array().map(Vec::len), Some(0));
    team.write("copy", &[("hello.md", HELLO)]);
    assert_eq!(team.json(&["publish", "copy", "-m", "First"])["revision"], 1);
}
