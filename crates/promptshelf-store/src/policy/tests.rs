//! The decision to publish, as tables.

use jiff::Timestamp;

use super::*;
use crate::model::{Digest, PolicyRoles, ProposedPolicy, RevisionKind};

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
    let of = |list: fn(&mut PolicyRoles) -> &mut Vec<String>, role: &str| {
        let mut roles = PolicyRoles::default();
        *list(&mut roles) = vec![role.to_owned()];
        Policy { roles, ..Policy::default() }
    };
    let lists: [fn(&mut PolicyRoles) -> &mut Vec<String>; 4] =
        [|it| &mut it.propose, |it| &mut it.review, |it| &mut it.publish, |it| &mut it.administer];
    for list in lists {
        let before = of(list, "lead");
        for after in [Policy::default(), of(list, "other")] {
            assert_eq!(loosened(&before, &after), ["roles"], "{before:?} {after:?}");
        }
        assert!(loosened(&before, &before).is_empty() && loosened(&Policy::default(), &before).is_empty());
    }
}

fn code(result: Result<(), StoreError>) -> String {
    match result {
        Ok(()) => "ok".to_owned(),
        Err(StoreError::Policy { reasons, .. }) => reasons.iter().map(|reason| &*reason.code).collect(),
        Err(error) => error.to_string(),
    }
}

// req: S-290, S-291
#[test]
fn own_proposals_and_openings_are_approved_by_others() {
    let effects = || vec![effect(EffectImpact::Opening, "opened:a"), effect(EffectImpact::Breaking, "gone:b")];
    let (plain, eyes) = (Policy::default(), Policy { four_eyes: true, ..Policy::default() });
    let unknown = "proposal 1 does not have the effect `x`: it has `opened:a`, `gone:b`";
    for (policy, reviewer, may_administer, confirmed, expected) in [
        (&plain, "ada", false, &[][..], "ok"),
        (&plain, "ben", false, &["opened:a", "gone:b"], "ok"),
        (&plain, "ada", false, &["gone:b"], "ok"),
        (&plain, "ada", false, &["gone:b", "opened:a"], "own-opening"),
        (&plain, "ADA", false, &["opened:a"], "own-opening"),
        (&plain, "ada", true, &["opened:a"], "ok"),
        (&plain, "ben", false, &["opened:a", "x"], unknown),
        (&eyes, "ben", false, &["opened:a"], "ok"),
        (&eyes, "ada", false, &[], "own-proposal"),
        (&eyes, "Ada", true, &["opened:a"], "own-proposal"),
        (&eyes, "maker", false, &[], "own-proposal"),
    ] {
        let mut proposal = proposal(effects(), &[]);
        proposal.creators = vec!["maker".to_owned()];
        let actor = Actor { name: reviewer.to_owned(), may_publish: true, may_administer, review_roles: None };
        let confirmed = confirmed.iter().map(|name| (*name).to_owned()).collect();
        let mut new = NewReview { verdict: Verdict::Approve, digest: proposal.digest, note: String::new(), confirmed };
        let case = format!("{policy:?} {reviewer} {new:?}");
        assert_eq!(code(may_review(policy, &proposal, &new, &actor)), expected, "{case}");
        new.verdict = Verdict::Reject;
        assert_eq!(code(may_review(policy, &proposal, &new, &actor)), "ok", "anyone may reject: {case}");
    }
    let nothing = proposal(Vec::new(), &[]);
    let actor = Actor { name: "ben".to_owned(), may_publish: true, may_administer: false, review_roles: None };
    let new = NewReview {
        verdict: Verdict::Approve,
        digest: nothing.digest,
        note: String::new(),
        confirmed: vec!["x".to_owned()],
    };
    assert!(code(may_review(&plain, &nothing, &new, &actor)).ends_with("it has nothing"));
}

// req: S-291
#[test]
fn approvals_that_count_are_of_the_present_changes_and_of_different_people() {
    let review = |reviewer: &str, change: fn(&mut Review)| {
        let mut review = proposal(Vec::new(), &[(reviewer, &[])]).reviews.remove(0);
        change(&mut review);
        review
    };
    let same: fn(&mut Review) = |_| {};
    let rejected: fn(&mut Review) = |it| it.verdict = Verdict::Reject;
    let earlier: fn(&mut Review) = |it| it.digest = Digest::of(b"earlier changes");
    let lapsed: fn(&mut Review) = |it| it.lapsed = true;
    let policy = |approvals, four_eyes| Policy { approvals, four_eyes, ..Policy::default() };
    let one = "1 more approval is needed";
    let others = "1 more approval is needed by reviewers other than ada, maker";
    let two_lapsed = "approvals from before a change of the roles that may review do not count: those of ben, eva have to \
                      be given again";
    for (policy, reviews, counted, expected) in [
        (policy(0, false), vec![], &[][..], &[][..]),
        (policy(1, false), vec![], &[], &[("approvals", one)]),
        (policy(1, false), vec![("ben", same)], &["ben"], &[]),
        (policy(1, false), vec![("ada", same)], &["ada"], &[]),
        (policy(1, false), vec![("ben", rejected)], &[], &[("approvals", one)]),
        (policy(1, false), vec![("ben", earlier)], &[], &[("approvals", one)]),
        (policy(2, false), vec![("ben", same), ("BEN", same)], &["ben"], &[("approvals", one)]),
        (policy(2, false), vec![("ben", same), ("eva", same)], &["ben", "eva"], &[]),
        (policy(2, false), vec![], &[], &[("approvals", "2 more approvals are needed")]),
        (policy(0, true), vec![], &[], &[("approvals-by-others", others)]),
        (policy(0, true), vec![("ada", same), ("maker", same)], &[], &[("approvals-by-others", others)]),
        (policy(0, true), vec![("eva", same)], &["eva"], &[]),
        (
            policy(1, false),
            vec![("ben", lapsed), ("eva", lapsed), ("ben", lapsed)],
            &[],
            &[("approvals", one), ("approvals-lapsed", two_lapsed)],
        ),
        (policy(1, false), vec![("ben", lapsed), ("eva", same)], &["eva"], &[]),
    ] {
        let mut proposal = proposal(Vec::new(), &[]);
        proposal.creators = vec!["maker".to_owned()];
        proposal.reviews = reviews.iter().map(|(reviewer, change)| review(reviewer, *change)).collect();
        let names: Vec<&str> = reviews.iter().map(|(name, _)| *name).collect();
        assert_eq!(approvers(&policy, &proposal), counted, "{policy:?} {names:?}");
        let found = lacks(&policy, &proposal, &[]);
        let found: Vec<(&str, &str)> = found.iter().map(|reason| (&*reason.code, &*reason.text)).collect();
        assert_eq!(found, expected, "{policy:?} {names:?}");
        proposal.state = ProposalState::Rejected;
        assert!(lacks(&policy, &proposal, &[]).is_empty(), "nothing is awaited of an ended proposal");
    }
}

#[test]
fn findings_of_the_check_count_as_the_policy_says() {
    let level = |checks, tests| Policy { checks, tests, ..Policy::default() };
    let (off, errors, warnings) = (CheckLevel::Off, CheckLevel::Errors, CheckLevel::Warnings);
    for (policy, found, expected) in [
        (level(off, false), (3, 2, Some((1, 1))), &[][..]),
        (level(errors, false), (0, 2, None), &[]),
        (level(errors, false), (1, 0, None), &["the check found 1 error"]),
        (level(warnings, false), (0, 0, None), &[]),
        (level(warnings, false), (2, 1, None), &["the check found 2 errors", "the check found 1 warning"]),
        (level(off, true), (0, 0, None), &["the prompt tests have not run"]),
        (level(off, true), (0, 0, Some((4, 0))), &[]),
        (level(off, true), (0, 0, Some((2, 1))), &["1 of 3 prompt tests failed"]),
        (level(off, true), (0, 0, Some((0, 1))), &["1 of 1 prompt test failed"]),
    ] {
        let (errors, warnings, tests) = found;
        let found = CheckSummary { errors, warnings, tests };
        let texts: Vec<String> = checks(&policy, &found).into_iter().map(|reason| reason.text).collect();
        assert_eq!(texts, expected, "{policy:?} {found:?}");
    }
}

#[test]
fn change_of_the_channel_or_of_the_policy_outdates_a_proposal() {
    let outdated = |count: usize| -> String {
        let paths: Vec<String> = (1..=count).map(|number| format!("{number}.md")).collect();
        lacks(&Policy::default(), &proposal(Vec::new(), &[]), &paths).iter().map(|reason| &*reason.text).collect()
    };
    assert_eq!(outdated(0), "");
    assert!(outdated(1).starts_with("the channel has changed `1.md` since"));
    assert!(outdated(5).contains("`4.md`, `5.md` since"));
    assert!(outdated(7).contains("`5.md` and 2 more files since"));

    let tested = Policy { tests: true, ..Policy::default() };
    let mut change = proposal(Vec::new(), &[]);
    change.policy = Some(ProposedPolicy { before: tested.clone(), after: Policy::default() });
    assert_eq!(codes(&tested, &change), [""; 0], "a change of the policy has no files to test");
    assert_eq!(codes(&Policy::default(), &change), ["policy-changed-since"]);
}

#[test]
fn only_the_author_replaces_open_changes_that_were_read() {
    let draft = || Draft {
        channel: crate::ChannelName::production(),
        base: 1,
        kind: RevisionKind::Publish,
        message: String::new(),
        author: "ADA".to_owned(),
        may_publish: true,
        may_administer: true,
        target: crate::draft::Target::Replace(1),
        expected: Some(Digest::of(b"changes")),
        emergency: None,
        changes: Vec::new(),
        contents: crate::tables::blob::Contents::default(),
        source: None,
        dry_run: false,
        ends_rollout: None,
    };
    let present = || proposal(Vec::new(), &[]);
    assert_eq!(code(may_replace(&present(), &draft())), "ok");
    assert_eq!(code(may_replace(&present(), &Draft { expected: None, ..draft() })), "ok");
    let other = Draft { expected: Some(Digest::of(b"other")), ..draft() };
    assert_eq!(code(may_replace(&present(), &other)), changed(1).to_string());
    let other = Draft { author: "ben".to_owned(), ..draft() };
    assert!(code(may_replace(&present(), &other)).contains("only its author ada"));
    let other = Draft { channel: "beta".parse().unwrap(), ..draft() };
    assert!(code(may_replace(&present(), &other)).contains("one of the channel `production`"));
    let closed = Proposal { state: ProposalState::Published, ..present() };
    assert_ne!(code(may_replace(&closed, &draft())), "ok");
    let policy = Some(ProposedPolicy { before: Policy::default(), after: Policy::default() });
    assert!(code(may_replace(&Proposal { policy, ..present() }, &draft())).contains("about the policy"));
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
