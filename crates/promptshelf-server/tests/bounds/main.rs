//! What one request may cost: processor time, memory, and the time of a thread of the runtime.
//!
//! A test binary, because memory and processor time are those of the process. Its tests run one after the other.
#![cfg(unix)]

mod attacks;
mod table;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    http::{Method, Request, StatusCode},
};
use peak_alloc::PeakAlloc;
use promptshelf_server::{
    Library,
    api::{Api, FolderApi, Versions},
    channels::{LibraryChecker, StoreHandle},
    http::{self, Options, Webhook, Webhooks},
};
use promptshelf_source::EditableFolder;
use promptshelf_store::{Store, StoreUrl};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};
use tower::Service as _;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The time for which a stream is read.
const STREAM: Duration = Duration::from_millis(50);

static TURN: Mutex<()> = Mutex::const_new(());

/// How much slower code without optimizations is.
const SLOWER: u32 = if cfg!(debug_assertions) { 20 } else { 1 };

/// A server with everything that has a door: MCP, the page, programs, the API of a store, a folder that is edited, and
/// webhooks. It has no sockets. Callers need not sign in.
struct Site {
    router: Router,
    folder: TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// The cost of a request.
#[derive(Clone, Copy, Debug)]
struct Cost {
    processor: Duration,
    memory: usize,
}

#[derive(Debug)]
struct Answer {
    status: StatusCode,
    body: Bytes,
}

impl Answer {
    #[track_caller]
    fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body[..self.body.len().min(2_000)]).into_owned()
    }
}

const HELLO: &str =
    "---\ndescription: Greets\narguments:\n  - { name: who, pattern: \"^[a-z ]+$\" }\n---\nHello {{ who }}.\n";

impl Site {
    async fn new(files: &[(&str, &str)]) -> Site {
        let turn = TURN.lock().await;
        let folder = TempDir::new().expect("a folder");
        let library = folder.path().join("library");
        std::fs::create_dir(&library).expect("created");
        for (path, text) in files.iter().chain([&("hello.md", HELLO)]) {
            std::fs::write(library.join(path), text).expect("written");
        }
        let url: StoreUrl = format!("sqlite:{}", folder.path().join("team.db").display()).parse().expect("a URL");
        Store::create(&url).await.expect("a store");
        let served = Library::builder().folder(&library).build().expect("a library");
        let mut options = Options::default();
        options.api = Some(Api::new(StoreHandle::new(url.clone()), Arc::new(LibraryChecker::new())));
        options.versions = Some(Versions::new(StoreHandle::new(url), Vec::new()));
        options.folder = Some(FolderApi::new(EditableFolder::open(&library).expect("a folder"), []));
        options.webhooks = Webhooks::new([("forge", Webhook::new("secret", || ()))]);
        let router = http::router(&served, &options);
        let site = Site { router, folder, _turn: turn };
        let policy = json!({ "approvals": 0, "fourEyes": false, "checks": "errors", "tests": false, "evaluations": [],
            "noRegression": false, "roles": { "propose": [], "review": [], "publish": [], "administer": [] } });
        site.call(&Method::PUT, "/api/v1/channels/production/policy", &[("if-none-match", "*")], policy.to_string())
            .await
            .expect(201);
        let body = json!({ "base": 0, "message": "First", "changes": [{ "path": "hello.md", "before": null, "content": { "text": HELLO } }] });
        site.post("/api/v1/channels/production/proposals", &body).await.expect(201);
        site
    }

    async fn call(&self, method: &Method, path: &str, headers: &[(&str, &str)], body: String) -> Answer {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        let request = request.header("content-type", "application/json").header("origin", "http://localhost");
        let request = request.header("accept", "application/json, text/event-stream");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let request = request.body(Body::from(body)).expect("a request");
        let response = self.router.clone().call(request).await.expect("a router never fails");
        let (head, body) = response.into_parts();
        // Such as that of a request that kept a thread busy.
        assert_ne!(head.status, StatusCode::INTERNAL_SERVER_ERROR, "{method} {path}");
        let is_stream = head.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
        let whole = to_bytes(body, usize::MAX);
        let body = match is_stream {
            // What is already there: a stream does not end.
            true => tokio::time::timeout(STREAM, whole).await.unwrap_or_else(|_| Ok(Bytes::new())),
            false => whole.await,
        };
        Answer { status: head.status, body: body.expect("a body") }
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(&Method::POST, path, &[], body.to_string()).await
    }

    /// Calls a method of MCP.
    async fn rpc(&self, method: &str, params: Value) -> Answer {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.call(&Method::POST, "/mcp", &[("mcp-protocol-version", "2025-06-18")], body.to_string()).await
    }

    /// Uploads a content, and returns its digest.
    async fn upload(&self, text: String) -> String {
        let digest = promptshelf_store::Digest::of(text.as_bytes()).to_string();
        let body = json!({ "contents": [{ "text": text }] });
        self.post("/api/v1/channels/production/uploads", &body).await.expect(200);
        digest
    }
}

/// Measures what a future costs the process.
async fn cost<T>(future: impl Future<Output = T>) -> (T, Cost) {
    MEMORY.reset_peak_usage();
    let (before, memory) = (clock_gettime(ClockId::ProcessCPUTime), MEMORY.current_usage());
    let result = future.await;
    let processor = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime) - before).unwrap_or_default();
    (result, Cost { processor, memory: MEMORY.peak_usage().saturating_sub(memory) })
}

/// Waits until the process computes nothing any more, and returns how long that took.
async fn until_idle() -> Duration {
    let started = Instant::now();
    loop {
        let before = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let after = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
        if after - before < Duration::from_millis(10) || started.elapsed() > Duration::from_secs(60) {
            return started.elapsed();
        }
    }
}
