//! The sources of a server with several: their states, and requests to read one again.

use axum::{
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use promptshelf_source::{SourceSet, SourceStatus};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    super::{
        etag,
        operation::{ApiCaller, Scope},
        problem::Problem,
    },
    state::ProgramState,
};

/// The sources, as `promptshelf source list --json` prints them.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SourceList {
    sources: Vec<SourceInfo>,
}

/// A source and its state.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SourceInfo {
    /// The configured name.
    name: String,
    /// `folder`, `git`, `store` or `mcp`.
    kind: &'static str,
    /// `starting`, `current`, `behind` or `failed`.
    state: &'static str,
    /// The served revision of a channel.
    revision: Option<u64>,
    /// The served commit.
    commit: Option<String>,
    /// The number of its prompts that are served.
    prompts: usize,
    /// The time since which its newest state is not served.
    behind_since: Option<String>,
    /// The reason, without secrets.
    problem: Option<String>,
    /// What is not served of its newest state, each with the reason.
    left_out: Vec<String>,
}

impl From<SourceStatus> for SourceInfo {
    fn from(status: SourceStatus) -> SourceInfo {
        SourceInfo {
            kind: status.kind,
            state: status.state.as_str(),
            revision: status.revision,
            commit: status.commit,
            prompts: status.prompts,
            behind_since: status.behind_since.map(|since| since.to_string()),
            problem: status.problem,
            left_out: status.left_out,
            name: status.name,
        }
    }
}

/// Returns the sources and their states
#[utoipa::path(get, path = "/sources", tag = "sources", security(("token" = ["library:read"])),
    responses((status = 200, body = SourceList), (status = 304)))]
pub(super) async fn list_sources(
    State(state): State<ProgramState>,
    caller: ApiCaller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let service = state.default_library().service().clone();
    let operation = service.operation(&caller, "api/sources")?;
    let answer = || {
        state.require(&caller, Scope::Read)?;
        let sources = sources(&state)?.statuses().into_iter().map(SourceInfo::from).collect();
        etag::json(&headers, &SourceList { sources })
    };
    let answer = answer();
    operation.end(answer.as_ref().err().map_or("ok", Problem::name));
    answer
}

/// Requests that a source is read again, and does not wait for it
#[utoipa::path(post, path = "/sources/{source}/refresh", tag = "sources", security(("token" = ["library:admin"])),
    params(("source" = String, Path, description = "The name of the source")),
    responses((status = 202, description = "The source is read soon")))]
pub(super) async fn refresh_source(
    State(state): State<ProgramState>,
    caller: ApiCaller,
    Path(source): Path<String>,
) -> Result<StatusCode, Problem> {
    let service = state.default_library().service().clone();
    let mut operation = service.operation(&caller, "api/refresh-source")?;
    operation.note("source", &source);
    let answer = || {
        state.require(&caller, Scope::Admin)?;
        match sources(&state)?.refresh(&source) {
            true => Ok(StatusCode::ACCEPTED),
            false => {
                let shown = &source[..source.floor_char_boundary(100)];
                Err(Problem::not_found(&format!("The source `{shown}` on this server")))
            }
        }
    };
    let answer = answer();
    operation.end(answer.as_ref().err().map_or("ok", Problem::name));
    answer
}

fn sources(state: &ProgramState) -> Result<&SourceSet, Problem> {
    state.sources().ok_or_else(|| Problem::not_found("The list of sources ([[source]] in server.toml, with [auth])"))
}
