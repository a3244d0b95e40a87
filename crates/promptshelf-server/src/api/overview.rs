//! All channels together: the versions of prompts at a glance, and the proposals of every channel.

use std::collections::HashMap;

use promptshelf_store::{ProposalQuery, ProposalState, StandingQuery};
use promptshelf_wire::{ListedProposal, PromptStandings, ProposalsQuery, Reviewable, op};

use super::{
    call::{Answer, Call},
    permissions::is_review_wanted,
    request::{page_of, page_size},
};

pub(super) async fn list_standings(call: Call<op::ListStandings>) -> Answer {
    let limit = page_size(call.query.limit)?;
    let query = StandingQuery { text: call.query.text.clone(), after: call.query.after.clone(), limit };
    let found = call.store().await?.standings(&query, |channel| call.sees(channel)).await?;
    let next = found.prompts.last().map(|last| last.name.clone()).filter(|_| found.has_more);
    call.answer(&PromptStandings { channels: found.channels, prompts: found.prompts, next })
}

pub(super) async fn list_reviews(call: Call<op::ListReviews>) -> Answer {
    let limit = page_size(call.query.limit)?;
    let ProposalsQuery { state: wanted, before, .. } = call.query.clone();
    let query = ProposalQuery { channel: None, state: wanted, before, limit: limit + 1 };
    let store = call.store().await?;
    let channels = store.channels().await?.into_iter();
    let policies: HashMap<_, _> = channels.map(|channel| (channel.name, channel.policy)).collect();
    let (proposals, next) = page_of(store.proposals(&query).await?, limit, |last| last.id);
    let shown = proposals.into_iter().filter(|proposal| call.sees(&proposal.channel));
    let proposals = shown.map(|proposal| {
        let policy = policies.get(&proposal.channel);
        let review_wanted = proposal.state == ProposalState::Open
            && policy.is_some_and(|policy| is_review_wanted(&call, &proposal, policy));
        ListedProposal { proposal: proposal.into(), review_wanted }
    });
    call.answer(&Reviewable { proposals: proposals.collect(), next })
}
