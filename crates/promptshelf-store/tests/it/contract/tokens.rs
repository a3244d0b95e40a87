//! Tokens for the sign-in of servers.

use std::time::Duration;

use jiff::Timestamp;
use promptshelf_store::{Digest, NewToken, Store, StoreError};

use crate::sample::actor;

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
    let one = store.create_token(&new("ci"), digest, &actor("ada")).await.unwrap();
    let two = store.create_token(&new("ci"), Digest::of(b"psk_two"), &actor("ada")).await.unwrap();
    assert!(one.id < two.id && one.creator == "ada" && one.used.is_none() && one.revoked.is_none());
    assert!(store.create_token(&new("other"), digest, &actor("ada")).await.is_err(), "a token exists once");

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
        let error = store.create_token(&wrong, Digest::of(b"psk_x"), &actor("ada")).await.unwrap_err();
        assert!(matches!(error, StoreError::InvalidInput { .. }), "{wrong:?}: {error}");
    }
    assert!(store.tokens().await.unwrap().is_empty());
}
