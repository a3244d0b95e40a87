//! Reading of resources, and detection of changed content.

use std::sync::Arc;

use promptshelf_core::{
    ArgumentDefinition, BoxFuture, Budget, Definitions, LibraryFile, MimeType, Policy, PromptDefinition, ReadBody,
    ReadError, ReadResource, ResourceBody, ResourceContent, Variables,
};
use promptshelf_service::{Caller, Rejection, Service};

use crate::{resource, service};

/// A reader whose variable selects its result.
#[derive(Debug)]
struct Obedient;

impl ReadResource for Obedient {
    fn read<'a>(&'a self, variables: &'a Variables) -> BoxFuture<'a, Result<ReadBody, ReadError>> {
        Box::pin(async {
            match &*variables["x"] {
                "gone" => Err(ReadError::NotFound),
                "large" => Err(ReadError::TooLarge { limit: 9 }),
                "broken" => Err(ReadError::Failed("/srv/secret/key cannot be opened".into())),
                other => {
                    let mime_type = MimeType::parse("text/x-log");
                    Ok(ReadBody { body: ResourceBody::Text(other.into()), mime_type, modified: None })
                }
            }
        })
    }

    fn version<'a>(&'a self, variables: &'a Variables) -> BoxFuture<'a, Option<u64>> {
        Box::pin(async { (variables["x"] != "gone").then_some(7) })
    }
}

fn library() -> Definitions {
    let mut definitions = Definitions::default();
    let mut obedient = resource("logs://{x}", ResourceContent::Reader(Arc::new(Obedient)));
    obedient.variables = vec![ArgumentDefinition::new("x")];
    obedient.variables[0].constraints.get_or_insert_default().pattern = Some("^[a-z]+$".into());
    definitions.resources = vec![
        obedient,
        resource("docs://fixed", ResourceContent::Fixed(ResourceBody::Text("Fixed.".into()))),
        resource("docs://{x}", ResourceContent::Template("{% for i in range(x | int) %}{{ i }}{% endfor %}".into())),
    ];
    for path in ["a.txt", "_b.txt"] {
        let file = LibraryFile {
            path: path.into(),
            mime_type: MimeType::plain_text(),
            body: ResourceBody::Text(path.into()),
            has_mark: false,
            modified: None,
        };
        definitions.files.insert(path.into(), file.into());
    }
    // Only what a prompt refers to is served; `_b.txt` is not, although it is attached.
    let attaching = PromptDefinition::template("attaching", "{{ attach('a.txt') }}{{ attach('_b.txt') }}");
    definitions.prompts.push(attaching.into());
    definitions.policy = Policy { budget: Budget { output_bytes: 100, ..Budget::default() }, ..Policy::default() };
    definitions
}

async fn read(service: &Service, uri: &str) -> Result<String, Rejection> {
    let contents = service.read(&Caller::local(), uri).await?.into_value();
    assert_eq!(&*contents.uri, uri);
    match contents.body {
        ResourceBody::Text(text) => Ok(format!("{} {text}", contents.mime_type.as_str())),
        ResourceBody::Blob(_) => panic!("{uri} holds text"),
    }
}

#[tokio::test]
async fn resource_is_read_under_own_uri() {
    let service = service(library());
    for (uri, expected) in [
        ("docs://fixed", "text/plain Fixed."),
        ("docs://3", "text/plain 012"),
        ("logs://today", "text/x-log today"),
        ("library:///a.txt", "text/plain a.txt"),
    ] {
        assert_eq!(read(&service, uri).await.as_deref(), Ok(expected), "{uri}");
    }
}

// req: R-13
#[tokio::test]
async fn gone_hidden_and_unknown_are_equal() {
    let service = service(library());
    for uri in ["logs://gone", "logs://TODAY", "library:///_b.txt", "library:///none", "https://example.org/", ""] {
        let rejection = read(&service, uri).await.expect_err(uri);
        assert_eq!(rejection.to_string(), format!("Resource not found: {uri}"));
        assert_eq!(service.view(&Caller::local()).version(uri).await, None, "{uri}");
    }
}

// req: N8, R-13
#[tokio::test]
async fn internal_errors_are_not_revealed() {
    let service = service(library());
    assert_eq!(read(&service, "logs://broken").await, Err(Rejection::Internal));
    let large = read(&service, "logs://large").await.expect_err("it is too large").to_string();
    assert_eq!(large, "Resource logs://large is larger than the limit of 9 bytes");
    let made = read(&service, "docs://5000").await.expect_err("it is too large").to_string();
    assert_eq!(made, "Resource docs://5000 is larger than the limit of 100 bytes");
}

#[tokio::test]
async fn version_changes_with_content() {
    let handle = promptshelf_core::CatalogHandle::new(crate::catalog(library()));
    let service = Service::new(handle.clone());
    let uris = ["docs://fixed", "docs://3", "logs://today", "library:///a.txt"];
    let mut before = Vec::new();
    for uri in uris {
        before.push(service.view(&Caller::local()).version(uri).await);
    }
    assert!(before.iter().all(Option::is_some), "{before:?}");
    let mut other = library();
    other.resources[1].content = ResourceContent::Fixed(ResourceBody::Text("Other.".into()));
    handle.replace(crate::catalog(other));
    for (uri, before) in uris.into_iter().zip(before) {
        assert_eq!(service.view(&Caller::local()).version(uri).await == before, uri != "docs://fixed", "{uri}");
    }
}

#[tokio::test]
async fn uri_is_served_even_if_missing() {
    let service = service(library());
    for (uri, expected) in [
        ("docs://fixed", true),
        ("logs://gone", true),
        ("library:///a.txt", true),
        ("library:///_b.txt", false),
        ("x:y", false),
    ] {
        assert_eq!(service.view(&Caller::local()).serves(uri), expected, "{uri}");
    }
}
