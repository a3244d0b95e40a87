//! Guarded rollouts.

use std::{collections::BTreeSet, time::Duration};

use promptshelf_store::{
    ChannelName, GroupCounts, NewReview, Policy, PolicyGuard, Promotion, ProposalState, RolloutChangeKind,
    RolloutCounts, RolloutEdit, RolloutPhase, RolloutPlan, RolloutReport, Store, StoreError, Verdict, Webhook,
    WebhookEvent,
};

use crate::sample::{actor, change as file_change, channel, checker, promotion, publish, request};

fn counts(stable: u64, candidate: u64, errors: u64) -> RolloutCounts {
    let mut groups = [GroupCounts::default(), GroupCounts::default()];
    (groups[0].calls, groups[1].calls, groups[1].errors) = (stable, candidate, errors);
    RolloutCounts::new(groups[0], groups[1])
}

/// A plan that stops at a factor of errors.
fn guarded(percent: u8, errors: f64, steps: Option<Duration>) -> RolloutPlan {
    let mut plan = RolloutPlan::new(percent);
    (plan.errors, plan.steps) = (Some(errors), steps);
    plan
}

fn share(percent: u8) -> RolloutEdit {
    RolloutEdit { percent: Some(percent), reason: format!("{percent} %"), ..RolloutEdit::default() }
}

fn phase(phase: RolloutPhase) -> RolloutEdit {
    RolloutEdit { phase: Some(phase), reason: phase.as_str().to_owned(), ..RolloutEdit::default() }
}

async fn start(store: &Store, target: &str, plan: &RolloutPlan) -> Result<RolloutReport, StoreError> {
    store.start_rollout(&ChannelName::production(), &channel(target), plan, "begun", &actor("Ada")).await
}

async fn edit(store: &Store, edit: RolloutEdit) -> Result<RolloutReport, StoreError> {
    store.change_rollout(&ChannelName::production(), None, &edit, &actor("Ada")).await
}

/// Two channels with different texts.
async fn channels(store: &Store) -> (ChannelName, ChannelName) {
    publish(store, "production", 0, &[("a.md", "", "one")]).await.unwrap();
    store.promote(&promotion("production", "next", &[]), &actor("ada"), checker()).await.unwrap();
    publish(store, "next", 1, &[("a.md", "one", "two")]).await.unwrap();
    (ChannelName::production(), channel("next"))
}

pub(crate) async fn replicas_agree_on_a_rollout_and_a_stop(store: Store) {
    let plan = guarded(10, 2.0, None);
    let missing = start(&store, "next", &plan).await.unwrap_err();
    assert!(matches!(missing, StoreError::NotFound { .. }), "{missing}");
    let (production, next) = channels(&store).await;
    let same = start(&store, "production", &plan).await.unwrap_err();
    assert!(matches!(same, StoreError::InvalidInput { .. }), "{same}");
    for plan in [RolloutPlan::new(0), RolloutPlan::new(101), guarded(10, 0.5, None)] {
        assert!(matches!(start(&store, "next", &plan).await, Err(StoreError::InvalidInput { .. })), "{plan:?}");
    }
    assert_eq!(store.advance_rollout(&production, &next, counts(1, 1, 0)).await.unwrap(), None);
    // People begin at the same time: one of them does.
    let people = (0..4).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { start(&store, "next", &plan).await })
    });
    let mut begun = 0;
    for person in people.collect::<Vec<_>>() {
        match person.await.unwrap() {
            Ok(_) => begun += 1,
            Err(error) => assert!(matches!(error, StoreError::State { .. }), "{error}"),
        }
    }
    assert_eq!(begun, 1);
    let replicas = (0..8).map(|_| {
        let (store, production, next) = (store.clone(), production.clone(), next.clone());
        tokio::spawn(async move { store.advance_rollout(&production, &next, counts(90, 10, 0)).await })
    });
    for replica in replicas.collect::<Vec<_>>() {
        assert_eq!(replica.await.unwrap().unwrap().unwrap().0.percent, 10);
    }
    let state = store.rollouts().await.unwrap().pop().unwrap();
    assert_eq!((state.counts, state.history.len()), (counts(720, 80, 0), 1), "no count is lost");
    assert!(matches!(edit(&store, share(101)).await, Err(StoreError::InvalidInput { .. })));
    let state = edit(&store, share(25)).await.unwrap();
    assert_eq!((state.percent, state.changed_by.as_str()), (25, "Ada"));
    let (state, is_own) = store.advance_rollout(&production, &next, counts(90, 30, 30)).await.unwrap().unwrap();
    assert!(state.phase == RolloutPhase::Failed && state.percent == 0 && is_own, "{state:?}");
    let (again, is_own) = store.advance_rollout(&production, &next, counts(0, 0, 0)).await.unwrap().unwrap();
    assert!(
        (again.phase, again.changed_at) == (state.phase, state.changed_at) && !is_own,
        "one replica has stopped it"
    );
    let state = edit(&store, share(50)).await.unwrap();
    assert_eq!((state.percent, state.phase), (50, RolloutPhase::Running));
    let state = edit(&store, phase(RolloutPhase::Stopped)).await.unwrap();
    assert_eq!((state.percent, state.phase, state.reason.as_str()), (0, RolloutPhase::Stopped, "stopped"));
    let other = store.change_rollout(&next, None, &share(1), &actor("Bob")).await.unwrap_err();
    assert!(matches!(other, StoreError::NotFound { .. }), "{other}");
}

/// The kind, the share, the author and whether a server made the change.
fn change(report: &RolloutReport, number: u64) -> (RolloutChangeKind, u8, &str, bool) {
    let found = report.history.iter().find(|change| change.number == number).expect("a change");
    (found.kind, found.percent, &found.changed_by, found.is_automatic)
}

pub(crate) async fn every_change_of_a_rollout_is_recorded_with_its_figures(store: Store) {
    let (production, next) = channels(&store).await;
    let plan = guarded(10, 2.0, Some(Duration::ZERO));
    let report = start(&store, "next", &plan).await.unwrap();
    let next_step = report.next.unwrap();
    assert_eq!((next_step.percent, next_step.missing_calls), (20, 20));
    store.advance_rollout(&production, &next, counts(180, 20, 0)).await.unwrap();
    // A person with the name of the server is not the server.
    let seen = store.rollouts().await.unwrap().pop().unwrap().changed_at;
    let faster = RolloutEdit { seen: Some(seen), ..share(50) };
    let set = store.change_rollout(&production, None, &faster, &actor("promptshelf")).await.unwrap();
    assert_eq!((set.history[0].counts, set.counts), (counts(180, 20, 0), counts(0, 0, 0)));
    store.advance_rollout(&production, &next, counts(90, 30, 30)).await.unwrap();
    // A page that still shows the share from before does not continue it.
    let late = edit(&store, RolloutEdit { seen: Some(set.changed_at), ..share(60) }).await.unwrap_err();
    assert!(matches!(late, StoreError::Changed { .. }), "{late}");
    let report = store.rollouts().await.unwrap().pop().unwrap();
    assert!(report.phase.is_over() && report.next.is_none() && report.plan == Some(plan), "{report:?}");
    assert_eq!(report.history.iter().map(|change| change.number).collect::<Vec<_>>(), [4, 3, 2, 1]);
    assert_eq!(change(&report, 1), (RolloutChangeKind::Begin, 10, "Ada", false));
    assert_eq!(change(&report, 2), (RolloutChangeKind::Step, 20, "promptshelf", true));
    assert_eq!(change(&report, 3), (RolloutChangeKind::Set, 50, "promptshelf", false));
    assert_eq!(change(&report, 4), (RolloutChangeKind::Stop, 0, "promptshelf", true));
    assert_eq!((report.history[0].counts, report.history[0].revision), (counts(90, 30, 30), 2));
    assert_eq!(report.history[0].reason, "errors: 30 of 30 with the new version, 0 of 90 without");
}

pub(crate) async fn rollout_has_phases_and_a_channel_has_one(store: Store) {
    channels(&store).await;
    publish(&store, "canary", 0, &[("a.md", "", "three")]).await.unwrap();
    let plan = RolloutPlan::new(10);
    start(&store, "next", &plan).await.unwrap();
    let refused = async |result: Result<RolloutReport, StoreError>| match result {
        Err(StoreError::State { reason }) => reason,
        other => panic!("{other:?}"),
    };
    assert!(refused(start(&store, "canary", &plan).await).await.contains("has a rollout that is not over"));
    assert!(refused(edit(&store, phase(RolloutPhase::Running)).await).await.contains("takes steps already"));
    let paused = edit(&store, phase(RolloutPhase::Paused)).await.unwrap();
    assert_eq!((paused.percent, paused.phase, paused.next), (10, RolloutPhase::Paused, None));
    assert_eq!(edit(&store, share(30)).await.unwrap().phase, RolloutPhase::Paused);
    assert_eq!(edit(&store, phase(RolloutPhase::Running)).await.unwrap().percent, 30);
    edit(&store, phase(RolloutPhase::Stopped)).await.unwrap();
    assert!(refused(edit(&store, phase(RolloutPhase::Running)).await).await.contains("set a share"));
    // Another one can begin, and the first does not go on meanwhile.
    start(&store, "canary", &plan).await.unwrap();
    let (production, next) = (ChannelName::production(), channel("next"));
    let first = store.change_rollout(&production, Some(&next), &share(20), &actor("Ada")).await;
    assert!(refused(first).await.contains("has a rollout that is not over"));
    let both = RolloutEdit { phase: Some(RolloutPhase::Stopped), ..share(1) };
    for edit in [both, RolloutEdit::default(), phase(RolloutPhase::Finished), phase(RolloutPhase::Failed)] {
        let result = store.change_rollout(&production, None, &edit, &actor("Ada")).await;
        assert!(matches!(result, Err(StoreError::InvalidInput { .. })), "{edit:?}: {result:?}");
    }
    let kinds = |report: &RolloutReport| report.history.iter().rev().map(|one| one.kind.as_str()).collect::<Vec<_>>();
    let all = store.rollouts().await.unwrap();
    assert_eq!(kinds(&all[1]), ["begin", "pause", "set", "resume", "stop"]);
}

pub(crate) async fn stopped_rollout_is_not_finished(store: Store) {
    let (production, next) = channels(&store).await;
    let finishing = Promotion { ends_rollout: true, ..promotion("next", "production", &[]) };
    let ada = actor("ada");
    let finish = || store.promote(&finishing, &ada, checker());
    let plan = RolloutPlan::new(10);
    start(&store, "next", &plan).await.unwrap();
    // Whoever stops it and whoever finishes it at the same time: one of them is told that the other was first.
    for round in 0..6 {
        let finishes = {
            let (store, finishing) = (store.clone(), finishing.clone());
            tokio::spawn(async move { store.promote(&finishing, &actor("ada"), checker()).await })
        };
        let stopped = edit(&store, phase(RolloutPhase::Stopped)).await;
        let finished = finishes.await.unwrap();
        let refused = match (stopped, finished) {
            (Ok(_), Err(refused)) | (Err(refused), Ok(_)) => refused,
            both => panic!("{both:?}"),
        };
        assert!(matches!(refused, StoreError::State { .. }), "{refused}");
        let head = store.head(&next).await.unwrap().revision;
        publish(&store, "next", head, &[(&format!("{round}.md"), "", "new")]).await.unwrap();
        match store.rollouts().await.unwrap().pop().unwrap().phase {
            RolloutPhase::Finished => _ = start(&store, "next", &plan).await.unwrap(),
            _ => _ = edit(&store, share(10)).await.unwrap(),
        }
    }
    edit(&store, phase(RolloutPhase::Stopped)).await.unwrap();
    let refused = finish().await.unwrap_err();
    assert!(refused.to_string().contains("is stopped: set its share first"), "{refused}");
    let refused = store.finish_rollout(&production, &next, "", &actor("ada")).await.unwrap_err();
    assert!(matches!(refused, StoreError::State { .. }), "{refused}");
    edit(&store, share(10)).await.unwrap();
    // A proposal that was open when it was stopped waits until somebody decides again.
    let one = Policy { approvals: 1, ..Policy::default() };
    store.set_policy(&production, &one, &PolicyGuard::Any, "", &actor("ada")).await.unwrap();
    let open = finish().await.unwrap().proposal;
    let part = store.promote(&promotion("next", "production", &["a"]), &actor("ada"), checker()).await;
    assert!(!codes(&store, open.id).await.contains(&"rollout-stopped".to_owned()));
    edit(&store, phase(RolloutPhase::Stopped)).await.unwrap();
    let approval =
        NewReview { verdict: Verdict::Approve, digest: open.digest, note: String::new(), confirmed: Vec::new() };
    let reviewed = store.review(open.id, &approval, &actor("bob"), checker()).await.unwrap().proposal;
    assert_eq!(
        (reviewed.state, codes(&store, open.id).await),
        (ProposalState::Open, vec!["rollout-stopped".to_owned()])
    );
    assert!(part.is_err() || !codes(&store, part.unwrap().proposal.id).await.contains(&"rollout-stopped".to_owned()));
    let again = store.promote(&promotion("next", "production", &[]), &actor("ada"), checker()).await.unwrap().proposal;
    assert_eq!(codes(&store, again.id).await, ["approvals"], "proposed with what is known now");
    edit(&store, share(10)).await.unwrap();
    let published = store.publish_proposal(open.id, None, None, &actor("ada"), checker()).await.unwrap();
    assert_eq!(published.proposal.state, ProposalState::Published);
}

async fn codes(store: &Store, id: u64) -> Vec<String> {
    store.proposal(id).await.unwrap().reasons.into_iter().map(|reason| reason.code.to_string()).collect()
}

pub(crate) async fn promotion_ends_a_rollout_and_every_change_is_announced(store: Store) {
    let (production, next) = channels(&store).await;
    let webhook = Webhook {
        id: "w".to_owned(),
        label: "https://w".to_owned(),
        events: WebhookEvent::ALL.into_iter().collect::<BTreeSet<_>>(),
    };
    store.register_webhooks(&[webhook]).await.unwrap();
    start(&store, "next", &RolloutPlan::new(10)).await.unwrap();
    edit(&store, share(100)).await.unwrap();
    // A part of it ends nothing.
    store.promote(&promotion("next", "production", &["a"]), &actor("ada"), checker()).await.unwrap();
    assert_eq!(store.rollouts().await.unwrap()[0].phase, RolloutPhase::Running);
    store.publish(request("next", 2, vec![file_change("b.md", "", "new")]), &actor("ada"), checker()).await.unwrap();
    store.promote(&promotion("next", "production", &[]), &actor("ada"), checker()).await.unwrap();
    let finished = store.rollouts().await.unwrap().pop().unwrap();
    assert_eq!((finished.percent, finished.phase), (0, RolloutPhase::Finished));
    assert_eq!(finished.reason, "promoted as revision 3");
    assert!(matches!(edit(&store, share(10)).await, Err(StoreError::State { .. })));
    // The next version begins with its own share.
    publish(&store, "next", 3, &[("b.md", "new", "newer")]).await.unwrap();
    assert_eq!(start(&store, "next", &RolloutPlan::new(20)).await.unwrap().percent, 20);
    store.finish_rollout(&production, &next, "it has it", &actor("Ada")).await.unwrap();
    let mut events = Vec::new();
    while let Some(due) =
        store.due_deliveries(&["w".to_owned()]).await.unwrap().into_iter().find(|one| one.channel == "production")
    {
        store.delivered(due.id).await.unwrap();
        let body: serde_json::Value = serde_json::from_str(&due.body).unwrap();
        if due.event == WebhookEvent::RolloutStep {
            let rollout = &body["rollout"];
            assert_eq!(
                (&rollout["to"], &rollout["percent"], &rollout["change"]),
                (&"next".into(), &100.into(), &"set".into())
            );
            assert_eq!(
                (&body["author"], &body["message"], &rollout["automatic"]),
                (&"Ada".into(), &"100 %".into(), &false.into())
            );
        }
        events.push(due.event.as_str());
    }
    let expected = [
        "rollout-started",
        "rollout-step",
        "published",
        "rollout-finished",
        "published",
        "rollout-started",
        "rollout-finished",
    ];
    assert_eq!(events, expected);
}
