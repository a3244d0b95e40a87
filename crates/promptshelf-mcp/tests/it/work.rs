//! The processor time of requests of the same size: none takes much longer than an honest one.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use promptshelf_core::{
    ArgumentDefinition, ArgumentType, CatalogHandle, CompletionSource, Constraints, Definitions, Origin,
    PromptDefinition, ResourceContent, ResourceDefinition, SourceText, check,
};
use promptshelf_mcp::{HttpOptions, HttpService, Server};
use promptshelf_service::{Recorder, Service};
use serde_json::{Map, Value, json};
use tower_service::Service as _;

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// Bytes of each request, without its frame.
const SIZE: usize = 30_000;

#[derive(Debug)]
struct Discarding;

impl Recorder for Discarding {
    fn record(&self, _: String) {}
}

/// Processor time that this thread has used; independent of other programs.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).expect("less than a second"))
}

/// A prompt with an argument of each kind, a guided one, and one with many required arguments.
fn endpoint() -> HttpService {
    let argument = |name: &str| ArgumentDefinition::new(name).description(name.to_uppercase());
    let choices: Vec<String> = (0..300).map(|number| format!("c{number}")).collect();
    let choices: Vec<&str> = choices.iter().map(String::as_str).collect();
    let mut word = argument("word").complete(CompletionSource::Values(vec!["a".repeat(50); 2_000]));
    let pattern = Some("^(a|b|[a-z]{0,20})*$".into());
    word.constraints = Some(Constraints { pattern, ..Constraints::default() }.into());
    let mut secret = argument("secret");
    secret.sensitive = true;
    let kinds = PromptDefinition::template("kinds", "{{ text }}{{ values }}{{ list }}{{ word }}")
        .description("Takes values of each kind")
        .argument(argument("text"))
        .argument(argument("values").kind(ArgumentType::Json))
        .argument(argument("list").kind(ArgumentType::List).choices(choices))
        .argument(argument("number").kind(ArgumentType::Integer))
        .argument(secret)
        .argument(word);
    let used: String = (0..20).map(|number| format!("{{{{ required_{number} }}}}")).collect();
    let required =
        |many: PromptDefinition, number: i32| many.argument(argument(&format!("required_{number}")).required());
    let many = (0..20).fold(PromptDefinition::template("many", used).description("Needs many values"), required);
    let guided = crate::library::guided();
    let template = ResourceContent::Template("{{ path }}{{ name }}".into());
    let origin = Origin::new(SourceText::new("promptshelf.toml", ""));
    let notes = ResourceDefinition::from_source("notes://{+path}/{name}", template, origin);
    let prompts = guided.prompts.into_iter().chain([kinds.into(), many.into()]).collect();
    let checked = check(Definitions { prompts, resources: vec![notes], ..Definitions::default() }, None);
    assert!(!checked.diagnostics.iter().any(promptshelf_core::Diagnostic::is_error), "{:?}", checked.diagnostics);
    let service = Service::new(CatalogHandle::new(checked.catalog)).with_audit(Arc::new(Discarding));
    Server::new(service).http(HttpOptions::default())
}

fn message(method: &str, mut params: Value) -> (String, String) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    (method.to_owned(), json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string())
}

/// A request of an older revision, where headers do not repeat names.
fn legacy(method: &str, params: &Value) -> (String, String) {
    (method.to_owned(), json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string())
}

fn get(name: &str, arguments: Value) -> (String, String) {
    message("prompts/get", json!({ "name": name, "arguments": arguments }))
}

fn members(count: usize, name: impl Fn(usize) -> String, value: &Value) -> Value {
    Value::Object((0..count).map(|number| (name(number), value.clone())).collect::<Map<_, _>>())
}

/// As many repetitions as fit into a request.
fn filled(part: &str) -> String {
    part.repeat(SIZE / part.len())
}

async fn cost(endpoint: &HttpService, (method, body): &(String, String)) -> (Duration, u16) {
    let parsed: Value = serde_json::from_str(body).unwrap_or_default();
    let mut least = (Duration::MAX, 0);
    for _ in 0..3 {
        let mut request = Request::post("/").header("host", "localhost").header("content-type", "application/json");
        let revision = if body.contains("_meta") { MODERN } else { LEGACY };
        request = request.header("mcp-protocol-version", revision).header("mcp-method", method);
        for key in ["name", "uri"] {
            if let Some(name) = parsed["params"][key].as_str().filter(|name| name.len() < 4_096) {
                request = request.header("mcp-name", name);
            }
        }
        let request = request.body(Full::new(Bytes::from(body.clone()))).expect("a request");
        let before = thread_time();
        let response = endpoint.clone().call(request).await.expect("no request fails");
        let status = response.status().as_u16();
        response.into_body().collect().await.expect("no body fails");
        least = least.min((thread_time() - before, status));
    }
    least
}

// req: S-53, S-56
#[tokio::test]
async fn requests_of_one_size_cost_about_the_same() {
    let endpoint = endpoint();
    let honest = get("kinds", json!({ "values": format!("[{}1]", filled("1,")) }));
    let names = SIZE / 16;
    let completion = |typed: String| {
        let reference = json!({ "type": "ref/prompt", "name": "kinds" });
        message("completion/complete", json!({ "ref": reference, "argument": { "name": "word", "value": typed } }))
    };
    let table = [
        ("a text", get("kinds", json!({ "text": filled("x") }))),
        ("a text of escapes", get("kinds", json!({ "text": filled("\u{1}\"\\") }))),
        ("invisible characters", get("kinds", json!({ "text": filled("\u{200b}\u{e0041}") }))),
        ("a text of markers", get("kinds", json!({ "text": filled("\u{fdd0}1:") }))),
        ("a secret", get("kinds", json!({ "secret": filled("a"), "number": filled("a") }))),
        ("many secrets", get("kinds", json!({ "secret": "a", "number": filled("a"), "text": filled("aa") }))),
        ("a number", get("kinds", json!({ "number": filled("9") }))),
        ("a word", get("kinds", json!({ "word": filled("ab") }))),
        ("a list of choices", get("kinds", json!({ "list": filled("c299,") }))),
        ("a list of lines", get("kinds", json!({ "list": filled("x\n") }))),
        ("a nested value", get("kinds", json!({ "values": filled("[") }))),
        ("a value of mappings", get("kinds", json!({ "values": format!("[{}1]", filled("{\"a\":{}},")) }))),
        ("a value with many keys", get("kinds", json!({ "values": members(names, |n| format!("k{n}"), &json!(1)).to_string() }))),
        ("many names", get("kinds", members(names, |n| format!("n{n}"), &json!("")))),
        ("many names of a guided prompt", get("setup", members(names, |n| format!("n{n}"), &json!("")))),
        ("a thousand names", get("many", members(1_000, |n| format!("required{n}"), &json!("x".repeat(SIZE / 1_000))))),
        ("a thousand long names", get("many", members(1_000, |n| format!("{}{n}", "required_".repeat(4)), &json!("")))),
        ("a thousand names of a guided prompt", get("setup", members(1_000, |n| format!("{n}{}", "x".repeat(40)), &json!("")))),
        ("values of other types", get("many", members(1_000, |n| format!("required_{n}"), &json!(vec![1; 20])))),
        ("many answers", message("prompts/get", json!({ "name": "setup", "inputResponses": members(names, |n| format!("step_{n}"), &json!({})) }))),
        ("a long state", message("prompts/get", json!({ "name": "setup", "requestState": filled("A") }))),
        ("a long prompt name", legacy("prompts/get", &json!({ "name": filled("a") }))),
        ("a long URI", legacy("resources/read", &json!({ "uri": format!("notes://{}a", filled("a/")) }))),
        ("an encoded URI", legacy("resources/read", &json!({ "uri": format!("notes://{}", filled("%2F")) }))),
        ("a long cursor", message("prompts/list", json!({ "cursor": filled("A") }))),
        ("a long input", completion(filled("a "))),
        ("an input of a thousand bytes", completion("a".repeat(1_000))),
        ("an input of many words", completion("a ".repeat(500))),
        ("many members of `params`", message("prompts/list", members(names, |n| format!("m{n}"), &json!("")))),
        ("many members of `_meta`", ("prompts/list".into(), json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/list", "params": { "_meta": members(names, |n| format!("m{n}"), &json!("")) } }).to_string())),
        ("many capabilities", ("prompts/get".into(), json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": { "name": "setup", "_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": members(names, |n| format!("m{n}"), &json!({})),
        } } }).to_string())),
        ("nothing but brackets", ("prompts/list".into(), filled("["))),
        ("nothing but digits", ("prompts/list".into(), filled("1"))),
        ("a long id", ("prompts/list".into(), format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{}\",\"method\":\"prompts/list\"}}", filled("\\u0041")))),
        ("many numbers", ("prompts/list".into(), format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"prompts/list\",\"x\":[{}1]}}", filled("1e9,")))),
    ];
    let usual = cost(&endpoint, &honest).await;
    assert_eq!(usual.1, 200);
    let mut slow = Vec::new();
    for (name, request) in &table {
        assert!(request.1.len() < 4 * SIZE, "{name}: {} bytes", request.1.len());
        let (mut took, status) = cost(&endpoint, request).await;
        // The least of several attempts: others on the machine share its caches.
        for _ in 0..5 {
            if took > usual.0 * 3 {
                took = took.min(cost(&endpoint, request).await.0);
            }
        }
        let factor = took.as_secs_f64() / usual.0.as_secs_f64();
        println!("{factor:6.2} {name}: {status}, {} bytes", request.1.len());
        if factor > 5.0 {
            slow.push(format!("{name}: {factor:.1} times"));
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}
