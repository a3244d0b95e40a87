//! Uploads: their quota, and their end.

use std::time::Duration;

use promptshelf_store::{Actor, Digest, PolicyGuard, Publish, Store, StoreError, Verdict};

use crate::sample::{actor, change, channel, checker, policy, publish, request, review};

fn is_over<T: std::fmt::Debug>(result: Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Quota { limit: 1_000, .. }))
}

/// Uploads, open proposals and the contents that a proposal had before count; what is published does not.
pub(crate) async fn what_is_not_published_has_a_quota(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    store.set_policy(&channel("c"), &policy(1, true), &PolicyGuard::Any, "", &actor("root")).await.unwrap();
    let store = store.with_quota(1_000);
    let upload = |caller: &'static str, letter: &str, bytes: usize| {
        let (store, content) = (store.clone(), letter.repeat(bytes).into_bytes());
        async move { store.add_contents(vec![content], caller).await }
    };
    upload("ada", "u", 600).await.unwrap();
    assert!(is_over(upload("ada", "v", 600).await), "nothing of it is stored");
    upload("ada", "u", 600).await.unwrap();
    upload("bob", "v", 600).await.unwrap();
    let writer = Actor { may_publish: false, ..actor("ada") };
    let propose = |path: &str, text: String, proposal: Option<u64>| {
        let publish = Publish { proposal, ..request("c", 1, vec![change(path, "", &text)]) };
        let (store, writer) = (store.clone(), writer.clone());
        async move { store.publish(publish, &writer, checker()).await }
    };
    let proposed = propose("b.md", "x".repeat(300), None).await.unwrap().proposal.id;
    assert!(is_over(propose("b.md", "y".repeat(300), None).await));
    assert!(
        is_over(propose("b.md", "y".repeat(300), Some(proposed)).await),
        "what it had counts for the rest of the day"
    );
    let present = store.proposal(proposed).await.unwrap().changes[0].after;
    assert_eq!(present, Some(Digest::of("x".repeat(300).as_bytes())), "it stays as it was");
    review(&store, proposed, Verdict::Approve, "", None, "bob").await.unwrap();
    propose("c.md", "y".repeat(300), None).await.expect("the first one is published");
}

pub(crate) async fn old_uploads_that_nothing_refers_to_are_removed(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    let contents = [&b"unused"[..], b"error", b"A"].map(<[u8]>::to_vec).to_vec();
    let digests = store.add_contents(contents, "ada").await.unwrap();
    publish(&store, "c", 1, &[("b.md", "", "error")]).await.unwrap();
    assert_eq!(store.remove_uploads(Duration::from_secs(3_600)).await.unwrap(), (0, 0), "they are new");
    assert_eq!(store.remove_uploads(Duration::ZERO).await.unwrap(), (1, 6));
    assert!(matches!(store.blobs(&digests[..1]).await, Err(StoreError::NotFound { .. })));
    assert_eq!(store.blobs(&digests[1..]).await.unwrap().len(), 2, "a proposal has one, a revision the other");
    assert_eq!(store.remove_uploads(Duration::ZERO).await.unwrap(), (0, 0));
}
