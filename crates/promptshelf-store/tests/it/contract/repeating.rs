//! Changes that are sent again.

use promptshelf_store::{Claim, Digest, KeptAnswer, KeyedRequest, Store};

fn request(caller: &str, key: &str, body: &str) -> KeyedRequest {
    KeyedRequest { caller: caller.to_owned(), key: key.to_owned(), digest: Digest::of(body.as_bytes()) }
}

pub(crate) async fn repeated_request_gets_the_first_answer(store: Store) {
    let first = request("ada", "k", "publish");
    let claims = (0..8).map(|_| {
        let (store, first) = (store.clone(), first.clone());
        tokio::spawn(async move { store.claim_key(&first).await })
    });
    let mut found = Vec::new();
    for claim in claims.collect::<Vec<_>>() {
        found.push(claim.await.unwrap().unwrap());
    }
    assert_eq!(found.iter().filter(|claim| **claim == Claim::First).count(), 1, "{found:?}");
    assert_eq!(found.iter().filter(|claim| **claim == Claim::Running).count(), 7, "{found:?}");

    let other = request("ada", "k", "another");
    assert_eq!(store.claim_key(&other).await.unwrap(), Claim::Other);
    store.release_key(&other).await.unwrap();
    let answer = KeptAnswer { status: 201, tag: Some("\"t\"".to_owned()), body: b"{}".to_vec() };
    store.keep_answer(&first, &answer).await.unwrap();
    store.release_key(&first).await.unwrap();
    assert_eq!(store.claim_key(&first).await.unwrap(), Claim::Answered(answer.clone()), "an answer is not released");
    assert_eq!(store.claim_key(&other).await.unwrap(), Claim::Other);
    assert_eq!(store.claim_key(&request("bob", "k", "publish")).await.unwrap(), Claim::First, "keys are the caller's");

    // What changed nothing may be sent again.
    let refused = request("ada", "refused", "publish");
    assert_eq!(store.claim_key(&refused).await.unwrap(), Claim::First);
    store.release_key(&refused).await.unwrap();
    assert_eq!(store.claim_key(&refused).await.unwrap(), Claim::First);
}

pub(crate) async fn answers_of_a_caller_are_bounded(store: Store) {
    let large = KeptAnswer { status: 200, tag: None, body: vec![b' '; 33 << 20] };
    for key in ["a", "b"] {
        let request = request("ada", key, key);
        assert_eq!(store.claim_key(&request).await.unwrap(), Claim::First);
        store.keep_answer(&request, &large).await.unwrap();
    }
    assert_eq!(store.claim_key(&request("ada", "c", "c")).await.unwrap(), Claim::TooMany);
    assert_eq!(store.claim_key(&request("ada", "a", "a")).await.unwrap(), Claim::Answered(large));
    assert_eq!(store.claim_key(&request("bob", "c", "c")).await.unwrap(), Claim::First);
}
