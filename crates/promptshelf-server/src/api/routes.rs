//! Every route of the API, and the OpenAPI document that describes them.

use std::sync::Arc;

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, StatusCode, header},
    middleware,
    response::IntoResponse,
    routing::{any, get},
};
use promptshelf_mcp::HttpService;
use serde_json::{Value, json};
use utoipa::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    admit::{Checks, admit},
    analysis, browse, bulk, channels, check, comments, compare, etag, evaluations, files, folder, history,
    operation::ApiState,
    overview, permissions,
    problem::{not_allowed, unknown},
    programs::{self, ProgramState},
    proposals, rename, rollouts, tokens, transfer, webhooks,
};
use crate::{http::Options, library::Library};

const PREFIX: &str = "/api/v1";

#[derive(OpenApi)]
#[openapi(info(
    title = "promptshelf",
    description = "Prompts for programs, and channels of prompt libraries: versions, review, promotion and rollback."
))]
struct Document;

/// Returns the routes of the API, for callers that authentication has looked at. Those of a store exist with
/// [`Options::api`] only.
pub(crate) fn routes(
    programs: &ProgramState,
    library: &Library,
    endpoint: &HttpService,
    options: &Options,
    has_sign_in: bool,
) -> Router {
    let unknown = Router::new()
        .route("/api/v1", any(unknown))
        .route("/api/v1/", any(unknown))
        .route("/api/v1/{*rest}", any(unknown));
    let (routes, _) = programs_router().split_for_parts();
    let routes = routes.with_state(programs.clone()).merge(unknown);
    let routes = match &options.api {
        Some(api) => {
            let state = ApiState {
                api: api.clone(),
                service: library.service().clone(),
                endpoint: endpoint.clone(),
                has_sign_in,
                usage: options.usage.clone(),
                channel_access: Arc::new(options.channel_access.clone()),
            };
            let (store, _) = api_router().split_for_parts();
            routes.merge(store.with_state(state))
        }
        None => routes,
    };
    checked(routes.method_not_allowed_fallback(not_allowed), library, endpoint)
}

/// Returns the routes of Langfuse's read API, for callers that authentication has looked at.
pub(crate) fn langfuse_routes(programs: &ProgramState, library: &Library, endpoint: &HttpService) -> Router {
    let routes = programs::langfuse_routes().with_state(programs.clone());
    checked(routes.method_not_allowed_fallback(not_allowed), library, endpoint)
}

/// Returns the route of the OpenAPI document, for every caller: it has no data of the store, and clients read it before
/// they sign in.
pub(crate) fn document_route(library: &Library, endpoint: &HttpService, options: &Options) -> Router {
    let mut document = programs_router().into_openapi();
    if options.api.is_some() {
        document.merge(api_router().into_openapi());
    }
    if options.folder.is_some() {
        let folder = OpenApiRouter::with_openapi(Document::openapi()).nest("/api/v1/folder", folder::described());
        document.merge(folder.into_openapi());
    }
    let document = complete(serde_json::to_value(document).unwrap_or_default());
    let document = Bytes::from(document.to_string());
    let tag = etag::Tag::of(&document);
    let document = get(move |headers: HeaderMap| {
        let response = ([(header::CONTENT_TYPE, "application/json")], document.clone()).into_response();
        std::future::ready(etag::conditional(&headers, &tag, response))
    });
    let routes = Router::new().route("/api/v1/openapi.json", document).method_not_allowed_fallback(not_allowed);
    checked(routes, library, endpoint)
}

fn checked(routes: Router, library: &Library, endpoint: &HttpService) -> Router {
    let checks = Checks { endpoint: endpoint.clone(), library: library.clone() };
    routes.layer(middleware::from_fn_with_state(checks, admit))
}

fn programs_router() -> OpenApiRouter<ProgramState> {
    OpenApiRouter::with_openapi(Document::openapi()).nest(PREFIX, programs::described())
}

fn api_router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::with_openapi(Document::openapi()).nest(PREFIX, described())
}

fn complete(mut document: Value) -> Value {
    document["components"]["securitySchemes"]["token"] = json!({
        "type": "http",
        "scheme": "bearer",
        "description": "A token of the server's sign-in: a static one, or a JWT of its authorization server. Not needed \
                        where the server has no sign-in. Each operation names the scopes that it needs.",
    });
    let Some(paths) = document["paths"].as_object_mut() else { return document };
    for operations in paths.values_mut().filter_map(Value::as_object_mut) {
        for operation in operations.values_mut() {
            let responses = &mut operation["responses"];
            for (status, response) in responses.as_object_mut().into_iter().flatten() {
                if response["description"].as_str().is_none_or(str::is_empty) {
                    let status = status.parse().unwrap_or(StatusCode::OK);
                    response["description"] = status.canonical_reason().unwrap_or_default().into();
                }
            }
            responses["default"] = json!({
                "description": "A refusal or an error (RFC 9457)",
                "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
            });
        }
    }
    // The router's notation for several segments.
    let wild: Vec<String> = paths.keys().filter(|path| path.contains("{*")).cloned().collect();
    for path in wild {
        if let Some(item) = paths.remove(&path) {
            paths.insert(path.replace("{*", "{"), item);
        }
    }
    document
}

fn described() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(channels::list_channels))
        .routes(routes!(channels::get_channel))
        .routes(routes!(channels::get_policy, channels::put_policy))
        .routes(routes!(channels::policy_history))
        .routes(routes!(permissions::channel_permissions))
        .routes(routes!(overview::list_standings))
        .routes(routes!(history::list_revisions))
        .routes(routes!(history::get_revision))
        .routes(routes!(history::get_served))
        .routes(routes!(files::get_tree))
        .routes(routes!(files::get_file))
        .routes(routes!(files::get_diff))
        .routes(routes!(bulk::read_contents))
        .routes(routes!(bulk::upload))
        .routes(routes!(proposals::list_all_proposals))
        .routes(routes!(browse::browse))
        .routes(routes!(proposals::list_proposals, proposals::create_proposal))
        .routes(routes!(proposals::get_proposal, proposals::replace_proposal, proposals::withdraw_proposal))
        .routes(routes!(overview::list_reviews))
        .routes(routes!(permissions::proposal_permissions))
        .routes(routes!(proposals::get_contents))
        .routes(routes!(comments::list_comments, comments::add_comment))
        .routes(routes!(evaluations::list_evaluations, evaluations::add_evaluation))
        .routes(routes!(evaluations::proposal_evaluations))
        .routes(routes!(proposals::review_proposal))
        .routes(routes!(proposals::publish_proposal))
        .routes(routes!(transfer::rollback))
        .routes(routes!(transfer::promote))
        .routes(routes!(rollouts::list_all_rollouts))
        .routes(routes!(rollouts::list_rollouts))
        .routes(routes!(rollouts::set_rollout))
        .routes(routes!(rollouts::stop_rollout))
        .routes(routes!(webhooks::list_webhooks))
        .routes(routes!(webhooks::list_dead_letters))
        .routes(routes!(webhooks::redeliver))
        .routes(routes!(tokens::list_tokens, tokens::create_token))
        .routes(routes!(tokens::revoke_token))
        .routes(routes!(check::check))
        .routes(routes!(compare::compare))
        .routes(routes!(compare::compare_renderings))
        .routes(routes!(analysis::analyze_channel))
        .routes(routes!(rename::rename_in_channel))
}
