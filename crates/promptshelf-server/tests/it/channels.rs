//! Several channels in one application: paths, access rules, limits, readiness.

use std::{
    num::NonZeroU32,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    http::{StatusCode, request},
};
use promptshelf_core::{Access, PromptDefinition};
use promptshelf_mcp::Profile;
use promptshelf_server::{
    Library, ReplicaMonitor,
    http::{
        Channel, Options,
        auth::{SignIn, SignInOptions, StaticToken, digest_of},
        router, router_with_channels,
    },
};
use promptshelf_service::{Limits, Observer, Recorder, TraceContext};
use serde_json::json;

use crate::{LIST, Records, get, list, send, text};

fn channel(name: &str) -> Channel {
    let library = Library::builder().prompt(PromptDefinition::template(format!("of-{name}"), "Say hello."));
    Channel { name: name.to_owned(), library: library.build().expect("a library"), monitor: ReplicaMonitor::new(name) }
}

/// A legacy `prompts/list` at a path, with the token of a caller.
fn list_at(path: &str, caller: Option<&str>) -> request::Builder {
    let request = list().uri(path);
    match caller {
        Some(caller) => request.header("authorization", format!("Bearer psk_{caller}")),
        None => request,
    }
}

fn tokens(names: &[(&str, &[&str])]) -> SignIn {
    let token = |(name, roles): &(&str, &[&str])| StaticToken {
        name: (*name).to_owned(),
        sha256: digest_of(&format!("psk_{name}")),
        scopes: Vec::new(),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        expires: None,
    };
    let mut options = SignInOptions::default();
    options.tokens = names.iter().map(token).collect();
    SignIn::new(options)
}

fn requires(role: &str) -> Arc<Access> {
    Arc::new(Access { roles: vec![role.to_owned()], ..Access::default() })
}

#[tokio::test]
async fn each_channel_has_a_path_and_the_first_is_the_default() {
    let [production, staging] = ["production", "staging"].map(channel);
    let router = router_with_channels(&production, &[staging], &Options::default());
    for (path, prompt) in [
        ("/mcp", "of-production"),
        ("/channels/production/mcp", "of-production"),
        ("/channels/staging/mcp", "of-staging"),
    ] {
        let (status, _, body) = send(&router, list_at(path, None), LIST).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert!(text(body).await.contains(&format!("\"{prompt}\"")), "{path}");
    }
    for path in ["/channels/other/mcp", "/channels/staging", "/channels//mcp", "/channels/Staging/mcp"] {
        assert_eq!(send(&router, list_at(path, None), LIST).await.0, StatusCode::NOT_FOUND, "{path}");
    }
}

// req: S-233
#[tokio::test]
async fn each_channel_has_its_profiles_under_its_own_rule() {
    let [production, staging] = ["production", "staging"].map(channel);
    let mut options = Options::default();
    options.sign_in = Some(tokens(&[("ada", &[]), ("bo", &["team"])]));
    options.channel_access.insert("staging".to_owned(), requires("team"));
    let short = Profile { fill_blanks: true, ..Profile::default() };
    options.profiles.insert("blanks".to_owned(), short);
    let router = router_with_channels(&production, &[staging], &options);
    for (path, prompt) in [
        ("/profiles/blanks/mcp", "of-production"),
        ("/channels/production/profiles/blanks/mcp", "of-production"),
        ("/channels/staging/profiles/blanks/mcp", "of-staging"),
    ] {
        let (status, _, body) = send(&router, list_at(path, Some("bo")), LIST).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        // The profile fills in the description.
        assert!(text(body).await.contains(&format!("\"description\":\"{prompt}\"")), "{path}");
    }
    // A channel that the caller may not use, an unknown channel and an unknown profile are the same.
    let hidden = "/channels/staging/profiles/blanks/mcp";
    let missing = response(&router, list_at("/channels/other/profiles/blanks/mcp", Some("ada"))).await;
    assert_eq!(missing.0, StatusCode::NOT_FOUND);
    assert_eq!(response(&router, list_at(hidden, Some("ada"))).await, missing);
    let unknown = list_at("/channels/production/profiles/other/mcp", Some("ada"));
    assert_eq!(response(&router, unknown).await, missing);
    let [one, other] = [hidden, "/channels/other/profiles/x/mcp"].map(|path| list_at(path, None));
    let (one, other) = (response(&router, one).await, response(&router, other).await);
    assert_eq!((one.0, &one), (StatusCode::UNAUTHORIZED, &other), "before sign-in");
}

/// Status, headers and body, without the values that differ between any two responses.
async fn response(router: &Router, request: request::Builder) -> (StatusCode, Vec<String>, String) {
    let (status, headers, body) = send(router, request, LIST).await;
    let names = headers.iter().filter(|(name, _)| *name != "x-request-id");
    let headers = names.map(|(name, value)| format!("{name}: {value:?}")).collect();
    (status, headers, text(body).await)
}

// req: S-96
#[tokio::test]
async fn hidden_channel_equals_missing_channel() {
    let [production, staging] = ["production", "staging"].map(channel);
    let mut options = Options::default();
    options.sign_in = Some(tokens(&[("ada", &["reviewer"]), ("bob", &[])]));
    options.channel_access.insert("staging".to_owned(), requires("reviewer"));
    let router = router_with_channels(&production, &[staging], &options);
    let staging = |caller| list_at("/channels/staging/mcp", caller);
    let missing = |caller| list_at("/channels/missing/mcp", caller);

    let (status, _, body) = send(&router, staging(Some("ada")), LIST).await;
    assert_eq!(status, StatusCode::OK);
    assert!(text(body).await.contains("\"of-staging\""));
    assert_eq!(response(&router, missing(Some("ada"))).await.0, StatusCode::NOT_FOUND);
    let hidden = response(&router, staging(Some("bob"))).await;
    assert_eq!(hidden.0, StatusCode::NOT_FOUND);
    assert_eq!(hidden, response(&router, missing(Some("bob"))).await);
    for caller in [None, Some("eve")] {
        let refused = response(&router, staging(caller)).await;
        assert_eq!(refused.0, StatusCode::UNAUTHORIZED);
        assert_eq!(refused, response(&router, missing(caller)).await);
    }
    assert_eq!(response(&router, list_at("/mcp", Some("bob"))).await.0, StatusCode::OK);
}

// req: S-96
#[tokio::test]
async fn rule_of_the_default_channel_covers_endpoint_and_page() {
    let production = channel("production");
    let mut options = Options::default();
    options.sign_in = Some(tokens(&[("ada", &["reader"]), ("bob", &[])]));
    options.channel_access.insert("production".to_owned(), requires("reader"));
    let router = router_with_channels(&production, &[], &options);
    for path in ["/mcp", "/channels/production/mcp"] {
        assert_eq!(send(&router, list_at(path, Some("ada")), LIST).await.0, StatusCode::OK, "{path}");
        assert_eq!(send(&router, list_at(path, Some("bob")), LIST).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    let page = |caller: &str| get("/library/prompts").header("authorization", format!("Bearer psk_{caller}"));
    assert_eq!(send(&router, page("ada"), "").await.0, StatusCode::OK);
    assert_eq!(send(&router, page("bob"), "").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn caller_has_its_limits_once_for_all_channels() {
    let limits = Limits { requests_per_minute: NonZeroU32::new(2).expect("not zero"), ..Limits::default() };
    let library = |name: &str| Library::builder().prompt(PromptDefinition::template(name, "Say hello."));
    let first = library("one").limits(limits).build().expect("a library");
    let second = library("two").limits_of(&first).build().expect("a library");
    let [first, second] = [("production", first), ("staging", second)].map(|(name, library)| Channel {
        name: name.to_owned(),
        library,
        monitor: ReplicaMonitor::new(name),
    });
    let mut options = Options::default();
    options.sign_in = Some(tokens(&[("ada", &[])]));
    let router = router_with_channels(&first, &[second], &options);
    let mut statuses = Vec::new();
    for path in ["/mcp", "/channels/staging/mcp", "/channels/staging/mcp", "/mcp"] {
        statuses.push(send(&router, list_at(path, Some("ada")), LIST).await.0.as_u16());
    }
    assert_eq!(statuses, [200, 200, 429, 429]);
}

// req: S-96, S-98
#[tokio::test]
async fn degraded_replica_is_ready_and_only_the_default_channel_is_named() {
    let [production, staging] = ["production", "staging"].map(channel);
    let router = router_with_channels(&production, std::slice::from_ref(&staging), &Options::default());
    production.monitor.set_served("an-epoch", 7, Some("0123456789abcdef".to_owned()));
    production.monitor.set_current();
    let (status, _, body) = send(&router, get("/readyz"), "").await;
    let body = text(body).await;
    assert_eq!(status, StatusCode::OK);
    assert!(
        body.starts_with("ready\nchannel production: revision 7, digest 0123456789ab, epoch an-epoch, lag "),
        "{body}"
    );
    assert!(!body.contains("staging"), "{body}");
    staging.monitor.set_degraded();
    production.monitor.set_degraded();
    let (status, _, body) = send(&router, get("/readyz"), "").await;
    let body = text(body).await;
    assert_eq!(status, StatusCode::OK);
    assert!(body.starts_with("degraded since ") && !body.contains("staging"), "{body}");
    production.library.server().shutdown();
    assert_eq!(send(&router, get("/readyz"), "").await.0, StatusCode::SERVICE_UNAVAILABLE);
}

// req: S-562
#[tokio::test]
async fn operators_learn_who_is_refused_a_channel_and_why() {
    let records = Arc::new(Records::default());
    let recorded = |name: &str| {
        let prompt = PromptDefinition::template(format!("of-{name}"), "Say hello.");
        let library = Library::builder().prompt(prompt).audit(Arc::clone(&records) as Arc<dyn Recorder>);
        Channel { name: name.to_owned(), library: library.build().expect("it"), monitor: ReplicaMonitor::new(name) }
    };
    let [production, staging] = ["production", "staging"].map(recorded);
    let mut options = Options::default();
    options.sign_in = Some(tokens(&[("ada", &["reviewer"]), ("bob", &[])]));
    options.channel_access.insert("staging".to_owned(), requires("reviewer"));
    let router = router_with_channels(&production, &[staging], &options);
    let render = |caller: &str| {
        let request = request::Builder::new().method("POST").uri("/api/v1/prompts/of-staging/render");
        let request = request.header("host", "localhost").header("content-type", "application/json");
        request.header("authorization", format!("Bearer psk_{caller}"))
    };
    for caller in ["ada", "bob"] {
        let (status, headers, _) = send(&router, list_at("/channels/staging/mcp", Some(caller)), LIST).await;
        let (rendered, _, _) = send(&router, render(caller), r#"{"channel":"staging"}"#).await;
        assert_eq!(
            (status, rendered),
            if caller == "ada" {
                (StatusCode::OK, StatusCode::OK)
            } else {
                (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND)
            }
        );
        let found: Vec<_> = records.all().into_iter().filter(|record| record["method"] == "channel").collect();
        assert_eq!(found.len(), if caller == "ada" { 0 } else { 2 }, "{found:?}");
        for record in &found {
            assert_eq!(
                (&record["caller"], &record["channel"], &record["outcome"]),
                (&json!("bob"), &json!("staging"), &json!("hidden"))
            );
        }
        assert!(
            found.is_empty() || found[0]["request"] == headers["x-request-id"].to_str().expect("ASCII"),
            "{found:?}"
        );
    }
}

#[derive(Debug, Default)]
struct Answered(Mutex<Vec<(&'static str, &'static str)>>);

impl Observer for Answered {
    fn answered(&self, method: &'static str, outcome: &'static str, _: Duration) {
        self.0.lock().expect("no panic").push((method, outcome));
    }

    fn rendered(&self, _: &'static str, _: Duration) {}

    fn set_parent(&self, _: &tracing::Span, _: &TraceContext<'_>) {}
}

// req: S-563
#[tokio::test(start_paused = true)]
async fn late_answers_of_the_api_are_problems_with_an_id_a_record_and_a_count() {
    let (records, answered) = (Arc::new(Records::default()), Arc::new(Answered::default()));
    let waiting = PromptDefinition::new_async("waits", |_| std::future::pending());
    let library = Library::builder().prompt(waiting).audit(Arc::clone(&records) as Arc<dyn Recorder>);
    let library = library.observer(Arc::clone(&answered) as Arc<dyn Observer>).build().expect("a library");
    let mut options = Options::default();
    options.request_timeout = Duration::from_secs(30);
    let request =
        request::Builder::new().method("POST").uri("/api/v1/prompts/waits/render").header("host", "localhost");
    let request = request.header("content-type", "application/json");
    let (status, headers, body) = send(&router(&library, &options), request, "{}").await;
    assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(headers["content-type"], "application/problem+json");
    let problem: serde_json::Value = serde_json::from_str(&text(body).await).expect("JSON");
    assert!(problem["type"].as_str().is_some_and(|kind| kind.ends_with("timed-out")), "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("within 30 seconds")), "{problem}");
    let records = records.all();
    assert_eq!((records.len(), &records[0]["outcome"]), (1, &json!("timed-out")), "{records:?}");
    assert_eq!(records[0]["request"], headers["x-request-id"].to_str().expect("ASCII"));
    assert_eq!(*answered.0.lock().expect("no panic"), [("api/render", "timed-out")]);
}

#[tokio::test]
async fn former_name_is_marked_in_the_api_for_programs() {
    let mut prompt = PromptDefinition::template("hello", "Say hello.");
    prompt.aliases = ["greet".to_owned()].into();
    let library = Library::builder().prompt(prompt).build().expect("a library");
    let router = router(&library, &Options::default());
    for (path, is_marked) in [("hello", false), ("greet", true), ("greet?rendered=true", true)] {
        let (status, _, body) = send(&router, get(&format!("/api/v1/prompts/{path}")), "").await;
        assert_eq!(status, StatusCode::OK, "{path}");
        let answer: serde_json::Value = serde_json::from_str(&text(body).await).expect("JSON");
        let replacement = if is_marked { json!("hello") } else { json!(null) };
        assert_eq!((&answer["name"], &answer["deprecated"]["replacement"]), (&json!("hello"), &replacement), "{path}");
    }
}

// req: S-564
#[tokio::test]
async fn foreign_host_is_recorded_as_one_and_not_as_a_sign_in() {
    let records = Arc::new(Records::default());
    let prompt = PromptDefinition::template("hello", "Say hello.");
    let library = Library::builder().prompt(prompt).audit(Arc::clone(&records) as Arc<dyn Recorder>);
    let sign_in = tokens(&[("ada", &[])]);
    let mut options = Options::default();
    options.sign_in = Some(sign_in.clone());
    let router = router(&library.build().expect("a library"), &options);
    for (path, token) in
        [("/mcp", None), ("/mcp", Some("ada")), ("/api/v1/prompts", None), ("/library/prompts", Some("eve"))]
    {
        let request = request::Builder::new().uri(path).header("host", "evil.example");
        let request = token
            .into_iter()
            .fold(request, |request, name| request.header("authorization", format!("Bearer psk_{name}")));
        let (status, headers, _) = send(&router, request, "").await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
        let record = records.all().pop().expect("a record");
        assert_eq!(
            (&record["method"], &record["outcome"], &record["host"]),
            (&json!("host"), &json!("foreign-request"), &json!("evil.example"))
        );
        assert_eq!(record["request"], headers["x-request-id"].to_str().expect("ASCII"));
    }
    assert_eq!((records.all().len(), sign_in.refused()), (4, Vec::new()));
    let _ = send(&router, list_at("/mcp", None), LIST).await;
    assert_eq!((&records.all()[4]["method"], sign_in.refused()), (&json!("sign-in"), vec![("no-token", 1)]));
}
