//! The command `sync`: folders of skills with their files.

use std::fs;

use serde_json::{Value, json};

use crate::{
    fake_server::FakeServer,
    program::{Folder, Server, library},
    sync::{Watching, synced},
};

const REFUNDS: &str = "---\nname: refunds\ndescription: Handles a refund\n---\nUse `templates/letter.md`.\n";
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\n\0\xff";

/// A library with a prompt, and a skill of three files.
fn refunds() -> Folder {
    let folder = library(&[("hello.md", "Hello\n"), ("refunds/SKILL.md", REFUNDS)]);
    folder.write("prompts/refunds/templates/letter.md", "Dear customer,\r\n");
    fs::write(folder.path().join("prompts/refunds/logo.png"), IMAGE).expect("a file");
    folder
}

fn paths(report: &Value, key: &str) -> Vec<String> {
    let rows = report[key].as_array().into_iter().flatten();
    rows.filter_map(|row| row.as_str().or(row["path"].as_str()).map(str::to_owned)).collect()
}

fn reason(report: &Value) -> &str {
    report["kept"][0]["reason"].as_str().unwrap_or_default()
}

const ALL: [&str; 3] = ["SKILL.md", "logo.png", "templates/letter.md"];

fn below(folder: &str, files: &[&str]) -> Vec<String> {
    files.iter().map(|file| format!("{folder}/refunds/{file}")).collect()
}

#[test]
fn skills_are_written_updated_and_removed_with_their_files() {
    let folder = refunds();
    for (client, skills) in [("codex", ".agents/skills"), ("claude-code", ".claude/skills")] {
        let run = || synced(folder.path(), &["--client", client, "prompts", "--to", client]);
        let at = |path: &str| folder.path().join(client).join(skills).join("refunds").join(path);
        let first = run();
        let written = paths(&first, "written");
        let prompts = if client == "codex" { ".agents/skills/hello/SKILL.md" } else { ".claude/commands/hello.md" };
        assert_eq!(written.len(), 4, "{first}");
        assert!(written.iter().any(|path| path == prompts), "{first}");
        assert!(below(skills, &ALL).iter().all(|path| written.contains(path)), "{first}");
        assert_eq!(fs::read_to_string(at("SKILL.md")).expect("a file"), REFUNDS);
        assert_eq!(fs::read(at("templates/letter.md")).expect("a file"), b"Dear customer,\r\n");
        assert_eq!(fs::read(at("logo.png")).expect("a file"), IMAGE);
        let again = run();
        assert_eq!((paths(&again, "written"), paths(&again, "removed")), (vec![], vec![]), "{again}");

        // An update of one file, and the removal of another.
        folder.write("prompts/refunds/SKILL.md", &REFUNDS.replace("templates/", ""));
        folder.remove("prompts/refunds/templates/letter.md");
        let changed = run();
        assert_eq!(paths(&changed, "written"), below(skills, &["SKILL.md"]));
        assert_eq!(paths(&changed, "removed"), below(skills, &["templates/letter.md"]));
        assert!(!at("templates").exists(), "an empty folder is left");

        // With an edited file, all files stay.
        fs::write(at("logo.png"), "mine").expect("a file");
        folder.write("prompts/refunds/SKILL.md", REFUNDS);
        folder.write("prompts/refunds/templates/letter.md", "Dear customer,\r\n");
        let edited = run();
        assert_eq!((paths(&edited, "written"), paths(&edited, "kept")), (vec![], below(skills, &["logo.png"])));
        assert!(reason(&edited).contains("the whole skill stays"), "{edited}");
        assert!(!at("templates").exists());

        // A withdrawn skill loses all files but the edited one.
        fs::rename(folder.path().join("prompts/refunds"), folder.path().join("away")).expect("a move");
        let gone = run();
        assert_eq!(paths(&gone, "removed"), below(skills, &["SKILL.md"]), "{gone}");
        assert_eq!(paths(&gone, "kept"), below(skills, &["logo.png"]));
        fs::remove_file(at("logo.png")).expect("a removed file");
        assert_eq!(paths(&run(), "kept"), Vec::<String>::new());
        assert!(!at("").exists(), "the folder is gone");
        fs::rename(folder.path().join("away"), folder.path().join("prompts/refunds")).expect("a move");
    }
}

#[test]
fn skill_that_comes_back_is_written_beside_files_of_others() {
    let folder = refunds();
    let run = || synced(folder.path(), &["--client", "codex", "prompts", "--to", "to"]);
    let move_skill =
        |from: &str, to: &str| fs::rename(folder.path().join(from), folder.path().join(to)).expect("a move");
    let at = |path: &str| folder.path().join("to/.agents/skills/refunds").join(path);
    run();
    fs::write(at("notes.txt"), "mine").expect("a file");
    move_skill("prompts/refunds", "away");
    run();
    assert!(at("notes.txt").exists() && !at("SKILL.md").exists());
    move_skill("away", "prompts/refunds");
    let back = run();
    assert_eq!(paths(&back, "written"), below(".agents/skills", &ALL), "{back}");
    assert_eq!((paths(&back, "kept"), fs::read(at("notes.txt")).expect("a file")), (vec![], b"mine".to_vec()));
    // One of the user's files in the place of the skill's own keeps it all away.
    move_skill("prompts/refunds", "away");
    run();
    fs::write(at("logo.png"), "mine").expect("a file");
    move_skill("away", "prompts/refunds");
    let kept = run();
    assert_eq!(paths(&kept, "kept"), below(".agents/skills", &["logo.png"]), "{kept}");
    assert!(!at("SKILL.md").exists());
}

#[test]
fn files_of_skills_keep_all_of_their_bytes() {
    let folder = refunds();
    let marked = "\u{feff}Dear customer,\n";
    let run = || synced(folder.path(), &["--client", "codex", "prompts", "--to", "to"]);
    let letter =
        || fs::read_to_string(folder.path().join("to/.agents/skills/refunds/templates/letter.md")).expect("a file");
    for text in [marked, marked.trim_start_matches('\u{feff}'), marked] {
        folder.write("prompts/refunds/templates/letter.md", text);
        let written = run();
        assert_eq!(letter(), text, "{written}");
    }
}

#[test]
fn watch_follows_the_files_of_skills_of_a_server() {
    let served = refunds();
    let move_skill =
        |from: &str, to: &str| fs::rename(served.path().join(from), served.path().join(to)).expect("a move");
    move_skill("prompts/refunds", "away");
    let server = Server::of(&served, &[]);
    let folder = library(&[]);
    let watching = Watching::start(&folder, &["--url", &server.url]);
    // A list may be older than the files, so that one report has no change.
    let next = |key: &str| {
        std::iter::repeat_with(|| paths(&watching.report(), key)).find(|paths| !paths.is_empty()).unwrap_or_default()
    };
    assert_eq!(next("written"), [".claude/commands/hello.md"]);
    // The first skill of a server without any.
    move_skill("away", "prompts/refunds");
    assert_eq!(next("written"), below(".claude/skills", &ALL));
    served.write("prompts/refunds/templates/letter.md", "Dear all,\n");
    assert_eq!(next("written"), below(".claude/skills", &["templates/letter.md"]));
    move_skill("prompts/refunds", "away");
    assert_eq!(next("removed"), below(".claude/skills", &ALL));
    assert!(!folder.path().join(".claude/skills/refunds").exists());
}

// req: S-214
#[test]
fn foreign_folders_and_forged_records_are_not_touched() {
    let folder = refunds();
    let skills = folder.path().join(".claude/skills");
    let run = || synced(folder.path(), &["--client", "claude-code", "prompts"]);
    // A folder of another program.
    fs::create_dir_all(skills.join("refunds")).expect("a folder");
    fs::write(skills.join("refunds/SKILL.md"), "mine").expect("a file");
    let kept = run();
    assert_eq!(paths(&kept, "kept"), below(".claude/skills", &["SKILL.md"]));
    assert_eq!(fs::read_to_string(skills.join("refunds/SKILL.md")).expect("a file"), "mine");
    fs::remove_dir_all(&skills).expect("a removed folder");

    // A record that names a file outside of the skill, with the digest of that file.
    folder.write("victim.txt", "secret");
    let digest = "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    let record = |path: &str| json!({ "origin": "./prompts", "files": { path: [digest] } }).to_string();
    for path in ["../../../victim.txt", "/victim.txt", "a/../../../../victim.txt", ""] {
        fs::create_dir_all(skills.join("other")).expect("a folder");
        fs::write(skills.join("other/.promptshelf-sync.json"), record(path)).expect("a file");
        let report = run();
        assert_eq!(paths(&report, "removed"), Vec::<String>::new(), "{path}");
        assert!(folder.path().join("victim.txt").exists(), "{path}");
        fs::remove_dir_all(skills.join("other")).expect("a removed folder");
    }
    #[cfg(unix)]
    {
        // A link in place of a folder of the skill.
        run();
        fs::remove_dir_all(skills.join("refunds/templates")).expect("a removed folder");
        std::os::unix::fs::symlink(folder.path(), skills.join("refunds/templates")).expect("a link");
        let report = run();
        assert_eq!(paths(&report, "kept"), below(".claude/skills", &["templates/letter.md"]));
        assert!(!folder.path().join("letter.md").exists());
    }
}

// req: S-215
#[test]
fn contents_that_do_not_fit_the_list_are_not_written() {
    let digest = "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    let skill = |name: &str, files: Value| {
        let uri = format!("skill://{name}/SKILL.md");
        json!({ "uri": uri, "frontmatter": { "name": name, "description": "x" }, "resources": files })
    };
    let file = |uri: &str, size: u64| json!({ "uri": uri, "digest": digest, "size": size });
    let skills = json!([
        skill("good", json!([file("skill://good/SKILL.md", 6)])),
        skill("long", json!([file("skill://long/SKILL.md", 7)])),
        skill("forged", json!([file("skill://forged/SKILL.md", 6), file("skill://forged/x.md", 6)])),
        skill("out", json!([file("skill://out/SKILL.md", 6), file("skill://out/.git/hooks/x", 6)])),
        skill("UPPER", json!([file("skill://UPPER/SKILL.md", 6)])),
        skill("good", json!([file("skill://good/SKILL.md", 6)])),
    ]);
    let server = FakeServer::start(move |method, params| match method {
        "server/discover" => Some(json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "resources": {}, "extensions": { "io.modelcontextprotocol/skills": {} } },
            "serverInfo": { "name": "server", "version": "1" },
            "ttlMs": 0,
            "cacheScope": "private",
        })),
        "skills/list" => Some(json!({ "skills": skills })),
        "resources/read" => {
            let text = if params["uri"] == "skill://forged/x.md" { "public" } else { "secret" };
            Some(json!({ "contents": [{ "uri": params["uri"], "text": text }] }))
        }
        _ => None,
    });
    let folder = library(&[]);
    let report = synced(folder.path(), &["--client", "claude-code", "--url", &server.url]);
    assert_eq!(paths(&report, "written"), [".claude/skills/good/SKILL.md"], "{report}");
    let lost = report["leftOut"].as_array().into_iter().flatten().filter_map(|lost| lost["prompt"].as_str());
    assert_eq!(lost.collect::<Vec<_>>(), ["UPPER", "forged", "good", "long", "out"], "{report}");
    assert!(!folder.path().join(".claude/skills/forged").exists(), "half a skill was written");
}
