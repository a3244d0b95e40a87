//! Proposals, their contents, and reviews.

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use promptshelf_store::{
    Actor, ChannelName, NewReview, PolicyRoles, Proposal, ProposalQuery, Publish, Published, RevisionKind, StoreError,
};

use super::{
    channels::{existing, target_roles},
    content::{Changes, FileContent, changes},
    etag::{self, represent},
    model::{
        AllProposals, AllProposalsQuery, ChangedContent, Contents, ContentsQuery, Outcome, ProposalBody, Proposals,
        ProposalsQuery, PublishBody, ReviewBody,
    },
    operation::{ApiCaller, ApiState, Operation, Scope},
    problem::Problem,
    request::{ApiPath, ApiQuery, Unread, page_size},
};

/// The bytes after which a page of contents ends.
const PAGE_BYTES: usize = 4 << 20;

const PAGE_CHANGES: usize = 20_000;

/// Lists the proposals of a channel, the newest first
#[utoipa::path(get, path = "/channels/{channel}/proposals", tag = "proposals", security(("token" = ["library:read"])),
    params(("channel" = ChannelName, Path), ProposalsQuery), responses((status = 200, body = Proposals), (status = 304)))]
pub(super) async fn list_proposals(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    ApiQuery(query): ApiQuery<ProposalsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin_on(&channel, caller.0, "api/proposals", &[Scope::Read])?;
    let answer = async {
        let limit = page_size(query.limit)?;
        existing(&state, &channel).await?;
        let ProposalsQuery { state: wanted, before, .. } = query;
        // One more than a page, to know whether there is another one.
        let query = ProposalQuery { channel: Some(channel), state: wanted, before, limit: limit + 1 };
        let mut proposals = state.store().await?.proposals(&query).await?;
        let has_more = proposals.len() > limit;
        proposals.truncate(limit);
        let next = proposals.last().map(|last| last.id).filter(|_| has_more);
        etag::json(&headers, &Proposals { proposals: proposals.into_iter().map(Into::into).collect(), next })
    }
    .await;
    Ok(operation.end(answer))
}

/// Lists the proposals of all channels with their changes and reviews, the newest first
#[utoipa::path(get, path = "/proposals", tag = "proposals", security(("token" = ["library:read"])),
    params(AllProposalsQuery), responses((status = 200, body = AllProposals), (status = 304)))]
pub(super) async fn list_all_proposals(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiQuery(query): ApiQuery<AllProposalsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin(caller.0, "api/all-proposals", &[Scope::Read])?;
    let answer = async {
        let limit = page_size(query.limit)?;
        let AllProposalsQuery { channel, state: wanted, before, .. } = query;
        if let Some(channel) = &channel {
            operation.require_channel(channel)?;
        }
        let query = ProposalQuery { channel, state: wanted, before, limit: limit + 1 };
        let mut found = state.store().await?.proposals(&query).await?.into_iter();
        let (mut proposals, mut changes, mut last) = (Vec::new(), 0, None);
        // A page has one proposal at least, unless all of it is hidden.
        for proposal in found.by_ref().take(limit) {
            last = Some(proposal.id);
            if operation.sees(&proposal.channel) {
                changes += proposal.changes.len();
                proposals.push(proposal);
            }
            if changes >= PAGE_CHANGES {
                break;
            }
        }
        let next = last.filter(|_| found.next().is_some());
        etag::json(&headers, &AllProposals { proposals, next })
    }
    .await;
    Ok(operation.end(answer))
}

/// Proposes changes; with the scope `library:publish` they are published at once if the policy is met, and with
/// `library:admin` the channel is made if it does not exist
#[utoipa::path(post, path = "/channels/{channel}/proposals", tag = "proposals",
    security(("token" = ["library:propose"])), params(("channel" = ChannelName, Path)), request_body = ProposalBody,
    responses((status = 200, body = Outcome, description = "The result of a dry run"), (status = 201, body = Outcome),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "Someone else changed these files since the base")))]
pub(super) async fn create_proposal(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin_on(&channel, caller.0, "api/propose", &[Scope::Propose])?;
    let answer = async {
        let body: ProposalBody = request.json(&state.endpoint).await?;
        let roles = target_roles(&state, &operation, &channel).await?;
        let status = if body.dry_run { StatusCode::OK } else { StatusCode::CREATED };
        let published = publish(&state, &mut operation, channel, body, None, &roles).await?;
        respond(&mut operation, status, published)
    }
    .await;
    Ok(operation.end(answer))
}

/// Returns a proposal
#[utoipa::path(get, path = "/proposals/{id}", tag = "proposals", security(("token" = ["library:read"])),
    params(("id" = u64, Path)), responses((status = 200, body = Proposal), (status = 304)))]
pub(super) async fn get_proposal(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(id): ApiPath<u64>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller.0, "api/proposal", &[Scope::Read])?;
    operation.note_number("proposal", id);
    let answer = async { etag::json(&headers, &state.proposal(&mut operation, id).await?) }.await;
    Ok(operation.end(answer))
}

/// Returns the contents of a proposal's changes, before and after
#[utoipa::path(get, path = "/proposals/{id}/contents", tag = "proposals", security(("token" = ["library:read"])),
    params(("id" = u64, Path), ContentsQuery), responses((status = 200, body = Contents), (status = 304)))]
pub(super) async fn get_contents(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(id): ApiPath<u64>,
    ApiQuery(query): ApiQuery<ContentsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller.0, "api/contents", &[Scope::Read])?;
    operation.note_number("proposal", id);
    let answer = async {
        let limit = page_size(query.limit)?;
        let digest = state.proposal(&mut operation, id).await?.digest;
        let after = query.after.as_deref();
        let changed = state.store().await?.proposal_contents(id).await?;
        let mut changed = changed.into_iter().filter(|(path, ..)| after.is_none_or(|after| path.as_str() > after));
        let (mut files, mut bytes) = (Vec::new(), 0);
        // A page has one file at least.
        while bytes < PAGE_BYTES && files.len() < limit {
            let Some((path, before, after)) = changed.next() else { break };
            bytes += [&before, &after].into_iter().flatten().map(|content| content.len()).sum::<usize>();
            let [before, after] = [before, after].map(|content| content.map(|bytes| FileContent::of(&bytes)));
            files.push(ChangedContent { path, before, after });
        }
        let next = changed.next().and_then(|_| files.last()).map(|last| last.path.clone());
        etag::json(&headers, &Contents { digest, files, next })
    }
    .await;
    Ok(operation.end(answer))
}

/// Replaces the changes of an open proposal of the caller; its approvals no longer count
#[utoipa::path(put, path = "/proposals/{id}", tag = "proposals", security(("token" = ["library:propose"])),
    params(("id" = u64, Path), ("If-Match" = String, Header, description = "The ETag of the proposal")),
    request_body = ProposalBody,
    responses((status = 200, body = Outcome),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "The proposal is not open, or someone else changed these files"),
        (status = 412, body = Problem, content_type = "application/problem+json", description = "The proposal has changed"),
        (status = 428, body = Problem, content_type = "application/problem+json", description = "`If-Match` is missing")))]
pub(super) async fn replace_proposal(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(id): ApiPath<u64>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller.0, "api/replace-proposal", &[Scope::Propose])?;
    operation.note_number("proposal", id);
    let answer = async {
        let headers = request.headers().clone();
        let body: ProposalBody = request.json(&state.endpoint).await?;
        let present = own_proposal(&state, &mut operation, id, &headers).await?;
        let roles = existing(&state, &present.channel).await?.policy.roles;
        let channel = present.channel.clone();
        let published = publish(&state, &mut operation, channel, body, Some(&present), &roles).await?;
        respond(&mut operation, StatusCode::OK, published)
    }
    .await;
    Ok(operation.end(answer))
}

/// Withdraws an open proposal of the caller
#[utoipa::path(delete, path = "/proposals/{id}", tag = "proposals", security(("token" = ["library:propose"])),
    params(("id" = u64, Path), ("If-Match" = String, Header, description = "The ETag of the proposal")),
    responses((status = 200, body = Proposal),
        (status = 412, body = Problem, content_type = "application/problem+json", description = "The proposal has changed"),
        (status = 428, body = Problem, content_type = "application/problem+json", description = "`If-Match` is missing")))]
pub(super) async fn withdraw_proposal(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(id): ApiPath<u64>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller.0, "api/withdraw", &[Scope::Propose])?;
    operation.note_number("proposal", id);
    let answer = async {
        own_proposal(&state, &mut operation, id, &headers).await?;
        let withdrawn = state.store().await?.withdraw(id, &operation.actor()).await?;
        etag::changed(StatusCode::OK, &withdrawn, &withdrawn)
    }
    .await;
    Ok(operation.end(answer))
}

/// Reviews exactly the changes with this digest; with the scope `library:publish` an approval that meets the policy
/// publishes them
#[utoipa::path(post, path = "/proposals/{id}/reviews", tag = "proposals", security(("token" = ["library:review"])),
    params(("id" = u64, Path), ("If-Match" = Option<String>, Header, description = "The ETag of the proposal")),
    request_body = ReviewBody,
    responses((status = 200, body = Outcome),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "The proposal has other changes by now, or is not open, or the policy refuses this reviewer")))]
pub(super) async fn review_proposal(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(id): ApiPath<u64>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller.0, "api/review", &[Scope::Review])?;
    operation.note_number("proposal", id);
    let answer = async {
        let headers = request.headers().clone();
        let body: ReviewBody = request.json(&state.endpoint).await?;
        let present = state.proposal(&mut operation, id).await?;
        check(&headers, &present, false)?;
        let roles = existing(&state, &present.channel).await?.policy.roles;
        operation.require_role(&roles.review, "review")?;
        let (actor, checker) = (operation.actor_under(&roles), state.checker(&operation));
        operation.note("verdict", body.verdict.as_str());
        if !body.confirmed.is_empty() {
            operation.note("confirmed", &body.confirmed.join(", "));
        }
        let ReviewBody { verdict, digest, note, confirmed } = body;
        let review = NewReview { verdict, digest, note, confirmed };
        let reviewed = state.store().await?.review(id, &review, &actor, checker).await.map_err(stale)?;
        respond(&mut operation, StatusCode::OK, reviewed)
    }
    .await;
    Ok(operation.end(answer))
}

/// Publishes exactly the changes with this digest, if they meet the policy, or with a reason in any case
#[utoipa::path(post, path = "/proposals/{id}/publish", tag = "proposals", security(("token" = ["library:publish"])),
    params(("id" = u64, Path), ("If-Match" = Option<String>, Header, description = "The ETag of the proposal")),
    request_body = PublishBody,
    responses((status = 200, body = Outcome),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "The policy is not met, the proposal is not open, or someone else changed these files")))]
pub(super) async fn publish_proposal(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(id): ApiPath<u64>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller.0, "api/publish", &[Scope::Publish])?;
    operation.note_number("proposal", id);
    let answer = async {
        let headers = request.headers().clone();
        let body: PublishBody = request.json(&state.endpoint).await?;
        let present = state.proposal(&mut operation, id).await?;
        check(&headers, &present, false)?;
        let roles = existing(&state, &present.channel).await?.policy.roles;
        operation.require_role(&roles.publish, "publish")?;
        check_emergency(&mut operation, &roles, body.emergency.as_deref())?;
        let actor = Actor { may_publish: true, ..operation.actor_under(&roles) };
        let (store, checker) = (state.store().await?, state.checker(&operation));
        let published = store.publish_proposal(id, Some(body.digest), body.emergency, &actor, checker).await;
        let published = published.map_err(stale)?;
        respond(&mut operation, StatusCode::OK, published)
    }
    .await;
    Ok(operation.end(answer))
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
async fn own_proposal(
    state: &ApiState,
    operation: &mut Operation,
    id: u64,
    headers: &HeaderMap,
) -> Result<Proposal, Problem> {
    let present = state.proposal(operation, id).await?;
    if present.author != operation.name() {
        let detail = format!("Proposal {id} is of another author; only the author can change or withdraw it");
        return Err(Problem::not_permitted("not-author", detail));
    }
    check(headers, &present, true)?;
    Ok(present)
}

/// Checks that a caller may pass over the policy, if there is a reason to.
fn check_emergency(operation: &mut Operation, roles: &PolicyRoles, reason: Option<&str>) -> Result<(), Problem> {
    let Some(reason) = reason else { return Ok(()) };
    operation.require(&[Scope::Publish, Scope::Admin])?;
    operation.require_role(&roles.publish, "publish")?;
    operation.require_role(&roles.administer, "publish in an emergency")?;
    operation.note("emergency", reason);
    Ok(())
}

async fn publish(
    state: &ApiState,
    operation: &mut Operation,
    channel: ChannelName,
    body: ProposalBody,
    replaced: Option<&Proposal>,
    roles: &PolicyRoles,
) -> Result<Published, Problem> {
    operation.require_role(&roles.propose, "propose")?;
    check_emergency(operation, roles, body.emergency.as_deref())?;
    let store = state.store().await?;
    let Changes { changes, memory: _memory } = changes(operation, &store, &state.api.referred, body.changes).await?;
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
    let (actor, checker) = (operation.actor_under(roles), state.checker(operation));
    Ok(store.publish(publish, &actor, checker).await?)
}

pub(super) fn respond(
    operation: &mut Operation,
    status: StatusCode,
    published: Published,
) -> Result<Response, Problem> {
    let outcome = Outcome::from(published);
    let proposal = &outcome.proposal;
    operation.note("channel", proposal.channel.as_str());
    operation.note_number("proposal", proposal.id);
    if let Some(revision) = proposal.revision {
        operation.note_number("revision", revision);
    }
    let mut response = etag::changed(status, &outcome, proposal)?;
    if status == StatusCode::CREATED
        && let Ok(location) = HeaderValue::try_from(format!("/api/v1/proposals/{}", proposal.id))
    {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}
