//! Figures of usage from requests to the command, through a store.

use std::process::Command;

use promptshelf_testkit::{client::Client, http::HttpWire};
use serde_json::{Value, json};

use super::{BYE, HELLO, Team};

/// Calls of a client of each era, and of a program.
pub(super) async fn calls(serve: Command) {
    let wire = HttpWire::program(serve.into()).await;
    let address = wire.address();
    let mut client = Client::over_http(wire, "2026-07-28").await;
    for _ in 0..3 {
        client.text("hello", &json!({ "name": "a secret" })).await;
    }
    let refused = client.request("prompts/get", json!({ "name": "hello", "arguments": {} })).await;
    assert!(refused["error"].is_object(), "{refused}");
    let answer = ureq::get(format!("http://{address}/api/v1/prompts/bye")).header("user-agent", "ci/2.0").call();
    assert_eq!(answer.expect("an answer").status(), 200);
    // A clean stop writes all figures.
    client.end().await;
}

#[tokio::test]
async fn usage_lists_the_calls_of_every_client() {
    let team = Team::with(&[("hello.md", HELLO), ("bye.md", BYE)]);
    assert_eq!(team.json(&["usage"])["items"], json!([]));
    calls(team.command(&["serve", &team.store, "--http", "127.0.0.1:0"])).await;
    let report = team.json(&["usage", "--min-callers", "1", "--detail"]);
    let rows: Vec<Value> = report["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| {
            json!([
                row["name"],
                row["version"],
                row["channel"],
                row["protocol"],
                row["outcome"],
                row["count"],
                row["callers"]
            ])
        })
        .collect();
    assert_eq!(
        json!(rows),
        json!([
            ["bye", 1, "production", "http", "ok", 1, 1],
            ["hello", 1, "production", "2026-07-28", "invalid-arguments", 1, 1],
            ["hello", 1, "production", "2026-07-28", "ok", 3, 1],
        ]),
        "{report}"
    );
    assert_eq!((&report["items"][0]["client"], &report["items"][0]["clientVersion"]), (&json!("ci"), &json!("2.0")));
    assert_eq!(report["items"][1]["leftOut"], json!({ "name": 1 }));
    assert_eq!(team.json(&["usage", "hello"])["items"][1]["callers"], Value::Null);
    let csv = team.ok(&["usage", "bye", "--csv"]);
    assert!(csv.starts_with("name,version,channel,client,") && csv.contains("\nbye,1,production,ci,"), "{csv}");
    let table = team.ok(&["usage"]);
    assert!(table.contains("PROMPT") && table.contains("few") && !table.contains("secret"), "{table}");
    assert!(team.fails("2", &["usage", "--since", "soon"]).contains("such as 90d"));

    // Prompts that are deprecated now are marked, and those without calls are listed.
    let deprecated = BYE.replacen("---\n", "---\ndeprecated: { replacement: hello }\n", 1);
    team.write("prompts", &[("bye.md", &deprecated), ("new.md", "New\n"), ("other.md", "Other\n")]);
    team.ok(&["publish", "prompts", "-m", "Deprecate", "--as", "ada"]);
    let report = team.json(&["usage"]);
    assert_eq!((&report["unused"], &report["unusedTotal"]), (&json!(["new", "other"]), &json!(2)), "{report}");
    let marks: Vec<_> = report["items"].as_array().expect("a list").iter().map(|row| &row["deprecated"]).collect();
    assert_eq!(marks, [true, false, false], "{report}");
    let table = team.ok(&["usage"]);
    assert!(table.contains("bye (deprecated)  production  1"), "{table}");
    assert!(table.ends_with("\nnot called in this time: new, other\n"), "{table}");
    assert_eq!(team.json(&["usage", "hello"])["unused"], json!([]));
    assert!(team.ok(&["usage", "bye", "--csv"]).ends_with(",true,\n"));
}

#[tokio::test]
async fn change_names_the_recent_calls_that_it_breaks() {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.write("prompts", &[("bye.md", BYE)]);
    team.ok(&["publish", "prompts", "-m", "Second", "--as", "ada"]);
    calls(team.command(&["serve", &team.store, "--http", "127.0.0.1:0"])).await;
    let gone =
        "  breaking: prompt bye: is gone: callers will fail\n      called once by 1 client in the last 30 days\n";
    let back = team.ok(&["rollback", "--to", "1", "--dry-run"]);
    assert!(back.contains(gone) && !back.contains("prompt hello"), "{back}");
    team.ok(&["publish", "prompts", "--channel", "staging", "-m", "First", "--as", "ada"]);
    // `name` is no longer sent, a new argument is required, and `bye` is gone.
    let changed = HELLO.replace("name: name", "name: person").replace("{{ name }}", "{{ person }}");
    team.write("prompts", &[("hello.md", &changed)]);
    std::fs::remove_file(team.path("prompts/bye.md")).expect("a file");
    let printed = team.ok(&["publish", "prompts", "--dry-run"]);
    for line in [
        gone,
        "called 3 times by 1 client in the last 30 days\n",
        "      100 % of calls send it (3 of 3 in the last 30 days, 1 client)\n",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    let json = team.json(&["publish", "prompts", "--dry-run"]);
    let recent = json!({ "which": "all", "argument": null, "calls": 1, "affected": 1, "clients": 1 });
    assert_eq!(json["differences"][0]["recent"], recent, "{json}");
    assert!(team.ok(&["diff", "production", "./prompts", "--rendered"]).contains("called once by 1 client"));
    team.ok(&["policy", "--channel", "production", "--approvals", "1"]);
    team.ok(&["publish", "prompts", "-m", "Rename", "--as", "ada"]);
    assert!(team.ok(&["proposals", "4"]).contains("100 % of calls send it"));
    // Another channel has no calls.
    let other = team.ok(&["publish", "prompts", "--channel", "staging", "--dry-run"]);
    assert!(other.contains("not called in the last 30 days") && !other.contains("1 client"), "{other}");
    // A promotion has the effect of a publish; of one prompt, that of its files.
    team.ok(&["publish", "prompts", "--channel", "staging", "-m", "Rename", "--as", "ada"]);
    let promote = ["promote", "--from", "staging", "--to", "production", "--dry-run"];
    let promoted = team.ok(&promote);
    assert!(promoted.contains(gone) && promoted.contains("100 % of calls send it (3 of 3"), "{promoted}");
    let one = team.json(&[&promote[..], &["--prompt", "hello"]].concat());
    let names: Vec<_> = one["differences"].as_array().expect("a list").iter().map(|found| &found["name"]).collect();
    assert!(!names.is_empty() && names.iter().all(|name| **name == "hello"), "{one}");
    // A publish says the same, and not only before it.
    team.ok(&["policy", "--channel", "production", "--approvals", "0"]);
    let published = team.ok(&["publish", "prompts", "-m", "Now"]);
    assert!(published.starts_with("published: ") && published.contains(gone), "{published}");
    let new = "  breaking: prompt hello: `person` is new and required: callers that do not send it will fail\n      \
               called 3 times by 1 client in the last 30 days\n";
    assert!(published.contains(new), "{published}");
}
