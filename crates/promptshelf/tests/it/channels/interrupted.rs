//! Commands that are killed at any moment, and commands that run at the same time.

use std::{process::Stdio, thread, time::Duration};

use super::{HELLO, Team, bytes};
use crate::program::ended;

/// Starts a command, and kills it after a while.
pub(super) fn killed(team: &Team, words: &[&str], after: Duration) {
    let mut command = team.command(words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    thread::sleep(after);
    child.kill().ok();
    ended(&mut child);
}

/// Moments from before the first write to after the last one. Each must leave the old or the new state.
fn moments() -> impl Iterator<Item = Duration> {
    [0, 5, 10, 20, 40, 80, 160].into_iter().map(Duration::from_millis)
}

fn texts(version: u32) -> Vec<(String, String)> {
    (0..200).map(|number| (format!("prompt-{number}.md"), format!("{HELLO}Version {version}.\n"))).collect()
}

pub(super) fn write(team: &Team, folder: &str, version: u32) {
    let texts = texts(version);
    let files: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    team.write(folder, &files);
}

// req: S-95
#[test]
fn killed_publish_leaves_the_old_or_the_new_revision() {
    let team = Team::new();
    write(&team, "prompts", 0);
    team.ok(&["publish", "prompts", "-m", "First"]);
    for (version, moment) in (1..).zip(moments()) {
        let before = team.revision("production");
        write(&team, "prompts", version);
        killed(&team, &["publish", "prompts", "-m", "Next"], moment);
        let after = team.revision("production");
        assert!(after == before || after == before + 1, "{before} {after}");
        let copy = format!("copy-{version}");
        team.ok(&["pull", "sqlite:team.db", &copy]);
        let found = bytes(&team.path(&copy));
        assert_eq!(found.len(), 200);
        let version = if after == before { None } else { Some(format!("Version {version}.")) };
        let is_whole = |(_, text): &(String, Vec<u8>)| {
            version.as_ref().is_none_or(|version| String::from_utf8_lossy(text).contains(version.as_str()))
        };
        assert!(found.iter().all(is_whole));
        let different = found.iter().filter(|(_, text)| *text != found[0].1).count();
        assert_eq!(different, 0, "all files are of one revision");
        // The next publish is not hindered.
        team.ok(&["publish", "prompts", "-m", "Again"]);
    }
}

// req: S-95
#[test]
fn killed_pull_is_completed_or_leaves_the_old_state() {
    let team = Team::new();
    write(&team, "prompts", 1);
    team.ok(&["publish", "prompts", "-m", "First"]);
    write(&team, "prompts", 2);
    team.ok(&["publish", "prompts", "-m", "Second"]);
    for moment in moments() {
        let copy = format!("copy-{}", moment.as_millis());
        team.ok(&["pull", "sqlite:team.db#production@1", &copy]);
        killed(&team, &["pull", "sqlite:team.db", &copy], moment);
        // Neither the old nor the new state has anything to publish.
        assert!(team.ok(&["publish", &copy, "-m", "Nothing"]).starts_with("no changes"));
        let found = bytes(&team.path(&copy));
        let visible: Vec<_> = found.iter().filter(|(path, _)| !path.starts_with('.')).collect();
        assert!(visible.len() == 200 && visible.iter().all(|(_, text)| *text == visible[0].1), "{moment:?}");
        team.ok(&["pull", "sqlite:team.db", &copy]);
        assert_eq!(bytes(&team.path(&copy)), bytes(&team.path("prompts")));
    }
    assert_eq!(team.revision("production"), 2);
}

// req: S-95
#[test]
fn publishers_at_the_same_time_lose_nothing() {
    const AUTHORS: usize = 4;

    let team = Team::with(&[("hello.md", HELLO)]);
    for author in 0..AUTHORS {
        let folder = format!("author-{author}");
        team.ok(&["pull", "sqlite:team.db", &folder]);
        team.write(&folder, &[(&format!("prompt-{author}.md"), HELLO)]);
    }
    thread::scope(|scope| {
        for author in 0..AUTHORS {
            let team = &team;
            scope.spawn(move || team.ok(&["publish", &format!("author-{author}"), "-m", "Mine"]));
        }
    });
    assert_eq!(team.revision("production"), 1 + AUTHORS as u64);
    team.ok(&["pull", "sqlite:team.db", "all"]);
    assert_eq!(bytes(&team.path("all")).len(), 1 + AUTHORS);
}
