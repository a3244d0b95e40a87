//! Paths, queries and bodies of requests.

use axum::{
    extract::{FromRequest, FromRequestParts, Path, Query, Request},
    http::{HeaderMap, request::Parts},
};
use promptshelf_mcp::HttpService;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};

use super::problem::Problem;

pub(super) struct ApiPath<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for ApiPath<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<ApiPath<T>, Problem> {
        let Path(path) = Path::from_request_parts(parts, state)
            .await
            .map_err(|rejection| Problem::invalid(format!("The path is invalid: {}", rejection.body_text())))?;
        Ok(ApiPath(path))
    }
}

/// The parameters of the query. Unknown ones are refused by their type.
pub(super) struct ApiQuery<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<ApiQuery<T>, Problem> {
        let Query(query) = Query::from_request_parts(parts, state)
            .await
            .map_err(|rejection| Problem::invalid(format!("The query is invalid: {}", rejection.body_text())))?;
        Ok(ApiQuery(query))
    }
}

/// A body that has not been read: it is read after the caller's scopes have been checked.
pub(super) struct Unread(Request);

impl<S: Send + Sync> FromRequest<S> for Unread {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Unread, Problem> {
        Ok(Unread(request))
    }
}

impl Unread {
    pub(super) fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// Reads a JSON body, within the bounds of `endpoint`.
    pub(super) async fn json<T: DeserializeOwned>(self, endpoint: &HttpService) -> Result<T, Problem> {
        let (head, body) = self.0.into_parts();
        let bytes = endpoint.read_json(&head, body).await.map_err(|denial| Problem::denied(&denial))?;
        serde_json::from_slice(&bytes).map_err(|error| Problem::invalid(format!("The body is invalid: {error}")))
    }
}

/// Reads a member that may be null and must not be missing.
pub(super) fn required<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

/// The largest number of items of most pages. The store returns twice as many, so that one more shows whether there is
/// another page.
const MAX_LIMIT: usize = 500;

/// The number of items of a page: 100 by default, between 1 and 500.
pub(super) fn page_size(limit: Option<usize>) -> Result<usize, Problem> {
    page_size_up_to(MAX_LIMIT, limit)
}

/// The number of items of a page: 100 by default, between 1 and `max`.
pub(super) fn page_size_up_to(max: usize, limit: Option<usize>) -> Result<usize, Problem> {
    match limit.unwrap_or(100) {
        limit if (1..=max).contains(&limit) => Ok(limit),
        other => Err(Problem::invalid(format!("The limit is invalid: expected 1 to {max}, got {other}"))),
    }
}
