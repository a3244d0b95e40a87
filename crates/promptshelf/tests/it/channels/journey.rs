//! From a folder to a channel and back: init, publish, pull.

use std::{fs, process::Stdio};

use promptshelf_testkit::folder::{Folder, repository};
use serde_json::json;

use super::{BYE, HELLO, Team, bytes};

#[test]
fn example_library_goes_through_a_channel_without_loss() {
    let team = Team::without_store();
    // A copy: publishing leaves the base in the folder.
    let library = Folder::copy_of("examples/library");
    let library = library.path().to_str().expect("a path");
    let created = team.json(&["init", &team.store, "--from", library]);
    assert_eq!(
        (&created["channel"], &created["state"], &created["revision"]),
        (&json!("production"), &json!("published"), &json!(1))
    );
    team.ok(&["pull", "sqlite:team.db", "copy"]);
    assert_eq!(bytes(&team.path("copy")), bytes(repository("examples/library").as_path()));
    // The copy is the library, and has nothing to publish.
    assert!(team.ok(&["publish", "copy", "-m", "Nothing"]).starts_with("no changes"));
    let unchanged = team.json(&["publish", library, "-m", "Nothing"]);
    assert_eq!(unchanged, json!({ "channel": "production", "proposal": null, "state": "published", "revision": 1 }));
    assert!(team.ok(&["pull", "sqlite:team.db", "copy"]).starts_with("no changes"));
    assert_eq!(team.revision("production"), 1);
    // The same `init` again changes nothing.
    team.ok(&["init", &team.store, "--from", library]);
    assert_eq!(team.revision("production"), 1);
}

/// The steps of the guide's page on teams, and the maintenance of the store.
pub(super) fn whole_journey(team: &Team) {
    let (store, copy) = (team.store.as_str(), Folder::copy_of("examples/library"));
    let library = copy.path();
    team.ok(&["init", "--from", library.to_str().expect("a path")]);
    team.policy(&["--approvals", "1", "--four-eyes", "on"]);
    team.ok(&["pull", store, "prompts"]);
    assert_eq!(bytes(&team.path("prompts")), bytes(library));
    team.folder.edit("prompts/explain-code.md", "step by step", "slowly, step by step");
    assert_eq!(team.json(&["publish", "prompts", "-m", "Careful", "--as", "ada"])["state"], "open");
    assert!(team.ok(&["proposals"]).contains("Careful"));
    assert!(team.ok(&["proposals", "2"]).contains("slowly, step by step"));
    team.approve_fails("13", &["2", "--as", "ada"]);
    assert_eq!(team.approve(&["2", "--as", "bob"])["revision"], 2);
    assert!(team.ok(&["diff", "1", "2", "--rendered"]).contains("slowly, step by step"));
    assert_eq!(team.json(&["rollback", "--to", "1", "-m", "Slow", "--as", "ada"])["proposal"], 3);
    assert_eq!(team.approve(&["3", "--as", "bob"])["revision"], 3);
    let history = team.json(&["history", "explain-code"]);
    let versions: Vec<_> =
        history["items"].as_array().expect("revisions").iter().map(|r| r["prompts"][0]["version"].clone()).collect();
    assert_eq!(versions[..2], [json!(1), json!(2)]);
    let at = history["items"][1]["at"].as_str().expect("a time");
    assert_eq!(team.json(&["history", "--at", at])["items"][0]["number"], 2);
    // Two authors of one file.
    team.ok(&["pull", store, "theirs"]);
    for (folder, author) in [("prompts", "ada"), ("theirs", "eve")] {
        team.folder.edit(&format!("{folder}/translate.md"), "---\n", &format!("---\n# {author}\n"));
    }
    team.ok(&["publish", "theirs", "-m", "Mine", "--as", "eve", "--emergency", "a test"]);
    assert!(team.fails("14", &["publish", "prompts", "-m", "Mine", "--as", "ada"]).contains("translate.md"));
    team.ok(&["promote", "--from", "production", "--to", "archive", "-m", "Copy"]);
    team.ok(&["store", "migrate", "--check"]);
    let verified = team.json(&["store", "verify"])["items"][1].clone();
    assert_eq!((&verified["name"], &verified["misfit"]), (&json!("production"), &json!(null)));
    assert_eq!(verified["digest"], team.json(&["history"])["items"][0]["digest"]);
    team.ok(&["store", "gc"]);
    assert_eq!(team.json(&["store", "prune", "--older-than", "1d"])["revisions"], 0);
    team.ok(&["store", "new-epoch"]);
    assert_eq!(team.revision("production"), 4);
}

#[test]
fn team_works_as_in_the_guide() {
    whole_journey(&Team::without_store());
}

#[test]
fn publish_prints_the_documented_json() {
    let team = Team::new();
    team.write("prompts", &[("hello.md", HELLO)]);
    let published = team.json(&["publish", "prompts", "-m", "First"]);
    assert_eq!(published, json!({ "channel": "production", "proposal": 1, "state": "published", "revision": 1 }));
    team.policy(&["--approvals", "1"]);
    team.write("prompts", &[("bye.md", BYE)]);
    let open = team.json(&["publish", "prompts", "-m", "Second"]);
    assert_eq!(open, json!({ "channel": "production", "proposal": 2, "state": "open", "revision": null }));
}

#[test]
fn edited_copy_is_published_again_and_again() {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.ok(&["pull", "sqlite:team.db", "copy"]);
    for revision in 2..4 {
        team.write("copy", &[("hello.md", &format!("{HELLO}Be kind {revision}.\n"))]);
        assert_eq!(team.json(&["publish", "copy", "-m", "Kinder"])["revision"], revision);
    }
    // The marker is hidden and never published.
    let files = team.json(&["diff", "production@1", "production", "--store", "sqlite:team.db"]);
    assert_eq!(files["files"].as_array().map(Vec::len), Some(1), "{files}");
    assert!(team.path("copy/.promptshelf-base").exists());
}

/// Whoever publishes a folder that was never pulled, or was published elsewhere, removes and replaces nothing of others.
// req: S-570
#[test]
fn folder_that_was_not_pulled_overwrites_nothing() {
    let team = Team::with(&[("hello.md", HELLO), ("bye.md", BYE)]);
    // The first publish left a base.
    team.ok(&["pull", "sqlite:team.db", "theirs"]);
    team.write("theirs", &[("bye.md", &format!("{BYE}Theirs.\n")), ("new.md", BYE)]);
    team.ok(&["publish", "theirs", "-m", "Theirs", "--as", "bob"]);
    team.write("prompts", &[("hello.md", &format!("{HELLO}Ours.\n"))]);
    let published = team.json(&["publish", "prompts", "-m", "Ours"]);
    assert_eq!(published["revision"], 3);
    team.ok(&["pull", "sqlite:team.db", "both"]);
    assert!(team.read("both/hello.md").contains("Ours") && team.read("both/bye.md").contains("Theirs"));
    assert!(team.path("both/new.md").exists());
    // A folder without a base adds files, and is refused otherwise, however often.
    team.write("fresh", &[("fresh.md", BYE), ("hello.md", HELLO)]);
    for words in
        [&["publish", "fresh", "-m", "x"][..], &["publish", "fresh", "-m", "x"], &["publish", "fresh", "--dry-run"]]
    {
        let error = team.fails("14", words);
        assert!(error.contains("bye.md\n  hello.md\n  new.md"), "{error}");
        assert!(
            error.contains("`promptshelf pull sqlite:team.db fresh --merge`") && error.contains("`--replace`"),
            "{error}"
        );
    }
    team.write("fresh", &[("hello.md", &team.read("both/hello.md"))]);
    let conflict = team.run(&["pull", "sqlite:team.db", "fresh", "--merge"]);
    assert_eq!((&*conflict.code, team.read("fresh/fresh.md")), ("0", BYE.to_owned()), "{conflict:?}");
    assert_eq!(team.json(&["publish", "fresh", "-m", "Fresh"])["revision"], 4);
    // An empty folder is more often the wrong one than the end of all prompts.
    team.ok(&["pull", "sqlite:team.db", "emptied"]);
    for file in ["hello.md", "bye.md", "new.md", "fresh.md"] {
        team.folder.remove(&format!("emptied/{file}"));
    }
    let error = team.fails("14", &["publish", "emptied", "-m", "Wipe"]);
    assert!(error.contains("the folder has no prompts, and 4 files"), "{error}");
    team.ok(&["publish", "emptied", "-m", "Wipe", "--replace"]);
    assert_eq!(team.revision("production"), 5);
    // A checkout that replaces the channel stays as it is.
    team.write("checkout", &[("hello.md", HELLO)]);
    team.ok(&["publish", "checkout", "-m", "Commit", "--replace"]);
    assert!(!team.path("checkout/.promptshelf-base").exists());
}

/// One folder is published to several channels, each of which it remembers; and what was proposed from it, so that its author
/// does not conflict with the own change once it is approved.
#[test]
fn folder_remembers_its_channels_and_proposals() {
    let team = Team::with(&[("hello.md", HELLO)]);
    for (round, channel) in ["next", "production", "next", "production"].into_iter().enumerate() {
        team.write("prompts", &[("hello.md", &format!("{HELLO}Round {round}.\n"))]);
        team.ok(&["publish", "prompts", "-m", "Round", "--channel", channel]);
    }
    team.policy(&["--approvals", "1"]);
    team.write("prompts", &[("bye.md", BYE)]);
    let proposed = team.json(&["publish", "prompts", "-m", "Parting", "--as", "ada"]);
    assert_eq!(proposed["state"], "open");
    let number = proposed["proposal"].to_string();
    team.approve(&[&number, "--as", "bob"]);
    team.write("prompts", &[("bye.md", &format!("{BYE}Twice.\n"))]);
    assert_eq!(team.json(&["publish", "prompts", "-m", "Again", "--as", "ada"])["state"], "open");
}

/// What was proposed from a folder, approved, and then taken back by somebody else stays taken back: neither a publish of
/// another file nor a pull brings it again.
// req: S-570
#[test]
fn approved_and_undone_change_stays_undone() {
    let team = Team::with(&[("hello.md", HELLO), ("bye.md", BYE)]);
    team.ok(&["pull", "sqlite:team.db", "ada"]);
    team.policy(&["--approvals", "1"]);
    let mut numbers = Vec::new();
    for text in ["One.", "Two."] {
        team.folder.edit("ada/hello.md", ".\n", &format!(". {text}\n"));
        team.write("ada", &[("leak.md", &format!("{BYE}{text}\n"))]);
        numbers.push(team.json(&["publish", "ada", "-m", text, "--as", "ada"])["proposal"].to_string());
    }
    team.approve(&[&numbers[1], "--as", "bob"]);
    // Others take it back, and the author edits another file.
    team.policy(&["--approvals", "0"]);
    team.ok(&["rollback", "--to", "1", "-m", "Not so", "--as", "bob"]);
    team.write("ada", &[("bye.md", &format!("{BYE}Edited.\n"))]);
    let published = team.json(&["publish", "ada", "-m", "Only the other", "--as", "ada"]);
    assert_eq!(published["state"], "published");
    team.ok(&["pull", "sqlite:team.db", "after"]);
    assert!(!team.path("after/leak.md").exists() && team.read("after/hello.md") == HELLO, "{published}");
    assert!(team.read("after/bye.md").contains("Edited"));
    team.ok(&["pull", "sqlite:team.db", "ada", "--merge"]);
    assert!(!team.path("ada/leak.md").exists() && team.read("ada/hello.md") == HELLO);
}

/// A restored store has lost revisions, whose contents are then in the folders of their authors only: no pull replaces them.
// req: S-570
#[test]
fn pull_after_a_restore_keeps_what_only_the_folder_has() {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.ok(&["store", "backup", "team.backup"]);
    team.ok(&["pull", "sqlite:team.db", "ben"]);
    let later = format!("{HELLO}Ben's afternoon.\n");
    team.write("ben", &[("hello.md", &later), ("new.md", BYE)]);
    team.ok(&["publish", "ben", "-m", "Later", "--as", "ben"]);
    team.ok(&["store", "restore", "team.backup", "--replace"]);
    let error = team.fails("14", &["pull", "sqlite:team.db", "ben"]);
    assert!(error.contains("hello.md") && error.contains("new.md") && error.contains("--merge"), "{error}");
    team.fails("14", &["publish", "ben", "-m", "Again", "--as", "ben"]);
    team.fails("14", &["pull", "sqlite:team.db", "ben", "--merge"]);
    assert!(team.read("ben/hello.md").contains("Ben's afternoon.") && team.read("ben/new.md") == BYE);
    team.write("ben", &[("hello.md", &later)]);
    team.ok(&["publish", "ben", "-m", "Again", "--as", "ben"]);
    assert_eq!(team.revision("production"), 2);
}

#[test]
fn lists_of_many_prompts_are_cut() {
    let team = Team::new();
    for number in 0..23 {
        team.write("prompts", &[(&format!("p-{number:02}.md"), BYE)]);
    }
    let shown = |words: &[&str]| {
        let printed = team.ok(words);
        let listed = printed.lines().filter(|line| line.contains("added") && line.contains("p-")).count();
        (listed, printed.matches("  and 3 more (--json lists all)").count())
    };
    // The files, and the prompts in them.
    assert_eq!(shown(&["publish", "prompts", "--dry-run"]), (40, 2));
    assert_eq!(shown(&["publish", "prompts", "-m", "Many"]), (20, 1));
    let diff = team.json(&["publish", "prompts", "-m", "None"]);
    assert_eq!(diff["revision"], 1);
    let all = team.json(&["promote", "--from", "production", "--to", "staging", "-m", "All"]);
    assert_eq!(all["prompts"].as_array().map(Vec::len), Some(23), "{all}");
}

#[test]
fn authors_of_different_files_do_not_conflict() {
    let team = Team::with(&[("hello.md", HELLO), ("bye.md", BYE)]);
    for author in ["bob", "eve"] {
        team.ok(&["pull", "sqlite:team.db", author]);
    }
    team.write("bob", &[("hello.md", &format!("{HELLO}Bob was here.\n"))]);
    team.write("eve", &[("bye.md", &format!("{BYE}Eve was here.\n"))]);
    team.ok(&["publish", "bob", "-m", "Bob's", "--as", "bob"]);
    team.ok(&["publish", "eve", "-m", "Eve's", "--as", "eve"]);
    team.ok(&["pull", "sqlite:team.db", "both"]);
    assert!(team.read("both/hello.md").contains("Bob was here") && team.read("both/bye.md").contains("Eve was here"));
    // A second publish does not undo the other's change.
    team.write("bob", &[("new.md", BYE)]);
    team.ok(&["publish", "bob", "-m", "More", "--as", "bob"]);
    team.ok(&["pull", "sqlite:team.db", "bob"]);
    assert!(team.read("bob/bye.md").contains("Eve was here"));
}

/// Both sides are kept: changes of different lines are joined, those of the same lines are marked, and nothing that is marked is
/// published.
// req: S-522
#[test]
fn pull_merges_local_changes() {
    let text = |first: &str, last: &str| format!("---\ndescription: Long\n---\n{first}\n\nThe middle.\n\n{last}\n");
    let team = Team::with(&[("hello.md", HELLO), ("long.md", &text("First.", "Last.")), ("gone.md", BYE)]);
    team.ok(&["pull", "sqlite:team.db", "mine"]);
    let published = [("long.md", text("First.", "Theirs.")), ("hello.md", format!("{HELLO}Theirs.\n"))];
    published.iter().for_each(|(path, text)| team.write("prompts", &[(path, text)]));
    team.folder.remove("prompts/gone.md");
    team.ok(&["publish", "prompts", "-m", "Theirs"]);
    team.write("mine", &[("long.md", &text("Mine.", "Last.")), ("new.md", BYE)]);
    // Without the option nothing is changed.
    assert!(team.fails("14", &["pull", "sqlite:team.db", "mine"]).contains("--merge"));
    assert_eq!(team.read("mine/long.md"), text("Mine.", "Last."));
    let merged = team.json(&["pull", "sqlite:team.db", "mine", "--merge"]);
    assert_eq!((&merged["merged"], &merged["conflicts"]), (&json!(["long.md"]), &json!([])), "{merged}");
    assert_eq!(team.read("mine/long.md"), text("Mine.", "Theirs."));
    assert_eq!(team.read("mine/hello.md"), format!("{HELLO}Theirs.\n"));
    assert!(team.path("mine/new.md").exists() && !team.path("mine/gone.md").exists());
    assert_eq!(team.json(&["publish", "mine", "-m", "Both"])["revision"], 3);
    // The same line, a removal on each side, and an added file.
    team.ok(&["pull", "sqlite:team.db", "theirs"]);
    let theirs = [("long.md", text("Theirs.", "Last.")), ("added.md", HELLO.replace("Say", "Shout"))];
    theirs.iter().for_each(|(path, text)| team.write("theirs", &[(path, text)]));
    team.folder.remove("theirs/new.md");
    team.ok(&["publish", "theirs", "-m", "Theirs again"]);
    team.write(
        "mine",
        &[("long.md", &text("Ours.", "Last.")), ("added.md", HELLO), ("new.md", &format!("{BYE}More.\n"))],
    );
    team.folder.remove("mine/hello.md");
    let dry = team.run(&["pull", "sqlite:team.db", "mine", "--merge", "--dry-run"]);
    assert_eq!((dry.code.as_str(), team.read("mine/long.md")), ("14", text("Ours.", "Last.")), "{dry:?}");
    let conflict = team.run(&["pull", "sqlite:team.db", "mine", "--merge"]);
    assert_eq!(conflict.code, "14", "{conflict:?}");
    for file in ["added.md", "long.md", "new.md"] {
        assert!(conflict.stderr.contains(file), "{file}: {conflict:?}");
    }
    assert!(conflict.stderr.contains("new.md (changed here and deleted in the channel: it stays)"), "{conflict:?}");
    assert!(conflict.stdout.contains("3 in conflict") && conflict.stderr.contains("keep or delete"), "{conflict:?}");
    let marked = team.read("mine/long.md");
    let ours = "<<<<<<< this folder\nOurs.\n=======\nTheirs.\n>>>>>>> production, revision 4\n";
    assert!(marked.contains(ours) && marked.ends_with("The middle.\n\nLast.\n"), "{marked}");
    assert!(team.path("mine/new.md").exists() && !team.path("mine/hello.md").exists());
    let refused = team.fails("14", &["publish", "mine", "-m", "Marked"]);
    assert!(refused.contains("added.md") && refused.contains("long.md") && refused.contains("<<<<<<<"), "{refused}");
    team.write("mine", &[("long.md", &text("Both.", "Last.")), ("added.md", HELLO)]);
    assert_eq!(team.json(&["publish", "mine", "-m", "Decided"])["revision"], 5);
    // A file that is no text is never mixed, and nothing is written.
    for (folder, byte) in [("mine", 0xfe_u8), ("theirs", 0xff)] {
        fs::write(team.path(&format!("{folder}/a.bin")), [byte, 0]).expect("written");
    }
    team.ok(&["pull", "sqlite:team.db", "theirs", "--merge"]);
    team.ok(&["publish", "theirs", "-m", "Bytes"]);
    let binary = team.fails("14", &["pull", "sqlite:team.db", "mine", "--merge"]);
    assert!(binary.contains("a.bin") && fs::read(team.path("mine/a.bin")).expect("read") == [0xfe, 0], "{binary}");
    // What was deleted here comes back with its bytes.
    team.folder.remove("mine/a.bin");
    team.ok(&["pull", "sqlite:team.db", "mine", "--merge"]);
    fs::write(team.path("theirs/a.bin"), [0xfd, 0]).expect("written");
    team.ok(&["publish", "theirs", "-m", "Other bytes"]);
    team.folder.remove("mine/a.bin");
    let back = team.fails("14", &["pull", "sqlite:team.db", "mine", "--merge"]);
    assert!(back.contains("it is back)") && !back.contains("<<<<<<<"), "{back}");
    assert_eq!(fs::read(team.path("mine/a.bin")).expect("read"), [0xfd, 0]);
}

// req: S-95
#[test]
fn two_edits_of_one_file_conflict() {
    let team = Team::with(&[("hello.md", HELLO), ("bye.md", BYE)]);
    for author in ["bob", "eve"] {
        team.ok(&["pull", "sqlite:team.db", author]);
        team.write(author, &[("hello.md", &format!("{HELLO}{author} was here.\n"))]);
    }
    team.ok(&["publish", "bob", "-m", "Bob's", "--as", "bob"]);
    let before = bytes(&team.path("eve"));
    let error = team.fails("14", &["publish", "eve", "-m", "Eve's", "--as", "eve"]);
    assert!(error.contains("hello.md") && !error.contains("bye.md"), "{error}");
    assert!(error.contains("help: ") && error.contains("promptshelf pull"), "{error}");
    assert_eq!(bytes(&team.path("eve")), before);
    assert_eq!(team.revision("production"), 2);
    // A pull does not overwrite the edit either.
    let error = team.fails("14", &["pull", "sqlite:team.db", "eve"]);
    assert!(error.contains("hello.md"), "{error}");
    assert_eq!(bytes(&team.path("eve")), before);
    // The way that the message shows.
    team.ok(&["pull", "sqlite:team.db", "merged"]);
    team.write("merged", &[("hello.md", &format!("{HELLO}bob and eve were here.\n"))]);
    assert_eq!(team.json(&["publish", "merged", "-m", "Both", "--as", "eve"])["revision"], 3);
}

#[test]
fn deleted_files_disappear_from_the_channel_and_from_copies() {
    let team = Team::with(&[("hello.md", HELLO), ("git/bye.md", BYE)]);
    team.ok(&["pull", "sqlite:team.db", "copy"]);
    fs::remove_dir_all(team.path("prompts/git")).expect("removed");
    team.ok(&["publish", "prompts", "-m", "Without git"]);
    team.ok(&["pull", "sqlite:team.db", "copy"]);
    assert_eq!(bytes(&team.path("copy")).len(), 1);
    assert!(!team.path("copy/git").exists());
    team.ok(&["pull", "sqlite:team.db#production@1", "old"]);
    assert_eq!(bytes(&team.path("old")).len(), 2);
}

#[test]
fn dry_runs_change_nothing() {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.write("prompts", &[("bye.md", BYE)]);
    let shown = team.ok(&["publish", "prompts", "--dry-run"]);
    assert!(shown.contains("dry run") && shown.contains("bye.md"), "{shown}");
    let json = team.json(&["publish", "prompts", "--dry-run"]);
    assert_eq!(json["prompts"][0]["name"], "bye");
    assert_eq!((&json["state"], &json["revision"]), (&json!("published"), &json!(null)));
    team.ok(&["pull", "sqlite:team.db", "copy", "--dry-run"]);
    assert!(!team.path("copy").exists());
    assert_eq!(team.revision("production"), 1);
    assert_eq!(team.json(&["proposals", "--all"])["items"].as_array().map(Vec::len), Some(1));
}

#[test]
fn copy_of_another_store_is_not_published() {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.ok(&["pull", "sqlite:team.db", "copy"]);
    team.write("copy", &[("hello.md", BYE)]);
    team.ok(&["init", "sqlite:other.db", "--from", "prompts"]);
    let error = team.fails("14", &["publish", "copy", "-m", "Mixed up", "--store", "sqlite:other.db"]);
    assert!(error.contains("was pulled from another store") && error.contains("hello.md"), "{error}");
    // A restored store has another epoch.
    team.ok(&["store", "new-epoch"]);
    team.fails("14", &["publish", "copy", "-m", "After a restore"]);
    assert_eq!(team.revision("production"), 1);
    team.ok(&["pull", "sqlite:team.db", "fresh"]);
    team.write("fresh", &[("hello.md", BYE)]);
    assert_eq!(team.json(&["publish", "fresh", "-m", "After a restore"])["revision"], 2);
}

#[test]
fn init_does_not_replace_a_channel() {
    let team = Team::with(&[("hello.md", HELLO)]);
    team.write("other", &[("bye.md", BYE)]);
    let error = team.fails("14", &["init", &team.store, "--from", "other"]);
    assert!(error.contains("publish"), "{error}");
    assert_eq!(team.revision("production"), 1);
}

// req: S-576, S-581
#[tokio::test(flavor = "multi_thread")]
async fn time_that_history_shows_names_the_revision_and_a_pruned_one_is_said_to_be() {
    let team = Team::new();
    team.write("prompts", &[("hello.md", HELLO)]);
    team.ok(&["publish", "prompts", "-m", "First"]);
    team.write("prompts", &[("hello.md", BYE)]);
    team.ok(&["publish", "prompts", "-m", "Second"]);
    let newest = team.json(&["history"])["items"][0].clone();
    let shown = team.ok(&["history"]);
    let row = shown.lines().find(|line| line.contains("Second")).expect("the row");
    let time = row.split_whitespace().find(|word| word.ends_with('Z')).expect("a time");
    assert_eq!(team.json(&["history", "--at", time])["items"][0]["number"], newest["number"], "{time}");
    let early = team.fails("7", &["history", "--at", "2020-01-01"]);
    assert!(early.contains("had no revision at 2020-01-01"), "{early}");
    let url = format!("sqlite:{}", team.path("team.db").display()).parse().expect("a URL");
    let store = promptshelf_store::Store::open(&url).await.expect("it opens");
    assert!(store.prune(std::time::Duration::ZERO).await.expect("pruned") > 0);
    store.close().await;
    let early = team.fails("7", &["history", "--at", "2020-01-01"]);
    assert!(early.contains("`store prune` has removed the revisions up to then"), "{early}");
}

// req: S-586
#[tokio::test(flavor = "multi_thread")]
async fn most_of_the_history_is_removed_only_if_it_is_meant() {
    let team = Team::new();
    for number in 1..=4 {
        team.write("prompts", &[("hello.md", &format!("{HELLO}{number}\n"))]);
        team.ok(&["publish", "prompts", "-m", "Next"]);
    }
    let pool = sqlx::SqlitePool::connect(&team.path("team.db").to_string_lossy()).await.expect("a database");
    let year = 365_i64 * 24 * 60 * 60 * 1_000_000;
    sqlx::query("UPDATE ps_revision SET at = at - $1").bind(2 * year).execute(&pool).await.expect("aged");
    pool.close().await;
    let prune = ["store", "prune", "--older-than", "365d"];
    let planned = team.json(&[&prune[..], &["--dry-run"]].concat());
    assert_eq!((&planned["revisions"], &planned["channels"][0]["kept"]), (&json!(3), &json!(1)), "{planned}");
    for age in ["12m", "12min", "1month", "1y", "90s", "1mo"] {
        let refused = team.fails("2", &["store", "prune", "--older-than", age]);
        assert!(refused.contains("such as 90d, 12w or 36h"), "{age}: {refused}");
    }
    let ran = team.run(&prune);
    assert!(ran.stdout.contains("production: 3 revisions before revision 4 "), "{}", ran.stdout);
    assert!(ran.code != "0" && ran.stderr.contains("--dry-run") && ran.stderr.contains("--yes"), "{}", ran.stderr);
    assert_eq!(team.json(&["history"])["items"].as_array().expect("a list").len(), 4);
    assert!(team.ok(&[&prune[..], &["--yes"]].concat()).contains("removed 3 revisions"));
    assert_eq!(team.json(&["history"])["items"].as_array().expect("a list").len(), 1);
}

#[test]
fn store_is_filled_by_several_machines_at_the_same_time_as_by_one_after_the_other() {
    let team = Team::new();
    team.write("prompts", &[("hello.md", HELLO)]);
    for round in 0..3 {
        let store = format!("sqlite:in{round}.db");
        let all: Vec<_> = (0..4)
            .map(|_| {
                let mut command = team.command(&["init", &store, "--from", "prompts"]);
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
            })
            .collect();
        for one in all {
            let output = one.wait_with_output().expect("it ends");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        assert_eq!(team.json(&["history", &store])["items"].as_array().expect("a list").len(), 1);
    }
}

// req: S-572
#[test]
fn backup_is_looked_at_and_neither_served_nor_changed() {
    let team = Team::new();
    team.write("prompts", &[("hello.md", HELLO)]);
    team.ok(&["publish", "prompts", "-m", "First"]);
    team.ok(&["store", "backup", "z.backup"]);
    team.write("prompts", &[("hello.md", BYE)]);
    for (exit, line) in [
        ("15", &["serve", "sqlite:z.backup", "--stdio"][..]),
        ("15", &["serve", "sqlite:z.backup", "--http", "127.0.0.1:0"]),
        ("15", &["publish", "prompts", "--to", "sqlite:z.backup", "-m", "Second"]),
        ("15", &["policy", "sqlite:z.backup", "--channel", "production", "--approvals", "2"]),
        ("15", &["store", "gc", "sqlite:z.backup"]),
        ("15", &["init", "sqlite:z.backup"]),
        ("15", &["store", "copy", "sqlite:team.db", "--to", "sqlite:z.backup"]),
    ] {
        let refused = team.fails(exit, line);
        assert!(refused.contains("store copy sqlite:z.backup --to"), "{line:?}: {refused}");
        assert!(!refused.contains("start the database"), "{line:?}: {refused}");
    }
    let checked = team.run(&["serve", "--check", "sqlite:z.backup", "--http", "127.0.0.1:0"]);
    assert!(checked.code == "4" && checked.stdout.contains("store copy sqlite:z.backup --to"), "{}", checked.stdout);
    assert!(team.ok(&["history", "sqlite:z.backup"]).contains("First"));
    assert!(team.ok(&["list", "sqlite:z.backup"]).contains("hello"));
    team.ok(&["store", "restore", "sqlite:new.db", "z.backup"]);
    team.ok(&["store", "copy", "sqlite:z.backup", "--to", "sqlite:look.db"]);
    assert!(team.ok(&["list", "sqlite:look.db"]).contains("hello"));
}

// req: S-582
#[cfg(target_os = "linux")]
#[test]
fn store_is_not_changed_or_copied_without_a_record() {
    let team = Team::new();
    team.write("prompts", &[("hello.md", HELLO)]);
    team.ok(&["publish", "prompts", "-m", "First"]);
    team.ok(&["store", "backup", "z.backup"]);
    team.write("prompts", &[("hello.md", BYE)]);
    team.ok(&["publish", "prompts", "-m", "Second"]);
    team.folder.write("s.toml", "[audit]\nfile = \"/dev/full\"\non-loss = \"refuse\"\n");
    team.write("prompts", &[("hello.md", HELLO)]);
    for line in [
        &["store", "restore", "z.backup", "--replace"][..],
        &["store", "prune", "--older-than", "1h"],
        &["store", "new-epoch"],
        &["store", "copy", "sqlite:team.db", "--to", "sqlite:copy.db"],
        &["store", "backup", "y.backup"],
        &["publish", "prompts", "-m", "Third"],
    ] {
        let output = team.command(line).env("PROMPTSHELF_CONFIG", team.path("s.toml")).output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains("cannot be recorded"), "{line:?}: {stderr}");
        assert!(!stderr.contains("cannot be reached"), "{line:?}: {stderr}");
    }
    assert_eq!(team.revision("production"), 2);
    assert!(!team.path("y.backup").exists());
    assert!(team.fails("7", &["history", "sqlite:copy.db"]).contains("does not exist"), "nothing was copied");
}
