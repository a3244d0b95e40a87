//! Confinement to the library's folder; unusual files do not affect the rest of the library.
#![cfg(unix)]

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::symlink, net::UnixListener},
    process::Command,
};

use promptshelf_core::ResourceBody;
use promptshelf_source::Source as _;

use crate::library::{Library, broken, names};

fn library() -> Library {
    Library::of(&[("good.md", "---\ndescription: d\n---\nhello")])
}

#[test]
fn links_inside_the_library_are_followed() {
    let library = library();
    library.write("sub/other.md", "other");
    symlink("good.md", library.path("again.md")).expect("link");
    symlink("../good.md", library.path("sub/up.md")).expect("link");
    symlink("sub", library.path("twin")).expect("link");
    assert_eq!(library.mistakes(), [""; 0]);
    assert_eq!(names(&library.read()), ["good", "sub-other"]);
}

// req: J8, R-3, S-36, S-37, X9
#[test]
fn links_out_of_the_library_are_reported_and_the_rest_is_served() {
    let library = library();
    fs::write(library.outside().join("secret.md"), "secret").expect("file");
    symlink("../secret.md", library.path("relative.md")).expect("link");
    symlink(library.outside().join("secret.md"), library.path("absolute.md")).expect("link");
    symlink("..", library.path("parent")).expect("link");
    symlink("nowhere.md", library.path("dangling.md")).expect("link");
    let help = "(copy the file into the library, or link to it by a relative path that stays inside)";
    assert_eq!(
        library.mistakes(),
        [
            format!("absolute.md:1:1: error[outside-library]: this path leads out of the library {help}"),
            "dangling.md:1:1: warning[outside-library]: the target of this symbolic link does not exist (remove it)"
                .to_owned(),
            format!("parent:1:1: warning[outside-library]: this path leads out of the library {help}"),
            format!("relative.md:1:1: error[outside-library]: this path leads out of the library {help}"),
        ]
    );
    assert_eq!(names(&library.read()), ["good"]);
}

#[test]
fn link_cycles_are_reported() {
    let library = library();
    fs::create_dir(library.path("a")).expect("folder");
    symlink(".", library.path("self")).expect("link");
    symlink("..", library.path("a/up")).expect("link");
    symlink("two.md", library.path("one.md")).expect("link");
    symlink("one.md", library.path("two.md")).expect("link");
    let circle = "this symbolic link is part of a cycle (remove it)";
    assert_eq!(
        library.mistakes(),
        [
            format!("a/up:1:1: warning[outside-library]: {circle}"),
            format!("one.md:1:1: error[outside-library]: {circle}"),
            format!("self:1:1: warning[outside-library]: {circle}"),
            format!("two.md:1:1: error[outside-library]: {circle}"),
        ]
    );
    assert_eq!(names(&library.read()), ["good"]);
}

// req: S-36
#[test]
fn fifo_socket_and_device_are_never_opened() {
    let library = library();
    let made = Command::new("mkfifo").arg(library.path("fifo.md")).status().expect("mkfifo");
    assert!(made.success());
    let _socket = UnixListener::bind(library.path("socket.md")).expect("socket");
    symlink("/dev/zero", library.path("device.md")).expect("link");
    symlink("fifo.md", library.path("linked.md")).expect("link");
    let mistakes = library.mistakes();
    assert_eq!(
        mistakes.iter().map(|fault| fault.split(" (").next().unwrap()).collect::<Vec<_>>(),
        [
            "device.md:1:1: error[outside-library]: this path leads out of the library",
            "fifo.md:1:1: error[outside-library]: this is not a regular file",
            "linked.md:1:1: error[outside-library]: this is not a regular file",
            "socket.md:1:1: error[outside-library]: this is not a regular file",
        ]
    );
    assert_eq!(names(&library.read()), ["good"]);
}

#[test]
fn invalid_utf_8_is_reported() {
    let library = library();
    library.write("latin.md", b"caf\xe9");
    fs::write(library.root().join(OsStr::from_bytes(b"caf\xe9.md")), "hello").expect("file");
    library.write("bytes.txt", b"\xff\xfe");
    assert_eq!(
        library.mistakes(),
        [
            "caf\u{fffd}.md:1:1: warning[not-utf-8]: this file is left out: its name is not UTF-8 (rename it)",
            "latin.md:1:4: error[not-utf-8]: this file is not UTF-8, but another encoding (`check --fix` converts it to UTF-8; editors offer the encoding under *Save As* or in the status bar)",
        ]
    );
    let definitions = library.read();
    assert_eq!(names(&definitions), ["good"]);
    assert_eq!(broken(&definitions), ["latin.md"]);
    assert!(matches!(definitions.files["bytes.txt"].body, ResourceBody::Blob(_)));
}

#[test]
fn deeply_nested_folders_are_left_out() {
    let library = library();
    let deep = vec!["d"; 40].join("/");
    library.write(&format!("{deep}/deep.md"), "deep");
    let mistakes = library.mistakes();
    assert_eq!(mistakes.len(), 1);
    assert!(mistakes[0].contains("error[too-many]: this folder is nested more than 32 levels deep"), "{mistakes:?}");
    assert_eq!(names(&library.read()), ["good"]);
}

#[test]
fn missing_folder_is_an_error_of_one_line() {
    let library = library();
    fs::remove_dir_all(library.root()).expect("removed");
    let error = library.try_read().expect_err("nothing is there");
    assert!(error.is_not_found() && !error.is_permission_denied() && !error.is_invalid_manifest());
    let expected = format!("there is no folder {}", library.root().display());
    assert_eq!(error.to_string(), expected);

    fs::write(library.root(), "a file").expect("file");
    let error = library.try_read().expect_err("it is a file");
    let expected = format!("{} is not a folder: use the folder that contains it", library.root().display());
    assert_eq!(error.to_string(), expected);
}

#[test]
fn empty_folder_is_a_library_without_prompts() {
    let library = Library::of(&[("README.md", "# Nothing yet"), ("_draft.md", "later"), ("a.txt", "text")]);
    let mistakes = library.mistakes();
    assert_eq!(mistakes.len(), 1);
    assert!(mistakes[0].starts_with(".:1:1: warning[empty-library]: this folder contains no prompts"), "{mistakes:?}");
}

#[test]
fn unreadable_files_are_reported() {
    use std::os::unix::fs::PermissionsExt as _;
    let library = library();
    library.write("closed.md", "secret");
    library.write("folder/a.md", "secret");
    let close =
        |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    close(&library.path("closed.md"), 0o000);
    close(&library.path("folder"), 0o000);
    // For root every file is readable.
    if fs::read(library.path("closed.md")).is_err() {
        let mistakes = library.mistakes();
        assert_eq!(mistakes.len(), 2, "{mistakes:?}");
        assert!(mistakes[0].starts_with("closed.md:1:1: error[unreadable]: cannot read this file: "), "{mistakes:?}");
        assert!(mistakes[1].starts_with("folder:1:1: error[unreadable]: cannot read this folder: "), "{mistakes:?}");
        assert_eq!(names(&library.read()), ["good"]);
        for mode in [0o000, 0o300] {
            close(&library.root(), mode);
            let error = library.try_read().expect_err("it is closed");
            assert!(error.is_permission_denied(), "{error}");
            close(&library.root(), 0o700);
        }

        close(&library.path("folder"), 0o700);
        let source = library.source();
        assert_eq!(names(&source.read().expect("read").into_definitions()), ["folder-a", "good"]);
        close(&library.path("folder"), 0o000);
        for _ in 0..2 {
            let definitions = source.read().expect("read").into_definitions();
            assert_eq!(names(&definitions), ["good"]);
            assert_eq!(broken(&definitions), ["closed.md", "folder/a.md"], "they may still be there");
        }
    }
    close(&library.path("folder"), 0o700);
}

/// A name that reads as another one, or is another file elsewhere, costs its file alone, in a folder as in a commit.
// req: S-310
#[test]
fn names_that_deceive_are_left_out() {
    let odd = ["a\u{200b}.md", "b\u{202e}dm.md", "aux.md", "git~1/config.md", "x:y.md", " lead.md"];
    let library = library();
    odd.iter().for_each(|path| library.write(path, "hello"));
    library.write("❤️.md", "hello");
    let mistakes = library.mistakes();
    assert_eq!(mistakes.len(), odd.len(), "{mistakes:?}");
    let is_clean = |text: &String| !text.contains(['\u{200b}', '\u{202e}']) && text.contains("left out");
    assert!(mistakes.iter().all(is_clean), "{mistakes:?}");
    assert_eq!(names(&library.read()).len(), 2);
    let tree: promptshelf_source::MemoryTree =
        odd.iter().chain(&["good.md", "❤️.md"]).map(|path| (*path, "hello")).collect();
    let found = promptshelf_source::Files::tree(tree).read().expect("a tree");
    let found = found.into_definitions();
    assert_eq!((names(&found).len(), found.diagnostics.len()), (2, odd.len()), "{:?}", found.diagnostics);
}
