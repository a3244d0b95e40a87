//! Limits on reading, and the media types of files.

use promptshelf_core::ResourceBody;

use crate::library::{Library, broken, names};

#[test]
fn large_file_is_left_out() {
    let library = Library::of(&[
        ("promptshelf.toml", "[limits]\nfile-bytes = 10"),
        ("a.md", "short"),
        ("b.md", "longer than ten bytes"),
        ("c.txt", "longer than ten bytes"),
    ]);
    let help = "(make it smaller, or raise `file-bytes` under [limits] in promptshelf.toml)";
    assert_eq!(
        library.mistakes(),
        [
            format!("b.md:1:1: error[too-large]: this file has 21 bytes; the limit is 10 {help}"),
            format!("c.txt:1:1: warning[too-large]: this file has 21 bytes; the limit is 10 {help}"),
        ]
    );
    let definitions = library.read();
    assert_eq!(names(&definitions), ["a"]);
    assert_eq!(broken(&definitions), ["b.md"]);
}

// req: S-38
#[test]
fn large_library_is_read_in_part() {
    let library = Library::of(&[
        ("promptshelf.toml", "[limits]\nlibrary-bytes = 9"),
        ("a.md", "12345"),
        ("b.md", "12345"),
        ("c.md", "1"),
    ]);
    assert_eq!(
        library.mistakes(),
        [
            ".:1:1: error[too-many]: the library has more than 9 bytes; 2 files are left out (raise `library-bytes` under [limits] in promptshelf.toml)"
        ]
    );
    library.write("promptshelf.toml", "[limits]\nfiles = 2");
    assert_eq!(
        library.mistakes(),
        [
            ".:1:1: error[too-many]: the library has more than 2 files; some are left out (raise `files` under [limits] in promptshelf.toml)"
        ]
    );
    assert_eq!(library.read().prompts.len(), 2);
}

#[test]
fn media_type_is_derived_and_mismatch_is_reported() {
    let library = Library::of(&[
        ("a.md", "hello"),
        ("README.md", "# read me"),
        ("_s/p.j2", "part"),
        ("x.json", "{}"),
        ("Makefile", "all:"),
    ]);
    library.write("wrong.png", [0xFF, 0xD8, 0xFF, 0xE0, 0, 0, b'J', b'F', b'I', b'F']);
    library.write("right.png", [0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A]);
    library.write("picture.txt", [0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A]);
    library.write("pointer.png", "version https://git-lfs.github.com/spec/v1\n");
    assert_eq!(
        library.mistakes(),
        [
            "picture.txt:1:1: warning[content-mismatch]: the file name implies text/plain, but the content is image/png (rename the file, or save it in the other format)",
            "pointer.png:1:1: warning[invalid-media]: the file name implies image/png, but the content is text/plain (rename the file, or save it in the other format)",
            "wrong.png:1:1: warning[content-mismatch]: the file name implies image/png, but the content is image/jpeg (rename the file, or save it in the other format)"
        ]
    );
    let definitions = library.read();
    let files: Vec<_> = definitions
        .files
        .values()
        .map(|file| (&*file.path, file.mime_type.as_str(), matches!(file.body, ResourceBody::Text(_))))
        .collect();
    assert_eq!(
        files,
        [
            ("Makefile", "text/plain", true),
            ("README.md", "text/markdown", true),
            ("_s/p.j2", "text/plain", true),
            ("picture.txt", "image/png", false),
            ("pointer.png", "text/plain", true),
            ("right.png", "image/png", false),
            ("wrong.png", "image/jpeg", false),
            ("x.json", "application/json", true),
        ]
    );
    let partials: Vec<_> = definitions.partials.keys().collect();
    assert_eq!(partials, ["Makefile", "README.md", "_s/p.j2", "pointer.png", "x.json"]);
    assert!(definitions.files["x.json"].modified.is_some());
}

#[test]
fn hidden_and_temporary_files_are_ignored() {
    let paths =
        [".a.md", ".git/a.md", "node_modules/a.md", "target/a.md", "a.md~", "#a.md#", "x/.b/a.md", "a.tmp", "4913"];
    let library = Library::of(&[("a.md", "hello")]);
    for path in paths {
        library.write(path, "hidden");
    }
    let definitions = library.read();
    assert_eq!(names(&definitions), ["a"]);
    assert!(definitions.files.is_empty());
    assert_eq!(library.mistakes(), [""; 0]);
}

// req: X28
#[test]
fn prompts_with_equal_names_are_both_returned() {
    let library = Library::of(&[("a/b.md", "one"), ("a-b.md", "two"), ("c.md", "---\nname: a-b\n---\nthree")]);
    assert_eq!(names(&library.read()), ["a-b", "a-b", "a-b"]);
    let loader = promptshelf_source::Loader::open(vec![Box::new(library.source())]).expect("loads");
    assert!(loader.handle().current().find("a-b").is_none());
    let duplicates =
        loader.diagnostics().iter().filter(|found| found.code == promptshelf_core::Code::DuplicateName).count();
    assert_eq!(duplicates, 3);
}

/// Outside of a server's pool too: a command, a load of a published revision.
// req: S-278
#[test]
fn suggestions_while_reading_are_bounded() {
    let arguments: String = (0..1_000).map(|n| format!("  - {{ name: argument_{n} }}\n")).collect();
    let tests: String = (0..100).map(|n| format!("  - {{ arguments: {{ argumant_{n}: x }} }}\n")).collect();
    let text = format!("---\ndescription: Many\narguments:\n{arguments}tests:\n{tests}---\nHello\n");
    let library = Library::of(&[("many.md", &text)]);
    let found = library.mistakes();
    let mistakes: Vec<&String> = found.iter().filter(|found| found.contains("the prompt has no argument")).collect();
    let suggested = mistakes.iter().filter(|found| found.contains("did you mean")).count();
    assert_eq!(mistakes.len(), 50, "of one file");
    assert!((1..=20).contains(&suggested), "{suggested}");
}
