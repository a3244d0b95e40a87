//! The use of prompts.

use axum::{extract::State, http::HeaderMap, response::Response};
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};
use promptshelf_store::UsageQuery;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    super::{
        etag,
        operation::{ApiCaller, Scope},
        problem::Problem,
        request::ApiQuery,
    },
    state::ProgramState,
};
use crate::usage::UsageReport;

/// The parameters of the report.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct UsageParameters {
    /// The age of the oldest figures, such as `30d` or `12h`. 30 days by default.
    since: Option<String>,
    /// Only the figures of this prompt.
    prompt: Option<String>,
    /// Whether channels, versions of clients and protocols are separated.
    detail: Option<bool>,
}

/// Reports who uses which prompts how often
#[utoipa::path(get, path = "/usage", tag = "usage", security(("token" = ["library:read"])), params(UsageParameters),
    responses((status = 200, body = UsageReport), (status = 304)))]
pub(super) async fn get_usage(
    State(state): State<ProgramState>,
    caller: ApiCaller,
    ApiQuery(query): ApiQuery<UsageParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let service = state.default_library().service().clone();
    let operation = service.operation(&caller, "api/usage")?;
    let answer = async {
        state.require(&caller, Scope::Read)?;
        let Some(log) = state.usage() else {
            return Err(Problem::not_found("The count of usage ([usage] in server.toml turns it on)"));
        };
        let since = since(query.since.as_deref().unwrap_or("30d"))?;
        let selection = UsageQuery { since: Some(since), prompt: query.prompt };
        let mut figures = log.figures(&selection).await?;
        figures.retain(|key, _| state.shows(&caller, &key.channel));
        // To the hour, as the figures are: the tag stays the same while they do.
        let hour = Timestamp::from_second(since.as_second().div_euclid(3_600) * 3_600).ok();
        let report = UsageReport::of(hour, &figures, query.detail.unwrap_or_default(), log.min_callers());
        etag::json(&headers, &report)
    }
    .await;
    operation.end(answer.as_ref().err().map_or("ok", Problem::name));
    answer
}

/// Returns the time that lies so far back, with days of 24 hours.
fn since(age: &str) -> Result<Timestamp, Problem> {
    let parse = || {
        let age = age.parse::<Span>().ok()?.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
        Timestamp::now().checked_sub(age).ok().filter(|_| age > SignedDuration::ZERO)
    };
    parse().ok_or_else(|| Problem::invalid("The age `since` is invalid: expected days or hours, such as 30d or 12h"))
}
