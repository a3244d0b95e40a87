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
    // Paths and messages are stored, too.
    let writer = Actor { may_publish: false, ..actor("eve") };
    let paths: Vec<String> = (0..20).map(|number| format!("{}{number}.md", "p".repeat(60))).collect();
    let changes = paths.iter().map(|path| change(path, "", "x")).collect();
    assert!(is_over(store.publish(request("c", 2, changes), &writer, checker()).await));
    let message = "m".repeat(1_000);
    let long = Publish { message, ..request("c", 2, vec![change("d.md", "", "x")]) };
    assert!(is_over(store.publish(long, &writer, checker()).await));
    let few = Publish { dry_run: false, ..request("c", 2, vec![change("d.md", "", "x")]) };
    store.publish(few, &writer, checker()).await.unwrap();
}

/// The parts of a content arrive in order, one after the other and more than once; together they have its digest, or are
/// forgotten. The whole counts from the first part on.
pub(crate) async fn parts_resume_are_verified_counted_and_removed(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    let store = store.with_quota(1_000);
    let content = "0123456789".repeat(60).into_bytes();
    let digest = Digest::of(&content);
    let put = |caller: &'static str, digest: Digest, size: u64, offset: usize, bytes: &[u8]| {
        let (store, bytes) = (store.clone(), bytes.to_vec());
        async move { store.add_part(caller, digest, size, offset as u64, &bytes).await }
    };
    let part = |offset: usize, end: usize| put("ada", digest, 600, offset, &content[offset..end]);
    assert_eq!(store.uploaded("ada", digest).await.unwrap(), (0, false));
    assert_eq!(part(0, 200).await.unwrap(), 200);
    assert_eq!(part(0, 200).await.unwrap(), 200, "its answer was lost");
    assert!(matches!(part(300, 600).await, Err(StoreError::State { .. })), "a part is missing");
    assert_eq!(store.uploaded("ada", digest).await.unwrap(), (200, false));
    assert_eq!(store.uploaded("bob", digest).await.unwrap(), (0, false), "nobody sees the uploads of others");
    let other = Digest::of(b"other");
    assert!(is_over(put("ada", other, 600, 0, b"x").await), "the whole of both is too much");
    assert!(matches!(put("ada", digest, 599, 200, b"x").await, Err(StoreError::InvalidInput { .. })));
    assert!(matches!(put("ada", digest, 600, 200, &[0; 401]).await, Err(StoreError::InvalidInput { .. })));
    assert!(matches!(put("bob", other, 65 << 20, 0, b"x").await, Err(StoreError::InvalidInput { .. })));
    assert_eq!(part(200, 400).await.unwrap(), 400);
    assert_eq!(part(400, 600).await.unwrap(), 600);
    assert_eq!(store.uploaded("ada", digest).await.unwrap(), (600, true));
    assert_eq!(part(0, 200).await.unwrap(), 600, "it is complete");
    assert_eq!(*store.blobs(&[digest]).await.unwrap()[0].1, *content);
    // Other bytes than the digest says.
    assert_eq!(put("bob", other, 10, 0, b"01234").await.unwrap(), 5);
    assert!(matches!(put("bob", other, 10, 5, b"56789").await, Err(StoreError::Changed { .. })));
    assert_eq!(store.uploaded("bob", other).await.unwrap(), (0, false));
    // One that is not continued.
    assert_eq!(put("bob", other, 10, 0, b"01234").await.unwrap(), 5);
    store.remove_uploads(Duration::from_secs(3_600)).await.unwrap();
    assert_eq!(store.uploaded("bob", other).await.unwrap(), (5, false));
    assert_eq!(store.remove_uploads(Duration::ZERO).await.unwrap(), (1, 600));
    assert_eq!(store.uploaded("bob", other).await.unwrap(), (0, false));
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
