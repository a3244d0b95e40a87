//! The library inside of applications: their code, their callers, and the end of serving.

use std::{
    net::SocketAddr,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use axum::{Router, extract::ConnectInfo};
use promptshelf_core::{
    Access, ArgumentDefinition, BoxFuture, CompletionSource, Origin, PromptDefinition, RawArguments, ReadBody,
    ReadError, ReadResource, ResourceBody, ResourceContent, ResourceDefinition, SourceText, Variables,
};
use promptshelf_server::{Library, OpenError, http};
use promptshelf_service::{Caller, Identity, Limits, Reference, Rejection};
use promptshelf_testkit::folder::Folder;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::*;

fn completed_by(function: impl Fn() -> Vec<String> + Send + Sync + 'static) -> PromptDefinition {
    let source = CompletionSource::Function(Arc::new(move |_, _| function()));
    PromptDefinition::template("greet", "Hello, {{ name }}.").argument(ArgumentDefinition::new("name").complete(source))
}

/// A function that looked its values up in a database that hung stopped the whole server.
// req: S-593
#[tokio::test(flavor = "current_thread")]
async fn completion_function_that_blocks_stops_nothing_else() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let hangs = move || {
        released.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
        Vec::new()
    };
    let library = Library::builder().prompt(completed_by(hangs)).build().expect("a library");
    let service = library.service().clone();
    let hanging = tokio::spawn(async move {
        let reference = Reference::Prompt("greet");
        service.complete(&Caller::anonymous(), reference, "name", "", &Variables::new()).await.map(drop)
    });
    tokio::task::yield_now().await;
    let name = RawArguments::from_iter([("name", "Ada")]);
    let caller = Caller::local();
    let got = library.service().get(&caller, "greet", &name);
    timeout(TIMEOUT, got).await.expect("it does not wait").expect("a prompt");
    assert!(!hanging.is_finished());
    drop(release);
    timeout(TIMEOUT, hanging).await.expect("it ends").expect("no panic").expect("no suggestions");
}

#[tokio::test]
async fn completion_function_is_called_once() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let many = || {
        CALLS.fetch_add(1, Ordering::SeqCst);
        (0..200_000).map(|number| format!("value {number}")).collect()
    };
    let library = Library::builder().prompt(completed_by(many)).build().expect("a library");
    let reference = Reference::Prompt("greet");
    let caller = Caller::anonymous();
    let found = library.service().complete(&caller, reference, "name", "value 19", &Variables::new()).await;
    assert!(found.expect("suggestions").value().total > 1_000);
    assert_eq!(CALLS.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn panic_of_a_function_is_an_internal_error() {
    let at_once = PromptDefinition::new("at-once", |_| panic!("a bug"));
    let waiting = PromptDefinition::new_async("waiting", |_| async {
        tokio::task::yield_now().await;
        panic!("a bug")
    });
    let library = Library::builder().prompt(at_once).prompt(waiting).build().expect("a library");
    for name in ["at-once", "waiting"] {
        let got = library.service().get(&Caller::local(), name, &RawArguments::new()).await;
        assert!(matches!(got, Err(Rejection::Internal)), "{name}: {got:?}");
    }
}

#[derive(Debug)]
struct Never;

impl ReadResource for Never {
    fn read<'a>(&'a self, _: &'a Variables) -> BoxFuture<'a, Result<ReadBody, ReadError>> {
        Box::pin(std::future::pending())
    }

    fn version<'a>(&'a self, _: &'a Variables) -> BoxFuture<'a, Option<u64>> {
        Box::pin(std::future::ready(None))
    }
}

// req: S-593
#[tokio::test(start_paused = true)]
async fn resource_that_is_never_read_is_answered() {
    let never = ResourceContent::Reader(Arc::new(Never));
    let library = Library::builder()
        .resource(ResourceDefinition::from_source("slow://one", never, Origin::new(SourceText::new("<code>", ""))))
        .prompt(PromptDefinition::template("greet", "{{ attach(\"slow://one\") }}"))
        .build()
        .expect("a library");
    let caller = Caller::local();
    let read = library.service().read(&caller, "slow://one").await;
    assert!(matches!(read, Err(Rejection::Internal)), "{read:?}");
    let got = library.service().get(&caller, "greet", &RawArguments::new()).await;
    assert!(got.is_err(), "{got:?}");
}

/// A server that an application had dropped went on serving those who were connected.
// req: S-594
#[tokio::test]
async fn dropped_server_closes_its_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let library = library().build().expect("a library");
    let serving = tokio::spawn(library.serve_http(listener));
    let mut connection = TcpStream::connect(address).await.expect("it accepts");
    let request = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    connection.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = [0; 1_024];
    let length = timeout(TIMEOUT, connection.read(&mut answer)).await.expect("in time").expect("an answer");
    assert!(String::from_utf8_lossy(&answer[..length]).starts_with("HTTP/1.1 200"));
    serving.abort();
    let end = timeout(TIMEOUT, connection.read(&mut answer)).await.expect("it is closed");
    assert!(end.map_or(true, |length| length == 0));
}

/// Edits were never seen, and nothing said so.
#[tokio::test]
async fn server_with_options_follows_its_folder() {
    let folder = Folder::library(&[("hello.md", "Hello.\n")]);
    let library = Library::builder().folder(folder.path()).build().expect("a library");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let options = http::Options::default();
    let serving = http::serve(listener, &library, &options, std::future::pending());
    let edited = async {
        folder.write("bye.md", "Bye.\n");
        while library.catalog().find("bye").is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = serving => panic!("it serves until it is dropped"),
        found = timeout(TIMEOUT, edited) => found.expect("it is seen"),
    }
}

fn restricted() -> Builder {
    let access = Access { roles: vec!["admin".to_owned()], ..Access::default() };
    library().prompt(PromptDefinition::template("secret", "Secret.").access(access))
}

#[tokio::test]
async fn router_and_service_take_the_caller_of_the_application() {
    let admin = Identity { key: "ada".into(), name: "ada".into(), roles: vec!["admin".into()], ..Identity::default() };
    let admin = Caller::authenticated(Arc::new(admin));
    let library = restricted().build().expect("a library");
    let router = http::router(&library, &http::Options::default());
    let service = Router::new().route_service("/mcp", library.into_service());
    for mut app in [router, service] {
        for (caller, expected) in [(None, 1), (Some(admin.clone()), 2)] {
            let mut request = list().body(Body::from(LIST)).expect("a request");
            caller.map(|caller| request.extensions_mut().insert(caller));
            let response = app.call(request).await.expect("infallible");
            let body = to_bytes(response.into_body(), 1 << 20).await.expect("a body");
            let answer: Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!(answer["result"]["prompts"].as_array().map(Vec::len), Some(expected), "{answer}");
        }
    }
}

/// One client used up the limit of all others.
// req: S-595
#[tokio::test]
async fn service_tells_anonymous_callers_apart_by_their_addresses() {
    let limits = Limits { requests_per_minute: NonZeroU32::MIN, ..Limits::default() };
    let library = library().limits(limits).build().expect("a library");
    let mut app = Router::new().route_service("/mcp", library.into_service());
    let mut call = async |last: u8| {
        let mut request = list().body(Body::from(LIST)).expect("a request");
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([192, 0, 2, last], 1))));
        app.call(request).await.expect("infallible").status()
    };
    while call(1).await != StatusCode::TOO_MANY_REQUESTS {}
    assert_eq!(call(2).await, StatusCode::OK);
}

#[test]
fn invalid_resource_in_code_is_an_error() {
    let text = ResourceContent::Fixed(ResourceBody::Text("x".into()));
    let resource = ResourceDefinition::from_source("not a uri", text, Origin::new(SourceText::new("<code>", "")));
    let opened = Library::builder().resource(resource).build();
    assert!(matches!(opened, Err(OpenError::Prompts(_))), "{opened:?}");
}

#[test]
fn error_of_a_program_is_a_sentence() {
    let broken = PromptDefinition::template("broken", "{{ nobody }}");
    let error = Library::builder().prompt(broken).build().expect_err("it is invalid");
    assert!(matches!(error, OpenError::Prompts(_)));
    assert_eq!(format!("{error:?}"), error.to_string());
}
