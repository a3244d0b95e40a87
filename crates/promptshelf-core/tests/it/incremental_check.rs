//! A check that takes unchanged prompts from the previous catalog: the same result as one without.

use std::sync::Arc;

use promptshelf_core::{
    Access, ArgumentDefinition, Body, CatalogHandle, Change, Checked, Definitions, LibraryFile, MimeType, Origin,
    PromptDefinition, ResourceBody, SourceText, check,
};

fn prompt(path: &str, text: &str) -> PromptDefinition {
    let mut prompt = PromptDefinition::template(path.trim_end_matches(".md"), "").description("A prompt");
    prompt.origin = Origin::new(SourceText::new(path, text));
    prompt.body = Body::Template { range: 0..text.len() };
    prompt
}

fn library() -> Definitions {
    let mut prompts: Vec<PromptDefinition> =
        (0..60).map(|at| prompt(&format!("p{at:03}.md"), "Write a poem.")).collect();
    prompts.push(prompt("inner.md", "I am within."));
    prompts.push(prompt("outer.md", "{{ prompt('inner') }}"));
    prompts.push(prompt("partly.md", "{% include '_p' %}"));
    prompts.push(prompt("plain.md", "Plain.").access(Access::default()));
    let mut silent = prompt("silent.md", "No description.");
    silent.description = None;
    prompts.push(silent);
    prompts.push(prompt("broken.md", "{{ undeclared }}"));
    let body = ResourceBody::Text("F".into());
    let file =
        LibraryFile { path: "f.txt".into(), mime_type: MimeType::plain_text(), body, has_mark: false, modified: None };
    Definitions {
        partials: [("_p".to_owned(), SourceText::new("_p", "Partly."))].into(),
        files: [("f.txt".to_owned(), Arc::new(file))].into(),
        ..Definitions::from_iter(prompts)
    }
}

/// Applies edits, and returns the change of the catalog and how many prompts were taken from the previous one.
fn edited(edits: &[PromptDefinition]) -> (Change, usize) {
    let mut definitions = library();
    let before = check(definitions.clone(), None);
    for edit in edits {
        let place = definitions.prompts.iter().position(|it| it.name == edit.name).expect("it is there");
        definitions.prompts[place] = edit.clone().into();
    }
    let alone = check(definitions.clone(), Some(&before.catalog));
    let all = check(definitions, None);
    assert_eq!(alone.diagnostics, all.diagnostics);
    let shown = |checked: &Checked| -> Vec<String> {
        let prompts = checked.catalog.prompts().iter();
        prompts.map(|it| format!("{} {:?} {}", it.name(), it.description(), it.source().text)).collect()
    };
    assert_eq!(shown(&alone), shown(&all));
    let taken =
        alone.catalog.prompts().iter().filter(|prompt| {
            before.catalog.find(prompt.name().as_str()).is_some_and(|before| Arc::ptr_eq(before, prompt))
        });
    let taken = taken.count();
    let change = |checked: Checked| CatalogHandle::new(before.catalog.clone()).replace(checked.catalog);
    let (alone, all) = (change(alone), change(all));
    assert_eq!(alone, all);
    (alone, taken)
}

#[test]
fn edit_checks_no_other_prompt() {
    let all = library().prompts.len() - 1;
    let listed = |edits: &[PromptDefinition], others: usize| {
        let (change, taken) = edited(edits);
        assert_eq!(taken, all - others, "{:?}", edits[0].name);
        change.prompts
    };
    assert!(!listed(&[prompt("p000.md", "Write two poems.")], 1));
    assert!(!listed(&[prompt("p025.md", "{{ attach('f.txt') }}")], 1));
    assert!(!listed(&[prompt("p026.md", "{{ prompt('inner') }} {% include '_p' %}")], 1));
    assert!(listed(&[prompt("p059.md", "Poem.").description("Another one")], 1));
    let with = prompt("p030.md", "About {{ what }}.").argument(ArgumentDefinition::new("what"));
    assert!(listed(&[with], 1));
    assert!(!listed(&[prompt("inner.md", "Somebody calls it.")], 2), "the prompt that calls it is checked, too");
    let several: Vec<PromptDefinition> = (0..40).map(|at| prompt(&format!("p{at:03}.md"), "Edited.")).collect();
    assert!(!listed(&several, 40));
    let mut silent = prompt("p001.md", "Silent.");
    silent.description = None;
    assert!(listed(&[silent], 1), "its warning is new");
    assert!(listed(&[prompt("p000.md", "Closed.").access(Access { roles: vec!["a".into()], ..Access::default() })], 1));
}
