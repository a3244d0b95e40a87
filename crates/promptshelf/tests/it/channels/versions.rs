//! History and differences.

use std::fs;

use serde_json::json;

use super::{BYE, HELLO, Team};

/// Creates a team with three revisions of production.
fn history() -> Team {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.write("prompts", &[("bye.md", BYE)]);
    team.ok(&["publish", "prompts", "-m", "Partings", "--as", "bob"]);
    team.write("prompts", &[("hello.md", &HELLO.replace("Say hello", "Shout hello"))]);
    team.ok(&["publish", "prompts", "-m", "Louder", "--as", "eve"]);
    team
}

#[test]
fn history_prints_the_documented_json_newest_first() {
    let team = history();
    let mut history = team.json(&["history"]);
    let revisions = history["items"].as_array_mut().expect("revisions");
    let times: Vec<String> = revisions
        .iter_mut()
        .map(|revision| revision["at"].take().as_str().map(str::to_owned).expect("a time"))
        .collect();
    assert!(times.iter().all(|time| time.ends_with('Z')), "{times:?}");
    let digests = revisions.iter_mut().map(|revision| revision["digest"].take());
    assert!(digests.into_iter().all(|digest| digest.as_str().is_some_and(|digest| digest.len() == 64)));
    let added = |name: &str| json!([{ "name": name, "version": 1, "change": "added" }]);
    let changed = json!([{ "name": "hello", "version": 2, "previous": 1, "change": "changed" }]);
    let policy = team.json(&["policy", "--channel", "production"])["policy"].clone();
    let revision = |number: u64, author: &str, message: &str, prompts| json!({ "number": number, "digest": null, "kind": "publish", "author": author, "message": message, "at": null, "prompts": prompts, "policy": policy });
    assert_eq!(
        history["items"],
        json!([
            revision(3, "eve", "Louder", changed),
            revision(2, "bob", "Partings", added("bye")),
            revision(1, "ada", "First", added("hello")),
        ])
    );
    let of_hello = team.json(&["history", "hello"]);
    let numbers: Vec<_> = of_hello["items"].as_array().expect("revisions").iter().map(|r| &r["number"]).collect();
    assert_eq!(numbers, [&json!(3), &json!(1)]);
    let table = team.ok(&["history"]);
    assert!(table.lines().next().is_some_and(|line| line.starts_with("3  ") && line.contains("hello v2")), "{table}");
    team.fails("7", &["history", "nothing"]);
    team.fails("7", &["history", "--channel", "nowhere"]);
}

#[test]
fn history_at_a_time_shows_what_was_served() {
    let team = history();
    let revisions = team.json(&["history"])["items"].clone();
    let at = revisions[1]["at"].as_str().expect("a time");
    let then = team.json(&["history", "--at", at]);
    assert_eq!(then["items"][0]["number"], 2);
    assert_eq!(then["items"].as_array().map(Vec::len), Some(1));
    let served: Vec<_> =
        then["served"].as_array().expect("prompts").iter().map(|p| (p["name"].clone(), p["version"].clone())).collect();
    assert_eq!(served, [(json!("bye"), json!(1)), (json!("hello"), json!(1))]);
    assert!(team.ok(&["history", "--at", at]).contains("served then:"));
    team.fails("7", &["history", "--at", "2001-01-31"]);
    team.fails("2", &["history", "--at", "Tuesday"]);
}

#[test]
fn diff_compares_revisions_channels_and_folders() {
    let team = history();
    let diff = team.ok(&["diff", "2", "3"]);
    assert!(diff.contains("-Say hello to") && diff.contains("+Shout hello to") && !diff.contains("bye"), "{diff}");
    assert!(team.ok(&["diff", "production@3", "production"]).contains("are the same"));
    team.write("prompts", &[("more.md", BYE)]);
    let diff = team.json(&["diff", "production", "./prompts"]);
    assert_eq!(
        (&diff["from"], &diff["files"][0]["path"], &diff["files"][0]["change"]),
        (&json!("production@3"), &json!("more.md"), &json!("added"))
    );
    // Two folders need no store.
    let mut command = team.command(&["diff", "prompts/", "./prompts"]);
    command.env_remove("PROMPTSHELF_STORE");
    assert!(crate::program::shown(command, "").starts_with("exit code: 0\n"));
    team.fails("7", &["diff", "1", "99"]);
    team.fails("7", &["diff", "1", "nowhere"]);
    team.fails("2", &["diff", "1", "production@new"]);
}

#[test]
fn binary_files_differ_by_digest_and_size() {
    let team = Team::with(&[("hello.md", HELLO)]);
    fs::write(team.path("prompts/a.png"), b"\x89PNG\0\xff").expect("written");
    team.ok(&["publish", "prompts", "-m", "Picture"]);
    let diff = team.ok(&["diff", "1", "2"]);
    assert!(diff.contains("binary a.png added") && diff.contains("(6 bytes)"), "{diff}");
}

#[test]
fn rendered_diff_shows_messages_with_sample_arguments() {
    let team = Team::new();
    let one = "---\ndescription: One\n---\nOne. {% include \"_shared/honest.md\" %}\n";
    team.write("prompts", &[("one.md", one), ("hello.md", HELLO), ("_shared/honest.md", "Be honest.\n")]);
    team.ok(&["publish", "prompts", "-m", "First"]);
    team.write("prompts", &[("_shared/honest.md", "Be very honest.\n"), ("hello.md", &HELLO.replace("Say", "Shout"))]);
    team.ok(&["publish", "prompts", "-m", "Second"]);
    let diff = team.ok(&["diff", "1", "2", "--rendered"]);
    for line in ["-Say hello to ‹name›.", "+Shout hello to ‹name›.", "-One. Be honest.", "+One. Be very honest."]
    {
        assert!(diff.contains(line), "{line}\n{diff}");
    }
    let json = team.json(&["diff", "1", "2", "--rendered"]);
    let names: Vec<_> = json["prompts"].as_array().expect("prompts").iter().map(|prompt| &prompt["name"]).collect();
    assert_eq!(names, ["hello", "one"]);
    assert_eq!(json["differences"], serde_json::json!([]), "no caller will fail");
    team.write(
        "prompts",
        &[("one.md", &one.replace("One\n---", "One\narguments: [{ name: who, required: true }]\n---"))],
    );
    team.ok(&["publish", "prompts", "-m", "Third"]);
    let diff = team.ok(&["diff", "2", "3", "--rendered"]);
    assert!(
        diff.contains("breaking: prompt one: `who` is new and required: callers that do not send it will fail"),
        "{diff}"
    );
}

/// The name of a channel in place of a prompt is told, with the option for it.
#[test]
fn channel_in_place_of_a_prompt_is_told() {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.ok(&["publish", "prompts", "--channel", "next", "-m", "Next"]);
    for line in [&["rollback", "next", "--to", "1", "-m", "x"][..], &["history", "next"], &["history", "#next"]] {
        let stderr = team.fails("7", line);
        assert!(stderr.contains("`next` is a channel: write `--channel next`"), "{line:?}: {stderr}");
    }
    assert!(!team.fails("7", &["history", "nobody"]).contains("is a channel"));
}
