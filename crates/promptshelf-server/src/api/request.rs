//! Paths, queries and bodies of requests.

use axum::{
    extract::{FromRequestParts, Path, Query},
    http::request::Parts,
};
use serde::de::DeserializeOwned;

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

/// A page of rows that a store returned, one more than the page has if there is another one.
pub(super) fn page_of<T, K>(mut rows: Vec<T>, limit: usize, key: impl Fn(&T) -> K) -> (Vec<T>, Option<K>) {
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| has_more).map(key);
    (rows, next)
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
