//! Results of evaluations, and policies that require them.

use std::collections::BTreeMap;

use promptshelf_store::{
    CaseResult, Digest, EvaluationQuery, NewEvaluation, Policy, PolicyGuard, ProposalState, Store, StoreError,
};

use crate::sample::{actor, change, channel, checker, publish, request};

/// A result for a prompt whose file has this text, in the evaluation `quality` with a threshold of 0.8.
fn result(prompt: &str, text: &str, score: f64) -> NewEvaluation {
    version(prompt, Digest::of(format!("{prompt}.md\n{text}").as_bytes()), score)
}

fn version(prompt: &str, digest: Digest, score: f64) -> NewEvaluation {
    NewEvaluation {
        evaluation: "quality".to_owned(),
        prompt: prompt.to_owned(),
        digest,
        proposal: None,
        scores: BTreeMap::from([("score".to_owned(), score)]),
        thresholds: BTreeMap::from([("score".to_owned(), 0.8)]),
        tolerance: 0.0,
        cases: Vec::new(),
        model: Some("fake-1".to_owned()),
        cost: Some(0.01),
        seconds: 1.5,
    }
}

async fn add(store: &Store, new: &NewEvaluation) -> Result<bool, StoreError> {
    Ok(store.add_evaluation(&channel("c"), new, &actor("ci"), checker()).await?.passed)
}

async fn demand(store: &Store, no_regression: bool) {
    let policy = Policy { evaluations: vec!["quality".to_owned()], no_regression, ..Policy::default() };
    store.set_policy(&channel("c"), &policy, &PolicyGuard::Any, "", &actor("root")).await.unwrap();
}

async fn lacks(store: &Store, id: u64) -> Vec<String> {
    store.proposal(id).await.unwrap().lacks
}

pub(crate) async fn required_evaluation_holds_a_publish_until_it_passes(store: Store) {
    demand(&store, false).await;
    let proposal = publish(&store, "c", 0, &[("a.md", "", "A"), ("notes.txt", "", "N")]).await.unwrap().proposal;
    let id = proposal.id;
    assert_eq!(
        proposal.lacks,
        ["the new version of the prompt `a` has no result of the evaluation `quality`: run `promptshelf evaluate a \
          --evaluation quality --proposal 1`"]
    );
    let error = store.publish_proposal(id, None, None, &actor("ben"), checker()).await.unwrap_err();
    assert!(matches!(&error, StoreError::Policy { lacks, .. } if *lacks == proposal.lacks), "{error}");
    assert!(!add(&store, &result("a", "A", 0.7)).await.unwrap());
    let failed = lacks(&store, id).await;
    assert!(failed[0].contains("does not pass the evaluation `quality` (score 0.7, at least 0.8)"), "{failed:?}");
    assert!(failed[0].ends_with("or run `promptshelf evaluate a --evaluation quality --proposal 1` again"));
    // The newest result counts; a score at the threshold passes. Another evaluation does not help.
    let other = NewEvaluation { evaluation: "speed".to_owned(), ..result("a", "A", 1.0) };
    assert!(add(&store, &other).await.unwrap());
    assert_eq!(lacks(&store, id).await, failed);
    assert!(add(&store, &result("a", "A", 0.8)).await.unwrap());
    assert!(lacks(&store, id).await.is_empty());
    let published = store.publish_proposal(id, None, None, &actor("ben"), checker()).await.unwrap();
    assert_eq!(published.proposal.state, ProposalState::Published);
    // A version that has passed is published again without another run, and its removal needs none.
    let removed = publish(&store, "c", 1, &[("a.md", "A", "")]).await.unwrap();
    assert_eq!(removed.proposal.revision, Some(2));
    let again = publish(&store, "c", 2, &[("a.md", "", "A")]).await.unwrap();
    assert_eq!(again.proposal.revision, Some(3));
    let query = EvaluationQuery { evaluation: Some("quality".to_owned()), ..EvaluationQuery::default() };
    let stored = store.evaluations(&channel("c"), &query).await.unwrap();
    let scores: Vec<f64> = stored.iter().map(|result| result.scores["score"]).collect();
    assert_eq!(scores, [0.8, 0.7]);
    assert_eq!(
        (stored[0].author.as_str(), stored[0].model.as_deref(), stored[0].cost),
        ("ci", Some("fake-1"), Some(0.01))
    );
}

pub(crate) async fn regression_against_the_served_version_holds_a_publish(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    demand(&store, true).await;
    let id = publish(&store, "c", 1, &[("a.md", "A", "B")]).await.unwrap().proposal.id;
    add(&store, &result("a", "B", 0.9)).await.unwrap();
    let unknown = lacks(&store, id).await;
    assert!(unknown[0].contains("the served version of the prompt `a` has no result"), "{unknown:?}");
    assert!(unknown[0].ends_with("`promptshelf evaluate a --evaluation quality --channel c`"), "{unknown:?}");
    let case = |name: &str, score| CaseResult { name: name.to_owned(), score: Some(score), ..CaseResult::default() };
    let live = NewEvaluation { cases: vec![case("short", 1.0), case("long", 0.9)], ..result("a", "A", 0.95) };
    add(&store, &live).await.unwrap();
    let worse = lacks(&store, id).await;
    assert!(worse[0].contains("(score 0.9, served 0.95)"), "{worse:?}");
    let new =
        NewEvaluation { tolerance: 0.05, cases: vec![case("short", 1.0), case("long", 0.8)], ..result("a", "B", 0.9) };
    add(&store, &new).await.unwrap();
    assert_eq!(lacks(&store, id).await, [""; 0]);
    let compared = store.proposal_evaluations(id).await.unwrap();
    let change = &compared.prompts[0].evaluations[0];
    let scores = [&change.before, &change.after].map(|side| side.as_ref().unwrap().scores["score"]);
    assert_eq!((change.evaluation.as_str(), scores), ("quality", [0.95, 0.9]));
    let cases: Vec<&str> = change.cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(cases, ["long"]);
    // The comparison stays after the publish, which gives the version its number.
    store.publish_proposal(id, None, None, &actor("ben"), checker()).await.unwrap();
    let mut published = store.proposal_evaluations(id).await.unwrap();
    assert_eq!(std::mem::replace(&mut published.prompts[0].version, 0), 2);
    assert_eq!(published, compared);
}

pub(crate) async fn result_of_an_unknown_version_is_refused(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "use partials/p\nA"), ("partials/p", "", "1")]).await.unwrap();
    demand(&store, false).await;
    let id = publish(&store, "c", 1, &[("a.md", "use partials/p\nA", "use partials/p\nB")]).await.unwrap().proposal.id;
    let digest = |partial: &str| Digest::of(format!("a.md\nuse partials/p\nB\0partials/p\n{partial}").as_bytes());
    let error = add(&store, &result("a", "never proposed", 1.0)).await.unwrap_err();
    assert!(matches!(error, StoreError::Changed { .. }), "{error}");
    // The partial changes in the channel: the prompt of the proposal is another version from then on.
    let edit = request("c", 1, vec![change("partials/p", "1", "2")]);
    let edit = promptshelf_store::Publish { emergency: Some("outage".to_owned()), ..edit };
    store.publish(edit, &actor("ada"), checker()).await.unwrap();
    assert!(add(&store, &version("a", digest("1"), 1.0)).await.unwrap());
    let error = store.publish_proposal(id, None, None, &actor("ben"), checker()).await.unwrap_err();
    assert!(error.to_string().contains("has no result of the evaluation `quality`"), "{error}");
    let error = add(&store, &version("a", digest("3"), 1.0)).await.unwrap_err();
    assert!(matches!(error, StoreError::Changed { .. }), "{error}");
    let new = NewEvaluation { proposal: Some(id), ..version("a", digest("2"), 0.9) };
    assert!(add(&store, &new).await.unwrap());
    store.publish_proposal(id, None, None, &actor("ben"), checker()).await.unwrap();
}

pub(crate) async fn malformed_result_is_refused(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    let good = || result("a", "A", 0.9);
    let scores = |name: &str, score| BTreeMap::from([(name.to_owned(), score)]);
    let long = CaseResult { name: "x".repeat(201), ..CaseResult::default() };
    let reason = CaseResult { name: "x".to_owned(), reason: "y".repeat(4_000), ..CaseResult::default() };
    for new in [
        NewEvaluation { evaluation: "Quality!".to_owned(), ..good() },
        NewEvaluation { scores: BTreeMap::new(), thresholds: BTreeMap::new(), ..good() },
        NewEvaluation { scores: scores("score", f64::NAN), ..good() },
        NewEvaluation { scores: scores("score", f64::INFINITY), ..good() },
        NewEvaluation { scores: scores("other", 1.0), ..good() },
        NewEvaluation { cost: Some(-1.0), ..good() },
        NewEvaluation { tolerance: f64::NAN, ..good() },
        NewEvaluation { model: Some("a\u{1b}[2J".to_owned()), ..good() },
        NewEvaluation { cases: vec![long], ..good() },
        NewEvaluation { cases: vec![reason; 100], ..good() },
        NewEvaluation { cases: vec![CaseResult { name: "x".to_owned(), ..CaseResult::default() }; 1_001], ..good() },
    ] {
        let error = add(&store, &new).await.unwrap_err();
        assert!(matches!(error, StoreError::InvalidInput { .. }), "{error}");
    }
    let policy = Policy { evaluations: vec!["no such name".to_owned()], ..Policy::default() };
    let error = store.set_policy(&channel("c"), &policy, &PolicyGuard::Any, "", &actor("root")).await.unwrap_err();
    assert!(matches!(error, StoreError::InvalidInput { .. }), "{error}");
    assert!(store.evaluations(&channel("c"), &EvaluationQuery::default()).await.unwrap().is_empty());
    // The number of stored results is bounded.
    for _ in 0..25 {
        add(&store, &good()).await.unwrap();
    }
    assert_eq!(store.evaluations(&channel("c"), &EvaluationQuery::default()).await.unwrap().len(), 20);
    store.set_policy(&channel("empty"), &Policy::default(), &PolicyGuard::Any, "", &actor("root")).await.unwrap();
    assert!(store.evaluations(&channel("empty"), &EvaluationQuery::default()).await.unwrap().is_empty());
}
