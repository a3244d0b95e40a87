//! The operations that the caller may use, each with the reason against it: the page shows them instead of hiding them.

use promptshelf_store::{Policy, Proposal, ProposalState, Reason, Review, Verdict};
use promptshelf_wire::{ChannelPermissions, Permission, ProposalPermissions, Scope, op};

use super::{
    ApiState,
    call::{Answer, Call, Context, Operations},
    channels::existing,
    comments,
};

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(channel_permissions).on(proposal_permissions)
}

async fn channel_permissions(call: Call<op::ChannelPermissions>) -> Answer {
    let channel = &call.path.channel;
    let roles = existing(&call, channel).await?.policy.roles;
    let permissions = ChannelPermissions {
        caller: call.name().to_owned(),
        propose: call.permission(&[Scope::Propose], &roles.propose, "propose"),
        review: call.permission(&[Scope::Review], &roles.review, "review"),
        publish: call.permission(&[Scope::Publish], &roles.publish, "publish"),
        administer: call.permission(&[Scope::Admin], &roles.administer, "administer it"),
    };
    call.answer(&permissions)
}

async fn proposal_permissions(call: Call<op::ProposalPermissions>) -> Answer {
    let id = call.path.id;
    call.note_number("proposal", id);
    let proposal = call.proposal(id).await?;
    let policy = existing(&call, &proposal.channel).await?.policy;
    call.answer(&of_proposal(&call, &proposal, &policy))
}

fn of_proposal(call: &Context, proposal: &Proposal, policy: &Policy) -> ProposalPermissions {
    let roles = &policy.roles;
    let caller = call.name().to_owned();
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
    let review = call.permission(&[Scope::Review], &roles.review, "review");
    let approve = if is_own && policy.four_eyes && review.allowed {
        let text = "Authors cannot approve their own proposals: the policy demands four eyes";
        Permission::refused(Reason::new("own-proposal", text))
    } else if has_approved(proposal, &caller) {
        Permission::refused(Reason::new("already-approved", "You have approved these changes"))
    } else if let Some(overtaken) =
        proposal.reasons.iter().find(|reason| is_overtaken(reason)).filter(|_| review.allowed)
    {
        Permission::refused(overtaken.clone())
    } else {
        review.clone()
    };
    let publish = call.permission(&[Scope::Publish], &roles.publish, "publish");
    let publish = match proposal.reasons_against(policy, &call.actor_under(roles)).as_slice() {
        [] => publish,
        reasons if publish.allowed => Permission::refused_for(reasons.to_vec(), Vec::new()),
        _ => publish,
    };
    let comment = if comments::may_review(call, &roles.review) {
        Permission::allowed()
    } else {
        call.permission(&[Scope::Read, Scope::Propose], &roles.propose, "comment as its authors")
    };
    ProposalPermissions {
        comment: if_open(comment),
        change: if_open(if_own(call.permission(&[Scope::Propose], &roles.propose, "propose"))),
        withdraw: if_open(if_own(call.permission(&[Scope::Propose], &[], "propose"))),
        approve: if_open(approve),
        reject: if_open(review),
        publish: if_open(publish),
        emergency: if_open(call.emergency(&roles.publish, &roles.administer)),
        caller,
    }
}

/// Whether the channel has changed so that no approval can publish a proposal as it is.
fn is_overtaken(reason: &Reason) -> bool {
    matches!(&*reason.code, "changed-since" | "policy-changed-since" | "rollout-stopped")
}

/// Whether a caller has approved exactly the present changes, the approval still counts, and no confirmation is missing.
fn has_approved(proposal: &Proposal, caller: &str) -> bool {
    let is_of_present = |review: &Review| review.verdict == Verdict::Approve && review.digest == proposal.digest;
    let counts = |review: &Review| is_of_present(review) && !review.lapsed && review.reviewer == caller;
    proposal.reviews.iter().any(counts) && !proposal.reasons.iter().any(is_confirmation)
}

/// Whether an effect has to be confirmed by name.
fn is_confirmation(reason: &Reason) -> bool {
    matches!(&*reason.code, "opening" | "breaking")
}

/// Whether a review of the caller is wanted: it would count and could publish, and the caller has not reviewed yet.
pub(super) fn is_review_wanted(call: &Context, proposal: &Proposal, policy: &Policy) -> bool {
    let caller = call.name().to_owned();
    let review = call.permission(&[Scope::Review], &policy.roles.review, "review");
    let needs_approval = policy.approvals > 0 || policy.four_eyes;
    proposal.state == ProposalState::Open
        && needs_approval
        && review.allowed
        && !proposal.is_by(&caller)
        && !has_approved(proposal, &caller)
        && !proposal.reasons.iter().any(is_overtaken)
}

impl Context {
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
