//! The sources of a server with several: their states, and requests to read one again.

use axum::{http::StatusCode, response::IntoResponse};
use promptshelf_source::{SourceSet, SourceStatus};
use promptshelf_wire::{Scope, SourceInfo, op};

use super::{
    super::{
        call::{Answer, Call},
        problem::Problem,
    },
    state::ProgramState,
};

pub(super) async fn list_sources(call: Call<op::ListSources, ProgramState>) -> Answer {
    let is_operator = call.has(Scope::Admin);
    // In the order of the settings, without those that are closed to the caller.
    let is_open =
        |status: &SourceStatus| is_operator || status.access.as_ref().is_none_or(|access| call.caller().meets(access));
    let open = sources(&call.state)?.statuses().into_iter().filter(is_open);
    call.answer(&call.paging.of_short(open.map(|status| info(status, is_operator)).collect())?)
}

/// Reasons name hosts and folders, which are for operators.
fn info(status: SourceStatus, is_operator: bool) -> SourceInfo {
    let reason = |text: String| if is_operator { text } else { "the log of the server has the reason".to_owned() };
    SourceInfo {
        kind: status.kind.into(),
        state: status.state.as_str().into(),
        revision: status.revision,
        commit: status.commit,
        prompts: status.prompts,
        behind_since: status.behind_since.map(|since| since.to_string()),
        problem: status.problem.map(reason),
        left_out: status.left_out,
        warning: status.warning.map(reason),
        name: status.name,
    }
}

pub(super) async fn refresh_source(call: Call<op::RefreshSource, ProgramState>) -> Answer {
    let source = &call.path.source;
    call.note("source", source);
    if sources(&call.state)?.refresh(source) {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    let shown = &source[..source.floor_char_boundary(100)];
    Err(Problem::not_found(&format!("The source `{shown}` on this server")))
}

fn sources(state: &ProgramState) -> Result<&SourceSet, Problem> {
    state.sources().ok_or_else(|| Problem::not_found("The list of sources ([[source]] in server.toml, with [auth])"))
}
