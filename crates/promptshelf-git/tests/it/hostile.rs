//! Trees with links, submodules, pointers, odd names, and paths that lead elsewhere.

use promptshelf_git::GitError;
use promptshelf_source::{Files, Loader};
use promptshelf_testkit::{folder::executable, git::git};

use crate::sample::{Sample, files, loaded, served};

const SUBMODULE: &str = "1234567890123456789012345678901234567890";

/// A commit with each odd kind of entry.
fn odd_tree(sample: &Sample, good: &str) -> String {
    let blob = |text: &str| sample.blob(text.as_bytes());
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    let hidden = sample.tree(&[("100644", b"instructions.md", &blob("Hidden"))]);
    let team = sample.tree(&[("100644", b"a.md", &blob("A")), ("120000", b"up.md", &blob("../good.md"))]);
    sample.tree(&[
        ("40000", b".github", &hidden),
        ("120000", b"absolute.md", &blob("/etc/passwd")),
        ("120000", b"chain.md", &blob("link.md")),
        ("120000", b"gone.md", &blob("nowhere.md")),
        ("100644", b"good.md", &blob(good)),
        ("120000", b"hidden.md", &blob(".github/instructions.md")),
        ("120000", b"link.md", &blob("team/../good.md")),
        ("120000", b"loop.md", &blob("loop.md")),
        ("100644", b"odd\xff.md", &blob("Odd")),
        ("120000", b"outside.md", &blob("../../x.md")),
        ("100644", b"pointer.md", &blob(pointer)),
        ("120000", b"self", &blob(".")),
        ("120000", b"shared", &blob("team")),
        ("160000", b"sub.md", SUBMODULE),
        ("40000", b"team", &team),
    ])
}

// req: S-142
// req: S-261
#[tokio::test]
async fn links_are_followed_inside_of_the_folder_and_odd_entries_are_reported() {
    let sample = Sample::new(&[("good.md", "Good"), ("secret.md", "Secret")]);
    sample.commit_tree(&odd_tree(&sample, "Good"));
    let source = sample.source("#main");
    source.refresh().await.unwrap();
    let expected = [
        ("absolute.md", "! LinkOutside"),
        ("chain.md", "Good"),
        ("gone.md", "! LinkWithoutTarget"),
        ("good.md", "Good"),
        ("hidden.md", "Hidden"),
        ("link.md", "Good"),
        ("loop.md", "! LinkCycle"),
        ("odd\u{fffd}.md", "! NameNotUtf8"),
        ("outside.md", "! LinkOutside"),
        ("pointer.md", "! it is a pointer of Git LFS, and its content is not fetched"),
        ("self", "! LinkCycle"),
        ("shared/a.md", "A"),
        ("shared/up.md", "Good"),
        ("sub.md", "! it is a submodule, and submodules are not fetched"),
        ("team/a.md", "A"),
        ("team/up.md", "Good"),
    ];
    assert_eq!(files(&source), expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
    let tree = source.source().in_memory().expect("a tree");
    let target = |path: &str| tree.get(path).unwrap().link().map(str::to_owned);
    assert_eq!(target("shared/up.md").as_deref(), Some("good.md"));
    assert_eq!((target("chain.md").as_deref(), target("good.md")), (Some("good.md"), None));
    let (names, errors) = loaded(&source);
    // One file is one prompt, however many links lead to it.
    assert_eq!(names, ["good", "hidden", "team-a"]);
    assert_eq!(errors.len(), 5, "{errors:?}");
    assert!(
        errors[0].contains("absolute.md:1:1: error[outside-library]: this path leads out of the library"),
        "{errors:?}"
    );
}

// req: S-261
#[tokio::test]
async fn odd_entries_keep_no_later_commit_away() {
    let sample = Sample::new(&[("good.md", "Good")]);
    let source = sample.source("#main");
    source.refresh().await.unwrap();
    for text in ["Good", "Better"] {
        let commit = sample.commit_tree(&odd_tree(&sample, text));
        source.refresh().await.unwrap();
        assert_eq!(served(&source), commit);
        assert!(files(&source).contains(&("chain.md".to_owned(), text.to_owned())), "{:?}", files(&source));
    }
    // A served prompt that becomes one of them is lost, which is worse.
    let good = served(&source);
    sample.commit_tree(&sample.tree(&[("120000", b"good.md", &sample.blob(b"/etc/passwd"))]));
    let error = source.refresh().await.unwrap_err().to_string();
    assert!(error.contains("good.md:1:1"), "{error}");
    assert_eq!(served(&source), good);
}

// req: S-261
#[tokio::test]
async fn links_of_a_commit_are_those_of_the_same_folder() {
    let sample = Sample::new(&[
        ("promptshelf.toml", "[[access]]\nfolders = [\"closed\"]\nroles = [\"boss\"]\n"),
        ("closed/plan.md", "Plan"),
        ("AGENTS.txt", "Agents"),
        ("open.md", "{{ attach('link.txt') }}"),
    ]);
    for (link, target) in [("plan.md", "closed/plan.md"), ("team", "closed"), ("link.txt", "AGENTS.txt")] {
        std::os::unix::fs::symlink(target, sample.work().join(link)).unwrap();
    }
    sample.commit(&[]);
    let source = sample.source("#main");
    source.refresh().await.unwrap();
    let of_folder = Loader::open(vec![Box::new(Files::folder(sample.work()))]).unwrap();
    let of_commit = Loader::open(vec![Box::new(source.source().clone())]).unwrap();
    let shown = |loader: &Loader| {
        let catalog = loader.handle().current();
        let prompts = catalog.prompts().iter().enumerate();
        let prompts = prompts.map(|(at, prompt)| (prompt.name().to_string(), catalog.prompt_access(at).len()));
        let found: Vec<String> = loader.diagnostics().iter().map(ToString::to_string).collect();
        (prompts.collect::<Vec<_>>(), found)
    };
    assert_eq!(shown(&of_commit), shown(&of_folder));
    assert!(
        shown(&of_commit).0.iter().all(|(name, rules)| (name == "open") == (*rules == 0)),
        "{:?}",
        shown(&of_commit)
    );
}

// req: S-142
#[tokio::test]
async fn tree_with_forbidden_paths_is_refused_as_a_whole() {
    let sample = Sample::new(&[("good.md", "Good")]);
    let source = sample.source("#main");
    source.refresh().await.unwrap();
    let good = served(&source);
    let blob = sample.blob(b"Evil");
    let inner = sample.tree(&[("100644", b"evil.md", &blob)]);
    for name in [&b".."[..], b".git", b".GIT", b"."] {
        sample.commit_tree(&sample.tree(&[("40000", name, &inner)]));
        let error = source.refresh().await.unwrap_err();
        assert!(matches!(error, GitError::Refused { .. }), "{error}");
        assert!(error.to_string().contains("git itself refuses to check out"), "{error}");
    }
    sample.commit_tree(&sample.tree(&[("100644", b"../evil.md", &blob)]));
    assert!(matches!(source.refresh().await, Err(GitError::Refused { .. })));
    assert_eq!((served(&source), loaded(&source).0), (good, vec!["good".to_owned()]));
}

// req: S-143
#[tokio::test]
async fn tree_of_countless_files_is_refused() {
    let sample = Sample::new(&[("good.md", "Good")]);
    let source = sample.source("#main");
    source.refresh().await.unwrap();
    let good = served(&source);
    // Each level has ten times the next one, which is stored once: a million files, and more than can be listed.
    let blob = sample.blob(b"Same");
    let names: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    let files = names.iter().map(|name| format!("{name}.md")).collect::<Vec<_>>();
    let mut tree = sample.tree(&files.iter().map(|name| ("100644", name.as_bytes(), &*blob)).collect::<Vec<_>>());
    for (levels, expected) in [(5, "the commit has more than 100000 files"), (5, "the repository has too many files")] {
        for _ in 0..levels {
            let entries: Vec<_> = names.iter().map(|name| ("40000", name.as_bytes(), &*tree)).collect();
            tree = sample.tree(&entries);
        }
        sample.commit_tree(&tree);
        let error = source.refresh().await.unwrap_err();
        assert!(matches!(error, GitError::TooLarge { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!((served(&source), loaded(&source).0), (good, vec!["good".to_owned()]));
}

// req: S-141
#[tokio::test]
async fn hooks_filters_and_attributes_of_a_repository_do_not_run() {
    let sample =
        Sample::new(&[("a.md", "One"), (".gitattributes", "*.md filter=evil text eol=crlf ident export-subst\n")]);
    let trap = sample.path().join("trap");
    let run = format!("touch {}", trap.display());
    let bare = sample.bare();
    for (key, value) in
        [("filter.evil.smudge", run.as_str()), ("core.fsmonitor", &run), ("uploadpack.packObjectsHook", &run)]
    {
        git(&bare, &["config", key, value], b"");
    }
    for hook in ["post-checkout", "reference-transaction", "post-update"] {
        executable(bare.join("hooks").join(hook), format!("#!/bin/sh\n{run}\n"));
    }
    let source = sample.source("#main");
    source.refresh().await.unwrap();
    assert_eq!(files(&source), [("a.md".to_owned(), "One".to_owned())]);
    assert!(!trap.exists());
}
