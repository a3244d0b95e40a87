//! The decision whether a proposal can be published.

use crate::{
    StoreError,
    check::{CheckReport, CheckSummary},
    draft::{Draft, must_be_open},
    input::same_name,
    model::{CheckLevel, Policy, Proposal, ProposalState, Verdict},
    publish::changed,
    reason::Reason,
};

/// The largest number of paths that a sentence names.
const MAX_PATHS: usize = 5;

/// What the person who proposes, approves or publishes may do and wants.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Act<'a> {
    /// Whether a proposal that meets the policy is published.
    pub(crate) may_publish: bool,
    /// The reason to pass over the policy.
    pub(crate) emergency: Option<&'a str>,
}

/// What becomes of an open proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision<'a> {
    /// It waits for the conditions that it lacks, or for someone who may publish.
    Wait,
    /// It becomes a revision.
    Publish {
        /// The reviewers whose approvals count.
        approved_by: Vec<String>,
        /// The reason to pass over the policy; `None` if it is met.
        emergency: Option<&'a str>,
    },
}

/// Decides about an open proposal with its missing conditions.
pub(crate) fn decide<'a>(
    policy: &Policy,
    proposal: &Proposal,
    act: &Act<'a>,
    report: &CheckReport,
) -> Result<Decision<'a>, StoreError> {
    let is_met = proposal.reasons.is_empty();
    if !act.may_publish || !(is_met || act.emergency.is_some()) {
        return Ok(Decision::Wait);
    }
    if report.is_unloadable {
        let first = report.findings.first().map_or("", String::as_str);
        return Err(StoreError::invalid(format!(
            "no server could load these files, so they are not published: {first}"
        )));
    }
    let emergency = act.emergency.filter(|_| !is_met);
    Ok(Decision::Publish { approved_by: approvers(policy, proposal), emergency })
}

/// Fails unless a draft may take the place of the changes of a proposal.
pub(crate) fn may_replace(present: &Proposal, draft: &Draft) -> Result<(), StoreError> {
    must_be_open(present)?;
    let Proposal { id, channel, author, .. } = present;
    if *channel != draft.channel {
        return Err(StoreError::state(format!("proposal {id} is one of the channel `{channel}`")));
    }
    if !same_name(author, &draft.author) {
        return Err(StoreError::state(format!("only its author {author} can change proposal {id}")));
    }
    if draft.expected.is_some_and(|expected| expected != present.digest) {
        return Err(changed(*id));
    }
    Ok(())
}

/// Returns the missing conditions of an open proposal. `outdated` are the files that the channel has changed since.
pub(crate) fn lacks(policy: &Policy, proposal: &Proposal, outdated: &[String]) -> Vec<Reason> {
    if proposal.state != ProposalState::Open {
        return Vec::new();
    }
    let mut lacks = Vec::new();
    if !outdated.is_empty() {
        let paths = paths(outdated);
        let text = format!("the channel has changed {paths} since: propose again, based on its newest revision");
        lacks.push(Reason::new("changed-since", text).with("paths", paths));
    }
    lacks.extend(checks(policy, &proposal.checks));
    let needed =
        (policy.approvals.max(u32::from(policy.four_eyes)) as usize).saturating_sub(approvers(policy, proposal).len());
    if needed > 0 {
        let who =
            if policy.four_eyes { format!(" by reviewers other than {}", proposal.author) } else { String::new() };
        let text = format!("{needed} more {} needed{who}", if needed == 1 { "approval is" } else { "approvals are" });
        let reason = Reason::new(if policy.four_eyes { "approvals-by-others" } else { "approvals" }, text);
        lacks.push(reason.with("n", needed).with("author", &proposal.author));
    }
    lacks
}

/// Returns the reviewers whose approvals of the present changes count, in the order of their reviews.
pub(crate) fn approvers(policy: &Policy, proposal: &Proposal) -> Vec<String> {
    let mut approvers: Vec<String> = Vec::new();
    for review in &proposal.reviews {
        let counts = review.verdict == Verdict::Approve
            && review.digest == proposal.digest
            && !(policy.four_eyes && same_name(&review.reviewer, &proposal.author));
        if counts && !approvers.iter().any(|name| same_name(name, &review.reviewer)) {
            approvers.push(review.reviewer.clone());
        }
    }
    approvers
}

fn checks(policy: &Policy, found: &CheckSummary) -> Vec<Reason> {
    let mut lacks = Vec::new();
    let count = |number: u64, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    if policy.checks != CheckLevel::Off && found.errors > 0 {
        let text = format!("the check found {}", count(found.errors, "error"));
        lacks.push(Reason::new("check-errors", text).with("n", found.errors));
    }
    if policy.checks == CheckLevel::Warnings && found.warnings > 0 {
        let text = format!("the check found {}", count(found.warnings, "warning"));
        lacks.push(Reason::new("check-warnings", text).with("n", found.warnings));
    }
    match found.tests {
        Some((passed, failed)) if policy.tests && failed > 0 => {
            let text = format!("{failed} of {} failed", count(passed + failed, "prompt test"));
            lacks.push(Reason::new("tests-failed", text).with("failed", failed).with("n", passed + failed));
        }
        None if policy.tests => lacks.push(Reason::new("tests-not-run", "the prompt tests have not run")),
        _ => {}
    }
    lacks
}

fn paths(paths: &[String]) -> String {
    let named: Vec<String> = paths.iter().take(MAX_PATHS).map(|path| format!("`{path}`")).collect();
    match paths.len().saturating_sub(MAX_PATHS) {
        0 => named.join(", "),
        more => format!("{} and {more} more files", named.join(", ")),
    }
}
