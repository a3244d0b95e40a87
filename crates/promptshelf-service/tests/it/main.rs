//! Tests of the service through its public API.

mod access;
mod access_by_file;
mod audit;
mod changes;
mod completions;
mod library;
mod limits;
mod lists;
mod prompts;
mod rendering;
mod resources;
mod rollout;
mod sources;
mod usage;

use promptshelf_core::{
    Catalog, CatalogHandle, Definitions, Diagnostic, Origin, PromptDefinition, ResourceContent, ResourceDefinition,
    SourceText, check,
};
use promptshelf_service::Service;

/// Returns a catalog without errors.
fn catalog(definitions: Definitions) -> Catalog {
    let checked = check(definitions, None);
    assert!(!checked.diagnostics.iter().any(Diagnostic::is_error), "{:?}", checked.diagnostics);
    checked.catalog
}

fn service(definitions: Definitions) -> Service {
    Service::new(CatalogHandle::new(catalog(definitions)))
}

fn prompts(prompts: impl IntoIterator<Item = PromptDefinition>) -> Definitions {
    Definitions::from_iter(prompts)
}

fn resource(uri: &str, content: ResourceContent) -> ResourceDefinition {
    ResourceDefinition::from_source(uri, content, Origin::new(SourceText::new("promptshelf.toml", "")))
}

/// Returns the result of a future that does not wait.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(result) => result,
        std::task::Poll::Pending => panic!("the future waits"),
    }
}
