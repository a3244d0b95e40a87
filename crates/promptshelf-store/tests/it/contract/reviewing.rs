//! Proposals, reviews and policies.

use std::sync::{Arc, Mutex};

use promptshelf_source::MemoryTree;
use promptshelf_store::{
    Actor, CheckReport, Checker, Checking, CommentLine, CommentSide, Effect, NewComment, NewReview, Policy,
    PolicyGuard, PolicyOutcome, PolicyRoles, Proposal, ProposalQuery, ProposalState, Publish, Store, StoreError, Trees,
    Verdict, check_now,
};

use crate::sample::{actor, change, channel, checker, policy, prompts, publish, request, review, rollback, texts};

async fn demand(store: &Store, policy: &Policy) {
    store.set_policy(&channel("c"), policy, &PolicyGuard::Any, "", &actor("root")).await.unwrap();
}

/// Proposes `a.md` as ada; the policy keeps it open.
async fn propose(store: &Store, text: &str) -> Proposal {
    let proposal = publish(store, "c", 0, &[("a.md", "", text)]).await.unwrap().proposal;
    assert_eq!(proposal.state, ProposalState::Open);
    proposal
}

async fn approve(store: &Store, id: u64, name: &str) -> Result<promptshelf_store::Published, StoreError> {
    review(store, id, Verdict::Approve, "fine", None, name).await
}

pub(crate) async fn approvals_of_the_policy_publish(store: Store) {
    demand(&store, &policy(2, false)).await;
    let proposal = propose(&store, "A").await;
    assert_eq!(proposal.lacks, ["2 more approvals are needed"]);
    let once = approve(&store, proposal.id, "ben").await.unwrap();
    assert_eq!(once.proposal.lacks, ["1 more approval is needed"]);
    // The same person in other letters is not a second one.
    let again = approve(&store, proposal.id, "Ben").await.unwrap();
    assert_eq!(again.proposal.state, ProposalState::Open);
    let twice = approve(&store, proposal.id, "cleo").await.unwrap();
    assert_eq!((twice.proposal.state, twice.proposal.revision), (ProposalState::Published, Some(1)));
    assert_eq!(prompts(&twice), [("a", 1, "added")]);
    let revision = store.revision(&channel("c"), 1).await.unwrap();
    assert_eq!(revision.approved_by, ["ben", "cleo"]);
    assert_eq!(revision.author, "ada");
    assert_eq!(twice.proposal.reviews.len(), 3);
    // It is closed now.
    let error = approve(&store, proposal.id, "dora").await.unwrap_err();
    assert!(matches!(error, StoreError::State { .. }), "{error}");
}

/// A check during which someone else reviews the proposal.
struct Overtaken {
    store: Store,
    id: u64,
    by: Mutex<Option<Verdict>>,
}

impl Checker for Overtaken {
    fn check(&self, tree: &MemoryTree, run_tests: bool) -> CheckReport {
        checker().check(tree, run_tests)
    }

    fn check_replacement(&self, trees: &Trees, run_tests: bool) -> (CheckReport, Vec<Effect>) {
        checker().check_replacement(trees, run_tests)
    }

    fn start(self: Arc<Self>, trees: Trees, run_tests: bool) -> Checking<(CheckReport, Vec<Effect>)> {
        Box::pin(async move {
            let by = self.by.lock().unwrap().take();
            if let Some(verdict) = by {
                review(&self.store, self.id, verdict, "", None, "cleo").await.unwrap();
            }
            Ok(check_now(&*self, &trees, run_tests))
        })
    }
}

pub(crate) async fn stored_approval_is_told_what_others_did_meanwhile(store: Store) {
    demand(&store, &policy(1, false)).await;
    let (mut text, mut revision) = (String::new(), 0);
    for (verdict, state) in [(Verdict::Approve, ProposalState::Published), (Verdict::Reject, ProposalState::Rejected)] {
        let proposal = publish(&store, "c", revision, &[("a.md", &text, &format!("{text}A"))]).await.unwrap().proposal;
        let (id, digest) = (proposal.id, proposal.digest);
        let overtaken = Arc::new(Overtaken { store: store.clone(), id, by: Mutex::new(Some(verdict)) });
        let new = NewReview { verdict: Verdict::Approve, digest, note: String::new(), confirmed: Vec::new() };
        let told = store.review(id, &new, &actor("ben"), overtaken).await.unwrap().proposal;
        assert_eq!(told, store.proposal(id).await.unwrap());
        let reviewers: Vec<&str> = told.reviews.iter().map(|review| review.reviewer.as_str()).collect();
        assert_eq!((told.state, reviewers), (state, vec!["ben", "cleo"]));
        if state == ProposalState::Published {
            (text, revision) = (format!("{text}A"), revision + 1);
            assert_eq!(told.revision, Some(revision));
            assert_eq!(store.revision(&channel("c"), revision).await.unwrap().approved_by, ["ben", "cleo"]);
        }
    }
}

pub(crate) async fn revision_has_the_policy_that_it_met(store: Store) {
    demand(&store, &policy(1, true)).await;
    let proposal = propose(&store, "A").await;
    approve(&store, proposal.id, "ben").await.unwrap();
    demand(&store, &Policy::default()).await;
    publish(&store, "c", 1, &[("a.md", "A", "B")]).await.unwrap();
    let history = store.history(&channel("c"), &Default::default()).await.unwrap();
    let met: Vec<_> = history.into_iter().map(|revision| revision.policy).collect();
    assert_eq!(met, [Some(Policy::default()), Some(policy(1, true))]);
}

pub(crate) async fn approval_does_not_outlive_the_right_to_review(store: Store) {
    let reviewers = |roles: &[&str]| {
        let review = roles.iter().map(|role| (*role).to_owned()).collect();
        Policy { roles: PolicyRoles { review, ..Default::default() }, ..policy(1, true) }
    };
    let writer = Actor { may_publish: false, ..actor("ben") };
    let give = async |id: u64, confirmed: &[&str]| {
        let proposal = store.proposal(id).await.unwrap();
        store.review(id, &approval(&proposal, confirmed), &writer, checker()).await.unwrap().proposal
    };
    let publish_it = async |id: u64| store.publish_proposal(id, None, None, &actor("ada"), checker()).await;
    demand(&store, &reviewers(&[])).await;
    let first = propose(&store, "A").await.id;
    assert_eq!(give(first, &[]).await.lacks, [""; 0]);
    // Another condition, and a role more, take the review from nobody.
    demand(&store, &Policy { no_breaking: true, ..reviewers(&[]) }).await;
    assert_eq!(store.proposal(first).await.unwrap().lacks, [""; 0]);
    demand(&store, &reviewers(&["boss"])).await;
    let refusal = publish_it(first).await.unwrap_err();
    let StoreError::Policy { reasons, .. } = &refusal else { panic!("{refusal}") };
    let codes: Vec<&str> = reasons.iter().map(|reason| &*reason.code).collect();
    assert_eq!(codes, ["approvals-by-others", "approvals-lapsed"]);
    assert!(reasons[1].text.contains("those of ben have to be given again"), "{}", reasons[1].text);
    assert!(store.proposal(first).await.unwrap().reviews[0].lapsed);
    // It does not come back with the right.
    demand(&store, &reviewers(&[])).await;
    assert_eq!(store.proposal(first).await.unwrap().lacks.len(), 2);
    // Given again, it counts.
    demand(&store, &reviewers(&["boss"])).await;
    assert_eq!(give(first, &[]).await.lacks, [""; 0]);
    demand(&store, &reviewers(&["boss", "lead"])).await;
    assert_eq!(publish_it(first).await.unwrap().proposal.revision, Some(1));
    assert_eq!(store.revision(&channel("c"), 1).await.unwrap().approved_by, ["ben"]);
}

pub(crate) async fn confirmation_does_not_outlive_the_right_to_review(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "closed\nA")]).await.unwrap();
    demand(&store, &policy(1, false)).await;
    let request = request("c", 1, vec![change("a.md", "closed\nA", "A")]);
    let proposal = store.publish(request, &actor("ada"), checker()).await.unwrap().proposal;
    let writer = Actor { may_publish: false, ..actor("ben") };
    let confirmed = approval(&proposal, &["access-opened:a.md"]);
    store.review(proposal.id, &confirmed, &writer, checker()).await.unwrap();
    let roles = PolicyRoles { review: vec!["boss".to_owned()], ..Default::default() };
    demand(&store, &Policy { roles, ..policy(1, false) }).await;
    let again = NewReview { confirmed: Vec::new(), ..confirmed };
    let waiting = store.review(proposal.id, &again, &actor("cleo"), checker()).await.unwrap().proposal;
    assert_eq!((waiting.state, &*waiting.reasons[0].code), (ProposalState::Open, "opening"));
}

pub(crate) async fn approval_beside_a_change_of_the_roles_does_not_count(store: Store) {
    let open = policy(1, true);
    let roles = PolicyRoles { review: vec!["boss".to_owned()], ..Default::default() };
    let narrow = Policy { roles, ..open.clone() };
    let writer = Actor { may_publish: false, review_roles: Some(Vec::new()), ..actor("ben") };
    demand(&store, &open).await;
    for round in 0..10 {
        let proposal = propose(&store, &format!("A{round}")).await;
        let new = approval(&proposal, &[]);
        let (reviewed, ()) = tokio::join!(store.review(proposal.id, &new, &writer, checker()), demand(&store, &narrow));
        let lacks = store.proposal(proposal.id).await.unwrap().lacks;
        assert!(!lacks.is_empty(), "round {round}: {reviewed:?}");
        demand(&store, &open).await;
    }
}

pub(crate) async fn authors_cannot_approve_with_four_eyes(store: Store) {
    demand(&store, &policy(1, true)).await;
    let proposal = propose(&store, "A").await;
    assert_eq!(proposal.lacks, ["1 more approval is needed by reviewers other than ada"]);
    let [reason] = proposal.reasons.as_slice() else { panic!("{proposal:?}") };
    assert_eq!((&*reason.code, &reason.text), ("approvals-by-others", &proposal.lacks[0]));
    assert_eq!((reason.values["n"].as_str(), reason.values["author"].as_str()), ("1", "ada"));
    for name in ["ada", "ADA"] {
        let error = approve(&store, proposal.id, name).await.unwrap_err();
        assert!(matches!(&error, StoreError::Policy { reasons, .. } if reasons[0].code == "own-proposal"), "{error}");
    }
    assert!(store.proposal(proposal.id).await.unwrap().reviews.is_empty());
    // An approval from before the rule does not count either.
    demand(&store, &policy(2, false)).await;
    approve(&store, proposal.id, "ada").await.unwrap();
    demand(&store, &policy(1, true)).await;
    assert_eq!(store.proposal(proposal.id).await.unwrap().lacks.len(), 1);
    // Without a number, four eyes still need a second person.
    demand(&store, &policy(0, true)).await;
    assert_eq!(store.proposal(proposal.id).await.unwrap().lacks.len(), 1);
    assert_eq!(approve(&store, proposal.id, "ben").await.unwrap().proposal.revision, Some(1));
    assert_eq!(store.revision(&channel("c"), 1).await.unwrap().approved_by, ["ben"]);
}

pub(crate) async fn replaced_proposal_needs_new_approvals(store: Store) {
    demand(&store, &policy(2, false)).await;
    let first = propose(&store, "A").await;
    approve(&store, first.id, "ben").await.unwrap();
    let other = Publish { proposal: Some(first.id), ..request("c", 0, vec![change("a.md", "", "A2")]) };
    let second = store.publish(other, &actor("ada"), checker()).await.unwrap().proposal;
    assert_eq!((second.id, second.reviews.len()), (first.id, 1));
    assert_ne!(second.digest, first.digest);
    assert_eq!(second.lacks, ["2 more approvals are needed"]);
    approve(&store, first.id, "cleo").await.unwrap();
    assert_eq!(store.head(&channel("c")).await.unwrap().revision, 0);
    approve(&store, first.id, "ben").await.unwrap();
    assert_eq!(texts(&store, "c", None).await, [("a.md".to_owned(), "A2".to_owned())]);
}

pub(crate) async fn approval_is_of_the_message_too(store: Store) {
    demand(&store, &policy(2, false)).await;
    let first = propose(&store, "A").await;
    approve(&store, first.id, "ben").await.unwrap();
    let put = async |message: &str| {
        let message = message.to_owned();
        let request = request("c", 0, vec![change("a.md", "", "A")]);
        let request = Publish { proposal: Some(first.id), message, ..request };
        store.publish(request, &actor("ada"), checker()).await.unwrap().proposal
    };
    assert_eq!(put(&first.message).await.lacks, ["1 more approval is needed"], "nothing has changed");
    let second = put("Approved by the board").await;
    assert_ne!(second.digest, first.digest);
    assert_eq!(second.lacks, ["2 more approvals are needed"]);
    let error = review(&store, first.id, Verdict::Approve, "", Some(first.digest), "cleo").await.unwrap_err();
    assert!(matches!(error, StoreError::Changed { .. }), "{error}");
}

pub(crate) async fn approval_of_other_changes_is_refused(store: Store) {
    demand(&store, &policy(1, false)).await;
    let first = propose(&store, "A").await;
    let other = Publish { proposal: Some(first.id), ..request("c", 0, vec![change("a.md", "", "A2")]) };
    store.publish(other, &actor("ada"), checker()).await.unwrap();
    let seen = Some(first.digest);
    let error = review(&store, first.id, Verdict::Approve, "", seen, "ben").await.unwrap_err();
    assert!(matches!(error, StoreError::Changed { .. }), "{error}");
    assert!(store.proposal(first.id).await.unwrap().reviews.is_empty());
    let outdated =
        Publish { proposal: Some(first.id), expected: seen, ..request("c", 0, vec![change("a.md", "", "A3")]) };
    let error = store.publish(outdated, &actor("ada"), checker()).await.unwrap_err();
    assert!(matches!(error, StoreError::Changed { .. }), "{error}");
    let present = Some(store.proposal(first.id).await.unwrap().digest);
    let published = review(&store, first.id, Verdict::Approve, "", present, "ben").await.unwrap();
    assert_eq!(published.proposal.revision, Some(1));
}

pub(crate) async fn rejected_and_withdrawn_proposals_are_closed(store: Store) {
    demand(&store, &policy(1, false)).await;
    let first = propose(&store, "A").await;
    let rejected = review(&store, first.id, Verdict::Reject, "no", None, "ben").await.unwrap();
    assert_eq!(rejected.proposal.state, ProposalState::Rejected);
    assert_eq!((rejected.proposal.reviews[0].note.as_str(), rejected.proposal.lacks.len()), ("no", 0));
    let second = propose(&store, "A").await;
    let withdrawn = store.withdraw(second.id, &actor("ada")).await.unwrap();
    assert_eq!(withdrawn.state, ProposalState::Withdrawn);
    for id in [first.id, second.id] {
        let errors = [
            approve(&store, id, "ben").await.unwrap_err(),
            store.withdraw(id, &actor("ada")).await.unwrap_err(),
            store.publish_proposal(id, None, Some("now".to_owned()), &actor("ada"), checker()).await.unwrap_err(),
            store
                .publish(
                    Publish { proposal: Some(id), ..request("c", 0, vec![change("b.md", "", "B")]) },
                    &actor("ada"),
                    checker(),
                )
                .await
                .unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, StoreError::State { .. }), "{error}");
        }
    }
    let third = propose(&store, "A").await;
    let ids = |proposals: Vec<Proposal>| proposals.iter().map(|proposal| proposal.id).collect::<Vec<_>>();
    let in_state = |state| ProposalQuery { channel: Some(channel("c")), state: Some(state), ..Default::default() };
    assert_eq!(ids(store.proposals(&in_state(ProposalState::Open)).await.unwrap()), [third.id]);
    assert_eq!(ids(store.proposals(&ProposalQuery::default()).await.unwrap()), [third.id, second.id, first.id]);
    assert_eq!(ids(store.proposals(&in_state(ProposalState::Rejected)).await.unwrap()), [first.id]);
}

pub(crate) async fn approval_of_outdated_changes_does_not_publish(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A"), ("b.md", "", "B")]).await.unwrap();
    demand(&store, &policy(1, false)).await;
    let proposal = publish(&store, "c", 1, &[("a.md", "A", "A2")]).await.unwrap().proposal;
    demand(&store, &Policy::default()).await;
    publish(&store, "c", 1, &[("a.md", "A", "A3")]).await.unwrap();
    demand(&store, &policy(1, false)).await;
    let lacks = store.proposal(proposal.id).await.unwrap().lacks;
    assert!(lacks[0].contains("`a.md`"), "{lacks:?}");
    let approved = approve(&store, proposal.id, "ben").await.unwrap();
    assert_eq!((approved.proposal.state, approved.proposal.reviews.len()), (ProposalState::Open, 1));
    assert_eq!(approved.proposal.lacks, lacks[..1]);
    for emergency in [None, Some("now".to_owned())] {
        let error = store.publish_proposal(proposal.id, None, emergency, &actor("ada"), checker()).await.unwrap_err();
        let StoreError::Conflict { paths, revision: 2 } = &error else { panic!("{error}") };
        assert_eq!(paths, &["a.md"]);
    }
    assert_eq!(store.head(&channel("c")).await.unwrap().revision, 2);
}

pub(crate) async fn proposal_is_published_on_request_only_if_the_policy_is_met(store: Store) {
    demand(&store, &policy(1, false)).await;
    let first = propose(&store, "A").await;
    let error = store.publish_proposal(first.id, None, None, &actor("ada"), checker()).await.unwrap_err();
    let StoreError::Policy { lacks, .. } = &error else { panic!("{error}") };
    assert_eq!(lacks, &["1 more approval is needed"]);
    let urgent = Some("the site is down".to_owned());
    let published = store.publish_proposal(first.id, None, urgent, &actor("ada"), checker()).await.unwrap();
    assert_eq!(published.proposal.revision, Some(1));
    assert_eq!(store.revision(&channel("c"), 1).await.unwrap().emergency.as_deref(), Some("the site is down"));
    // A weaker policy makes an open proposal ready.
    let second = publish(&store, "c", 1, &[("b.md", "", "B")]).await.unwrap().proposal;
    demand(&store, &Policy::default()).await;
    let published = store.publish_proposal(second.id, None, None, &actor("ben"), checker()).await.unwrap();
    assert_eq!((published.proposal.revision, published.proposal.author.as_str()), (Some(2), "ada"));
}

pub(crate) async fn failing_tests_stop_a_publish_if_the_policy_says_so(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "failing test")]).await.unwrap();
    demand(&store, &Policy { tests: true, ..Policy::default() }).await;
    let open = publish(&store, "c", 1, &[("b.md", "", "B")]).await.unwrap().proposal;
    assert_eq!(open.lacks, ["1 of 2 prompt tests failed"]);
    assert_eq!(open.checks.tests, Some((1, 1)));
    let published = publish(&store, "c", 1, &[("a.md", "failing test", "A")]).await.unwrap();
    assert_eq!(published.proposal.revision, Some(2));
    // The tests run again for the tree that it would become.
    let published = store.publish_proposal(open.id, None, None, &actor("ada"), checker()).await.unwrap();
    assert_eq!(published.proposal.checks.tests, Some((2, 0)));
}

pub(crate) async fn contents_of_a_proposal_are_readable(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A"), ("b.md", "", "B")]).await.unwrap();
    demand(&store, &policy(1, false)).await;
    let changes = [("a.md", "A", "A2"), ("b.md", "B", ""), ("c.md", "", "C")];
    let proposal = publish(&store, "c", 1, &changes).await.unwrap().proposal;
    store.gc().await.unwrap();
    let contents = store.proposal_contents(proposal.id).await.unwrap();
    let text = |bytes: &Option<std::sync::Arc<[u8]>>| {
        bytes.as_ref().map_or_else(String::new, |bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    let read: Vec<_> = contents.iter().map(|(path, old, new)| (path.as_str(), text(old), text(new))).collect();
    let expected = changes.map(|(path, old, new)| (path, old.to_owned(), new.to_owned()));
    assert_eq!(read, expected);
}

pub(crate) async fn only_who_may_publish_publishes(store: Store) {
    let writer = Actor { may_publish: false, ..actor("ada") };
    let urgent = |path| Publish { emergency: Some("now".to_owned()), ..request("c", 0, vec![change(path, "", "x")]) };
    let plain = request("c", 0, vec![change("a.md", "", "A")]);
    for request in [plain, urgent("b.md")] {
        let open = store.publish(request, &writer, checker()).await.unwrap().proposal;
        assert_eq!((open.state, open.lacks.len()), (ProposalState::Open, 0));
        let error = store.publish_proposal(open.id, None, None, &writer, checker()).await.unwrap_err();
        let StoreError::Policy { lacks, .. } = &error else { panic!("{error}") };
        assert_eq!(lacks, &["ada may not publish"]);
        // So does an approval that meets the policy.
        let approval = approval(&open, &[]);
        store.review(open.id, &approval, &writer, checker()).await.unwrap();
        assert_eq!(store.proposal(open.id).await.unwrap().state, ProposalState::Open);
        store.publish_proposal(open.id, None, None, &actor("ben"), checker()).await.unwrap();
    }
    assert_eq!(store.head(&channel("c")).await.unwrap().revision, 2);
}

pub(crate) async fn policy_changes_only_if_it_is_the_expected_one(store: Store) {
    let (c, root) = (channel("c"), actor("root"));
    let first = policy(1, false);
    let set = async |policy: &Policy, guard: PolicyGuard| store.set_policy(&c, policy, &guard, "", &root).await;
    let error = set(&first, PolicyGuard::Is(Policy::default())).await.unwrap_err();
    assert!(matches!(error, StoreError::Changed { .. }), "{error}");
    assert!(store.channels().await.unwrap().is_empty());
    assert_eq!(set(&first, PolicyGuard::Absent).await.unwrap().policy, first);
    assert!(set(&policy(2, false), PolicyGuard::Absent).await.is_err());
    assert!(set(&policy(2, false), PolicyGuard::Is(policy(3, false))).await.is_err());
    assert_eq!(store.channel(&c).await.unwrap().policy, first);
    let roles = PolicyRoles { publish: vec!["release".to_owned()], ..Default::default() };
    let second = Policy { roles, ..policy(2, true) };
    set(&second, PolicyGuard::Is(first)).await.unwrap();
    assert_eq!(store.channel(&c).await.unwrap().policy, second);
}

fn approval(proposal: &Proposal, confirmed: &[&str]) -> NewReview {
    let confirmed = confirmed.iter().map(|name| (*name).to_owned()).collect();
    NewReview { verdict: Verdict::Approve, digest: proposal.digest, note: String::new(), confirmed }
}

pub(crate) async fn opening_is_confirmed_by_name(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "closed\nA")]).await.unwrap();
    demand(&store, &policy(1, false)).await;
    let editor = |name: &str| Actor { may_administer: false, ..actor(name) };
    let request = request("c", 1, vec![change("a.md", "closed\nA", "A")]);
    let proposal = store.publish(request, &editor("ada"), checker()).await.unwrap().proposal;
    assert_eq!(proposal.effects[0].name, "access-opened:a.md");
    let id = proposal.id;
    let give =
        async |confirmed: &[&str], by: Actor| store.review(id, &approval(&proposal, confirmed), &by, checker()).await;
    let waiting = give(&[], actor("ben")).await.unwrap().proposal;
    assert_eq!((waiting.state, &*waiting.reasons[0].code), (ProposalState::Open, "opening"));
    assert!(waiting.lacks[0].contains(" --confirm access-opened:a.md`"), "{:?}", waiting.lacks);
    let unknown = give(&["access-opened:b.md"], editor("ben")).await.unwrap_err();
    assert!(
        matches!(&unknown, StoreError::InvalidInput { reason } if reason.contains("`access-opened:a.md`")),
        "{unknown}"
    );
    let own = give(&["access-opened:a.md"], editor("ADA")).await.unwrap_err();
    assert!(matches!(&own, StoreError::Policy { reasons, .. } if reasons[0].code == "own-opening"), "{own}");
    let published = give(&["access-opened:a.md"], editor("ben")).await.unwrap().proposal;
    assert_eq!(
        (published.revision, &published.reviews[1].confirmed[..]),
        (Some(2), &["access-opened:a.md".to_owned()][..])
    );
}

pub(crate) async fn confirmation_is_of_the_effect_as_it_was(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "closed\nA"), ("rule", "", "boss")]).await.unwrap();
    demand(&store, &policy(1, false)).await;
    let opening = publish(&store, "c", 1, &[("a.md", "closed\nA", "A")]).await.unwrap().proposal;
    let wider = publish(&store, "c", 1, &[("rule", "boss", "everyone")]).await.unwrap().proposal;
    let writer = |name: &str| Actor { may_publish: false, may_administer: false, ..actor(name) };
    let confirm = async |by: Actor| {
        let approval = approval(&opening, &["access-opened:a.md"]);
        store.review(opening.id, &approval, &by, checker()).await.unwrap().proposal
    };
    let confirmed = confirm(writer("ben")).await;
    assert_eq!((confirmed.effects[0].text.as_str(), confirmed.lacks.len()), ("a.md: access-opened, for boss", 0));
    approve(&store, wider.id, "ben").await.unwrap();
    let error = store.publish_proposal(opening.id, None, None, &actor("root"), checker()).await.unwrap_err();
    assert!(matches!(&error, StoreError::Policy { reasons, .. } if reasons[0].code == "opening"), "{error}");
    // Who has seen the new effect confirms it.
    store.review(opening.id, &approval(&opening, &[]), &writer("cleo"), checker()).await.unwrap();
    confirm(writer("ben")).await;
    let published = store.publish_proposal(opening.id, None, None, &actor("root"), checker()).await.unwrap();
    let reviews: Vec<_> = published.proposal.reviews.iter().map(|it| it.confirmed.len()).collect();
    assert_eq!((published.proposal.revision, reviews), (Some(3), vec![0, 0, 1]));
}

pub(crate) async fn rollback_over_a_rule_needs_the_right_to_administer(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    publish(&store, "c", 1, &[("a.md", "A", "closed\nA")]).await.unwrap();
    publish(&store, "staging", 0, &[("a.md", "", "closed\nA")]).await.unwrap();
    publish(&store, "staging", 1, &[("a.md", "closed\nA", "A open")]).await.unwrap();
    let editor = Actor { may_administer: false, ..actor("ada") };
    let c = channel("c");
    let opening = [
        store.rollback(&rollback("c", 1, None), &editor, checker()).await.unwrap(),
        store.promote(&crate::sample::promotion("staging", "c", &[]), &editor, checker()).await.unwrap(),
    ];
    for outcome in opening {
        let id = outcome.proposal.id;
        assert_eq!((outcome.proposal.state, &*outcome.proposal.reasons[0].code), (ProposalState::Open, "opening"));
        let error = store.publish_proposal(id, None, None, &editor, checker()).await.unwrap_err();
        assert!(matches!(error, StoreError::Policy { .. }), "{error}");
    }
    assert_eq!(store.head(&c).await.unwrap().revision, 2);
    let published = store.rollback(&rollback("c", 1, None), &actor("root"), checker()).await.unwrap();
    assert_eq!((published.proposal.revision, published.proposal.effects.len()), (Some(3), 1));
}

pub(crate) async fn breaking_change_is_confirmed_by_name_if_the_policy_says_so(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A"), ("b.md", "", "B")]).await.unwrap();
    assert_eq!(
        publish(&store, "c", 1, &[("b.md", "B", "")]).await.unwrap().proposal.effects[0].name,
        "prompt-gone:b.md"
    );
    demand(&store, &Policy { no_breaking: true, ..Policy::default() }).await;
    let proposal = publish(&store, "c", 2, &[("a.md", "A", ""), ("d.md", "", "D")]).await.unwrap().proposal;
    assert_eq!((proposal.state, &*proposal.reasons[0].code), (ProposalState::Open, "breaking"));
    let approval = approval(&proposal, &["prompt-gone:a.md"]);
    let published = store.review(proposal.id, &approval, &actor("ben"), checker()).await.unwrap();
    assert_eq!(published.proposal.revision, Some(3));
    let urgent = Publish { emergency: Some("now".to_owned()), ..request("c", 3, vec![change("d.md", "D", "")]) };
    store.publish(urgent, &actor("ada"), checker()).await.unwrap();
    assert_eq!(store.revision(&channel("c"), 4).await.unwrap().emergency.as_deref(), Some("now"));
}

pub(crate) async fn looser_policy_needs_the_approvals_of_the_present_one(store: Store) {
    let (c, root) = (channel("c"), actor("root"));
    let propose =
        async |policy: &Policy| store.propose_policy(&c, policy, &PolicyGuard::Any, "less work", &root).await.unwrap();
    // The first policy, and stricter ones, need nobody.
    assert!(matches!(propose(&policy(1, true)).await, PolicyOutcome::Changed(_)));
    let PolicyOutcome::Proposed(proposal) = propose(&Policy::default()).await else { panic!("it is looser") };
    assert_eq!(store.channel(&c).await.unwrap().policy, policy(1, true));
    assert_eq!(proposal.lacks, ["1 more approval is needed by reviewers other than root"]);
    let own = review(&store, proposal.id, Verdict::Approve, "", None, "root").await.unwrap_err();
    assert!(matches!(own, StoreError::Policy { .. }), "{own}");
    let files = Publish { proposal: Some(proposal.id), ..request("c", 0, vec![change("a.md", "", "A")]) };
    assert!(store.publish(files, &root, checker()).await.is_err());
    // A reviewer without the right to publish is enough: the author may administer.
    let ben = Actor { may_publish: false, may_administer: false, ..actor("ben") };
    let approved = store.review(proposal.id, &approval(&proposal, &[]), &ben, checker()).await.unwrap();
    assert_eq!((approved.proposal.state, approved.proposal.revision), (ProposalState::Published, None));
    assert_eq!(store.channel(&c).await.unwrap().policy, Policy::default());
    // Another change in between: the approval is of something else.
    assert!(matches!(propose(&policy(1, true)).await, PolicyOutcome::Changed(_)));
    let PolicyOutcome::Proposed(proposal) = propose(&Policy::default()).await else { panic!("it is looser") };
    store.set_policy(&c, &policy(2, true), &PolicyGuard::Any, "by hand", &actor("operator")).await.unwrap();
    let waiting = review(&store, proposal.id, Verdict::Approve, "", None, "ben").await.unwrap().proposal;
    assert_eq!((waiting.state, &*waiting.reasons[0].code), (ProposalState::Open, "policy-changed-since"));
    let history = store.policy_history(&c, None, 0).await.unwrap();
    let told: Vec<_> = history
        .iter()
        .map(|it| {
            (it.actor.as_str(), it.before.as_ref().map(|policy| policy.approvals), it.after.approvals, it.by_operator)
        })
        .collect();
    assert_eq!(
        told,
        [
            ("operator", Some(1), 2, true),
            ("root", Some(0), 1, false),
            ("root", Some(1), 0, false),
            ("root", None, 1, false),
        ]
    );
    assert_eq!((history[2].proposal, &history[2].approved_by[..]), (Some(1), &["ben".to_owned()][..]));
    assert_eq!((history[0].message.as_str(), history[2].message.as_str()), ("by hand", "less work"));
    let older = store.policy_history(&c, Some(history[1].number), 1).await.unwrap();
    assert_eq!(older, history[2..3]);
}

pub(crate) async fn only_the_author_replaces_or_withdraws(store: Store) {
    demand(&store, &policy(1, false)).await;
    let proposal = propose(&store, "A").await;
    let error = store.withdraw(proposal.id, &actor("ben")).await.unwrap_err();
    assert!(matches!(error, StoreError::State { .. }), "{error}");
    let request = || Publish { proposal: Some(proposal.id), ..request("c", 0, vec![change("a.md", "", "B")]) };
    let error = store.publish(request(), &actor("ben"), checker()).await.unwrap_err();
    assert!(matches!(error, StoreError::State { .. }), "{error}");
    let elsewhere = Publish { channel: channel("other"), ..request() };
    let error = store.publish(elsewhere, &actor("ada"), checker()).await.unwrap_err();
    assert!(matches!(error, StoreError::State { .. }), "{error}");
    assert_eq!(store.proposal(proposal.id).await.unwrap(), proposal);
    assert_eq!(store.channels().await.unwrap().len(), 1);
}

pub(crate) async fn comments_belong_to_lines_of_the_present_changes(store: Store) {
    demand(&store, &policy(1, false)).await;
    let proposal = propose(&store, "first\nsecond").await;
    let line = |side, number| Some(CommentLine { side, number });
    let new = |path: Option<&str>, line| NewComment {
        digest: proposal.digest,
        path: path.map(str::to_owned),
        line,
        text: "Why?\n<b>bold</b>".to_owned(),
    };
    let (id, ben) = (proposal.id, actor("ben"));
    let whole = store.comment(id, &new(None, None), &ben).await.unwrap();
    let second = store.comment(id, &new(Some("a.md"), line(CommentSide::After, 2)), &ben).await.unwrap();
    assert_eq!((second.author.as_str(), second.line), ("ben", line(CommentSide::After, 2)));
    assert_eq!(store.comments(id).await.unwrap(), [whole, second]);
    for (path, line) in [
        (None, line(CommentSide::After, 1)),
        (Some("b.md"), None),
        (Some("a.md"), line(CommentSide::After, 0)),
        (Some("a.md"), line(CommentSide::After, 3)),
        (Some("a.md"), line(CommentSide::After, u64::MAX)),
        (Some("a.md"), line(CommentSide::Before, 1)),
    ] {
        let error = store.comment(id, &new(path, line), &ben).await.unwrap_err();
        assert!(matches!(error, StoreError::InvalidInput { .. }), "{path:?} {line:?}: {error}");
    }
    for text in ["", " \n", "a\0b", &"x".repeat(5_000)] {
        let error =
            store.comment(id, &NewComment { text: text.to_owned(), ..new(None, None) }, &ben).await.unwrap_err();
        assert!(matches!(error, StoreError::InvalidInput { .. }), "{error}");
    }
    let request = Publish { proposal: Some(id), ..request("c", 0, vec![change("a.md", "", "other")]) };
    store.publish(request, &actor("ada"), checker()).await.unwrap();
    let error = store.comment(id, &new(None, None), &ben).await.unwrap_err();
    assert!(matches!(error, StoreError::Changed { .. }), "{error}");
    assert_eq!(store.comments(id).await.unwrap().len(), 2, "those of earlier changes stay");
    store.withdraw(id, &actor("ada")).await.unwrap();
    let present = store.proposal(id).await.unwrap().digest;
    let error = store.comment(id, &NewComment { digest: present, ..new(None, None) }, &ben).await.unwrap_err();
    assert!(matches!(error, StoreError::State { .. }), "{error}");
    assert!(matches!(store.comments(99).await.unwrap_err(), StoreError::NotFound { .. }));
}
