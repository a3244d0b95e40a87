//! Tokens of a store: by command, through a server, and on every server of the store.

use std::{
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    operation::Subscription,
    program::{Folder, PATIENCE, Server, promptshelf, shown},
    server_auth::{ask, ask_at},
};

/// A second, with time for a busy machine.
const WITHIN: Duration = Duration::from_millis(1_500);

/// Runs a command, and returns its JSON.
fn command(store: &str, token: Option<&str>, line: &[&str]) -> Value {
    let output = text(store, token, line);
    let (_, rest) = output.split_once("----- stdout -----\n").expect("stdout");
    let (json, _) = rest.split_once("----- stderr -----").expect("stderr");
    serde_json::from_str(json).unwrap_or_else(|_| panic!("{output}"))
}

fn text(store: &str, token: Option<&str>, line: &[&str]) -> String {
    let mut command = promptshelf();
    command.args(line).env("USER", "olga");
    match token {
        Some(token) => command.env("PROMPTSHELF_TOKEN", token),
        None => command.env("PROMPTSHELF_STORE", store),
    };
    shown(command, "")
}

fn serve(store: &str, folder: &Folder) -> Server {
    folder.write("server.toml", "[auth]\nstore-tokens = true\n");
    let mut command = promptshelf();
    command.args(["serve", "--http", "127.0.0.1:0"]).env("PROMPTSHELF_STORE", store);
    command.env("PROMPTSHELF_CONFIG", folder.path().join("server.toml"));
    Server::start(command)
}

fn status(server: &Server, token: &str) -> u16 {
    ask(&server.url, token, "prompts/list", &json!({})).status
}

/// Waits until every server answers with a status, and returns how long it took.
#[track_caller]
fn until(servers: &[Server], token: &str, expected: u16) -> Duration {
    let begun = Instant::now();
    while servers.iter().any(|server| status(server, token) != expected) {
        assert!(begun.elapsed() < PATIENCE, "{expected}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    begun.elapsed()
}

fn tokens_are_effective_on_every_server(store: &str) {
    let folder = Folder::empty();
    folder.write("prompts/hello.md", "---\ndescription: Greets\n---\nHello.\n");
    let prompts = folder.path().join("prompts");
    let made = text(store, None, &["init", store, "--from", prompts.to_str().expect("UTF-8")]);
    assert!(made.starts_with("exit code: 0"), "{made}");
    let servers = [serve(store, &folder), serve(store, &folder)];
    assert_eq!(
        ask_at(&servers[0].url, "", &[], "prompts/list", &json!({})).status,
        401,
        "an empty store lets nobody in"
    );

    let line =
        ["token", "create", "ops", "--scope", "library:admin", "--scope", "prompts:read", "--role", "editor", "--json"];
    let ops = command(store, None, &line);
    let admin = ops["token"].as_str().expect("a token").to_owned();
    assert_eq!((&ops["info"]["name"], &ops["info"]["creator"]), (&json!("ops"), &json!("olga")));
    let took = until(&servers, &admin, 200);
    assert!(took < WITHIN, "{took:?}");

    // Through a server: as much as the caller has, and neither reviews nor administration.
    let url = servers[0].url.trim_end_matches("/mcp").to_owned();
    let through = |line: &[&str]| text(store, Some(&admin), &[line, &["--url", &url]].concat());
    for refused in ["library:publish", "library:review", "library:admin"] {
        let output = through(&["token", "create", "ci", "--scope", refused]);
        assert!(output.starts_with("exit code: 12") && output.contains(refused), "{output}");
    }
    let output = through(&["token", "create", "ci", "--role", "boss"]);
    assert!(output.starts_with("exit code: 12") && output.contains("boss"), "{output}");
    let line = ["token", "create", "ci", "--scope", "prompts:read", "--role", "editor", "--json", "--url", &url];
    let ci = command(store, Some(&admin), &line);
    let program = ci["token"].as_str().expect("a token").to_owned();
    assert_eq!(ci["info"]["creator"], "token/ops", "the caller is recorded");
    until(&servers, &program, 200);
    let create = text(store, Some(&program), &["token", "list", "--url", &url]);
    assert!(create.starts_with("exit code: 12") && create.contains("library:admin"), "{create}");

    // Uses are recorded, and no list has a token.
    let begun = Instant::now();
    let listed = loop {
        let listed = command(store, None, &["token", "list", "--json"]);
        if listed["items"].as_array().is_some_and(|all| all.iter().all(|token| token["used"].is_string())) {
            break listed;
        }
        assert!(begun.elapsed() < PATIENCE, "{listed}");
    };
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(2));
    assert!(!listed.to_string().contains(&program[4..]));
    assert!(through(&["token", "list"]).contains("ops"));

    // A revocation ends requests and streams everywhere, and those of others stay.
    let open = |server: &Server, token: &str| {
        let stream = TcpStream::connect(server.authority()).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Subscription::open(stream, token)
    };
    let mut streams: Vec<_> = servers.iter().map(|server| open(server, &program)).collect();
    let revoked = command(store, None, &["token", "revoke", "ci", "--json"]);
    let begun = Instant::now();
    assert_eq!(revoked["revoker"], "olga");
    streams.iter_mut().for_each(Subscription::assert_end);
    let took = begun.elapsed();
    assert!(took < WITHIN, "{took:?}");
    assert!(servers.iter().all(|server| status(server, &program) == 401 && status(server, &admin) == 200));
    let again = text(store, None, &["token", "revoke", "ci"]);
    assert!(again.starts_with("exit code: 7"), "{again}");
}

/// A token whose text nobody has is of no use, and must not stay.
#[cfg(target_os = "linux")]
#[test]
fn token_whose_text_is_lost_is_revoked() {
    let folder = Folder::empty();
    let store = format!("sqlite:{}", folder.path().join("team.db").display());
    text(&store, None, &["init"]);
    for format in [&["--json"][..], &[]] {
        let mut create = promptshelf();
        create.args(["token", "create", "ci", "--scope", "admin"]).args(format).env("PROMPTSHELF_STORE", &store);
        create.stdout(std::fs::File::options().write(true).open("/dev/full").expect("a full device"));
        let output = create.env("USER", "olga").output().expect("it runs");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(
            stderr.contains("the text of the token could not be written: ") && stderr.contains(" is revoked"),
            "{stderr}"
        );
        assert!(
            stderr.contains("note: the scope `admin`") && stderr.contains("did you mean `library:admin`?"),
            "{stderr}"
        );
    }
    let listed = command(&store, None, &["token", "list", "--json"]);
    let tokens = listed["items"].as_array().expect("a list");
    assert!(tokens.len() == 2 && tokens.iter().all(|token| token["revoked"].is_string()), "{listed}");
}

// req: S-326
#[test]
fn tokens_of_sqlite_are_effective_on_every_server() {
    let folder = Folder::empty();
    tokens_are_effective_on_every_server(&format!("sqlite:{}", folder.path().join("team.db").display()));
}

// req: S-326
#[test]
fn tokens_of_postgres_are_effective_on_every_server() {
    tokens_are_effective_on_every_server(&promptshelf_testkit::database::Postgres::shared().database());
}
