//! URIs of resources: templates match exactly the URIs that they expand to.

use futures_executor::block_on;
use promptshelf_core::{
    Catalog, Code, Definitions, LibraryFile, MimeType, Origin, Policy, ResourceBody, ResourceContent,
    ResourceDefinition, SourceText, Variables, check, expand_uri_template, invisible::InvisiblePolicy,
};
use proptest::prelude::*;

fn resource(uri: &str) -> ResourceDefinition {
    let content = ResourceContent::Fixed(ResourceBody::Text("x".into()));
    ResourceDefinition::from_source(uri, content, Origin::new(SourceText::new("promptshelf.toml", "")))
}

fn catalog(uris: &[&str]) -> Catalog {
    let resources = uris.iter().map(|uri| resource(uri)).collect();
    let checked = check(Definitions { resources, ..Definitions::default() }, None);
    assert!(checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
    checked.catalog
}

const TEMPLATES: &[&str] = &[
    "a://{x}",
    "a://x/{x}/y/{y}",
    "a://{x},{y}",
    "a:///{+p}",
    "a:///{+p}/end",
    "a://h{/x,y}",
    "a://h{?x,y}",
    "a://h?fixed=1{&x,y}",
    "a://{x}{?y}",
    "a:///{+p}{?x}",
    "a://{x}.{y}",
];

fn simple() -> impl Strategy<Value = String> {
    // A simple variable contains one segment of a path.
    "[^/]{1,12}".prop_filter("templates with a dot between would be ambiguous", |text| !text.contains('.'))
}

proptest! {
    #[test]
    fn matching_inverts_expansion(
        template in prop::sample::select(TEMPLATES),
        (x, y) in (simple(), simple()),
        // Any possible name of a file.
        p in "[^/]{1,5}(/[^/]{1,5}){0,3}",
    ) {
        let all = Variables::from([("x".into(), x), ("y".into(), y), ("p".into(), p)]);
        let catalog = catalog(&[template]);
        let resource = catalog.find_declared(template).expect("it is declared");
        let own: Variables =
            resource.variables().iter().map(|variable| (variable.name().to_owned(), all[variable.name()].clone())).collect();
        let uri = expand_uri_template(template, &own).expect("it is a template");
        prop_assert_eq!(resource.matches(&uri), Some(own), "{}", uri);
    }

    // req: J8, S-37
    #[test]
    fn matching_never_panics(template in prop::sample::select(TEMPLATES), uri in "a://(.|[%/?&=,]){0,30}") {
        let catalog = catalog(&[template]);
        if let Some((resource, variables)) = catalog.find_resource(&uri) {
            prop_assert!(variables.keys().all(|name| resource.variables().iter().any(|known| known.name() == name)));
        }
    }

    #[test]
    fn check_never_panics(template in "a://[{}a-z+/?&,:*#.%]{0,20}") {
        let _ = check(Definitions { resources: vec![resource(&template)], ..Definitions::default() }, None);
    }

    #[test]
    fn links_never_panic(value in "[a-z]{0,3}:?(.|[%/?#\\[\\]@:]){0,20}") {
        let catalog = crate::checked([crate::prompt("{{ link(value) }}", &["value"])]).catalog;
        let raw = promptshelf_core::RawArguments::from_iter([("value", value)]);
        if let Ok(messages) = crate::render(&catalog, &raw) {
            prop_assert_eq!(messages.len(), 1);
        }
    }

    // req: J9
    #[test]
    fn library_file_is_found_by_its_uri(path in "[^_/]{1,10}(/[^_/]{1,10}){0,2}") {
        let mime_type = MimeType::plain_text();
        let file = LibraryFile { path: path.clone(), mime_type, body: ResourceBody::Text("x".into()), has_mark: false, modified: None };
        let uri = file.uri();
        let mut definitions = Definitions::default();
        definitions.files.insert(path, file.into());
        let unreferenced = check(definitions.clone(), None).catalog;
        prop_assert!(unreferenced.find_library_file(&uri).is_none(), "{}", uri);
        let attaching = promptshelf_core::PromptDefinition::template("a", format!("{{{{ attach('{uri}') }}}}"));
        let catalog = check(definitions.prompt(attaching), None).catalog;
        prop_assert!(catalog.find_library_file(&uri).is_some(), "{}", uri);
    }
}

#[test]
fn fixed_uri_precedes_template() {
    let catalog = catalog(&["a://{x}", "a://one"]);
    let found = |uri: &str| catalog.find_resource(uri).map(|(resource, _)| resource.uri().to_owned());
    assert_eq!(found("a://one").as_deref(), Some("a://one"));
    assert_eq!(found("a://two").as_deref(), Some("a://{x}"));
    assert_eq!(found("a://two/three"), None);
}

#[test]
fn declared_file_has_its_declared_uri() {
    let mut definitions = Definitions::default();
    let file = LibraryFile {
        path: "_a.md".into(),
        mime_type: MimeType::parse("text/markdown").expect("a MIME type"),
        body: ResourceBody::Text("A.".into()),
        has_mark: false,
        modified: None,
    };
    definitions.files.insert(file.path.clone(), file.into());
    definitions
        .resources
        .push(ResourceDefinition { content: ResourceContent::LibraryFile("_a.md".into()), ..resource("docs://a") });
    definitions.prompts.push(crate::prompt("{{ link('_a.md') }}{{ attach('_a.md') }}", &[]).into());
    let checked = check(definitions, None);
    assert!(
        checked.diagnostics.iter().all(|found| found.code == Code::MissingDescription),
        "{:?}",
        checked.diagnostics
    );
    let messages = crate::render(&checked.catalog, &promptshelf_core::RawArguments::new()).expect("renders");
    let uris = messages.iter().map(|message| match &message.content {
        promptshelf_core::ContentBlock::Link(link) => &*link.uri,
        promptshelf_core::ContentBlock::Resource(resource) => &*resource.contents.uri,
        other => panic!("{other:?}"),
    });
    assert_eq!(uris.collect::<Vec<_>>(), ["docs://a", "docs://a"]);
}

// req: S-33
#[test]
fn invisible_characters_do_not_match_a_uri() {
    let read = |invisible, uri: &str| {
        let policy = Policy { invisible, ..Policy::default() };
        let resources = vec![resource("a://{x}")];
        let catalog = check(Definitions { resources, policy, ..Definitions::default() }, None).catalog;
        let (resource, variables) = catalog.find_resource(uri).expect("the template fits");
        block_on(resource.read(uri, &variables)).is_ok()
    };
    let spelled = "a://se%E2%80%8Bcret";
    assert!(read(InvisiblePolicy::Strip, "a://secret") && !read(InvisiblePolicy::Strip, spelled));
    assert!(!read(InvisiblePolicy::Reject, spelled) && read(InvisiblePolicy::Keep, spelled));
}
