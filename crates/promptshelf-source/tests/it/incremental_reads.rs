//! Incremental reads: unchanged files are not read, or at least not parsed, again.

use std::{
    fs,
    sync::Arc,
    time::{Duration, SystemTime},
};

use promptshelf_core::{Definitions, SourceText};
use promptshelf_source::{Fingerprint, ReloadSignal, Source};

use crate::library::{Library, broken, lines};

fn source_of<'d>(definitions: &'d Definitions, name: &str) -> &'d Arc<SourceText> {
    let prompt = definitions.prompts.iter().find(|prompt| prompt.name == name);
    &prompt.expect("the prompt is there").origin.source
}

fn read(source: &impl Source) -> (Fingerprint, Definitions) {
    let snapshot = source.read().expect("read");
    (snapshot.fingerprint(), snapshot.into_definitions())
}

#[test]
fn unchanged_files_are_shared_between_reads() {
    let library = Library::of(&[("a.md", "one"), ("b.md", "two"), ("c.txt", "three")]);
    let source = library.source();
    let (_, first) = read(&source);
    library.write("b.md", "another");
    let (_, second) = read(&source);
    assert!(Arc::ptr_eq(source_of(&first, "a"), source_of(&second, "a")));
    assert!(Arc::ptr_eq(&first.files["c.txt"], &second.files["c.txt"]));
    assert!(Arc::ptr_eq(&first.partials["c.txt"], &second.partials["c.txt"]));
    assert!(!Arc::ptr_eq(source_of(&first, "b"), source_of(&second, "b")));
    assert_eq!(&*source_of(&second, "b").text, "another");
}

#[test]
fn change_within_one_clock_tick_is_noticed() {
    let library = Library::of(&[("a.md", "one")]);
    let file = library.path("a.md");
    let source = library.source();
    let (mut before, _) = read(&source);
    let modified = fs::metadata(&file).expect("metadata").modified().expect("a time");
    for text in ["two", "six", "ten"] {
        // The same length, the same file, and the same time.
        library.write("a.md", text);
        fs::File::options().write(true).open(&file).expect("open").set_modified(modified).expect("set");
        let (now, definitions) = read(&source);
        assert_ne!(now, before);
        assert_eq!(&*source_of(&definitions, "a").text, text);
        before = now;
    }
}

#[test]
fn touched_file_keeps_its_text() {
    let library = Library::of(&[("a.txt", "one"), ("p.md", "hello")]);
    let source = library.source();
    let (_, first) = read(&source);
    let later = SystemTime::now() + Duration::from_secs(100);
    fs::File::options().write(true).open(library.path("a.txt")).expect("open").set_modified(later).expect("set");
    let (_, second) = read(&source);
    assert!(second.files["a.txt"].modified > first.files["a.txt"].modified);
    assert_eq!(second.files["a.txt"].body, first.files["a.txt"].body);
}

#[test]
fn manifest_change_applies_to_unchanged_files() {
    let library = Library::of(&[("a.md", "one"), ("b.md", "two")]);
    let source = library.source();
    let (_, first) = read(&source);
    assert_eq!(first.prompts.len(), 2);
    library.write("promptshelf.toml", "[[resources]]\nuri = \"a://b\"\nfile = \"b.md\"\n[limits]\nfile-bytes = 3");
    let (_, second) = read(&source);
    assert_eq!(second.prompts.len(), 1);
    assert!(second.files.contains_key("b.md"));
    library.write("promptshelf.toml", "[limits]\nfile-bytes = 2");
    let (_, third) = read(&source);
    assert_eq!(broken(&third), ["a.md", "b.md"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn read_after_an_edit_equals_that_of_a_new_source() {
    let prompt = |keys: &str, text: &str| format!("---\ndescription: d\n{keys}---\n{text}");
    let library = Library::of(&[("a.md", &prompt("", "one")), ("b.md", &prompt("", "two")), ("c.txt", "three")]);
    let source = library.source().poll_interval(None);
    let signal = ReloadSignal::new();
    let _following = source.watch(signal.clone());
    let (mut before, _) = read(&source);
    for (path, keys, text) in [
        ("a.md", "", "four"),
        ("b.md", "title: B\n", "five"),
        ("c.txt", "", "six"),
        ("a.md", "name: other\n", "seven"),
        ("a.md", "icons: c.txt\n", "eight"),
        ("a.md", "nonsense\n", "nine"),
        ("a.md", "", "ten"),
        ("a.md", "", "eleven"),
        ("new.md", "", "twelve"),
        ("README.markdown", "", "thirteen"),
        ("promptshelf.toml", "", "[limits]\nfile-bytes = 60\n"),
        ("b.md", "", &"long ".repeat(20)),
        ("b.md", "", "short"),
    ] {
        library.write(path, if path.ends_with(".toml") { text.to_owned() } else { prompt(keys, text) });
        let (now, whole) = loop {
            signal.requested().await;
            let (now, whole) = read(&source);
            if now != before {
                break (now, whole);
            }
        };
        let (_, anew) = read(&library.source());
        let shown = |definitions: &Definitions| {
            let prompts = definitions.prompts.iter().map(|it| format!("{} {}", it.name, it.origin.source.text));
            (prompts.collect::<Vec<_>>(), lines(&definitions.diagnostics), broken(definitions).join(" "))
        };
        assert_eq!(shown(&whole), shown(&anew), "{path} {text}");
        assert_eq!(read(&source).0, now, "{path} {text}");
        before = now;
    }
}
