//! Every route of the API, and the OpenAPI document that describes them.

use axum::{
    Router,
    http::{HeaderMap, StatusCode},
    middleware,
    response::{IntoResponse, Response},
    routing::{any, get},
};
use promptshelf_mcp::HttpService;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use super::{
    Api,
    admit::{Checks, admit},
    etag,
    operation::ApiState,
    problem::Problem,
};
use crate::library::Library;

/// The prefix of all routes.
const PREFIX: &str = "/api/v1";

#[derive(OpenApi)]
#[openapi(info(title = "promptshelf", description = "Channels of prompt libraries: versions, review, promotion and rollback."))]
struct Document;

/// Returns the routes of the API, for callers that authentication has looked at.
pub(crate) fn routes(api: &Api, library: &Library, endpoint: &HttpService, has_sign_in: bool) -> Router {
    let state = ApiState {
        api: api.clone(),
        service: library.service().clone(),
        endpoint: endpoint.clone(),
        has_sign_in,
    };
    let (routes, document) = OpenApiRouter::with_openapi(Document::openapi())
        .nest(PREFIX, described())
        .split_for_parts();
    let document = serde_json::to_value(&document).unwrap_or_default();
    let checks = Checks { endpoint: endpoint.clone(), library: library.clone() };
    routes
        .route(
            "/api/v1/openapi.json",
            get(move |headers: HeaderMap| std::future::ready(etag::json(&headers, &document))),
        )
        .route("/api/v1", any(unknown))
        .route("/api/v1/{*rest}", any(unknown))
        .method_not_allowed_fallback(not_allowed)
        .with_state(state)
        .layer(middleware::from_fn_with_state(checks, admit))
}

/// The operations, each described where its handler is.
fn described() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
}

async fn unknown() -> Response {
    Problem::not_found("This path of the API").into_response()
}

async fn not_allowed() -> Response {
    let detail = "The path has other methods; the header Allow and /api/v1/openapi.json list them";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed", detail).into_response()
}
