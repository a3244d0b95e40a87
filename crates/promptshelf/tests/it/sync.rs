//! The command `sync`: files of clients that follow the prompts of a library or server.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    fake_server::FakeServer,
    program::{Folder, Server, library, promptshelf},
};

pub(crate) fn sync(home: &Path) -> Command {
    let mut command = promptshelf();
    command.arg("sync").current_dir(home).env("HOME", home).env_remove("XDG_STATE_HOME");
    command
}

/// Runs a sync, and returns its report.
#[track_caller]
pub(crate) fn synced(home: &Path, arguments: &[&str]) -> Value {
    let done = sync(home).args(arguments).arg("--json").output().expect("a process");
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let mut list: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    list["items"][0].take()
}

fn read(folder: &Folder, path: &str) -> String {
    fs::read_to_string(folder.path().join(path)).expect("a readable file")
}

const REVIEW: &str = "---\ndescription: Reviews\narguments:\n  - {name: code, required: true}\n  - {name: language, required: true, enum: [rust, go]}\n---\nReview {{ language }}:\n\n{{ code | upper }}\n";

/// A copy under another name is a file of the user.
// req: S-391
#[test]
fn copy_of_a_synced_file_stays() {
    let folder = library(&[("hello.md", "---\ndescription: Greets\n---\nHello!\n"), ("other.md", "Other\n")]);
    let arguments = ["--client", "claude-code", "prompts"];
    synced(folder.path(), &arguments);
    let (synced_file, copy) = (".claude/commands/hello.md", ".claude/commands/mine.md");
    fs::copy(folder.path().join(synced_file), folder.path().join(copy)).expect("a copy");
    let again = synced(folder.path(), &arguments);
    assert_eq!((&again["removed"], &again["written"]), (&json!([]), &json!([])));
    fs::remove_file(folder.path().join("prompts/hello.md")).expect("removed");
    assert_eq!(synced(folder.path(), &arguments)["removed"], json!([synced_file]));
    assert!(folder.path().join(copy).exists());
    // A prompt with the name of the copy does not take its place.
    fs::write(folder.path().join("prompts/mine.md"), "Mine\n").expect("written");
    let kept = synced(folder.path(), &arguments);
    assert_eq!(kept["written"], json!([]), "{kept}");
    assert!(read(&folder, copy).contains("Hello!"));
}

#[test]
fn value_that_is_made_up_stands_in_no_file() {
    let release = "---\ndescription: Notes\narguments:\n  - {name: version, required: true, pattern: '^\\d+\\.\\d+$'}\n---\nNotes of {{ version }}\n";
    let folder = library(&[("release.md", release)]);
    let report = synced(folder.path(), &["--client", "claude-code", "prompts"]);
    assert_eq!(report["written"], json!([]), "{report}");
    assert!(report["leftOut"].to_string().contains("`version`: `0.0` accepts certain values only"), "{report}");
    let report = synced(folder.path(), &["--client", "claude-code", "prompts", "--allow-incomplete"]);
    assert_eq!(report["written"], json!([".claude/commands/release.md"]), "{report}");
}

#[test]
fn files_follow_the_library_and_edited_ones_stay() {
    let folder = library(&[
        ("review.md", REVIEW),
        ("hello.md", "---\ndescription: Greets\n---\nHello!\n"),
        ("gone.md", "Gone\n"),
    ]);
    let arguments = ["--client", "claude-code", "prompts"];
    let dry = synced(folder.path(), &["--client", "claude-code", "prompts", "--dry-run"]);
    assert_eq!(dry["written"].as_array().map(Vec::len), Some(3));
    assert!(!folder.path().join(".claude").exists());

    let first = synced(folder.path(), &arguments);
    assert_eq!(
        first["written"],
        json!([".claude/commands/gone.md", ".claude/commands/hello.md", ".claude/commands/review.md"])
    );
    assert_eq!((&first["removed"], &first["kept"]), (&json!([]), &json!([])));
    assert_eq!(first["lost"][0]["prompt"], "review");
    assert!(first["lost"][0]["what"].as_str().is_some_and(|what| what.contains("`rust`")), "{first}");
    let review = read(&folder, ".claude/commands/review.md");
    assert!(
        review.starts_with("---\n# promptshelf sync sha256:")
            && review.contains(" from ./prompts as .claude/commands/review.md\n"),
        "{review}"
    );
    assert!(review.ends_with("Review rust:\n\n$ARGUMENTS\n"), "{review}");
    let nothing = json!({
        "client": "claude-code", "written": [], "removed": [], "kept": [], "leftOut": [], "refused": [], "lost": first["lost"],
    });
    assert_eq!(synced(folder.path(), &arguments), nothing, "a second sync changes nothing");

    fs::write(folder.path().join(".claude/commands/mine.md"), "Mine\n").expect("a file");
    let hello = format!("{}More\n", read(&folder, ".claude/commands/hello.md"));
    fs::write(folder.path().join(".claude/commands/hello.md"), &hello).expect("a file");
    fs::write(folder.path().join("prompts/mine.md"), "Ours\n").expect("a file");
    fs::remove_file(folder.path().join("prompts/gone.md")).expect("a removed file");
    let second = synced(folder.path(), &arguments);
    assert_eq!((&second["written"], &second["removed"]), (&json!([]), &json!([".claude/commands/gone.md"])));
    let kept: Vec<&str> =
        second["kept"].as_array().into_iter().flatten().filter_map(|kept| kept["path"].as_str()).collect();
    assert_eq!(kept, [".claude/commands/hello.md", ".claude/commands/mine.md"]);
    fs::remove_file(folder.path().join("prompts/hello.md")).expect("a removed file");
    assert_eq!(synced(folder.path(), &arguments)["removed"], json!([]), "an edited file is not removed");
    assert_eq!(
        (read(&folder, ".claude/commands/hello.md"), read(&folder, ".claude/commands/mine.md").as_str()),
        (hello, "Mine\n")
    );
}

#[test]
fn every_client_with_files_gets_its_own_format() {
    let folder = library(&[(
        "code_review.md",
        "---\ndescription: Reviews\narguments: [{name: code, required: true}]\n---\nReview {{ code }}\n",
    )]);
    for (client, path, words) in [
        ("vscode", ".github/prompts/code_review.prompt.md", "Review ${input:code}\n"),
        ("gemini-cli", ".gemini/commands/code_review.toml", "Review {{args}}\n"),
        ("cursor", ".cursor/commands/code_review.md", "Review [code]\n"),
        ("opencode", ".opencode/commands/code_review.md", "Review $ARGUMENTS\n"),
        ("windsurf", ".windsurf/workflows/code_review.md", "Review [code]\n"),
        ("codex", ".agents/skills/code-review/SKILL.md", "name: code-review\n"),
        ("kiro", ".kiro/skills/code-review/SKILL.md", "Review [code]\n"),
    ] {
        let report = synced(folder.path(), &["--client", client, "prompts", "--to", "out"]);
        assert_eq!(report["written"], json!([path]), "{client}");
        let text = read(&folder, &format!("out/{path}"));
        assert!(text.contains(words) && text.contains("promptshelf sync sha256:"), "{client}: {text}");
        assert_eq!(
            synced(folder.path(), &["--client", client, "prompts", "--to", "out"])["written"],
            json!([]),
            "{client}"
        );
    }
    fs::remove_file(folder.path().join("prompts/code_review.md")).expect("a removed file");
    synced(folder.path(), &["--client", "codex", "prompts", "--to", "out", "--replace"]);
    assert!(!folder.path().join("out/.agents/skills/code-review").exists(), "the folder of the skill is gone, too");
    for (client, way) in [
        ("claude-desktop", "`promptshelf install --client claude-desktop` connects it;"),
        ("chatgpt", "add a server in its own settings;"),
    ] {
        let none = sync(folder.path()).args(["--client", client, "prompts"]).output().expect("a process");
        let error = String::from_utf8_lossy(&none.stderr);
        assert_eq!(none.status.code(), Some(2), "{client}");
        assert!(error.contains("reads no files of prompts") && error.contains(way), "{client}: {error}");
    }
}

#[test]
fn placeholders_are_not_shown_in_reports() {
    let notes = "---\narguments:\n  - {name: file, required: true}\n---\nRead {{ attach(\"notes/\" ~ file) }}\n";
    let folder = library(&[("notes.md", notes)]);
    let report = synced(folder.path(), &["--client", "claude-code", "prompts"]);
    let what = report["leftOut"][0]["reason"].as_str().unwrap_or_default();
    assert!(what.contains("notes/<file>"), "{report}");
}

// req: S-130
#[test]
fn hostile_names_of_a_server_never_leave_the_folder() {
    let names =
        ["../../escaped", "/srv/escaped", "a/b", "CON", "..", "Same", "same", "fine", "-rf", "help", "a\u{1b}[2J"];
    let prompts: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
    let server =
        FakeServer::of(json!(prompts), json!([{ "role": "user", "content": { "type": "text", "text": "Text\n# x" } }]));
    let folder = library(&[]);
    let report = synced(folder.path(), &["--client", "claude-code", "--url", &server.url, "--to", "out/project"]);
    assert_eq!(report["written"], json!([".claude/commands/Same.md", ".claude/commands/fine.md"]));
    let lost: Vec<&str> =
        report["leftOut"].as_array().into_iter().flatten().filter_map(|lost| lost["prompt"].as_str()).collect();
    assert_eq!(lost.len(), 9, "{report}");
    assert!(read(&folder, "out/project/.claude/commands/fine.md").contains(&server.url));
    let mut all: Vec<String> = fs::read_dir(folder.path().join("out"))
        .expect("a folder")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    all.sort();
    assert_eq!(all, ["project"]);
}

// req: S-130
#[cfg(unix)]
#[test]
fn links_out_of_the_folder_are_not_followed() {
    let folder = library(&[("hello.md", "Hello\n")]);
    folder.write("victim/keep.md", "Mine\n");
    let commands = folder.path().join("out/.claude/commands");
    fs::create_dir_all(commands.parent().expect("a folder")).expect("folders");
    std::os::unix::fs::symlink(folder.path().join("victim"), &commands).expect("a link");
    let done =
        sync(folder.path()).args(["--client", "claude-code", "prompts", "--to", "out"]).output().expect("a process");
    assert_eq!(done.status.code(), Some(1), "{}", String::from_utf8_lossy(&done.stdout));
    assert_eq!(fs::read_dir(folder.path().join("victim")).expect("a folder").count(), 1);
    fs::remove_file(&commands).expect("a removed link");
    fs::create_dir(&commands).expect("a folder");
    std::os::unix::fs::symlink(folder.path().join("victim/keep.md"), commands.join("hello.md")).expect("a link");
    // A file of an interrupted sync.
    fs::write(commands.join(".promptshelf-sync-1"), "half").expect("a file");
    let report = synced(folder.path(), &["--client", "claude-code", "prompts", "--to", "out"]);
    assert_eq!(report["kept"][0]["path"], ".claude/commands/hello.md");
    assert_eq!(read(&folder, "victim/keep.md"), "Mine\n");
    assert!(!commands.join(".promptshelf-sync-1").exists());
}

/// A disk that is not there leaves an empty folder.
#[test]
fn library_without_prompts_removes_nothing_unless_asked() {
    const SKILL: &str = "---\nname: refunds\ndescription: Handles\n---\nText\n";
    for emptied in [true, false] {
        let folder = library(&[("hello.md", "Hello\n"), ("refunds/SKILL.md", SKILL), ("refunds/a.txt", "A\n")]);
        let arguments = ["--client", "claude-code", "prompts", "--to", "out"];
        synced(folder.path(), &arguments);
        let files = [".claude/commands/hello.md", ".claude/skills/refunds/SKILL.md", ".claude/skills/refunds/a.txt"];
        let are_there = || files.map(|file| folder.path().join("out").join(file).exists());
        assert_eq!(are_there(), [true; 3]);
        fs::remove_dir_all(folder.path().join("prompts")).expect("removed");
        fs::create_dir(folder.path().join("prompts")).expect("created");
        if !emptied {
            fs::write(folder.path().join("prompts/notes.txt"), "not a prompt").expect("written");
        }
        for line in [&[][..], &["--dry-run"]] {
            let refused = sync(folder.path()).args(arguments).args(line).output().expect("a process");
            let said = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(refused.status.code(), Some(14), "{said}");
            assert!(
                said.contains("prompts has no prompts, and 2 files would be removed") && said.contains(files[0]),
                "{said}"
            );
            assert_eq!(are_there(), [true; 3]);
        }
        synced(folder.path(), &[&arguments[..], &["--replace"]].concat());
        assert_eq!(are_there(), [false; 3]);
        // Nothing is left to remove.
        synced(folder.path(), &arguments);
    }
}

#[test]
fn unreachable_server_changes_nothing() {
    let folder = library(&[]);
    let server = FakeServer::of(
        json!([{ "name": "one" }]),
        json!([{ "role": "user", "content": { "type": "text", "text": "1" } }]),
    );
    let url = server.url.clone();
    synced(folder.path(), &["--client", "claude-code", "--url", &url]);
    drop(server);
    let done = sync(folder.path()).args(["--client", "claude-code", "--url", &url]).output().expect("a process");
    assert_eq!(done.status.code(), Some(9), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(folder.path().join(".claude/commands/one.md").exists());
}

/// A sync that stays, with the lines of its reports. It is ended when it is dropped.
pub(crate) struct Watching {
    child: std::process::Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Watching {
    pub(crate) fn start(folder: &Folder, arguments: &[&str]) -> Watching {
        let mut command = sync(folder.path());
        command.args(["--client", "claude-code", "--watch", "--json"]).args(arguments).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Watching { child, lines }
    }

    pub(crate) fn report(&self) -> Value {
        let line = self.lines.recv_timeout(Duration::from_secs(60)).expect("a report");
        serde_json::from_str(&line).expect("JSON")
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn watch_follows_a_server_and_a_folder() {
    let served = library(&[("one.md", "One\n"), ("two.md", "Two\n")]);
    let server = Server::of(&served, &[]);
    let folder = library(&[]);
    let watching = Watching::start(&folder, &["--url", &server.url]);
    assert_eq!(watching.report()["written"].as_array().map(Vec::len), Some(2));
    served.remove("prompts/two.md");
    assert_eq!(watching.report()["removed"], json!([".claude/commands/two.md"]));
    assert!(!folder.path().join(".claude/commands/two.md").exists());
    drop(watching);

    let local = library(&[("one.md", "One\n")]);
    #[cfg_attr(not(unix), expect(unused_mut, reason = "the process gets a signal on Unix only"))]
    let mut watching = Watching::start(&local, &["prompts"]);
    assert_eq!(watching.report()["written"], json!([".claude/commands/one.md"]));
    local.write("prompts/one.md", "Changed\n");
    assert_eq!(watching.report()["written"], json!([".claude/commands/one.md"]));
    assert!(read(&local, ".claude/commands/one.md").ends_with("Changed\n"));
    #[cfg(unix)]
    {
        let id = rustix::process::Pid::from_child(&watching.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("a signal");
        assert_eq!(crate::program::ended(&mut watching.child).code(), Some(0));
    }
}
