//! A small library, defined in code.

use std::sync::Arc;

use promptshelf_core::{
    ArgumentDefinition, ArgumentType, Catalog, CatalogHandle, Choice, CompletionSource, Constraints, Decline,
    Definitions, MimeType, Origin, PromptDefinition, ResourceBody, ResourceContent, ResourceDefinition, SourceText,
    StepDefinition, check,
};
use promptshelf_mcp::{Server, StateKey};
use promptshelf_service::Service;

/// The definitions of the library: a greeting, and a resource with a text.
pub(crate) fn definitions(greeting: &str, text: &str) -> Definitions {
    let greet = PromptDefinition::template("greet", "Say hello to {{ name }}.")
        .title("Greeting")
        .description(greeting)
        .argument(
            ArgumentDefinition::new("name")
                .description("The name to greet")
                .required()
                .complete(CompletionSource::Values(vec!["Ada".into(), "Grace".into()])),
        );
    let quiet = PromptDefinition::template("quiet", "Nothing to ask.").description("Asks nothing");
    Definitions { resources: vec![resource(text)], ..Definitions::from_iter([greet, quiet]) }
}

fn resource(text: &str) -> ResourceDefinition {
    let content = ResourceContent::Fixed(ResourceBody::Text(Arc::from(text)));
    let origin = Origin::new(SourceText::new("promptshelf.toml", ""));
    let note = ResourceDefinition::from_source("docs://note", content, origin);
    ResourceDefinition { name: "note".into(), mime_type: Some(MimeType::plain_text()), ..note }
}

/// Returns a catalog without diagnostics.
pub(crate) fn catalog(greeting: &str, text: &str) -> Catalog {
    let checked = check(definitions(greeting, text), None);
    assert!(checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
    checked.catalog
}

/// Returns a server and its catalog handle.
pub(crate) fn server() -> (Server, CatalogHandle) {
    let handle = CatalogHandle::new(catalog("Greets someone", "first"));
    (Server::new(Service::new(handle.clone())), handle)
}

/// A prompt with three steps, and one that opens a web page.
pub(crate) fn guided() -> Definitions {
    let argument = |name: &str| ArgumentDefinition::new(name).description(name.to_uppercase());
    let titled = |value: &str, title: &str| Choice { value: value.into(), title: Some(title.into()) };
    let mut language = argument("language").title("Language").required().ask();
    language.choices = vec![titled("rust", "Rust"), titled("python", "Python")];
    let tests = argument("tests").kind(ArgumentType::Boolean).default_value("true").ask();
    let framework =
        argument("framework").required().choices(["flask", "django"]).ask().step(2).when("language == \"python\"");
    let mut workers =
        argument("workers").kind(ArgumentType::Integer).default_value("2").ask().step(2).when("language == \"rust\"");
    workers.constraints = Some(Constraints { minimum: Some(1.0), maximum: Some(8.0), ..Constraints::default() }.into());
    let since = argument("since").kind(ArgumentType::Date).ask().step(3);
    let mut topics = argument("topics").kind(ArgumentType::List).choices(["speed", "style"]).ask().step(3);
    topics.choices[0].title = Some("Speed".into());
    let text = "{{ project }}: {{ language }}, {{ tests }}, {{ framework }}, {{ workers }}, {{ since }}, {{ topics }}.";
    let mut setup = PromptDefinition::template("setup", text).title("Setup").description("Sets a project up");
    for argument in [argument("project"), language, tests, framework, workers, since, topics] {
        setup = setup.argument(argument);
    }
    let step = |number, key: &str, message: &str, decline| StepDefinition {
        number,
        key: Some(key.into()),
        message: Some(message.into()),
        url: None,
        decline,
    };
    setup.steps = vec![
        step(1, "basics", "What is it written in?", Decline::Stop),
        step(3, "more", "Anything else?", Decline::Continue),
    ];
    let mut connect = PromptDefinition::template("connect", "Connected.").description("Opens a page first");
    let url = Some("https://example.org/connect".into());
    connect.steps = vec![StepDefinition { url, ..step(1, "page", "Please connect.", Decline::Stop) }];
    Definitions::from_iter([setup, connect])
}

/// Returns a server of [`guided`] prompts.
pub(crate) fn guided_server(key: StateKey) -> (Server, CatalogHandle) {
    let checked = check(guided(), None);
    assert!(checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
    let handle = CatalogHandle::new(checked.catalog);
    (Server::with_state_key(Service::new(handle.clone()), key), handle)
}
