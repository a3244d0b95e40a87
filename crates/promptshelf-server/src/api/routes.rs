//! Every route of the API, and the OpenAPI document that describes them.

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
    ApiState,
    admit::{Checks, admit},
    analysis, browse, bulk,
    call::{Operations, Site},
    channels, check, comments, compare, etag, evaluations, files, folder, history, overview, permissions,
    problem::{not_allowed, unknown},
    programs::{self, ProgramState},
    proposals, rename, rollouts, tokens, transfer, webhooks,
};
use crate::{http::Options, library::Library};

/// Returns the routes of the API, for callers that authentication has looked at. Those of a store exist with
/// [`Options::api`] only.
pub(crate) fn routes(programs: &ProgramState, library: &Library, site: &Site, options: &Options) -> Router {
    let unknown = Router::new()
        .route("/api/v1", any(unknown))
        .route("/api/v1/", any(unknown))
        .route("/api/v1/{*rest}", any(unknown));
    let routes = programs::described(Document::default()).into_router(programs.clone()).merge(unknown);
    let routes = match &options.api {
        Some(api) => {
            let state = ApiState { api: api.clone(), site: site.clone(), usage: options.usage.clone() };
            routes.merge(described(Document::default()).into_router(state))
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
    let mut document = programs::described(Document::default()).into_document();
    if has_store {
        document = described(document).into_document();
    }
    if has_folder {
        document = folder::described(document).into_document();
    }
    document
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

pub(super) fn described(document: Document) -> Operations<ApiState> {
    Operations::new(document)
        .on(channels::list_channels)
        .on(channels::get_channel)
        .on(channels::get_policy)
        .on(channels::put_policy)
        .on(channels::policy_history)
        .on(permissions::channel_permissions)
        .on(overview::list_standings)
        .on(history::list_revisions)
        .on(history::get_revision)
        .on(history::get_served)
        .on(files::get_tree)
        .on(files::get_file)
        .on(files::get_diff)
        .on(bulk::read_contents)
        .on(bulk::upload)
        .on(bulk::upload_part)
        .on(bulk::get_upload)
        .on(proposals::list_all_proposals)
        .on(browse::browse)
        .on(proposals::list_proposals)
        .on(proposals::create_proposal)
        .on(proposals::get_proposal)
        .on(proposals::replace_proposal)
        .on(proposals::withdraw_proposal)
        .on(overview::list_reviews)
        .on(permissions::proposal_permissions)
        .on(proposals::get_contents)
        .on(comments::list_comments)
        .on(comments::add_comment)
        .on(evaluations::list_evaluations)
        .on(evaluations::add_evaluation)
        .on(evaluations::proposal_evaluations)
        .on(proposals::review_proposal)
        .on(proposals::publish_proposal)
        .on(transfer::rollback)
        .on(transfer::promote)
        .on(rollouts::list_all_rollouts)
        .on(rollouts::list_rollouts)
        .on(rollouts::start_rollout)
        .on(rollouts::change_rollout)
        .on(rollouts::finish_rollout)
        .on(webhooks::list_webhooks)
        .on(webhooks::list_dead_letters)
        .on(webhooks::redeliver)
        .on(tokens::list_tokens)
        .on(tokens::create_token)
        .on(tokens::revoke_token)
        .on(check::check)
        .on(compare::compare)
        .on(compare::compare_renderings)
        .on(analysis::analyze_channel)
        .on(rename::rename_in_channel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_record_has_one_word() {
        let methods: Vec<&str> = audit_methods().collect();
        for word in ["get", "sign-in", "api/publish", "api/folder/write", "api/usage", "rollout/stop", "store/backup"] {
            assert_eq!(methods.iter().filter(|method| **method == word).count(), 1, "{word}: {methods:?}");
        }
        assert!(!methods.contains(&"api/render"), "its records are those of the library");
    }
}
