//! Proposals, their contents, and reviews.

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use promptshelf_store::{
    Actor, ChannelName, NewReview, PolicyRoles, Proposal, ProposalQuery, Publish, Published, RevisionKind, StoreError,
};
use promptshelf_wire::{
    ChangedContent, Contents, FileContent, Page, ProposalBody, ProposalSummary, PublishBody, Scope, op,
};

use super::{
    ApiState,
    call::{Answer, Call, Context, Operations},
    channels::{existing, target_roles},
    content::{Changes, changes},
    etag::{self, represent},
    problem::Problem,
};

/// The bytes after which a page of contents ends.
const PAGE_BYTES: usize = 4 << 20;

const PAGE_CHANGES: usize = 20_000;

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(list_all_proposals)
        .on(list_proposals)
        .on(create_proposal)
        .on(get_proposal)
        .on(replace_proposal)
        .on(withdraw_proposal)
        .on(get_contents)
        .on(review_proposal)
        .on(publish_proposal)
}

async fn list_proposals(call: Call<op::ListProposals>) -> Answer {
    let channel = &call.path.channel;
    let (limit, before) = (call.paging.limit(), call.paging.after()?);
    existing(&call, channel).await?;
    let query = ProposalQuery { channel: Some(channel.clone()), state: call.query.state, before, limit: limit + 1 };
    let proposals = call.store().await?.proposals(&query).await?;
    let summaries = proposals.into_iter().map(ProposalSummary::from).collect();
    call.answer(&call.paging.of_rows(summaries, limit, |last| last.id))
}

async fn list_all_proposals(call: Call<op::ListAllProposals>) -> Answer {
    let (limit, before) = (call.paging.limit(), call.paging.after()?);
    let op::AllProposalsQuery { channel, state: wanted } = call.query.clone();
    if let Some(channel) = &channel {
        call.require_channel(channel)?;
    }
    let query = ProposalQuery { channel, state: wanted, before, limit: limit + 1 };
    let mut found = call.store().await?.proposals(&query).await?.into_iter();
    let (mut items, mut changes, mut last) = (Vec::new(), 0, None);
    // A page has one proposal at least, unless all of it is hidden.
    for proposal in found.by_ref().take(limit) {
        last = Some(proposal.id);
        if call.sees(&proposal.channel) {
            changes += proposal.changes.len();
            items.push(call.shown(proposal));
        }
        if changes >= PAGE_CHANGES {
            break;
        }
    }
    let next = last.filter(|_| found.next().is_some()).map(|last| call.paging.next(last));
    call.answer(&Page { items, next })
}

async fn create_proposal(call: Call<op::CreateProposal>) -> Answer {
    let channel = &call.path.channel;
    let body: ProposalBody = call.body().await?;
    let roles = target_roles(&call, channel).await?;
    let status = if body.dry_run { StatusCode::OK } else { StatusCode::CREATED };
    let published = publish(&call, channel.clone(), body, None, &roles).await?;
    respond(&call, status, published).await
}

async fn get_proposal(call: Call<op::GetProposal>) -> Answer {
    let id = call.path.id;
    call.note_number("proposal", id);
    call.answer(&call.proposal(id).await?)
}

async fn get_contents(call: Call<op::GetContents>) -> Answer {
    let id = call.path.id;
    call.note_number("proposal", id);
    let (limit, after) = (call.paging.limit(), call.paging.after::<String>()?);
    let digest = call.proposal(id).await?.digest;
    let is_wanted = |path: &String| {
        after.as_ref().is_none_or(|after| path > after) && call.query.path.as_ref().is_none_or(|wanted| path == wanted)
    };
    let changed = call.store().await?.proposal_contents(id).await?;
    let mut changed = changed.into_iter().filter(|(path, ..)| is_wanted(path));
    let (mut items, mut bytes) = (Vec::new(), 0);
    // A page has one file at least.
    while bytes < PAGE_BYTES && items.len() < limit {
        let Some((path, before, after)) = changed.next() else { break };
        bytes += [&before, &after].into_iter().flatten().map(|content| content.len()).sum::<usize>();
        let [before, after] = [before, after].map(|content| content.map(|bytes| FileContent::of(&bytes)));
        items.push(ChangedContent { path, before, after });
    }
    let next = changed.next().and_then(|_| items.last()).map(|last| call.paging.next(&last.path));
    call.answer(&Contents { digest, items, next })
}

async fn replace_proposal(call: Call<op::ReplaceProposal>) -> Answer {
    let id = call.path.id;
    call.note_number("proposal", id);
    let body: ProposalBody = call.body().await?;
    let present = own_proposal(&call, id, &call.headers).await?;
    let roles = existing(&call, &present.channel).await?.policy.roles;
    let channel = present.channel.clone();
    let published = publish(&call, channel, body, Some(&present), &roles).await?;
    respond(&call, StatusCode::OK, published).await
}

async fn withdraw_proposal(call: Call<op::WithdrawProposal>) -> Answer {
    let id = call.path.id;
    call.note_number("proposal", id);
    own_proposal(&call, id, &call.headers).await?;
    let withdrawn = call.store().await?.withdraw(id, &call.actor()).await?;
    call.answer(&call.shown(withdrawn))
}

async fn review_proposal(call: Call<op::ReviewProposal>) -> Answer {
    let id = call.path.id;
    call.note_number("proposal", id);
    let body: NewReview = call.body().await?;
    let present = call.proposal(id).await?;
    check(&call.headers, &present, false)?;
    let roles = existing(&call, &present.channel).await?.policy.roles;
    call.require_role(&roles.review, "review")?;
    let (actor, checker) = (call.actor_under(&roles), call.checker());
    call.note("verdict", body.verdict.as_str());
    if !body.confirmed.is_empty() {
        call.note("confirmed", &body.confirmed.join(", "));
    }
    let reviewed = call.store().await?.review(id, &body, &actor, checker).await.map_err(stale)?;
    respond(&call, StatusCode::OK, reviewed).await
}

async fn publish_proposal(call: Call<op::PublishProposal>) -> Answer {
    let id = call.path.id;
    call.note_number("proposal", id);
    let body: PublishBody = call.body().await?;
    let present = call.proposal(id).await?;
    check(&call.headers, &present, false)?;
    let roles = existing(&call, &present.channel).await?.policy.roles;
    call.require_role(&roles.publish, "publish")?;
    check_emergency(&call, &roles, body.emergency.as_deref())?;
    let actor = Actor { may_publish: true, ..call.actor_under(&roles) };
    let (store, checker) = (call.store().await?, call.checker());
    let published = store.publish_proposal(id, Some(body.digest), body.emergency, &actor, checker).await;
    let published = published.map_err(stale)?;
    respond(&call, StatusCode::OK, published).await
}

fn stale(error: StoreError) -> Problem {
    match error {
        StoreError::Changed { .. } => Problem::new(
            StatusCode::CONFLICT,
            "stale-review",
            "The review is of other changes",
            "The proposal has changed since it was read: read it again, and review its present changes",
        ),
        error => error.into(),
    }
}

/// Checks `If-Match` against a proposal.
fn check(headers: &HeaderMap, proposal: &Proposal, is_required: bool) -> Result<(), Problem> {
    let (_, tag) = represent(proposal)?;
    etag::check_match(headers, Some(&tag), is_required)
}

/// Returns a proposal of the caller in the version that `If-Match` names. Four eyes would be two if someone else could
/// replace the changes of an author, and approve them.
async fn own_proposal(call: &Context, id: u64, headers: &HeaderMap) -> Result<Proposal, Problem> {
    let present = call.proposal(id).await?;
    if present.author != call.name() {
        let detail = format!("Proposal {id} is of another author; only the author can change or withdraw it");
        return Err(Problem::not_permitted("not-author", detail));
    }
    check(headers, &present, true)?;
    Ok(present)
}

/// Checks that a caller may pass over the policy, if there is a reason to.
fn check_emergency(call: &Context, roles: &PolicyRoles, reason: Option<&str>) -> Result<(), Problem> {
    let Some(reason) = reason else { return Ok(()) };
    call.require(&[Scope::Publish, Scope::Admin])?;
    call.require_role(&roles.publish, "publish")?;
    call.require_role(&roles.administer, "publish in an emergency")?;
    call.note("emergency", reason);
    Ok(())
}

async fn publish(
    call: &Context,
    channel: ChannelName,
    body: ProposalBody,
    replaced: Option<&Proposal>,
    roles: &PolicyRoles,
) -> Result<Published, Problem> {
    call.require_role(&roles.propose, "propose")?;
    check_emergency(call, roles, body.emergency.as_deref())?;
    let store = call.store().await?;
    let Changes { changes, memory: _memory } = changes(call, &store, &call.state.api.referred, body.changes).await?;
    let publish = Publish {
        channel,
        base: body.base,
        kind: RevisionKind::Publish,
        message: body.message,
        proposal: replaced.map(|proposal| proposal.id),
        expected: replaced.map(|proposal| proposal.digest),
        emergency: body.emergency,
        changes,
        dry_run: body.dry_run,
    };
    let (actor, checker) = (call.actor_under(roles), call.checker());
    Ok(store.publish(publish, &actor, checker).await?)
}

pub(super) async fn respond(call: &Context, status: StatusCode, mut published: Published) -> Result<Response, Problem> {
    published.proposal = call.shown(published.proposal);
    let proposal = &published.proposal;
    call.note("channel", proposal.channel.as_str());
    call.note_number("proposal", proposal.id);
    if let Some(revision) = proposal.revision {
        call.note_number("revision", revision);
    }
    let mut response = etag::tagged(status, &published, &represent(proposal)?.1)?;
    if status == StatusCode::CREATED
        && let Ok(location) = HeaderValue::try_from(format!("/api/v1/proposals/{}", proposal.id))
    {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}
