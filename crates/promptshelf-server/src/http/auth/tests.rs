//! Scopes, challenges, metadata URLs and revocation.

use std::{collections::BTreeMap, sync::Arc};

use axum::http::{HeaderMap, header};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use promptshelf_service::Caller;

use super::{challenge::challenge, jwt::Verifier, sign_in::imply, *};

fn options(resource: &str) -> SignInOptions {
    SignInOptions {
        resource: Some(resource.to_owned()),
        issuer: Some(IssuerOptions::new("https://id.example")),
        ..SignInOptions::default()
    }
}

// req: P12
#[test]
fn broader_scopes_imply_narrower_ones_and_cycles_end() {
    let rule = |broad: &str, narrow: &str| (broad.to_owned(), vec![narrow.to_owned()]);
    let implies = BTreeMap::from([rule("admin", "write"), rule("write", "read"), rule("read", "admin")]);
    let mut scopes = vec!["write".to_owned()];
    imply(&implies, &mut scopes);
    assert_eq!(scopes, ["write", "read", "admin"]);
}

// req: P5, P6
#[test]
fn metadata_path_is_inserted_between_host_and_path() {
    let url = |resource| metadata::document_url(&options(resource)).expect("an address");
    let root = "https://a.example/.well-known/oauth-protected-resource";
    assert_eq!(url("https://a.example/mcp"), format!("{root}/mcp"));
    assert_eq!(url("https://a.example"), root);
    assert_eq!(url("https://a.example/"), root);
    assert_eq!(
        url("https://a.example:8443/x/mcp"),
        "https://a.example:8443/.well-known/oauth-protected-resource/x/mcp"
    );
}

// req: P13
#[test]
fn challenge_is_one_valid_header_for_any_text() {
    let header = challenge(&options("https://a.example/mcp"), Some("x\"\r\ny\u{e9}"), None, &[]);
    let header = header.expect("a header");
    assert!(header.to_str().expect("ASCII").starts_with("Bearer error=\"xy\", resource_metadata="), "{header:?}");
    assert_eq!(challenge(&SignInOptions::default(), None, None, &[]).expect("a header"), "Bearer");
    let offline = challenge(&SignInOptions::default(), None, None, &["a".into(), "offline_access".into()]);
    assert_eq!(offline.expect("a header"), "Bearer scope=\"a\"");
}

// req: P15
#[test]
fn only_loopback_urls_may_be_plain_http() {
    for url in ["http://localhost/x", "http://127.0.0.1:80", "http://[::1]:9/x"] {
        assert!(url::is_loopback(url), "{url}");
    }
    for url in [
        "http://localhost@evil.example",
        "http://localhost:80@evil.example",
        "http://evil.example",
        "http://evil.example\\@localhost/",
        "ftp://localhost",
    ] {
        assert!(!url::is_loopback(url), "{url}");
    }
}

// req: S-4
#[tokio::test]
async fn only_changed_tokens_are_revoked() {
    use futures_util::FutureExt as _;

    let token = |name: &str, roles: &[&str]| StaticToken {
        name: name.to_owned(),
        sha256: digest_of(name),
        scopes: Vec::new(),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        expires: None,
    };
    let with = |tokens: Vec<StaticToken>| SignInOptions { tokens, ..options("https://a.example/mcp") };
    let first = SignIn::new(with(vec![token("ada", &["editor"]), token("bob", &[])]));
    let caller = async |sign_in: &SignIn, token: &str| {
        let headers =
            HeaderMap::from_iter([(header::AUTHORIZATION, format!("Bearer {token}").parse().expect("ASCII"))]);
        sign_in.caller(&headers).await.ok().expect("a known token")
    };
    let (ada, bob) = (caller(&first, "ada").await, caller(&first, "bob").await);
    let verifier_of = |sign_in: &SignIn| sign_in.0.verifier.clone().expect("an issuer");
    let is_revoked = |caller: &Caller| caller.revoked().now_or_never().is_some();

    let second = first.replaced_by(with(vec![token("eve", &[]), token("bob", &[]), token("ada", &[])]));
    assert!(is_revoked(&ada) && !is_revoked(&bob), "the roles have changed");
    assert!(Arc::ptr_eq(&verifier_of(&first), &verifier_of(&second)), "the cached keys are kept");

    let before = verifier_of(&second);
    let terms = SignInOptions { required_scopes: vec!["read".to_owned()], ..with(vec![token("bob", &[])]) };
    let third = second.replaced_by(terms);
    assert!(is_revoked(&bob), "every request needs more scopes");
    assert!(before.revocation.revoked().now_or_never().is_some() && !Arc::ptr_eq(&before, &verifier_of(&third)));
}

// req: S-326
#[tokio::test(start_paused = true)]
async fn shared_tokens_are_accepted_while_they_are_known() {
    use std::time::Duration;

    use futures_util::FutureExt as _;

    let shared = SharedTokens::default();
    let sign_in = SignIn::new(SignInOptions { shared_tokens: Some(shared.clone()), ..SignInOptions::default() });
    let caller = async |token: &str| {
        let headers =
            HeaderMap::from_iter([(header::AUTHORIZATION, format!("Bearer {token}").parse().expect("ASCII"))]);
        sign_in.caller(&headers).await.map_err(|refused| refused.code)
    };
    let token = |id: u64, roles: &[&str]| SharedToken {
        id,
        token: StaticToken {
            name: format!("token/{id}"),
            sha256: digest_of(&format!("psk_{id}")),
            scopes: Vec::new(),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            expires: None,
        },
    };
    assert_eq!(caller("psk_1").await.err(), Some("tokens-unavailable"), "they are not known yet");
    shared.replace(vec![token(1, &[]), token(2, &[])]);
    let (one, two) = (caller("psk_1").await.expect("a caller"), caller("psk_2").await.expect("a caller"));
    assert_eq!((one.name(), caller("psk_3").await.err()), ("token/1", Some("unknown-token")));
    assert_ne!(one.key(), two.key());
    let used: Vec<u64> = shared.take_used().into_iter().map(|(id, _)| id).collect();
    assert_eq!((used, shared.take_used().len()), (vec![1, 2], 0));

    shared.replace(vec![token(1, &[]), token(2, &["editor"])]);
    let is_revoked = |caller: &Caller| caller.revoked().now_or_never().is_some();
    assert!(!is_revoked(&one) && is_revoked(&two), "a changed token is another one");
    shared.replace(vec![token(2, &["editor"])]);
    assert!(is_revoked(&one));
    assert_eq!(caller("psk_1").await.err(), Some("unknown-token"));

    tokio::time::advance(Duration::from_secs(23 * 60 * 60)).await;
    shared.confirm();
    tokio::time::advance(Duration::from_secs(23 * 60 * 60)).await;
    assert!(caller("psk_2").await.is_ok());
    tokio::time::advance(Duration::from_secs(2 * 60 * 60)).await;
    assert_eq!(caller("psk_2").await.err(), Some("tokens-unavailable"), "it could have been revoked");
}

// req: S-323, S-575
#[tokio::test]
async fn blocked_names_are_refused_and_end_streams_of_every_kind_of_token() {
    use futures_util::FutureExt as _;

    let with = |blocked: &[&str]| {
        let tokens = [("ada", "ada"), ("bob", "bob"), ("Jose\u{301}", "jose")]
            .map(|(name, token)| StaticToken {
                name: name.to_owned(),
                sha256: digest_of(token),
                scopes: Vec::new(),
                roles: Vec::new(),
                expires: None,
            })
            .to_vec();
        let blocked_subjects = blocked.iter().map(|name| (*name).to_owned()).collect();
        SignInOptions { tokens, blocked_subjects, ..SignInOptions::default() }
    };
    let caller = async |sign_in: &SignIn, token: &str| {
        let headers =
            HeaderMap::from_iter([(header::AUTHORIZATION, format!("Bearer {token}").parse().expect("ASCII"))]);
        let refused = |refused: Refused| {
            sign_in.count_refused(refused.code);
            refused.code
        };
        sign_in.caller(&headers).await.map_err(refused)
    };
    let first = SignIn::new(with(&[]));
    let (ada, bob) = (caller(&first, "ada").await.expect("a caller"), caller(&first, "bob").await.expect("a caller"));
    let second = first.replaced_by(with(&[" ADA "]));
    assert_eq!(caller(&second, "ada").await.err(), Some("blocked-subject"));
    assert!(caller(&second, "bob").await.is_ok());
    assert!(ada.revoked().now_or_never().is_some() && bob.revoked().now_or_never().is_none());
    // The composed form, the full-width one, and invisible characters: one person.
    for blocked in ["jos\u{e9}", "ＪＯＳＥ\u{301}", "jos\u{e9}\u{200d}"] {
        let other = first.replaced_by(with(&[blocked]));
        assert_eq!(caller(&other, "jose").await.err(), Some("blocked-subject"), "{blocked:?}");
        assert!(caller(&other, "bob").await.is_ok());
    }
    let third = second.replaced_by(with(&[]));
    assert!(caller(&third, "ada").await.is_ok());
    assert_eq!(third.refused(), [("blocked-subject", 4)], "counts go on");
    // A token of the store is blocked by the name that `token list` shows, and by the one that logs show.
    let shared = SharedTokens::default();
    let ci = StaticToken { name: "token/ci".to_owned(), ..with(&[]).tokens.remove(0) };
    shared.replace(vec![SharedToken { id: 1, token: ci }]);
    let with =
        |blocked: &[&str]| SignInOptions { tokens: Vec::new(), shared_tokens: Some(shared.clone()), ..with(blocked) };
    let fourth = third.replaced_by(with(&["c", "token", "other/ci"]));
    let ci = caller(&fourth, "ada").await.expect("a caller");
    for blocked in ["ci", "CI", "token/ci"] {
        let fifth = fourth.replaced_by(with(&[blocked]));
        assert_eq!(caller(&fifth, "ada").await.err(), Some("blocked-subject"), "{blocked}");
        assert!(ci.revoked().now_or_never().is_some(), "{blocked}: its streams end");
    }
}

#[test]
fn mismatch_of_a_refused_token_is_told_to_operators() {
    let verifier = Verifier::new(&IssuerOptions::new("https://id.example"), Some("https://a.example/mcp"));
    let token =
        format!("x.{}.y", URL_SAFE_NO_PAD.encode(r#"{"aud":["https://old.example/mcp"],"iss":"https://b.example"}"#));
    let told = |code| verifier.mismatch(&token, code);
    assert_eq!(
        told("other-audience").as_deref(),
        Some(r#"`aud` is ["https://old.example/mcp"], expected https://a.example/mcp"#)
    );
    assert_eq!(told("other-issuer").as_deref(), Some(r#"`iss` is "https://b.example", expected https://id.example"#));
    assert_eq!(told("expired-token"), None);
}

// req: S-320
#[tokio::test]
async fn keys_are_missing_only_after_they_were_asked_for() {
    let mut options = options("https://a.example/mcp");
    // No connection: the address is refused before.
    options.issuer.as_mut().expect("an issuer").jwks_uri = Some("http://keys.example/jwks".to_owned());
    let sign_in = SignIn::new(options);
    assert_eq!(sign_in.missing_keys(), None, "an application fetches them with the first token");
    sign_in.follow_keys();
    let reason = || sign_in.missing_keys().expect("a reason");
    assert!(reason().contains("being fetched"), "{}", reason());
    while sign_in.key_fetches().is_none_or(|fetches| fetches.failed == 0) {
        tokio::task::yield_now().await;
    }
    assert!(reason().contains("expected an https URL, got http://keys.example/jwks"), "{}", reason());
}
