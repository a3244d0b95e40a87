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

// req: S-470
#[test]
fn glob_that_is_too_large_is_an_error_of_the_manifest_or_the_prompt() {
    for levels in [200, 6_000] {
        let glob = format!("{}{}", "{a,".repeat(levels), "}".repeat(levels));
        let manifests = [
            format!("[[resources]]\nuri = \"x://{{+path}}\"\nfiles = \"{glob}\"\n"),
            format!("[[access]]\nprompts = [\"{glob}\"]\nroles = [\"a\"]\n"),
            format!("[[access]]\nfolders = [\"{glob}\"]\nroles = [\"a\"]\n"),
            format!("[[access]]\nresources = [\"{glob}\"]\nroles = [\"a\"]\n"),
        ];
        for manifest in manifests {
            let library = Library::of(&[("promptshelf.toml", &manifest), ("a.md", "hello")]);
            let found = lines(library.try_read().expect_err("it is invalid").diagnostics());
            assert!(found.len() == 1 && found[0].contains("pattern `{a,{a,"), "{found:?}");
            assert!(found[0].len() < 300, "{found:?}");
        }
        let argument = |key: &str| {
            let prompt =
                format!("---\narguments:\n  - {{ name: x, complete: {{ {key}: '{glob}' }} }}\n---\n{{{{ x }}}}");
            let library = Library::of(&[("a.md", &prompt)]);
            lines(&promptshelf_core::check(library.read(), None).diagnostics)
        };
        for found in [argument("files"), argument("resources")] {
            assert!(found.iter().any(|found| found.contains("pattern `{a,{a,")), "{found:?}");
        }
    }
}

// req: S-472
#[test]
fn rules_of_a_manifest_are_bounded() {
    let rules = |count: usize| "[[access]]\nprompts = [\"*\"]\nroles = [\"a\"]\n".repeat(count);
    let read = |manifest: &str| Library::of(&[("promptshelf.toml", manifest), ("a.md", "hello")]).try_read();
    assert_eq!(read(&rules(200)).expect("it is valid").access.len(), 200);
    let found = lines(read(&rules(5_000)).expect_err("it is invalid").diagnostics());
    assert!(found.len() == 1 && found[0].contains("more than 200 rules in [[access]]"), "{found:?}");
}

/// Access rules look for each file among the URIs of all templates.
// req: S-511
#[test]
fn resource_templates_are_bounded_by_the_number_of_files() {
    let declared = |templates: usize, files: usize| {
        let manifest: String = (0..templates)
            .map(|n| {
                let access = if n == templates - 1 { "access = { roles = [\"boss\"] }\n" } else { "" };
                format!("[[resources]]\nuri-template = \"x{n}://{{+path}}\"\nfile = \"d/{{+path}}\"\n{access}")
            })
            .collect();
        let files: Vec<(String, String)> = (0..files).map(|n| (format!("d/{n}.txt"), String::new())).collect();
        let mut all: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        all.push(("promptshelf.toml", &manifest));
        let definitions = Library::of(&all).read();
        let errors = definitions.diagnostics.iter().filter(|found| found.is_error()).cloned().collect::<Vec<_>>();
        let closes_all = definitions.access.iter().any(|rule| rule.folders.iter().any(String::is_empty));
        (definitions.resources.len(), lines(&errors), closes_all)
    };
    assert_eq!(declared(50, 20), (50, Vec::new(), false));
    assert_eq!(declared(400, 2_000), (400, Vec::new(), false));
    let (count, errors, closes_all) = declared(700, 2_000);
    assert!(count < 510 && errors.len() == 1 && closes_all, "{count} {errors:?}");
    assert!(errors[0].contains("resources with a `uri-template`"), "{errors:?}");
}

// req: S-472
#[test]
fn resources_of_globs_are_bounded() {
    let files: Vec<(String, String)> = (0..50).map(|n| (format!("d/{n}.txt"), String::new())).collect();
    let declared = |count: usize| {
        let manifest: String =
            (0..count).map(|n| format!("[[resources]]\nuri = \"x{n}://{{+path}}\"\nfiles = \"**/*\"\n")).collect();
        let mut all: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        all.push(("promptshelf.toml", &manifest));
        let definitions = Library::of(&all).read();
        let errors = definitions.diagnostics.iter().filter(|found| found.is_error()).cloned().collect::<Vec<_>>();
        (definitions.resources.len(), lines(&errors))
    };
    let (count, errors) = declared(10);
    assert!(count >= 500 && errors.is_empty(), "{count} {errors:?}");
    let (count, errors) = declared(500);
    assert_eq!(count, 20_000);
    assert!(errors[0].contains("make more than 20000 resources"), "{errors:?}");
}
