//! Comparisons of channels: words for callers, affected prompts, tests, clients, renderings; and browsing.

use promptshelf_author::Difference;
use serde_json::{Value, json};

use super::{HELLO, Server, policy_of, proposal, refused};

const REVIEW: &str = "---\ndescription: Reviews code\ntags: [code]\nowners: [team-a, team-a]\ncollections: Starters\narguments:\n  - { name: language, description: Such as Rust }\n\
tests:\n  - { name: polite, arguments: { language: Go }, contains: [\"kindly\"] }\n---\nReview this {{ language }} code. \
{% include \"_shared/tone.md\" %}\n";

async fn shelf() -> Server {
    let server = Server::prepared(&policy_of(0)).await;
    let files = [("code/review.md", None, Some(REVIEW)), ("_shared/tone.md", None, Some("Speak kindly.\n"))];
    server.post("admin", "/channels/production/proposals", &proposal(1, &files)).await.expect(201);
    server
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|one| one["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn proposal_is_compared_in_words_with_its_tests_and_affected_prompts() {
    let server = shelf().await;
    let required = REVIEW
        .replace("Such as Rust }", "Such as Rust, required: true }")
        .replace("Rust, required", "Rust\", required");
    let required = required.replace("description: Such", "description: \"Such");
    let changes = [
        ("code/review.md", Some(REVIEW), Some(required.as_str())),
        ("_shared/tone.md", Some("Speak kindly.\n"), Some("Speak briefly.\n")),
        ("hello.md", Some(HELLO), None),
    ];
    let proposed =
        server.post("ada", "/channels/production/proposals", &proposal(2, &changes)).await.expect(201).json();
    let after = json!({ "proposal": { "id": proposed["proposal"]["id"] } });
    let compared = server.post("reader", "/compare", &json!({ "after": after })).await.expect(200).json();
    assert_eq!((&compared["before"]["revision"], &compared["after"]["revision"]), (&json!(2), &Value::Null));
    let words: Vec<String> = compared["differences"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| format!("{} {}: {}", one["impact"], one["name"], one["text"]).replace('"', ""))
        .collect();
    assert_eq!(
        words,
        [
            "breaking code-review: `language` became required: callers that leave it out will fail",
            "breaking hello: is gone: callers will fail",
        ]
    );
    assert_eq!(names(&compared["prompts"]), ["code-review", "hello"]);
    assert_eq!(compared["prompts"][0]["through"], json!(["_shared/tone.md"]));
    assert_eq!(compared["filesTotal"], 3);
    let test = &compared["tests"][0];
    assert_eq!((&test["before"], &test["after"], &compared["testsRun"]), (&json!(true), &json!(false), &json!(1)));

    let body = |values: Value| json!({ "after": after, "prompt": "code-review", "arguments": values });
    let rendered =
        server.post("reader", "/compare/renderings", &body(json!({ "language": "Zig" }))).await.expect(200).json();
    assert_eq!(rendered["samples"], json!([{ "test": "polite", "values": { "language": "Go" } }]));
    let text = |side: &str| rendered[side]["text"].as_str().unwrap_or_default().to_owned();
    assert!(text("before").contains("Zig code. Speak kindly."), "{rendered}");
    assert!(text("after").contains("Zig code. Speak briefly."), "{rendered}");
    let sampled = server.post("reader", "/compare/renderings", &body(json!({}))).await.expect(200).json();
    assert_eq!(sampled["values"], json!({ "language": "Go" }), "that of a test");
    let unknown = json!({ "after": after, "prompt": "nothing" });
    assert_eq!(server.post("reader", "/compare/renderings", &unknown).await.problem(), refused(404, "not-found"));
}

// req: S-172
#[tokio::test]
async fn rollback_and_promotion_are_compared_before_they_happen() {
    let server = shelf().await;
    let back = json!({ "after": { "rollback": { "channel": "production", "to": 1 } } });
    let compared = server.post("ada", "/compare", &back).await.expect(200).json();
    assert_eq!(names(&compared["prompts"]), ["code-review"]);
    assert_eq!(compared["after"]["sourceRevision"], 1);
    assert_eq!(compared["differences"][0]["impact"], "breaking");
    // Planning a change is a part of proposing it.
    assert_eq!(server.post("reader", "/compare", &back).await.problem(), refused(403, "insufficient-scope"));
    server.create("beta", &policy_of(0)).await;
    let promote = json!({ "after": { "promote": { "from": "production", "to": "beta", "prompts": ["code-review"] } } });
    let compared = server.post("ada", "/compare", &promote).await.expect(200).json();
    assert_eq!(names(&compared["prompts"]), ["code-review"]);
    let paths: Vec<&Value> = compared["files"].as_array().expect("files").iter().map(|file| &file["path"]).collect();
    assert_eq!(paths, ["_shared/tone.md", "code/review.md"], "with all that it brings in");
    let first = json!({ "after": { "revision": { "channel": "production", "revision": 1 } } });
    let compared = server.post("reader", "/compare", &first).await.expect(200).json();
    assert_eq!((&compared["before"]["revision"], names(&compared["prompts"])), (&json!(0), vec!["hello"]));
    let stale = [("Content-Type", "application/json"), ("If-Match", "\"0\"")];
    let body = json!({ "to": 1, "message": "Back" }).to_string();
    let path = super::at("/channels/production/rollback");
    let refusal = server.send(&axum::http::Method::POST, &path, "paul", &stale, body.as_bytes()).await;
    assert_eq!(refusal.problem(), refused(412, "precondition-failed"));
    assert_eq!(server.revision().await, 2, "nothing happened");
    for (body, expected) in [
        (json!({ "after": { "proposal": { "id": 99 } } }), refused(404, "not-found")),
        (json!({ "after": { "revision": { "channel": "production", "revision": 9 } } }), refused(404, "not-found")),
        (json!({ "after": { "rollback": { "channel": "production", "to": 2 } } }), refused(409, "unchanged")),
        (json!({ "after": {} }), refused(400, "invalid-request")),
        (json!({ "after": { "revision": { "channel": "../x" } } }), refused(400, "invalid-request")),
    ] {
        assert_eq!(server.post("ada", "/compare", &body).await.problem(), expected, "{body}");
    }
}

#[tokio::test]
async fn browsing_finds_texts_folders_and_groups() {
    let server = shelf().await;
    let browse = async |query: &str| {
        let found = server.get("reader", &format!("/channels/production/browse?{query}")).await.expect(200).json();
        let paths: Vec<String> = found["items"]
            .as_array()
            .expect("files")
            .iter()
            .map(|file| file["path"].to_string().replace('"', ""))
            .collect();
        (found, paths)
    };
    let (all, paths) = browse("").await;
    assert_eq!(paths, ["_shared/tone.md", "code/review.md", "hello.md"]);
    assert_eq!(names(&all["folders"]), ["_shared", "code"]);
    for (group, name) in [("tags", "code"), ("owners", "team-a"), ("collections", "Starters")] {
        assert_eq!(all[group], json!([{ "name": name, "files": 1 }]), "{group}");
    }
    let at = &all["items"][1]["prompts"][0]["channels"][0];
    assert_eq!((&at["channel"], &at["version"], &at["since"]), (&json!("production"), &json!(1), &json!(2)));
    assert_eq!(at["digest"].as_str().map(str::len), Some(64));
    let (found, paths) = browse("text=KINDLY").await;
    assert_eq!(paths, ["_shared/tone.md", "code/review.md"]);
    assert_eq!(found["items"][0]["lines"], json!([{ "number": 1, "text": "Speak kindly." }]));
    assert_eq!(browse("folder=code").await.1, ["code/review.md"]);
    assert_eq!(browse("tag=code&text=reviews").await.1, ["code/review.md"]);
    assert_eq!(browse("owner=team-a&collection=Starters").await.1, ["code/review.md"]);
    assert_eq!(browse("owner=team-a&tag=other").await.1, [""; 0]);
    let (first, paths) = browse("limit=2").await;
    assert_eq!((paths.len(), &first["total"]), (2, &json!(3)));
    let next = first["next"].as_str().expect("a cursor");
    assert_eq!(browse(&format!("limit=2&cursor={next}")).await.1, ["hello.md"]);
    let long = format!("/channels/production/browse?text={}", "x".repeat(201));
    assert_eq!(server.get("reader", &long).await.problem(), refused(400, "invalid-request"));
}

#[test]
fn each_difference_has_words_on_the_page() {
    let words = include_str!("../../../src/web/assets/js/lang/differences.js");
    let without: Vec<&&str> =
        Difference::CODES.iter().filter(|code| !words.contains(&format!("'difference.{code}'"))).collect();
    assert!(without.is_empty(), "no words for {without:?}");
}
