//! Access rules in prompt files and in the manifest: how they are read, and that no mistake gives access.

use crate::library::{Library, WatchedLibrary, lines};
use promptshelf_core::{Access, Diagnostic};

fn broken(front_matter: &str) -> Vec<String> {
    let library = Library::of(&[("a.md", &format!("---\ndescription: x\n{front_matter}\n---\nhello"))]);
    let definitions = library.read();
    assert!(definitions.prompts.is_empty(), "what is invalid is not served");
    lines(&definitions.diagnostics.iter().filter(|found| found.is_error()).cloned().collect::<Vec<Diagnostic>>())
}

#[test]
fn access_rules_are_read_from_all_places() {
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
    assert_eq!(definitions.prompts[0].access.as_deref(), Some(&expected));
    assert_eq!(definitions.access.len(), 2);
    assert_eq!(definitions.access[0].prompts, ["git-*"]);
    assert_eq!(definitions.access[1].access.roles, ["editor"]);
    assert_eq!(definitions.access[1].resources, ["docs://b[[]1[]]"], "exactly this URI");
}

// req: S-22
#[test]
fn mistake_in_an_access_rule_of_a_prompt_is_an_error() {
    assert!(broken("access: {}")[0].starts_with("a.md:3:9: error[missing-key]: this rule requires nothing of callers"));
    assert_eq!(broken("access: { scope: [a] }").len(), 2);
    assert_eq!(broken("access: editors").len(), 1);
    assert_eq!(broken("acess: { roles: [a] }").len(), 1);
    assert_eq!(broken("access: { scopes: [\"a b\"] }").len(), 1);
}

#[test]
fn mistake_in_an_access_rule_of_the_manifest_is_an_error() {
    let mistakes = |manifest: &str| {
        let library = Library::of(&[("promptshelf.toml", manifest), ("a.md", "hello")]);
        lines(library.try_read().expect_err("it is invalid").diagnostics())
    };
    assert_eq!(mistakes("[[access]]\nroles = [\"a\"]").len(), 1);
    assert_eq!(mistakes("[[access]]\nprompts = [\"[\"]\nroles = [\"a\"]").len(), 1);
    assert_eq!(mistakes("[[access]]\nprompts = [\"*\"]\nrole = [\"a\"]").len(), 2);
    assert_eq!(mistakes("[[access]]\nprompts = [\"*\"]").len(), 1);
}

// req: S-23
#[tokio::test(flavor = "multi_thread")]
async fn restricting_edit_takes_effect_although_the_file_is_broken() {
    let open = "---\ndescription: x\n---\nhello";
    let closed = "---\ndescription: x\naccess: { roles: [a] }\n---\nhello";
    for (before, edit, stays) in [
        (open, "---\ndescription: [\n---\nhello", true),
        (open, "---\ndescription: [\naccess: { roles: [a] }\n---\nhello", false),
        (open, "---\ndescription: x\naccess: { role: [a] }\n---\nhello", false),
        (open, "---\ndescription: x\nacess: { roles: [a] }\n---\nhello", false),
        (open, "---\ndescription: x\naccess: { roles: [a] }\n---\n{{ nobody }}", false),
        (open, "---\ndescription: x\naccess: { roles: [a] }\nhello", false),
        (closed, "---\ndescription: [\naccess: { roles: [a] }\n---\nhello", true),
        (closed, "---\ndescription: [\naccess: { roles: [b] }\n---\nhello", false),
    ] {
        let library = Library::of(&[("a.md", before), ("b.md", open)]);
        let mut watched = library.watch().await;
        library.write("a.md", edit);
        watched.until("it is reported", |_, report| report.diagnostics.iter().any(Diagnostic::is_error)).await;
        assert_eq!(watched.names().len(), if stays { 2 } else { 1 }, "{edit}");
        library.write("a.md", closed);
        watched
            .until("it is mended", |catalog, report| catalog.prompts().len() == 2 && report.diagnostics.is_empty())
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_file_does_not_keep_a_prompt_of_another_source() {
    let (one, two) =
        (Library::of(&[("a.md", "---\nname: one\n---\nx")]), Library::of(&[("a.md", "---\nname: two\n---\nx")]));
    let source =
        |library: &Library| Box::new(library.source().poll_interval(None)) as Box<dyn promptshelf_source::Source>;
    let mut watched = WatchedLibrary::all(vec![source(&one), source(&two)]).await;
    assert_eq!(watched.names(), ["one", "two"]);
    one.write("a.md", "---\nname: [\n---\nx");
    watched.until("it is reported", |_, report| report.diagnostics.iter().any(Diagnostic::is_error)).await;
    two.remove("a.md");
    watched.until("the other one is gone", |catalog, _| catalog.find("two").is_none()).await;
    assert_eq!(watched.names(), ["one"]);
}

// req: S-52
#[tokio::test(flavor = "multi_thread")]
async fn doubtful_rules_and_grants_are_reported() {
    let manifest = "[roots]\nproject = '_sample'\n\
        [[resources]]\nuri = 'docs://style'\nfile = 'STYLE.md'\nroot = 'project'\n\
        [[resources]]\nuri-template = 'file:///{+path}'\nfile = '{+path}'\nroot = 'project'\n";
    let files = |rules: &str| {
        Library::of(&[
            ("_sample/STYLE.md", "x"),
            ("_part.md", "Part."),
            ("closed/inner.md", "---\ndescription: x\n---\nInner."),
            ("outer.md", "---\ndescription: x\n---\n{{ prompt('closed-inner') }}{% include '_part.md' %}"),
            ("promptshelf.toml", &format!("{manifest}{rules}")),
        ])
    };
    let found = async |rules: &str| {
        // The folder must outlive the watcher, which would otherwise observe its removal file by file.
        let library = files(rules);
        library.watch().await.mistakes()
    };
    let rule = |part: &str| format!("[[access]]\n{part}\nroles = ['a']\n");
    for (part, expected) in [
        ("folders = ['_sample']", None),
        ("folders = ['project']", None),
        ("folders = ['_sampel']", Some("[unmatched-rule]: no folder of this library matches `_sampel`")),
        ("resources = ['docs://styel']", Some("[unmatched-rule]: no resource")),
        ("prompts = ['nope-*']", Some("[unmatched-rule]: no prompt")),
        ("tags = ['nope']", Some("[unmatched-rule]: no tag")),
        ("resources = ['file:///later/*']", None),
        ("resources = ['docs://*', 'file:///STYLE.md']", None),
        (
            "resources = ['docs://style']",
            Some("[partly-named-file]: this rule names `docs://style`, and also closes `file:///STYLE.md`"),
        ),
        (
            "resources = ['file:///S*']",
            Some("[partly-named-file]: this rule names `file:///STYLE.md`, and also closes `docs://style`"),
        ),
        (
            "folders = ['closed']",
            Some("outer.md:4:11: warning[restricted-content]: the prompt `outer` calls the prompt `closed-inner`"),
        ),
    ] {
        let found = found(&rule(part)).await;
        match expected {
            None => assert!(found.is_empty(), "{part}: {found:?}"),
            Some(expected) => assert!(found.len() == 1 && found[0].contains(expected), "{part}: {found:?}"),
        }
    }
}
