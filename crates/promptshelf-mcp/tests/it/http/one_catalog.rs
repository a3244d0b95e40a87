//! Each response comes from one catalog, even if the library is reloaded meanwhile.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use promptshelf_core::{
    About, Access, AccessRule, ArgumentDefinition, Catalog, CatalogHandle, CompletionSource, Definitions, Origin,
    Policy, PromptDefinition, ResourceBody, ResourceContent, ResourceDefinition, SourceText, check,
};
use promptshelf_mcp::{HttpOptions, Server};
use promptshelf_service::{Recorder, Service};
use serde_json::{Value, json};

use super::endpoint::{Ask, Endpoint};

fn origin() -> Origin {
    Origin::new(SourceText::new("promptshelf.toml", ""))
}

/// A catalog with its number in every part of a response. Catalogs with even numbers hide a prompt from anonymous
/// callers, so that their responses are private.
fn numbered(number: u64) -> Catalog {
    let values = CompletionSource::Values(vec![number.to_string()]);
    let prompts = [
        PromptDefinition::template("number", number.to_string())
            .description("Its number")
            .argument(ArgumentDefinition::new("value").description("A value").complete(values)),
        PromptDefinition::template("closed", "Closed.").description("For editors"),
    ];
    let content = ResourceContent::Fixed(ResourceBody::Text(number.to_string().into()));
    let access = Access { scopes: vec!["edit".into()], ..Access::default() };
    let rule = AccessRule { prompts: vec!["closed".into()], ..AccessRule::new(access, origin()) };
    let definitions = Definitions {
        resources: vec![ResourceDefinition::from_source("docs://number", content, origin())],
        access: if number.is_multiple_of(2) { vec![rule] } else { Vec::new() },
        about: About { name: Some(number.to_string()), ..About::default() },
        policy: Policy { ttl: Duration::from_secs(number), ..Policy::default() },
        ..Definitions::from_iter(prompts)
    };
    check(definitions, None).catalog
}

/// Replaces the catalog as soon as a service answer is complete, before the transport encodes it.
#[derive(Debug)]
struct ReloadsAfterEachAnswer {
    handle: CatalogHandle,
    number: Mutex<u64>,
}

impl Recorder for ReloadsAfterEachAnswer {
    fn record(&self, _: String) {
        let mut number = self.number.lock().expect("no test panicked");
        *number += 1;
        self.handle.replace(numbered(*number));
    }
}

fn endpoint(handle: CatalogHandle, service: Service) -> Endpoint {
    Endpoint::of(Server::new(service), handle, HttpOptions::default())
}

/// Returns the number of the catalog that all parts of a result come from. `content` is the part of the result that
/// holds the number, if it has one besides the common members.
#[track_caller]
fn number(method: &str, result: &Value, content: Option<&Value>) -> u64 {
    let name = result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"].as_str().expect("the server's name");
    let number: u64 = name.parse().expect("a number");
    if let Some(ttl) = result.get("ttlMs") {
        assert_eq!(ttl, &json!(number * 1_000), "{method}: {result}");
        let scope = if number.is_multiple_of(2) { "private" } else { "public" };
        assert_eq!(result["cacheScope"], scope, "{method}: {result}");
    }
    if let Some(content) = content {
        assert_eq!(content, name, "{method}: {result}");
    }
    number
}

#[tokio::test]
async fn answer_comes_from_one_catalog() {
    let handle = CatalogHandle::new(numbered(0));
    let reloads = ReloadsAfterEachAnswer { handle: handle.clone(), number: Mutex::new(0) };
    let endpoint = endpoint(handle.clone(), Service::new(handle).with_audit(Arc::new(reloads)));
    let reference = json!({ "type": "ref/prompt", "name": "number" });
    let complete = json!({ "ref": reference, "argument": { "name": "value", "value": "" } });
    for round in 0..4 {
        for (at, (method, params, content)) in [
            ("prompts/list", json!({}), None),
            ("prompts/get", json!({ "name": "number" }), Some("/messages/0/content/text")),
            ("completion/complete", complete.clone(), Some("/completion/values/0")),
            ("resources/list", json!({}), None),
            ("resources/read", json!({ "uri": "docs://number" }), Some("/contents/0/text")),
        ]
        .into_iter()
        .enumerate()
        {
            let result = endpoint.ask(Ask::modern(method, params)).await.result();
            let content = content.map(|place| result.pointer(place).unwrap_or_else(|| panic!("{place} in {result}")));
            // Each response replaces the catalog once.
            assert_eq!(number(method, &result, content), round * 5 + at as u64, "{method}: {result}");
            if method == "prompts/list" {
                let shown = result["prompts"].as_array().expect("prompts").len();
                assert_eq!(shown, if result["cacheScope"] == "private" { 1 } else { 2 }, "{result}");
            }
        }
    }
}

/// `server/discover` leaves no record, so another thread replaces the catalog continuously.
#[tokio::test]
async fn discovery_comes_from_one_catalog() {
    let handle = CatalogHandle::new(numbered(0));
    let endpoint = endpoint(handle.clone(), Service::new(handle.clone()));
    let stop = Arc::new(AtomicBool::new(false));
    let reloading = thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            for number in (1_u64..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                handle.replace(numbered(number));
            }
        }
    });
    for _ in 0..5_000 {
        let result = endpoint.ask(Ask::modern("server/discover", json!({}))).await.result();
        number("server/discover", &result, None);
    }
    stop.store(true, Ordering::Relaxed);
    reloading.join().expect("no reload panicked");
}
