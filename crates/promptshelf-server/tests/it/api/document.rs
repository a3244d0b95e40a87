//! The OpenAPI document, compared with the answers.

use std::{collections::HashSet, time::Duration};

use axum::http::Method;
use promptshelf_store::{DeliveryAttempt, Webhook, WebhookEvent};
use serde_json::{Value, json};

use super::{BYE, HELLO, Server, changes, digest, policy_of, proposal, refused};

/// An operation of the document, with the parameters of its path filled in.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) method: Method,
    pub(super) path: String,
    /// The scopes that permit it.
    pub(super) scopes: Vec<String>,
    /// Other sets of scopes that permit it too.
    pub(super) alternatives: Vec<Vec<String>>,
    /// The description of the operation.
    pub(super) document: Value,
}

impl Operation {
    fn id(&self) -> &str {
        self.document["operationId"].as_str().expect("an id")
    }
}

/// Returns the id and the path below `/api/v1` of each operation that only reads what the store has.
pub(super) fn reads(operations: &[Operation]) -> Vec<(&str, &str)> {
    // An answer without end, sources of a server without a store, and an upload, which is there for its caller only.
    const OTHERS: [&str; 3] = ["follow_channel", "list_sources", "get_upload"];
    let reads = operations.iter().filter(|one| one.method == Method::GET && !OTHERS.contains(&one.id()));
    reads.map(|one| (one.id(), one.path.trim_start_matches("/api/v1").trim_end_matches('?'))).collect()
}

pub(super) async fn operations(server: &Server) -> Vec<Operation> {
    let document = server.get("", "/openapi.json").await.expect(200).json();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        let filled = path.replace("{channel}", "production").replace("{path}", "hello.md");
        let filled = filled
            .replace("{digest}", &digest("A text"))
            .replace("{number}", "1")
            .replace("{id}", "1")
            .replace("{name}", "greet");
        for (method, operation) in item.as_object().expect("operations") {
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let needed = parameters.iter().filter(|one| one["in"] == "query" && one["required"] == true);
            let query: Vec<String> = needed.map(|one| format!("{}=0", one["name"].as_str().expect("a name"))).collect();
            let set = |set: &Value| -> Vec<String> {
                let scopes = set["token"].as_array().expect("scopes");
                scopes.iter().map(|scope| scope.as_str().expect("a scope").to_owned()).collect()
            };
            let mut sets: Vec<_> = operation["security"].as_array().expect("scopes").iter().map(set).collect();
            operations.push(Operation {
                method: method.to_uppercase().parse().expect("a method"),
                path: format!("{filled}?{}", query.join("&")),
                scopes: sets.remove(0),
                alternatives: sets,
                document: operation.clone(),
            });
        }
    }
    assert!(operations.len() >= 20, "{}", operations.len());
    operations
}

#[tokio::test]
async fn document_is_valid() {
    let server = Server::start().await;
    let document = server.get("", "/openapi.json").await.expect(200).json();
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")));
    let mut pending = vec![&document];
    let mut references = 0;
    while let Some(value) = pending.pop() {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').expect("a local reference");
            assert!(document.pointer(pointer).is_some(), "{reference}");
            references += 1;
        }
        match value {
            Value::Object(members) => pending.extend(members.values()),
            Value::Array(items) => pending.extend(items),
            _ => {}
        }
    }
    assert!(references > 50, "{references}");
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        let mut compiler = boon::Compiler::new();
        compiler.add_resource("document", document.clone()).expect("a document");
        let pointer = format!("document#/components/schemas/{name}");
        compiler.compile(&pointer, &mut boon::Schemas::new()).expect(name);
        assert!(schema["description"].is_string() || name == "CheckLevel", "{name} has no description");
    }
    let mut ids = HashSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for operation in item.as_object().expect("operations").values() {
            assert!(ids.insert(operation["operationId"].as_str().expect("an id")), "{path}");
            assert!(operation["summary"].as_str().is_some_and(|summary| summary.len() > 10), "{path}");
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let of_path = parameters.iter().filter(|parameter| parameter["in"] == "path");
            let mut names: Vec<String> =
                of_path.map(|parameter| format!("{{{}}}", parameter["name"].as_str().expect("a name"))).collect();
            let mut expected: Vec<String> =
                path.split('/').filter(|part| part.starts_with('{')).map(str::to_owned).collect();
            names.sort_unstable();
            expected.sort_unstable();
            assert_eq!(names, expected, "{path}");
            for response in operation["responses"].as_object().expect("responses").values() {
                let shared = response["$ref"].as_str().and_then(|place| document.pointer(place.strip_prefix('#')?));
                assert!(shared.unwrap_or(response)["description"].is_string(), "{path}");
            }
        }
    }
}

/// Every list has the same parameters, the same form and the same refusal, and no list goes without.
#[tokio::test]
async fn lists_have_one_form_of_pages() {
    let server = Server::prepared(&policy_of(0)).await;
    let document = server.get("", "/openapi.json").await.expect(200).json();
    let schema_of = |operation: &Value| {
        let reference = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].as_str();
        reference.and_then(|reference| document.pointer(reference.strip_prefix('#')?)).cloned().unwrap_or_default()
    };
    let references = |operation: &Value| {
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        ["cursor", "limit"].map(|name| {
            let own = parameters.iter().any(|one| one["name"] == name);
            assert!(!own, "{operation} describes `{name}` itself");
            parameters.iter().any(|one| one["$ref"] == format!("#/components/parameters/{name}"))
        })
    };
    let mut lists = 0;
    for Operation { method, path, document: operation, .. } in operations(&server).await {
        let schema = schema_of(&operation);
        let is_list = schema["properties"]["items"]["type"] == "array";
        let id = operation["operationId"].as_str().expect("an id");
        assert_eq!(references(&operation), [is_list, is_list], "{id}");
        assert!(!is_list || schema["properties"]["next"].is_object(), "{id}");
        assert!(is_list || !id.starts_with("list_") && !id.ends_with("_history"), "{id} is a list without pages");
        if !is_list || path.starts_with("/api/v1/folder") || path.contains("/sources") {
            continue;
        }
        assert_eq!(method, Method::GET);
        let path = path.strip_prefix("/api/v1").expect("the prefix").replace("?", "?limit=1&");
        let page = server.get("admin", &path).await.expect(200).json();
        assert!(page["items"].as_array().is_some_and(|items| items.len() <= 1), "{id}: {page}");
        assert!(page["next"].is_string() || page["next"].is_null(), "{id}: {page}");
        let other = if id == "list_channels" { "/tokens?" } else { "/channels?" };
        let foreign = server.get("admin", &format!("{other}limit=1")).await.json()["next"].clone();
        for cursor in ["x", "", foreign.as_str().unwrap_or("AWE")] {
            let refusal = server.get("admin", &format!("{path}&cursor={cursor}")).await;
            assert_eq!(refusal.problem(), refused(400, "invalid-cursor"), "{id} {cursor}");
        }
        for limit in ["0", "10001", "x", ""] {
            let refusal = server.get("admin", &path.replace("limit=1", &format!("limit={limit}"))).await;
            assert_eq!(refusal.problem(), refused(400, "invalid-request"), "{id} {limit}");
        }
        lists += 1;
    }
    assert!(lists >= 18, "{lists}");
}

/// A body for each operation that has one, in an order in which each of them succeeds. Those that only read follow from the
/// document.
#[tokio::test]
async fn every_operation_answers_as_the_document_says() {
    let server = Server::prepared(&policy_of(0)).await;
    let document = server.get("", "/openapi.json").await.expect(200).json();
    let store = server.store().await;
    let webhook = Webhook {
        id: "a".to_owned(),
        label: "https://a.example".to_owned(),
        events: WebhookEvent::ALL.into_iter().collect(),
    };
    store.register_webhooks(&[webhook]).await.expect("registered");
    server.propose(BYE).await;
    let (time, problem) = (Duration::ZERO, "the status 500".to_owned());
    let last = DeliveryAttempt { problem, retry_in: time, retry_for: time, min_attempts: 1 };
    assert!(store.delivery_failed(1, &last).await.expect("recorded"));
    let proposal_digest = server.get("reader", "/proposals/2").await.json()["digest"].clone();
    let served = server.get("reader", "/channels/production/revisions/1/prompts").await.json();
    let text = |text: &str| proposal(1, &[("hello.md", Some(HELLO), Some(text))]);
    let tag = async |path: &str| server.get("admin", path).await.etag();
    let part = format!("/channels/production/uploads/{}?offset=0&size=8", digest("\"A text\""));
    let changes: Vec<(&str, &str, &str, Option<Value>)> = vec![
        ("render_prompt", "POST", "/prompts/greet/render", Some(json!({}))),
        ("read_contents", "POST", "/channels/production/contents", Some(json!({ "paths": ["hello.md"] }))),
        ("upload", "POST", "/channels/production/uploads", Some(json!({ "contents": [{ "text": "A text" }] }))),
        ("upload_part", "PUT", part.as_str(), Some(json!("A text"))),
        ("get_upload", "GET", part.split('?').next().expect("a path"), None),
        ("create_token", "POST", "/tokens", Some(json!({ "name": "robot", "scopes": ["library:read"] }))),
        (
            "start_rollout",
            "POST",
            "/channels/production/rollouts",
            Some(json!({ "to": "beta", "steps": "1m", "stop": { "errors": 2.0 } })),
        ),
        ("change_rollout", "PATCH", "/channels/production/rollouts", Some(json!({ "percent": 20 }))),
        ("compare", "POST", "/compare", Some(json!({ "after": { "proposal": { "id": 2 } } }))),
        (
            "compare_renderings",
            "POST",
            "/compare/renderings",
            Some(json!({ "after": { "proposal": { "id": 2 } }, "prompt": "hello", "arguments": { "name": "Ada" } })),
        ),
        (
            "add_comment",
            "POST",
            "/proposals/2/comments",
            Some(json!({
                "digest": proposal_digest,
                "path": "hello.md",
                "line": { "side": "after", "number": 4 },
                "text": "Why?",
            })),
        ),
        (
            "add_evaluation",
            "POST",
            "/channels/production/evaluations",
            Some(json!({
                "evaluation": "quality",
                "prompt": "hello",
                "digest": served["items"][0]["digest"],
                "scores": { "score": 0.9 },
                "thresholds": { "score": 0.8 },
                "cases": [{ "name": "Ada", "score": 1, "passed": true }],
            })),
        ),
        (
            "check",
            "POST",
            "/check",
            Some(json!({ "channel": "production", "changes": changes(&[("hello.md", Some(HELLO), Some(BYE))]) })),
        ),
        (
            "analyze_channel",
            "POST",
            "/channels/production/analysis",
            Some(json!({
                "path": "hello.md",
                "changes": [{ "path": "hello.md", "content": { "text": BYE } }],
                "complete": { "line": 1, "character": 2 },
                "hover": { "line": 1, "character": 2 },
                "arguments": {},
                "tests": true,
            })),
        ),
        (
            "rename_in_channel",
            "POST",
            "/channels/production/rename",
            Some(json!({ "from": "hello.md", "to": "bye.md", "changes": [] })),
        ),
        ("create_proposal", "POST", "/channels/production/proposals", Some(text("Unpublished.\n"))),
        (
            "review_proposal",
            "POST",
            "/proposals/2/reviews",
            Some(json!({ "verdict": "approve", "digest": proposal_digest })),
        ),
    ];
    // The end of what the changes before have made.
    let ends: Vec<(&str, &str, &str, Option<Value>)> = vec![
        ("redeliver", "POST", "/webhooks/dead-letters/1/redelivery", None),
        ("revoke_token", "DELETE", "/tokens/1", None),
        ("replace_proposal", "PUT", "/proposals/3", Some(text("Replaced.\n"))),
        ("withdraw_proposal", "DELETE", "/proposals/3", None),
        ("put_policy", "PUT", "/channels/production/policy", Some(policy_of(0))),
        ("publish_proposal", "POST", "/proposals/2/publish", Some(json!({ "digest": proposal_digest }))),
        ("rollback", "POST", "/channels/production/rollback", Some(json!({ "to": 1, "message": "Back" }))),
        ("finish_rollout", "POST", "/channels/production/rollouts/finish", Some(json!({}))),
        ("promote", "POST", "/channels/beta/promote", Some(json!({ "from": "production", "message": "Copy" }))),
    ];
    server.create("beta", &policy_of(0)).await;
    let operations = operations(&server).await;
    let mut unused: HashSet<&str> = operations.iter().map(Operation::id).collect();
    // Its answer does not end; the tests of the API for programs read it.
    assert!(unused.remove("follow_channel"));
    // A server of a store has no sources; `programs/sources` reads their answers.
    assert!(unused.remove("list_sources") && unused.remove("refresh_source"));
    let of_open = |(id, path): (_, &str)| (id, path.replace("/proposals/1", "/proposals/2"));
    let reads: Vec<_> = reads(&operations).into_iter().map(of_open).collect();
    let reads = reads.iter().map(|(id, path)| (*id, "GET", path.as_str(), None));
    for (id, method, path, body) in changes.into_iter().chain(reads).chain(ends) {
        assert!(unused.remove(id), "{id}");
        let template = document["paths"].as_object().expect("paths").values();
        let operation = template.filter_map(Value::as_object).flat_map(|item| item.values());
        let operation = operation.clone().find(|one| one["operationId"] == id).expect("an operation");
        // Those who may not publish leave proposals open for the calls that follow.
        let caller = match id {
            "create_proposal" | "replace_proposal" | "withdraw_proposal" => "ada",
            "review_proposal" => "rita",
            _ => "admin",
        };
        let match_tag = match method {
            // A revocation has no condition.
            "PUT" | "DELETE" if !matches!(id, "revoke_token" | "upload_part") => Some(tag(path).await),
            _ => None,
        };
        let mut headers = vec![];
        let media = if id == "upload_part" { "application/octet-stream" } else { "application/json" };
        if body.is_some() {
            headers.push(("Content-Type", media));
        }
        headers.extend(match_tag.iter().map(|tag| ("If-Match", tag.as_str())));
        let sent = body.as_ref().map(Value::to_string).unwrap_or_default();
        if let Some(body) = &body {
            valid(&document, &operation["requestBody"]["content"][media]["schema"], body, id);
        }
        let method: Method = method.parse().expect("a method");
        let answer = server.send(&method, &super::at(path), caller, &headers, sent.as_bytes()).await;
        assert!(matches!(answer.status, 200 | 201), "{id}: {}", String::from_utf8_lossy(&answer.body));
        let described = &operation["responses"][answer.status.to_string()];
        assert!(described.is_object(), "{id} does not describe {}", answer.status);
        if answer.header("content-type") == "application/json" {
            valid(&document, &described["content"]["application/json"]["schema"], &answer.json(), id);
        } else {
            assert!(described["content"]["text/plain"].is_object(), "{id}");
        }
    }
    assert_eq!(unused, HashSet::new());
    let refusal = server.get("reader", "/proposals/99").await;
    refusal.problem();
    valid(&document, &json!({ "$ref": "#/components/schemas/Problem" }), &refusal.json(), "a problem");
    assert_eq!(server.get("reader", "/channels/beta/files/hello.md").await.etag(), format!("\"{}\"", digest(HELLO)));
}

/// Checks a value against a schema of the document.
#[track_caller]
pub(super) fn valid(document: &Value, schema: &Value, value: &Value, what: &str) {
    assert!(schema.is_object(), "{what} has no schema");
    let schema = json!({ "allOf": [schema], "components": document["components"] });
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource("schema", schema).expect("JSON");
    let index = compiler.compile("schema", &mut schemas).expect("it is a schema");
    if let Err(error) = schemas.validate(value, index) {
        panic!("{what}: {value}: {error:#}");
    }
}
