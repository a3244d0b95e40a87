//! Incremental reads: unchanged files are not read, or at least not parsed, again.

use std::{
    fs,
    sync::Arc,
    time::{Duration, SystemTime},
};

use promptshelf_core::{Definitions, SourceText};
use promptshelf_source::{Directory, Fingerprint, ReloadSignal, Snapshot, Source};

use crate::library::{Library, broken, lines};

fn source_of<'d>(definitions: &'d Definitions, name: &str) -> &'d Arc<SourceText> {
    let prompt = definitions.prompts.iter().find(|prompt| prompt.name == name);
    &prompt.expect("the prompt is there").origin.source
}

fn read(source: &impl Source, known: Option<Fingerprint>) -> Option<(Fingerprint, Definitions)> {
    source.read(known).expect("read").map(|reading| (reading.fingerprint(), reading.into_definitions()))
}

#[test]
fn unchanged_files_are_shared_between_reads() {
    let library = Library::of(&[("a.md", "one"), ("b.md", "two"), ("c.txt", "three")]);
    let source = library.source();
    let (revision, first) = read(&source, None).expect("read");
    library.write("b.md", "another");
    let (_, second) = read(&source, Some(revision)).expect("read");
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
    let (mut revision, _) = read(&source, None).expect("read");
    let modified = fs::metadata(&file).expect("metadata").modified().expect("a time");
    for text in ["two", "six", "ten"] {
        // The same length, the same file, and the same time.
        library.write("a.md", text);
        fs::File::options().write(true).open(&file).expect("open").set_modified(modified).expect("set");
        let (next, definitions) = read(&source, Some(revision)).expect("it has changed");
        assert_eq!(&*source_of(&definitions, "a").text, text);
        revision = next;
    }
}

#[test]
fn touched_file_keeps_its_text() {
    let library = Library::of(&[("a.txt", "one"), ("p.md", "hello")]);
    let source = library.source();
    let (revision, first) = read(&source, None).expect("read");
    let later = SystemTime::now() + Duration::from_secs(100);
    fs::File::options().write(true).open(library.path("a.txt")).expect("open").set_modified(later).expect("set");
    let (_, second) = read(&source, Some(revision)).expect("it has changed");
    assert!(second.files["a.txt"].modified > first.files["a.txt"].modified);
    assert_eq!(second.files["a.txt"].body, first.files["a.txt"].body);
}

#[test]
fn manifest_change_applies_to_unchanged_files() {
    let library = Library::of(&[("a.md", "one"), ("b.md", "two")]);
    let source = library.source();
    let (revision, first) = read(&source, None).expect("read");
    assert_eq!(first.prompts.len(), 2);
    library.write("promptshelf.toml", "[[resources]]\nuri = \"a://b\"\nfile = \"b.md\"\n[limits]\nfile-bytes = 3");
    let (revision, second) = read(&source, Some(revision)).expect("it has changed");
    assert_eq!(second.prompts.len(), 1);
    assert!(second.files.contains_key("b.md"));
    library.write("promptshelf.toml", "[limits]\nfile-bytes = 2");
    let (_, third) = read(&source, Some(revision)).expect("it has changed");
    assert_eq!(broken(&third), ["a.md", "b.md"]);
}

/// Writes a file until the change is noticed, and returns the next snapshot.
async fn edit(
    library: &Library,
    path: &str,
    text: &str,
    source: &Directory,
    signal: &ReloadSignal,
    known: Fingerprint,
) -> Snapshot {
    library.write(path, text);
    loop {
        signal.requested().await;
        if let Some(reading) = source.read(Some(known)).expect("read") {
            return reading;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn read_of_one_file_equals_full_read() {
    let prompt = |keys: &str, text: &str| format!("---\ndescription: d\n{keys}---\n{text}");
    let library = Library::of(&[("a.md", &prompt("", "one")), ("b.md", &prompt("", "two")), ("c.txt", "three")]);
    let source = library.source().poll_interval(None);
    let signal = ReloadSignal::new();
    let _following = source.watch(signal.clone());
    let (mut known, _) = read(&source, None).expect("read");
    for (path, keys, text) in [
        ("a.md", "", "four"),
        ("b.md", "title: B\n", "five"),
        ("c.txt", "", "six"),
        ("a.md", "name: other\n", "seven"),
        ("a.md", "icons: c.txt\n", "eight"),
        ("a.md", "nonsense\n", "nine"),
        ("a.md", "", "ten"),
        ("a.md", "", "eleven"),
    ] {
        let reading = edit(&library, path, &prompt(keys, text), &source, &signal, known).await;
        known = reading.fingerprint();
        let whole = reading.into_definitions();
        let (_, anew) = read(&library.source(), None).expect("read");
        let shown = |definitions: &Definitions| {
            let prompts = definitions.prompts.iter().map(|it| format!("{} {}", it.name, it.origin.source.text));
            (prompts.collect::<Vec<_>>(), lines(&definitions.diagnostics), broken(definitions).join(" "))
        };
        assert_eq!(shown(&whole), shown(&anew), "{path} {text}");
        assert!(read(&source, Some(known)).is_none(), "{path} {text} is known by now");
    }
}
