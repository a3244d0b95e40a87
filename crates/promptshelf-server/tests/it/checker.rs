//! The check of a tree: findings, tests, and the files of each prompt.

use std::{collections::BTreeSet, fs};

use promptshelf_author::review;
use promptshelf_core::{Access, AccessRule, Definitions, Origin, Severity, SourceText, check};
use promptshelf_server::channels::LibraryChecker;
use promptshelf_source::{Files, Fixed, MemoryFile, MemoryTree, Source as _};
use promptshelf_store::{CheckReport, Checker as _, EffectImpact, PromptFile, Trees};

const MANIFEST: &str = r#"
[[resources]]
uri = "docs://style"
file = "docs/style.txt"
[[resources]]
uri-template = "logs:///{day}"
file = "logs/{day}.log"
"#;

const PROMPT: &str = "\
---
description: Reviews
icons: icons/i.svg
arguments:
- {name: style, enum: [short, long], complete: {file: lists/styles.txt}}
tests:
- {golden: review.golden.md, arguments: {style: short}}
---
{% include '_shared/outer.md' %}
{{ attach('notes.txt') }}
{{ attach('docs://style') }}
{{ attach('logs:///1d') }}
{{ attach('parts/' ~ style ~ '.txt') }}
{{ prompt('helper') }}
";

fn tree() -> MemoryTree {
    [
        ("promptshelf.toml", MANIFEST),
        ("team/review.md", PROMPT),
        ("helper.md", "---\ndescription: Helps\n---\nHelp with {{ attach('helped.txt') }}"),
        ("other.md", "---\ndescription: Other\n---\nOther"),
        ("_shared/outer.md", "{% include '_shared/inner.md' %}"),
        ("_shared/inner.md", "inner"),
        ("_shared/unused.txt", "unused"),
        ("notes.txt", "notes"),
        ("helped.txt", "helped"),
        ("docs/style.txt", "style"),
        ("logs/1d.log", "log"),
        ("logs/2d.log", "log"),
        ("parts/short.txt", "short"),
        ("parts/long.txt", "long"),
        ("parts/none.txt", "none"),
        ("lists/styles.txt", "short\nlong\n"),
        ("icons/i.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>"),
        ("icons/j.svg", "<svg xmlns='http://www.w3.org/2000/svg' />"),
        ("team/review.golden.md", "stale"),
        ("skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Reads\n---\nSee notes.md"),
        ("skills/pdf/notes.md", "notes"),
        ("skills/pdf/scripts/run.py", "run"),
    ]
    .into_iter()
    .collect()
}

fn prompt<'r>(report: &'r CheckReport, name: &str) -> &'r PromptFile {
    report.prompts.iter().find(|prompt| prompt.name == name).expect("the prompt is there")
}

fn file(text: &str) -> Option<MemoryFile> {
    Some(MemoryFile::new(text.as_bytes()))
}

#[test]
fn prompts_bring_all_files_that_they_are_made_from() {
    let report = LibraryChecker::new().check(&tree(), false);
    assert_eq!((report.summary.errors, report.summary.tests), (0, None), "{:?}", report.findings);
    let review = prompt(&report, "team-review");
    assert_eq!(review.path, "team/review.md");
    assert_eq!(
        review.brings,
        [
            "_shared/inner.md",
            "_shared/outer.md",
            "docs/style.txt",
            "helped.txt",
            "helper.md",
            "icons/i.svg",
            "lists/styles.txt",
            "logs/1d.log",
            "notes.txt",
            "parts/long.txt",
            "parts/short.txt",
            "team/review.golden.md",
        ]
    );
    assert_eq!(prompt(&report, "helper").brings, ["helped.txt"]);
    assert_eq!(prompt(&report, "other").brings, [""; 0]);
    assert_eq!(prompt(&report, "pdf").brings, ["skills/pdf/notes.md", "skills/pdf/scripts/run.py"]);
}

#[test]
fn digest_depends_on_the_files_of_the_prompt_alone() {
    let (tree, checker) = (tree(), LibraryChecker::new());
    let before = checker.check(&tree, false);
    let review = prompt(&before, "team-review");
    let own: BTreeSet<&str> = review.brings.iter().map(String::as_str).chain(["team/review.md"]).collect();
    for (path, content) in tree.iter().filter(|(path, _)| *path != "promptshelf.toml" && !path.ends_with(".svg")) {
        let edited = format!("{}\n", String::from_utf8_lossy(content.bytes()));
        let after = checker.check(&tree.with([(path, file(&edited))]), false);
        assert_eq!(prompt(&after, "team-review").digest != review.digest, own.contains(path), "{path}");
    }
    // An icon is found by its content, and an unchanged tree has the same digests.
    let after = checker.check(&tree.with([("icons/i.svg", file("<svg/>"))]), false);
    assert_ne!(prompt(&after, "team-review").digest, review.digest);
    assert_eq!(checker.check(&tree.with([("new.txt", file("x"))]), true).prompts, before.prompts);
}

// Also inside a runtime, whose thread it must not block on.
#[tokio::test]
async fn failed_tests_are_counted_and_described() {
    let (tree, checker) = (tree(), LibraryChecker::new());
    let report = checker.check(&tree, true);
    assert_eq!(report.summary.tests, Some((0, 1)));
    let failed = &report.findings[0];
    assert!(failed.starts_with("team/review.md:7:3: error: the test team-review / 1 failed: "), "{failed}");
    assert!(failed.contains("the messages differ from team/review.golden.md"), "{failed}");

    let missing = checker.check(&tree.with([("team/review.golden.md", None)]), true);
    assert_eq!(missing.summary.tests, Some((0, 1)));
    assert!(missing.findings[0].contains("missing golden file"), "{:?}", missing.findings);

    let passing = "---\ndescription: d\ntests: [{contains: hi}, {contains: hi, not_contains: bye}]\n---\nhi";
    let passed = checker.check(&[("a.md", passing)].into_iter().collect(), true);
    assert_eq!((passed.summary.tests, passed.findings), (Some((2, 0)), Vec::new()));
}

#[test]
fn findings_equal_those_of_a_folder() {
    let files = [
        ("promptshelf.toml", "[server]\nnaem = \"x\"\n[roots]\nout = \"docs\"\n"),
        ("broken.md", "---\ndescription: [\n---\nx"),
        ("hidden.md", "---\ndescription: d\n---\nBe kind.\u{202e}"),
        ("secret.md", "---\ndescription: d\n---\nUse AKIAIOSFODNN7EXAMPLQ for it"),
        ("plain.md", "no description {{ attach('docs://nothing') }}"),
        ("missing.md", "---\ndescription: d\n---\n{% include '_gone.md' %}"),
        ("docs/latin.txt", "text"),
    ];
    for without_manifest in [false, true] {
        let files = || files.into_iter().filter(|(path, _)| !without_manifest || *path != "promptshelf.toml");
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files() {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::write(path, text).expect("a file");
        }
        let read = Files::folder(folder.path()).lenient().read().expect("read");
        let checked = check(read.into_definitions(), None);
        let mut expected: Vec<_> =
            checked.diagnostics.iter().cloned().chain(review(&checked.catalog, &checked.diagnostics)).collect();
        expected.retain(|it| it.severity >= Severity::Warning);
        let lines = |severity| {
            let found = expected.iter().filter(move |it| it.severity == severity);
            found.map(ToString::to_string).collect::<BTreeSet<_>>()
        };
        let (errors, warnings) = (lines(Severity::Error), lines(Severity::Warning));
        let report = LibraryChecker::new().check(&files().collect(), false);
        let is_same = |lines: &BTreeSet<String>, found: &[String]| {
            let found: BTreeSet<_> = found.iter().cloned().collect();
            // With an invalid manifest, references to resources are not judged.
            lines.iter().filter(|line| !found.contains(*line)).all(|line| line.contains("unknown-resource"))
                && found.is_subset(lines)
        };
        let (first, rest) = report.findings.split_at(usize::try_from(report.summary.errors).expect("a few"));
        assert!(is_same(&errors, first), "{errors:#?} {first:#?}");
        assert!(is_same(&warnings, rest), "{warnings:#?} {rest:#?}");
        assert!(errors.len() >= 3 && warnings.len() >= 3, "{errors:#?} {warnings:#?}");
        let is_judged = first.iter().any(|line| line.contains("unknown-resource"));
        assert_eq!(is_judged, without_manifest, "{first:#?}");
    }
}

// req: S-89, S-90
#[test]
fn only_invalid_settings_make_a_tree_unloadable() {
    let report = |files: &[(&str, &str)]| LibraryChecker::new().check(&files.iter().copied().collect(), false);
    let broken = report(&[("promptshelf.toml", "[list]\npage-size = \"many\"\n"), ("a.md", "Say a.\n")]);
    assert!(broken.is_unloadable && broken.summary.errors > 0, "{broken:?}");
    let outside = report(&[("promptshelf.toml", "[roots]\nlogs = \"/var/log\"\n"), ("a.md", "Say a.\n")]);
    assert!(!outside.is_unloadable && outside.summary.errors > 0, "{outside:?}");
    let prompt = report(&[("a.md", "---\narguments: 5\n---\nSay a.\n")]);
    assert!(!prompt.is_unloadable && prompt.summary.errors > 0, "{prompt:?}");
}

// req: S-483
#[test]
fn leaving_a_rule_of_the_operator_is_an_opening() {
    let rule = |part: fn(&mut AccessRule) -> &mut Vec<String>, text: &str| {
        let access = Access { roles: vec!["boss".to_owned()], ..Access::default() };
        let mut rule = AccessRule::new(access, Origin::new(SourceText::new("server.toml", "")));
        part(&mut rule).push(text.to_owned());
        rule
    };
    let access = vec![rule(|it| &mut it.prompts, "secret-*"), rule(|it| &mut it.folders, "private")];
    let operator = Fixed::new(Definitions { access, ..Definitions::default() });
    let tree = |secret, private, data: &'static str| -> MemoryTree {
        let text = "---\ndescription: d\n---\nThe plan\n";
        [(secret, text), (private, text), (data, "data"), ("hello.md", "---\ndescription: d\n---\nHi\n")]
            .into_iter()
            .collect()
    };
    let before = tree("secret-plan.md", "private/pay.md", "private/data.txt");
    let checker = LibraryChecker::new().rules(operator);
    let openings = |after: &MemoryTree| {
        let trees = Trees { before: Some(before.clone()), after: after.clone(), source: None };
        let (report, effects) = checker.check_replacement(&trees, false);
        assert_eq!(report, LibraryChecker::new().check(after, false), "findings tell nothing of the operator's rules");
        effects.iter().filter(|effect| effect.impact == EffectImpact::Opening).count()
    };
    assert_eq!(openings(&before), 0);
    assert_eq!(openings(&tree("secret-other.md", "private/pay2.md", "private/data2.txt")), 0);
    assert!(openings(&tree("plan.md", "private/pay.md", "private/data.txt")) > 0);
    assert!(openings(&tree("secret-plan.md", "pay.md", "private/data.txt")) > 0);
    assert!(openings(&tree("secret-plan.md", "private/pay.md", "open/data.txt")) > 0);
}

/// The names of the openings of a tree that replaces another one, or is copied from one.
fn openings(before: Option<&MemoryTree>, after: &MemoryTree, source: Option<&MemoryTree>) -> Vec<String> {
    let trees = Trees { before: before.cloned(), after: after.clone(), source: source.cloned() };
    let (_, effects) = LibraryChecker::new().check_replacement(&trees, false);
    let openings = effects.into_iter().filter(|effect| effect.impact == EffectImpact::Opening);
    openings.map(|effect| effect.name).collect()
}

fn closed_folder() -> MemoryTree {
    let rules = "[[access]]\nfolders = [\"private\"]\nroles = [\"boss\"]\n";
    let files = [
        ("promptshelf.toml", rules),
        ("private/plan.md", "---\ndescription: d\n---\nThe plan is secret\n"),
        ("private/wages.txt", "Wages are secret\n"),
        ("hello.md", "---\ndescription: d\n---\nHi\n"),
    ];
    files.into_iter().collect()
}

// req: S-502
#[test]
fn text_that_leaves_a_closed_folder_is_an_opening_whatever_changes_with_it() {
    let before = closed_folder();
    let open = |changes: &[(&str, Option<&str>)]| {
        let changes = changes.iter().map(|(path, text)| (*path, text.and_then(file)));
        openings(Some(&before), &before.with(changes), None)
    };
    assert_eq!(open(&[]), [""; 0]);
    for (old, text) in [
        ("private/plan.md", "---\ndescription: d\n---\nThe plan is secret\n"),
        ("private/wages.txt", "Wages are secret\n"),
    ] {
        for new in ["plan.md", "wages.txt", "docs/other.md", "hello/private/x"] {
            let other = text.replace("secret", "Secret");
            for text in [text, &other, "Another text"] {
                let found = open(&[(old, None), (new, Some(text))]);
                assert!(found.iter().any(|name| name.contains(new)), "{old} -> {new}: {found:?}");
            }
            // A copy, whether or not the file goes later.
            assert!(open(&[(new, Some(text))]).iter().any(|name| name.contains(new)), "{old} -> {new}");
        }
        assert!(!open(&[("hello.md", Some(text))]).is_empty(), "into an open file");
        for new in ["private/new.md", "private/deep/new.txt"] {
            assert_eq!(open(&[(old, None), (new, Some(text))]), [""; 0], "it stays closed");
        }
    }
    assert_eq!(open(&[("new.md", Some("---\ndescription: d\n---\nNew\n"))]), [""; 0]);
    assert_eq!(open(&[("hello.md", None), ("hi.md", Some("Hi"))]), [""; 0]);
    let empty = before.with([("private/.keep", file(" \n")), ("docs/.keep", file(" \n"))]);
    assert_eq!(openings(Some(&before), &empty, None), [""; 0], "empty files are no copies");
}

// req: S-602
#[test]
fn copy_of_closed_text_is_an_opening_with_other_keys_and_white_space() {
    let before = closed_folder();
    let plan = "---\ndescription: other\n---\nThe plan\nis secret\n";
    let copy = |path: &'static str, text: &str| openings(Some(&before), &before.with([(path, file(text))]), None);
    assert_eq!(copy("plan.md", plan), ["file-opened:plan.md"]);
    assert_eq!(copy("plan.txt", "The plan is secret"), ["file-opened:plan.txt"]);
    assert_eq!(copy("hello.md", plan), ["file-opened:hello.md"]);
    assert_eq!(copy("private/copy.md", plan), [""; 0]);
    assert_eq!(copy("plan.md", "The plan is public"), [""; 0]);
    let own = "---\ndescription: d\naccess:\n  roles: [boss]\n---\nOwn rule\n";
    let before = before.with([("own.md", file(own))]);
    let open = "---\ndescription: d\n---\nOwn rule\n";
    let copy = |path: &'static str| openings(Some(&before), &before.with([(path, file(open))]), None);
    assert_eq!(copy("copy.md"), ["file-opened:copy.md"]);
    assert_eq!(copy("own.md"), ["access-opened:own"], "it is named once");
}

// req: S-502
#[test]
fn rule_that_closes_nothing_yet_opens_what_comes_later() {
    let rules = |text: &str| -> MemoryTree {
        [("promptshelf.toml", text), ("hello.md", "---\ndescription: d\n---\nHi\n")].into_iter().collect()
    };
    let rule =
        |key: &str, pattern: &str, roles: &str| format!("[[access]]\n{key} = [\"{pattern}\"]\nroles = [{roles}]\n");
    for (key, pattern) in
        [("folders", "private"), ("prompts", "secret-*"), ("tags", "secret"), ("resources", "vault://*")]
    {
        let before = rules(&rule(key, pattern, "\"boss\""));
        let name = format!("rule-opened:{key} {pattern}");
        for after in ["# none\n".to_owned(), rule(key, pattern, "\"boss\", \"all\""), rule(key, "other", "\"boss\"")] {
            assert_eq!(openings(Some(&before), &rules(&after), None), std::slice::from_ref(&name), "{after}");
        }
        let stricter = rule(key, pattern, "\"boss\"") + &rule(key, pattern, "\"head\"");
        assert_eq!(openings(Some(&before), &rules(&stricter), None), [""; 0]);
    }
    // What a rule closes is named itself, and the rule is not named once more.
    let before = rules(&rule("prompts", "hello", "\"boss\""));
    assert_eq!(openings(Some(&before), &rules("# none\n"), None), ["access-opened:hello"]);
}

// req: S-501
#[test]
fn copy_from_a_channel_that_closes_it_is_an_opening_by_name() {
    let source = closed_folder();
    let target: MemoryTree = [("hello.md", "---\ndescription: d\n---\nHi\n")].into_iter().collect();
    let copied = |path: &str| (path.to_owned(), source.get(path).cloned());
    for before in [Some(&target), None] {
        let taken = target.with([copied("private/plan.md"), copied("private/wages.txt")]);
        let found = openings(before, &taken, Some(&source));
        assert_eq!(found, ["source-opened:private-plan", "source-opened:private/wages.txt"]);
        // With its rule, or without what it closes, nothing is opened.
        assert_eq!(openings(before, &source, Some(&source)), [""; 0]);
        assert_eq!(openings(before, &target.with([copied("hello.md")]), Some(&source)), [""; 0]);
    }
    // What the target has already is not copied.
    let had = target.with([copied("private/plan.md")]);
    assert_eq!(openings(Some(&had), &had.with([("new.md", file("New"))]), Some(&source)), [""; 0]);
}

#[test]
fn hostile_trees_give_a_report() {
    let checker = LibraryChecker::new();
    let empty = checker.check(&MemoryTree::default(), true);
    assert_eq!((empty.summary.errors, empty.summary.warnings, empty.prompts.len()), (0, 1, 0));
    let many: MemoryTree =
        (0..300).map(|number| (format!("p{number}.md"), file("---\nx: [\n---\n").expect("it"))).collect();
    let report = checker.check(&many, true);
    assert!(report.summary.errors >= 300, "{}", report.summary.errors);
    assert_eq!(report.findings.len(), 100);
    let outside = r#"[roots]
out = "/etc"
up = "../.."
[[resources]]
uri-template = "out:///{+path}"
root = "out"
file = "{+path}"
"#;
    let files = [
        ("promptshelf.toml", outside),
        ("a.md", "---\ndescription: d\n---\n{{ attach('out:///passwd') }}"),
        ("../up.md", "x"),
    ];
    let report = checker.check(&files.into_iter().collect(), true);
    let ungranted = report.findings.iter().filter(|line| line.contains("error[ungranted-root]")).count();
    assert_eq!((ungranted, report.prompts.len()), (2, 1), "{:?}", report.findings);
    assert_eq!(report.prompts[0].brings, [""; 0]);
    let bytes = [("a.md", MemoryFile::new(*b"\xff\xfe")), ("promptshelf.toml", MemoryFile::new(*b"\xff"))];
    let report = checker.check(&bytes.into_iter().collect(), true);
    assert_eq!(report.summary.errors, 2, "{:?}", report.findings);
}
