//! Evaluations with real programs, and the release gate that rests on them.

use std::{fs, time::Instant};

use promptshelf_testkit::folder::repository;

use serde_json::{Value, json};
use sqlx::Connection as _;

use super::{BYE, HELLO, Ran, Team};
use crate::program::{PATIENCE, shown};

/// A prompt with a test that makes a case, one that expects an error, and one that only completes.
const TESTED: &str = "---\ndescription: Greets\narguments:\n  - name: name\n    required: true\ntests:\n  - name: Ada\n    arguments: { name: Ada }\n    contains: [Ada]\n  - name: nobody\n    error: name\n---\nSay hello to {{ name }}.\n";

/// Settings with one evaluation for each script: name and timeout.
fn settings(team: &Team, evaluations: &[(&str, &str)]) {
    let section = |(name, timeout): &(&str, &str)| {
        format!(
            "[[evaluation]]\nname = \"{name}\"\nprogram = [\"sh\", \"{name}.sh\"]\ntimeout = \"{timeout}\"\n\
             thresholds = {{ score = 0.8 }}\n"
        )
    };
    team.write("ops", &[("server.toml", &evaluations.iter().map(section).collect::<String>())]);
}

/// Writes a program that prints a score for the prompt, and appends its input to `seen`.
fn judge(team: &Team, score: &str) {
    let script = format!(
        "cat >> seen\necho >> seen\necho '{{\"scores\":{{\"score\":{score}}},\"cases\":[{{\"score\":{score},\
         \"reason\":\"fine\"}}],\"model\":\"fake-1\",\"cost\":0.25}}'\n"
    );
    team.write("ops", &[("quality.sh", &script)]);
}

/// The inputs that the program has read.
fn seen(team: &Team) -> Vec<Value> {
    let text = fs::read_to_string(team.path("ops/seen")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// From the policy to the publish.
pub(super) fn gate_journey(team: &Team) {
    team.ok(&["init"]);
    team.write("prompts", &[("hello.md", TESTED)]);
    team.ok(&["publish", "prompts", "-m", "First"]);
    settings(team, &[("quality", "60s")]);
    let evaluate = |words: &[&'static str]| [&["evaluate", "--config", "ops/server.toml"], words].concat();
    team.policy(&["--evaluation", "quality", "--no-regression", "on", "--config", "ops/server.toml"]);
    let policy = team.ok(&["policy", "--channel", "production"]);
    assert!(policy.contains("evaluations quality") && policy.contains("no-regression on"), "{policy}");
    // A proposal without results stays open, and the message names the command.
    team.write("prompts", &[("hello.md", &TESTED.replace("Say", "Please say")), ("bye.md", BYE)]);
    assert_eq!(team.json(&["publish", "prompts", "-m", "Politer"])["state"], "open");
    let held = team.ok(&["proposals", "2"]);
    assert!(held.contains("`promptshelf evaluate hello --evaluation quality --proposal 2`"), "{held}");

    judge(team, "0.7");
    let failed = team.run(&evaluate(&["--proposal", "2"]));
    assert_eq!((failed.code.as_str(), failed.stderr.as_str()), ("1", ""), "{}", failed.stdout);
    assert!(failed.stdout.contains("FAILED bye / quality  score 0.7 (at least 0.8)  fake-1  cost 0.25"));
    assert!(failed.stdout.ends_with("2 results stored, 2 below a threshold\n"), "{}", failed.stdout);
    let inputs = seen(team);
    let hello = &inputs[1];
    assert_eq!((&hello["prompt"], &hello["version"]), (&json!("hello"), &json!(null)));
    assert_eq!(
        hello["cases"],
        json!([{
            "name": "Ada",
            "arguments": { "name": "Ada" },
            "messages": [{ "role": "user", "content": { "type": "text", "text": "Please say hello to Ada." } }],
        }])
    );
    assert_eq!(inputs[0]["cases"][0]["name"], "sample");
    let open = team.approve(&["2", "--as", "bob"]);
    assert_eq!(open["state"], "open");
    // Versions with a result are not evaluated again, and a result below its threshold is a failure still.
    let missing = team.run(&evaluate(&["--proposal", "2", "--missing"]));
    assert_eq!(missing.code, "1", "{}", missing.stdout);
    assert!(missing.stdout.ends_with("0 results stored, 2 earlier results below a threshold\n"), "{}", missing.stdout);
    judge(team, "0.9");
    let passed = team.json(&evaluate(&["--proposal", "2"]));
    assert_eq!(passed["evaluations"][1]["digest"], hello["digest"]);
    assert_eq!((&passed["errors"], passed["evaluations"].as_array().map(Vec::len)), (&json!([]), Some(2)));
    let held = team.ok(&["proposals", "2"]);
    assert!(held.contains("`promptshelf evaluate hello --evaluation quality --channel production`"), "{held}");
    judge(team, "0.95");
    assert_eq!(team.json(&evaluate(&["hello"]))["evaluations"][0]["scores"], json!({ "score": 0.95 }));
    assert!(team.ok(&["proposals", "2"]).contains("(score 0.9, served 0.95)"));
    team.ok(&evaluate(&["hello", "--proposal", "2"]));
    assert_eq!(team.approve(&["2", "--as", "bob"])["state"], "published");
    // Without requirements the next change is published at once.
    team.policy(&["--evaluation", ""]);
    team.write("prompts", &[("bye.md", &BYE.replace("Say", "Shout"))]);
    assert_eq!(team.json(&["publish", "prompts", "-m", "Louder"])["state"], "published");
}

#[test]
fn gate_holds_a_proposal_until_its_evaluations_pass() {
    gate_journey(&Team::without_store());
}

// req: S-269
#[test]
fn program_gets_named_variables_only() {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.write("ops", &[("quality.sh", "env > environment\necho '{\"scores\":{\"score\":1}}'\n")]);
    settings(&team, &[("quality", "60s")]);
    let file = team.read("ops/server.toml");
    team.write(
        "ops",
        &[(
            "server.toml",
            &format!("{file}environment = [\"MODEL_KEY\", \"ABSENT\"]\n").replace("thresholds = { score = 0.8 }\n", ""),
        )],
    );
    let mut command = team.command(&["evaluate", "--config", "ops/server.toml"]);
    for name in ["PROMPTSHELF_TOKEN", "PROMPTSHELF_STATE_KEY", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "MODEL_KEY"] {
        command.env(name, format!("value of {name}"));
    }
    let ran = Ran::of(&shown(command, ""));
    assert_eq!(ran.code, "0", "{}{}", ran.stdout, ran.stderr);
    let environment = team.read("ops/environment");
    assert!(environment.contains("MODEL_KEY=value of MODEL_KEY\n") && environment.contains("PATH="), "{environment}");
    for secret in ["PROMPTSHELF_", "PGPASSWORD", "AWS_", "ABSENT"] {
        assert!(!environment.contains(secret), "{environment}");
    }
}

// req: S-196
// req: S-269
#[tokio::test]
async fn failing_program_stores_nothing_and_leaves_no_process() {
    let team = Team::with(&[("hello.md", HELLO)]);
    let good = "echo '{\"scores\":{\"score\":1}}'\n";
    let scripts = [
        ("hangs", "sleep 600 & echo $! > hangs.pid\nwait\n".to_owned(), "did not end within 1s"),
        ("lingers", format!("sleep 600 & echo $! > lingers.pid\n{good}"), "held its output open"),
        ("leaves", format!("sleep 600 >&- 2>&- & echo $! > leaves.pid\nexit 7\n{good}"), "exit status: 7"),
        (
            "escapes",
            format!("setsid sh -c 'setsid sleep 600 & echo $! > escapes.pid; exit' >&- 2>&-\nsleep 0\n{good}exit 5\n"),
            "exit status: 5",
        ),
        ("floods", "yes '{\"scores\":'\n".to_owned(), "more than 1048576 bytes"),
        ("explains", format!("{good}echo 'no key \u{1b}[2J' >&2\nexit 3\n"), "no key \\u{1b}[2J"),
        ("crashes", format!("{good}kill -9 $$\n"), "signal: 9"),
        ("babbles", "echo 'score: 1'\n".to_owned(), "expected one JSON object on stdout"),
        ("divides", "echo '{\"scores\":{\"score\":NaN}}'\n".to_owned(), "expected one JSON object on stdout"),
        ("misnames", "echo '{\"scores\":{\"skore\":1}}'\n".to_owned(), "it printed `skore`"),
    ];
    for (name, script, _) in &scripts {
        team.write("ops", &[(&format!("{name}.sh"), script)]);
    }
    let sections: Vec<(&str, &str)> =
        scripts.iter().map(|(name, ..)| (*name, if *name == "hangs" { "1s" } else { "60s" })).collect();
    settings(&team, &sections);
    let missing = "[[evaluation]]\nname = \"missing\"\nprogram = [\"./no-such-program\"]\n";
    let file = team.read("ops/server.toml");
    team.write("ops", &[("server.toml", &format!("{file}{missing}"))]);
    let ran = team.run(&["evaluate", "--config", "ops/server.toml"]);
    assert_eq!(ran.code, "1", "{}{}", ran.stdout, ran.stderr);
    for (name, _, expected) in
        scripts.iter().map(|(a, b, c)| (*a, b.as_str(), *c)).chain([("missing", "", "cannot be started")])
    {
        let (_, rest) = ran.stdout.split_once(&format!("error  hello / {name}: ")).expect(name);
        let message = rest.split("\nerror  ").next().expect("a message");
        assert!(message.contains(expected), "{name}: {message}");
    }
    assert!(ran.stdout.ends_with("0 results stored, 11 evaluations without a result\n"), "{}", ran.stdout);
    let store = format!("sqlite:{}", team.path("team.db").display());
    let mut store = sqlx::SqliteConnection::connect(&store).await.expect("a connection");
    let count: (i64,) =
        sqlx::query_as("SELECT COUNT(*) FROM ps_evaluation").fetch_one(&mut store).await.expect("a row");
    assert_eq!(count.0, 0);
    for name in ["hangs", "lingers", "leaves"].into_iter().chain(cfg!(target_os = "linux").then_some("escapes")) {
        let id: i32 = team.read(&format!("ops/{name}.pid")).trim().parse().expect("an id");
        let id = rustix::process::Pid::from_raw(id).expect("an id");
        let started = Instant::now();
        // Killed processes wait for their new parent.
        while rustix::process::test_kill_process(id).is_ok() && !is_zombie(id) {
            assert!(started.elapsed() < PATIENCE, "the process of {name} still runs");
            std::thread::yield_now();
        }
    }
}

fn is_zombie(id: rustix::process::Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", id.as_raw_nonzero())).unwrap_or_default();
    status.contains("State:\tZ")
}

#[test]
fn result_of_changes_that_were_replaced_is_refused() {
    let team = Team::with(&[("hello.md", HELLO)]);
    settings(&team, &[("quality", "60s")]);
    team.policy(&["--evaluation", "quality", "--config", "ops/server.toml"]);
    team.write("prompts", &[("hello.md", &HELLO.replace("Say", "Please say"))]);
    team.ok(&["publish", "prompts", "-m", "Politer"]);
    // The proposal gets other changes while the program runs.
    team.write("ops", &[("hello.md", HELLO)]);
    fs::create_dir(team.path("ops/new")).expect("a folder");
    team.write("ops/new", &[("hello.md", &HELLO.replace("Say", "Shout"))]);
    let binary = env!("CARGO_BIN_EXE_promptshelf");
    let script = format!(
        "PROMPTSHELF_STORE=sqlite:../team.db '{binary}' publish new -m Other --as ada --proposal 2 --replace >&2 || exit 9\n\
         echo '{{\"scores\":{{\"score\":1}}}}'\n"
    );
    team.write("ops", &[("quality.sh", &script)]);
    let error = team.fails("14", &["evaluate", "--proposal", "2", "--config", "ops/server.toml"]);
    assert!(error.contains("the prompt `hello` has changed since it was read"), "{error}");
    let error = team.fails("14", &["evaluate", "--proposal", "1", "--config", "ops/server.toml"]);
    assert!(error.contains("proposal 1 is not open"), "{error}");
    assert!(team.ok(&["proposals", "2"]).contains("has no result of the evaluation `quality`"));
}

#[test]
fn mistakes_of_settings_and_names_are_explained() {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.write("ops", &[("empty.toml", "")]);
    let error = team.fails("4", &["evaluate", "--config", "ops/empty.toml"]);
    assert!(error.contains("has no evaluations") && error.contains("[[evaluation]]"), "{error}");
    let invalid = "[[evaluation]]\nname = \"a\"\nprogram = []\nthresholds = { score = nan }\n\
                   [[evaluation]]\nname = \"a\"\nprogram = [\"true\"]\ntolerance = -1\ntimeout = \"0s\"\n";
    team.write("ops", &[("invalid.toml", invalid)]);
    let error = team.fails("4", &["evaluate", "--config", "ops/invalid.toml"]);
    for expected in [
        "expected a program",
        "`score`: expected a number",
        "the name `a` already",
        "at least 0, got",
        "from 1s to 24h",
    ] {
        assert!(error.contains(expected), "{expected}: {error}");
    }
    settings(&team, &[("quality", "60s")]);
    let evaluate = |words: &[&'static str]| [&["evaluate", "--config", "ops/server.toml"], words].concat();
    assert!(team.fails("7", &evaluate(&["--evaluation", "speed"])).contains("it has `quality`"));
    assert!(team.fails("7", &evaluate(&["helo"])).contains("did you mean `hello`?"));
    team.fails("7", &evaluate(&["--proposal", "99"]));
    team.fails("2", &evaluate(&["--proposal", "1", "--channel", "staging"]));
}

// req: S-296
#[test]
fn policy_requires_only_evaluations_of_the_settings() {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.write("ops", &[("empty.toml", "")]);
    settings(&team, &[("quality", "60s")]);
    let policy = |config: &'static str, words: &[&'static str]| {
        [&["policy", "--channel", "production", "--config", config][..], words].concat()
    };
    let unknown = ["--evaluation", "quality", "--evaluation", "polit3"];
    let error = team.fails("7", &policy("ops/server.toml", &unknown));
    assert!(error.contains("no evaluation `polit3`") && error.contains("it has `quality`"), "{error}");
    let error = team.fails("4", &policy("ops/empty.toml", &["--evaluation", "quality"]));
    assert!(error.contains("has no evaluations") && error.contains("--config FILE"), "{error}");
    assert_eq!(team.json(&["policy", "--channel", "production"])["policy"]["evaluations"], serde_json::json!([]));
    team.ok(&policy("ops/server.toml", &["--evaluation", "quality"]));
    // What is required already can stay, and be removed, without the settings.
    team.ok(&policy("ops/empty.toml", &["--evaluation", "quality", "--approvals", "1"]));
    team.policy(&["--evaluation", ""]);
}

/// The first block of this language on the guide's page.
fn block<'p>(page: &'p str, language: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("```{language}\n")).expect(language);
    rest.split_once("```").expect("an end").0
}

/// Every command of the guide's gate, with the output that the guide shows.
#[test]
fn example_of_the_guide_works() {
    let page = fs::read_to_string(repository("docs/guide/src/serving/evaluations.md")).expect("the page");
    let team = Team::without_store();
    team.write("prompts", &[("welcome.md", block(&page, "markdown"))]);
    team.folder.write("server.toml", block(&page, "toml,server"));
    team.folder.write("judge.sh", block(&page, "sh"));
    let mut script = String::from("set -e\n");
    let mut shown = Vec::new();
    for line in page.split("```console\n").skip(1).flat_map(|rest| rest.split("```").next().unwrap_or("").lines()) {
        match line.strip_prefix("$ ") {
            Some(command) => script.push_str(&format!("{command}\n")),
            None => shown.push(line),
        }
    }
    let mut shell = team.command(&[]);
    let binary = std::path::PathBuf::from(shell.get_program());
    let folder = binary.parent().expect("a folder").to_owned();
    shell = std::process::Command::new("sh");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("a path"));
    shell.args(["-c", &script]).current_dir(team.folder.path()).env("PATH", path).env("USER", "ada");
    let output = shell.output().expect("a shell");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let mut rest = &*printed;
    for line in shown {
        // A duration follows.
        let (_, after) = rest.split_once(line).unwrap_or_else(|| panic!("{line}\n{printed}"));
        rest = after;
    }
    assert_eq!(team.json(&["history"])["items"][0]["number"], 2);
}
