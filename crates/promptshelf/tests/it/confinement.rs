//! What the commands that write files leave alone: places outside of their folder, and names that not every system has.

use std::{fs, os::unix::fs::symlink};

use crate::program::{library, run};

/// Each command with the link that its file would be written through, and the file's name.
#[test]
fn files_are_not_written_through_links_out_of_the_folder() {
    let cases: [(&str, &[&str], &str); 7] = [
        ("lib/team", &["new", "lib", "team/hello"], "hello.md"),
        ("lib/.promptshelf", &["new", "lib", "hello"], "prompt.schema.json"),
        ("lib/_shared", &["init", "lib"], "tone.md"),
        ("lib/s1", &["import", "src", "--to", "lib"], "SKILL.md"),
        ("o/.claude/commands", &["export", "prompts", "--format", "claude", "--to", "o"], "hello.md"),
        ("o/.claude", &["export", "prompts", "--format", "claude", "--to", "o"], "commands/hello.md"),
        ("o/plugins", &["export", "prompts", "--plugin", "claude-code", "--to", "o"], "prompts/commands/hello.md"),
    ];
    for (link, line, name) in cases {
        for target in ["out", "missing"] {
            let folder = library(&[("hello.md", "---\ndescription: Greets\n---\nHello\n")]);
            folder.write("src/s1/SKILL.md", "---\nname: s1\ndescription: A skill\n---\nText\n");
            folder.write("src/s1/notes.txt", "Notes\n");
            folder.write("out/keep.txt", "Mine\n");
            folder.write("lib/keep.txt", "");
            let link = folder.path().join(link);
            fs::create_dir_all(link.parent().expect("a folder")).expect("created");
            symlink(folder.path().join(target), &link).expect("a link");
            let said = run(&folder, line);
            assert!(!said.starts_with("exit code: 0\n"), "{line:?}: {said}");
            assert!(said.contains("leads out of the folder"), "{line:?}: {said}");
            assert!(!folder.path().join("out").join(name).exists(), "{line:?}: {said}");
            assert!(!folder.path().join("missing").exists(), "{line:?}: {said}");
        }
    }
}

/// A file of an earlier export is not replaced through a link either.
#[test]
fn export_refreshes_no_file_behind_a_link() {
    let folder = library(&[("hello.md", "---\ndescription: Greets\n---\nHello\n")]);
    let line = ["export", "prompts", "--format", "claude", "--to", "o"];
    assert!(run(&folder, &line).starts_with("exit code: 0\n"));
    fs::rename(folder.path().join("o/.claude"), folder.path().join("out")).expect("moved");
    symlink("../out", folder.path().join("o/.claude")).expect("a link");
    folder.write("prompts/hello.md", "---\ndescription: Greets\n---\nHello again\n");
    let said = run(&folder, &line);
    assert!(said.starts_with("exit code: 1\n") && said.contains("leads out of the folder"), "{said}");
    assert!(!fs::read_to_string(folder.path().join("out/commands/hello.md")).expect("a file").contains("again"));
}

#[test]
fn files_get_no_name_of_a_device() {
    for name in ["aux", "con", "nul", "com1", "lpt9"] {
        let folder = library(&[]);
        let upper = name.to_uppercase();
        folder.write(&format!("src/{upper}.prompt"), "---\ndescription: d\n---\nHi\n");
        let new = run(&folder, &["new", "prompts", name]);
        let below = run(&folder, &["new", "prompts", &format!("{name}/hello")]);
        let imported = run(&folder, &["import", "src", "--to", "prompts"]);
        for said in [new, below, imported] {
            assert!(!said.starts_with("exit code: 0\n"), "{said}");
            assert!(said.contains("a part of the path is the name of a device on Windows"), "{said}");
        }
        assert_eq!(fs::read_dir(folder.path().join("prompts")).map_or(0, Iterator::count), 0, "{name}");
    }
}
