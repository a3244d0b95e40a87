//! Tokens for the sign-in of servers.

use std::time::Duration;

use jiff::Timestamp;
use promptshelf_store::{Digest, NewToken, Policy, PolicyGuard, ProposalState, Store, StoreError, Verdict};

use crate::sample::{actor, change, channel, checker, request, review};

fn new(name: &str) -> NewToken {
    NewToken {
        name: name.to_owned(),
        scopes: vec!["prompts:read".to_owned()],
        roles: vec!["editor".to_owned()],
        expires: Timestamp::now().checked_add(Duration::from_secs(3_600)).ok(),
    }
}

pub(crate) async fn created_tokens_are_valid_until_they_are_revoked(store: Store) {
    let empty = store.token_state().await.unwrap();
    let digest = Digest::of(b"psk_one");
    let one = store.create_token(&new("ci"), digest, &actor("ada"), true).await.unwrap();
    let two = store.create_token(&new("ci"), Digest::of(b"psk_two"), &actor("ada"), true).await.unwrap();
    assert!(one.id < two.id && one.creator == "ada" && one.used.is_none() && one.revoked.is_none());
    assert!(store.create_token(&new("other"), digest, &actor("ada"), true).await.is_err(), "a token exists once");

    let (state, valid) = store.valid_tokens().await.unwrap();
    assert_ne!(state, empty);
    assert_eq!(valid.len(), 2);
    assert!(valid.contains(&(digest, one.clone())));

    let used = Timestamp::from_microsecond(Timestamp::now().as_microsecond()).unwrap();
    let earlier = used.checked_sub(Duration::from_secs(60)).unwrap();
    store.note_token_uses(&[(two.id, used), (one.id, used), (99, used)]).await.unwrap();
    store.note_token_uses(&[(one.id, earlier)]).await.unwrap();
    assert_eq!(store.token_state().await.unwrap(), state, "a use changes no token");

    let revoked = store.revoke_token(one.id, &actor("bob")).await.unwrap();
    assert_eq!((revoked.revoker.as_deref(), revoked.used), (Some("bob"), Some(used)));
    let again = store.revoke_token(one.id, &actor("eve")).await.unwrap();
    assert_eq!(again, revoked, "a revocation stays as it is");
    let (changed, valid) = store.valid_tokens().await.unwrap();
    assert_ne!(changed, state);
    assert_eq!(valid.iter().map(|(_, token)| token.id).collect::<Vec<_>>(), [two.id]);
    let all = store.tokens().await.unwrap();
    assert_eq!(all.iter().map(|token| token.id).collect::<Vec<_>>(), [two.id, one.id], "the newest first");
    let missing = store.revoke_token(99, &actor("bob")).await.unwrap_err();
    assert!(matches!(missing, StoreError::NotFound { .. }), "{missing}");
}

async fn demand(store: &Store, policy: Policy) {
    store.set_policy(&channel("c"), &policy, &PolicyGuard::Any, "", &actor("root")).await.unwrap();
}

pub(crate) async fn creators_of_a_token_cannot_approve_its_proposals(store: Store) {
    demand(&store, Policy { approvals: 1, four_eyes: true, ..Policy::default() }).await;
    // Ada has made the token of `ops`, which has made that of `ci`; earlier, Eve had made another one of this name.
    for (name, creator) in
        [("ops", "Ada"), ("ci", "token/ops"), ("ci", "eve"), ("loop", "token/loop"), ("other", "bob")]
    {
        let digest = Digest::of(format!("{name} {creator}").as_bytes());
        store.create_token(&new(name), digest, &actor(creator), true).await.unwrap();
    }
    let propose = async |author: &str, path: &str| {
        let changes = vec![change(path, "", "A")];
        let published = store.publish(request("c", 0, changes), &actor(author), checker()).await.unwrap();
        (published.proposal.id, published.proposal.digest)
    };
    let (id, digest) = propose("token/ci", "a.md").await;
    assert_eq!(store.proposal(id).await.unwrap().creators, ["Ada", "eve", "token/ops"]);
    for own in ["token/ci", "ada", "Ada", "ａｄａ", "eve", "token/ops"] {
        let refused = review(&store, id, Verdict::Approve, "", Some(digest), own).await.unwrap_err();
        assert!(matches!(refused, StoreError::Policy { .. }), "{own}: {refused}");
    }
    let published = review(&store, id, Verdict::Approve, "", Some(digest), "bob").await.unwrap();
    assert_eq!(published.proposal.state, ProposalState::Published);
    // An approval from before four eyes were demanded does not count either.
    demand(&store, Policy { approvals: 2, ..Policy::default() }).await;
    let (id, digest) = propose("token/ci", "b.md").await;
    review(&store, id, Verdict::Approve, "", Some(digest), "ada").await.unwrap();
    demand(&store, Policy { approvals: 1, four_eyes: true, ..Policy::default() }).await;
    assert!(!store.proposal(id).await.unwrap().reasons.is_empty());
    // Others, and a person with such a name, are not behind a token.
    for author in ["token/loop", "token/unknown", "bob", "ci"] {
        let (id, _) = propose(author, &format!("{}.md", author.replace('/', "-"))).await;
        assert!(store.proposal(id).await.unwrap().creators.is_empty(), "{author}");
    }
}

pub(crate) async fn tokens_with_unusable_names_are_refused(store: Store) {
    let past = Timestamp::now().checked_sub(Duration::from_secs(1)).ok();
    for wrong in [
        new(""),
        new(" ci"),
        new("a/b"),
        new("a:b"),
        new("a\nb"),
        new(&"a".repeat(129)),
        NewToken { scopes: vec!["a b".to_owned()], ..new("ci") },
        NewToken { scopes: vec!["a".to_owned(); 51], ..new("ci") },
        NewToken { roles: vec![" ".to_owned()], ..new("ci") },
        NewToken { expires: past, ..new("ci") },
    ] {
        let error = store.create_token(&wrong, Digest::of(b"psk_x"), &actor("ada"), true).await.unwrap_err();
        assert!(matches!(error, StoreError::InvalidInput { .. }), "{wrong:?}: {error}");
    }
    assert!(store.tokens().await.unwrap().is_empty());
}
