//! Authenticated callers: visibility, notifications and required scopes.

use std::sync::Arc;

use http::{Method, StatusCode};
use promptshelf_core::{Access, AccessRule, CatalogHandle, Deprecation, Label, Origin, SourceText, check};
use promptshelf_mcp::{
    HttpOptions, RequestOptions, Server,
    http::{Denial, RequiredScopes},
};
use promptshelf_service::{Caller, Identity, Service};
use serde_json::json;

use super::endpoint::{Ask, Endpoint, events, greet};
use crate::library;

fn demand(scopes: &[&str], roles: &[&str], visible: bool) -> Access {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Access { scopes: owned(scopes), roles: owned(roles), users: Vec::new(), visible }
}

fn definitions(text: &str) -> promptshelf_core::Definitions {
    let mut definitions = library::definitions("Greets someone", text);
    Arc::make_mut(&mut definitions.prompts[0]).access = Some(Arc::new(demand(&["greet"], &[], true)));
    Arc::make_mut(&mut definitions.prompts[1]).access = Some(Arc::new(demand(&[], &["editor"], false)));
    let origin = Origin::new(SourceText::new("promptshelf.toml", ""));
    definitions.access.push(AccessRule {
        resources: vec!["docs://*".into()],
        ..AccessRule::new(demand(&[], &["editor"], false), origin)
    });
    definitions
}

fn endpoint() -> Endpoint {
    let handle = CatalogHandle::new(check(definitions("first"), None).catalog);
    Endpoint::of(Server::new(Service::new(handle.clone())), handle, HttpOptions::default())
}

fn caller(roles: &[&str]) -> Caller {
    let roles: Vec<String> = roles.iter().map(|role| (*role).to_owned()).collect();
    Caller::authenticated(Arc::new(Identity {
        key: format!("{roles:?}"),
        name: "ada".into(),
        roles,
        ..Identity::default()
    }))
}

fn by(ask: Ask, caller: &Caller) -> http::Request<http_body_util::Full<bytes::Bytes>> {
    let mut request = ask.request();
    request.extensions_mut().insert(caller.clone());
    request
}

// req: A17, G4, P17, R-6, S-21, X29
#[tokio::test]
async fn varying_lists_are_private_and_cached_separately() {
    let endpoint = endpoint();
    let list = async |caller: &Caller| {
        let answer = endpoint.send(by(Ask::modern("prompts/list", json!({})), caller)).await.result();
        assert_eq!(answer["cacheScope"], "private");
        answer["prompts"].as_array().expect("prompts").len()
    };
    // The second response comes from the cache.
    for _ in 0..2 {
        assert_eq!(list(&caller(&["editor"])).await, 2);
        assert_eq!(list(&caller(&[])).await, 1);
        assert_eq!(list(&Caller::anonymous()).await, 1);
    }
}

#[tokio::test]
async fn answer_under_a_former_name_names_the_present_one() {
    let mut definitions = definitions("first");
    let prompt = Arc::make_mut(&mut definitions.prompts[0]);
    prompt.access = None;
    prompt.aliases = ["hallo".to_owned()].into();
    static CONTACT: Label = Label::text("contact", "Whom to ask").listed();
    static OWNERS: Label = Label::list("owners", "Who is in charge");
    prompt.labels = [(&CONTACT, vec!["team-a".to_owned()]), (&OWNERS, vec!["ada".to_owned()])].into_iter().collect();
    let name = prompt.name.clone();
    let handle = CatalogHandle::new(check(definitions, None).catalog);
    let server = Server::new(Service::new(handle.clone()));
    let endpoint = Endpoint::of(server.clone(), handle, HttpOptions::default());
    let asked =
        async |method: &str, params| endpoint.send(by(Ask::modern(method, params), &caller(&[]))).await.result();
    let mut params = greet();
    params["name"] = json!("hallo");
    let got = asked("prompts/get", params.clone()).await;
    let expected = json!({ "message": "This name is a former one.", "replacement": name });
    assert_eq!(got["_meta"]["dev.promptshelf/deprecated"], expected, "{got}");
    let list = asked("prompts/list", json!({})).await;
    assert!(!list.to_string().contains("hallo"), "{list}");
    let meta = &list["prompts"][0]["_meta"];
    assert_eq!((&meta["dev.promptshelf/contact"], meta.get("dev.promptshelf/owners")), (&json!("team-a"), None));
    // By default unknown arguments are ignored.
    params["arguments"]["nmae"] = json!("x");
    asked("prompts/get", params.clone()).await;
    let mut options = RequestOptions::default();
    options.refuses_unknown_arguments = true;
    server.set_request_options(options);
    let error = endpoint.send(by(Ask::modern("prompts/get", params), &caller(&[]))).await.json();
    assert!(error["error"]["message"].as_str().expect("a message").contains("did you mean `name`?"), "{error}");
}

// req: S-203
#[tokio::test]
async fn hidden_replacement_of_a_deprecated_prompt_is_not_named() {
    let mut definitions = definitions("first");
    let hidden = definitions.prompts[1].name.clone();
    Arc::make_mut(&mut definitions.prompts[0]).access = None;
    Arc::make_mut(&mut definitions.prompts[0]).deprecated =
        Some(Box::new(Deprecation::new("It ends in May").replaced_by(hidden.clone())));
    let handle = CatalogHandle::new(check(definitions, None).catalog);
    let endpoint = Endpoint::of(Server::new(Service::new(handle.clone())), handle, HttpOptions::default());
    let asked = async |caller: &Caller, method: &str, params| {
        endpoint.send(by(Ask::modern(method, params), caller)).await.result()
    };
    // The second list comes from the cache.
    for _ in 0..2 {
        for (caller, is_editor) in [(caller(&["editor"]), true), (caller(&[]), false)] {
            let list = asked(&caller, "prompts/list", json!({})).await;
            let got = asked(&caller, "prompts/get", greet()).await;
            let mut expected = json!({ "message": "It ends in May" });
            if is_editor {
                expected["replacement"] = json!(hidden);
            }
            let entry = &list["prompts"][0];
            assert_eq!(entry["_meta"]["dev.promptshelf/deprecated"], expected, "{list}");
            assert_eq!(got["_meta"]["dev.promptshelf/deprecated"], expected, "{got}");
            let sentence = entry["description"].as_str().expect("a description");
            assert_eq!(sentence.starts_with("Deprecated. "), !is_editor, "{sentence}");
            assert_eq!(sentence.contains(&format!("use `{hidden}` instead. ")), is_editor, "{sentence}");
        }
    }
}

// req: P11
#[tokio::test]
async fn missing_scope_is_named() {
    let endpoint = endpoint();
    let response = endpoint.open(by(Ask::modern("prompts/get", greet()), &caller(&[]))).await;
    assert_eq!(response.status(), 403);
    assert_eq!(response.extensions().get(), Some(&RequiredScopes(vec!["greet".into()])));
    let answer = endpoint.send(by(Ask::legacy("2025-06-18", "prompts/get", &greet()), &caller(&[]))).await;
    assert_eq!(answer.error(), (403, -32600, Some(json!(1))));
}

/// Legacy clients over HTTP share their subscriptions: a client receives notifications about resources that others
/// follow, but only those that it may read.
// req: S-20
#[tokio::test]
async fn hidden_resources_cause_no_notification() {
    let endpoint = endpoint();
    let editor = caller(&["editor"]);
    let follow = Ask::legacy("2025-06-18", "resources/subscribe", &json!({ "uri": "docs://note" }));
    assert_eq!(endpoint.send(by(follow, &editor)).await.result(), json!({}));
    let refused = Ask::legacy("2025-06-18", "resources/subscribe", &json!({ "uri": "docs://note" }));
    assert_eq!(endpoint.send(by(refused, &caller(&[]))).await.error().1, -32002);

    let open = async |caller: &Caller| endpoint.open(by(Ask::get_stream(), caller)).await.into_body();
    let (mut seen, mut blind) = (open(&editor).await, open(&caller(&[])).await);
    let mut changed = definitions("other");
    Arc::make_mut(&mut changed.prompts[0]).title = Some("Hello".into());
    endpoint.handle.replace(check(changed, None).catalog);
    let methods = |messages: Vec<serde_json::Value>| {
        messages.iter().map(|message| message["method"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        methods(events(&mut seen).await),
        ["notifications/prompts/list_changed", "notifications/resources/updated"]
    );
    assert_eq!(methods(events(&mut blind).await), ["notifications/prompts/list_changed"]);
}

// req: S-60
#[tokio::test]
async fn caller_can_unsubscribe_only_its_own() {
    let endpoint = endpoint();
    let handle = endpoint.handle.clone();
    let send = async |caller: &Caller, method: &str, uri: &str| {
        endpoint.send(by(Ask::legacy("2025-06-18", method, &json!({ "uri": uri })), caller)).await
    };
    let [ada, bob] = ["ada", "bob"].map(|name| {
        let identity = Identity { key: name.into(), roles: vec!["editor".into()], ..Identity::default() };
        Caller::authenticated(Arc::new(identity))
    });
    let mut stream = endpoint.open(by(Ask::get_stream(), &ada)).await.into_body();
    for caller in [&ada, &bob] {
        assert_eq!(send(caller, "resources/subscribe", "docs://note").await.result(), json!({}));
    }
    let methods = async |stream: &mut promptshelf_mcp::HttpBody, text: &str| {
        handle.replace(check(definitions(text), Some(&handle.current())).catalog);
        let messages = events(stream).await;
        messages.iter().map(|message| message["method"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let updated = ["notifications/resources/updated"];
    assert_eq!(methods(&mut stream, "second").await, updated, "once, although two callers follow it");
    assert_eq!(send(&bob, "resources/unsubscribe", "docs://note").await.result(), json!({}));
    assert_eq!(methods(&mut stream, "third").await, updated);
    let stranger = Caller::anonymous().with_address([192, 0, 2, 1].into());
    send(&stranger, "resources/unsubscribe", "docs://note").await;
    assert_eq!(methods(&mut stream, "fourth").await, updated);
    assert_eq!(send(&ada, "resources/unsubscribe", "docs://note").await.result(), json!({}));
    let mut changed = definitions("fifth");
    Arc::make_mut(&mut changed.prompts[0]).title = Some("Hello".into());
    handle.replace(check(changed, Some(&handle.current())).catalog);
    assert_eq!(events(&mut stream).await[0]["method"], "notifications/prompts/list_changed", "nothing is followed");
}

// req: P8
#[tokio::test]
async fn denial_follows_host_check_and_skips_preflight() {
    let endpoint = Endpoint::new();
    let challenge = Some("Bearer".parse().expect("a header"));
    let denial = Denial { challenge, ..Denial::new(StatusCode::UNAUTHORIZED, "Sign in") };
    let denied = |ask: Ask| {
        let mut request = ask.request();
        request.extensions_mut().insert(denial.clone());
        request
    };
    let answer =
        endpoint.send(denied(Ask::modern("prompts/list", json!({})).header("origin", "http://localhost"))).await;
    assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")));
    assert_eq!(answer.header("access-control-allow-origin"), Some("http://localhost"));
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        assert_eq!(endpoint.send(denied(Ask::verb(method))).await.status, 401);
    }
    assert_eq!(endpoint.send(denied(Ask::verb(Method::OPTIONS))).await.status, 204);
    let foreign = endpoint.send(denied(Ask::raw("{}").header("origin", "https://evil.example"))).await;
    assert_eq!(foreign.status, 403);
}
