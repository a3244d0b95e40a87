//! A small library with unrestricted and restricted items.

use std::sync::Arc;

use promptshelf_core::{
    Access, AccessRule, ArgumentDefinition, CatalogHandle, CompletionSource, Definitions, LibraryFile, MimeType,
    Origin, PromptDefinition, ResourceBody, ResourceContent, ResourceDefinition, SourceText, check,
};
use promptshelf_service::{Caller, Identity, Service};

pub(crate) fn demand(scopes: &[&str], roles: &[&str], users: &[&str]) -> Access {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Access { scopes: owned(scopes), roles: owned(roles), users: owned(users), visible: false }
}

pub(crate) fn rule(access: Access) -> AccessRule {
    AccessRule::new(access, Origin::new(SourceText::new("promptshelf.toml", "")))
}

pub(crate) fn prompt(name: &str) -> PromptDefinition {
    PromptDefinition::template(name, format!("{name}: {{{{ x }}}}"))
        .description(name.to_uppercase())
        .argument(ArgumentDefinition::new("x").description("X").choices(["one", "two"]))
}

fn resource(uri: &str, content: ResourceContent) -> ResourceDefinition {
    ResourceDefinition::from_source(uri, content, Origin::new(SourceText::new("promptshelf.toml", "")))
}

fn file(path: &str) -> (String, Arc<LibraryFile>) {
    let body = ResourceBody::Text(Arc::from(format!("what {path} holds")));
    let file =
        LibraryFile { path: path.to_owned(), mime_type: MimeType::plain_text(), body, has_mark: false, modified: None };
    (path.to_owned(), Arc::new(file))
}

/// The definitions of the library; [`service`] serves it.
pub(crate) fn definitions() -> Definitions {
    let fixed = |uri: &str| resource(uri, ResourceContent::Fixed(ResourceBody::Text(Arc::from(uri))));
    let mut tagged = prompt("tagged");
    tagged.tags.push("internal".to_owned());
    let mut filed = prompt("filed");
    filed.origin = Origin::new(SourceText::new("Secret/filed.md", Arc::clone(&filed.origin.source.text)));
    let picker = PromptDefinition::template("picker", "{{ uri }} {{ path }}")
        .description("PICKER")
        .argument(
            ArgumentDefinition::new("uri").description("U").complete(CompletionSource::Resources("docs://*".into())),
        )
        .argument(
            ArgumentDefinition::new("path")
                .description("P")
                .complete(CompletionSource::Paths(Arc::from(["open.txt".to_owned(), "secret/plan.txt".to_owned()]))),
        );
    let attaching = PromptDefinition::template("attaching", "{{ attach('docs://closed/a') }}").description("ATTACHING");
    // Open to all callers, so that it serves files which only a rule closes.
    let referring = PromptDefinition::template(
        "referring",
        "{% if file %}{{ attach('open.txt') }}{{ attach('secret/plan.txt') }}{% endif %}{{ file }}",
    );
    let referring = referring.description("REFERRING").argument(ArgumentDefinition::new("file").description("F"));
    let prompts = [
        prompt("open"),
        prompt("for-ada").access(demand(&[], &[], &["ada"])),
        prompt("for-editors").access(demand(&[], &["editor"], &[])),
        prompt("scoped").access(demand(&["prompts:write"], &[], &[])),
        prompt("shown").access(Access { visible: true, ..demand(&["prompts:write", "prompts:read"], &[], &[]) }),
        prompt("git-commit"),
        tagged,
        filed,
        picker,
        attaching,
        referring,
    ];
    Definitions {
        files: [file("open.txt"), file("secret/plan.txt"), file("aliased.txt")].into(),
        resources: vec![
            fixed("docs://open"),
            fixed("docs://closed/a"),
            resource("docs://closed/alias", ResourceContent::LibraryFile("aliased.txt".into())),
            resource("notes://{name}", ResourceContent::Template("note {{ name }}".into())),
        ],
        access: vec![
            AccessRule { prompts: vec!["git-*".into()], ..rule(demand(&["git"], &[], &[])) },
            AccessRule { tags: vec!["internal".into()], ..rule(demand(&[], &["editor"], &[])) },
            AccessRule { folders: vec!["secret".into()], ..rule(demand(&[], &[], &["ada"])) },
            AccessRule {
                resources: vec!["docs://closed/*".into(), "notes://private*".into()],
                ..rule(demand(&[], &["editor"], &[]))
            },
        ],
        ..Definitions::from_iter(prompts)
    }
}

pub(crate) fn service() -> Service {
    let checked = check(definitions(), None);
    assert!(checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
    Service::new(CatalogHandle::new(checked.catalog))
}

pub(crate) fn known(name: &str, scopes: &[&str], roles: &[&str]) -> Caller {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Caller::authenticated(Arc::new(Identity {
        key: format!("test {name}"),
        name: name.to_owned(),
        scopes: owned(scopes),
        roles: owned(roles),
        expires: None,
    }))
}
