//! All channels together: the versions of prompts at a glance, and the proposals of every channel.

use std::collections::HashMap;

use promptshelf_store::{ProposalQuery, ProposalState, StandingQuery};
use promptshelf_wire::{ListedProposal, Page, PromptStandings, op};

use super::{
    ApiState,
    call::{Answer, Call, Operations},
    permissions::is_review_wanted,
};

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(list_standings).on(list_reviews)
}

async fn list_standings(call: Call<op::ListStandings>) -> Answer {
    let (limit, after) = (call.paging.limit(), call.paging.after()?);
    let query = StandingQuery { text: call.query.text.clone(), after, limit };
    let found = call.store().await?.standings(&query, |channel| call.sees(channel)).await?;
    let next = found.prompts.last().filter(|_| found.has_more).map(|last| call.paging.next(&last.name));
    call.answer(&PromptStandings { channels: found.channels, items: found.prompts, next })
}

async fn list_reviews(call: Call<op::ListReviews>) -> Answer {
    let (limit, before) = (call.paging.limit(), call.paging.after()?);
    let query = ProposalQuery { channel: None, state: call.query.state, before, limit: limit + 1 };
    let store = call.store().await?;
    let channels = store.channels().await?.into_iter();
    let policies: HashMap<_, _> = channels.map(|channel| (channel.name, channel.policy)).collect();
    let Page { items, next } = call.paging.of_rows(store.proposals(&query).await?, limit, |last| last.id);
    let shown = items.into_iter().filter(|proposal| call.sees(&proposal.channel));
    let proposals = shown.map(|proposal| {
        let policy = policies.get(&proposal.channel);
        let review_wanted = proposal.state == ProposalState::Open
            && policy.is_some_and(|policy| is_review_wanted(&call, &proposal, policy));
        ListedProposal { proposal: proposal.into(), review_wanted }
    });
    call.answer(&Page { items: proposals.collect(), next })
}
