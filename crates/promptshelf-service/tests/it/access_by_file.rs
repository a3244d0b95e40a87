//! Access belongs to the file, whatever it is called: attachments, links and completion.

use std::sync::Arc;

use promptshelf_core::{
    AccessRule, ArgumentDefinition, CompletionSource, ContentBlock, Definitions, LibraryFile, MimeType, Origin,
    PromptDefinition, RawArguments, ResourceBody, SourceText, Variables,
};
use promptshelf_service::{Caller, Reference, Service};

use crate::library::{demand, known, rule};

fn file(path: &str, text: &str) -> (String, Arc<LibraryFile>) {
    let body = ResourceBody::Text(text.into());
    let file =
        LibraryFile { path: path.to_owned(), mime_type: MimeType::plain_text(), body, has_mark: false, modified: None };
    (path.to_owned(), Arc::new(file))
}

fn prompt(name: &str, text: &str) -> PromptDefinition {
    PromptDefinition::template(name, text).argument(ArgumentDefinition::new("which"))
}

/// A library with an open and a closed file, which the prompt `all` refers to.
fn library() -> Definitions {
    let prompts = [
        prompt("all", "{% if which %}{{ attach('open.txt') }}{{ attach('closed/plan.txt') }}{% endif %}{{ which }}"),
        prompt("attaching", "{{ attach(which ~ '.txt') }}"),
        prompt("linking", "{{ link(which ~ '.txt') }}"),
        prompt("literal", "{{ link('closed/plan.txt') }}{{ which }}"),
    ];
    Definitions {
        files: [file("open.txt", "OPEN"), file("closed/plan.txt", "SECRET"), file("unused.txt", "UNUSED")].into(),
        access: vec![AccessRule { folders: vec!["closed".into()], ..rule(demand(&[], &["editor"], &[])) }],
        ..Definitions::from_iter(prompts)
    }
}

async fn get(service: &Service, caller: &Caller, prompt: &str, which: &str) -> String {
    let arguments = RawArguments::from_iter([("which", which)]);
    match service.get(caller, prompt, &arguments).await {
        Ok(mut answer) => {
            answer.resolve_links(1_000).await;
            format!("{:?}", answer.value().messages)
        }
        Err(rejection) => rejection.to_string(),
    }
}

// req: S-46
#[tokio::test]
async fn computed_attachment_of_closed_file_equals_missing_one() {
    let service = crate::service(library());
    let (editor, other) = (known("ada", &[], &["editor"]), known("eve", &[], &[]));
    for prompt in ["attaching", "linking"] {
        for caller in [&other, &Caller::anonymous()] {
            let closed = get(&service, caller, prompt, "closed/plan").await;
            assert_eq!(closed, get(&service, caller, prompt, "closed/none").await);
            assert_eq!(closed, get(&service, caller, prompt, "unused").await, "nothing refers to it");
            assert!(get(&service, caller, prompt, "open").await.contains("OPEN"), "{prompt}");
        }
        for caller in [&editor, &Caller::local()] {
            assert!(get(&service, caller, prompt, "closed/plan").await.contains("SECRET"), "{prompt}");
            assert!(get(&service, caller, prompt, "unused").await.contains("not found"), "{prompt}");
        }
    }
}

// req: S-46
#[tokio::test]
async fn size_of_closed_file_is_not_revealed() {
    let mut definitions = library();
    definitions.policy.budget.attachment_bytes = 5;
    let service = crate::service(definitions);
    let other = known("eve", &[], &[]);
    let closed = get(&service, &other, "attaching", "closed/plan").await;
    assert_eq!(closed, get(&service, &other, "attaching", "closed/none").await);
    assert!(get(&service, &Caller::local(), "attaching", "closed/plan").await.contains("5 bytes"));
}

// req: S-19
#[tokio::test]
async fn link_to_closed_file_has_no_text() {
    let service = crate::service(library());
    let answer = get(&service, &known("eve", &[], &[]), "literal", "x").await;
    assert!(!answer.contains("SECRET") && !answer.contains("plan"), "{answer}");
    assert!(get(&service, &known("ada", &[], &["editor"]), "literal", "x").await.contains("SECRET"));
}

// req: S-50
#[tokio::test]
async fn file_belongs_to_the_prompts_that_refer_to_it() {
    let mut definitions = library();
    definitions.access.clear();
    let closed = PromptDefinition::template("closed", "{{ attach('unused.txt') }}");
    definitions.prompts.push(closed.access(demand(&[], &["editor"], &[])).into());
    definitions.prompts.push(PromptDefinition::template("around", "{{ prompt('closed') }}").into());
    let service = crate::service(definitions.clone());
    let (editor, other) = (known("ada", &[], &["editor"]), known("eve", &[], &[]));
    let uri = "library:///unused.txt";
    assert!(service.read(&other, uri).await.is_ok(), "`around` contains the attachment");
    definitions.prompts.pop();
    let service = crate::service(definitions);
    assert!(service.read(&editor, uri).await.is_ok());
    assert_eq!(
        service.read(&other, uri).await.expect_err("closed").to_string().replace("unused", "none"),
        service.read(&other, "library:///none.txt").await.expect_err("missing").to_string()
    );
    assert!(get(&service, &other, "attaching", "unused").await.contains("not found"));
}

// req: S-49
#[tokio::test]
async fn completion_names_no_closed_file() {
    let mut definitions = library();
    let mut hidden = PromptDefinition::template("hidden", "x").access(demand(&[], &["editor"], &[]));
    hidden.origin = Origin::new(SourceText::new("hidden.md", "x"));
    let paths = ["open.txt", "closed/plan.txt", "hidden.md"].map(str::to_owned);
    let values = CompletionSource::Values([&paths[..], &["library:///closed/plan.txt".to_owned()]].concat());
    for (name, source) in [("paths", CompletionSource::Paths(Arc::from(paths))), ("values", values)] {
        let argument = ArgumentDefinition::new("which").complete(source);
        definitions.prompts.push(PromptDefinition::template(name, "{{ which }}").argument(argument).into());
    }
    definitions.prompts.push(hidden.into());
    let service = crate::service(definitions);
    for (caller, expected) in
        [(known("eve", &[], &[]), 1), (Caller::anonymous(), 1), (known("ada", &[], &["editor"]), 3)]
    {
        for name in ["paths", "values"] {
            let found = service.complete(&caller, Reference::Prompt(name), "which", "", &Variables::new()).await;
            let values = found.expect("suggestions").into_value().values;
            let expected = expected + usize::from(name == "values" && expected == 3);
            assert_eq!(values.len(), expected, "{name}: {values:?}");
        }
    }
}

// req: S-19
#[tokio::test]
async fn link_by_uri_describes_no_closed_resource() {
    let mut definitions = crate::library::definitions();
    for resource in &mut definitions.resources {
        resource.title = Some("TITLE".into());
    }
    definitions.prompts.push(PromptDefinition::template("to-closed", "{{ link('docs://closed/a') }}").into());
    let service = crate::service(definitions);
    for (caller, may) in [(known("eve", &[], &[]), false), (known("ada", &[], &["editor"]), true)] {
        let answer = service.get(&caller, "to-closed", &RawArguments::new()).await.expect("a link");
        let [message] = &*answer.value().messages else { panic!("{:?}", answer.value().messages) };
        let ContentBlock::Link(link) = &message.content else { panic!("{message:?}") };
        assert_eq!((link.title.is_some(), link.size.is_some()), (may, may));
    }
}
