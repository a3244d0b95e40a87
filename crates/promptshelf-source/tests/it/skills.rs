//! Skills of a library: `SKILL.md` folders and prompts with `skill: true`, and those that cannot be one.

use std::fs;

use promptshelf_core::{Catalog, Skill, check};

use crate::library::Library;

const REFUNDS: &str = "---\nname: refunds\ndescription: Handles a refund\n---\nSee forms/.";

/// Returns the catalog, and the diagnostics about skills.
fn checked(library: &Library) -> (Catalog, Vec<String>) {
    let checked = check(library.read(), None);
    let found = checked.diagnostics.iter().filter(|found| found.code.as_str() == "invalid-skill");
    (checked.catalog, found.map(ToString::to_string).collect())
}

fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.skills().after(None).map(|skill| skill.name()).collect()
}

fn uris(skill: &Skill) -> Vec<&str> {
    skill.files().map(promptshelf_core::SkillFile::uri).collect()
}

// req: Y5, Y9
#[test]
fn folder_with_its_files_is_a_skill() {
    let library = Library::of(&[
        ("hello.md", "---\ndescription: d\n---\nhello"),
        ("team/refunds/SKILL.md", REFUNDS),
        ("team/refunds/forms/eu.md", "eu"),
        ("team/refunds/forms/inner/SKILL.md", "---\nname: inner\ndescription: d\n---\nInner."),
        ("team/refunds/.hidden", "x"),
        ("team/other.md", "---\ndescription: d\n---\nother"),
    ]);
    let (catalog, found) = checked(&library);
    assert_eq!((names(&catalog), found), (vec!["refunds"], Vec::new()), "a nested skill is content of the outer one");
    let skill = catalog.skills().find("skill://refunds/SKILL.md").expect("a skill");
    let expected = ["skill://refunds/SKILL.md", "skill://refunds/forms/eu.md", "skill://refunds/forms/inner/SKILL.md"];
    assert_eq!(uris(skill), expected);
    // An unchanged file keeps its digest, a changed one does not.
    let digests = |catalog: &Catalog| -> Vec<String> {
        let skill = catalog.skills().find("skill://refunds/SKILL.md").expect("a skill");
        skill.files().map(|file| file.digest().to_owned()).collect()
    };
    library.write("team/refunds/forms/eu.md", "EU!");
    let next = check(library.read(), Some(&catalog)).catalog;
    let (before, after) = (digests(&catalog), digests(&next));
    assert!(before[0] == after[0] && before[1] != after[1] && before[2] == after[2], "{before:?} {after:?}");
}

// req: Y6, Y21, S-125
#[test]
fn folder_that_violates_a_limit_is_reported_and_stays_a_prompt() {
    let skill = |name: &str| format!("---\nname: {name}\ndescription: d\n---\nText.");
    for (folder, text, more, expected) in [
        ("a", skill("b"), vec![], "its name is `b`, and its folder is called `a`"),
        ("a--b", skill("a--b"), vec![], "not the name of a skill"),
        ("Abc", skill("Abc"), vec![], "not the name of a skill"),
        ("a", "---\nname: a\n---\nText.".to_owned(), vec![], "lacks a `name` or a `description`"),
        ("a", "Text.".to_owned(), vec![], "lacks a `name` or a `description`"),
        ("a", format!("---\nname: a\ndescription: {}\n---\nText.", "x".repeat(1_025)), vec![], "1024 characters"),
        ("a", skill("a"), (0..512).map(|n| (format!("{n}.txt"), "x".to_owned())).collect(), "513 files"),
        ("a", skill("a"), vec![("big.txt".to_owned(), "x".repeat(17 << 20))], "cannot be read"),
    ] {
        let library = Library::of(&[("hello.md", "---\ndescription: d\n---\nhello")]);
        library.write(&format!("{folder}/SKILL.md"), &text);
        for (path, text) in &more {
            library.write(&format!("{folder}/{path}"), text);
        }
        let (catalog, found) = checked(&library);
        assert!(catalog.skills().is_empty(), "{expected}");
        assert!(found.len() == 1 && found[0].contains(expected), "{expected}: {found:?}");
        assert!(catalog.find("hello").is_some() && catalog.prompts().len() == 2, "{expected}");
    }
}

// req: S-124
#[cfg(unix)]
#[test]
fn skill_with_a_link_out_of_its_folder_is_refused() {
    use std::os::unix::fs::symlink;
    let library = Library::of(&[("refunds/SKILL.md", REFUNDS), ("secret/key.txt", "secret"), ("refunds/a.txt", "a")]);
    symlink("a.txt", library.path("refunds/b.txt")).expect("a link");
    assert_eq!(checked(&library).1, Vec::<String>::new(), "a link inside of the folder");
    symlink("../secret", library.path("refunds/more")).expect("a link");
    let (catalog, found) = checked(&library);
    assert!(catalog.skills().is_empty() && found[0].contains("leads out of the skill's folder"), "{found:?}");
    fs::remove_file(library.path("refunds/more")).expect("a link");
    fs::write(library.outside().join("key.txt"), "secret").expect("a file");
    symlink(library.outside().join("key.txt"), library.path("refunds/key.txt")).expect("a link");
    let (catalog, found) = checked(&library);
    assert!(catalog.skills().is_empty() && found[0].contains("cannot be read"), "{found:?}");
}

// req: S-125
#[test]
fn prompt_that_cannot_be_a_skill_is_reported() {
    for (keys, text, expected) in [
        ("", "{{ role(\"assistant\") }}Yes.", "several roles"),
        ("", "{{ attach(\"note.txt\") }}", "attaches `note.txt`"),
        ("arguments:\n  - name: x\n    ask: true\n", "{{ x }}", "asks the user questions"),
        ("name: Größe\n", "Text.", "not the name of a skill"),
    ] {
        let file = format!("---\ndescription: d\nskill: true\n{keys}---\n{text}");
        let library = Library::of(&[("a.md", &file), ("note.txt", "note")]);
        let (catalog, found) = checked(&library);
        assert!(catalog.skills().is_empty() && catalog.prompts().len() == 1, "{expected}");
        assert!(found.len() == 1 && found[0].contains(expected), "{expected}: {found:?}");
    }
    let file = "---\ndescription: d\nskill: true\narguments:\n  - name: x\n    description: d\n---\n{% if x %}Text.{% endif %}";
    let checked_file = check(Library::of(&[("a.md", file)]).read(), None);
    let losses: Vec<String> = checked_file.diagnostics.iter().map(ToString::to_string).collect();
    assert!(losses.len() == 1 && losses[0].contains("as a skill: the condition is dropped"), "{losses:?}");
    let skill =
        checked_file.catalog.skills().find("skill://a/SKILL.md").expect("a skill").files().next().expect("a file");
    let promptshelf_core::ResourceBody::Text(text) = &skill.file().body else { panic!("a text") };
    assert!(text.ends_with("\n\nText.\n"), "no placeholder is printed: {text}");

    let skill = "---\ndescription: d\nskill: true\n---\nText.";
    let library = Library::of(&[("a_b.md", skill), ("a-b.md", skill)]);
    let (catalog, found) = checked(&library);
    assert_eq!((names(&catalog), found.len()), (vec!["a-b"], 1), "{found:?}");
}
