//! Servers behind a reverse proxy: a trusted proxy determines the client's address.

use std::{collections::BTreeSet, fs};

use promptshelf_testkit::nginx::Nginx;
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
    let addresses = ["127.0.0.1", "203.0.113.1", "203.0.113.2", "203.0.113.3"];
    assert_eq!(recorded(&folder, 6), addresses.map(str::to_owned).into());
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

#[test]
fn page_and_api_work_below_a_path() {
    let folder = library(&[("hello.md", HELLO)]);
    let server = Server::of(&folder, &[]);
    let location = format!("proxy_pass http://{}/; proxy_set_header Host $host;", server.authority());
    let nginx = Nginx::start(&format!("server {{ listen LISTEN; location /prompts/ {{ {location} }} }}"));
    let base = format!("http://{}/prompts/", nginx.address());
    let read = |path: &str| {
        let mut answer = ureq::get(format!("{base}{path}")).call().unwrap_or_else(|error| panic!("{path}: {error}"));
        answer.body_mut().read_to_string().expect("text")
    };
    // Every file of the page is found from another one by a relative path.
    let page = read("");
    let mut waiting: Vec<String> = Vec::new();
    for part in page.split(['\"', '\'']).filter(|part| part.contains("assets/")) {
        assert!(!part.starts_with('/'), "{part}");
        waiting.push(part.to_owned());
    }
    let mut seen = BTreeSet::new();
    while let Some(path) = waiting.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let text = read(&path);
        for absolute in ["'/assets", "\"/assets", "url(/", "('/sign-in", "(`/library", "(`/api/v1", "('/api/v1"] {
            assert!(!text.contains(absolute) || path.contains("vendor"), "{path} has {absolute}");
        }
        let imported = text.split("from '").skip(1).chain(text.split("import('").skip(1));
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        for other in imported.filter_map(|rest| rest.split('\'').next()).filter(|other| other.starts_with('.')) {
            let mut parts: Vec<&str> = folder.split('/').collect();
            for part in other.split('/') {
                match part {
                    "." => {}
                    ".." => drop(parts.pop()),
                    part => parts.push(part),
                }
            }
            waiting.push(parts.join("/"));
        }
    }
    assert!(seen.len() > 20, "{seen:?}");
    assert!(read("api/v1/prompts").contains("\"hello\"") && read("library/prompts").contains("\"hello\""));
    assert!(read("sign-in").contains("needed"));
}
