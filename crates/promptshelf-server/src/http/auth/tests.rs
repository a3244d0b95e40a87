//! What a credential is taken for, held.

use std::{collections::BTreeMap, sync::Arc};

use axum::http::{HeaderMap, header};
use promptshelf_service::Caller;

use super::{challenge::challenge, sign_in::imply, *};

fn options(resource: &str) -> SignInOptions {
    SignInOptions {
        resource: Some(resource.to_owned()),
        issuer: Some(IssuerOptions::new("https://id.example")),
        ..SignInOptions::default()
    }
}

// req: P12
#[test]
fn broader_scopes_stand_for_narrower_ones_and_circles_end() {
    let rule = |broad: &str, narrow: &str| (broad.to_owned(), vec![narrow.to_owned()]);
    let implies = BTreeMap::from([rule("admin", "write"), rule("write", "read"), rule("read", "admin")]);
    let mut scopes = vec!["write".to_owned()];
    imply(&implies, &mut scopes);
    assert_eq!(scopes, ["write", "read", "admin"]);
}

// req: P5, P6
#[test]
fn the_metadata_stands_between_host_and_path() {
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
fn a_challenge_is_one_header_whatever_it_says() {
    let said = challenge(&options("https://a.example/mcp"), Some("x\"\r\ny\u{e9}"), None, &[]);
    let said = said.expect("a header");
    assert!(said.to_str().expect("ASCII").starts_with("Bearer error=\"xy\", resource_metadata="), "{said:?}");
    assert_eq!(challenge(&SignInOptions::default(), None, None, &[]).expect("a header"), "Bearer");
    let offline = challenge(&SignInOptions::default(), None, None, &["a".into(), "offline_access".into()]);
    assert_eq!(offline.expect("a header"), "Bearer scope=\"a\"");
}

// req: P15
#[test]
fn only_this_machine_is_asked_without_tls() {
    for url in ["http://localhost/x", "http://127.0.0.1:80", "http://[::1]:9/x"] {
        assert!(url::is_loopback(url), "{url}");
    }
    for url in
        ["http://localhost@evil.example", "http://localhost:80@evil.example", "http://evil.example", "ftp://localhost"]
    {
        assert!(!url::is_loopback(url), "{url}");
    }
}

// req: S-4
#[tokio::test]
async fn only_what_has_changed_loses_its_standing() {
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
        sign_in.caller(&headers).await.expect("it is known")
    };
    let (ada, bob) = (caller(&first, "ada").await, caller(&first, "bob").await);
    let issued = |sign_in: &SignIn| sign_in.0.verifier.clone().expect("an issuer");
    let is_withdrawn = |caller: &Caller| caller.revoked().now_or_never().is_some();

    let second = first.replaced_by(with(vec![token("eve", &[]), token("bob", &[]), token("ada", &[])]));
    assert!(is_withdrawn(&ada) && !is_withdrawn(&bob), "her roles have changed");
    assert!(Arc::ptr_eq(&issued(&first), &issued(&second)), "the issuer's keys are known");

    let before = issued(&second);
    let terms = SignInOptions { required_scopes: vec!["read".to_owned()], ..with(vec![token("bob", &[])]) };
    let third = second.replaced_by(terms);
    assert!(is_withdrawn(&bob), "more is asked of everybody");
    assert!(before.revocation.revoked().now_or_never().is_some() && !Arc::ptr_eq(&before, &issued(&third)));
}
