//! Requests that once stopped a server.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};

use super::{SLOWER, Site, assert_no_thread_was_busy, cost, until_idle};

/// A pattern of 100,000 states, and others near the bound.
const PATTERNS: [&str; 3] = ["(?:a{1,1000}){1,100}b", "(?:a{1,100}){1,50}b", "[ab]*a[ab]{3000}c"];

fn with_pattern(pattern: &str) -> String {
    format!("---\ndescription: Slow\narguments:\n  - {{ name: a, pattern: \"{pattern}\" }}\n---\n{{{{ a }}}}\n")
}

fn file(path: &str, text: &str) -> Value {
    json!({ "path": path, "before": null, "content": { "text": text } })
}

/// Two requests of 100 kB kept all threads of the runtime busy.
// req: S-275
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patterns_of_proposals_stop_nobody() {
    let site = Site::new(&[]).await;
    for pattern in PATTERNS {
        let changes = json!({ "channel": "production", "changes": [file("slow.md", &with_pattern(pattern))] });
        let body =
            json!({ "after": { "changes": changes }, "prompt": "slow", "arguments": { "a": "a".repeat(100_000) } });
        let attack = async {
            tokio::join!(site.post("/api/v1/compare/renderings", &body), site.post("/api/v1/compare/renderings", &body))
        };
        let (_, attacked) = cost(attack).await;
        assert!(attacked.processor < Duration::from_secs(1) * SLOWER, "{pattern}: {attacked:?}");
    }
    assert_no_thread_was_busy();
}

/// A caller without scopes needs a served prompt with a slow pattern.
// req: S-275
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patterns_of_served_prompts_stop_nobody() {
    let slow: Vec<(String, String)> =
        PATTERNS.iter().enumerate().map(|(n, pattern)| (format!("slow{n}.md"), with_pattern(pattern))).collect();
    let files: Vec<(&str, &str)> = slow.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let site = Site::new(&files).await;
    for n in 0..PATTERNS.len() {
        let value: String = (0..30_000).map(|n| if n % 7 < 3 { 'a' } else { 'b' }).collect();
        for value in [value, "a".repeat(30_000)] {
            let params = json!({ "name": format!("slow{n}"), "arguments": { "a": value } });
            let (_, attacked) = cost(site.rpc("prompts/get", params)).await;
            assert!(attacked.processor < Duration::from_millis(500) * SLOWER, "{n}: {attacked:?}");
        }
    }
    let short = site.rpc("prompts/get", json!({ "name": "slow1", "arguments": { "a": "ab" } })).await;
    assert!(short.text().contains("\"text\":\"ab\""), "{}", short.text());
    assert_no_thread_was_busy();
}

/// One content of 4 MB, named by 600 changes, took 2.3 GiB.
// req: S-277
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn digest_in_a_request_is_no_copy() {
    let site = Site::new(&[]).await;
    let digest = site.upload("x".repeat(3_900_000)).await;
    for (count, status) in [(600, 400), (30_000, 400), (60, 200)] {
        let changes: Vec<Value> = (0..count)
            .map(|n| json!({ "path": format!("files/{n}.txt"), "before": null, "content": { "digest": digest } }))
            .collect();
        let proposal = json!({ "base": 1, "message": "Many", "dryRun": true, "changes": changes });
        let compared = json!({ "after": { "changes": { "channel": "production", "changes": changes } } });
        for (path, body) in [
            ("/api/v1/channels/production/proposals", proposal),
            ("/api/v1/check", json!({ "channel": "production", "changes": changes })),
            ("/api/v1/compare", compared),
        ] {
            let (answer, attacked) = cost(site.post(path, &body)).await;
            let answer = answer.expect(status);
            assert!(status != 400 || answer.text().contains("bytes"), "{}", answer.text());
            // What is refused was not read; what is checked is read once for each file.
            let most = if status == 400 { 100 } else { 320 };
            assert!(attacked.memory < most << 20, "{path} {count}: {attacked:?}");
        }
    }
}

/// Each unknown name was compared with each known one.
// req: S-278
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suggestions_are_not_quadratic() {
    let site = Site::new(&[]).await;
    let names = |letter: char, count: usize| (0..count).map(move |n| format!("{letter}rgument_{n:05}"));
    let arguments: String = names('a', 3_000).map(|name| format!("  - {{ name: {name} }}\n")).collect();
    let variables: String = names('u', 3_000).map(|name| format!("{{{{ {name} }}}} ")).collect();
    let prompt = format!("---\ndescription: Many\narguments:\n{arguments}---\n{variables}\n");
    let includes: String = names('i', 3_000).map(|name| format!("{{% include \"_{name}.md\" %}}")).collect();
    let rules: String =
        names('r', 3_000).map(|name| format!("[[access]]\nprompts = [\"{name}\"]\nroles = [\"x\"]\n")).collect();
    let tests: String = names('t', 3_000).map(|name| format!("  - {{ arguments: {{ {name}: x }} }}\n")).collect();
    let tests = format!("---\ndescription: Many\narguments:\n{arguments}tests:\n{tests}---\nHello\n");
    let calls: String = names('p', 3_000).map(|name| format!("{{{{ prompt(\"{name}\") }}}}")).collect();
    let many: Vec<Value> = (0..1_000).map(|n| file(&format!("prompt_{n:05}.md"), "Hello\n")).collect();
    for changes in [
        vec![file("many.md", &prompt)],
        vec![file("many.md", &format!("---\ndescription: Many\n---\n{includes}\n"))],
        vec![file("promptshelf.toml", &rules)],
        vec![file("many.md", &tests)],
        [many, vec![file("many.md", &format!("---\ndescription: Many\n---\n{calls}\n"))]].concat(),
    ] {
        let body = json!({ "channel": "production", "changes": changes });
        let kilobytes = body.to_string().len() / 1_000;
        let (_, attacked) = cost(site.post("/api/v1/check", &body)).await;
        println!("{kilobytes} kB: {attacked:?}");
        let most = Duration::from_millis(5 * u64::try_from(kilobytes).expect("small")) * SLOWER;
        assert!(attacked.processor < most, "{kilobytes} kB {attacked:?}");
    }
    assert_no_thread_was_busy();
}

/// A slow check delayed the publishes of others by its whole duration.
// req: S-276
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_that_has_ended_computes_nothing() {
    let site = Site::new(&[]).await;
    let prompt = |n: usize| {
        let body = "{% for i in range(1000) %}{{ i }}{% endfor %}".repeat(20);
        let tests = "  - { contains: [\"x\"] }\n".repeat(200);
        file(&format!("slow_{n}.md"), &format!("---\ndescription: Slow\ntests:\n{tests}---\n{body}\n"))
    };
    let changes: Vec<Value> = (0..100).map(prompt).collect();
    let body = json!({ "channel": "production", "changes": changes }).to_string();
    let check = site.call(&Method::POST, "/api/v1/check", &[], body);
    let cut = tokio::time::timeout(Duration::from_secs(2), check).await;
    assert!(cut.is_err(), "the check takes longer");
    let took = until_idle().await;
    assert!(took < Duration::from_secs(5), "it went on for {took:?}");
    drop(site.folder);
}
