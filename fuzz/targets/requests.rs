//! Arbitrary HTTP requests to a whole server: a line with method and path, headers, an empty line, a body. With the API of a
//! store, sign-in with static tokens and with JWTs, webhooks of forges, and headers of proxies. Nothing is an internal error,
//! and every problem is JSON.

#![no_main]

use std::{cell::RefCell, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::BodyExt as _;
use libfuzzer_sys::fuzz_target;
use promptshelf_server::{
    Library,
    api::{Api, Versions},
    channels::{LibraryChecker, StoreHandle},
    http::{
        Options, Webhook, Webhooks,
        auth::{IssuerOptions, SignIn, SignInOptions, StaticToken, digest_of},
        router,
    },
};
use promptshelf_store::{Store, StoreUrl};
use tempfile::TempDir;
use tower_service::Service as _;

/// The requests after which the store is a new one.
const REQUESTS: u32 = 20_000;

struct Site {
    router: Router,
    left: u32,
    _folder: TempDir,
}

thread_local! {
    static RUNTIME: RefCell<tokio::runtime::Runtime> = RefCell::new(
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"),
    );
    static SITE: RefCell<Option<Site>> = const { RefCell::new(None) };
}

async fn site() -> Site {
    let folder = tempfile::tempdir().expect("a folder");
    let url: StoreUrl = format!("sqlite:{}", folder.path().join("team.db").display()).parse().expect("a URL");
    Store::create(&url).await.expect("a store");
    let library = Library::builder().folder(folder.path()).build().expect("a library");
    let mut options = Options::default();
    options.api = Some(Api::new(StoreHandle::new(url.clone()), Arc::new(LibraryChecker::new())));
    options.versions = Some(Versions::new(StoreHandle::new(url), Vec::new()));
    options.webhooks = Webhooks::new([("forge", Webhook::new("secret", || {}))]);
    let scopes = ["read", "propose", "review", "publish", "evaluate", "admin"];
    let mut sign_in = SignInOptions::default();
    sign_in.tokens = vec![StaticToken {
        name: "fuzz".to_owned(),
        sha256: digest_of("psk_fuzz"),
        scopes: scopes.iter().map(|scope| format!("library:{scope}")).collect(),
        roles: Vec::new(),
        expires: None,
    }];
    let mut issuer = IssuerOptions::new("https://issuer.example");
    let key =
        format!(r#"{{"keys":[{{"kty":"RSA","kid":"one","alg":"RS256","n":"{}","e":"AQAB"}}]}}"#, "sXch".repeat(86));
    issuer.keys = key.parse().ok();
    sign_in.issuer = Some(issuer);
    options.sign_in = Some(SignIn::new(sign_in));
    Site { router: router(&library, &options), left: REQUESTS, _folder: folder }
}

fn request(bytes: &[u8]) -> Option<Request<Body>> {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
    let (head, body) = (&bytes[..end], bytes.get(end + 2..).unwrap_or_default());
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = std::str::from_utf8(lines.next()?).ok()?;
    let (method, path) = first.split_once(' ')?;
    let mut request = Request::new(Body::from(body.to_vec()));
    *request.method_mut() = Method::from_bytes(method.as_bytes()).ok()?;
    *request.uri_mut() = path.parse::<Uri>().ok()?;
    let headers = request.headers_mut();
    headers.insert("host", HeaderValue::from_static("localhost"));
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("authorization", HeaderValue::from_static("Bearer psk_fuzz"));
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.insert(name, value);
        }
    }
    Some(request)
}

fuzz_target!(|bytes: &[u8]| {
    let Some(request) = request(bytes) else { return };
    RUNTIME.with_borrow(|runtime| {
        runtime.block_on(async {
            let kept = SITE.take().filter(|site| site.left > 0);
            let mut site = match kept {
                Some(site) => site,
                None => site().await,
            };
            site.left -= 1;
            let response = site.router.call(request).await.expect("a router never fails");
            SITE.set(Some(site));
            let (head, body) = response.into_parts();
            assert_ne!(head.status, 500, "an internal error");
            let kind = head.headers.get("content-type").map_or(&b""[..], HeaderValue::as_bytes);
            if kind.starts_with(b"text/event-stream") {
                return;
            }
            let body = tokio::time::timeout(Duration::from_secs(4), body.collect()).await.expect("the body ends");
            let body = body.expect("a whole body").to_bytes();
            if kind == b"application/problem+json" {
                let problem: serde_json::Value = serde_json::from_slice(&body).expect("a problem is JSON");
                assert_eq!(problem["status"], head.status.as_u16(), "{problem}");
            }
        });
    });
});
