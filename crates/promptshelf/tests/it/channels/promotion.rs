//! Promotion and rollback, of everything and of single prompts.

use serde_json::{Value, json};

use super::{BYE, HELLO, Team};

const SHARED: &str = "Be honest.\n";

/// A prompt with a partial.
fn with_partial(text: &str) -> String {
    format!("---\ndescription: {text}\n---\n{text} {{% include \"_shared/honest.md\" %}}\n")
}

fn names(published: &Value) -> Vec<&str> {
    let prompts = published["prompts"].as_array().expect("prompts");
    prompts.iter().map(|prompt| prompt["name"].as_str().expect("a name")).collect()
}

/// Creates a team with two prompts of one partial in `staging`, apart from revision 1 of production.
fn staged() -> Team {
    let team = Team::new();
    team.write(
        "prompts",
        &[
            ("one.md", &with_partial("One")),
            ("two.md", &with_partial("Two")),
            ("hello.md", HELLO),
            ("_shared/honest.md", SHARED),
        ],
    );
    for channel in ["production", "staging"] {
        team.ok(&["publish", "prompts", "-m", "First", "--channel", channel]);
    }
    team
}

#[test]
fn prompt_is_promoted_with_its_partial() {
    let team = staged();
    team.write(
        "prompts",
        &[("one.md", &with_partial("Uno")), ("_shared/honest.md", "Be very honest.\n"), ("hello.md", BYE)],
    );
    team.ok(&["publish", "prompts", "-m", "Second", "--channel", "staging"]);
    let promote = ["promote", "--from", "staging", "--to", "production", "--prompt", "one"];
    // The other prompt with the partial changes too, and is listed.
    let preview = team.json(&[&promote[..], &["--dry-run"]].concat());
    assert_eq!(names(&preview), ["one", "two"]);
    assert_eq!(team.revision("production"), 1);
    let promoted = team.json(&[&promote[..], &["-m", "Only one"]].concat());
    assert_eq!((&promoted["channel"], &promoted["revision"]), (&json!("production"), &json!(2)));
    assert_eq!(names(&promoted), ["one", "two"]);
    team.ok(&["pull", "sqlite:team.db", "live"]);
    assert!(team.read("live/one.md").contains("Uno") && team.read("live/_shared/honest.md").contains("very"));
    assert_eq!(team.read("live/hello.md"), HELLO);
    assert_eq!(team.json(&["history"])["items"][0]["kind"], "promote");
    let all = team.json(&["promote", "--from", "staging", "--to", "production", "-m", "The rest"]);
    assert_eq!((names(&all), &all["revision"]), (vec!["hello"], &json!(3)));
    let again = team.ok(&["promote", "--from", "staging", "--to", "production", "-m", "Nothing"]);
    assert!(again.starts_with("no changes"), "{again}");
}

#[test]
fn promotion_creates_the_channel_and_obeys_its_policy() {
    let team = staged();
    assert_eq!(team.json(&["promote", "--from", "staging", "--to", "canary", "-m", "New"])["revision"], 1);
    team.policy(&["--approvals", "1"]);
    team.write("prompts", &[("hello.md", BYE)]);
    team.ok(&["publish", "prompts", "-m", "Second", "--channel", "staging"]);
    let open = team.json(&["promote", "--from", "staging", "--to", "production", "-m", "Release"]);
    assert_eq!((&open["state"], &open["revision"]), (&json!("open"), &Value::Null));
    let number = open["proposal"].to_string();
    assert_eq!(team.approve(&[&number, "--as", "bob"])["revision"], 2);
    team.fails("7", &["promote", "--from", "nowhere", "--to", "production", "-m", "x"]);
    team.fails("7", &["promote", "--from", "staging", "--to", "production", "--prompt", "nothing", "-m", "x"]);
    team.fails("2", &["promote", "--from", "staging", "--to", "staging", "-m", "x"]);
}

// req: S-294
#[test]
fn promotion_keeps_what_only_the_target_has() {
    let team = staged();
    team.ok(&["promote", "--from", "staging", "--to", "production", "--all", "-m", "Same"]);
    team.write("prompts", &[("own.md", HELLO), ("hello.md", BYE)]);
    team.ok(&["publish", "prompts", "-m", "Hot fix"]);
    let promote = ["promote", "--from", "staging", "--to", "production", "-m", "Next"];
    assert!(team.ok(&promote).starts_with("no changes"));
    std::fs::remove_file(team.path("prompts/own.md")).expect("a file");
    team.write("prompts", &[("hello.md", HELLO), ("one.md", &with_partial("Uno"))]);
    team.ok(&["publish", "prompts", "-m", "Second", "--channel", "staging"]);
    let promoted = team.ok(&promote);
    assert!(promoted.contains("stays as it is in production, and not as in staging: hello, own"), "{promoted}");
    // Now both have changed it.
    team.write("prompts", &[("hello.md", &HELLO.replace("hello", "hi"))]);
    team.ok(&["publish", "prompts", "-m", "Third", "--channel", "staging"]);
    let conflict = team.fails("14", &promote);
    assert!(conflict.contains("hello.md") && conflict.contains("--all"), "{conflict}");
    let equal = team.ok(&[&promote[..], &["--all"]].concat());
    assert!(equal.contains("own") && !equal.contains("stays"), "{equal}");
    // Back to the hot fix.
    let back = team.ok(&["rollback", "--to", "2", "-m", "Back"]);
    assert!(back.contains("(older)"), "{back}");
}

// req: S-95
#[test]
fn two_promotions_at_once_leave_one_version_live() {
    let team = staged();
    let canary = ["promote", "--from", "staging", "--to", "canary", "-m", "New"];
    team.ok(&canary);
    for round in 0..3 {
        for (channel, text) in [("staging", "Uno"), ("canary", "Eins")] {
            team.write("prompts", &[("one.md", &with_partial(&format!("{text} {round}")))]);
            team.ok(&["publish", "prompts", "-m", "Next", "--channel", channel, "--replace"]);
        }
        let before = team.revision("production");
        let codes = std::thread::scope(|scope| {
            let promotions = ["staging", "canary"].map(|from| {
                let team = &team;
                scope.spawn(move || team.run(&["promote", "--from", from, "--to", "production", "-m", "At once"]).code)
            });
            promotions.map(|promotion| promotion.join().expect("it ends"))
        });
        // Both in some order, or the later one notices the other.
        assert!(codes.iter().all(|code| matches!(code.as_str(), "0" | "14")), "{codes:?}");
        let published = codes.iter().filter(|code| *code == "0").count() as u64;
        assert!(published > 0, "{codes:?}");
        assert_eq!(team.revision("production"), before + published, "{codes:?}");
        let now = team.json(&["history", "one", "--at", "2999-01-01"]);
        assert_eq!(now["served"].as_array().map(Vec::len), Some(1), "{now}");
        let folder = format!("live-{round}");
        team.ok(&["pull", "sqlite:team.db", &folder]);
        let live = team.read(&format!("{folder}/one.md"));
        assert!([format!("Uno {round}"), format!("Eins {round}")].iter().any(|text| live.contains(text)), "{live}");
    }
}

#[test]
fn rollback_of_everything_makes_a_new_revision() {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.write("prompts", &[("hello.md", BYE), ("more.md", BYE)]);
    team.ok(&["publish", "prompts", "-m", "Worse"]);
    let preview = team.json(&["rollback", "--to", "1", "--dry-run"]);
    assert_eq!(names(&preview), ["hello", "more"]);
    let back = team.json(&["rollback", "--to", "1", "-m", "Back"]);
    assert_eq!((&back["state"], &back["revision"]), (&json!("published"), &json!(3)));
    let revisions = team.json(&["history"])["items"].clone();
    assert_eq!((&revisions[0]["kind"], &revisions[0]["number"]), (&json!("rollback"), &json!(3)));
    // Equal content has the number that it had.
    assert_eq!(
        revisions[0]["prompts"][0],
        json!({ "name": "hello", "version": 1, "previous": 2, "change": "changed" })
    );
    team.ok(&["pull", "sqlite:team.db", "live"]);
    assert_eq!(team.read("live/hello.md"), HELLO);
    assert!(!team.path("live/more.md").exists());
    assert!(team.ok(&["rollback", "--to", "1", "-m", "Again"]).starts_with("no changes"));
    team.fails("7", &["rollback", "--to", "99", "-m", "x"]);
}

#[test]
fn rollback_of_one_prompt_leaves_the_others() {
    let team = Team::with(&[("hello.md", HELLO), ("bye.md", BYE)]);
    team.write("prompts", &[("hello.md", &format!("{HELLO}More.\n")), ("bye.md", &format!("{BYE}More.\n"))]);
    team.ok(&["publish", "prompts", "-m", "Longer"]);
    let back = team.json(&["rollback", "--to", "1", "--prompt", "hello", "-m", "Shorter"]);
    assert_eq!(names(&back), ["hello"]);
    team.ok(&["pull", "sqlite:team.db", "live"]);
    assert_eq!(team.read("live/hello.md"), HELLO);
    assert!(team.read("live/bye.md").ends_with("More.\n"));
    team.fails("7", &["rollback", "--to", "1", "--prompt", "nothing", "-m", "x"]);
}

// req: S-578
#[test]
fn whoever_publishes_or_goes_back_learns_of_the_rollouts_of_the_channel() {
    let team = staged();
    team.write("prompts", &[("hello.md", BYE)]);
    assert!(!team.ok(&["publish", "prompts", "-m", "Second"]).contains("rollout"));
    team.ok(&["rollout", "start", "production", "--to", "staging", "--percent", "100"]);
    let told = "rollout: 100 % of the signed-in callers of production are served staging; ";
    let back = team.ok(&["rollback", "--to", "1", "-m", "Back"]);
    assert!(back.contains(told) && back.contains("rollout stop production` ends it"), "{back}");
    team.write("prompts", &[("hello.md", &BYE.replace("bye", "ciao"))]);
    let to = team.json(&["publish", "prompts", "-m", "Third", "--channel", "staging"]);
    assert_eq!(to["rollouts"], json!([{ "channel": "production", "to": "staging", "percent": 100 }]));
    team.ok(&["rollout", "stop", "production"]);
    assert_eq!(team.json(&["rollback", "--to", "2", "-m", "Forth"])["rollouts"], Value::Null);
}
