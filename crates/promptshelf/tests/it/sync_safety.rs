//! The commands `sync`, `export`, `publish` and `pull` do no harm: to the library, to the client, to other people.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::{Value, json};

use crate::{
    fake_server::FakeServer,
    program::{Folder, library, promptshelf},
    sync::{Watching, sync, synced},
};
#[cfg(unix)]
use crate::{program::Server, terminal::Terminal};

const REVIEW: &str = "---\ndescription: Reviews\narguments: [{name: code, required: true}]\n---\nReview {{ code }}\n";
const CLIENTS: [&str; 6] = ["claude-code", "vscode", "gemini-cli", "cursor", "opencode", "codex"];

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = promptshelf();
    command.args(arguments).current_dir(folder).env("HOME", folder).env_remove("XDG_STATE_HOME");
    command.output().expect("a process")
}

fn names(library: &Path) -> Vec<String> {
    let listed = run(library, &["list", ".", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let rows = listed["items"].as_array().or(listed.as_array()).cloned().unwrap_or_default();
    rows.iter().filter_map(|row| row["name"].as_str().map(str::to_owned)).collect()
}

/// Returns the contents of all files below a folder, apart from the state of the program.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        match entry.file_type().expect("a type").is_dir() {
            true if entry.file_name() == ".local" => {}
            true => found.extend(files(&entry.path())),
            false => {
                found.insert(entry.path(), fs::read(entry.path()).expect("a file"));
            }
        }
    }
    found
}

// req: S-240
#[test]
fn sync_into_the_library_itself_keeps_every_prompt() {
    let folder =
        library(&[("audit.md", REVIEW), ("refunds/SKILL.md", "---\nname: refunds\ndescription: x\n---\nRefund\n")]);
    let library = folder.path().join("prompts");
    for client in CLIENTS {
        let first = synced(&library, &["--client", client, "."]);
        assert_ne!(first["written"], json!([]), "{client}");
        assert_eq!(names(&library), ["audit", "refunds"], "{client}");
        let again = synced(&library, &["--client", client, "."]);
        assert_eq!((&again["written"], &again["removed"]), (&json!([]), &json!([])), "{client}");
    }
    for format in ["claude", "gemini", "vscode", "opencode"] {
        let folder = crate::program::library(&[("audit.md", REVIEW)]);
        let library = folder.path().join("prompts");
        assert_eq!(run(&library, &["export", "--format", format, "--to", "."]).status.code(), Some(0), "{format}");
        assert_eq!(names(&library), ["audit"], "{format}");
    }
}

// req: S-240
#[test]
fn watch_of_the_library_itself_writes_once() {
    let folder = library(&[]);
    folder.write("review.md", REVIEW);
    let watching = Watching::start(&folder, &["."]);
    assert_eq!(watching.report()["written"], json!([".claude/commands/review.md"]));
    // A loop would report something in between.
    folder.write("review.md", &REVIEW.replace("Review {{", "Check {{"));
    let second = watching.report();
    assert_eq!((&second["written"], &second["removed"]), (&json!([".claude/commands/review.md"]), &json!([])));
    folder.write("other.md", "Other\n");
    let third = watching.report();
    assert_eq!((&third["written"], &third["removed"]), (&json!([".claude/commands/other.md"]), &json!([])));
}

// req: S-240
#[test]
fn folder_with_prompts_of_the_library_is_refused() {
    let folder = library(&[("review.md", REVIEW), (".claude/commands/mine.md", "Mine\n")]);
    let library = folder.path().join("prompts");
    let before = files(&library);
    for arguments in [
        &["sync", "--client", "claude-code", "."][..],
        &["export", "--format", "claude", "--to", "."],
        &["export", "--format", "skill", "--to", "."],
    ] {
        let done = run(&library, arguments);
        let message = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{message}");
        assert!(message.contains("the library . reads ") && message.contains("one of its prompts"), "{message}");
        assert_eq!(files(&library), before);
    }
    let commands = library.join(".claude/commands");
    let done = run(&commands, &["sync", "--client", "claude-code", ".", "--to", "../.."]);
    assert_eq!(done.status.code(), Some(2), "{}", String::from_utf8_lossy(&done.stderr));
    // From a library next to it, the file is another program's and stays.
    let report = synced(folder.path(), &["--client", "claude-code", "prompts"]);
    assert_eq!(report["written"], json!([".claude/commands/mine.md", ".claude/commands/review.md"]), "{report}");
}

#[test]
fn same_prompts_in_six_formats_are_served_once_before_and_after_sync() {
    let folder = library(&[
        ("review.md", REVIEW),
        (".claude/commands/review.md", "---\ndescription: Reviews\n---\n\nReview $ARGUMENTS\n"),
        (".github/prompts/review.prompt.md", "---\ndescription: Reviews\n---\n\nReview ${input:code}\n"),
        (".gemini/commands/review.toml", "description = \"Reviews\"\nprompt = \"Review {{args}}\"\n"),
        (".opencode/commands/review.md", "---\ndescription: Reviews\n---\n\nReview $ARGUMENTS\n"),
        (".agents/skills/review/SKILL.md", "---\nname: review\ndescription: Reviews\n---\n\nReview\n"),
    ]);
    let library = folder.path().join("prompts");
    assert_eq!(names(&library), ["review"]);
    let before = files(&library);
    // Into the library itself, where it reads prompts of its own in the folders of each client, and into the project around
    // it.
    for (at, from, expected) in [(&*library, ".", 2), (folder.path(), "prompts", 0)] {
        let round = || {
            for client in CLIENTS {
                let done = run(at, &["sync", "--client", client, from]);
                let message = String::from_utf8_lossy(&done.stderr).into_owned();
                assert_eq!(done.status.code(), Some(expected), "{client}: {message}");
                assert_eq!(message.contains("is one of its prompts"), expected == 2, "{client}: {message}");
            }
            assert_eq!(names(&library), ["review"]);
            files(folder.path())
        };
        let first = round();
        for _ in 1..10 {
            assert_eq!(round(), first);
        }
    }
    let written: Vec<PathBuf> = files(folder.path()).into_keys().filter(|path| !before.contains_key(path)).collect();
    // OpenCode has a command `review` itself.
    assert_eq!(written.len(), CLIENTS.len() - 1, "{written:?}");
    assert!(before.iter().all(|(path, bytes)| fs::read(path).is_ok_and(|now| now == *bytes)));
}

// req: S-381
#[test]
fn libraries_with_the_same_folder_name_never_take_each_others_files() {
    let folder = Folder::empty();
    folder.write("a/prompts/one.md", "One\n");
    folder.write("b/prompts/two.md", "Two\n");
    folder.write("project/.keep", "");
    let project = folder.path().join("project");
    let sync = |library: &str, home: &str| {
        let mut command = promptshelf();
        command.args(["sync", "--client", "claude-code", library]).current_dir(&project).env_remove("XDG_STATE_HOME");
        command.env("HOME", folder.path().join(home)).output().expect("a process")
    };
    assert_eq!(sync("../a/prompts", "").status.code(), Some(0));
    let refused = sync("../b/prompts", "");
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(14), "{message}");
    assert!(message.contains("a/prompts") && message.contains("[server]"), "{message}");
    assert!(project.join(".claude/commands/one.md").exists() && !project.join(".claude/commands/two.md").exists());
    folder.write("b/prompts/promptshelf.toml", "[server]\nname = \"b\"\n");
    assert_eq!(sync("../b/prompts", "").status.code(), Some(0));
    assert_eq!(sync("../a/prompts", "").status.code(), Some(0));
    assert!(project.join(".claude/commands/one.md").exists() && project.join(".claude/commands/two.md").exists());
    // A library that has moved is still the same one.
    fs::rename(folder.path().join("a"), folder.path().join("c")).expect("a move");
    assert_eq!(sync("../c/prompts", "").status.code(), Some(0));
}

// req: S-382
#[test]
fn export_again_refreshes_its_own_files_and_keeps_edited_ones() {
    let folder = library(&[
        ("promptshelf.toml", "[server]\nname = \"team\"\ndescription = \"One\"\n"),
        ("hello.md", "---\ndescription: d\n---\nHello\n"),
        ("bye.md", "---\ndescription: d\n---\nBye\n"),
        ("pdf/SKILL.md", "---\nname: pdf\ndescription: x\n---\nFill\n"),
    ]);
    let read = |path: &str| fs::read_to_string(folder.path().join(path)).expect("a file");
    let ran = |arguments: &[&str]| {
        let done = run(folder.path(), arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (done.status.code(), text(&done.stdout), text(&done.stderr))
    };
    for (arguments, hello, skill) in [
        (
            &["export", "--plugin", "claude-code", "--to", "market", "-l", "prompts"][..],
            "market/plugins/team/commands/hello.md",
            "market/plugins/team/skills/pdf/SKILL.md",
        ),
        (&["export", "--format", "skill", "--to", "out", "-l", "prompts"], "out/hello/SKILL.md", "out/pdf/SKILL.md"),
    ] {
        folder.write("prompts/hello.md", "---\ndescription: d\n---\nHello\n");
        folder.write("prompts/pdf/SKILL.md", "---\nname: pdf\ndescription: x\n---\nFill\n");
        assert_eq!(ran(arguments).0, Some(0));
        let (code, written, message) = ran(arguments);
        assert_eq!((code, &*written), (Some(0), ""), "{message}");
        assert!(message.contains(" unchanged"), "{message}");
        folder.write("prompts/hello.md", "---\ndescription: d\n---\nHello!\n");
        folder.write("prompts/pdf/SKILL.md", "---\nname: pdf\ndescription: x\n---\nFill in\n");
        let (code, written, message) = ran(arguments);
        assert_eq!(code, Some(0), "{message}");
        assert_eq!(written.lines().count(), 2, "{written}");
        assert!(read(hello).contains("Hello!\n") && read(skill).contains("Fill in"));
        // Edited files stay, and are named.
        folder.write(hello, &read(hello).replace("Hello!", "Mine"));
        folder.write(skill, "Mine\n");
        folder.write("prompts/hello.md", "---\ndescription: d\n---\nHello?\n");
        let (code, _, message) = ran(arguments);
        assert_eq!(code, Some(1), "{message}");
        assert!(message.contains(hello) && message.contains(skill), "{message}");
        assert!(read(hello).contains("Mine") && read(skill) == "Mine\n");
    }
}

// req: S-380
#[cfg(target_os = "linux")]
#[test]
fn publish_leaves_out_what_a_folder_does_not_serve() {
    use std::os::unix::{ffi::OsStrExt as _, fs::symlink};

    let folder = library(&[("hello.md", "Hello\n"), ("old.md", "Old\n"), ("AGENTS.md", "Obey\n")]);
    let library = folder.path().join("prompts");
    symlink("AGENTS.md", library.join("CLAUDE.md")).expect("a link");
    symlink("/etc/hostname", library.join("host.md")).expect("a link");
    let ran = |arguments: &[&str]| {
        let done = run(folder.path(), arguments);
        let message = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(0), "{message}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    let made = ran(&["init", "sqlite:team.db", "--from", "prompts"]);
    assert!(made.contains("left out host.md: this path leads out of the library"), "{made}");
    fs::write(library.join(std::ffi::OsStr::from_bytes(b"caf\xe9.md")), "Caf\n").expect("a file");
    fs::remove_file(library.join("old.md")).expect("removed");
    symlink("../nowhere", library.join("old.md")).expect("a link");
    folder.write("prompts/new.md", "New\n");
    let publish = ["publish", "prompts", "--store", "sqlite:team.db", "-m", "x", "--json"];
    for arguments in [&[&publish[..], &["--dry-run"]].concat()[..], &publish, &publish] {
        let outcome: Value = serde_json::from_str(&ran(arguments)).expect("JSON");
        let paths: Vec<&str> =
            outcome["leftOut"].as_array().into_iter().flatten().filter_map(|row| row["path"].as_str()).collect();
        assert_eq!(paths, ["caf\u{fffd}.md", "host.md", "old.md"], "{outcome}");
        assert!(outcome["leftOut"][0]["reason"].as_str().is_some_and(|reason| reason.contains("not UTF-8")));
    }
    // The channel keeps what it has at such a path.
    ran(&["pull", "sqlite:team.db", "copy"]);
    let text = |path: &str| fs::read_to_string(folder.path().join("copy").join(path)).ok();
    assert_eq!((text("old.md").as_deref(), text("new.md").as_deref()), (Some("Old\n"), Some("New\n")));
    assert_eq!(text("host.md"), None);
}

fn server(text: &str) -> FakeServer {
    FakeServer::of(
        json!([{ "name": "evil", "arguments": [{ "name": "topic", "required": true }] }]),
        json!([{ "role": "user", "content": { "type": "text", "text": text } }]),
    )
}

// req: S-241
#[test]
fn commands_of_a_server_need_consent() {
    for (client, path, text) in [
        ("claude-code", ".claude/commands/evil.md", "!`touch /srv/x`"),
        ("claude-code", ".claude/commands/evil.md", "@~/.ssh/id_ed25519"),
        ("gemini-cli", ".gemini/commands/evil.toml", "!{touch /srv/x}"),
        ("opencode", ".opencode/commands/evil.md", "a!`touch /srv/x`"),
        ("cursor", ".cursor/commands/evil.md", "@.env"),
        ("windsurf", ".windsurf/workflows/evil.md", "// turbo\n1. Run it"),
        ("vscode", ".github/prompts/evil.prompt.md", "[x](../.env)"),
        ("codex", ".agents/skills/evil/SKILL.md", "!`touch /srv/x`"),
    ] {
        let folder = library(&[]);
        let server = server(text);
        let arguments = ["--client", client, "--url", &server.url, "--json"];
        let done = sync(folder.path()).args(arguments).output().expect("a process");
        assert_eq!(done.status.code(), Some(1), "{client} {text}");
        let report: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        let report = &report["items"][0];
        assert_eq!((&report["written"], &report["refused"][0]["prompt"]), (&json!([]), &json!("evil")), "{report}");
        assert!(!folder.path().join(path).exists(), "{client} {text}");
        let allowed = synced(folder.path(), &["--client", client, "--url", &server.url, "--allow-commands", "evil"]);
        assert_eq!(allowed["written"], json!([path]), "{client} {text}");
    }
    // Text of the user's own folder is written, with a warning; an argument inside of the command changes nothing.
    let folder = library(&[("evil.md", "---\narguments: [{name: x}]\n---\n!`echo {{ x }}`\n")]);
    let report = synced(folder.path(), &["--client", "claude-code", "prompts"]);
    assert_eq!(report["written"], json!([".claude/commands/evil.md"]));
    assert!(report["lost"].to_string().contains("a shell command: !`echo $ARGUMENTS`"), "{report}");
    // A folder that was pulled has text of other people.
    folder.write("prompts/.promptshelf-base", "{}");
    let done = run(folder.path(), &["sync", "--client", "claude-code", "prompts", "--to", "other"]);
    assert_eq!(done.status.code(), Some(1), "{}", String::from_utf8_lossy(&done.stdout));
}

/// Runs a sync at a terminal, answers its question, and returns the question and the exit code.
#[cfg(unix)]
fn asked(folder: &Folder, url: &str, answer: &str) -> (String, Option<i32>) {
    let mut command = sync(folder.path());
    command.args(["--client", "claude-code", "--url", url]);
    let mut terminal = Terminal::start(command);
    let question = terminal.wait_for("Write it until its text changes? [y/N] ");
    terminal.press(&format!("{answer}\r"));
    (question, terminal.end().0)
}

/// The user sees what the client would do, and is asked again only about another text.
// req: S-241
#[cfg(unix)]
#[test]
fn command_of_a_server_is_asked_about_once_for_each_text() {
    let folder = library(&[]);
    folder.write("served/evil.md", "---\ndescription: d\n---\n!`touch one`\n");
    let server = Server::start({
        let mut command = promptshelf();
        command.args(["serve", "served", "--http", "127.0.0.1:0"]).current_dir(folder.path());
        command
    });
    let path = folder.path().join(".claude/commands/evil.md");
    for (answer, code) in [("", 1), ("n", 1), ("maybe", 1), ("y", 0)] {
        let (question, done) = asked(&folder, &server.url, answer);
        assert!(question.contains("`evil` of ") && question.contains("a shell command: !`touch one`"), "{question}");
        assert_eq!((done, path.exists()), (Some(code), code == 0), "{answer}");
    }
    // Neither a script nor a terminal is asked again about the same text.
    fs::remove_file(&path).expect("a file");
    let report = synced(folder.path(), &["--client", "claude-code", "--url", &server.url]);
    assert_eq!(report["written"], json!([".claude/commands/evil.md"]), "{report}");
    folder.write("served/evil.md", "---\ndescription: d\n---\n!`touch two`\n");
    let script = || {
        let done = sync(folder.path()).args(["--client", "claude-code", "--url", &server.url]).output();
        done.expect("a process").status.code()
    };
    while fs::read_to_string(&path).expect("a file").contains("touch one") && script() == Some(0) {}
    assert_eq!(script(), Some(1));
    assert!(fs::read_to_string(&path).expect("a file").contains("touch one"), "the earlier text stays");
    let (question, done) = asked(&folder, &server.url, "yes");
    assert!(question.contains("touch two") && done == Some(0), "{question}");
    assert!(fs::read_to_string(&path).expect("a file").contains("touch two"));
}

/// The scripts of a skill are a part of what its permissions are for.
// req: S-242, S-342
#[cfg(unix)]
#[test]
fn permissions_of_a_skill_are_asked_about_once_for_each_content_of_it() {
    const SKILL: &str =
        "---\nname: tool\ndescription: d\nallowed-tools: Bash(scripts/run.sh)\nhooks: {}\n---\nRun it.\n";
    let folder = library(&[]);
    folder.write("served/hello.md", "---\ndescription: d\n---\nHello\n");
    folder.write("served/tool/SKILL.md", SKILL);
    folder.write("served/tool/scripts/run.sh", "echo one\n");
    let server = Server::start({
        let mut command = promptshelf();
        command.args(["serve", "served", "--http", "127.0.0.1:0"]).current_dir(folder.path());
        command
    });
    let skill = folder.path().join(".claude/skills/tool");
    let (question, done) = asked(&folder, &server.url, "n");
    assert!(question.contains("a permission: allowed-tools: Bash(scripts/run.sh)"), "{question}");
    assert!(question.contains("a permission: hooks"), "{question}");
    assert_eq!((done, skill.exists()), (Some(1), false));
    assert!(folder.path().join(".claude/commands/hello.md").exists(), "what is text was written");
    assert_eq!(asked(&folder, &server.url, "y").1, Some(0));
    assert_eq!(fs::read_to_string(skill.join("SKILL.md")).expect("a file"), SKILL);
    let report = || synced(folder.path(), &["--client", "claude-code", "--url", &server.url]);
    assert_eq!(report()["written"], json!([]));

    folder.write("served/tool/scripts/run.sh", "echo two\n");
    let run = || fs::read_to_string(skill.join("scripts/run.sh")).expect("a file");
    let script = || {
        let done = sync(folder.path()).args(["--client", "claude-code", "--url", &server.url]).output();
        done.expect("a process").status.code()
    };
    while script() == Some(0) {
        assert_eq!(run(), "echo one\n", "the permission was for another script");
    }
    assert_eq!(run(), "echo one\n");
    assert_eq!(asked(&folder, &server.url, "y").1, Some(0));
    assert_eq!(run(), "echo two\n");
    // A removal of the permissions needs no consent.
    folder.write("served/tool/SKILL.md", "---\nname: tool\ndescription: d\n---\nRun it.\n");
    while fs::read_to_string(skill.join("SKILL.md")).expect("a file") == SKILL {
        assert_eq!(script(), Some(0));
    }
}

// req: S-243
#[test]
fn colleagues_get_the_same_bytes_and_earlier_marks_are_taken_over() {
    let (ada, bob) = (library(&[("hello.md", "Hello\n")]), library(&[("hello.md", "Hello\n")]));
    for folder in [&ada, &bob] {
        synced(folder.path(), &["--client", "claude-code", "prompts", "--to", "out"]);
        synced(folder.path(), &["--client", "cursor", "prompts"]);
    }
    for path in ["out/.claude/commands/hello.md", ".cursor/commands/hello.md"] {
        let read = |folder: &Folder| fs::read_to_string(folder.path().join(path)).expect("a file");
        assert_eq!(read(&ada), read(&bob));
        assert!(!read(&ada).contains(&ada.path().display().to_string()));
    }
    // The mark of an earlier release, with an absolute path.
    let path = ada.path().join("out/.claude/commands/hello.md");
    let text = fs::read_to_string(&path).expect("a file");
    let earlier = text.replace(
        "from library:prompts as .claude/commands/hello.md",
        &ada.path().join("prompts").canonicalize().expect("a path").display().to_string(),
    );
    assert_ne!(earlier, text);
    fs::write(&path, &earlier).expect("a file");
    let report = synced(ada.path(), &["--client", "claude-code", "prompts", "--to", "out"]);
    assert_eq!(report["written"], json!([".claude/commands/hello.md"]));
    assert_eq!(fs::read_to_string(&path).expect("a file"), text);
    // A copy under another name is not one of `sync`.
    fs::copy(&path, path.with_file_name("mine.md")).expect("a copy");
    let report = synced(ada.path(), &["--client", "claude-code", "prompts", "--to", "out"]);
    assert_eq!(report["removed"], json!([]));
    assert!(path.with_file_name("mine.md").exists());
}

#[test]
fn prompt_without_its_image_is_not_written() {
    let image = json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" });
    let server = FakeServer::of(json!([{ "name": "chart" }]), json!([{ "role": "user", "content": image }]));
    let folder = library(&[]);
    let report = synced(folder.path(), &["--client", "claude-code", "--url", &server.url]);
    assert_eq!((&report["written"], &report["leftOut"][0]["prompt"]), (&json!([]), &json!("chart")), "{report}");
    let report = synced(folder.path(), &["--client", "claude-code", "--url", &server.url, "--allow-incomplete"]);
    assert_eq!(report["written"], json!([".claude/commands/chart.md"]), "{report}");
}

/// A typo in a prompt takes no command from its user.
// req: S-571
#[test]
fn file_of_a_broken_prompt_stays() {
    let folder = library(&[("a.md", REVIEW), ("b.md", REVIEW)]);
    let sync = || run(folder.path(), &["sync", "--client", "cursor", "prompts", "--json"]);
    assert!(sync().status.success());
    let before = files(&folder.path().join(".cursor"));
    folder.write("prompts/a.md", "{% if %}\n");
    folder.remove("prompts/b.md");
    let done = sync();
    let report: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let report = &report["items"][0];
    assert_eq!(done.status.code(), Some(1), "{report}");
    assert_eq!(report["kept"][0]["path"], ".cursor/commands/a.md", "{report}");
    assert_eq!(report["removed"], json!([".cursor/commands/b.md"]));
    let after = files(&folder.path().join(".cursor"));
    assert_eq!(after.len() + 1, before.len());
    assert!(after.iter().all(|(path, bytes)| before.get(path) == Some(bytes)));
}

#[test]
fn report_of_tests_replaces_no_prompt() {
    let folder = library(&[("a.md", REVIEW)]);
    let report = |file: &str| run(folder.path(), &["test", "prompts", "--junit", file]);
    let read = |file: &str| fs::read_to_string(folder.path().join(file)).expect("a file");
    let done = report("prompts/a.md");
    assert_eq!((done.status.code(), read("prompts/a.md")), (Some(1), REVIEW.to_owned()));
    assert!(String::from_utf8_lossy(&done.stderr).contains("a file that is no report has this name"));
    for _ in 0..2 {
        assert!(report("report.xml").status.success());
    }
    assert!(read("report.xml").starts_with("<?xml"));
}

#[test]
fn differences_are_said_once_for_each_kind() {
    let folder = library(&[("a.md", REVIEW), ("b.md", REVIEW)]);
    let run = || {
        let done = run(folder.path(), &["sync", "--client", "cursor", "prompts"]);
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    let first = run();
    assert!(first.contains("because commands of Cursor have none: a (`code`); b (`code`)\n"), "{first}");
    let again = run();
    assert!(
        !again.contains("because") && again.contains("1 difference between prompts and files, as before"),
        "{again}"
    );
}

// req: S-246
#[test]
fn private_files_are_not_published_and_not_bundled() {
    let key = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", "Ab1+".repeat(16));
    let folder = library(&[
        ("hello.md", "Hello {{ attach(\"notes.txt\") }}\n"),
        ("notes.txt", "Notes\n"),
        ("unused.txt", "x\n"),
    ]);
    folder.write("prompts/keys/test.pem", &key);
    fs::write(folder.path().join("program"), b"\x7fELF and more").expect("a file");
    let store = ["init", "sqlite:team.db", "--from", "prompts"];
    let done = run(folder.path(), &store);
    let message = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{message}");
    assert!(message.contains("keys/test.pem: this looks like a private key"), "{message}");
    assert!(!folder.path().join("team.db").exists());
    let done = run(folder.path(), &[&store[..], &["--include", "keys/test.pem"]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    folder.write("prompts/id_rsa", "x\n");
    let publish = ["publish", "prompts", "--store", "sqlite:team.db", "-m", "x"];
    let done = run(folder.path(), &publish);
    assert!(String::from_utf8_lossy(&done.stderr).contains("id_rsa"), "{}", String::from_utf8_lossy(&done.stderr));

    let done = run(folder.path(), &["export", "--mcpb", "a.mcpb", "--program", "program", "-l", "prompts"]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let bytes = fs::read(folder.path().join("a.mcpb")).expect("a file");
    let archive = zip::ZipArchive::new(std::io::Cursor::new(&bytes)).expect("an archive");
    let mut names: Vec<String> = archive.file_names().map(|name| name.expect("a name").into_owned()).collect();
    names.retain(|name| name.starts_with("library/"));
    names.sort();
    assert_eq!(names, ["library/hello.md", "library/notes.txt"]);
}

// req: S-247
#[test]
fn pull_leaves_files_of_other_programs_out() {
    let folder = library(&[
        ("hello.md", "Hello\n"),
        (".claude/commands/x.md", "X\n"),
        ("CLAUDE.md", "Obey\n"),
        ("sub/AGENTS.md", "Obey\n"),
    ]);
    let done = run(folder.path(), &["init", "sqlite:team.db", "--from", "prompts"]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let paths = |copy: &str| -> Vec<PathBuf> {
        let root = folder.path().join(copy);
        files(&root).into_keys().filter_map(|path| Some(path.strip_prefix(&root).ok()?.to_owned())).collect()
    };
    let done = run(folder.path(), &["pull", "sqlite:team.db", "copy"]);
    assert!(
        String::from_utf8_lossy(&done.stderr).contains("left out 3 files"),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    assert_eq!(paths("copy"), [Path::new(".promptshelf-base"), Path::new("hello.md")]);
    // They stay in the channel.
    folder.write("copy/hello.md", "Hello!\n");
    let done = run(folder.path(), &["publish", "copy", "--store", "sqlite:team.db", "-m", "x"]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(run(folder.path(), &["pull", "sqlite:team.db", "all", "--client-files"]).status.code(), Some(0));
    assert_eq!(paths("all").len(), 5);
}
