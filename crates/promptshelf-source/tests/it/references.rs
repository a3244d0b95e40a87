//! References from one file to others.

use promptshelf_core::{CompletionSource, MimeType, RawArguments, ResourceBody};
use promptshelf_source::Source;

use crate::library::{Library, broken};

// req: B6
#[test]
fn icon_file_is_embedded() {
    let library = Library::of(&[
        ("p.md", "---\nicons: [a.svg, b.svg, _i/c.txt]\n---\nHello"),
        ("a.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>"),
        ("_i/c.txt", "text"),
    ]);
    assert_eq!(
        library.mistakes(),
        [
            "p.md:2:16: warning[missing-file]: the library has no file `b.svg` for this icon (did you mean `a.svg`?)",
            "p.md:2:23: warning[invalid-value]: expected an image for an icon, but `_i/c.txt` is text/plain",
        ]
    );
    let icons = library.read().prompts.remove(0).icons.clone();
    assert_eq!(icons.len(), 1);
    assert!(icons[0].src.starts_with("data:image/svg+xml;base64,PHN2Zy"));
    assert_eq!(icons[0].mime_type.as_ref().map(MimeType::as_str), Some("image/svg+xml"));
}

#[test]
fn path_completion_is_resolved_on_read() {
    let library = Library::of(&[
        ("promptshelf.toml", "[roots]\nproject = \"../project\""),
        (
            "p.md",
            "---\narguments:\n- {name: a, complete: {files: 'src/**/*.rs', root: project}}\n- {name: b, complete: {files: '*.txt'}}\n---\nHello",
        ),
        ("x.txt", ""),
        (
            "q.md",
            "---\narguments:\n- {name: a, complete: {files: '*.rs', root: projct}}\n- {name: b, complete: {files: '[z'}}\n- {name: c, complete: {files: 'no*'}}\n---\nHello",
        ),
    ]);
    for path in ["src/main.rs", "src/deep/a.rs", "src/a.txt", "target/src/b.rs", "src/.hidden/c.rs"] {
        let path = library.outside().join("project").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).expect("folders");
        std::fs::write(path, "").expect("file");
    }
    let definitions = library.read();
    assert_eq!(broken(&definitions), ["q.md"]);
    let paths = |index: usize| match &definitions.prompts[0].arguments[index].completion {
        Some(CompletionSource::Paths(paths) | CompletionSource::RootPaths { paths, .. }) => paths.to_vec(),
        other => panic!("{other:?}"),
    };
    assert_eq!(paths(0), ["src/deep/a.rs", "src/main.rs"]);
    assert_eq!(paths(1), ["x.txt"]);
    let mistakes = library.mistakes();
    assert_eq!(mistakes.len(), 3, "{mistakes:?}");
    assert!(mistakes[0].starts_with("q.md:3:23: error[invalid-completion]: unknown root `projct`"), "{mistakes:?}");
    assert!(
        mistakes[1].starts_with("q.md:4:23: error[invalid-completion]: invalid path pattern `[z`: "),
        "{mistakes:?}"
    );
    assert!(mistakes[2].starts_with("q.md:5:23: warning[invalid-completion]: no file matches `no*`"), "{mistakes:?}");
}

#[test]
fn byte_order_mark_of_a_file_is_not_part_of_its_text() {
    let library = Library::of(&[
        ("_inc.md", "\u{feff}Be kind.\r\n"),
        ("langs.txt", "\u{feff}ada\r\nc\r\n"),
        ("note.txt", "\u{feff}note\n"),
        (
            "p.md",
            "\u{feff}---\ndescription: d\narguments: [{name: l, description: x, complete: {file: langs.txt}}]\n---\nHi {{ l }}. {% include \"_inc.md\" %} End\n{{ attach(\"note.txt\") }}\n",
        ),
    ]);
    let checked = promptshelf_core::check(library.read(), None);
    let catalog = checked.catalog;
    let prompt = catalog.find("p").expect("the prompt is valid");
    let given = RawArguments::from_iter([("l", "\u{feff}x")]);
    let parts =
        prompt.render(catalog.render_context(), &prompt.bind(&given, 100).expect("a value")).expect("it renders");
    let shown = format!("{parts:?}");
    assert!(shown.contains("Hi x. Be kind.") && shown.contains("note"), "{shown}");
    assert!(!shown.contains('\u{feff}') && !shown.contains("\\u{feff}"), "{shown}");
    let file = catalog.file("langs.txt").expect("a file");
    assert!(matches!(&file.body, ResourceBody::Text(text) if text.starts_with("ada")));
    // An unchanged file is not read as a changed one.
    let source = library.source();
    let first = source.read().expect("readable");
    assert_eq!(source.read().expect("readable").fingerprint(), first.fingerprint());
}
