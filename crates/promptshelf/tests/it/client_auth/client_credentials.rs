//! Programs that sign in as themselves.

use futures_util::future::join_all;
use promptshelf::client::{Client, ClientError, ConnectOptions, Endpoint, SignIn};

use super::realm::{Behaviour, Realm, SECRET, TokenFault};

async fn connect(realm: &Realm, secret: &str, issuer: &str) -> Result<Client, ClientError> {
    let sign_in = SignIn::client_credentials("mirror", secret, issuer);
    assert!(!format!("{sign_in:?}").contains(secret), "{sign_in:?}");
    ConnectOptions::new().sign_in(sign_in).connect(&Endpoint::url(realm.mcp())).await
}

/// The text of a refused sign-in, which has no secret.
async fn refusal(realm: &Realm, secret: &str, issuer: &str) -> String {
    let error = connect(realm, secret, issuer).await.expect_err("no token");
    let text = format!("{error} {error:?}");
    assert!(matches!(error, ClientError::SignInFailed { .. }) && !text.contains(secret), "{text}");
    text
}

// req: Q14
#[tokio::test]
async fn token_is_requested_for_the_server_and_kept() {
    let realm = Realm::start(Behaviour::default());
    let client = connect(&realm, SECRET, realm.issuer()).await.expect("a token");
    assert_eq!(client.all_prompts().await.expect("a list").len(), 2);
    assert_eq!(client.all_prompts().await.expect("a list").len(), 2);
    let recorded = realm.recorded();
    assert_eq!((recorded.registered.len(), recorded.authorized.len(), recorded.exchanged.len()), (0, 0, 1));
    let request = &recorded.exchanged[0];
    assert_eq!((request["grant_type"].as_str(), &request["resource"]), ("client_credentials", &realm.mcp()));
    assert_eq!((request["client_id"].as_str(), request["scope"].as_str()), ("mirror", "read"));
}

#[tokio::test]
async fn secret_is_in_the_header_where_the_server_wants_it_there() {
    let realm = Realm::start(Behaviour { basic_only: true, ..Behaviour::default() });
    connect(&realm, SECRET, realm.issuer()).await.expect("a token");
    assert!(!realm.recorded().exchanged[0].contains_key("client_secret"));
}

#[tokio::test]
async fn tokens_are_used_until_the_server_refuses_them() {
    // Tokens that end after a second.
    let realm = Realm::start(Behaviour { expired_tokens: true, ..Behaviour::default() });
    let client = connect(&realm, SECRET, realm.issuer()).await.expect("a token");
    client.all_prompts().await.expect("a list");
    assert_eq!(realm.recorded().exchanged.len(), 1);

    let realm = Realm::start(Behaviour::default());
    let client = connect(&realm, SECRET, realm.issuer()).await.expect("a token");
    realm.recorded().tokens.clear();
    for listed in join_all((0..8).map(|_| client.all_prompts())).await {
        assert_eq!(listed.expect("a list").len(), 2);
    }
    assert_eq!(realm.recorded().exchanged.len(), 2, "requests at the same time share a token");
}

// req: S-73
#[tokio::test]
async fn secret_is_sent_to_its_issuer_only() {
    let realm = Realm::start(Behaviour::default());
    let wrong = refusal(&realm, "another secret", realm.issuer()).await;
    assert!(wrong.contains("invalid_client"), "{wrong}");
    let requests = realm.recorded().basic.len();
    let other = refusal(&realm, SECRET, "https://id.example.com").await;
    assert!(other.contains("the client secret belongs to https://id.example.com, and the server names "), "{other}");
    realm.withhold_metadata(true);
    let unpublished = refusal(&realm, SECRET, realm.issuer()).await;
    assert!(unpublished.contains("an unpublished authorization server"), "{unpublished}");
    assert_eq!(realm.recorded().basic.len(), requests, "the token endpoint was asked");
}

// req: S-73
#[tokio::test]
async fn server_that_claims_the_issuer_gets_no_secret() {
    let real = Realm::start(Behaviour::default());
    let claimed = Some(real.issuer().to_owned());
    let hostile = Realm::start(Behaviour { claimed_issuer: claimed, ..Behaviour::default() });
    // The real issuer answers, and its token is not one of the hostile server.
    connect(&hostile, SECRET, real.issuer()).await.expect_err("a token of another server");
    assert_eq!(hostile.recorded().basic.len(), 0, "the secret was sent");
    let hostile =
        Realm::start(Behaviour { claimed_issuer: Some("http://127.0.0.1:1".to_owned()), ..Behaviour::default() });
    let away = refusal(&hostile, SECRET, "http://127.0.0.1:1").await;
    assert!(away.contains("http://127.0.0.1:1 does not publish its endpoints"), "{away}");
    assert_eq!(hostile.recorded().basic.len(), 0, "the secret was sent");
}

#[tokio::test]
async fn broken_token_endpoints_are_refused() {
    for fault in [TokenFault::Redirect, TokenFault::Huge, TokenFault::Garbage] {
        let realm = Realm::start(Behaviour { token_fault: Some(fault), ..Behaviour::default() });
        refusal(&realm, SECRET, realm.issuer()).await;
        assert_eq!(realm.recorded().stolen, 0, "a redirect was followed");
    }
}

#[tokio::test]
async fn missing_scopes_are_an_error() {
    let realm = Realm::start(Behaviour::default());
    let client = connect(&realm, SECRET, realm.issuer()).await.expect("a token");
    let refused = client.get("written", &[].into()).await;
    assert!(matches!(refused, Err(ClientError::Forbidden { scope: Some(scope) }) if scope == "write"));
    assert_eq!(realm.recorded().exchanged.len(), 1);
}
