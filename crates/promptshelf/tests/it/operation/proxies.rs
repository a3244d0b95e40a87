//! Servers behind a reverse proxy: a trusted proxy determines the client's address.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};

use super::{HELLO, until};
use crate::{
    program::{Folder, Server, library},
    server_auth::ask_at,
};

fn server(proxy: &str) -> (Folder, Server) {
    let settings = format!(
        "[proxy]\n{proxy}\n[limits]\nrequests-per-minute-per-address = 2\n[http]\nallow-hosts = [\"prompts.example\"]\n"
    );
    let folder = library(&[("hello.md", HELLO), ("../server.toml", &settings)]);
    let server = Server::of(&folder, &["--audit", "audit.jsonl"]);
    (folder, server)
}

fn status(server: &Server, headers: &[(&str, &str)]) -> u16 {
    ask_at(&server.url, "", headers, "prompts/list", &json!({})).status
}

/// Waits for this number of audit records, and returns their addresses.
fn recorded(folder: &Folder, questions: usize) -> BTreeSet<String> {
    let read = || fs::read_to_string(folder.path().join("audit.jsonl")).unwrap_or_default();
    until("everything is recorded", || read().lines().count() == questions);
    let address = |line: &str| {
        let record: Value = serde_json::from_str(line).expect("JSON");
        record["address"].as_str().expect("an address").to_owned()
    };
    read().lines().map(address).collect()
}

#[test]
fn trusted_proxy_forwards_address_and_host() {
    let (folder, server) = server("trusted = [\"127.0.0.0/8\"]");
    for caller in ["203.0.113.1", "1.1.1.1, 203.0.113.2"] {
        let headers = [("X-Forwarded-For", caller), ("X-Forwarded-Host", "prompts.example"), ("Host", "inner:80")];
        assert_eq!((status(&server, &headers), status(&server, &headers)), (200, 200), "{caller}");
        assert_eq!(status(&server, &headers), 429, "{caller} is over its limit");
    }
    let elsewhere = [("X-Forwarded-For", "203.0.113.3"), ("X-Forwarded-Host", "evil.example"), ("Host", "localhost")];
    assert_eq!(status(&server, &elsewhere), 403);
    // Any client can send the header that is not configured.
    assert_eq!(status(&server, &[("Forwarded", "for=203.0.113.9")]), 200);
    assert_eq!(recorded(&folder, 5), ["127.0.0.1", "203.0.113.1", "203.0.113.2"].map(str::to_owned).into());
}

// req: S-8
#[test]
fn headers_of_untrusted_proxies_are_ignored() {
    let (folder, server) = server("trusted = [\"10.0.0.0/8\"]");
    let claims = |address: &'static str| {
        [("X-Forwarded-For", address), ("Forwarded", "for=203.0.113.7"), ("X-Forwarded-Host", "prompts.example")]
    };
    assert_eq!((status(&server, &claims("203.0.113.1")), status(&server, &claims("203.0.113.2"))), (200, 200));
    assert_eq!(status(&server, &claims("203.0.113.3")), 429, "they are one address");
    let (_other, server) = self::server("trusted = [\"10.0.0.0/8\"]");
    let host = [("X-Forwarded-Host", "prompts.example"), ("Host", "inner")];
    assert_eq!(status(&server, &host), 403);
    assert_eq!(recorded(&folder, 2), BTreeSet::from(["127.0.0.1".to_owned()]));
}

#[test]
fn forwarded_header_is_read_if_configured() {
    let (folder, server) = server("trusted = [\"127.0.0.1\"]\nheader = \"forwarded\"");
    let headers = [("Forwarded", "for=1.1.1.1, for=\"[2001:db8::7]:4711\";host=prompts.example"), ("Host", "inner")];
    assert_eq!(status(&server, &headers), 200);
    assert_eq!(status(&server, &[("X-Forwarded-For", "203.0.113.1")]), 200);
    assert_eq!(recorded(&folder, 2), ["127.0.0.1", "2001:db8::7"].map(str::to_owned).into());
}
