//! The decision to publish, as tables.

use jiff::Timestamp;

use super::*;
use crate::model::{Digest, PolicyRoles, RevisionKind};

fn proposal(effects: Vec<Effect>, reviews: &[(&str, &[&str])]) -> Proposal {
    let digest = Digest::of(b"changes");
    let review = |(name, confirmed): &(&str, &[&str])| Review {
        reviewer: (*name).to_owned(),
        verdict: Verdict::Approve,
        digest,
        note: String::new(),
        confirmed: confirmed.iter().map(|name| (*name).to_owned()).collect(),
        lapsed: false,
        at: Timestamp::UNIX_EPOCH,
    };
    Proposal {
        id: 1,
        channel: crate::ChannelName::production(),
        base: 1,
        kind: RevisionKind::Publish,
        message: "m".to_owned(),
        author: "ada".to_owned(),
        creators: Vec::new(),
        state: ProposalState::Open,
        digest,
        at: Timestamp::UNIX_EPOCH,
        changes: Vec::new(),
        reviews: reviews.iter().map(review).collect(),
        checks: CheckSummary::default(),
        findings: Vec::new(),
        effects,
        policy: None,
        source: None,
        warnings: Vec::new(),
        revision: None,
        lacks: Vec::new(),
        reasons: Vec::new(),
    }
}

fn effect(impact: EffectImpact, name: &str) -> Effect {
    Effect { impact, name: name.to_owned(), text: format!("about {name}"), prompt: None, calls: None }
}

fn codes(policy: &Policy, proposal: &Proposal) -> Vec<String> {
    lacks(policy, proposal, &[]).into_iter().map(|reason| reason.code.into_owned()).collect()
}

// req: S-290
#[test]
fn openings_are_confirmed_by_name_or_need_the_right_to_administer() {
    let opening = || vec![effect(EffectImpact::Opening, "access-opened:secret")];
    let (none, one, eyes) = (
        Policy::default(),
        Policy { approvals: 1, ..Policy::default() },
        Policy { four_eyes: true, ..Policy::default() },
    );
    let name: &[&str] = &["access-opened:secret"];
    for (policy, reviews, may_administer, is_published) in [
        (&none, &[][..], false, false),
        (&none, &[], true, true),
        (&none, &[("ben", name)], false, true),
        (&none, &[("ben", &[][..])], false, false),
        (&one, &[("ben", &[][..])], true, false),
        (&one, &[("ben", name)], false, true),
        (&eyes, &[("ada", name), ("ben", &[][..])], true, false),
        (&eyes, &[("ben", name)], false, true),
    ] {
        let mut proposal = proposal(opening(), reviews);
        let reasons = lacks(policy, &proposal, &[]);
        proposal.set_reasons(reasons);
        let act = Act { may_publish: true, may_administer, emergency: None };
        let decision = decide(policy, &proposal, &act, &CheckReport::default()).unwrap();
        assert_eq!(decision != Decision::Wait, is_published, "{policy:?} {reviews:?} {may_administer}");
        let act = Act { emergency: Some("now"), ..act };
        let decision = decide(policy, &proposal, &act, &CheckReport::default()).unwrap();
        let Decision::Publish(Permit { emergency, .. }) = decision else { panic!("{decision:?}") };
        assert_eq!(emergency.is_none(), is_published, "an emergency is recorded only where it was needed");
    }
}

// req: S-295
#[test]
fn breaking_changes_need_a_name_only_if_the_policy_says_so() {
    let strict = Policy { no_breaking: true, ..Policy::default() };
    let proposal_of = |reviews| proposal(vec![effect(EffectImpact::Breaking, "prompt-gone:a")], reviews);
    assert_eq!(codes(&Policy::default(), &proposal_of(&[])), [""; 0]);
    assert_eq!(codes(&strict, &proposal_of(&[])), ["breaking"]);
    assert_eq!(codes(&strict, &proposal_of(&[("ben", &["other"])])), ["breaking"]);
    assert_eq!(codes(&strict, &proposal_of(&[("ben", &["prompt-gone:a"])])), [""; 0]);
    let many = (0..50).map(|n| effect(EffectImpact::Breaking, &format!("prompt-gone:{n}"))).collect();
    let reasons = lacks(&strict, &proposal(many, &[]), &[]);
    assert_eq!((reasons.len(), reasons[20].text.as_str()), (21, "30 more effects have to be confirmed by name"));
}

// req: S-292
#[test]
fn every_relaxed_condition_loosens_a_policy() {
    let strict = Policy {
        approvals: 2,
        four_eyes: true,
        checks: CheckLevel::Warnings,
        tests: true,
        evaluations: vec!["polite".to_owned()],
        no_regression: true,
        no_breaking: true,
        roles: PolicyRoles { review: vec!["lead".to_owned()], ..PolicyRoles::default() },
    };
    let roles = |names: &[&str]| PolicyRoles {
        review: names.iter().map(|name| (*name).to_owned()).collect(),
        ..PolicyRoles::default()
    };
    for (after, expected) in [
        (strict.clone(), &[][..]),
        (Policy { approvals: 3, ..strict.clone() }, &[]),
        (Policy { approvals: 1, ..strict.clone() }, &["approvals"]),
        (Policy { four_eyes: false, ..strict.clone() }, &["four-eyes"]),
        (Policy { checks: CheckLevel::Errors, ..strict.clone() }, &["checks"]),
        (Policy { tests: false, ..strict.clone() }, &["tests"]),
        (Policy { evaluations: vec!["other".to_owned()], ..strict.clone() }, &["evaluation"]),
        (Policy { no_regression: false, ..strict.clone() }, &["no-regression"]),
        (Policy { no_breaking: false, ..strict.clone() }, &["breaking"]),
        (Policy { roles: roles(&[]), ..strict.clone() }, &["roles"]),
        (Policy { roles: roles(&["lead", "other"]), ..strict.clone() }, &["roles"]),
        (Policy { roles: PolicyRoles { publish: vec!["x".to_owned()], ..roles(&["lead"]) }, ..strict.clone() }, &[]),
    ] {
        assert_eq!(loosened(&strict, &after), expected, "{after:?}");
        assert!(loosened(&Policy::default(), &after).is_empty(), "{after:?}");
    }
}

// req: S-291
#[test]
fn four_eyes_see_compatible_names_as_one_person() {
    for (one, other) in [
        ("ada", "ａｄａ"),
        ("ada", "ADA"),
        ("straße", "STRASSE"),
        ("fix", "ﬁx"),
        ("Ⅷ", "viii"),
        ("José", "JOSE\u{301}"),
        ("ΣΟΦΟΣ", "σοφος"),
        ("Kelvin", "\u{212a}elvin"),
        ("ǆ", "Ǆ"),
        ("\u{1e9e}", "ss"),
        ("①", "1"),
        ("ﬀ\u{308}", "ff\u{308}"),
        // Joiners and selectors belong to ordinary writing after such letters.
        ("josé", "josé\u{200d}"),
        ("josé", "JOS\u{e9}\u{fe0f}"),
        ("日本", "日\u{e0100}本"),
    ] {
        assert!(same_name(one, other), "{one} {other}");
    }
    for (one, other) in [("ada", "bda"), ("ada", "аda"), ("ada", "adа"), ("i", "ı")] {
        assert!(!same_name(one, other), "{one} {other}");
    }
}

// req: S-291
#[test]
fn names_that_look_alike_are_warned_about() {
    let warned = |reviewer: &str| -> Vec<String> {
        let found = warnings(&proposal(Vec::new(), &[(reviewer, &[])]));
        found.into_iter().map(|reason| reason.code.into_owned()).collect()
    };
    assert_eq!(warned("ben"), [""; 0]);
    assert_eq!(warned("аda"), ["mixed-scripts", "similar-names"]);
    assert_eq!(warned("аԁа"), ["similar-names"]);
    assert_eq!(warned("Иван Petrov"), [""; 0]);
}

#[test]
fn review_is_narrowed_by_a_role_that_loses_it() {
    let policy = |review: &[&str]| {
        let review = review.iter().map(|role| (*role).to_owned()).collect();
        Policy { roles: PolicyRoles { review, ..PolicyRoles::default() }, ..Policy::default() }
    };
    for (before, after, is_narrowed) in [
        (&[][..], &[][..], false),
        (&[], &["boss"], true),
        (&["boss"], &[], false),
        (&["boss"], &["boss", "lead"], false),
        (&["boss", "lead"], &["lead", "boss"], false),
        (&["boss", "lead"], &["boss"], true),
        (&["lead"], &["boss"], true),
    ] {
        assert_eq!(narrows_review(&policy(before), &policy(after)), is_narrowed, "{before:?} {after:?}");
    }
}
