//! The states of sources, and requests to read one again.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::http::{Request, StatusCode};
use promptshelf_core::{Access, BoxFuture};
use promptshelf_server::{
    Library,
    http::{Options, router},
};
use promptshelf_source::{Files, Health, MemberOptions, MemoryTree, OpenSource, OpenedSource, SourceError, SourceSet};
use serde_json::json;

use super::{Answer, Router, send, sign_in, text};

/// A source that counts the requests to read it again.
struct Counting(Arc<AtomicUsize>);

impl OpenSource for Counting {
    fn kind(&self) -> &'static str {
        "git"
    }

    fn open(&self) -> BoxFuture<'_, Result<OpenedSource, SourceError>> {
        let tree: MemoryTree = [("hello.md", "Hello!")].into_iter().collect();
        Box::pin(async { Ok(OpenedSource::new(Files::tree(tree))) })
    }

    fn health(&self) -> Health {
        Health { commit: Some("4b825dc642cb".to_owned()), problem: Some("it is away".to_owned()), ..Health::default() }
    }

    fn refresh(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

async fn call(router: &Router, token: &str, method: &str, path: &str) -> Answer {
    let request = Request::builder().method(method).uri(format!("/api/v1/{path}")).header("host", "localhost");
    let request = request.header("authorization", format!("Bearer {token}"));
    let (status, headers, body) = send(router, request, "").await;
    Answer { status: StatusCode::as_u16(&status), headers, body: text(body).await }
}

// req: S-210
// req: S-603
#[tokio::test]
async fn sources_are_reported_and_read_again_with_their_scopes() {
    let count = Arc::new(AtomicUsize::new(0));
    let member = |name: &str| MemberOptions::new(name, Box::new(Counting(Arc::clone(&count))));
    let access = Access { roles: vec!["nobody".to_owned()], ..Access::default() };
    let set = SourceSet::open([member("platform"), member("closed").prefix("closed-").access(access)], &[]);
    set.settled(std::time::Duration::from_secs(60)).await;
    let library = Library::builder().source(set.clone()).build().expect("a library");
    let mut options = Options::default();
    options.sign_in = Some(sign_in());
    options.sources = Some(set);
    let router = router(&library, &options);

    // Reasons can name hosts and folders: they are for operators.
    let listed = call(&router, "psk_rita", "GET", "sources").await.expect(200).json();
    assert_eq!(listed["items"][0]["problem"], "the log of the server has the reason");
    // Operators see what is closed to them.
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "{listed}");
    let listed = call(&router, "psk_root", "GET", "sources").await.expect(200).json();
    assert_eq!(listed["items"][1]["name"], "closed");
    let source = &listed["items"][0];
    assert_eq!(
        (&source["name"], &source["kind"], &source["state"], &source["commit"], &source["problem"]),
        (&json!("platform"), &json!("git"), &json!("behind"), &json!("4b825dc642cb"), &json!("it is away"))
    );
    assert_eq!((&source["prompts"], &source["revision"]), (&json!(1), &json!(null)), "{source}");
    for (token, method, path, status) in [
        ("psk_ada", "GET", "sources", 403),
        ("psk_rita", "POST", "sources/platform/refresh", 403),
        ("psk_root", "POST", "sources/other/refresh", 404),
        ("psk_root", "GET", "sources/platform/refresh", 405),
    ] {
        assert_eq!(call(&router, token, method, path).await.status, status, "{token} {method} {path}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
    call(&router, "psk_root", "POST", "sources/platform/refresh").await.expect(202);
    assert_eq!(count.load(Ordering::SeqCst), 1);
}
