//! Who may use what, as it is written: what is read, and that no mistake opens anything.

use crate::library::{Library, lines};
use promptshelf_core::{Access, Diagnostic};

fn broken(front_matter: &str) -> Vec<String> {
    let library = Library::of(&[("a.md", &format!("---\ndescription: x\n{front_matter}\n---\nhello"))]);
    let definitions = library.read();
    assert!(definitions.prompts.is_empty(), "what cannot be understood is not served");
    lines(&definitions.diagnostics.iter().filter(|found| found.is_error()).cloned().collect::<Vec<Diagnostic>>())
}

#[test]
fn rules_are_read_where_they_stand() {
    let library = Library::of(&[
        (
            "a.md",
            "---\ndescription: x\naccess:\n  scopes: [\"prompts:read\"]\n  users: ada\n  visible: true\n---\nhello",
        ),
        ("notes/b.txt", "b"),
        (
            "promptshelf.toml",
            "[[resources]]\nuri = \"docs://b[1]\"\nfile = \"notes/b.txt\"\naccess = { roles = [\"editor\"] }\n\
             [[access]]\nprompts = [\"git-*\"]\nfolders = [\"secret\"]\nscopes = [\"git\"]\n",
        ),
    ]);
    let definitions = library.read();
    let expected =
        Access { scopes: vec!["prompts:read".into()], users: vec!["ada".into()], visible: true, ..Access::default() };
    assert_eq!(definitions.prompts[0].access, Some(expected));
    assert_eq!(definitions.access.len(), 2);
    assert_eq!(definitions.access[0].prompts, ["git-*"]);
    assert_eq!(definitions.access[1].access.roles, ["editor"]);
    assert_eq!(definitions.access[1].resources, ["docs://b[[]1[]]"], "exactly this URI");
}

#[test]
fn no_mistake_in_a_prompt_file_leaves_it_open() {
    assert!(broken("access: {}")[0].starts_with("a.md:3:9: error[missing-key]: this asks nothing of anybody"));
    assert_eq!(broken("access: { scope: [a] }").len(), 2);
    assert_eq!(broken("access: editors").len(), 1);
    assert_eq!(broken("acess: { roles: [a] }").len(), 1);
    assert_eq!(broken("access: { scopes: [\"a b\"] }").len(), 1);
}

#[test]
fn no_mistake_in_the_manifest_is_passed_over() {
    let mistakes = |manifest: &str| {
        let library = Library::of(&[("promptshelf.toml", manifest), ("a.md", "hello")]);
        lines(library.try_read().expect_err("it cannot be understood").diagnostics())
    };
    assert_eq!(mistakes("[[access]]\nroles = [\"a\"]").len(), 1);
    assert_eq!(mistakes("[[access]]\nprompts = [\"[\"]\nroles = [\"a\"]").len(), 1);
    assert_eq!(mistakes("[[access]]\nprompts = [\"*\"]\nrole = [\"a\"]").len(), 2);
    assert_eq!(mistakes("[[access]]\nprompts = [\"*\"]").len(), 1);
}
