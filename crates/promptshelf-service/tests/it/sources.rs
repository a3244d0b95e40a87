//! Several sources in one catalog: names, files and access rules stay apart.

use std::{collections::BTreeMap, sync::Arc};

use promptshelf_core::{
    AccessRule, BoxFuture, CatalogHandle, CatalogPart, Checked, Code, ContentBlock, Definitions, Diagnostic,
    LibraryFile, MimeType, PromptDefinition, RawArguments, ReadBody, ReadError, RemoteOrigin, RemoteResources,
    ResourceBody, ResourceContent, SourceText, check, cursor::ListKind, join,
};
use promptshelf_service::{Caller, Rejection, Service};

use crate::library::{demand, known, rule};

/// A library with a prompt `hello`, which includes a partial and attaches a file, and a resource.
fn library(text: &str, uri: &str) -> Definitions {
    let file = LibraryFile {
        path: "notes.txt".to_owned(),
        mime_type: MimeType::plain_text(),
        body: ResourceBody::Text(format!("notes of {text}").into()),
        has_mark: false,
        modified: None,
    };
    let template = "{% include \"_part.md\" %}{{ attach(\"notes.txt\") }}";
    let fixed = ResourceContent::Fixed(ResourceBody::Text(text.into()));
    Definitions {
        prompts: vec![PromptDefinition::template("hello", template).description("Greets").into()],
        partials: BTreeMap::from([("_part.md".to_owned(), SourceText::new("_part.md", format!("part of {text}")))]),
        files: BTreeMap::from([("notes.txt".to_owned(), Arc::new(file))]),
        resources: vec![crate::resource(uri, fixed)],
        ..Definitions::default()
    }
}

fn part(source: &str, prefix: &str, definitions: Definitions) -> CatalogPart {
    let Checked { catalog, diagnostics } = check(Definitions { namespace: Some(source.into()), ..definitions }, None);
    assert!(!diagnostics.iter().any(Diagnostic::is_error), "{diagnostics:?}");
    CatalogPart {
        source: source.into(),
        prefix: prefix.into(),
        is_foreign: false,
        server_id: None,
        catalog: Arc::new(catalog),
        diagnostics: diagnostics.into(),
    }
}

fn joined(parts: Vec<CatalogPart>) -> (Service, Vec<Diagnostic>) {
    let Checked { catalog, diagnostics } = join(check(Definitions::default(), None), parts);
    (Service::new(CatalogHandle::new(catalog)), diagnostics)
}

fn staff() -> Caller {
    known("eve", &[], &["staff"])
}

async fn read(service: &Service, caller: &Caller, uri: &str) -> Result<String, Rejection> {
    let contents = service.read(caller, uri).await?.into_value();
    let ResourceBody::Text(text) = contents.body else { panic!("{uri} is no text") };
    Ok(text.to_string())
}

// req: S-150
#[tokio::test]
async fn names_and_files_stay_in_their_source() {
    let (service, found) =
        joined(vec![part("a", "a-", library("A", "docs://a")), part("b", "", library("B", "docs://b"))]);
    assert_eq!(found, []);
    let caller = Caller::anonymous();
    let names: Vec<_> = service.catalog().prompts().iter().map(|prompt| prompt.name().to_string()).collect();
    assert_eq!(names, ["a-hello", "hello"]);
    for (name, source, text) in [("a-hello", "a", "A"), ("hello", "b", "B")] {
        let messages = service.get(&caller, name, &RawArguments::new()).await.expect("a prompt").into_value().messages;
        let [first, second] = &messages[..] else { panic!("{messages:?}") };
        assert_eq!(first.content, ContentBlock::text(format!("part of {text}")));
        let ContentBlock::Resource(attached) = &second.content else { panic!("{second:?}") };
        assert_eq!(&*attached.contents.uri, format!("library://{source}/notes.txt"));
        assert_eq!(attached.contents.body, ResourceBody::Text(format!("notes of {text}").into()));
        let uri = format!("library://{source}/notes.txt");
        assert_eq!(read(&service, &caller, &uri).await, Ok(format!("notes of {text}")));
        assert_eq!(read(&service, &caller, &format!("docs://{source}")).await.as_deref(), Ok(text));
    }
    // Without a source the URI of a file means nothing outside of its library.
    for uri in ["library:///notes.txt", "library://c/notes.txt", "library://a/_part.md"] {
        assert!(matches!(read(&service, &caller, uri).await, Err(Rejection::UnknownResource { .. })), "{uri}");
    }
}

// req: S-151
#[tokio::test]
async fn equal_names_and_uris_serve_neither() {
    let (service, found) =
        joined(vec![part("a", "", library("A", "docs://same")), part("b", "", library("B", "docs://same"))]);
    let caller = Caller::anonymous();
    assert!(service.catalog().prompts().is_empty() && service.catalog().resources().is_empty());
    assert!(matches!(service.open(&caller, "hello"), Err(Rejection::UnknownPrompt { .. })));
    assert!(matches!(read(&service, &caller, "docs://same").await, Err(Rejection::UnknownResource { .. })));
    let places: Vec<_> = found.iter().map(|found| (found.code, found.location.source.path.as_str())).collect();
    assert_eq!(
        places,
        [
            (Code::DuplicateName, "a:<hello>"),
            (Code::DuplicateName, "a:promptshelf.toml"),
            (Code::DuplicateName, "b:<hello>"),
            (Code::DuplicateName, "b:promptshelf.toml")
        ]
    );
    assert!(found[0].message.contains("in several sources (a, b)"), "{}", found[0].message);
    // A URI template of another source does not take over a declared URI either.
    let mut greedy = library("B", "docs://{name}");
    greedy.resources[0] = crate::resource("docs://{name}", ResourceContent::Template("stolen".into()));
    let (service, _) = joined(vec![part("a", "a-", library("A", "docs://same")), part("b", "b-", greedy)]);
    assert!(matches!(read(&service, &caller, "docs://same").await, Err(Rejection::UnknownResource { .. })));
    assert_eq!(read(&service, &caller, "docs://other").await.as_deref(), Ok("stolen"));
}

// req: S-150
#[tokio::test]
async fn rules_bind_their_source_and_those_of_the_server_bind_served_names() {
    let closed = Definitions {
        access: vec![AccessRule { prompts: vec!["hello".into()], ..rule(demand(&[], &["staff"], &[])) }],
        ..library("A", "docs://a")
    };
    let of_server = |prefix: &str| AccessRule {
        prompts: vec!["b-*".into()],
        resources: vec!["library://c/*".into()],
        prefix: prefix.to_owned(),
        ..rule(demand(&[], &["staff"], &[]))
    };
    let with_rule =
        |prefix: &str, definitions: Definitions| Definitions { access: vec![of_server(prefix)], ..definitions };
    let (service, _) = joined(vec![
        part("a", "a-", closed),
        part("b", "b-", with_rule("b-", library("B", "docs://b"))),
        part("c", "c-", with_rule("c-", library("C", "docs://c"))),
    ]);
    let listed = |caller: &Caller| {
        let page = service.list(caller, ListKind::Prompts, None).expect("a page");
        let catalog = page.view().catalog().clone();
        page.shown().map(|index| catalog.prompts()[index].name().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&Caller::anonymous()), ["c-hello"]);
    assert_eq!(listed(&staff()), ["a-hello", "b-hello", "c-hello"]);
    for (source, text) in [("a", "A"), ("b", "B"), ("c", "C")] {
        // The file of a closed prompt is closed too, and so is one that a rule names.
        let uri = format!("library://{source}/notes.txt");
        let refused = read(&service, &Caller::anonymous(), &uri).await;
        assert!(matches!(refused, Err(Rejection::UnknownResource { .. })), "{source}: {refused:?}");
        assert_eq!(read(&service, &staff(), &uri).await, Ok(format!("notes of {text}")));
        assert_eq!(read(&service, &Caller::anonymous(), &format!("docs://{source}")).await.as_deref(), Ok(text));
    }
    let refused = service.get(&Caller::anonymous(), "b-hello", &RawArguments::new()).await.map(drop);
    assert_eq!(refused, Err(Rejection::UnknownPrompt { name: "b-hello".to_owned() }));
}

#[test]
fn prefix_that_makes_a_name_too_long_is_reported() {
    let long = Definitions::from_iter([PromptDefinition::template("x".repeat(100), "x").description("X")]);
    let (service, found) = joined(vec![part("a", &"p".repeat(60), long)]);
    assert!(service.catalog().prompts().is_empty());
    assert!(found.iter().any(|found| found.code == Code::InvalidName && found.is_error()), "{found:?}");
}

/// The resources of another server.
#[derive(Debug)]
struct Remote(&'static [(&'static str, Option<&'static str>)]);

impl RemoteResources for Remote {
    fn origin(&self, uri: &str) -> Option<RemoteOrigin> {
        let (_, prompt) = self.0.iter().find(|(known, _)| *known == uri)?;
        Some(prompt.map_or(RemoteOrigin::Listed, |prompt| RemoteOrigin::Linked(vec![prompt.to_owned()])))
    }

    fn read(&self, uri: &str) -> BoxFuture<'_, Result<ReadBody, ReadError>> {
        let body = ResourceBody::Text(format!("from far: {uri}").into());
        Box::pin(std::future::ready(Ok(ReadBody { body, mime_type: None, modified: None })))
    }
}

#[tokio::test]
async fn resource_of_another_server_is_as_closed_as_the_prompts_that_link_to_it() {
    let prompts = || [PromptDefinition::template("open", "x"), PromptDefinition::template("closed", "x")];
    let rule = |prompts: &[&str], resources: &[&str]| {
        let words = |words: &[&str]| words.iter().map(|word| (*word).into()).collect();
        AccessRule { prompts: words(prompts), resources: words(resources), ..rule(demand(&[], &["staff"], &[])) }
    };
    let remote = |known: &'static [(&'static str, Option<&'static str>)], access| Definitions {
        remote: Some(Arc::new(Remote(known))),
        access,
        ..Definitions::from_iter(prompts())
    };
    let known: &[_] = &[
        ("far://open", Some("open")),
        ("far://closed", Some("closed")),
        ("far://listed", None),
        ("far://ruled", Some("open")),
    ];
    let half = vec![rule(&["closed"], &[]), rule(&[], &["far://ruled"])];
    let (service, _) = joined(vec![
        part("a", "a-", remote(known, half)),
        part("b", "b-", remote(&[("near://listed", None), ("far://both", None)], vec![])),
        part("c", "c-", remote(&[("far://both", None)], vec![])),
        part("d", "d-", library("D", "near://taken")),
        part("e", "e-", remote(&[("near://taken", None)], vec![])),
    ]);
    for (uri, of_anonymous) in [
        ("far://open", true),
        ("far://closed", false),
        // Any of its prompts could link to it, and one is closed.
        ("far://listed", false),
        ("far://ruled", false),
        ("near://listed", true),
    ] {
        let text = Ok(format!("from far: {uri}"));
        let found = read(&service, &Caller::anonymous(), uri).await;
        match of_anonymous {
            true => assert_eq!(found, text),
            false => assert_eq!(found, Err(Rejection::UnknownResource { uri: uri.into() })),
        }
        for caller in [staff(), Caller::local()] {
            assert_eq!(read(&service, &caller, uri).await, text);
        }
    }
    let unknown = Err(Rejection::UnknownResource { uri: "far://both".into() });
    assert_eq!(read(&service, &staff(), "far://both").await, unknown, "two servers have it");
    assert_eq!(read(&service, &staff(), "near://taken").await, Ok("D".to_owned()), "a library serves it");
}
