//! The operations that the caller may use, each with the reason against it: the page shows them instead of hiding them.

use axum::{extract::State, http::HeaderMap, response::Response};
use promptshelf_store::{ChannelName, Policy, Proposal, ProposalState, Reason, Verdict};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    channels::existing,
    comments, etag,
    operation::{ApiCaller, ApiState, Operation, Scope},
    problem::Problem,
    request::ApiPath,
};

/// Whether the caller may use an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Permission {
    /// Whether it would be accepted now.
    allowed: bool,
    /// The reason against it, for people; null if it is allowed.
    reason: Option<String>,
    /// The reasons with stable codes; empty if it is allowed.
    reasons: Vec<Reason>,
    /// The scopes that the caller would have to sign in for; empty if they are not the reason.
    scopes: Vec<&'static str>,
}

/// The permissions of the caller in a channel.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChannelPermissions {
    /// The name under which the caller's changes are recorded.
    caller: String,
    /// Proposals, rollbacks and promotions to the channel.
    propose: Permission,
    /// Reviews.
    review: Permission,
    /// Publishing of proposals that meet the policy, and changes of rollouts.
    publish: Permission,
    /// The policy itself.
    administer: Permission,
}

/// The permissions of the caller for a proposal as it is now.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProposalPermissions {
    /// The name under which the caller's changes are recorded.
    caller: String,
    /// Comments.
    comment: Permission,
    /// Other changes in place of the present ones.
    change: Permission,
    /// Withdrawal.
    withdraw: Permission,
    /// An approval.
    approve: Permission,
    /// A rejection.
    reject: Permission,
    /// Publishing by the policy.
    publish: Permission,
    /// Publishing past the policy, with a reason.
    emergency: Permission,
}

/// Returns the permissions of the caller in a channel
#[utoipa::path(get, path = "/channels/{channel}/permissions", tag = "channels",
    security(("token" = ["library:read"])), params(("channel" = ChannelName, Path)),
    responses((status = 200, body = ChannelPermissions), (status = 304)))]
pub(super) async fn channel_permissions(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin_on(&channel, caller.0, "api/permissions", &[Scope::Read])?;
    let answer = async {
        let roles = existing(&state, &channel).await?.policy.roles;
        let permissions = ChannelPermissions {
            caller: operation.name().to_owned(),
            propose: operation.permission(&[Scope::Propose], &roles.propose, "propose"),
            review: operation.permission(&[Scope::Review], &roles.review, "review"),
            publish: operation.permission(&[Scope::Publish], &roles.publish, "publish"),
            administer: operation.permission(&[Scope::Admin], &roles.administer, "administer it"),
        };
        etag::json(&headers, &permissions)
    }
    .await;
    Ok(operation.end(answer))
}

/// Returns the permissions of the caller for a proposal, each with the reason against it
#[utoipa::path(get, path = "/proposals/{id}/permissions", tag = "proposals", security(("token" = ["library:read"])),
    params(("id" = u64, Path)), responses((status = 200, body = ProposalPermissions), (status = 304)))]
pub(super) async fn proposal_permissions(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(id): ApiPath<u64>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller.0, "api/proposal-permissions", &[Scope::Read])?;
    operation.note_number("proposal", id);
    let answer = async {
        let proposal = state.proposal(&mut operation, id).await?;
        let policy = existing(&state, &proposal.channel).await?.policy;
        etag::json(&headers, &of_proposal(&operation, &proposal, &policy))
    }
    .await;
    Ok(operation.end(answer))
}

fn of_proposal(operation: &Operation, proposal: &Proposal, policy: &Policy) -> ProposalPermissions {
    let roles = &policy.roles;
    let caller = operation.name().to_owned();
    let is_own = proposal.is_by(&caller);
    let if_open = |permission: Permission| match proposal.state {
        ProposalState::Open => permission,
        state => {
            let text = format!("The proposal is {}", state.as_str());
            Permission::refused(Reason::new("proposal-closed", text).with("state", state.as_str()))
        }
    };
    let if_own = |permission: Permission| {
        if is_own { permission } else { Permission::refused(Reason::new("not-author", "Only its author can do this")) }
    };
    let review = operation.permission(&[Scope::Review], &roles.review, "review");
    let approve = if is_own && policy.four_eyes && review.allowed {
        let text = "Authors cannot approve their own proposals: the policy demands four eyes";
        Permission::refused(Reason::new("own-proposal", text))
    } else if has_approved(proposal, &caller) {
        Permission::refused(Reason::new("already-approved", "You have approved these changes"))
    } else {
        review.clone()
    };
    let publish = operation.permission(&[Scope::Publish], &roles.publish, "publish");
    let publish = match proposal.reasons_against(policy, &operation.actor_under(roles)).as_slice() {
        [] => publish,
        reasons if publish.allowed => Permission::refused_for(reasons.to_vec(), Vec::new()),
        _ => publish,
    };
    let comment = match comments::may_review(operation, &roles.review) {
        true => Permission::allowed(),
        false => operation.permission(&[Scope::Read, Scope::Propose], &roles.propose, "comment as its authors"),
    };
    ProposalPermissions {
        comment: if_open(comment),
        change: if_open(if_own(operation.permission(&[Scope::Propose], &roles.propose, "propose"))),
        withdraw: if_open(if_own(operation.permission(&[Scope::Propose], &[], "propose"))),
        approve: if_open(approve),
        reject: if_open(review),
        publish: if_open(publish),
        emergency: if_open(operation.emergency(&roles.publish, &roles.administer)),
        caller,
    }
}

/// Whether a caller has approved exactly the present changes.
fn has_approved(proposal: &Proposal, caller: &str) -> bool {
    proposal.reviews.iter().any(|review| {
        review.verdict == Verdict::Approve && review.digest == proposal.digest && review.reviewer == caller
    })
}

/// Whether a review of the caller is wanted: it would count, and the caller has not reviewed yet.
pub(super) fn is_review_wanted(operation: &Operation, proposal: &Proposal, policy: &Policy) -> bool {
    let caller = operation.name().to_owned();
    let review = operation.permission(&[Scope::Review], &policy.roles.review, "review");
    let needs_approval = policy.approvals > 0 || policy.four_eyes;
    proposal.state == ProposalState::Open
        && needs_approval
        && review.allowed
        && !proposal.is_by(&caller)
        && !has_approved(proposal, &caller)
}

impl Permission {
    fn allowed() -> Permission {
        Permission { allowed: true, reason: None, reasons: Vec::new(), scopes: Vec::new() }
    }

    fn refused(reason: Reason) -> Permission {
        Permission::refused_for(vec![reason], Vec::new())
    }

    fn refused_for(reasons: Vec<Reason>, scopes: Vec<&'static str>) -> Permission {
        let texts: Vec<&str> = reasons.iter().map(|reason| reason.text.as_str()).collect();
        Permission { allowed: false, reason: Some(texts.join("; ")), reasons, scopes }
    }
}

impl Operation {
    fn permission(&self, scopes: &[Scope], roles: &[String], what: &str) -> Permission {
        let missing: Vec<&'static str> =
            scopes.iter().filter(|scope| !self.has(**scope)).map(|scope| scope.as_str()).collect();
        if !missing.is_empty() {
            let text = format!("It needs the scope {}", missing.join(" and "));
            let reason = Reason::new("insufficient-scope", text).with("scopes", missing.join(", "));
            return Permission::refused_for(vec![reason], missing);
        }
        self.missing_role(roles, what).map_or_else(Permission::allowed, Permission::refused)
    }

    fn emergency(&self, publish: &[String], administer: &[String]) -> Permission {
        let permission = self.permission(&[Scope::Publish, Scope::Admin], publish, "publish");
        match self.missing_role(administer, "publish in an emergency") {
            Some(reason) if permission.allowed => Permission::refused(reason),
            _ => permission,
        }
    }
}
