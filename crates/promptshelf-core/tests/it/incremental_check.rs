//! The check of a few edited prompts: the same result as a full check, or none.

use std::sync::Arc;

use promptshelf_core::{
    Access, ArgumentDefinition, Body, CatalogHandle, Change, Checked, Definitions, LibraryFile, MimeType, Origin,
    PromptDefinition, ResourceBody, SourceText, check, check_edited,
};

fn prompt(path: &str, text: &str) -> PromptDefinition {
    let mut prompt = PromptDefinition::template(path.trim_end_matches(".md"), "").description("A prompt");
    prompt.origin = Origin::new(SourceText::new(path, text));
    prompt.body = Body::Template { range: 0..text.len() };
    prompt
}

/// Many prompts, so that the list has several chunks, and some that depend on others.
fn library() -> Definitions {
    let mut prompts: Vec<PromptDefinition> =
        (0..600).map(|at| prompt(&format!("p{at:03}.md"), "Write a poem.")).collect();
    prompts.push(prompt("inner.md", "I am within."));
    prompts.push(prompt("outer.md", "{{ prompt('inner') }}"));
    prompts.push(prompt("partly.md", "{% include '_p' %}"));
    prompts.push(prompt("plain.md", "Plain.").access(Access::default()));
    let mut silent = prompt("silent.md", "No description.");
    silent.description = None;
    prompts.push(silent);
    prompts.push(prompt("broken.md", "{{ undeclared }}"));
    let body = ResourceBody::Text("F".into());
    let file = LibraryFile { path: "f.txt".into(), mime_type: MimeType::plain_text(), body, modified: None };
    Definitions {
        partials: [("_p".to_owned(), SourceText::new("_p", "Partly."))].into(),
        files: [("f.txt".to_owned(), Arc::new(file))].into(),
        ..Definitions::from_iter(prompts)
    }
}

fn shared(prompts: &[PromptDefinition]) -> Vec<Arc<PromptDefinition>> {
    prompts.iter().cloned().map(Arc::new).collect()
}

/// Checks the edits alone and everything, and returns the first result if it equals the second.
fn both(edits: &[PromptDefinition]) -> Option<Change> {
    let mut definitions = library();
    let before = check(definitions.clone(), None);
    for edit in edits {
        let place = definitions.prompts.iter().position(|it| it.name == edit.name).expect("it is there");
        definitions.prompts[place] = edit.clone().into();
    }
    let all = check(definitions, Some(&before.catalog));
    let alone = check_edited(&shared(edits), &before.catalog, &before.diagnostics)?;
    assert_eq!(alone.diagnostics, all.diagnostics);
    let shown = |checked: &Checked| -> Vec<String> {
        let prompts = checked.catalog.prompts().iter();
        prompts.map(|it| format!("{} {:?} {}", it.name(), it.description(), it.source().text)).collect()
    };
    assert_eq!(shown(&alone), shown(&all));
    let change = |checked: Checked| CatalogHandle::new(before.catalog.clone()).replace(checked.catalog);
    let (alone, all) = (change(alone), change(all));
    assert_eq!(alone, all);
    Some(alone)
}

#[test]
fn independent_edit_checks_one_prompt() {
    let listed = |change: Option<Change>| change.map(|change| change.prompts);
    let text = |path: &str, text: &str| both(&[prompt(path, text)]);
    assert_eq!(listed(text("p000.md", "Write two poems.")), Some(false));
    assert_eq!(listed(text("p255.md", "{{ attach('f.txt') }}")), Some(false));
    assert_eq!(listed(text("p256.md", "{{ prompt('inner') }} {% include '_p' %}")), Some(false));
    assert_eq!(listed(both(&[prompt("p599.md", "Poem.").description("Another one")])), Some(true));
    let with = prompt("p300.md", "About {{ what }}.").argument(ArgumentDefinition::new("what"));
    assert_eq!(listed(both(&[with])), Some(true));
    assert_eq!(listed(text("outer.md", "Alone.")), Some(false));
    assert_eq!(listed(text("partly.md", "Whole.")), Some(false));
    assert_eq!(listed(text("silent.md", "It has a description now.")), Some(true), "its warning is gone");
    let mut silent = prompt("p001.md", "Silent.");
    silent.description = None;
    assert_eq!(listed(both(&[silent])), Some(true), "its warning is new");
    let several: Vec<PromptDefinition> = (0..40).map(|at| prompt(&format!("p{:03}.md", at * 13), "Edited.")).collect();
    assert_eq!(listed(both(&several)), Some(false));
}

#[test]
fn edit_with_dependents_needs_full_check() {
    let no = |edits: &[PromptDefinition]| assert!(both(edits).is_none(), "{:?}", edits[0].name);
    no(&[prompt("inner.md", "Somebody brings it in.")]);
    no(&[prompt("p000.md", "{{ undeclared }}")]);
    no(&[prompt("p000.md", "{{ prompt('p000') }}")]);
    no(&[prompt("p000.md", "{{ prompt('broken') }}")]);
    no(&[prompt("p000.md", "{{ attach('gone.txt') }}")]);
    no(&[prompt("broken.md", "It was broken, and is not served yet.")]);
    no(&[prompt("p000.md", "Closed.").access(Access { roles: vec!["a".into()], ..Access::default() })]);
    no(&[prompt("plain.md", "Open.")]);
    let mut tagged = prompt("p000.md", "A rule may be about the tag.");
    tagged.tags = vec!["secret".into()];
    no(&[tagged]);
    let mut moved = prompt("p000.md", "It comes from another file.");
    moved.origin = Origin::new(SourceText::new("elsewhere.md", "It comes from another file."));
    no(&[moved]);
    no(&[prompt("p000.md", "One."), prompt("p000.md", "Two.")]);
    let most: Vec<PromptDefinition> = (0..300).map(|at| prompt(&format!("p{at:03}.md"), "Edited.")).collect();
    no(&most);
}

#[test]
fn newly_called_prompt_is_tracked() {
    let before = check(library(), None);
    let calls =
        check_edited(&shared(&[prompt("p000.md", "{{ prompt('p001') }}")]), &before.catalog, &before.diagnostics);
    let calls = calls.expect("it concerns nobody else");
    let inner = shared(&[prompt("p001.md", "{{ prompt('p000') }}")]);
    assert!(check_edited(&inner, &before.catalog, &before.diagnostics).is_some());
    assert!(check_edited(&inner, &calls.catalog, &calls.diagnostics).is_none(), "they would bring in each other");
}
