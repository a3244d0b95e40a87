//! Guarded rollouts: groups of callers, and the answers that each receives.

use std::sync::{Arc, Mutex};

use promptshelf_core::{Access, CatalogHandle, PromptDefinition, RawArguments, check, cursor::ListKind};
use promptshelf_service::{
    CacheScope, Caller, FormReaction, GroupCalls, Identity, Recorder, Rejection, Rollout, RolloutGroup, Service, Usage,
};
use serde_json::Value;

use crate::prompts;

fn caller(number: usize) -> Caller {
    let identity = Identity { key: format!("caller {number}"), ..Identity::default() };
    Caller::authenticated(Arc::new(identity))
}

fn service(prompt: &str, text: &str) -> (Service, CatalogHandle) {
    let definitions = prompts([PromptDefinition::template(prompt, text)]);
    let handle = CatalogHandle::new(check(definitions, None).catalog);
    (Service::new(handle.clone()), handle)
}

#[derive(Debug, Default)]
struct Memory(Mutex<Vec<String>>);

impl Recorder for Memory {
    fn record(&self, line: String) {
        self.0.lock().expect("no panic").push(line);
    }
}

/// The text that a caller gets.
async fn text(service: &Service, caller: &Caller) -> Result<String, Rejection> {
    let answer = service.get(caller, "hello", &RawArguments::new()).await?;
    Ok(format!("{:?}", answer.value().messages[0].content))
}

// req: S-199
#[test]
fn callers_keep_their_version_while_the_share_rises_and_anonymous_ones_always() {
    let rollout = Rollout::new("production", "next", None, None);
    rollout.set_percent(100);
    assert_eq!(rollout.group(&caller(1)), Some(RolloutGroup::Stable), "without a key all keep the channel");
    rollout.set_key([7; 16]);
    let mut before: Vec<usize> = Vec::new();
    for percent in [0, 1, 10, 25, 50, 99, 100, 200] {
        rollout.set_percent(percent);
        let is_candidate = |number: &usize| rollout.group(&caller(*number)) == Some(RolloutGroup::Candidate);
        let now: Vec<usize> = (0..2_000).filter(is_candidate).collect();
        assert!(before.iter().all(|number| now.contains(number)), "{percent} %");
        let expected = 20 * usize::from(percent.min(100));
        assert!(now.len().abs_diff(expected) <= 100, "{percent} %: {}", now.len());
        before = now;
        for outside in [Caller::anonymous(), Caller::local(), Caller::anonymous().with_address([192, 0, 2, 1].into())] {
            assert_eq!(rollout.group(&outside), None);
        }
    }
    assert_eq!(before.len(), 2_000);
    let replica = Rollout::new("production", "next", None, None);
    let other = Rollout::new("production", "canary", None, None);
    for rollout in [&rollout, &replica, &other] {
        rollout.set_key([7; 16]);
        rollout.set_percent(50);
    }
    let groups = |rollout: &Rollout| (0..200).map(|number| rollout.group(&caller(number))).collect::<Vec<_>>();
    assert_eq!(groups(&rollout), groups(&replica), "replicas agree");
    assert_ne!(groups(&rollout), groups(&other), "each rollout has callers of its own");
}

// req: S-199
#[tokio::test]
async fn operators_rule_of_the_target_holds() {
    let access = Access { roles: vec!["tester".to_owned()], ..Access::default() };
    let rollout = Rollout::new("production", "next", Some(Arc::new(access)), None);
    rollout.set_key([7; 16]);
    rollout.set_percent(100);
    assert_eq!(rollout.group(&caller(1)), Some(RolloutGroup::Stable));
    let tester = Identity { key: "t".to_owned(), roles: vec!["tester".to_owned()], ..Identity::default() };
    assert_eq!(rollout.group(&Caller::authenticated(Arc::new(tester))), Some(RolloutGroup::Candidate));
}

#[tokio::test]
async fn share_is_served_the_target_and_is_in_audit_usage_and_changes() {
    let (usage, recorder) = (Usage::new(), Arc::new(Memory::default()));
    let (stable, _) = service("hello", "Old.");
    let stable = stable.with_usage(&usage, "production").with_audit(recorder.clone());
    let (next, handle) = service("hello", "New.");
    let next = next.with_usage(&usage, "next");
    let rollout = Rollout::new("production", "next", None, None);
    rollout.set_key([7; 16]);
    stable.set_rollout(Some((&rollout, &next)));
    let mut changes = stable.changes();
    assert!(text(&stable, &caller(1)).await.expect("it renders").contains("Old."));
    stable.set_rollout_percent(100);
    let change = changes.try_recv().expect("subscribers are notified when callers move");
    assert!(change.prompts && change.tools && change.contents);
    stable.set_rollout_percent(100);
    assert!(changes.try_recv().is_err(), "the same share moves no caller");
    assert!(text(&stable, &caller(2)).await.expect("it renders").contains("New."));
    assert!(text(&stable, &Caller::anonymous()).await.expect("it renders").contains("Old."));
    let list = stable.list(&caller(1), ListKind::Prompts, None).expect("a list");
    assert_eq!(list.view().cache_scope(), CacheScope::Private, "lists differ by caller");
    handle.replace(check(prompts([PromptDefinition::template("other", "x")]), None).catalog);
    assert!(changes.try_recv().expect("a change of the target").prompts);
    text(&stable, &caller(3)).await.expect_err("the target has no such prompt now");

    let channels: Vec<(String, u64)> =
        usage.drain().into_iter().map(|(key, figures)| (key.channel, figures.count)).collect();
    let counted = |channel: &str, calls| (channel.to_owned(), calls);
    assert_eq!(
        channels,
        [counted("next", 1), counted("production", 2), counted("production", 1)],
        "the last is unknown"
    );
    let groups = |lines: &[String]| -> Vec<Value> {
        let records = lines.iter().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        records.filter(|record| record["method"] == "get").map(|record| record["rollout"].clone()).collect()
    };
    let recorded = groups(&recorder.0.lock().expect("no panic"));
    assert_eq!(recorded, ["stable".into(), "candidate".into(), Value::Null, "candidate".into()]);
    let (of_stable, of_candidate) = rollout.take();
    assert_eq!((of_stable.calls, of_stable.errors), (1, 0));
    assert_eq!((of_candidate.calls, of_candidate.errors), (2, 1), "a missing prompt is an error");
}

// req: S-202
// req: S-268
#[tokio::test]
async fn one_caller_has_a_bounded_weight_and_questions_do_not_count() {
    let (stable, _) = service("hello", "Old.");
    let (next, _) = service("hello", "New.");
    let rollout = Rollout::new("production", "next", None, None);
    rollout.set_key([7; 16]);
    stable.set_rollout(Some((&rollout, &next)));
    stable.set_rollout_percent(100);
    for _ in 0..500 {
        stable.get(&caller(1), "missing", &RawArguments::new()).await.expect_err("unknown");
    }
    let (_, candidate) = rollout.take();
    assert_eq!((candidate.calls, candidate.errors, candidate.failing.0[0].1), (1, 1, 1));
    // Nor in the seconds after.
    stable.get(&caller(1), "missing", &RawArguments::new()).await.expect_err("unknown");
    stable.get(&caller(2), "missing", &RawArguments::new()).await.expect_err("unknown");
    let (_, candidate) = rollout.take();
    assert_eq!((candidate.calls, candidate.errors), (1, 1));
    let open = stable.open(&caller(1), "hello").expect("it exists");
    for reaction in [FormReaction::Declined, FormReaction::Accepted, FormReaction::Cancelled] {
        open.note_form(reaction);
    }
    drop(open);
    let (_, candidate) = rollout.take();
    assert_eq!((candidate.calls, candidate.forms, candidate.declined), (0, 1, 1));
    assert_eq!(rollout.take(), (GroupCalls::default(), GroupCalls::default()));
}
