//! The API of a store, over real sockets, with a real SQLite store.

mod analyzing;
mod changes;
mod comparing;
mod conditions;
mod discussing;
mod document;
mod evaluating;
mod folder;
mod hostile;
mod permissions;
mod policies;
#[cfg(unix)]
mod postgres;
mod reading;
mod transfers;

use std::{sync::Arc, time::Duration};

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use promptshelf_server::{
    Builder,
    api::Api,
    channels::{LibraryChecker, StoreHandle},
    http::{App, Options, auth::SignIn},
    usage::UsageLog,
};
use promptshelf_service::{Recorder, Usage};
use promptshelf_store::{Store, StoreUrl};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::{Records, TIMEOUT, library, programs::signed_in};

const SCOPES: [&str; 6] =
    ["library:read", "library:propose", "library:review", "library:publish", "library:evaluate", "library:admin"];

/// The callers: name, scopes, roles. `without-NAME` has all scopes but one.
const CALLERS: &[(&str, &[&str], &[&str])] = &[
    ("ada", &["library:read", "library:propose"], &["writer"]),
    ("bob", &["library:read", "library:propose"], &[]),
    ("rita", &["library:read", "library:review"], &["editor"]),
    ("paul", &["library:read", "library:propose", "library:review", "library:publish"], &["editor"]),
    ("ci", &["library:read", "library:evaluate"], &[]),
    ("admin", &SCOPES, &["admin"]),
    ("reader", &["library:read"], &[]),
    ("stranger", &["prompts:read"], &[]),
    ("without-read", &["library:propose", "library:review", "library:publish", "library:admin"], &[]),
    ("without-propose", &["library:read", "library:review", "library:publish", "library:admin"], &[]),
    ("without-review", &["library:read", "library:propose", "library:publish", "library:admin"], &[]),
    ("without-publish", &["library:read", "library:propose", "library:review", "library:admin"], &[]),
    (
        "without-evaluate",
        &["library:read", "library:propose", "library:review", "library:publish", "library:admin"],
        &[],
    ),
    ("without-admin", &["library:read", "library:propose", "library:review", "library:publish"], &[]),
];

/// A server with the API of a store.
struct Server {
    address: std::net::SocketAddr,
    records: Arc<Records>,
    serving: JoinHandle<()>,
    _folder: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A response.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    fn etag(&self) -> String {
        assert!(self.headers.contains_key("etag"), "{self:?}");
        self.header("etag").to_owned()
    }

    /// The status and the name of the problem.
    fn problem(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        assert!(problem["title"].is_string() && problem["detail"].is_string(), "{problem}");
        let kind = problem["type"].as_str().and_then(|kind| kind.strip_prefix("urn:promptshelf:problem:"));
        (self.status, kind.expect("the type has the prefix").to_owned())
    }

    #[track_caller]
    fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self
    }
}

fn refused(status: u16, name: &str) -> (u16, String) {
    (status, name.to_owned())
}

fn sign_in() -> SignIn {
    signed_in(CALLERS)
}

impl Server {
    /// Starts a server with sign-in on a new SQLite store.
    async fn start() -> Server {
        Server::with(|builder| builder, |options| options.sign_in = Some(sign_in())).await
    }

    async fn with(build: impl Fn(Builder) -> Builder, change: impl Fn(&mut Options)) -> Server {
        let folder = TempDir::new().expect("a folder");
        let url: StoreUrl = format!("sqlite:{}", folder.path().join("team.db").display()).parse().expect("a URL");
        Store::create(&url).await.expect("a store");
        Server::on(url, folder, build, change).await
    }

    async fn on(
        url: StoreUrl,
        folder: TempDir,
        build: impl Fn(Builder) -> Builder,
        change: impl Fn(&mut Options),
    ) -> Server {
        let records = Arc::new(Records::default());
        let library = build(library().audit(Arc::clone(&records) as Arc<dyn Recorder>)).build().expect("a library");
        let mut options = Options::default();
        options.api = Some(Api::new(StoreHandle::new(url), Arc::new(LibraryChecker::new())));
        let month = Duration::from_secs(30 * 24 * 60 * 60);
        options.usage = Some(UsageLog::new(&Usage::new(), None, month, 5));
        change(&mut options);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let app = App::new(&library, &options);
        let serving = tokio::spawn(async move { app.serve(listener, std::future::pending()).await });
        Server { address, records, serving, _folder: folder }
    }

    /// Opens the SQLite store of the server.
    async fn store(&self) -> Store {
        let url: StoreUrl = format!("sqlite:{}", self._folder.path().join("team.db").display()).parse().expect("a URL");
        Store::open(&url).await.expect("a store")
    }

    /// Sends a request as it is, and reads the response to the end of the connection.
    async fn raw(&self, request: &[u8]) -> Answer {
        let exchange = async {
            let mut stream = TcpStream::connect(self.address).await.expect("the server listens");
            // The server may answer before it has read the whole request.
            let sent = stream.write_all(request).await;
            let mut received = Vec::new();
            let read = stream.read_to_end(&mut received).await;
            assert!(!received.is_empty(), "no response: {sent:?}, {read:?}");
            received
        };
        let received = tokio::time::timeout(TIMEOUT, exchange).await.expect("the server answers");
        let end = received.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
        let head = std::str::from_utf8(&received[..end]).expect("a head in ASCII");
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status");
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").expect("a header");
            let name = HeaderName::try_from(name).expect("a name");
            (name, HeaderValue::try_from(value).expect("a value"))
        };
        Answer { status, headers: lines.map(header).collect(), body: received[end + 4..].to_vec() }
    }

    async fn send(&self, method: &Method, path: &str, caller: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        if !caller.is_empty() {
            head.push_str(&format!("Authorization: Bearer psk_{caller}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        self.raw(&[head.as_bytes(), body].concat()).await
    }

    async fn get(&self, caller: &str, path: &str) -> Answer {
        self.send(&Method::GET, &at(path), caller, &[], b"").await
    }

    async fn post(&self, caller: &str, path: &str, body: &Value) -> Answer {
        let json = [("Content-Type", "application/json")];
        self.send(&Method::POST, &at(path), caller, &json, body.to_string().as_bytes()).await
    }

    async fn put(&self, caller: &str, path: &str, condition: (&str, &str), body: &Value) -> Answer {
        let headers = [("Content-Type", "application/json"), condition];
        let headers = if condition.0.is_empty() { &headers[..1] } else { &headers };
        self.send(&Method::PUT, &at(path), caller, headers, body.to_string().as_bytes()).await
    }

    /// Creates the channel `production` with a policy, and publishes `hello.md` as its first revision.
    async fn prepared(policy: &Value) -> Server {
        let server = Server::start().await;
        server.prepare(policy).await;
        server
    }

    async fn prepare(&self, policy: &Value) {
        self.create("production", &policy_of(0)).await;
        let body = proposal(0, &[("hello.md", None, Some(HELLO))]);
        let published = self.post("admin", "/channels/production/proposals", &body).await.expect(201).json();
        assert_eq!(published["proposal"]["state"], "published", "{published}");
        let tag = self.get("admin", "/channels/production/policy").await.etag();
        self.put("admin", "/channels/production/policy", ("If-Match", &tag), policy).await.expect(200);
    }

    async fn create(&self, channel: &str, policy: &Value) {
        let path = format!("/channels/{channel}/policy");
        self.put("admin", &path, ("If-None-Match", "*"), policy).await.expect(201);
    }

    /// Returns the number of the newest revision.
    async fn revision(&self) -> u64 {
        let channel = self.get("reader", "/channels/production").await.expect(200).json();
        channel["head"]["revision"].as_u64().expect("a number")
    }

    /// Proposes a new text of `hello.md` as `ada`, and returns the outcome and the ETag of the proposal.
    async fn propose(&self, text: &str) -> (Value, String) {
        let body = proposal(1, &[("hello.md", Some(HELLO), Some(text))]);
        let answer = self.post("ada", "/channels/production/proposals", &body).await.expect(201);
        (answer.json()["proposal"].clone(), answer.etag())
    }
}

const HELLO: &str = "---\ndescription: Greets a person\n---\nSay hello.\n";
const BYE: &str = "---\ndescription: Greets a person\n---\nSay goodbye.\n";

fn at(path: &str) -> String {
    format!("/api/v1{path}")
}

fn digest(text: &str) -> String {
    promptshelf_store::Digest::of(text.as_bytes()).to_string()
}

/// A proposal of text files: path, before, after.
fn proposal(base: u64, changes: &[(&str, Option<&str>, Option<&str>)]) -> Value {
    json!({ "base": base, "message": "A change", "changes": self::changes(changes) })
}

fn changes(changes: &[(&str, Option<&str>, Option<&str>)]) -> Value {
    let change = |(path, before, after): &(&str, Option<&str>, Option<&str>)| json!({ "path": path, "before": before.map(digest), "content": after.map(|text| json!({ "text": text })) });
    changes.iter().map(change).collect()
}

/// A policy with a number of approvals, and everything else off.
fn policy_of(approvals: u32) -> Value {
    json!({
        "approvals": approvals,
        "fourEyes": approvals > 0,
        "checks": "errors",
        "tests": false,
        "evaluations": [],
        "noRegression": false,
        "noBreaking": false,
        "roles": { "propose": [], "review": [], "publish": [], "administer": [] },
    })
}
