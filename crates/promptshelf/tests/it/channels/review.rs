//! Policies, proposals, approvals and rejections.

use std::fs;

use serde_json::{Value, json};

#[cfg(unix)]
use promptshelf_testkit::terminal::{CTRL_C, Terminal};

use super::{BYE, HELLO, Ran, Team};
use crate::program::shown;

/// Creates a team whose channel needs an approval, with the open proposal 2 of ada.
fn reviewed() -> Team {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.policy(&["--approvals", "1", "--four-eyes", "on"]);
    team.write("prompts", &[("bye.md", BYE)]);
    assert_eq!(team.json(&["publish", "prompts", "-m", "Partings", "--as", "ada"])["state"], "open");
    team
}

#[test]
fn approval_publishes_with_four_eyes() {
    let team = reviewed();
    let listed = team.ok(&["proposals"]);
    assert!(listed.contains("Partings") && listed.contains("lacks: ") && listed.contains("next: "), "{listed}");
    let error = team.approve_fails("13", &["2", "--as", "ada"]);
    assert!(error.contains("own proposal"), "{error}");
    assert_eq!(team.revision("production"), 1);
    let shown = team.ok(&["proposals", "2"]);
    assert!(shown.contains("+Say goodbye.") && shown.contains("approve 2 --digest "), "{shown}");
    let approved = team.approve(&["2", "--as", "bob"]);
    assert_eq!(approved, json!({ "channel": "production", "proposal": 2, "state": "published", "revision": 2 }));
    let history = team.json(&["history"]);
    assert_eq!((&history["items"][0]["author"], &history["items"][0]["approvedBy"]), (&json!("ada"), &json!(["bob"])));
    assert_eq!(team.json(&["proposals"]), json!({ "items": [], "next": null }));
    team.approve_fails("14", &["2", "--as", "eve"]);
    team.fails("7", &["approve", "99", "--as", "eve", "--digest", "01234567"]);
}

#[test]
fn approval_is_of_exactly_the_reviewed_changes() {
    let team = reviewed();
    let digest = |team: &Team| {
        team.json(&["proposals", "2"])["proposal"]["digest"].as_str().map(str::to_owned).expect("a digest")
    };
    team.policy(&["--approvals", "2"]);
    assert_eq!(team.approve(&["2", "--as", "bob"])["state"], "open");
    let seen = digest(&team);
    team.write("prompts", &[("bye.md", &format!("{BYE}Twice.\n"))]);
    let changed = team.json(&["publish", "prompts", "-m", "Longer", "--as", "ada", "--proposal", "2"]);
    assert_eq!((&changed["proposal"], &changed["state"]), (&json!(2), &json!("open")));
    let error = team.fails("14", &["approve", "2", "--as", "eve", "--digest", &seen]);
    assert!(error.contains("promptshelf proposals 2"), "{error}");
    // The earlier approval does not count any more.
    assert_eq!(team.json(&["approve", "2", "--as", "eve", "--digest", &digest(&team)[..8]])["state"], "open");
    assert_eq!(team.approve(&["2", "--as", "bob"])["state"], "published");
}

// req: S-293
#[test]
fn approval_without_a_digest_is_refused_in_a_script() {
    let team = reviewed();
    for words in [&["approve", "2", "--as", "bob"][..], &["approve", "2", "--as", "bob", "--emergency", "now"]] {
        let error = team.fails("2", words);
        assert!(error.contains("--digest") && error.contains("`promptshelf proposals 2`"), "{error}");
    }
    assert_eq!(team.revision("production"), 1);
}

/// The proposal 2 of ada, at a terminal of bob, up to the question.
#[cfg(unix)]
fn asked(team: &Team, words: &[&str]) -> (Terminal, String) {
    let mut terminal = Terminal::start(team.command(&[&["approve", "2", "--as", "bob"], words].concat()));
    let shown = terminal.wait_for("[y/N] ");
    (terminal, shown)
}

#[cfg(unix)]
fn answered(mut terminal: Terminal, answer: &str) -> (Option<i32>, String) {
    terminal.press(&format!("{answer}\r"));
    let (code, written) = terminal.end();
    (code, String::from_utf8_lossy(&written).into_owned())
}

// req: S-293
#[cfg(unix)]
#[test]
fn approval_without_a_digest_shows_the_changes_at_a_terminal_and_asks() {
    let team = reviewed();
    for answer in ["", "n", "2", "no"] {
        let (terminal, shown) = asked(&team, &[]);
        assert!(shown.contains("+Say goodbye.") && shown.contains("Partings"), "{shown}");
        assert!(shown.contains("Approve proposal 2 with these changes? "), "{shown}");
        let (code, written) = answered(terminal, answer);
        assert!(code == Some(1) && written.contains("proposal 2 was not approved"), "{answer}: {written}");
    }
    let (mut terminal, _) = asked(&team, &["--emergency", "outage"]);
    terminal.press(CTRL_C);
    assert_ne!(terminal.end().0, Some(0));
    // Changes that come between the question and the answer were not read.
    let (terminal, _) = asked(&team, &[]);
    team.write("prompts", &[("bye.md", &format!("{BYE}And pay.\n"))]);
    team.ok(&["publish", "prompts", "-m", "Longer", "--as", "ada", "--proposal", "2"]);
    let (code, written) = answered(terminal, "y");
    assert!(code == Some(14) && written.contains("promptshelf proposals 2"), "{written}");
    assert_eq!(team.revision("production"), 1);

    let (terminal, shown) = asked(&team, &[]);
    assert!(shown.contains("+And pay."), "{shown}");
    let (code, written) = answered(terminal, "y");
    assert!(code == Some(0) && written.contains("production is at revision 2"), "{written}");
    assert_eq!(team.json(&["history"])["items"][0]["approvedBy"], json!(["bob"]));
}

// req: S-290, S-295
#[cfg(unix)]
#[test]
fn each_effect_is_confirmed_by_name_at_a_terminal() {
    let closed = "---\ndescription: Pays\naccess:\n  roles: [boss]\n---\nPay.\n";
    let team = Team::with(&[("hello.md", HELLO), ("pay.md", closed)]);
    team.policy(&["--approvals", "1", "--four-eyes", "on"]);
    team.write("prompts", &[("pay.md", "---\ndescription: Pays\n---\nPay.\n")]);
    team.ok(&["publish", "prompts", "-m", "Open", "--as", "ada"]);
    let (terminal, shown) = asked(&team, &[]);
    assert!(shown.contains("opening: ") && shown.contains("Confirm `access-opened:pay`? "), "{shown}");
    let (code, written) = answered(terminal, "");
    assert!(code == Some(1) && written.contains("was not approved"), "{written}");
    let (mut terminal, _) = asked(&team, &[]);
    terminal.press("y\r");
    terminal.wait_for("Approve proposal 2 with these changes? ");
    terminal.wait_for("[y/N] ");
    let (code, written) = answered(terminal, "yes");
    assert!(code == Some(0) && written.contains("production is at revision 2"), "{written}");
    // What `--confirm` names is not asked about.
    team.write("prompts", &[("pay.md", closed)]);
    team.ok(&["publish", "prompts", "-m", "Close", "--emergency", "leak", "--as", "ada"]);
    team.write("prompts", &[("pay.md", "---\ndescription: Pays\n---\nPay.\n")]);
    team.ok(&["publish", "prompts", "-m", "Open", "--as", "ada"]);
    let words = ["approve", "4", "--as", "bob", "--confirm", "access-opened:pay"];
    let mut terminal = Terminal::start(team.command(&words));
    let shown = terminal.wait_for("[y/N] ");
    assert!(!shown.contains("Confirm `") && shown.contains("Approve proposal 4"), "{shown}");
    assert_eq!(answered(terminal, "y").0, Some(0));
}

#[test]
fn rejected_and_withdrawn_proposals_change_nothing() {
    let team = reviewed();
    let rejected = team.json(&["reject", "2", "-m", "Too short", "--as", "bob"]);
    assert_eq!((&rejected["state"], &rejected["revision"]), (&json!("rejected"), &Value::Null));
    assert!(team.ok(&["proposals", "2"]).contains("bob rejected"));
    team.approve_fails("14", &["2", "--as", "eve"]);
    assert_eq!(team.json(&["publish", "prompts", "-m", "Again", "--as", "ada"])["proposal"], 3);
    team.fails("14", &["reject", "3", "--withdraw", "--as", "bob"]);
    assert_eq!(team.json(&["reject", "3", "--withdraw", "--as", "ada"])["state"], "withdrawn");
    assert_eq!(team.revision("production"), 1);
}

#[test]
fn emergency_passes_the_policy_and_stands_out() {
    let team = reviewed();
    let published = team.approve(&["2", "--emergency", "outage 17", "--as", "ada"]);
    assert_eq!(published["state"], "published");
    assert_eq!(team.json(&["history"])["items"][0]["emergency"], "outage 17");
    assert!(team.ok(&["history"]).contains("EMERGENCY (outage 17)"));
    team.write("prompts", &[("bye.md", &format!("{BYE}Twice.\n"))]);
    let direct = team.json(&["publish", "prompts", "-m", "Fix", "--emergency", "outage 18"]);
    assert_eq!(direct["revision"], 3);
    team.fails("2", &["publish", "prompts", "-m", "Fix", "--emergency", " "]);
}

// req: S-256
#[test]
fn check_and_tests_hold_a_proposal_back() {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.write("prompts", &[("broken.md", "---\ndescription: x\n---\n{{ nobody }}\n")]);
    let dry = team.run(&["publish", "prompts", "--dry-run"]);
    assert_eq!(dry.code, "13", "{}{}", dry.stdout, dry.stderr);
    let refused = team.run(&["publish", "prompts", "-m", "Broken"]);
    assert_eq!(refused.code, "13");
    assert!(refused.stdout.contains("is open") && refused.stderr.contains("1 error"), "{refused:?}");
    assert!(refused.stderr.contains("--proposal 2"), "{refused:?}");
    team.approve_fails("13", &["2", "--as", "bob"]);
    // The proposal itself says what is wrong, and where.
    let shown = team.ok(&["proposals", "2"]);
    assert!(shown.contains("findings:\n  broken.md:4:") && shown.contains("nobody"), "{shown}");
    // No approval publishes it.
    assert!(shown.contains("next: its author corrects the files") && !shown.contains("approve 2"), "{shown}");
    let told = team.json(&["proposals", "2"])["proposal"]["findings"][0].clone();
    assert!(told.as_str().is_some_and(|found| found.starts_with("broken.md:4:")), "{told}");
    team.ok(&["publish", "prompts", "--dry-run", "--emergency", "outage"]);
    assert_eq!(team.revision("production"), 1);
    team.policy(&["--tests", "on"]);
    team.folder.remove("prompts/broken.md");
    let tested = "---\ndescription: Parts\ntests:\n  - name: short\n    contains: [farewell]\n---\nSay goodbye.\n";
    team.write("prompts", &[("bye.md", tested)]);
    let failed = team.run(&["publish", "prompts", "-m", "Untrue test"]);
    assert_eq!(failed.code, "13");
    assert!(failed.stdout.contains("1 of 1 test failed"), "{failed:?}");
    let shown = team.ok(&["proposals", "3"]);
    assert!(shown.contains("findings:\n  bye.md:") && shown.contains("the test bye / short failed"), "{shown}");
    assert!(shown.contains("\"farewell\" is missing\n"), "{shown}");
    team.write("prompts", &[("bye.md", &tested.replace("farewell", "goodbye"))]);
    assert_eq!(team.json(&["publish", "prompts", "-m", "True test"])["state"], "published");
}

#[test]
fn policies_are_shown_and_changed_one_by_one() {
    let team = Team::new();
    team.policy(&["--approvals", "2", "--checks", "warnings"]);
    team.policy(&["--tests", "on"]);
    let policy = team.json(&["policy", "--channel", "production"]);
    let expected = (&json!(2), &json!(false), &json!("warnings"), &json!(true));
    let policy = &policy["policy"];
    assert_eq!((&policy["approvals"], &policy["fourEyes"], &policy["checks"], &policy["tests"]), expected);
    team.ok(&["policy", "--channel", "staging", "--checks", "off"]);
    let all = team.ok(&["policy"]);
    assert!(all.contains("production") && all.contains("staging"), "{all}");
    team.fails("7", &["policy", "--channel", "nowhere"]);
    team.fails("2", &["policy", "--approvals", "1"]);
    team.fails("2", &["policy", "--channel", "Not a channel"]);
}

#[test]
fn overtaken_proposal_is_a_conflict() {
    let team = reviewed();
    team.write("other", &[("hello.md", HELLO), ("bye.md", "---\ndescription: Parts\n---\nFarewell.\n")]);
    team.ok(&["publish", "other", "-m", "Fix", "--emergency", "outage"]);
    team.approve_fails("14", &["2", "--as", "bob"]);
}

#[test]
fn init_that_publishes_nothing_fails() {
    let team = Team::without_store();
    std::fs::create_dir_all(team.path("empty")).expect("a folder");
    assert!(team.fails("3", &["init", "--from", "empty"]).contains("nothing was published"));
    let team = Team::without_store();
    team.write("prompts", &[("broken.md", "---\ndescription: x\n---\n{{ nobody }}\n")]);
    let refused = team.run(&["init", "--from", "prompts"]);
    assert_eq!(refused.code, "13", "{refused:?}");
}

// req: S-295
#[test]
fn publish_lists_what_breaks_and_what_opens() {
    let required = "---\ndescription: x\narguments:\n  - name: who\n    required: true\n---\nHello {{ who }}.\n";
    let closed = "---\ndescription: Pays\naccess:\n  roles: [boss]\n---\nPay.\n";
    let team = Team::with(&[("hello.md", &required.replace("true", "false")), ("pay.md", closed)]);
    team.write("prompts", &[("hello.md", required)]);
    let published = team.ok(&["publish", "prompts", "-m", "Who"]);
    assert!(published.contains("breaking: prompt hello: `who` became required"), "{published}");
    team.policy(&["--breaking", "off"]);
    team.write(
        "prompts",
        &[("hello.md", &required.replace("who", "name")), ("pay.md", &closed.replace("boss", "boss, hr"))],
    );
    let open = team.ok(&["publish", "prompts", "-m", "Name"]);
    assert!(open.contains("opening: `pay`: it is open to") && open.contains("has to confirm"), "{open}");
    let shown = team.ok(&["proposals", "3"]);
    let next = shown.lines().find_map(|line| line.strip_prefix("next: `promptshelf ")).expect("a suggestion");
    assert!(next.contains("--confirm"), "{next}");
    assert_eq!(team.approve(&["3", "--as", "bob"])["state"], "open", "no name was confirmed");
    let words: Vec<&str> = next.trim_end_matches('`').split(' ').collect();
    let approved = team.json(&[&words[..], &["--as", "bob"]].concat());
    assert_eq!((&approved["state"], &approved["revision"]), (&json!("published"), &json!(3)));
    assert_eq!(approved["effects"][0]["name"], "access-opened:pay");
}

// req: S-503
#[test]
fn rules_of_the_operator_hold_for_commands_on_the_store() {
    let text = "---\ndescription: Pays\n---\nPay.\n";
    let team = Team::with(&[("hello.md", HELLO), ("private/pay.md", text)]);
    team.policy(&["--approvals", "1"]);
    team.write("ops", &[("server.toml", "[[access]]\nfolders = [\"private\"]\nroles = [\"boss\"]\n")]);
    fs::remove_file(team.path("prompts/private/pay.md")).expect("it is there");
    team.write("prompts", &[("pay.md", text)]);
    let words = ["publish", "prompts", "-m", "Move", "--as", "ada", "--json"];
    let openings = |config: Option<&str>| {
        let mut command = team.command(&[&words[..], &["--dry-run"]].concat());
        command.envs(config.map(|file| ("PROMPTSHELF_CONFIG", team.path(file))));
        let ran = Ran::of(&shown(command, ""));
        let published: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        let lacks = published["lacks"].as_array().cloned().unwrap_or_default();
        lacks.iter().filter(|lack| lack.as_str().is_some_and(|lack| lack.contains("pay.md"))).count()
    };
    assert_eq!(openings(None), 0);
    assert!(openings(Some("ops/server.toml")) > 0);
}
