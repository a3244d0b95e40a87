//! The commands `import` and `export`.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

fn promptshelf(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_promptshelf"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("a running process")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder around it")).expect("folders");
        fs::write(path, text).expect("a file");
    }
    folder
}

#[test]
fn folder_import_reports_losses() {
    let folder = folder(&[
        ("in/greet.prompt", "---\nmodel: m\ndescription: Greets\ninput: {schema: {name: string}}\n---\nHi {{name}}\n"),
        ("in/.claude/commands/fix.md", "---\ndescription: Fixes\n---\nFix $ARGUMENTS\n!`ls`\n"),
        ("in/notes.txt", "nothing"),
    ]);
    let dry = promptshelf(folder.path(), &["import", "in", "--to", "library", "--dry-run"]);
    assert_eq!(dry.status.code(), Some(0), "{}", text(&dry.stderr));
    let report = text(&dry.stdout);
    assert!(report.contains("in/greet.prompt:2:1") && report.contains("`model` has no equivalent"), "{report}");
    assert!(report.contains("in/.claude/commands/fix.md:5:1") && report.contains("never run"), "{report}");
    assert!(report.ends_with("library/fix.md\nlibrary/greet.md\n"), "{report}");
    assert_eq!(
        text(&dry.stderr),
        "skipped in/notes.txt: its format is not known; `--from` names it\n2 files would be written, 2 changes to review; 1 file skipped\n"
    );
    assert!(!folder.path().join("library").exists());

    let done = promptshelf(folder.path(), &["import", "in", "--to", "library"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let got = promptshelf(folder.path(), &["get", "greet", "-l", "library", "--arg", "name=Ada"]);
    assert_eq!(text(&got.stdout), "Hi Ada\n");

    let again = promptshelf(folder.path(), &["import", "in/greet.prompt", "--to", "library"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("greet.md already exists and was not changed"));
}

#[cfg(unix)]
#[test]
fn import_says_what_has_another_name_and_what_is_a_link() {
    let folder = folder(&[
        ("in/.claude/commands/PLAIN .md", "First\n"),
        ("in/.claude/commands/plain.md", "Exact\n"),
        ("elsewhere.md", "Not here\n"),
    ]);
    std::os::unix::fs::symlink("../elsewhere.md", folder.path().join("in/link.md")).expect("a link");
    let done = promptshelf(folder.path(), &["import", "in", "--to", "library"]);
    let said = text(&done.stderr);
    let exact = fs::read_to_string(folder.path().join("library/plain.md")).expect("a file");
    assert!(exact.ends_with("Exact\n"), "{exact}");
    let renamed = "note: in/.claude/commands/PLAIN .md: converted to commands-plain.md, because another file was \
                   converted to plain.md";
    assert!(said.contains(renamed), "{said}");
    assert!(said.contains("skipped in/link.md: it is a symbolic link"), "{said}");
}

#[test]
fn export_names_the_other_files_of_a_skill() {
    let folder = folder(&[
        ("library/refunds/SKILL.md", "---\nname: refunds\ndescription: Handles a refund\n---\nUse `letter.md`.\n"),
        ("library/refunds/letter.md", "Dear customer,\n"),
    ]);
    let done = promptshelf(folder.path(), &["export", "library", "--format", "skill", "--to", "out"]);
    let said = text(&done.stderr);
    assert!(said.contains("left out the other file of the skill refunds (letter.md)"), "{said}");
    assert!(folder.path().join("out/refunds/SKILL.md").exists(), "{said}");
}

#[test]
fn import_leaves_keys_of_a_skill_where_they_are() {
    let folder = folder(&[
        ("in/sk/SKILL.md", "---\nname: sk\ndescription: d\n---\nHi\n"),
        ("in/sk/id_rsa", "dummy\n"),
        ("in/sk/.env", "A=b\n"),
        ("in/sk/notes.md", "Notes\n"),
    ]);
    let done = promptshelf(folder.path(), &["import", "in", "--to", "library"]);
    let said = text(&done.stderr);
    assert!(said.contains("skipped in/sk/id_rsa: this looks like a private key"), "{said}");
    let copied = |path: &str| folder.path().join("library/sk").join(path).exists();
    assert_eq!(["SKILL.md", "notes.md", "id_rsa", ".env"].map(copied), [true, true, false, false], "{said}");
}

#[test]
fn import_of_one_file_uses_the_named_format() {
    let folder = folder(&[("x.md", "---\ndescription: d\n---\nDo $0 {{ y }}\n")]);
    let done = promptshelf(folder.path(), &["import", "x.md", "--from", "claude", "--to", "out"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let got = promptshelf(folder.path(), &["get", "x", "-l", "out", "--arg", "arg1=it"]);
    assert_eq!(text(&got.stdout), "Do it {{ y }}\n");
    let none = promptshelf(folder.path(), &["import", "x.md", "--to", "out"]);
    assert_eq!(none.status.code(), Some(1));
}

// req: S-255
#[test]
fn named_format_is_read_wherever_its_files_lie() {
    let folder = folder(&[
        (".codex/prompts/draft.md", "---\ndescription: Draft a PR\nargument-hint: \"[title]\"\n---\nDraft $1\n"),
        ("commands/git/plan.toml", "description = \"Plan\"\nprompt = \"Plan {{args}}\"\n"),
        ("gemini-extension.json", "{\"name\": \"x\", \"version\": \"1.0.0\"}"),
        ("bad.txt", "x"),
    ]);
    let codex = promptshelf(folder.path(), &["import", ".codex/prompts", "--from", "claude", "--to", "out"]);
    assert_eq!(codex.status.code(), Some(0), "{}", text(&codex.stderr));
    let gemini = promptshelf(folder.path(), &["import", ".", "--from", "gemini", "--to", "out"]);
    assert_eq!(gemini.status.code(), Some(0), "{}", text(&gemini.stderr));
    let said = text(&gemini.stderr);
    assert!(said.contains("skipped ./gemini-extension.json: the format gemini has files *.toml"), "{said}");
    assert!(said.contains("skipped ./bad.txt: "), "{said}");
    let got = promptshelf(folder.path(), &["get", "git-plan", "-l", "out", "--arg", "args=it"]);
    assert_eq!(text(&got.stdout), "Plan it\n");
    let none = promptshelf(folder.path(), &["import", "commands", "--from", "prompty", "--to", "out"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stderr).contains("skipped commands/git/plan.toml: the format prompty has files *.prompty"));
}

// req: S-256
#[test]
fn import_with_errors_says_so_in_its_first_line() {
    let folder = folder(&[
        ("in/a.yaml", "title: A\ndescription: d\nprompt: '{{ x | nofilter }}'\n"),
        ("in/b.prompt", "---\ndescription: d\n---\nHi\n"),
        ("in/.claude/commands/c.md", "---\ndescription: d\n---\nRead @src/main.rs now.\n"),
    ]);
    for dry in [true, false] {
        let mut words = vec!["import", "in", "--to", "out"];
        words.extend(dry.then_some("--dry-run"));
        let ran = promptshelf(folder.path(), &words);
        assert_eq!(ran.status.code(), Some(1));
        let said = text(&ran.stderr);
        assert!(said.starts_with("error: 1 of 3 new files has errors"), "{said}");
        assert!(text(&ran.stdout).contains("nofilter"), "{}", text(&ran.stdout));
    }
    let listed = text(&promptshelf(folder.path(), &["list", "out"]).stdout);
    assert!(listed.contains("b") && listed.contains("c") && !listed.contains("nofilter"), "{listed}");
    let got = promptshelf(folder.path(), &["get", "c", "-l", "out"]);
    assert_eq!(text(&got.stdout), "Read @src/main.rs now.\n");
}

#[test]
fn other_files_of_a_skill_come_along() {
    let folder = folder(&[
        ("skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Forms\n---\nRead references/a.md and run scripts/b.py\n"),
        ("skills/pdf/references/a.md", "A.\n"),
        ("skills/pdf/scripts/b.py", "print()\n"),
        ("skills/plain/SKILL.md", "---\nname: plain\ndescription: Plain\n---\nText.\n"),
    ]);
    for path in ["skills", "skills/pdf/SKILL.md"] {
        let out = format!("out-{}", path.len());
        let ran = promptshelf(folder.path(), &["import", path, "--to", &out]);
        assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
        for file in ["pdf/SKILL.md", "pdf/references/a.md", "pdf/scripts/b.py"] {
            assert!(folder.path().join(&out).join(file).is_file(), "{file}");
        }
        let got = promptshelf(folder.path(), &["get", "pdf", "-l", &out]);
        assert!(text(&got.stdout).starts_with("Read references/a.md"), "{}", text(&got.stderr));
    }
    assert!(folder.path().join("out-6/plain.md").is_file());
}

#[test]
fn prompts_are_exported_to_stdout_or_into_a_folder() {
    let folder = folder(&[
        (
            "a.md",
            "---\ndescription: Does\narguments: [{name: x, required: true}]\n---\nDo {% if x %}{{ x }}{% endif %}\n",
        ),
        ("b.md", "---\ndescription: Is\n---\nBe.\n"),
    ]);
    let one = promptshelf(folder.path(), &["export", "a", "--format", "claude"]);
    assert_eq!(text(&one.stdout), "---\ndescription: Does\nargument-hint: \"<x>\"\n---\n\nDo $ARGUMENTS\n");
    assert!(text(&one.stderr).contains("the condition is dropped"), "{}", text(&one.stderr));
    let filled = promptshelf(folder.path(), &["export", "a", "--format", "claude", "--arg", "x=it"]);
    assert_eq!(text(&filled.stdout), "---\ndescription: Does\n---\n\nDo it\n");
    assert_eq!(text(&filled.stderr), "");
    let all = promptshelf(folder.path(), &["export", "--format", "gemini"]);
    assert_eq!(all.status.code(), Some(2));
    let messages = promptshelf(folder.path(), &["export", "b", "--format", "messages"]);
    let messages: serde_json::Value = serde_json::from_slice(&messages.stdout).expect("JSON");
    assert_eq!(messages["messages"][0]["content"]["text"], "Be.");
    let wrong = promptshelf(folder.path(), &["export", "aa", "--format", "claude"]);
    assert_eq!(wrong.status.code(), Some(7));
    let all = promptshelf(folder.path(), &["export", "--format", "skill", "--to", "out"]);
    assert_eq!(text(&all.stdout), "out/a/SKILL.md\nout/b/SKILL.md\n");
}

#[test]
fn plugin_has_manifests_and_commands() {
    let folder = folder(&[
        ("library/promptshelf.toml", "[server]\nname = \"team-prompts\"\ntitle = \"Team\"\n"),
        ("library/review.md", "---\ndescription: Reviews\narguments: [{name: code}]\n---\nReview {{ code }}\n"),
    ]);
    let done = promptshelf(folder.path(), &["export", "--plugin", "claude-code", "--to", "market", "-l", "library"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let read = |path: &str| fs::read_to_string(folder.path().join(path)).expect("a file");
    let json = |path: &str| serde_json::from_str::<serde_json::Value>(&read(path)).expect("JSON");
    let market = json("market/.claude-plugin/marketplace.json");
    assert_eq!((&market["name"], &market["owner"]["name"]), (&"team-prompts".into(), &"Team".into()));
    let source = market["plugins"][0]["source"].as_str().expect("a path");
    assert_eq!(json(&format!("market/{source}/.claude-plugin/plugin.json"))["name"], "team-prompts");
    assert!(read(&format!("market/{source}/commands/review.md")).ends_with("Review $ARGUMENTS\n"));
    let done = promptshelf(folder.path(), &["export", "--plugin", "gemini-cli", "--to", "extension", "-l", "library"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert_eq!(json("extension/gemini-extension.json")["name"], "team-prompts");
    assert!(read("extension/commands/review.toml").contains("Review {{args}}"));
    assert_eq!(promptshelf(folder.path(), &["export", "--plugin", "claude-code"]).status.code(), Some(2));
}

const PROMPT: &str = "---\ndescription: Does\n---\nDo it.\n";

const SKILL: &str = "---\nname: pdf\ndescription: Forms\n---\nRun scripts/b.sh\n";

/// Runs an export, with or without what earlier ones have left in the state of this machine.
fn export(folder: &Path, arguments: &[&str], state: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_promptshelf"));
    command.args(["export", "library"]).args(arguments).args(["--to", "out"]).current_dir(folder);
    command.env("XDG_STATE_HOME", folder.join(state)).output().expect("a running process")
}

const EXPORTS: [&[&str]; 10] = [
    &["--plugin", "claude-code"],
    &["--plugin", "gemini-cli"],
    &["--plugin", "codex"],
    &["--plugin", "cursor"],
    &["--format", "claude"],
    &["--format", "gemini"],
    &["--format", "skill"],
    &["--format", "vscode"],
    &["--format", "cursor"],
    &["--format", "opencode"],
];

/// Returns the exported file of a prompt.
fn exported(folder: &Path, name: &str) -> Option<String> {
    let mut folders = vec![folder.join("out")];
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(inside).into_iter().flatten().flatten() {
            let path = entry.path().to_string_lossy().replace('\\', "/");
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else if path.ends_with(&format!("/{name}/SKILL.md")) || path.contains(&format!("/{name}.")) {
                return Some(path);
            }
        }
    }
    None
}

#[test]
fn withdrawn_prompts_are_no_longer_distributed() {
    for arguments in EXPORTS {
        let folder = folder(&[
            ("library/a.md", PROMPT),
            ("library/b.md", PROMPT),
            ("library/edited.md", PROMPT),
            ("library/broken.md", PROMPT),
        ]);
        let path = folder.path();
        assert_eq!(export(path, arguments, "state").status.code(), Some(0));
        let name = |name: &str| exported(path, name).unwrap_or_else(|| panic!("{arguments:?}: {name}"));
        let foreign = name("b").replace("/b", "/foreign");
        fs::create_dir_all(Path::new(&foreign).parent().expect("a folder")).expect("created");
        fs::write(&foreign, "mine").expect("written");
        let text = fs::read_to_string(name("edited")).expect("a file");
        fs::write(name("edited"), text.replace("Do it.", "Do it now.")).expect("written");
        for file in ["b", "edited"] {
            fs::remove_file(path.join(format!("library/{file}.md"))).expect("removed");
        }
        fs::write(path.join("library/broken.md"), "---\ndescription: Does\n---\n{{ nope\n").expect("written");
        // One prompt says nothing about the others.
        if arguments[0] == "--format" {
            let one = [&["a"], arguments].concat();
            assert_eq!(export(path, &one, "state").status.code(), Some(0));
            assert!(exported(path, "b").is_some());
        }
        // Without a record, as in a fresh checkout.
        let done = export(path, arguments, "other");
        let said = text_of(&done);
        assert!(said.contains("removed out/") && exported(path, "b").is_none(), "{arguments:?}: {said}");
        assert!(Path::new(&foreign).exists() && exported(path, "a").is_some(), "{arguments:?}: {said}");
        for (file, reason) in [("edited", "it was edited"), ("broken", "its prompt has an error")] {
            let kept =
                Path::new(&name(file)).strip_prefix(path).expect("below").display().to_string().replace('\\', "/");
            assert!(said.contains(&format!("kept {kept}: {reason}")), "{arguments:?}: {said}");
        }
        assert_eq!(done.status.code(), Some(1), "{said}");
        // A library that is empty, such as a disk that is not there.
        for entry in fs::read_dir(path.join("library")).expect("a folder").flatten() {
            fs::remove_file(entry.path()).expect("removed");
        }
        let said = text_of(&export(path, arguments, "state"));
        assert!(exported(path, "a").is_some() && said.contains("the library has no prompts"), "{arguments:?}: {said}");
    }
}

fn text_of(output: &Output) -> String {
    text(&output.stderr)
}

#[cfg(unix)]
#[test]
fn scripts_of_skills_stay_executable_and_go_with_their_skill() {
    use std::os::unix::fs::PermissionsExt as _;
    let script = "#!/bin/sh\necho hi\n";
    let files = [("pdf/SKILL.md", SKILL), ("pdf/scripts/b.sh", script), ("pdf/notes.txt", "Notes\n")];
    let folder = folder(&files.map(|(path, text)| (format!("src/{path}").leak() as &str, text)));
    let path = folder.path();
    let mode = |file: &str| path.join(file).metadata().map(|found| found.permissions().mode() & 0o100 != 0).ok();
    fs::set_permissions(path.join("src/pdf/scripts/b.sh"), fs::Permissions::from_mode(0o755)).expect("its own file");
    let done = promptshelf(path, &["import", "src", "--to", "library"]);
    assert_eq!(done.status.code(), Some(0), "{}", text_of(&done));
    let modes = ["scripts/b.sh", "notes.txt", "SKILL.md"];
    assert_eq!(modes.map(|file| mode(&format!("library/pdf/{file}"))), [Some(true), Some(false), Some(false)]);
    fs::write(path.join("library/a.md"), PROMPT).expect("written");
    for plugin in ["claude-code", "codex", "cursor"] {
        let arguments = ["--plugin", plugin, "--allow-commands", "pdf"];
        fs::remove_dir_all(path.join("out")).ok();
        assert_eq!(export(path, &arguments, "state").status.code(), Some(0), "{plugin}");
        let copy = "out/plugins/library/skills/pdf";
        assert_eq!(modes.map(|file| mode(&format!("{copy}/{file}"))), [Some(true), Some(false), Some(false)]);
        // A copy of an earlier release is mended.
        fs::set_permissions(path.join(copy).join("scripts/b.sh"), fs::Permissions::from_mode(0o644)).expect("it");
        export(path, &arguments, "state");
        assert_eq!(mode(&format!("{copy}/scripts/b.sh")), Some(true));
        // The skill is withdrawn.
        fs::rename(path.join("library/pdf"), path.join("pdf")).expect("moved");
        let done = export(path, &arguments, "state");
        assert_eq!(done.status.code(), Some(0), "{}", text_of(&done));
        assert!(!path.join(copy).exists(), "{plugin}: {}", text_of(&done));
        fs::rename(path.join("pdf"), path.join("library/pdf")).expect("moved");
    }
}

// req: S-130
#[test]
fn export_never_leaves_the_folder() {
    let folder = folder(&[("library/a.md", "---\nname: ../../escaped\n---\nText\n")]);
    let done = promptshelf(folder.path(), &["export", "--format", "skill", "--to", "out/skills", "-l", "library"]);
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("left out ../../escaped: `../../escaped` cannot be"), "{}", text(&done.stderr));
    assert!(!folder.path().join("out").exists() && !folder.path().join("escaped").exists());
}

#[test]
fn completions_manual_and_version_are_generated() {
    let folder = folder(&[]);
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = text(&promptshelf(folder.path(), &["completions", shell]).stdout);
        assert!(script.contains("promptshelf") && script.contains("COMPLETE"), "{shell}");
    }
    assert_eq!(promptshelf(folder.path(), &["man", "man/man1"]).status.code(), Some(0));
    let page = fs::read_to_string(folder.path().join("man/man1/promptshelf-install.1")).expect("a page");
    assert!(page.starts_with(".") && page.contains("\\-\\-client"), "{page}");
    assert!(folder.path().join("man/man1/promptshelf.1").exists());
    let version = promptshelf(folder.path(), &["--version", "--json"]);
    let version: serde_json::Value = serde_json::from_slice(&version.stdout).expect("JSON");
    assert_eq!((&version["name"], &version["version"]), (&"promptshelf".into(), &env!("CARGO_PKG_VERSION").into()));
}
