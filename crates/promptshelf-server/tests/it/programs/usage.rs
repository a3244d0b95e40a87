//! Figures of usage: in memory, in a store that is away for a while, and in the API.

use std::time::Duration;

use promptshelf_server::{
    Library,
    channels::StoreHandle,
    http::{Options, router},
    usage::UsageLog,
};
use promptshelf_service::Usage;
use promptshelf_source::{Files, MemoryTree};
use promptshelf_store::{Store, StoreUrl};
use serde_json::json;
use tempfile::TempDir;

use super::{Answer, Router, answer, sign_in};

const KEEP: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A server of a folder that counts its calls.
fn server(store: Option<StoreHandle>, min_callers: u64, signed_in: bool) -> (Router, UsageLog) {
    let ask = "---\narguments:\n  - name: what\n    required: true\n  - name: how\n---\n{{ what }}{{ how }}\n";
    let tree: MemoryTree = [("ask.md", ask)].into_iter().collect();
    let usage = Usage::new();
    let log = UsageLog::new(&usage, store, KEEP, min_callers);
    let library = Library::builder().source(Files::tree(tree)).usage(usage).build().expect("a library");
    let mut options = Options::default();
    options.usage = Some(log.clone());
    options.sign_in = signed_in.then(sign_in);
    (router(&library, &options), log)
}

async fn get(router: &Router, agent: &str, path: &str) -> Answer {
    answer(router, &format!("/api/v1/{path}"), &[("user-agent", agent), ("authorization", "Bearer psk_ada")]).await
}

#[tokio::test]
async fn report_counts_calls_by_client_and_outcome() {
    let (router, _) = server(None, 5, false);
    for _ in 0..3 {
        get(&router, "ci/1.0 (linux)", "prompts/ask?rendered=true&arguments.what=secret").await.expect(200);
    }
    get(&router, "ci/1.1", "prompts/ask?rendered=true").await.expect(422);
    get(&router, "editor", "prompts/ask").await.expect(200);
    get(&router, "editor", "prompts/none").await.expect(404);
    let report = get(&router, "", "usage?since=1h").await.expect(200);
    assert!(!report.body.contains("secret") && !report.body.contains("none"), "{report:?}");
    let report = report.json();
    let rows: Vec<_> = report["prompts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| {
            json!([
                row["name"],
                row["version"],
                row["client"],
                row["method"],
                row["outcome"],
                row["count"],
                row["callers"]
            ])
        })
        .collect();
    assert_eq!(
        json!(rows),
        json!([
            ["ask", null, "ci", "prompts/get", "invalid-arguments", 1, null],
            ["ask", null, "ci", "prompts/get", "ok", 3, null],
            ["ask", null, "editor", "prompts/describe", "ok", 1, null],
        ])
    );
    assert_eq!(report["prompts"][0]["leftOut"], json!({ "how": 1, "what": 1 }));
    assert!(report["prompts"][1]["bytesOut"].as_u64() > Some(0), "{report}");
    assert_eq!(report["prompts"][1]["forms"], json!({ "accepted": 0, "declined": 0, "cancelled": 0 }));
    assert!(report["prompts"][1]["p50Ms"].as_f64() <= report["prompts"][1]["p95Ms"].as_f64());
    let detail = get(&router, "", "usage?detail=true&prompt=ask").await.expect(200).json();
    assert_eq!(
        (&detail["prompts"][0]["clientVersion"], &detail["prompts"][1]["protocol"]),
        (&json!("1.0"), &json!("http"))
    );
    assert_eq!(get(&router, "", "usage?prompt=other").await.expect(200).json()["prompts"], json!([]));
    for query in ["since=soon", "since=-1d", "since=1mo", "before=1d"] {
        get(&router, "", &format!("usage?{query}")).await.expect(400);
    }
    // One caller is shown if the operator says so.
    let (router, _) = server(None, 1, false);
    get(&router, "ci", "prompts/ask").await.expect(200);
    assert_eq!(get(&router, "", "usage").await.json()["prompts"][0]["callers"], 1);
}

// req: S-188
#[tokio::test]
async fn report_needs_the_scope_for_reading() {
    let (router, _) = server(None, 5, true);
    let refused = get(&router, "ci", "usage").await;
    assert_eq!(refused.status, 403);
    assert!(refused.header("www-authenticate").contains("library:read"), "{refused:?}");
    let rita = [("authorization", "Bearer psk_rita")];
    answer(&router, "/api/v1/usage", &rita).await.expect(200);
}

// req: S-205, S-553
#[tokio::test]
async fn overview_lists_only_unused_and_replacing_prompts_that_the_reader_sees() {
    let tree: MemoryTree = [
        ("ask.md", "---\narguments:\n  - name: what\n    required: true\n---\n{{ what }}\n"),
        ("old.md", "---\ndeprecated: { replacement: new }\n---\nOld\n"),
        ("older.md", "---\ndeprecated: { message: Ends, replacement: hidden }\n---\nOlder\n"),
        ("new.md", "New\n"),
        ("hidden.md", "---\naccess: { roles: [editor] }\n---\nHidden\n"),
    ]
    .into_iter()
    .collect();
    let usage = Usage::new();
    let log = UsageLog::new(&usage, None, KEEP, 5);
    let library = Library::builder().source(Files::tree(tree)).usage(usage).build().expect("a library");
    let mut options = Options::default();
    options.usage = Some(log);
    options.sign_in = Some(sign_in());
    let router = router(&library, &options);
    let rita = async |path: &str| {
        let headers = [("user-agent", "ci/1.0"), ("authorization", "Bearer psk_rita")];
        answer(&router, &format!("/api/v1/{path}"), &headers).await
    };
    for _ in 0..2 {
        rita("prompts/old?rendered=true").await.expect(200);
    }
    let older = rita("prompts/older").await.expect(200).json();
    assert_eq!(older["deprecated"], json!({ "message": "Ends", "replacement": null }));
    rita("prompts/ask?rendered=true").await.expect(422);
    let overview = rita("usage/overview").await.expect(200).json();
    assert_eq!(overview["unused"], json!(["new"]), "{overview}");
    assert_eq!(overview["unusedTotal"], 1);
    assert_eq!(
        overview["deprecated"],
        json!([
            { "name": "old", "calls": 2, "clients": 1, "replacement": "new" },
            { "name": "older", "calls": 1, "clients": 1, "replacement": null },
        ])
    );
    let count = |group: &serde_json::Value| json!([group["name"], group["calls"], group["failed"], group["callers"]]);
    assert_eq!(count(&overview["total"]), json!(["", 4, 1, null]));
    assert_eq!(count(&overview["clients"][0]), json!(["ci", 4, 1, null]));
    assert_eq!(count(&overview["prompts"][0]), json!(["old", 2, 0, null]));
    assert_eq!(count(&overview["outcomes"][1]), json!(["invalid-arguments", 1, 1, null]));
    assert_eq!((&overview["days"][0]["calls"], &overview["days"][1]), (&json!(4), &json!(null)));
    let one = rita("usage/overview?prompt=ask&since=7d").await.expect(200).json();
    assert_eq!((count(&one["total"]), &one["unused"]), (json!(["", 1, 1, null]), &json!([])));
    rita("usage/overview?since=soon").await.expect(400);
    let ada = [("authorization", "Bearer psk_ada")];
    answer(&router, "/api/v1/usage/overview", &ada).await.expect(403);
    // The use of a closed prompt is not shown; a refused request for it looks like one for a name that does not exist.
    answer(&router, "/api/v1/prompts/hidden?rendered=true", &ada).await.expect(200);
    rita("prompts/hidden?rendered=true").await.expect(404);
    rita("prompts/missing?rendered=true").await.expect(404);
    let overview = rita("usage/overview").await.expect(200).json();
    let calls = |name: &str| {
        let groups = overview["prompts"].as_array().expect("groups");
        groups.iter().find(|group| group["name"] == name).map(|group| group["calls"].clone())
    };
    assert_eq!(calls("hidden"), calls("missing"), "{overview}");
}

#[tokio::test]
async fn figures_wait_while_the_store_is_away_and_survive_a_clean_stop() {
    let folder = TempDir::new().expect("a folder");
    let url: StoreUrl = format!("sqlite:{}", folder.path().join("team.db").display()).parse().expect("a URL");
    let (router, log) = server(Some(StoreHandle::new(url.clone())), 5, false);
    get(&router, "ci", "prompts/ask").await.expect(200);
    assert_eq!(get(&router, "", "usage").await.status, 404, "there is no store yet");
    assert_eq!((log.loss().lost, log.loss().waiting), (0, 1), "a crash would lose one call");
    let store = Store::create(&url).await.expect("a store");
    get(&router, "ci", "prompts/ask").await.expect(200);
    log.finish().await;
    assert_eq!((log.loss().lost, log.loss().waiting), (0, 0));
    let figures = store.usage(&Default::default()).await.expect("figures");
    assert_eq!(figures.values().map(|figures| figures.count).sum::<u64>(), 2);

    // Without a store, the last write gives up and counts the lost calls.
    let missing: StoreUrl = format!("sqlite:{}", folder.path().join("none.db").display()).parse().expect("a URL");
    let (router, log) = server(Some(StoreHandle::new(missing)), 5, false);
    get(&router, "ci", "prompts/ask").await.expect(200);
    log.finish().await;
    assert_eq!((log.loss().lost, log.loss().waiting), (1, 0));
}
