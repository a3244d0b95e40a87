//! Langfuse's read API.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;

use super::{Answer, Site, answer, publish};

const FILES: [(&str, &str); 3] = [
    ("greet.md", "---\ntags: [daily]\narguments:\n  - name: name\n    required: true\n---\nHello, {{ name }}!\n"),
    ("talk.md", "---\narguments:\n  - name: it\n---\nAsk {{ it }}\n\n{{ role('assistant') }}\n\nAnswer\n"),
    ("odd.md", "---\narguments:\n  - name: it\n---\n{% if it %}Yes{% endif %}\n"),
];

async fn get(site: &Site, user: &str, path: &str) -> Answer {
    let credentials = format!("Basic {}", STANDARD.encode(user));
    answer(&site.router, &format!("/api/public/v2/prompts{path}"), &[("authorization", &credentials)]).await
}

#[tokio::test]
async fn texts_and_chats_have_labels_and_versions() {
    let channels: &[(&str, &[(&str, &str)])] = &[("production", &FILES), ("staging", &FILES[..1])];
    let site = Site::of(channels, false, &[]).await;
    publish(&site.store, "production", &[("greet.md", "Hi!\n")]).await;
    site.serves(2).await;
    let greet = get(&site, "a:b", "/greet").await.expect(200);
    assert!(greet.header("cache-control").contains("stale-while-revalidate"), "{greet:?}");
    let expected = json!({
        "name": "greet", "version": 2, "type": "text", "prompt": "Hi!", "config": {}, "labels": ["production", "latest"],
        "tags": [], "commitMessage": null, "resolutionGraph": null,
    });
    assert_eq!(greet.json(), expected);
    let latest = get(&site, "a:b", "/greet?label=latest").await.expect(200).json();
    assert_eq!(latest["version"], 2);
    // Channels count their versions: the texts of two with one number are told apart by the default channel.
    for path in ["/greet?label=staging", "/greet?version=1"] {
        let old = get(&site, "a:b", path).await.expect(200).json();
        assert_eq!((&old["prompt"], &old["labels"]), (&json!("Hello, {{name}}!"), &json!(["staging"])), "{path}");
    }
    let talk = get(&site, "a:b", "/talk?label=production&resolve=true").await.expect(200).json();
    let message = |role, content| json!({ "type": "chatmessage", "role": role, "content": content });
    assert_eq!(talk["prompt"], json!([message("user", "Ask {{it}}"), message("assistant", "Answer")]));
    assert!(get(&site, "a:b", "/odd").await.detail(400).contains("condition"));
    for path in ["/none", "/greet?version=9", "/greet?label=other", "/talk?label=staging"] {
        get(&site, "a:b", path).await.expect(404);
    }
    get(&site, "a:b", "/greet?label=production&version=1").await.expect(400);

    let list = get(&site, "a:b", "?limit=2").await.expect(200).json();
    assert_eq!(list["meta"], json!({ "page": 1, "limit": 2, "totalItems": 3, "totalPages": 2 }));
    let greet = &list["data"][0];
    assert_eq!((&greet["name"], &greet["versions"]), (&json!("greet"), &json!([1, 2])));
    assert_eq!(greet["labels"], json!(["production", "latest", "staging"]));
    let page = get(&site, "a:b", "?limit=2&page=2").await.expect(200).json();
    assert_eq!((&page["data"][0]["name"], &page["data"][0]["type"]), (&json!("talk"), &json!("chat")));
    let tagged = get(&site, "a:b", "?tag=daily&label=staging").await.expect(200).json();
    assert_eq!(tagged["data"].as_array().map(Vec::len), Some(1));
    for query in ["?page=0", "?limit=101", "?filter=[]"] {
        get(&site, "a:b", query).await.expect(400);
    }
}

// req: S-184
#[tokio::test]
async fn basic_credentials_are_the_name_and_the_token() {
    let rules = "[[access]]\nprompts = [\"talk\"]\nroles = [\"editor\"]\n";
    let files = [FILES[0], FILES[1], ("promptshelf.toml", rules)];
    let site = Site::of(&[("production", &files)], true, &[("production", "editor")]).await;
    get(&site, "ada:psk_ada", "/talk").await.expect(200);
    for (user, status) in [
        ("ada:psk_bob", 401),
        ("bob:psk_ada", 401),
        (":psk_ada", 401),
        ("ada:psk_nobody", 401),
        ("ada", 401),
        ("ada:", 400),
        ("ada:psk_ada:x", 400),
    ] {
        let refused = get(&site, user, "/talk").await.expect(status);
        assert!(!refused.body.contains("psk_"), "{refused:?}");
    }
    // The rules are those of every other request: bob may not use the channel.
    get(&site, "bob:psk_bob", "/greet").await.expect(404);
    assert_eq!(site.get_as("ada", "/api/public/v2/prompts/talk").await.status, 200);
    // Nothing else accepts a token as a password.
    let basic = format!("Basic {}", STANDARD.encode("ada:psk_ada"));
    answer(&site.router, "/api/v1/prompts", &[("authorization", &basic)]).await.expect(401);
}
