//! Promotion and rollback.

use promptshelf_store::{Actor, PolicyGuard, Promotion, ProposalState, Published, RevisionKind, Store, StoreError};

use crate::sample::{actor, channel, checker, policy, promotion, prompts, publish, review, rollback, texts};

async fn promote(store: &Store, chosen: &[&str]) -> Result<Published, StoreError> {
    store.promote(&promotion("staging", "c", chosen), &actor("ada"), checker()).await
}

async fn roll_back(store: &Store, to: u64, prompt: Option<&str>) -> Result<Published, StoreError> {
    store.rollback(&rollback("c", to, prompt), &actor("ada"), checker()).await
}

fn text(path: &str, text: &str) -> (String, String) {
    (path.to_owned(), text.to_owned())
}

pub(crate) async fn promotion_copies_all_files(store: Store) {
    publish(&store, "staging", 0, &[("a.md", "", "A"), ("x.txt", "", "X")]).await.unwrap();
    let published = promote(&store, &[]).await.unwrap();
    assert_eq!(published.proposal.kind, RevisionKind::Promote);
    assert_eq!(published.proposal.message, "Promote all files");
    assert_eq!(texts(&store, "c", None).await, texts(&store, "staging", None).await);
    publish(&store, "c", 1, &[("only.md", "", "here")]).await.unwrap();
    publish(&store, "staging", 1, &[("a.md", "A", "A2"), ("x.txt", "X", "")]).await.unwrap();
    let published = promote(&store, &[]).await.unwrap();
    assert_eq!((prompts(&published), &published.kept[..]), (vec![("a", 2, "changed")], &["only".to_owned()][..]));
    assert_eq!(texts(&store, "c", None).await, [text("a.md", "A2"), text("only.md", "here")]);
    let error = promote(&store, &[]).await.unwrap_err();
    assert!(matches!(error, StoreError::Unchanged { .. }), "{error}");
    let equal = Promotion { all: true, ..promotion("staging", "c", &[]) };
    let published = store.promote(&equal, &actor("ada"), checker()).await.unwrap();
    assert_eq!((prompts(&published), published.kept.len()), (vec![("only", 1, "removed")], 0));
    assert_eq!(texts(&store, "c", None).await, texts(&store, "staging", None).await);
    let error = store.promote(&promotion("c", "c", &[]), &actor("ada"), checker()).await.unwrap_err();
    assert!(matches!(error, StoreError::InvalidInput { .. }), "{error}");
}

pub(crate) async fn promotion_never_undoes_a_change_of_the_target(store: Store) {
    publish(&store, "staging", 0, &[("a.md", "", "A"), ("b.md", "", "B"), ("d.md", "", "D")]).await.unwrap();
    promote(&store, &[]).await.unwrap();
    publish(&store, "c", 1, &[("a.md", "A", "A fix"), ("own.md", "", "O")]).await.unwrap();
    publish(&store, "staging", 1, &[("b.md", "B", "B2"), ("d.md", "D", "")]).await.unwrap();
    let published = promote(&store, &[]).await.unwrap();
    assert_eq!(prompts(&published), [("b", 2, "changed"), ("d", 1, "removed")]);
    assert_eq!(published.kept, ["a", "own"]);
    let source = published.proposal.source.clone().unwrap();
    assert_eq!((source.channel.as_str(), source.revision, source.is_whole), ("staging", 2, true));
    // Both have changed it.
    publish(&store, "staging", 2, &[("a.md", "A", "A2"), ("b.md", "B2", "B3")]).await.unwrap();
    for prompts in [&[][..], &["a"]] {
        let error = promote(&store, prompts).await.unwrap_err();
        let StoreError::Conflict { paths, .. } = &error else { panic!("{error}") };
        assert_eq!(paths, &["a.md"]);
    }
    // A single prompt moves on without the others, and its files are the base of the next promotion.
    assert_eq!(prompts(&promote(&store, &["b"]).await.unwrap()), [("b", 3, "changed")]);
    publish(&store, "c", 4, &[("a.md", "A fix", "A2")]).await.unwrap();
    let error = promote(&store, &[]).await.unwrap_err();
    assert!(matches!(error, StoreError::Unchanged { .. }), "{error}");
    let equal = Promotion { all: true, ..promotion("staging", "c", &[]) };
    store.promote(&equal, &actor("ada"), checker()).await.unwrap();
    assert_eq!(texts(&store, "c", None).await, texts(&store, "staging", None).await);
    // A rollback of the target leaves nothing of its own: the next change of the source replaces it.
    publish(&store, "staging", 3, &[("b.md", "B3", "B4")]).await.unwrap();
    promote(&store, &[]).await.unwrap();
    roll_back(&store, 6, None).await.unwrap();
    publish(&store, "staging", 4, &[("b.md", "B4", "B5")]).await.unwrap();
    let published = promote(&store, &[]).await.unwrap();
    assert_eq!((prompts(&published), published.kept.len()), (vec![("b", 5, "changed")], 0));
}

pub(crate) async fn promotion_of_a_prompt_brings_what_it_needs(store: Store) {
    let changes = [("a.md", "", "use partials/p.md"), ("b.md", "", "B"), ("partials/p.md", "", "P")];
    publish(&store, "staging", 0, &changes).await.unwrap();
    let published = promote(&store, &["a"]).await.unwrap();
    assert_eq!(prompts(&published), [("a", 1, "added")]);
    assert_eq!(texts(&store, "c", None).await, [text("a.md", "use partials/p.md"), text("partials/p.md", "P")]);
    let error = promote(&store, &["missing"]).await.unwrap_err();
    assert!(matches!(&error, StoreError::NotFound { what } if what.contains("`missing`")), "{error}");
    let dry = Promotion { dry_run: true, ..promotion("staging", "c", &["b"]) };
    let dry = store.promote(&dry, &actor("ada"), checker()).await.unwrap();
    assert_eq!(prompts(&dry), [("b", 0, "added")]);
    assert_eq!(store.head(&channel("c")).await.unwrap().revision, 1);
}

pub(crate) async fn promotion_without_the_rule_of_its_source_is_an_opening(store: Store) {
    publish(&store, "staging", 0, &[("a.md", "", "A"), ("b.md", "", "B"), ("rules", "", "a.md")]).await.unwrap();
    for (revision, prompt) in [(1, "b"), (2, "a")] {
        let publisher = Actor { may_administer: false, ..actor("ada") };
        let published =
            store.promote(&promotion("staging", "c", &[prompt]), &publisher, checker()).await.unwrap().proposal;
        let names: Vec<&str> = published.effects.iter().map(|effect| effect.name.as_str()).collect();
        if prompt == "b" {
            assert_eq!((published.revision, names), (Some(revision), vec![]));
            continue;
        }
        // The channel exists or not, and its own rules have not changed: what counts is the source.
        assert_eq!((published.revision, names), (None, vec!["source-opened:a.md"]), "{published:?}");
        let error = store.publish_proposal(published.id, Some(published.digest), None, &publisher, checker()).await;
        assert!(matches!(error.unwrap_err(), StoreError::Policy { .. }));
        let confirmed = store.proposal(published.id).await.unwrap();
        assert_eq!(confirmed.effects, published.effects, "the source is compared again");
        // Without the files of the source, nobody can tell.
        publish(&store, "staging", 1, &[("rules", "a.md", "")]).await.unwrap();
        store.prune(std::time::Duration::ZERO).await.unwrap();
        let error = review(&store, published.id, promptshelf_store::Verdict::Approve, "", None, "ben").await;
        assert!(matches!(error.unwrap_err(), StoreError::State { .. }));
    }
    let all = Promotion { all: true, ..promotion("staging", "d", &[]) };
    let published = store.promote(&all, &actor("ada"), checker()).await.unwrap().proposal;
    assert_eq!((published.revision, published.effects.len()), (Some(1), 0), "the rule comes along: {published:?}");
}

pub(crate) async fn promotion_lists_other_prompts_of_shared_files(store: Store) {
    let shared = "use partials/p.md";
    let changes = [("a.md", "", shared), ("b.md", "", shared), ("partials/p.md", "", "P")];
    publish(&store, "staging", 0, &changes).await.unwrap();
    promote(&store, &[]).await.unwrap();
    publish(&store, "staging", 1, &[("partials/p.md", "P", "P2")]).await.unwrap();
    let published = promote(&store, &["a"]).await.unwrap();
    assert_eq!(prompts(&published), [("a", 2, "changed"), ("b", 2, "changed")]);
}

pub(crate) async fn promotion_without_a_partial_is_refused(store: Store) {
    publish(&store, "staging", 0, &[("a.md", "", "use partials/gone.md")]).await.unwrap();
    let error = promote(&store, &["a"]).await.unwrap_err();
    assert!(matches!(&error, StoreError::State { reason } if reason.contains("`partials/gone.md`")), "{error}");
    assert_eq!(store.channels().await.unwrap().len(), 1);
}

pub(crate) async fn promoted_prompt_replaces_its_old_file(store: Store) {
    publish(&store, "staging", 0, &[("a.md", "", "A"), ("b.md", "", "B")]).await.unwrap();
    promote(&store, &[]).await.unwrap();
    publish(&store, "staging", 1, &[("a.md", "A", ""), ("folder/a.md", "", "A")]).await.unwrap();
    promote(&store, &["a"]).await.unwrap();
    assert_eq!(texts(&store, "c", None).await, [text("b.md", "B"), text("folder/a.md", "A")]);
}

pub(crate) async fn promotion_follows_the_policy_of_the_target(store: Store) {
    publish(&store, "staging", 0, &[("a.md", "", "A")]).await.unwrap();
    store.set_policy(&channel("c"), &policy(1, true), &PolicyGuard::Any, "", &actor("root")).await.unwrap();
    let open = promote(&store, &[]).await.unwrap().proposal;
    assert_eq!((open.state, open.kind), (ProposalState::Open, RevisionKind::Promote));
    let approve = promptshelf_store::Verdict::Approve;
    let published = review(&store, open.id, approve, "", None, "ben").await.unwrap();
    assert_eq!(published.proposal.revision, Some(1));
    assert_eq!(store.revision(&channel("c"), 1).await.unwrap().kind, RevisionKind::Promote);
}

pub(crate) async fn rollback_makes_a_new_revision(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A"), ("b.md", "", "B")]).await.unwrap();
    publish(&store, "c", 1, &[("a.md", "A", "A2"), ("b.md", "B", ""), ("d.md", "", "D")]).await.unwrap();
    let published = roll_back(&store, 1, None).await.unwrap();
    assert_eq!((published.proposal.revision, published.proposal.kind), (Some(3), RevisionKind::Rollback));
    // The versions are those that the texts had.
    assert_eq!(prompts(&published), [("a", 1, "changed"), ("b", 1, "added"), ("d", 1, "removed")]);
    assert_eq!(texts(&store, "c", None).await, texts(&store, "c", Some(1)).await);
    assert_eq!(texts(&store, "c", Some(2)).await.len(), 2);
    let error = roll_back(&store, 3, None).await.unwrap_err();
    assert!(matches!(error, StoreError::Unchanged { .. }), "{error}");
    // A promotion after it takes the next change of the source, and does not undo the rollback.
    let before: Vec<_> = published.prompts.iter().map(|prompt| (prompt.name.as_str(), prompt.previous)).collect();
    assert_eq!(before, [("a", Some(2)), ("b", None), ("d", Some(1))]);
}

pub(crate) async fn rollback_of_one_prompt_keeps_the_others(store: Store) {
    let shared = "use partials/p.md";
    publish(&store, "c", 0, &[("a.md", "", shared), ("b.md", "", "B"), ("partials/p.md", "", "P")]).await.unwrap();
    publish(&store, "c", 1, &[("b.md", "B", "B2"), ("partials/p.md", "P", "P2")]).await.unwrap();
    publish(&store, "c", 2, &[("new.md", "", "N")]).await.unwrap();
    let published = roll_back(&store, 1, Some("a")).await.unwrap();
    assert_eq!(prompts(&published), [("a", 1, "changed")]);
    let expected = [text("a.md", shared), text("b.md", "B2"), text("new.md", "N"), text("partials/p.md", "P")];
    assert_eq!(texts(&store, "c", None).await, expected);
    // A prompt that did not exist then.
    let error = roll_back(&store, 1, Some("new")).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    // A revision with an error waits as a proposal.
    let off = promptshelf_store::Policy { checks: promptshelf_store::CheckLevel::Off, ..Default::default() };
    store.set_policy(&channel("c"), &off, &PolicyGuard::Any, "", &actor("root")).await.unwrap();
    publish(&store, "c", 4, &[("bad.md", "", "error")]).await.unwrap();
    publish(&store, "c", 5, &[("bad.md", "error", "good")]).await.unwrap();
    store.set_policy(&channel("c"), &policy(0, false), &PolicyGuard::Any, "", &actor("root")).await.unwrap();
    let open = roll_back(&store, 5, None).await.unwrap().proposal;
    assert_eq!((open.state, open.lacks), (ProposalState::Open, vec!["the check found 1 error".to_owned()]));
}
