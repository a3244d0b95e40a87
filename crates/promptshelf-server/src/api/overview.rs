//! All channels together: the versions of prompts at a glance, and the proposals of every channel.

use std::collections::HashMap;

use axum::{extract::State, http::HeaderMap, response::Response};
use promptshelf_store::{ChannelInfo, PromptStanding, ProposalQuery, ProposalState, StandingQuery};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    etag,
    model::{ProposalSummary, ProposalsQuery},
    operation::{ApiCaller, ApiState, Scope},
    permissions::is_review_wanted,
    problem::Problem,
    request::{ApiQuery, page_size},
};

/// Which prompts.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct StandingsQuery {
    /// Only prompts whose name contains this text; letter case does not count.
    text: Option<String>,
    /// Only prompts whose name sorts after this one: `next` of the previous page.
    after: Option<String>,
    /// The number of prompts, 100 by default and 500 at most.
    limit: Option<usize>,
}

/// The newest versions of prompts in all channels.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptStandings {
    /// The channels, by name.
    channels: Vec<ChannelInfo>,
    /// The prompts, by name.
    prompts: Vec<PromptStanding>,
    /// The value of `after` for the next page; null on the last one.
    next: Option<String>,
}

/// Proposals of all channels, the newest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reviewable {
    /// The proposals.
    proposals: Vec<ListedProposal>,
    /// The value of `before` for the next page; null on the last one.
    next: Option<u64>,
}

/// A proposal, and the caller's part in it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedProposal {
    /// The proposal, without its changes and reviews.
    proposal: ProposalSummary,
    /// Whether a review of the caller is wanted.
    review_wanted: bool,
}

/// Lists prompts with their newest versions in every channel
#[utoipa::path(get, path = "/standings", tag = "channels", security(("token" = ["library:read"])),
    params(StandingsQuery), responses((status = 200, body = PromptStandings), (status = 304)))]
pub(super) async fn list_standings(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiQuery(query): ApiQuery<StandingsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin(caller.0, "api/standings", &[Scope::Read])?;
    let answer = async {
        let limit = page_size(query.limit)?;
        let query = StandingQuery { text: query.text, after: query.after, limit };
        let found = state.store().await?.standings(&query, |channel| operation.sees(channel)).await?;
        let next = found.prompts.last().map(|last| last.name.clone()).filter(|_| found.has_more);
        etag::json(&headers, &PromptStandings { channels: found.channels, prompts: found.prompts, next })
    }
    .await;
    Ok(operation.end(answer))
}

/// Lists the proposals of all channels, the newest first, and whether a review of the caller is wanted
#[utoipa::path(get, path = "/reviews", tag = "proposals", security(("token" = ["library:read"])),
    params(ProposalsQuery), responses((status = 200, body = Reviewable), (status = 304)))]
pub(super) async fn list_reviews(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiQuery(query): ApiQuery<ProposalsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin(caller.0, "api/reviews", &[Scope::Read])?;
    let answer = async {
        let limit = page_size(query.limit)?;
        let ProposalsQuery { state: wanted, before, .. } = query;
        // One more than a page, to know whether there is another one.
        let query = ProposalQuery { channel: None, state: wanted, before, limit: limit + 1 };
        let store = state.store().await?;
        let channels = store.channels().await?.into_iter();
        let policies: HashMap<_, _> = channels.map(|channel| (channel.name, channel.policy)).collect();
        let mut proposals = store.proposals(&query).await?;
        let has_more = proposals.len() > limit;
        proposals.truncate(limit);
        let next = proposals.last().map(|last| last.id).filter(|_| has_more);
        let shown = proposals.into_iter().filter(|proposal| operation.sees(&proposal.channel));
        let proposals = shown.map(|proposal| {
            let policy = policies.get(&proposal.channel);
            let review_wanted = proposal.state == ProposalState::Open
                && policy.is_some_and(|policy| is_review_wanted(&operation, &proposal, policy));
            ListedProposal { proposal: proposal.into(), review_wanted }
        });
        etag::json(&headers, &Reviewable { proposals: proposals.collect(), next })
    }
    .await;
    Ok(operation.end(answer))
}
