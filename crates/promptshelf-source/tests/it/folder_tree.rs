//! Folders as trees in memory.

use std::{fs, path::Path};

use promptshelf_core::check;
use promptshelf_source::{Files, Source as _, check_tree_path, read_served_tree, read_tree};
use tempfile::TempDir;

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for (path, bytes) in files {
        write(folder.path(), path, bytes);
    }
    folder
}

fn write(folder: &Path, path: &str, bytes: &[u8]) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().expect("a parent folder")).expect("a folder");
    fs::write(path, bytes).expect("a file");
}

fn paths(folder: &Path) -> Vec<String> {
    let tree = read_tree(folder).expect("a tree");
    tree.iter().map(|(path, _)| path.to_owned()).collect()
}

fn error(folder: &Path) -> String {
    read_tree(folder).expect_err("the folder cannot be read").to_string()
}

#[test]
fn tree_has_the_files_of_a_library() {
    let folder = folder(&[
        ("a.md", b"A\n"),
        ("a.golden.md", b"[user] text\nA\n"),
        ("git/commit.md", b"B\n"),
        ("_shared/part.md", b"C\n"),
        ("promptshelf.toml", b"[server]\nname = \"x\"\n"),
        ("image.png", b"\x89PNG\0\xff"),
        ("README.md", b"Read me\n"),
        (".claude/commands/c.md", b"D\n"),
        (".claude/settings.json", b"{}"),
        (".git/config", b"hidden"),
        (".promptshelf-base", b"hidden"),
        (".env", b"hidden"),
        ("a.md~", b"backup"),
        ("node_modules/x.md", b"other"),
    ]);
    let found = paths(folder.path());
    let expected = [
        ".claude/commands/c.md",
        "README.md",
        "_shared/part.md",
        "a.golden.md",
        "a.md",
        "git/commit.md",
        "image.png",
        "promptshelf.toml",
    ];
    assert_eq!(found, expected);
    assert!(found.iter().all(|path| check_tree_path(path).is_ok()));
    let tree = read_tree(folder.path()).expect("a tree");
    assert_eq!(tree.get("image.png").expect("a file").bytes(), b"\x89PNG\0\xff");
    assert!(tree.get("a.md").expect("a file").modified().is_some());
}

#[test]
fn empty_folder_is_an_empty_tree() {
    let folder = TempDir::new().expect("a folder");
    assert!(read_tree(folder.path()).expect("a tree").is_empty());
    assert!(error(&folder.path().join("missing")).contains("there is no folder"));
}

#[test]
fn broken_manifest_is_read_as_a_file() {
    let folder = folder(&[("promptshelf.toml", b"[server\n"), ("a.md", b"A\n")]);
    assert_eq!(paths(folder.path()), ["a.md", "promptshelf.toml"]);
}

// req: S-93
#[cfg(unix)]
#[test]
fn links_that_lead_outside_are_refused() {
    let outside = folder(&[("secret.md", b"secret\n")]);
    let folder = folder(&[("a.md", b"A\n")]);
    std::os::unix::fs::symlink("a.md", folder.path().join("inside.md")).expect("a link");
    assert_eq!(paths(folder.path()), ["a.md", "inside.md"]);
    std::os::unix::fs::symlink(outside.path().join("secret.md"), folder.path().join("file.md")).expect("a link");
    std::os::unix::fs::symlink(outside.path(), folder.path().join("linked")).expect("a link");
    std::os::unix::fs::symlink("nowhere.md", folder.path().join("dangling.md")).expect("a link");
    let error = error(folder.path());
    for path in ["file.md: ", "linked: ", "dangling.md: "] {
        assert!(error.contains(path), "{error}");
    }
    assert!(!error.contains("inside.md") && error.contains("leads out of the library"), "{error}");
}

// req: S-380
#[cfg(target_os = "linux")]
#[test]
fn what_a_folder_does_not_serve_is_left_out_with_the_same_words() {
    use std::os::unix::{ffi::OsStrExt as _, fs::symlink, net::UnixListener};

    let outside = folder(&[("secret.md", b"secret\n")]);
    let folder = folder(&[("a.md", b"A\n"), ("sub/b.md", b"B\n")]);
    symlink(outside.path().join("secret.md"), folder.path().join("file.md")).expect("a link");
    symlink(outside.path(), folder.path().join("sub/linked")).expect("a link");
    symlink("nowhere.md", folder.path().join("dangling.md")).expect("a link");
    symlink("self.md", folder.path().join("self.md")).expect("a link");
    symlink("..", folder.path().join("sub/up")).expect("a link");
    fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"\xff.md")), "D").expect("a file");
    write(folder.path(), "con.md", b"C\n");
    let _socket = UnixListener::bind(folder.path().join("socket.md")).expect("a socket");
    let (tree, left_out) = read_served_tree(folder.path()).expect("a tree");
    assert_eq!(tree.iter().map(|(path, _)| path).collect::<Vec<_>>(), ["a.md", "sub/b.md"]);
    let served = Files::folder(folder.path()).read().expect("a folder");
    let served = check(served.into_definitions(), None).diagnostics;
    let served: Vec<String> =
        crate::library::lines(&served).into_iter().filter(|line| !line.contains("missing-description")).collect();
    let left_out = crate::library::lines(&left_out);
    assert_eq!(left_out.len(), 8, "{left_out:?}");
    assert_eq!(left_out, served);
    // A limit is another matter: what is served depends on it.
    write(folder.path(), "promptshelf.toml", b"[limits]\nfiles = 1\n");
    assert!(read_served_tree(folder.path()).expect_err("a limit").to_string().contains("more than 1 files"));
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_portable_are_refused() {
    use std::os::unix::ffi::OsStrExt as _;

    let folder = folder(&[("a.md", b"A\n"), ("con.md", b"B\n"), ("a:b.md", b"C\n")]);
    fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"\xff.md")), "D").expect("a file");
    let error = error(folder.path());
    for text in ["con.md: ", "a:b.md: ", "not UTF-8"] {
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn limits_of_the_manifest_apply() {
    let limit = |line: &str| format!("[limits]\n{line}\n");
    let folder = folder(&[("a.md", &[b'a'; 2000]), ("b.md", b"B\n")]);
    write(folder.path(), "promptshelf.toml", limit("resource-bytes = 1000\nfile-bytes = 1500").as_bytes());
    assert!(error(folder.path()).contains("a.md: this file has 2000 bytes; the limit is 1500"));
    write(folder.path(), "promptshelf.toml", limit("library-bytes = 1000").as_bytes());
    assert!(error(folder.path()).contains("library-bytes"));
    write(folder.path(), "promptshelf.toml", limit("files = 1").as_bytes());
    assert!(error(folder.path()).contains("more than 1 files"));
}

#[test]
fn folder_whose_name_decides_the_format_is_refused() {
    let folder = folder(&[(".claude/commands/c.md", b"D\n")]);
    assert!(error(&folder.path().join(".claude/commands")).contains("use the folder above it"));
}
