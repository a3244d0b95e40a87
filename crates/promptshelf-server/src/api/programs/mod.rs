//! The API for programs: prompts by channel and version, events of new revisions, and Langfuse's read API.
//!
//! Every server has it, with the access rules, limits and audit of `/mcp`. Requests are answered from memory, apart from
//! those for a version that is not served at present.
//!
//! - `state` finds the channel of a request; `query` reads its parameters; `model` has the answers.
//! - `prompts` lists prompts and returns one; `versions` loads earlier versions from the store.
//! - `events` has the stream of a channel's revisions.
//! - `usage` reports the use of prompts, and `sources` the states of sources.
//! - `langfuse` has the answers of Langfuse's API, and `mustache` converts templates for it.

mod events;
mod langfuse;
mod model;
mod mustache;
mod prompts;
mod query;
mod sources;
mod state;
mod usage;
mod versions;

use axum::{Router, routing::get};
use promptshelf_wire::Document;

pub(crate) use self::state::ProgramState;
pub use self::versions::Versions;
use super::call::Operations;

pub(super) fn operations(document: Document) -> Operations<ProgramState> {
    Operations::new(document)
        .on(prompts::list_prompts)
        .on(prompts::get_prompt)
        .on(prompts::render_prompt)
        .on(events::follow_channel)
        .on(usage::get_usage)
        .on(usage::get_usage_overview)
        .on(sources::list_sources)
        .on(sources::refresh_source)
}

/// Langfuse's read API. Its description is Langfuse's.
pub(super) fn langfuse_routes() -> Router<ProgramState> {
    Router::new()
        .route("/api/public/v2/prompts", get(langfuse::list))
        .route("/api/public/v2/prompts/{name}", get(langfuse::prompt))
}
