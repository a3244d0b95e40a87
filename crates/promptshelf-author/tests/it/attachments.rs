//! Attachments that a library leaves out.

use promptshelf_author::review;
use promptshelf_core::check;
use promptshelf_source::{Files, MemoryTree, Source as _};

/// A file over `file-bytes` is named, and a choice that needs it is an error before a caller finds it.
// req: S-435
#[test]
fn choice_whose_attachment_is_left_out_is_an_error() {
    let text = "---\ndescription: Shows\narguments:\n  - name: kind\n    description: The kind\n    required: true\n    \
                enum: [small, large]\n---\n{{ attach(\"att/\" ~ kind ~ \".txt\") }}\n";
    let settings =
        "[limits]\nfile-bytes = 1000\n[[resources]]\nuri = \"notes://{+path}\"\nname = \"Notes\"\nfiles = \"att/*\"\n";
    let large = "x".repeat(2000);
    let files = [("promptshelf.toml", settings), ("show.md", text), ("att/small.txt", "s"), ("att/large.txt", &large)];
    let tree: MemoryTree = files.into_iter().collect();
    let checked = check(Files::tree(tree).read().expect("a library").into_definitions(), None);
    let errors: Vec<String> = review(&checked.catalog, &checked.diagnostics)
        .iter()
        .filter(|found| found.is_error())
        .map(ToString::to_string)
        .collect();
    assert!(errors.len() == 1 && errors[0].contains("with kind = `large`"), "{errors:?} {:?}", checked.diagnostics);
    assert!(errors[0].contains("`att/large.txt`: this file has 2000 bytes; the limit is 1000"), "{errors:?}");
}
