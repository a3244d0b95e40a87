//! `promptshelf rollout` with `--url`, and the routes behind it.

use std::fs;

use serde_json::{Value, json};

use super::{Caller, HELLO, Served, Team};
use crate::channels::webhooks::until;

const SETTINGS: &str = "[audit]\nfile = \"audit.jsonl\"\n\n[channels.next]\nusers = [\"bob\", \"ci\", \"root\"]\n\n\
    [rollout]\npercent = 50\nsteps = \"24h\"\nstop = { errors = \"2x\" }\n";

fn served() -> Served {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.ok(&["publish", "prompts", "--channel", "next", "-m", "Next", "--as", "ada"]);
    Served::with(team, SETTINGS)
}

/// Sends a change of the rollout of `production`, and returns status and answer.
fn patch(caller: &Caller<'_>, body: &Value) -> (u16, Value) {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let url = format!("{}/api/v1/channels/production/rollouts", caller.served.url());
    let token = format!("Bearer {}", caller.token);
    let request = agent.patch(url).header("Authorization", token).header("Content-Type", "application/json");
    let mut answer = request.send(body.to_string()).expect("an answer");
    let text = answer.body_mut().read_to_string().expect("text");
    (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

// req: S-220, S-221
#[test]
fn publishers_change_a_rollout_and_readers_see_it() {
    let served = served();
    let [ada, bob, ci, eve, root] = ["ada", "bob", "ci", "eve", "root"].map(|name| served.by(name));
    let list = |caller: &Caller<'_>| caller.json(&["rollout", "list"])["items"].clone();
    // Who may not publish does not begin one either, nor one to a channel that is closed to it.
    assert!(ci.fails("12", &["rollout", "start", "production", "--to", "next"]).contains("library:publish"));
    eve.fails("7", &["rollout", "start", "production", "--to", "next"]);
    ada.fails("12", &["rollout", "start", "production", "--to", "next"]);
    let begun = bob.json(&["rollout", "start", "production", "--to", "next"]);
    assert_eq!((&begun["changedBy"], &begun["state"]), (&json!("bob"), &json!("running")));
    assert_eq!((&begun["to"], &begun["percent"], &begun["next"]["percent"]), (&json!("next"), &json!(50), &json!(100)));
    assert_eq!((&begun["plan"]["errors"], &begun["plan"]["stepSeconds"]), (&json!(2.0), &json!(86_400)));
    assert_eq!((&begun["history"][0]["kind"], &begun["history"][0]["automatic"]), (&json!("begin"), &json!(false)));
    // A closed channel does not exist, and a reader changes nothing.
    assert_eq!((list(&ada), list(&eve)), (json!([]), json!([])));
    for words in [&["rollout", "set", "production", "75"][..], &["rollout", "stop", "production", "--to", "next"]] {
        eve.fails("7", words);
        assert!(ci.fails("12", words).contains("library:publish"));
    }
    root.ok(&["policy", "--channel", "production", "--roles", "publish=lead"]);
    assert!(bob.fails("13", &["rollout", "set", "production", "75"]).contains("lead"));
    root.ok(&["policy", "--channel", "production", "--roles", "publish="]);
    assert_eq!(list(&ci), json!([begun]), "nothing was changed");
    // The changes of a publisher are recorded with the name of the token.
    let set = bob.json(&["rollout", "set", "production", "75", "-m", "Looks good"]);
    assert_eq!((&set["percent"], &set["changedBy"], &set["reason"]), (&json!(75), &json!("bob"), &json!("Looks good")));
    let (status, problem) = patch(&bob, &json!({ "percent": 90, "seen": begun["changedAt"] }));
    assert_eq!((status, &problem["type"]), (412, &json!("urn:promptshelf:problem:precondition-failed")), "{problem}");
    assert_eq!(patch(&bob, &json!({ "percent": 90, "seen": set["changedAt"] })).0, 200);
    for body in [
        json!({ "percent": 101 }),
        json!({ "percent": -1 }),
        json!({}),
        json!({ "percent": 1, "share": 2 }),
        json!({ "state": "failed" }),
    ] {
        assert_eq!(patch(&bob, &body).0, 400, "{body}");
    }
    assert_eq!(patch(&bob, &json!({ "to": "production", "state": "stopped" })).0, 404);
    assert_eq!(bob.json(&["rollout", "stop", "production", "-m", "A complaint"])["state"], "stopped");
    // The same words have the same results with the store.
    assert_eq!(ci.json(&["rollout", "list"]), served.team.json(&["rollout", "list"]));
    let stopped = list(&ci)[0].clone();
    let kinds: Vec<&Value> = stopped["history"].as_array().expect("a list").iter().map(|one| &one["kind"]).collect();
    assert_eq!(kinds, ["stop", "set", "set", "begin"]);
    let shown = bob.ok(&["rollout", "list", "--history"]);
    assert!(shown.contains("production to next:") && shown.contains("A complaint"), "{shown}");
    // The figures of a row are those of the share before.
    assert!(shown.contains("  CALLS BEFORE  ERRORS BEFORE  ERRORS OF REST BEFORE  REASON"), "{shown}");
    for (method, caller, outcome, percent) in [
        ("api/change-rollout", "bob", "ok", json!(75)),
        ("api/change-rollout", "bob", "precondition-failed", json!(90)),
        ("api/start-rollout", "bob", "ok", json!(50)),
        ("api/change-rollout", "ci", "insufficient-scope", Value::Null),
    ] {
        let is_it = |line: &Value| {
            (&line["method"], &line["caller"], &line["outcome"], &line["percent"])
                == (&json!(method), &json!(caller), &json!(outcome), &percent)
        };
        let line = until(&format!("{method} by {caller}: {outcome}"), || {
            let audit = fs::read_to_string(served.team.path("ops/audit.jsonl")).unwrap_or_default();
            // The last line may be half written.
            audit.lines().filter_map(|line| serde_json::from_str(line).ok()).find(is_it)
        });
        let places = (&line["channel"], &line["to"]);
        assert!(outcome != "ok" || places == (&json!("production"), &json!("next")), "{line}");
    }
}

/// Who is told that a channel does not exist may only lack a role: the operator learns it, and not at each request.
#[test]
fn hidden_channel_is_named_in_the_log() {
    let served = served();
    let ada = served.by("ada");
    for _ in 0..2 {
        assert!(ada.fails("7", &["history", "--channel", "next"]).contains("does not exist"));
    }
    let mut log = String::new();
    until("the line", || {
        log.extend(served.server.log.try_iter());
        log.contains("hidden from this caller").then_some(())
    });
    ada.ok(&["history"]);
    log.extend(served.server.log.try_iter());
    let lines: Vec<&str> =
        log.split("INFO").filter(|line| line.contains("the channel next is hidden from this caller")).collect();
    assert!((1..=10).contains(&lines.len()), "{log}");
    let has = |text: &str| lines.iter().all(|line| line.contains(text));
    assert!(has("ada") && has("[channels.next]") && has("it is none of the users"), "{log}");
}
