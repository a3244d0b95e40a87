//! The client's cache of prompts: a server that goes away and comes back, and answers that are not those of an API.

use std::{
    fs,
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime},
};

use axum::{
    Router,
    http::HeaderMap,
    response::{IntoResponse as _, Response},
    routing::get,
};
use promptshelf::client::{ApiClient, CachedPrompt, ClientError, Confirmation, Message, PromptCache, PromptQuery};
use promptshelf_testkit::{folder::Folder, tcp_proxy::TcpProxy};

use crate::{
    fake_server::FakeServer,
    program::{PATIENCE, Server, library},
};

const HOUR: Duration = Duration::from_secs(60 * 60);

const HELLO: &str = "---\narguments:\n  - name: name\n    required: true\n---\nSay hello to {{ name }}.\n";

async fn cache(url: &str, folder: impl AsRef<std::path::Path>) -> PromptCache {
    let api = ApiClient::new(url.parse().expect("a URL"), None, None, PATIENCE).await.expect("a client");
    PromptCache::new(api, folder.as_ref())
}

/// The template of a confirmed prompt without an error of the cache.
fn confirmed(prompt: CachedPrompt) -> String {
    assert!(matches!(prompt.confirmation, Confirmation::Confirmed), "{prompt:?}");
    assert!(prompt.cache_error.is_none(), "{prompt:?}");
    prompt.template.expect("a template")
}

/// The template and the age of a prompt that the server has not confirmed.
fn stale(prompt: CachedPrompt) -> (String, Duration) {
    match prompt.confirmation {
        Confirmation::Stale { age: Some(age), reason: ClientError::Unreachable { .. } } => {
            (prompt.template.expect("a template"), age)
        }
        other => panic!("{other:?}"),
    }
}

/// Repeats a request until its answer is the expected one.
async fn until<T>(prompts: &PromptCache, query: &PromptQuery, select: impl Fn(Answer) -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = select(prompts.get(query).await) {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "the server does not serve the change");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

type Answer = Result<CachedPrompt, ClientError>;

/// Changes each file of the cache.
fn each_file(cache: &Folder, change: impl Fn(&std::path::Path)) {
    let entries = fs::read_dir(cache.path()).expect("a folder");
    let changed = entries.flatten().map(|entry| change(&entry.path())).count();
    assert!(changed > 0, "the cache is empty");
}

#[tokio::test]
async fn last_version_is_returned_with_its_age_while_the_server_is_away() {
    let (folder, place) = (library(&[("hello.md", HELLO)]), Folder::empty());
    let server = Server::of(&folder, &[]);
    let authority: std::net::SocketAddr = server.authority().parse().expect("an address");
    let proxy = TcpProxy::start(authority.port()).await;
    let url = format!("http://{}", proxy.address);
    let prompts = cache(&url, place.path()).await;
    let hello = PromptQuery::new("hello");
    let rendered = hello.clone().rendered([("name".to_owned(), "Ada & Bob".to_owned())].into());
    let missing = |answer: Answer| matches!(answer, Err(ClientError::Unreachable { .. }));
    proxy.cut_after(0);
    assert!(missing(prompts.get(&hello).await), "nothing is known");
    proxy.mend();
    assert_eq!(confirmed(prompts.get(&hello).await.expect("a prompt")), "Say hello to {{ name }}.\n");
    let messages = prompts.get(&rendered).await.expect("messages").messages;
    assert_eq!(messages, [Message::user("Say hello to Ada & Bob.")]);

    // A confirmation makes the stored answer new again, without a transfer.
    let age = |age| {
        move |path: &std::path::Path| {
            let file = fs::File::options().write(true).open(path).expect("a file");
            file.set_modified(SystemTime::now() - age).expect("a time");
        }
    };
    each_file(&place, age(HOUR));
    proxy.cut_after(0);
    let (text, known) = stale(prompts.get(&hello).await.expect("the last version"));
    assert!(text == "Say hello to {{ name }}.\n" && known >= HOUR, "{known:?}");
    assert_eq!(prompts.get(&rendered).await.expect("the last version").messages, messages);
    proxy.mend();
    confirmed(prompts.get(&hello).await.expect("a prompt"));
    proxy.cut_after(0);
    assert!(stale(prompts.get(&hello).await.expect("the last version")).1 < HOUR);
    proxy.mend();

    // Another process with the same folder sees the newer version too.
    folder.write("prompts/hello.md", &HELLO.replace("hello", "good morning"));
    let changed = |answer: Answer| answer.ok().map(confirmed).filter(|text| text.contains("good morning"));
    until(&prompts, &hello, changed).await;
    proxy.cut_after(0);
    let other = cache(&url, place.path()).await;
    assert!(stale(other.get(&hello).await.expect("the last version")).0.contains("good morning"));

    // Damaged files count as missing, and are replaced.
    each_file(&place, |path| fs::write(path, "").expect("written"));
    assert!(missing(prompts.get(&hello).await));
    proxy.mend();
    confirmed(prompts.get(&hello).await.expect("a prompt"));
    drop(server);
    assert!(stale(prompts.get(&hello).await.expect("the last version")).0.contains("good morning"));
}

// req: S-223
#[tokio::test]
async fn refused_prompt_leaves_the_cache_and_a_folder_without_access_does_no_harm() {
    let (folder, place) = (library(&[("hello.md", HELLO), ("bye.md", "Say goodbye.\n")]), Folder::empty());
    let server = Server::of(&folder, &[]);
    let url = server.url.clone();
    let prompts = cache(&url, place.path()).await;
    let [hello, bye] = ["hello", "bye"].map(PromptQuery::new);
    confirmed(prompts.get(&hello).await.expect("a prompt"));
    confirmed(prompts.get(&bye).await.expect("a prompt"));
    let invalid = hello.clone().channel("next");
    let error = prompts.get(&invalid).await.expect_err("a folder has no channels").to_string();
    assert!(error.starts_with("the server refused the request (400): ") && error.contains("channel"), "{error}");
    fs::remove_file(folder.path().join("prompts/hello.md")).expect("a file");
    let gone = |answer: Answer| matches!(answer, Err(ClientError::Refused { status: 404, .. })).then_some(());
    until(&prompts, &hello, gone).await;

    // A folder that cannot be written: here, there is a file in its place.
    place.write("file", "");
    let unwritable = cache(&url, place.path().join("file")).await;
    let prompt = unwritable.get(&bye).await.expect("a prompt");
    assert!(matches!(prompt.confirmation, Confirmation::Confirmed) && prompt.cache_error.is_some(), "{prompt:?}");
    // A folder that can only be read; an administrator can write there too.
    #[cfg(unix)]
    let access = |mode| {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).expect("permissions");
    };
    #[cfg(unix)]
    access(0o500);
    let prompt = prompts.get(&bye).await.expect("a prompt");
    assert!(matches!(prompt.confirmation, Confirmation::Confirmed), "{prompt:?}");

    drop(server);
    assert!(matches!(unwritable.get(&bye).await, Err(ClientError::Unreachable { .. })));
    assert_eq!(stale(prompts.get(&bye).await.expect("the last version")).0, "Say goodbye.\n");
    assert!(matches!(prompts.get(&hello).await, Err(ClientError::Unreachable { .. })));
    #[cfg(unix)]
    access(0o700);
}

/// The status, headers and body of an answer.
type CannedAnswer = (u16, &'static [(&'static str, &'static str)], &'static str);

/// A server that gives the answers which a test sets.
fn answering(answer: &Arc<Mutex<CannedAnswer>>) -> FakeServer {
    let answer = Arc::clone(answer);
    let respond = move |sent: HeaderMap| {
        let (status, headers, body) = *answer.lock().expect("no panic");
        // A digest in quotes: the tag is that of the stored body, whatever the server sent.
        let is_known = sent.get("if-none-match").is_some_and(|tag| tag.len() == 66);
        async move {
            assert!(status != 304 || is_known, "the stored tag is sent");
            let mut response: Response = body.into_response();
            *response.status_mut() = status.try_into().expect("a status");
            response.headers_mut().clear();
            for (name, value) in headers {
                response.headers_mut().insert(*name, value.parse().expect("a value"));
            }
            response
        }
    };
    FakeServer::serving(Router::new().route("/api/v1/prompts/{name}", get(respond)))
}

// req: S-224
#[tokio::test]
async fn only_answers_of_the_api_replace_or_remove_the_last_version() {
    const JSON: &[(&str, &str)] = &[("content-type", "application/json"), ("etag", "\"tag\"")];
    const HTML: &[(&str, &str)] = &[("content-type", "text/html")];
    const PROBLEM: &[(&str, &str)] = &[("content-type", "application/problem+json")];
    const BODY: &str = r#"{"name":"hello","version":3,"channel":"production","template":"Hello"}"#;
    const REASON: &str = r#"{"title":"Not found","detail":"Unknown prompt: hello"}"#;
    let answer = Arc::new(Mutex::new((200, JSON, BODY)));
    let (server, place) = (answering(&answer), Folder::empty());
    let prompts = cache(&server.url, place.path()).await;
    let hello = PromptQuery::new("hello");
    let asked = async |status, headers, body| {
        *answer.lock().expect("no panic") = (status, headers, body);
        prompts.get(&hello).await
    };
    let first = asked(200, JSON, BODY).await.expect("a prompt");
    assert_eq!((first.version, first.channel.as_deref()), (Some(3), Some("production")));
    confirmed(asked(304, JSON, "").await.expect("the stored prompt"));
    let redirect: &[(&str, &str)] = &[("location", "https://login.example/")];
    for (status, headers, body) in [
        (500, PROBLEM, REASON),
        (503, HTML, "<h1>Maintenance</h1>"),
        (429, PROBLEM, REASON),
        (404, HTML, "<h1>No such site</h1>"),
        (403, HTML, "<h1>Blocked</h1>"),
        (404, PROBLEM, "broken"),
        (200, HTML, "<h1>Log in</h1>"),
        (200, JSON, "{}"),
        (200, JSON, r#"{"name":"other","template":"Other"}"#),
        (200, JSON, r#"{"name":"hello","messages":[{"role":"nobody"}]}"#),
        (302, redirect, ""),
        (204, JSON, ""),
    ] {
        let prompt = asked(status, headers, body).await.unwrap_or_else(|error| panic!("{status} {body}: {error}"));
        let is_stale = matches!(prompt.confirmation, Confirmation::Stale { age: Some(_), .. });
        assert!(is_stale && prompt.template.as_deref() == Some("Hello"), "{status} {body}: {prompt:?}");
    }
    for (status, headers) in [(401, HTML), (404, PROBLEM)] {
        confirmed(asked(200, JSON, BODY).await.expect("a prompt"));
        asked(status, headers, REASON).await.expect_err("a refusal");
        let error = asked(503, HTML, "").await.expect_err("the refused prompt is gone");
        assert!(error.to_string().contains("status 503"), "{error}");
    }
    // An answer that must not be stored.
    let private = &[("content-type", "application/json"), ("cache-control", "private, no-store")];
    confirmed(asked(200, private, BODY).await.expect("a prompt"));
    asked(503, HTML, "").await.expect_err("nothing was stored");
}
