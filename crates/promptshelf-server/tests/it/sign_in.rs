//! Bearer tokens: challenges, metadata and revocation.

use axum::http::StatusCode;
use promptshelf_server::http::{
    Options,
    auth::{IssuerOptions, SignIn, SignInOptions, StaticToken, digest_of},
    router,
};

use crate::{LIST, get, library, list, send, stream, text};

fn options(names: &[&str]) -> SignInOptions {
    let token = |name: &&str| StaticToken {
        name: (*name).to_owned(),
        sha256: digest_of(&format!("psk_{name}")),
        scopes: vec!["prompts:read".to_owned()],
        roles: Vec::new(),
        expires: None,
    };
    let mut options = SignInOptions::default();
    options.resource = Some("https://prompts.example.com/mcp".to_owned());
    options.issuer = Some(IssuerOptions::new("https://id.example.com"));
    options.tokens = names.iter().map(token).collect();
    options.required_scopes = vec!["prompts:read".to_owned()];
    options
}

fn http_options(sign_in: &SignIn) -> Options {
    let mut options = Options::default();
    options.sign_in = Some(sign_in.clone());
    options
}

#[tokio::test]
async fn requests_without_a_valid_token_get_a_challenge() {
    let library = library().build().expect("a library");
    let router = router(&library, &http_options(&SignIn::new(options(&["ada"]))));
    let metadata = "resource_metadata=\"https://prompts.example.com/.well-known/oauth-protected-resource/mcp\"";
    for request in [list(), get("/library/prompts")] {
        let (status, headers, _) = send(&router, request, LIST).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        let expected = format!("Bearer {metadata}, scope=\"prompts:read\"");
        assert_eq!(headers["www-authenticate"], *expected);
    }
    let (status, headers, _) = send(&router, list().header("authorization", "Bearer psk_ad\"a"), LIST).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(headers["www-authenticate"].to_str().is_ok_and(|value| value.contains("error=\"invalid_request\"")));
    let (status, _, body) = send(&router, list().header("authorization", "Bearer psk_ada"), LIST).await;
    assert_eq!(status, StatusCode::OK);
    assert!(text(body).await.contains("\"greet\""));
}

#[tokio::test]
async fn metadata_is_public_and_names_the_authorization_server() {
    let library = library().build().expect("a library");
    let router = router(&library, &http_options(&SignIn::new(options(&[]))));
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let (status, headers, body) = send(&router, get(path), "").await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(headers["access-control-allow-origin"], "*");
        assert!(text(body).await.contains("\"authorization_servers\":[\"https://id.example.com\"]"), "{path}");
    }
}

#[tokio::test]
async fn revoked_token_ends_its_streams_and_no_others() {
    let library = library().build().expect("a library");
    let sign_in = SignIn::new(options(&["ada", "bob"]));
    let router = router(&library, &http_options(&sign_in));
    let mut streams = Vec::new();
    for name in ["ada", "bob"] {
        let (status, headers, body) =
            send(&router, stream().header("authorization", format!("Bearer psk_{name}")), "").await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(headers["content-type"], "text/event-stream");
        streams.push(body);
    }
    let bob = streams.pop().expect("a stream");
    let ada = streams.pop().expect("a stream");
    assert_eq!(library.server().subscriptions(), 2);
    let _replaced = sign_in.replaced_by(options(&["bob"]));
    text(ada).await;
    assert_eq!(library.server().subscriptions(), 1, "the other stream stays open");
    drop(bob);
}
