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
