//! The routes of the API, and the OpenAPI document that describes them.

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, header},
    middleware,
    response::IntoResponse,
    routing::{any, get},
};
use promptshelf_mcp::HttpService;
use promptshelf_service::Method;
use promptshelf_wire::{Document, PREFIX};

use super::{
    ApiState, SUBJECTS,
    admit::{Checks, admit},
    call::{Operations, Site},
    etag, folder,
    problem::{not_allowed, unknown},
    programs::{self, ProgramState},
};
use crate::{http::Options, library::Library};

/// Returns the routes of the API, for callers that authentication has looked at. Those of a store exist with
/// [`Options::api`] only.
pub(crate) fn routes(programs: &ProgramState, library: &Library, site: &Site, options: &Options) -> Router {
    let unknown = Router::new()
        .route("/api/v1", any(unknown))
        .route("/api/v1/", any(unknown))
        .route("/api/v1/{*rest}", any(unknown));
    let routes = programs::operations(Document::default()).into_router(programs.clone()).merge(unknown);
    let routes = match &options.api {
        Some(api) => {
            let state = ApiState { api: api.clone(), site: site.clone(), usage: options.usage.clone() };
            routes.merge(operations(Document::default()).into_router(state))
        }
        None => routes,
    };
    checked(routes.method_not_allowed_fallback(not_allowed), library, &site.endpoint)
}

/// Returns the routes of Langfuse's read API, for callers that authentication has looked at.
pub(crate) fn langfuse_routes(programs: &ProgramState, library: &Library, endpoint: &HttpService) -> Router {
    let routes = programs::langfuse_routes().with_state(programs.clone());
    checked(routes.method_not_allowed_fallback(not_allowed), library, endpoint)
}

/// Returns the route of the OpenAPI document, for every caller: it has no data of the store, and clients read it before
/// they sign in.
pub(crate) fn document_route(library: &Library, endpoint: &HttpService, options: &Options) -> Router {
    let document = document(options.api.is_some(), options.folder.is_some());
    let document = Bytes::from(document.to_json().to_string());
    let tag = etag::Tag::of(&document);
    let document = get(move |headers: HeaderMap| {
        let response = ([(header::CONTENT_TYPE, "application/json")], document.clone()).into_response();
        std::future::ready(etag::conditional(&headers, &tag, response))
    });
    let routes =
        Router::new().route(&format!("{PREFIX}/openapi.json"), document).method_not_allowed_fallback(not_allowed);
    checked(routes, library, endpoint)
}

fn document(has_store: bool, has_folder: bool) -> Document {
    let mut document = programs::operations(Document::default()).into_document();
    if has_store {
        document = operations(document).into_document();
    }
    if has_folder {
        document = folder::operations(document).into_document();
    }
    document
}

/// Returns the OpenAPI document of a server with a store and an edited folder, which has every operation.
#[must_use]
pub fn openapi() -> serde_json::Value {
    document(true, true).to_json()
}

/// Returns the words for what records of the audit are of, as `method` has them.
pub fn audit_methods() -> impl Iterator<Item = &'static str> {
    let mut operations = document(true, true).recorded().to_vec();
    operations.sort_unstable();
    operations.dedup();
    Method::OWN.iter().map(|method| method.as_str()).chain(operations)
}

fn checked(routes: Router, library: &Library, endpoint: &HttpService) -> Router {
    let checks = Checks { endpoint: endpoint.clone(), library: library.clone() };
    routes.layer(middleware::from_fn_with_state(checks, admit))
}

pub(super) fn operations(document: Document) -> Operations<ApiState> {
    SUBJECTS.iter().fold(Operations::new(document), |all, subject| subject(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those who read the document do not have the code.
    #[test]
    fn descriptions_refer_to_no_item_of_the_code() {
        let document = openapi().to_string();
        let links = ["[`", "](crate::", "](super::"];
        assert_eq!(
            links.map(|link| document.find(link).map(|at| &document[at..document.len().min(at + 40)])),
            [None; 3]
        );
    }

    #[test]
    fn each_kind_of_record_has_one_word() {
        let methods: Vec<&str> = audit_methods().collect();
        for word in ["get", "sign-in", "api/publish", "api/folder/write", "api/usage", "rollout/stop", "store/backup"] {
            assert_eq!(methods.iter().filter(|method| **method == word).count(), 1, "{word}: {methods:?}");
        }
        assert!(!methods.contains(&"api/render"), "its records are those of the library");
    }
}
