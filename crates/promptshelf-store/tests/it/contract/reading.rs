//! Reading files, deltas and contents.

use promptshelf_store::{Change, Digest, Head, ProposalQuery, Store, StoreError};

use crate::sample::{actor, channel, checker, promotion, publish, request, rollback, texts};

pub(crate) async fn delta_has_exactly_the_changes(store: Store) {
    let name = channel("c");
    publish(&store, "c", 0, &[("a.md", "", "A"), ("b.md", "", "B"), ("c.md", "", "C")]).await.unwrap();
    let first = store.head(&name).await.unwrap();
    let all = store.delta(&name, None).await.unwrap();
    assert!(all.is_complete);
    assert_eq!((all.files.len(), &all.head), (3, &first));
    publish(&store, "c", 1, &[("a.md", "A", "A2"), ("b.md", "B", "")]).await.unwrap();
    publish(&store, "c", 2, &[("a.md", "A2", "A3"), ("d.md", "", "D"), ("e.md", "", "E")]).await.unwrap();
    // A file that came and went is not a part of the delta.
    publish(&store, "c", 3, &[("e.md", "E", "")]).await.unwrap();
    let delta = store.delta(&name, Some(&first)).await.unwrap();
    assert!(!delta.is_complete);
    assert_eq!(delta.head.revision, 4);
    let files: Vec<_> = delta.files.iter().map(|file| (file.path.as_str(), file.digest, file.size)).collect();
    assert_eq!(files, [("a.md", Digest::of(b"A3"), 2), ("d.md", Digest::of(b"D"), 1)]);
    assert_eq!(delta.removed, ["b.md"]);
    let none = store.delta(&name, Some(&delta.head)).await.unwrap();
    assert!(!none.is_complete && none.files.is_empty() && none.removed.is_empty());
}

pub(crate) async fn delta_is_complete_for_another_epoch_or_a_newer_revision(store: Store) {
    let name = channel("c");
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    let head = store.head(&name).await.unwrap();
    let newer = Head { revision: 7, ..head.clone() };
    assert!(store.delta(&name, Some(&newer)).await.unwrap().is_complete);
    store.new_epoch().await.unwrap();
    let delta = store.delta(&name, Some(&head)).await.unwrap();
    assert!(delta.is_complete);
    assert_eq!(delta.files.len(), 1);
    assert_ne!(delta.head.epoch, head.epoch);
}

pub(crate) async fn unknown_names_are_not_found(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    let missing = channel("missing");
    let errors = [
        store.head(&missing).await.unwrap_err(),
        store.channel(&missing).await.unwrap_err(),
        store.files(&missing, None).await.unwrap_err(),
        store.delta(&missing, None).await.unwrap_err(),
        store.files(&channel("c"), Some(2)).await.unwrap_err(),
        store.revision(&channel("c"), 2).await.unwrap_err(),
        store.served(&channel("c"), 2).await.unwrap_err(),
        store.proposal(99).await.unwrap_err(),
        store
            .proposals(&ProposalQuery { channel: Some(missing.clone()), ..ProposalQuery::default() })
            .await
            .unwrap_err(),
        store.blobs(&[Digest::of(b"nothing")]).await.unwrap_err(),
        store.promote(&promotion(missing.as_str(), "c", &[]), &actor("ada"), checker()).await.unwrap_err(),
        store.rollback(&rollback("c", 2, None), &actor("ada"), checker()).await.unwrap_err(),
        store.rollback(&rollback("c", 0, None), &actor("ada"), checker()).await.unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    }
}

pub(crate) async fn every_revision_stays_readable(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A"), ("b.md", "", "B")]).await.unwrap();
    publish(&store, "c", 1, &[("a.md", "A", "A2"), ("b.md", "B", "")]).await.unwrap();
    publish(&store, "c", 2, &[("b.md", "", "B3")]).await.unwrap();
    let text = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    assert_eq!(texts(&store, "c", Some(0)).await, []);
    assert_eq!(texts(&store, "c", Some(1)).await, [text("a.md", "A"), text("b.md", "B")]);
    assert_eq!(texts(&store, "c", Some(2)).await, [text("a.md", "A2")]);
    assert_eq!(texts(&store, "c", Some(3)).await, [text("a.md", "A2"), text("b.md", "B3")]);
    let (head, files) = store.files(&channel("c"), Some(1)).await.unwrap();
    assert_eq!((head.revision, files.len()), (1, 2));
    let file = async |revision, path: &str| {
        let (head, file) = store.file(&channel("c"), revision, path).await.unwrap();
        (head.revision, file.map(|file| file.digest))
    };
    assert_eq!(file(Some(1), "a.md").await, (1, Some(Digest::of(b"A"))));
    assert_eq!(file(None, "b.md").await, (3, Some(Digest::of(b"B3"))));
    assert_eq!(file(Some(2), "b.md").await, (2, None));
}

pub(crate) async fn contents_are_read_by_digest(store: Store) {
    // Not UTF-8, and empty.
    let bytes = vec![0, 159, 146, 150];
    let changes = [("bin", bytes.clone()), ("empty.txt", Vec::new())].map(|(path, bytes)| Change {
        path: path.to_owned(),
        before: None,
        after: Some(bytes.into()),
    });
    store.publish(request("c", 0, changes.to_vec()), &actor("ada"), checker()).await.unwrap();
    let digests = [Digest::of(&bytes), Digest::of(b""), Digest::of(b"")];
    let mut contents = store.blobs(&digests).await.unwrap();
    contents.sort_by_key(|(_, bytes)| bytes.len());
    let lengths: Vec<usize> = contents.iter().map(|(_, bytes)| bytes.len()).collect();
    assert_eq!(lengths, [0, 4]);
    assert_eq!(&*contents[1].1, bytes);
    assert!(store.blobs(&[]).await.unwrap().is_empty());
}

pub(crate) async fn hundred_thousand_files_fit(store: Store) {
    const FILES: usize = 100_000;
    let file = |number: usize| Change {
        path: format!("texts/{:03}/{number:06}.txt", number / 1_000),
        before: None,
        after: Some(format!("text {number}").into_bytes().into()),
    };
    let changes: Vec<Change> = (0..FILES).map(file).collect();
    store.publish(request("c", 0, changes), &actor("ada"), checker()).await.unwrap();
    let (head, tree) = store.tree(&channel("c"), None).await.unwrap();
    assert_eq!((head.revision, tree.len()), (1, FILES));
    assert_eq!(tree.get("texts/099/099999.txt").unwrap().bytes(), b"text 99999");
    publish(&store, "c", 1, &[("texts/000/000000.txt", "text 0", "other")]).await.unwrap();
    let delta = store.delta(&channel("c"), Some(&head)).await.unwrap();
    assert_eq!((delta.files.len(), delta.removed.len()), (1, 0));
    // One more than a channel may have.
    let error = publish(&store, "c", 2, &[("more.txt", "", "x")]).await.unwrap_err();
    assert!(matches!(error, StoreError::InvalidInput { .. }), "{error}");
}
