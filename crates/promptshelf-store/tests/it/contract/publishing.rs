//! Publishing: compare and set, checks, input.

use std::sync::Arc;

use promptshelf_store::{CheckLevel, Policy, PolicyGuard, ProposalQuery, ProposalState, Store, StoreError};

use crate::sample::{SampleChecker, actor, change, channel, checker, prompts, publish, request, summary, texts};

pub(crate) async fn first_publish_makes_the_channel_and_revision_1(store: Store) {
    let published = publish(&store, "production", 0, &[("a.md", "", "A"), ("b.md", "", "B")]).await.unwrap();
    assert_eq!(prompts(&published), [("a", 1, "added"), ("b", 1, "added")]);
    assert_eq!((published.proposal.state, published.proposal.revision), (ProposalState::Published, Some(1)));
    assert_eq!(published.proposal.lacks, [""; 0]);
    let info = store.channel(&channel("production")).await.unwrap();
    assert_eq!((info.head.revision, info.policy), (1, Policy::default()));
    assert_eq!(store.channels().await.unwrap().len(), 1);
    assert_eq!(texts(&store, "production", None).await, [("a.md".into(), "A".into()), ("b.md".into(), "B".into())]);
    let revision = store.revision(&channel("production"), 1).await.unwrap();
    assert_eq!((revision.author.as_str(), revision.message.as_str()), ("ada", "a change"));
    assert_eq!((revision.proposal, revision.prompts), (published.proposal.id, published.prompts));
}

pub(crate) async fn independent_changes_do_not_conflict(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A"), ("b.md", "", "B")]).await.unwrap();
    publish(&store, "c", 1, &[("a.md", "A", "A2")]).await.unwrap();
    // From the same base, another file.
    let second = publish(&store, "c", 1, &[("b.md", "B", "")]).await.unwrap();
    assert_eq!(prompts(&second), [("b", 1, "removed")]);
    assert_eq!(texts(&store, "c", None).await, [("a.md".to_owned(), "A2".to_owned())]);
}

pub(crate) async fn two_edits_of_one_file_conflict(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A"), ("b.md", "", "B")]).await.unwrap();
    publish(&store, "c", 1, &[("a.md", "A", "A2")]).await.unwrap();
    let error = publish(&store, "c", 1, &[("a.md", "A", "A3"), ("b.md", "B", "B2")]).await.unwrap_err();
    let StoreError::Conflict { paths, revision } = error else { panic!("{error}") };
    assert_eq!((paths, revision), (vec!["a.md".to_owned()], 2));
    // A file that is gone, and one that appeared.
    publish(&store, "c", 2, &[("a.md", "A2", ""), ("new.md", "", "N")]).await.unwrap();
    let error = publish(&store, "c", 2, &[("a.md", "A2", "A3"), ("new.md", "", "N2")]).await.unwrap_err();
    let StoreError::Conflict { paths, .. } = error else { panic!("{error}") };
    assert_eq!(paths, ["a.md", "new.md"]);
    assert_eq!(store.head(&channel("c")).await.unwrap().revision, 3);
    assert_eq!(store.proposals(&ProposalQuery::default()).await.unwrap().len(), 3);
}

pub(crate) async fn equal_change_is_not_made_twice(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    let error = publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap_err();
    assert!(matches!(error, StoreError::Unchanged { .. }), "{error}");
    assert!(error.to_string().contains("nothing to publish"), "{error}");
    // Together with another change, only that one counts.
    let published = publish(&store, "c", 0, &[("a.md", "", "A"), ("b.md", "", "B")]).await.unwrap();
    assert_eq!(published.proposal.changes.len(), 1);
}

pub(crate) async fn dry_run_stores_nothing(store: Store) {
    let dry = |changes| promptshelf_store::Publish { dry_run: true, ..request("c", 0, changes) };
    let changes = vec![change("a.md", "", "A\nerror\n")];
    let published = store.publish(dry(changes), &actor("ada"), checker()).await.unwrap();
    assert_eq!((published.proposal.id, published.proposal.checks), (0, summary(1, 0)));
    assert_eq!(published.proposal.lacks, ["the check found 1 error"]);
    assert_eq!(published.findings, ["a.md:2: error"]);
    assert_eq!(prompts(&published), [("a", 0, "added")]);
    assert!(store.channels().await.unwrap().is_empty());
    assert!(store.proposals(&ProposalQuery::default()).await.unwrap().is_empty());
    assert_eq!(store.gc().await.unwrap(), (0, 0));
}

pub(crate) async fn error_leaves_an_open_proposal(store: Store) {
    let published = publish(&store, "c", 0, &[("a.md", "", "error")]).await.unwrap();
    assert_eq!((published.proposal.state, published.proposal.revision), (ProposalState::Open, None));
    assert_eq!(published.proposal.lacks, ["the check found 1 error"]);
    assert_eq!(store.head(&channel("c")).await.unwrap().revision, 0);
    // The author corrects it in place.
    let corrected = promptshelf_store::Publish {
        proposal: Some(published.proposal.id),
        ..request("c", 0, vec![change("a.md", "", "good")])
    };
    let published = store.publish(corrected, &actor("ada"), checker()).await.unwrap();
    assert_eq!(published.proposal.revision, Some(1));
    // Warnings stop it only where the policy says so.
    publish(&store, "c", 1, &[("a.md", "good", "warning")]).await.unwrap();
    let strict = Policy { checks: CheckLevel::Warnings, ..Policy::default() };
    store.set_policy(&channel("c"), &strict, &PolicyGuard::Any, "", &actor("root")).await.unwrap();
    let published = publish(&store, "c", 2, &[("b.md", "", "B")]).await.unwrap();
    assert_eq!(published.proposal.lacks, ["the check found 1 warning"]);
    let off = Policy { checks: CheckLevel::Off, ..Policy::default() };
    store.set_policy(&channel("c"), &off, &PolicyGuard::Any, "", &actor("root")).await.unwrap();
    assert_eq!(store.proposal(published.proposal.id).await.unwrap().lacks, [""; 0]);
}

pub(crate) async fn emergency_passes_over_the_policy_and_is_recorded(store: Store) {
    store
        .set_policy(&channel("c"), &crate::sample::policy(2, true), &PolicyGuard::Any, "", &actor("root"))
        .await
        .unwrap();
    let urgent = |changes| promptshelf_store::Publish {
        emergency: Some("the site is down".to_owned()),
        ..request("c", 0, changes)
    };
    let published = store.publish(urgent(vec![change("a.md", "", "error")]), &actor("ada"), checker()).await.unwrap();
    assert_eq!(published.proposal.revision, Some(1));
    let revision = store.revision(&channel("c"), 1).await.unwrap();
    assert_eq!(revision.emergency.as_deref(), Some("the site is down"));
    assert_eq!((revision.checks, revision.approved_by), (summary(1, 0), Vec::<String>::new()));
    // A reason that was not needed is not an emergency.
    store.set_policy(&channel("c"), &Policy::default(), &PolicyGuard::Any, "", &actor("root")).await.unwrap();
    store.publish(urgent(vec![change("a.md", "error", "good")]), &actor("ada"), checker()).await.unwrap();
    assert_eq!(store.revision(&channel("c"), 2).await.unwrap().emergency, None);
}

pub(crate) async fn unloadable_tree_is_never_published(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    let off = Policy { checks: CheckLevel::Off, ..Policy::default() };
    store.set_policy(&channel("c"), &off, &PolicyGuard::Any, "", &actor("root")).await.unwrap();
    for emergency in [None, Some("the site is down".to_owned())] {
        let broken =
            promptshelf_store::Publish { emergency, ..request("c", 1, vec![change("a.md", "A", "error\nunloadable")]) };
        let error = store.publish(broken, &actor("ada"), checker()).await.unwrap_err();
        assert!(matches!(&error, StoreError::InvalidInput { reason } if reason.contains("a.md:1: error")), "{error}");
    }
    assert_eq!(store.head(&channel("c")).await.unwrap().revision, 1);
    assert!(store.proposals(&ProposalQuery::default()).await.unwrap().iter().all(|one| one.revision.is_some()));
}

pub(crate) async fn bad_input_is_refused_and_changes_nothing(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A"), ("folder/file.md", "", "F")]).await.unwrap();
    let long = "x".repeat(1_025);
    let decomposed = "e\u{301}.md";
    publish(&store, "c", 1, &[("\u{e9}.md", "", "E")]).await.unwrap();
    for path in [
        "",
        "/etc/passwd",
        "../a.md",
        "b/../a.md",
        "./a.md",
        "b//a.md",
        "b/",
        "b\\a.md",
        "b\0.md",
        "b\n.md",
        "C:a.md",
        "con",
        "b/NUL.md",
        "Com1.txt",
        "lpt\u{b9}.md",
        "b.",
        "b ",
        "b./a.md",
        " b",
        "a\u{202e}.md",
        "\u{2024}\u{2024}/a.md",
        "b\u{ff0f}a.md",
        "a?.md",
        &long,
        "A.MD",
        "folder",
        "a.md/b.md",
        "Folder/File.md",
        decomposed,
    ] {
        let error = publish(&store, "c", 2, &[(path, "", "x")]).await.unwrap_err();
        assert!(matches!(error, StoreError::InvalidInput { .. }), "{path:?}: {error}");
        assert!(!error.to_string().contains(['\0', '\u{202e}', '\n']), "{error}");
    }
    // Longer than 64 MiB; twice the same path; texts and names.
    let with = |message: &str, name: &str, changes| {
        let request = promptshelf_store::Publish { message: message.to_owned(), ..request("c", 2, changes) };
        let (store, actor) = (store.clone(), actor(name));
        async move { store.publish(request, &actor, checker()).await.unwrap_err() }
    };
    let huge = promptshelf_store::Change {
        path: "h.md".to_owned(),
        before: None,
        after: Some(vec![b'x'; (64 << 20) + 1].into()),
    };
    let twice = vec![change("b.md", "", "1"), change("b.md", "", "2")];
    let good = || vec![change("b.md", "", "1")];
    for error in [
        with("m", "ada", vec![huge]).await,
        with("m", "ada", twice).await,
        with(" ", "ada", good()).await,
        with(&"m".repeat(4_097), "ada", good()).await,
        with("\u{1b}[2J", "ada", good()).await,
        with("m", "", good()).await,
        with("m", "ada\n", good()).await,
        with("m", &"a".repeat(201), good()).await,
    ] {
        assert!(matches!(error, StoreError::InvalidInput { .. }), "{error}");
    }
    let error = publish(&store, "c", 9, &[("b.md", "", "x")]).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    assert_eq!(store.head(&channel("c")).await.unwrap().revision, 2);
    assert_eq!(store.proposals(&ProposalQuery::default()).await.unwrap().len(), 2);
}

pub(crate) async fn concurrent_writers_make_dense_revisions(store: Store) {
    const WRITERS: u64 = 16;
    const EACH: u64 = 3;
    let mut tasks = Vec::new();
    for writer in 0..WRITERS {
        // Every second one has connections of its own, as another process would.
        let store = if writer % 2 == 0 { store.clone() } else { Store::open(store.url()).await.unwrap() };
        tasks.push(tokio::spawn(async move {
            for number in 0..EACH {
                let path = format!("w{writer}-{number}.md");
                publish(&store, "c", 0, &[(&path, "", "text")]).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let query = promptshelf_store::HistoryQuery { limit: 1_000, ..Default::default() };
    let history = store.history(&channel("c"), &query).await.unwrap();
    let numbers: Vec<u64> = history.iter().rev().map(|revision| revision.number).collect();
    assert_eq!(numbers, (1..=WRITERS * EACH).collect::<Vec<_>>());
    let mut added: Vec<&str> =
        history.iter().flat_map(|revision| &revision.prompts).map(|prompt| prompt.name.as_str()).collect();
    added.sort_unstable();
    added.dedup();
    assert_eq!(added.len() as u64, WRITERS * EACH);
    assert_eq!(texts(&store, "c", None).await.len() as u64, WRITERS * EACH);
    assert!(history.windows(2).all(|pair| pair[0].at >= pair[1].at), "times follow the numbers");
}

pub(crate) async fn check_sees_the_whole_resulting_tree(store: Store) {
    let counting = Arc::new(SampleChecker::default());
    let changes = vec![change("a.md", "", "use partials/p.md"), change("partials/p.md", "", "P")];
    store.publish(request("c", 0, changes), &actor("ada"), counting.clone()).await.unwrap();
    assert_eq!(counting.runs(), 1);
    // The partial alone changes the prompt.
    let published = publish(&store, "c", 1, &[("partials/p.md", "P", "P2")]).await.unwrap();
    assert_eq!(prompts(&published), [("a", 2, "changed")]);
    // Another process published meanwhile: this one reads what has changed.
    let other = Store::open(store.url()).await.unwrap();
    publish(&other, "c", 2, &[("b.md", "", "use partials/p.md")]).await.unwrap();
    let published = publish(&store, "c", 2, &[("partials/p.md", "P2", "P")]).await.unwrap();
    assert_eq!(prompts(&published), [("a", 1, "changed"), ("b", 2, "changed")]);
}
