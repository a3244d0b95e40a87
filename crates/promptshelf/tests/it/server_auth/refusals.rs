//! Refused sign-ins: their records, and callers that the operator blocks.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    LIBRARY, ask, ask_at,
    issuer::{Issuer, Key, RESOURCE, now},
};
use crate::program::{Folder, PATIENCE, Server, library};

fn server(folder: &Folder, issuer: &Issuer, auth: &str) -> Server {
    folder.write("server.toml", &format!("[audit]\nfile = \"audit.jsonl\"\n\n[auth]\n{auth}"));
    Server::of(folder, &["--issuer", &issuer.url, "--resource", RESOURCE])
}

fn records(folder: &Folder) -> Vec<Value> {
    let text = fs::read_to_string(folder.path().join("audit.jsonl")).unwrap_or_default();
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    records.filter(|record| record["method"] == "sign-in").collect()
}

// req: S-322
#[test]
fn refused_sign_ins_are_recorded_without_the_token_and_bounded() {
    let key = Key::elliptic("one");
    let issuer = Issuer::start(&[&key]);
    let folder = library(LIBRARY);
    let server = server(&folder, &issuer, "");
    let mut expired = issuer.claims();
    (expired["exp"], expired["sub"]) = (json!(now() - 120), json!("olga\n\u{1b}[2J"));
    let mut foreign = issuer.claims();
    foreign["aud"] = json!("https://other.example");
    let tokens = [key.sign(&expired), key.sign(&foreign), "psk_guessed".to_owned(), "no.j.wt".to_owned()];
    for token in &tokens {
        assert_eq!(ask(&server.url, token, "prompts/list", &json!({})).status, 401);
    }
    assert_eq!(ask_at(&server.url, "", &[], "prompts/list", &json!({})).status, 401);
    let begun = Instant::now();
    while records(&folder).len() < 5 {
        assert!(begun.elapsed() < PATIENCE, "{:?}", records(&folder));
    }
    let of = |record: &Value| (record["outcome"].clone(), record["claimed"].clone(), record["address"].clone());
    let here = json!("127.0.0.1");
    let expected = [
        (json!("expired-token"), json!("olga\n\u{1b}[2J"), here.clone()),
        (json!("other-audience"), json!("ada"), here.clone()),
        (json!("unknown-token"), Value::Null, here.clone()),
        (json!("malformed-token"), Value::Null, here.clone()),
        (json!("no-token"), Value::Null, here),
    ];
    assert_eq!(records(&folder).iter().map(of).collect::<Vec<_>>(), expected);

    // However many there are, of one kind a minute has ten records and as many lines of the log.
    for _ in 0..40 {
        ask(&server.url, "psk_guessed", "prompts/list", &json!({}));
    }
    ask(&server.url, &key.sign(&issuer.claims()), "prompts/list", &json!({}));
    let unknown = records(&folder).iter().filter(|record| record["outcome"] == "unknown-token").count();
    assert!(unknown <= 10, "{unknown}");
    let log: Vec<String> = server.log.try_iter().collect();
    let lines: Vec<&String> = log.iter().filter(|line| line.contains("refused a sign-in")).collect();
    assert!((4..=10).contains(&lines.len()), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("expired-token") && line.contains("olga\\n")), "{lines:?}");
    let audit = fs::read_to_string(folder.path().join("audit.jsonl")).expect("an audit file");
    for token in &tokens[..3] {
        let end = &token[token.len() - 6..];
        assert!(!audit.contains(end) && !log.iter().any(|line| line.contains(end)), "no part of a token is recorded");
    }
}

// req: S-323
#[cfg(unix)]
#[test]
fn blocked_caller_is_refused_within_a_second_open_streams_included() {
    let key = Key::elliptic("one");
    let issuer = Issuer::start(&[&key]);
    let folder = library(LIBRARY);
    folder.write("blocked", "# leavers\n");
    let server = server(&folder, &issuer, "blocked-subjects = { file = \"blocked\" }\n");
    let token = |subject: &str| {
        let mut claims = issuer.claims();
        claims["sub"] = json!(subject);
        key.sign(&claims)
    };
    let (olga, ada) = (token("olga@example.com"), token("ada"));
    let status = |token: &str| ask(&server.url, token, "prompts/list", &json!({})).status;
    assert_eq!((status(&olga), status(&ada)), (200, 200));
    let open = |token: &str| {
        let stream = std::net::TcpStream::connect(server.authority()).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        crate::operation::Subscription::open(stream, token)
    };
    let (mut of_olga, _of_ada) = (open(&olga), open(&ada));
    let begun = Instant::now();
    folder.write("blocked", "# leavers\nOlga@Example.com\n");
    of_olga.assert_end();
    assert_eq!(status(&olga), 401);
    let took = begun.elapsed();
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    assert_eq!(status(&ada), 200);
    let begun = Instant::now();
    while records(&folder).last().is_none_or(|record| record["outcome"] != "blocked-subject") {
        assert!(begun.elapsed() < PATIENCE, "{:?}", records(&folder));
    }
    let until = |expected: u16, how: &str| {
        let begun = Instant::now();
        while status(&olga) != expected {
            assert!(begun.elapsed() < PATIENCE, "{how}");
        }
    };
    // However an editor has written the file, the name is blocked.
    for text in ["\u{feff}olga@example.com\n", "olga@example.com\r\n", "  olga@example.com\t # since May\n"] {
        folder.write("blocked", "");
        until(200, "unblocked");
        folder.write("blocked", text);
        until(401, text);
    }
    folder.write("blocked", "");
    until(200, "unblocked");
    // Nobody takes the name of a token of a store.
    assert_eq!(status(&token("token/ci")), 401);
}
