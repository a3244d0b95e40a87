//! Requests that once stopped a server.

use std::{sync::Arc, time::Duration};

use axum::http::Method;
use promptshelf_server::{
    Library,
    api::Versions,
    channels::{FollowOptions, Follower, LibraryChecker, StoreHandle},
    http::{self, Channel, Options},
};
use promptshelf_store::{Actor, Change, ChannelName, Digest, Publish, RevisionKind, Store, StoreUrl};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{HELLO, SLOWER, Site, TURN, cost, until_idle};

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
            // What is refused was not read; files that are checked share their bytes.
            let most = if status == 400 { 100 } else { 60 };
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
}

/// A partial of 40 kB with a mistake at each word, included by 600 prompts, took 2.3 GB: each prompt has all its findings.
// req: S-390
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mistakes_of_a_partial_are_not_multiplied() {
    let site = Site::new(&[]).await;
    let mut changes: Vec<Value> = (0..600).map(|n| file(&format!("p{n}.md"), "{% include \"_words.md\" %}")).collect();
    changes.push(file("_words.md", &"{{ a }}".repeat(5_000)));
    let body = json!({ "channel": "production", "changes": changes });
    let (answer, attacked) = cost(site.post("/api/v1/check", &body)).await;
    let text = answer.expect(200).text();
    assert!(text.contains("`a` is used but not declared"), "{text}");
    assert!(attacked.memory < 40 << 20, "{attacked:?}");
    assert!(attacked.processor < Duration::from_millis(400) * SLOWER, "{attacked:?}");
}

/// The place of each argument was searched among those of all others.
// req: S-390
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn places_of_many_parts_are_not_searched_one_by_one() {
    let site = Site::new(&[]).await;
    let mut times = Vec::new();
    for count in [2_500, 20_000] {
        let arguments: String = (0..count).map(|n| format!("  - {{ name: a{n} }}\n")).collect();
        let text = format!("---\ndescription: Many\narguments:\n{arguments}---\nHello\n");
        let body = json!({ "channel": "production", "changes": [file("many.md", &text)] });
        let (_, attacked) = cost(site.post("/api/v1/check", &body)).await;
        times.push(attacked.processor);
    }
    assert!(times[1] < times[0] * 20, "eight times as many: {times:?}");
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

/// A request of 100 bytes loaded a whole revision, and the versions of one caller delayed those of others.
// req: S-352
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn earlier_version_is_read_without_the_rest_of_its_revision() {
    const OTHERS: usize = 400;
    const VERSIONS: u64 = 5;
    let _turn = TURN.lock().await;
    let folder = TempDir::new().expect("a folder");
    let url: StoreUrl = format!("sqlite:{}", folder.path().join("team.db").display()).parse().expect("a URL");
    let store = Store::create(&url).await.expect("a store");
    let hello = |version: u64| format!("Hello {version}, {{% include \"_part.md\" %}}.\n");
    let new = |path: String, text: &str| Change { path, before: None, after: Some(text.as_bytes().into()) };
    let mut changes: Vec<Change> = (0..OTHERS).map(|n| new(format!("other{n}.md"), HELLO)).collect();
    changes.extend([new("hello.md".to_owned(), &hello(1)), new("_part.md".to_owned(), "and so on")]);
    for version in 1..=VERSIONS {
        let publish = Publish {
            channel: ChannelName::production(),
            base: version - 1,
            kind: RevisionKind::Publish,
            message: "A change".to_owned(),
            proposal: None,
            expected: None,
            emergency: None,
            changes: std::mem::take(&mut changes),
            dry_run: false,
        };
        let ada = Actor { name: "ada".to_owned(), may_publish: true, may_administer: true, review_roles: None };
        store.publish(publish, &ada, Arc::new(LibraryChecker::new())).await.expect("it is valid");
        let (before, after) = (Some(Digest::of(hello(version).as_bytes())), hello(version + 1));
        changes.push(Change { path: "hello.md".to_owned(), before, after: Some(after.as_bytes().into()) });
    }
    let handle = StoreHandle::new(url);
    let follower =
        Follower::start(FollowOptions::new(handle.clone(), ChannelName::production())).await.expect("it exists");
    let library = Library::builder().source(follower.source().clone()).build().expect("a library");
    let monitor = follower.monitor().clone();
    let served = Channel { name: "production".to_owned(), library, monitor };
    let mut options = Options::default();
    options.versions = Some(Versions::new(handle, Vec::new()));
    let site = Site { router: http::router_with_channels(&served, &[], &options), folder, _turn };
    for version in 1..VERSIONS {
        let path = format!("/api/v1/prompts/hello?version={version}&rendered=true");
        let (answer, attacked) = cost(site.call(&Method::GET, &path, &[], String::new())).await;
        assert!(answer.expect(200).text().contains(&format!("Hello {version}, and so on.")));
        assert!(attacked.processor < Duration::from_millis(5) * SLOWER, "{version}: {attacked:?}");
        assert!(attacked.memory < 1 << 20, "{version}: {attacked:?}");
    }
}
