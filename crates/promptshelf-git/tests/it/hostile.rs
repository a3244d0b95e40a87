//! Trees with links, submodules, pointers, odd names, and paths that lead elsewhere.

use promptshelf_git::GitError;
use promptshelf_testkit::git::git;

use crate::sample::{Sample, files, loaded, served};

const SUBMODULE: &str = "1234567890123456789012345678901234567890";

// req: S-142
#[tokio::test]
async fn links_submodules_and_pointers_are_reported_and_not_followed() {
    let sample = Sample::new(&[("good.md", "Good"), ("secret.md", "Secret")]);
    let blob = |text: &str| sample.blob(text.as_bytes());
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    let tree = sample.tree(&[
        ("100644", b"good.md", &blob("Good")),
        ("120000", b"link.md", &blob("/etc/passwd")),
        ("100644", b"odd\xff.md", &blob("Odd")),
        ("100644", b"pointer.md", &blob(pointer)),
        ("160000", b"sub.md", SUBMODULE),
    ]);
    sample.commit_tree(&tree);
    let source = sample.source("#main");
    source.refresh().await.unwrap();
    let found: Vec<(String, String)> = files(&source);
    let expected = [
        ("good.md", "Good"),
        ("link.md", "! it is a symbolic link, and links of a commit are not followed"),
        ("odd\u{fffd}.md", "! its name is not UTF-8"),
        ("pointer.md", "! it is a pointer of Git LFS, and its content is not fetched"),
        ("sub.md", "! it is a submodule, and submodules are not fetched"),
    ];
    assert_eq!(found, expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
    let (names, errors) = loaded(&source);
    assert_eq!((names, errors.len()), (vec!["good".to_owned()], 4), "{errors:?}");
    assert!(errors[0].contains("cannot read this file: it is a symbolic link"), "{errors:?}");
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
        let path = bare.join("hooks").join(hook);
        std::fs::write(&path, format!("#!/bin/sh\n{run}\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
    }
    let source = sample.source("#main");
    source.refresh().await.unwrap();
    assert_eq!(files(&source), [("a.md".to_owned(), "One".to_owned())]);
    assert!(!trap.exists());
}
