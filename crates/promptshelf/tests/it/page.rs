//! The page's files and its library API. The behaviour of the page itself is tested in a browser (`tests/web`).

mod callers;

use serde_json::{Value, json};
use ureq::{Agent, Body, http::Response};

use crate::program::{Server, library, run};

const REVIEW: &str = "---\ndescription: Reviews\ntags: [code]\narguments:\n  - { name: code, type: text, required: true }\n  - \
                      { name: lines, type: integer, minimum: 1, default: 3 }\n---\n{{ code }} {{ lines }}\n";
const BROKEN: &str = "---\ndescription: x\n---\nfirst\n{{ nobody }}\n";

fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
    let agent: Agent = Agent::config_builder().http_status_as_error(false).build().into();
    let mut request = agent.get(server.url.replace("/mcp", path));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.call().expect("the server answers")
}

fn read(server: &Server, path: &str) -> Value {
    let text = get(server, path, &[]).into_body().read_to_string().expect("a body");
    serde_json::from_str(&text).expect("valid JSON")
}

#[test]
fn page_has_its_policy_and_is_cached() {
    let server = Server::of(&library(&[("review.md", REVIEW)]), &[]);
    let page = get(&server, "/", &[]);
    assert_eq!(page.status(), 200);
    assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
    let policy = page.headers()["content-security-policy"].to_str().expect("text");
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.headers()["cache-control"], "no-cache");
    let tag = page.headers()["etag"].to_str().expect("text");
    assert_eq!(get(&server, "/", &[("If-None-Match", tag)]).status(), 304);
    assert_eq!(get(&server, "/assets/js/main.js", &[]).headers()["content-type"], "text/javascript; charset=utf-8");
    assert_eq!(get(&server, "/assets/..%2f..%2fmod.rs", &[]).status(), 404);
}

#[test]
fn page_api_returns_the_library() {
    let server = Server::of(&library(&[("team/review.md", REVIEW), ("broken.md", BROKEN)]), &[]);
    let list = read(&server, "/library/prompts");
    let expected = json!([{ "name": "team-review", "path": "team/review.md", "tags": ["code"], "texts": ["code"] }]);
    assert_eq!(list["prompts"], expected, "{}", server.startup_log);
    let review = read(&server, "/library/prompts/team-review");
    assert_eq!(review["arguments"][1]["type"], "integer");
    assert_eq!(review["arguments"][1]["minimum"], 1.0);
    assert_eq!(review["arguments"][1]["default"], "3");
    assert_eq!(get(&server, "/library/prompts/nobody", &[]).status(), 404);
    let broken = get(&server, "/library/prompts/broken", &[]);
    assert_eq!(broken.status(), 404);
    let text = broken.into_body().read_to_string().expect("a body");
    assert!(text.contains("its file has an error: broken.md:5:4"), "{text}");
    let diagnostics = read(&server, "/library/diagnostics");
    let first = &diagnostics["diagnostics"][0];
    assert_eq!((&first["path"], &first["line"], &first["column"]), (&json!("broken.md"), &json!(5), &json!(4)));
    let marked = json!({ "number": 5, "text": "{{ nobody }}", "mark": [3, 9] });
    assert!(first["lines"].as_array().is_some_and(|lines| lines.contains(&marked)), "{first}");
    assert_eq!(read(&server, "/library/facts")["limits"]["valueBytes"], 1 << 20);
}

#[test]
fn check_server_and_page_count_the_same_findings() {
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let files: &[(&str, &str)] = &[
        ("a.md", &format!("---\ndescription: x\n---\nUse {secret} here.\n")),
        ("b.md", "---\ndescription: y\n---\nBe kind.\u{202e}\n"),
        ("broken.md", BROKEN),
        ("_unused.md", "Never included.\n"),
    ];
    let folder = library(files);
    let checked = run(&folder, &["check", "prompts", "--format", "json"]);
    let json = checked.split("----- stdout -----\n").nth(1).and_then(|rest| rest.split("----- stderr -----").next());
    let found: Value = serde_json::from_str(json.expect("stdout")).expect("valid JSON");
    let found = found.as_array().or_else(|| found["items"].as_array()).expect("a list").len();
    let summary = run(&folder, &["check", "prompts"]);
    let counts = summary.lines().find_map(|line| line.split_once(" prompts, ")).expect("a summary").1.to_owned();
    let server = Server::of(&folder, &[]);
    assert!(found > 2 && server.startup_log.contains(&counts), "{counts}\n{}", server.startup_log);
    let answer = read(&server, "/library/diagnostics");
    let total = ["errors", "warnings", "hints"].map(|name| answer[name].as_u64().expect("a count")).iter().sum::<u64>();
    assert_eq!((answer["total"].as_u64(), total), (Some(found as u64), found as u64), "{answer}");
}

#[test]
fn page_and_endpoint_allow_the_same_hosts_and_origins() {
    let server = Server::of(&library(&[("review.md", REVIEW)]), &[]);
    for path in ["/", "/assets/js/main.js", "/library/prompts", "/library/diagnostics", "/library/changes"] {
        for header in [("Origin", "https://evil.example"), ("Host", "evil.example")] {
            assert_eq!(get(&server, path, &[header]).status(), 403, "{path} {header:?}");
        }
    }
    let own = server.url.replace("/mcp", "");
    assert_eq!(get(&server, "/library/prompts", &[("Origin", &own)]).status(), 200);
}

// req: S-18
#[test]
fn page_policy_names_the_issuer_only() {
    let auth = "[auth]\nissuer = \"https://id.example/realms/team\"\nresource = \"https://prompts.example/mcp\"\n";
    let policy = |settings: &str| {
        let server = Server::of(&library(&[("review.md", REVIEW), ("../server.toml", settings)]), &[]);
        let page = get(&server, "/", &[]);
        let policy = page.headers()["content-security-policy"].to_str().expect("text").to_owned();
        (policy, read(&server, "/sign-in"))
    };
    let (without, sign_in) = policy(auth);
    assert!(without.ends_with("connect-src 'self'"), "{without}");
    assert_eq!(sign_in, json!({ "needed": true, "clientId": null }));
    let (with, sign_in) = policy(&format!("{auth}page-client-id = \"shelf page\"\n"));
    assert!(with.ends_with("connect-src 'self' https://id.example"), "{with}");
    assert_eq!(sign_in, json!({ "needed": true, "clientId": "shelf page" }));
    assert_eq!(policy("").1, json!({ "needed": false, "clientId": null }));
}

#[test]
fn waiting_page_is_notified_of_a_change() {
    let folder = library(&[("review.md", REVIEW)]);
    let server = Server::of(&folder, &[]);
    let known = read(&server, "/library/changes")["loads"].as_u64().expect("a number");
    std::fs::write(folder.path().join("prompts/second.md"), "---\ndescription: y\n---\nHi\n").expect("a file");
    // Returns as soon as the reload is done; otherwise it would wait longer than the test's timeout.
    let changes = read(&server, &format!("/library/changes?known={known}"));
    assert!(changes["loads"].as_u64().is_some_and(|loads| loads != known), "{changes}");
}
