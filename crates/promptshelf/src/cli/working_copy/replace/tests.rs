use promptshelf_source::MemoryTree;
use promptshelf_store::ChannelName;
use tempfile::TempDir;

use super::*;

fn head(revision: u64) -> promptshelf_store::Head {
    serde_json::from_value(serde_json::json!({ "epoch": "e", "revision": revision })).expect("a head")
}

fn tree(files: &[(&'static str, &'static str)]) -> MemoryTree {
    files.iter().copied().collect()
}

fn base(revision: u64, tree: &MemoryTree) -> Base {
    Base::new(head(revision), ChannelName::production(), listing(tree))
}

fn stage(replacement: &mut Replacement<'_>, tree: &MemoryTree) {
    for path in replacement.written.clone() {
        replacement.stage(&path, tree.get(&path).expect("a new file").bytes()).expect("staged");
    }
}

fn pull(folder: &Path, revision: u64, tree: &MemoryTree) -> Result<(), Failure> {
    let copy = WorkingCopy::create(folder)?;
    let before = copy.base(&ChannelName::production())?;
    let mut replacement = copy.replacement(base(revision, tree), before.as_ref(), false)?;
    stage(&mut replacement, tree);
    replacement.apply().map(|kept| assert_eq!(kept, [""; 0]))
}

fn read(folder: &Path) -> MemoryTree {
    read_tree(folder)
        .expect("a tree")
        .iter()
        .map(|(path, file)| (path.to_owned(), promptshelf_source::MemoryFile::new(file.bytes())))
        .collect()
}

fn entries(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn pull_replaces_adds_and_removes_files() {
    let folder = TempDir::new().expect("a folder");
    let first = tree(&[("a.md", "1"), ("git/commit.md", "1"), ("x/y/z.md", "1")]);
    pull(folder.path(), 1, &first).expect("pulled");
    assert_eq!(read(folder.path()), first);
    let second = tree(&[("a.md", "2"), ("git/commit.md", "1"), ("new/b.md", "1")]);
    pull(folder.path(), 2, &second).expect("pulled");
    assert_eq!(read(folder.path()), second);
    assert_eq!(entries(folder.path()), [MARKER, "a.md", "git", "new"]);
    let copy = WorkingCopy::open(folder.path()).expect("opened");
    assert_eq!(copy.base(&ChannelName::production()), Ok(Some(base(2, &second))));
}

#[test]
fn files_and_folders_change_places() {
    let folder = TempDir::new().expect("a folder");
    for (revision, files) in
        [(1, &[("a", "1"), ("b/c.md", "1")][..]), (2, &[("a/x.md", "1"), ("b", "1")]), (3, &[("a", "2")])]
    {
        let tree = tree(files);
        pull(folder.path(), revision, &tree).expect("pulled");
        assert_eq!(read(folder.path()), tree);
    }
}

#[test]
fn local_changes_are_named_and_stay() {
    let folder = TempDir::new().expect("a folder");
    pull(folder.path(), 1, &tree(&[("a.md", "1"), ("b.md", "1"), ("c.md", "1")])).expect("pulled");
    fs::write(folder.path().join("a.md"), "mine").expect("written");
    fs::remove_file(folder.path().join("b.md")).expect("removed");
    fs::write(folder.path().join("new.md"), "mine").expect("written");
    let mine = read(folder.path());
    let next = tree(&[("a.md", "2"), ("b.md", "2"), ("c.md", "2")]);
    let failure = pull(folder.path(), 2, &next).expect_err("refused");
    assert_eq!(failure.exit, Exit::Conflict);
    assert!(failure.message.contains("\n  a.md\n  b.md\n  new.md"), "{failure}");
    assert_eq!(read(folder.path()), mine);
    // A local change that the channel has too is not lost.
    let merged = tree(&[("a.md", "mine"), ("c.md", "2"), ("new.md", "mine")]);
    pull(folder.path(), 3, &merged).expect("pulled");
    assert_eq!(read(folder.path()), merged);
}

#[test]
fn folder_that_was_not_pulled_is_refused() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("a.md~"), "a backup, which a library ignores").expect("written");
    let failure = pull(folder.path(), 1, &tree(&[("a.md", "1")])).expect_err("refused");
    assert!(failure.exit == Exit::Conflict && failure.message.contains("is not empty"), "{failure}");
    fs::remove_file(folder.path().join("a.md~")).expect("removed");
    fs::create_dir(folder.path().join(".git")).expect("a folder");
    pull(folder.path(), 1, &tree(&[("a.md", "1")])).expect("hidden files do not matter");
}

// req: S-93
#[test]
fn hostile_paths_of_a_store_write_nothing() {
    for path in ["../a.md", "/var/a.md", ".git/hooks/pre-commit", MARKER, "x/../../a.md", "aux.md"] {
        let outer = TempDir::new().expect("a folder");
        let folder = outer.path().join("in");
        let mut files = Listing::from([("good.md".to_owned(), Digest::of(b"1"))]);
        files.insert(path.to_owned(), Digest::of(b"1"));
        let copy = WorkingCopy::create(&folder).expect("created");
        let target = Base::new(head(1), ChannelName::production(), files);
        assert!(copy.replacement(target, None, false).is_err(), "{path}");
        assert_eq!(entries(&folder), [""; 0], "{path}");
        assert_eq!(entries(outer.path()), ["in"], "{path}");
    }
    let folder = TempDir::new().expect("a folder");
    assert!(pull(folder.path(), 1, &tree(&[("a.md", "1"), ("a.md/b.md", "1")])).is_err());
}

// req: S-93
#[cfg(unix)]
#[test]
fn linked_folders_are_not_written_through() {
    let (outside, folder) = (TempDir::new().expect("a folder"), TempDir::new().expect("a folder"));
    pull(folder.path(), 1, &tree(&[("a.md", "1")])).expect("pulled");
    for target in [outside.path(), Path::new("real")] {
        fs::create_dir_all(folder.path().join("real")).expect("a folder");
        let link = folder.path().join("linked");
        std::os::unix::fs::symlink(target, &link).expect("a link");
        let failure = pull(folder.path(), 2, &tree(&[("a.md", "1"), ("linked/b.md", "1")])).expect_err("refused");
        assert!(failure.message.contains("linked"), "{failure}");
        fs::remove_file(link).expect("removed");
        assert_eq!(entries(outside.path()), [""; 0]);
        assert_eq!(entries(&folder.path().join("real")), [""; 0]);
    }
}

#[test]
fn interrupted_download_leaves_the_old_state() {
    let folder = TempDir::new().expect("a folder");
    let (first, second) = (tree(&[("a.md", "1"), ("b.md", "1")]), tree(&[("a.md", "2"), ("c.md", "2")]));
    pull(folder.path(), 1, &first).expect("pulled");
    let copy = WorkingCopy::open(folder.path()).expect("opened");
    let before = copy.base(&ChannelName::production()).expect("a base");
    let mut replacement = copy.replacement(base(2, &second), before.as_ref(), false).expect("prepared");
    replacement.stage("a.md", b"2").expect("staged");
    // A killed process runs no destructor.
    replacement.lock = None;
    std::mem::forget(replacement);
    assert_eq!(read(folder.path()), first);
    assert_eq!(
        WorkingCopy::open(folder.path()).expect("opened").base(&ChannelName::production()),
        Ok(Some(base(1, &first)))
    );
    pull(folder.path(), 2, &second).expect("pulled");
    assert_eq!(read(folder.path()), second);
    assert_eq!(entries(folder.path()), [MARKER, "a.md", "c.md"]);
}

#[test]
fn interrupted_move_is_completed_by_the_next_command() {
    let (first, second) =
        (tree(&[("a", "1"), ("b/c.md", "1"), ("d.md", "1")]), tree(&[("a/x.md", "2"), ("b", "2"), ("d.md", "2")]));
    // After any number of moves, and of removed files.
    for done in 0..5 {
        let folder = TempDir::new().expect("a folder");
        pull(folder.path(), 1, &first).expect("pulled");
        let copy = WorkingCopy::open(folder.path()).expect("opened");
        let before = copy.base(&ChannelName::production()).expect("a base");
        let mut replacement = copy.replacement(base(2, &second), before.as_ref(), false).expect("prepared");
        stage(&mut replacement, &second);
        let (staged, removed) = (replacement.staged.clone(), replacement.removed.clone());
        let journal = Journal {
            base: base(2, &second),
            staged: staged.clone(),
            removed: removed.clone(),
            merged: Listing::new(),
            present: listing(&first),
        };
        copy.dir.write(JOURNAL, serde_json::to_string(&journal).expect("JSON")).expect("written");
        for path in removed.iter().take(done) {
            copy.dir.remove_file(path).expect("removed");
            copy.remove_empty_parents(path);
        }
        for (path, name) in staged.iter().take(done.saturating_sub(removed.len())) {
            copy.put(
                &format!("{STAGING}/{name}"),
                path,
                second.get(path).map(|file| Digest::of(file.bytes())).as_ref(),
            )
            .expect("moved");
        }
        replacement.lock = None;
        std::mem::forget(replacement);
        let copy = WorkingCopy::open(folder.path()).expect("completed");
        assert_eq!(read(folder.path()), second, "{done}");
        assert_eq!(copy.base(&ChannelName::production()), Ok(Some(base(2, &second))), "{done}");
        assert!(!copy.dir.exists(STAGING), "{done}");
    }
}

/// Edits of any file between the comparison and the replacement, which may have been interrupted at any place.
#[test]
fn files_that_are_edited_during_a_pull_stay() {
    let first = tree(&[("a", "1"), ("b/c.md", "1"), ("d.md", "1"), ("e.md", "1"), ("f/g.md", "1")]);
    let second = tree(&[("a/x.md", "2"), ("b", "2"), ("d.md", "2"), ("f/g.md", "1"), ("new.md", "2")]);
    let target = base(2, &second);
    for edited in ["a", "b/c.md", "d.md", "e.md", "f/g.md", "new.md"] {
        for is_interrupted in [false, true] {
            let folder = TempDir::new().expect("a folder");
            pull(folder.path(), 1, &first).expect("pulled");
            let copy = WorkingCopy::open(folder.path()).expect("opened");
            let before = copy.base(&ChannelName::production()).expect("a base");
            let mut replacement = copy.replacement(target.clone(), before.as_ref(), false).expect("prepared");
            stage(&mut replacement, &second);
            let edit = || fs::write(folder.path().join(edited), "mine").expect("written");
            if is_interrupted {
                let (staged, removed) = (replacement.staged.clone(), replacement.removed.clone());
                let (merged, present) = (Listing::new(), listing(&first));
                let journal = Journal { base: target.clone(), staged, removed, merged, present };
                copy.dir.write(JOURNAL, serde_json::to_string(&journal).expect("JSON")).expect("written");
                replacement.lock = None;
                std::mem::forget(replacement);
                edit();
                assert!(WorkingCopy::open_unchanged(folder.path()).is_err_and(|it| it.exit == Exit::Conflict));
                WorkingCopy::open(folder.path()).expect("completed");
            } else {
                edit();
                let kept = replacement.apply().expect("applied");
                assert_eq!(kept.contains(&edited.to_owned()), edited != "f/g.md", "{edited}: {kept:?}");
            }
            let found = read(folder.path());
            assert_eq!(found.get(edited).map(|file| file.bytes().to_vec()), Some(b"mine".to_vec()), "{edited}");
            for (path, file) in second.iter().filter(|(path, _)| *path != edited) {
                // Where the edited file is, no folder can be, and the other way round.
                if !path.starts_with(&format!("{edited}/")) && !edited.starts_with(&format!("{path}/")) {
                    assert_eq!(found.get(path).map(|it| it.bytes().to_vec()), Some(file.bytes().to_vec()), "{path}");
                }
            }
            // The edit is one of the content before, so that it takes back nothing of the channel.
            let known = copy.base(&ChannelName::production()).expect("a base").expect("a marker").files;
            assert_eq!(known.get(edited), listing(&first).get(edited), "{edited}");
            assert!(!copy.dir.exists(STAGING), "{edited}");
        }
    }
}

#[cfg(unix)]
#[test]
fn replaced_file_keeps_its_permissions_and_a_link_is_in_the_way() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().expect("a folder");
    pull(folder.path(), 1, &tree(&[("a.md", "1"), ("run.sh", "1"), ("l.md", "1")])).expect("pulled");
    for (path, mode) in [("a.md", 0o600), ("run.sh", 0o755)] {
        fs::set_permissions(folder.path().join(path), fs::Permissions::from_mode(mode)).expect("permissions");
    }
    pull(folder.path(), 2, &tree(&[("a.md", "2"), ("run.sh", "2"), ("l.md", "1")])).expect("pulled");
    for (path, mode) in [("a.md", 0o600), ("run.sh", 0o755)] {
        let found = fs::metadata(folder.path().join(path)).expect("a file");
        assert_eq!(found.permissions().mode() & 0o777, mode, "{path}");
    }
    fs::rename(folder.path().join("l.md"), folder.path().join(".l")).expect("renamed");
    std::os::unix::fs::symlink(".l", folder.path().join("l.md")).expect("a link");
    let failure = pull(folder.path(), 3, &tree(&[("l.md", "2")])).expect_err("refused");
    assert!(failure.exit == Exit::Conflict && failure.message.contains("l.md"), "{failure}");
}

#[test]
fn second_pull_waits_for_the_first() {
    let folder = TempDir::new().expect("a folder");
    let files = tree(&[("a.md", "1")]);
    let copy = WorkingCopy::create(folder.path()).expect("created");
    let mut first = copy.replacement(base(1, &files), None, false).expect("prepared");
    stage(&mut first, &files);
    let other = WorkingCopy::open(folder.path()).expect("opened");
    let mut second = other.replacement(base(1, &files), None, false).expect("prepared");
    let failure = second.stage("a.md", b"1").expect_err("refused");
    assert!(failure.message.contains("another pull"), "{failure}");
    first.apply().expect("applied");
    assert_eq!(read(folder.path()), files);
}

#[test]
fn damaged_marker_is_reported() {
    let folder = TempDir::new().expect("a folder");
    for text in ["", "{}", "{\"format\":1}", "{\"format\":2,\"files\":{}}"] {
        fs::write(folder.path().join(MARKER), text).expect("written");
        let failure = WorkingCopy::open(folder.path())
            .and_then(|copy| copy.base(&ChannelName::production()))
            .expect_err("refused");
        assert!(failure.message.contains(MARKER), "{failure}");
    }
}
