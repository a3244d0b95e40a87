//! Files that `sync` and `export` wrote for other programs are never prompts.

use promptshelf_core::Definitions;
use promptshelf_source::{Files, Mark, MemoryTree, SKILL_RECORD, Source};

use crate::library::{Library, lines};

fn names(definitions: &Definitions) -> Vec<&str> {
    definitions.prompts.iter().map(|prompt| &*prompt.name).collect()
}

// req: S-240
#[test]
fn marked_files_are_never_prompts() {
    let mark = |path: &str| Mark::words(path.starts_with(".claude"), &"ab".repeat(32), ".", path);
    let old = format!("promptshelf sync sha256:{} /srv/prompts", "ab".repeat(32));
    let files = [
        ("review.md", "Review\n".to_owned()),
        (
            ".claude/commands/review.md",
            format!("---\n# {}\ndescription: x\n---\n\nReview\n", mark(".claude/commands/review.md")),
        ),
        (".gemini/commands/review.toml", format!("# {}\nprompt = \"Review\"\n", mark(".gemini/commands/review.toml"))),
        (".github/prompts/review.prompt.md", format!("---\n# {old}\ndescription: x\n---\n\nReview\n")),
        ("review/SKILL.md", format!("---\n# {}\nname: review\n---\nReview\n", mark("review/SKILL.md"))),
        // Edited, and a copy under another name.
        ("mine.md", format!("Mine\n<!-- {} -->\nmore\n", mark(".claude/commands/review.md"))),
        (".claude/skills/refunds/SKILL.md", "---\nname: refunds\ndescription: x\n---\nRefund\n".to_owned()),
        (&format!(".claude/skills/refunds/{SKILL_RECORD}"), "{}".to_owned()),
        ("refunds/SKILL.md", "---\nname: refunds\ndescription: x\n---\nRefund\n".to_owned()),
    ];
    let library = Library::new();
    for (path, text) in &files {
        library.write(path, text);
    }
    let folder = library.read();
    let tree: MemoryTree = files.iter().map(|(path, text)| (*path, &**text)).collect();
    let tree = Files::tree(tree);
    let tree = tree.read().expect("a tree").into_definitions();
    for definitions in [folder, tree] {
        assert_eq!(names(&definitions), ["refunds", "review"]);
        let found = lines(&definitions.diagnostics);
        let counted: Vec<&String> = found.iter().filter(|line| line.contains("`sync` or `export`")).collect();
        assert_eq!(counted.len(), 1, "{found:?}");
        assert!(counted[0].contains("6 files and skills are left out"), "{counted:?}");
    }
}

#[test]
fn change_of_a_marked_file_changes_nothing() {
    let library = Library::of(&[("review.md", "Review\n")]);
    let source = library.source();
    let write = |text: &str| {
        let mark = Mark::words(true, &"ab".repeat(32), ".", "a.md");
        library.write(".claude/commands/review.md", format!("{text}\n<!-- {mark} -->\n"));
    };
    write("one");
    let known = source.read().expect("a read").fingerprint();
    write("another");
    assert_eq!(source.read().expect("a read").fingerprint(), known);
}
