//! Arbitrary text in an editor: findings, completions and explanations at any position, and renamed references. The first
//! three bytes choose the file and the position.

#![no_main]

use std::{cell::RefCell, collections::BTreeMap};

use libfuzzer_sys::fuzz_target;
use promptshelf_author::{Analyzer, rename_file_references, rename_prompt_references};
use promptshelf_source::MemoryTree;

const PATHS: [&str; 6] =
    ["a.md", "promptshelf.toml", "_part/p.md", ".gemini/commands/g.toml", "s/SKILL.md", "t.prompt.md"];

thread_local! {
    static ANALYZER: RefCell<Analyzer> = RefCell::new(Analyzer::of_tree(MemoryTree::from_iter([
        ("a.md", "---\ndescription: A\n---\nA.\n"),
        ("b.md", "---\ndescription: B\narguments: [{name: x, choices: [one, two]}]\n---\n{{ x }}\n"),
        ("_part/p.md", "Part.\n"),
        ("promptshelf.toml", "[server]\nname = 'x'\n"),
    ])));
}

fuzz_target!(|bytes: &[u8]| {
    let [which, line, character, text @ ..] = bytes else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let path = PATHS[usize::from(*which) % PATHS.len()];
    ANALYZER.with_borrow_mut(|analyzer| {
        // A manifest with mistakes is one of the findings.
        let Ok(analysis) = analyzer.analyze(&BTreeMap::from([(path.to_owned(), text.to_owned())])) else { return };
        analysis.diagnostics();
        analysis.completions(path, text, u32::from(*line), u32::from(*character));
        analysis.hover(path, text, u32::from(*line), u32::from(*character));
    });
    let renamed = rename_file_references(path, text, "_part/p.md", "_part/q.md");
    assert!(renamed.is_none_or(|renamed| renamed != text), "a rename that changes nothing is none");
    rename_prompt_references(path, text, "b", "c");
});
