//! Static tokens from a file.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};

use serde_json::json;

use super::{LIBRARY, ask, ask_at, read};
use crate::program::{Folder, PATIENCE, Server, library, promptshelf, run};

/// Creates a token with the program, and returns the token and its line for the file.
fn new_token(folder: &Folder, line: &[&str]) -> (String, String) {
    let output = promptshelf().args(["token", "new"]).args(line).arg("--json").current_dir(folder.path()).output();
    let output = output.expect("the program runs");
    let made: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |key: &str| made[key].as_str().expect("a text").to_owned();
    (text("token"), text("store"))
}

// req: P1, P17
#[test]
fn created_token_authenticates() {
    let folder = library(LIBRARY);
    let (ada, ada_line) = new_token(&folder, &["ada", "--role", "editor"]);
    let (bob, bob_line) = new_token(&folder, &["bob", "--scope", "prompts:write"]);
    assert!(!ada_line.contains(&ada), "only a digest is stored");
    fs::write(folder.path().join("tokens"), format!("# the team\n{ada_line}\n\n{bob_line},\n")).expect("written");
    let server = Server::of(&folder, &["--tokens", "tokens"]);
    assert_eq!(ask(&server.url, &ada, "prompts/list", &json!({})).prompts(), ["hidden", "open", "shown"]);
    assert_eq!(ask(&server.url, &bob, "prompts/list", &json!({})).prompts(), ["open", "shown"]);
    let hidden = json!({ "name": "hidden" });
    assert_eq!(ask(&server.url, &ada, "prompts/get", &hidden).json()["result"]["description"], "Hidden");
    assert_eq!(ask(&server.url, &bob, "prompts/get", &hidden).json()["error"]["message"], "Unknown prompt: hidden");
}

// req: N17, P2, P8, P10, S-3, X25
#[test]
fn missing_token_gets_only_a_challenge() {
    let folder = library(LIBRARY);
    let (token, line) = new_token(&folder, &["ada"]);
    fs::write(folder.path().join("server.toml"), format!("[auth]\ntokens = [{line}]\n")).expect("written");
    let server = Server::of(&folder, &[]);
    let list = json!({});
    let none = ask_at(&server.url, "", &[], "prompts/list", &list);
    assert_eq!((none.status, none.challenge.as_deref()), (401, Some("Bearer")));
    assert!(!none.body.contains("open"), "{}", none.body);

    // Only the header is accepted.
    let query = ask_at(&server.url, &format!("?access_token={token}"), &[], "prompts/list", &list);
    assert_eq!((query.status, query.challenge.as_deref()), (401, Some("Bearer")));
    let cookie = ask_at(&server.url, "", &[("Cookie", &format!("access_token={token}"))], "prompts/list", &list);
    assert_eq!(cookie.status, 401);
    let other = ask_at(&server.url, "", &[("Authorization", "Basic YTpi")], "prompts/list", &list);
    assert_eq!((other.status, other.challenge.as_deref()), (401, Some("Bearer")));

    let nearly = format!("{}x", &token[..token.len() - 1]);
    for wrong in ["x", "psk_", &nearly, &token[..20], &"a".repeat(17 << 10)] {
        let refused = ask(&server.url, wrong, "prompts/list", &list);
        assert_eq!(refused.status, 401, "{}", wrong.len());
        let challenge = refused.challenge.expect("a challenge");
        assert!(challenge.starts_with("Bearer error=\"invalid_token\""), "{challenge}");
    }
    let twice = format!("Bearer {token}\r\nAuthorization: Bearer {token}");
    for malformed in ["Bearer", "Bearer ", "Bearer a b", "Bearer \u{e9}", &twice] {
        assert_eq!(status_of(&server, malformed).as_deref(), Some("400"), "{malformed:?}");
    }
    // The scheme is case-insensitive.
    let lower = ask_at(&server.url, "", &[("Authorization", &format!("bearer {token}"))], "prompts/list", &list);
    assert_eq!(lower.status, 200);
}

/// No session id replaces a token, in either era and with any HTTP method.
// req: S-70, X25
#[test]
fn session_id_does_not_replace_a_token() {
    let folder = library(LIBRARY);
    let (token, line) = new_token(&folder, &["ada"]);
    fs::write(folder.path().join("tokens"), line).expect("written");
    let server = Server::of(&folder, &["--tokens", "tokens"]);
    let list = json!({});
    for id in [&*token, "guessed", "6f1c2a4e-0000-4000-8000-000000000000"] {
        let session = ("Mcp-Session-Id", id);
        for version in ["2025-03-26", "2025-11-25", "2026-07-28"] {
            let response =
                ask_at(&server.url, "", &[session, ("MCP-Protocol-Version", version)], "prompts/list", &list);
            assert_eq!((response.status, response.challenge.as_deref()), (401, Some("Bearer")), "{version}");
        }
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let stream = agent.get(&server.url).header("Accept", "text/event-stream").header(session.0, id);
        assert_eq!(read(stream.call().expect("the server answers")).status, 401);
        assert_eq!(read(agent.delete(&server.url).header(session.0, id).call().expect("an answer")).status, 401);
        // A session id does not invalidate a token either.
        let with_both = [session, ("Authorization", &*format!("Bearer {token}"))];
        assert_eq!(ask_at(&server.url, "", &with_both, "prompts/list", &list).status, 200);
    }
}

/// Sends a raw `Authorization` header that no HTTP client would send, and returns the status.
fn status_of(server: &Server, authorization: &str) -> Option<String> {
    let mut stream = TcpStream::connect(server.authority()).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("the server reads");
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("the server answers");
    line.split(' ').nth(1).map(str::to_owned)
}

// req: P9, X25
#[test]
fn expired_token_is_refused() {
    let folder = library(LIBRARY);
    let (token, line) = new_token(&folder, &["ada"]);
    let line = line.replace(" }", ", expires = \"2001-01-01\" }");
    fs::write(folder.path().join("tokens"), line).expect("written");
    let server = Server::of(&folder, &["--tokens", "tokens"]);
    let refused = ask(&server.url, &token, "prompts/list", &json!({}));
    assert_eq!(refused.status, 401);
    assert!(refused.challenge.expect("a challenge").contains("The token has expired"));
}

#[test]
fn useless_tokens_are_not_made() {
    let folder = library(LIBRARY);
    let lines: [&[&str]; 7] = [
        &[""],
        &[" "],
        &["ada", "--expires", "2001-01-01"],
        &["ada", "--expires", "tomorrow"],
        &["ada", "--scope", ""],
        &["ada", "--scope", "prompts:read prompts:write"],
        &["ada", "--role", ""],
    ];
    for line in lines {
        let shown = run(&folder, &[&["token", "new"], line].concat());
        assert!(
            shown.starts_with("exit code: 2\n----- stdout -----\n----- stderr -----\nerror: "),
            "{line:?}: {shown}"
        );
        assert!(shown.contains("expected"), "{line:?}: {shown}");
    }
    let made = run(&folder, &["token", "new", "ada", "--expires", "2999-01-01", "--scope", "https://x/y"]);
    assert!(made.starts_with("exit code: 0\n"), "{made}");
}

#[test]
fn cors_exposes_challenge_and_allows_preflight() {
    let folder = library(LIBRARY);
    let (_, line) = new_token(&folder, &["ada"]);
    fs::write(folder.path().join("tokens"), line).expect("written");
    let server = Server::of(&folder, &["--tokens", "tokens", "--allow-origin", "https://app.example"]);
    let from = |origin: &str| ask_at(&server.url, "", &[("Origin", origin)], "prompts/list", &json!({}));
    let refused = from("https://app.example");
    assert_eq!(refused.status, 401);
    assert_eq!(refused.headers["access-control-allow-origin"], "https://app.example");
    assert!(refused.headers["access-control-expose-headers"].to_str().expect("ASCII").contains("WWW-Authenticate"));
    let foreign = from("https://evil.example");
    assert_eq!(foreign.status, 403);
    assert!(foreign.headers.get("access-control-allow-origin").is_none());

    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let response = agent
        .options(&server.url)
        .header("Origin", "https://app.example")
        .header("Access-Control-Request-Headers", "authorization")
        .call();
    let response = read(response.expect("the server answers"));
    assert_eq!(response.status, 204);
    assert_eq!(response.headers["access-control-allow-headers"], "authorization");
}

// req: P15
#[test]
fn invalid_token_file_fails_the_start_at_its_line() {
    let folder = library(LIBRARY);
    fs::write(folder.path().join("tokens"), "# no tokens yet\n").expect("written");
    let start = |line: &[&str]| run(&folder, &[&["serve", "prompts", "--http", "127.0.0.1:0"], line].concat());
    assert!(start(&["--tokens", "tokens"]).contains("error: tokens contains no tokens"));
    fs::write(folder.path().join("tokens"), "{ name = \"a\", sha256 = \"12\" }\n").expect("written");
    assert!(start(&["--tokens", "tokens"]).contains("tokens:1: `sha256`: expected 64 hexadecimal digits"));
    assert!(start(&["--tokens", "nowhere"]).contains("the tokens file nowhere cannot be read"));
    assert!(start(&["--issuer", "https://a.example"]).contains("need the URL that they are issued for"));
    assert!(start(&["--issuer", "http://a.example", "--resource", "https://b.example/mcp"]).contains("https URL"));
}

// req: S-51
#[test]
fn secrets_inside_a_published_folder_fail_the_start() {
    let folder = library(LIBRARY);
    let (_, line) = new_token(&folder, &["ada"]);
    for file in ["prompts/tokens", "prompts/key.pem", "docs/tokens", "tokens"] {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        fs::write(path, &line).expect("written");
    }
    let start = |line: &[&str]| run(&folder, &[&["serve", "prompts", "--http", "127.0.0.1:0"], line].concat());
    let refused = start(&["--tokens", "prompts/tokens"]);
    assert!(refused.contains("the tokens file prompts/tokens is inside the library"), "{refused}");
    assert!(refused.contains("exit code: 2"), "{refused}");
    for (certificate, key, name) in
        [("chain.pem", "prompts/key.pem", "TLS key"), ("prompts/key.pem", "key.pem", "TLS certificate")]
    {
        let refused = start(&["--tls-certificate", certificate, "--tls-key", key]);
        assert!(refused.contains(&format!("the {name} prompts/key.pem is inside the library")), "{refused}");
    }
    fs::write(folder.path().join("server.toml"), "[grants]\nroots = [\"docs\"]\n").expect("written");
    let refused = start(&["--config", "server.toml", "--tokens", "docs/tokens"]);
    assert!(refused.contains("which [grants] lets the library publish"), "{refused}");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("prompts/tokens", folder.path().join("linked")).expect("linked");
        assert!(start(&["--tokens", "linked"]).contains("is inside the library"));
    }
}

/// With sign-in, a non-loopback address needs no flag.
// req: S-2
#[test]
fn sign_in_permits_non_loopback_addresses() {
    let folder = library(LIBRARY);
    let (_, line) = new_token(&folder, &["ada"]);
    fs::write(folder.path().join("tokens"), line).expect("written");
    let mut command = promptshelf();
    command.args(["serve", "prompts", "--http", "0.0.0.0:0", "--tokens", "tokens"]).current_dir(folder.path());
    let server = Server::start(command);
    assert!(server.startup_log.contains("listening on"));
    let refused = run(&folder, &["serve", "prompts", "--http", "0.0.0.0:0"]);
    assert!(refused.contains("exit code: 5") && refused.contains("sign-in is not configured"), "{refused}");
}
