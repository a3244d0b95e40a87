//! The decision whether a proposal can be published, from values alone.

use std::collections::HashSet;

use crate::{
    StoreError,
    check::{CheckReport, CheckSummary},
    draft::{Draft, must_be_open},
    effect::{Effect, EffectImpact},
    input::{has_mixed_scripts, looks_like, same_name},
    model::{Actor, CheckLevel, NewReview, Policy, Proposal, ProposalState, Review, Verdict},
    publish::changed,
    reason::Reason,
};

/// The code of a reason: an opening that nobody has confirmed.
pub(crate) const OPENING: &str = "opening";

/// The code of a reason: a breaking change that nobody has confirmed.
const BREAKING: &str = "breaking";

const SHORT: usize = 8;

const MAX_EFFECTS: usize = 20;

const MAX_PATHS: usize = 5;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Act<'a> {
    pub(crate) may_publish: bool,
    /// Whether openings need no confirmation, where the policy demands no approvals.
    pub(crate) may_administer: bool,
    pub(crate) emergency: Option<&'a str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision<'a> {
    Wait,
    Publish(Permit<'a>),
}

/// Why a proposal may be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permit<'a> {
    /// The reviewers whose approvals count.
    pub(crate) approved_by: Vec<String>,
    /// The reason to pass over the policy; `None` if it is met.
    pub(crate) emergency: Option<&'a str>,
}

pub(crate) fn decide<'a>(
    policy: &Policy,
    proposal: &Proposal,
    act: &Act<'a>,
    report: &CheckReport,
) -> Result<Decision<'a>, StoreError> {
    let is_met = unmet(policy, &proposal.reasons, act).next().is_none();
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
    Ok(Decision::Publish(Permit { approved_by: approvers(policy, proposal), emergency }))
}

pub(crate) fn unmet<'r>(policy: &Policy, reasons: &'r [Reason], act: &Act<'_>) -> impl Iterator<Item = &'r Reason> {
    let is_trusted = act.may_administer && !asks_for_approvals(policy);
    reasons.iter().filter(move |reason| !(is_trusted && reason.code == OPENING))
}

pub(crate) fn asks_for_approvals(policy: &Policy) -> bool {
    policy.approvals > 0 || policy.four_eyes
}

/// Returns the conditions that a policy loosens, such as `approvals`, by their options of `promptshelf policy`.
#[must_use]
pub fn loosened(before: &Policy, after: &Policy) -> Vec<&'static str> {
    let level = |policy: &Policy| match policy.checks {
        CheckLevel::Off => 0,
        CheckLevel::Errors => 1,
        CheckLevel::Warnings => 2,
    };
    // An empty list permits every role.
    let is_widened = |before: &[String], after: &[String]| {
        !before.is_empty() && (after.is_empty() || after.iter().any(|role| !before.contains(role)))
    };
    let (old, new) = (&before.roles, &after.roles);
    let conditions = [
        ("approvals", after.approvals < before.approvals),
        ("four-eyes", before.four_eyes && !after.four_eyes),
        ("checks", level(after) < level(before)),
        ("tests", before.tests && !after.tests),
        ("evaluation", before.evaluations.iter().any(|name| !after.evaluations.contains(name))),
        ("no-regression", before.no_regression && !after.no_regression),
        ("breaking", before.no_breaking && !after.no_breaking),
        (
            "roles",
            is_widened(&old.propose, &new.propose)
                || is_widened(&old.review, &new.review)
                || is_widened(&old.publish, &new.publish)
                || is_widened(&old.administer, &new.administer),
        ),
    ];
    conditions.into_iter().filter(|(_, is_loosened)| *is_loosened).map(|(name, _)| name).collect()
}

/// Returns whether some who may review under a policy may not under another one. An empty list permits every role.
pub(crate) fn narrows_review(before: &Policy, after: &Policy) -> bool {
    let (before, after) = (&before.roles.review, &after.roles.review);
    !after.is_empty() && (before.is_empty() || before.iter().any(|role| !after.contains(role)))
}

/// Fails unless an actor may give a review.
pub(crate) fn may_review(
    policy: &Policy,
    proposal: &Proposal,
    new: &NewReview,
    actor: &Actor,
) -> Result<(), StoreError> {
    if new.verdict == Verdict::Reject {
        return Ok(());
    }
    let is_own = proposal.is_by(&actor.name);
    if is_own && policy.four_eyes {
        let text = if proposal.creators.is_empty() {
            "authors cannot approve their own proposals".to_owned()
        } else {
            format!("who created the token of {} cannot approve its proposals", proposal.author)
        };
        let reason = Reason::new("own-proposal", text);
        return Err(StoreError::policy(vec![reason]));
    }
    for name in &new.confirmed {
        let Some(effect) = proposal.effects.iter().find(|effect| effect.name == *name) else {
            let id = proposal.id;
            let names: Vec<String> = proposal.effects.iter().map(|effect| format!("`{}`", effect.name)).collect();
            let known = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            return Err(StoreError::invalid(format!(
                "proposal {id} does not have the effect `{name}`: it has {known}"
            )));
        };
        if effect.impact == EffectImpact::Opening && is_own && !actor.may_administer {
            let text = format!("`{name}` opens something: someone else has to confirm it, or an administrator");
            return Err(StoreError::policy(vec![Reason::new("own-opening", text).with("name", name)]));
        }
    }
    Ok(())
}

/// Fails unless a draft may take the place of the changes of a proposal.
pub(crate) fn may_replace(present: &Proposal, draft: &Draft) -> Result<(), StoreError> {
    must_be_open(present)?;
    let Proposal { id, channel, author, .. } = present;
    if present.policy.is_some() {
        return Err(StoreError::state(format!(
            "proposal {id} is about the policy: withdraw it, and propose another one"
        )));
    }
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
    match &proposal.policy {
        Some(proposed) if proposed.before != *policy => {
            let text = "the policy has changed since: propose the change again";
            lacks.push(Reason::new("policy-changed-since", text));
        }
        Some(_) => {}
        None => lacks.extend(checks(policy, &proposal.checks)),
    }
    let needed =
        (policy.approvals.max(u32::from(policy.four_eyes)) as usize).saturating_sub(approvers(policy, proposal).len());
    if needed > 0 {
        let own = || [std::slice::from_ref(&proposal.author), &proposal.creators[..]].concat().join(", ");
        let who = if policy.four_eyes { format!(" by reviewers other than {}", own()) } else { String::new() };
        let text = format!("{needed} more {} needed{who}", if needed == 1 { "approval is" } else { "approvals are" });
        let reason = Reason::new(if policy.four_eyes { "approvals-by-others" } else { "approvals" }, text);
        lacks.push(reason.with("n", needed).with("author", &proposal.author));
        let mut lapsed: Vec<&str> = Vec::new();
        for review in of_present_changes(proposal).filter(|review| review.lapsed) {
            if !lapsed.contains(&&*review.reviewer) {
                lapsed.push(&review.reviewer);
            }
        }
        if !lapsed.is_empty() {
            let names = lapsed.join(", ");
            let text = format!(
                "approvals from before a change of the roles that may review do not count: those of {names} have to be given again"
            );
            lacks.push(Reason::new("approvals-lapsed", text).with("names", names));
        }
    }
    lacks.extend(unconfirmed(policy, proposal));
    lacks
}

/// Returns the effects that an approval has to confirm by name, and that none has confirmed.
fn unconfirmed(policy: &Policy, proposal: &Proposal) -> Vec<Reason> {
    let confirmed: HashSet<&str> =
        counting(policy, proposal).flat_map(|review| &review.confirmed).map(String::as_str).collect();
    let is_missing = |effect: &&Effect| must_be_confirmed(policy, effect) && !confirmed.contains(effect.name.as_str());
    let missing: Vec<&Effect> = proposal.effects.iter().filter(is_missing).collect();
    let mut reasons: Vec<Reason> =
        missing.iter().take(MAX_EFFECTS).map(|effect| confirmation(proposal, effect)).collect();
    let more = missing.len() - reasons.len();
    if more > 0 {
        let code = if missing[MAX_EFFECTS].impact == EffectImpact::Opening { OPENING } else { BREAKING };
        let text = format!("{more} more effects have to be confirmed by name");
        reasons.push(Reason::new(code, text).with("n", more));
    }
    reasons
}

/// Returns whether an approval has to name an effect.
pub(crate) fn must_be_confirmed(policy: &Policy, effect: &Effect) -> bool {
    effect.impact == EffectImpact::Opening || policy.no_breaking
}

fn confirmation(proposal: &Proposal, effect: &Effect) -> Reason {
    let Effect { impact, name, text, .. } = effect;
    let (code, who) = match impact {
        EffectImpact::Opening => (OPENING, "someone else who reviews it, or who may administer the channel,"),
        EffectImpact::Breaking => (BREAKING, "a reviewer"),
    };
    let how = match proposal.id {
        // The proposal of a dry run has no number.
        0 => String::new(),
        id => {
            let digest: String = proposal.digest.to_string().chars().take(SHORT).collect();
            format!(": `promptshelf approve {id} --digest {digest} --confirm {name}`")
        }
    };
    let sentence = format!("{text}; {who} has to confirm `{name}`{how}");
    Reason::new(code, sentence).with("name", name).with("effect", text)
}

pub(crate) fn warnings(proposal: &Proposal) -> Vec<Reason> {
    let mut names: Vec<&str> = vec![&proposal.author];
    for review in proposal.reviews.iter().filter(|review| review.digest == proposal.digest) {
        if !names.contains(&review.reviewer.as_str()) {
            names.push(&review.reviewer);
        }
    }
    let mixed = names.iter().filter(|name| has_mixed_scripts(name)).map(|name| {
        let text = format!("the name `{name}` mixes letters of several scripts: is it the person that it seems to be?");
        Reason::new("mixed-scripts", text).with("name", name)
    });
    let mut warnings: Vec<Reason> = mixed.collect();
    for (index, one) in names.iter().enumerate() {
        for other in names[index + 1..].iter().filter(|other| looks_like(one, other)) {
            let text = format!("`{one}` and `{other}` are different names that look alike: are they two people?");
            warnings.push(Reason::new("similar-names", text).with("name", one).with("other", other));
        }
    }
    warnings
}

/// Returns the reviewers whose approvals of the present changes count, in the order of their reviews.
pub(crate) fn approvers(policy: &Policy, proposal: &Proposal) -> Vec<String> {
    let mut approvers: Vec<String> = Vec::new();
    for review in counting(policy, proposal) {
        if !approvers.iter().any(|name| same_name(name, &review.reviewer)) {
            approvers.push(review.reviewer.clone());
        }
    }
    approvers
}

/// Returns the approvals of the present changes that count.
fn counting<'p>(policy: &Policy, proposal: &'p Proposal) -> impl Iterator<Item = &'p Review> {
    let four_eyes = policy.four_eyes;
    let counts = move |review: &&Review| !(review.lapsed || four_eyes && proposal.is_by(&review.reviewer));
    of_present_changes(proposal).filter(counts)
}

fn of_present_changes(proposal: &Proposal) -> impl Iterator<Item = &Review> {
    let is_of = |review: &&Review| review.verdict == Verdict::Approve && review.digest == proposal.digest;
    proposal.reviews.iter().filter(is_of)
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

#[cfg(test)]
mod tests;
