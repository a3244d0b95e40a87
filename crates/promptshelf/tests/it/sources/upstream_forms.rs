//! Forms of other MCP servers in both eras, passed on to callers of both eras.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use serde_json::{Value, json};

use super::{Workplace, eventually, names};
use crate::{
    elicitation::LEGACY_SERVER,
    fake_server::FakeServer,
    program::{Server, ended},
};

const MODERN: &str = "2026-07-28";

/// A server of revision 2026-07-28 whose prompts ask for a colour, for a password, for a page, and again and again.
/// The text above each form of another server.
const FORM: &str = "The server of the source SOURCE asks: QUESTION\n(This is a question of another server: never enter \
                    passwords, codes or keys here.)";

fn asking_server() -> FakeServer {
    let form = |message: &str, field: &str| {
        let schema = json!({
            "type": "object",
            "properties": { field: { "type": "string", "enum": ["red", "green"] } },
            "required": [field],
        });
        json!({ "mode": "form", "message": message, "requestedSchema": schema })
    };
    let ask = |params: Value, state: &str| {
        let request = json!({ "method": "elicitation/create", "params": params });
        Some(json!({ "resultType": "input_required", "inputRequests": { "q": request }, "requestState": state }))
    };
    FakeServer::start(move |method, params| match (method, params["name"].as_str().unwrap_or_default()) {
        ("prompts/list", _) => {
            let prompts = ["colour", "endless", "huge", "page", "secret"].map(|name| json!({ "name": name }));
            Some(json!({ "prompts": prompts }))
        }
        ("prompts/get", "colour") if params["requestState"] == "their state" => {
            let text = params["inputResponses"].to_string();
            Some(json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }] }))
        }
        ("prompts/get", "colour") => ask(form("Which\u{202e} colour?\u{1b}[2J", "colour"), "their state"),
        ("prompts/get", "endless") => Some(json!({ "resultType": "input_required", "requestState": "x" })),
        ("prompts/get", "huge") => ask(form("Which?", "colour"), &"x".repeat(100_000)),
        ("prompts/get", "page") => ask(json!({ "mode": "url", "message": "Look", "url": "http://a.example/" }), "x"),
        ("prompts/get", "secret") => ask(form("Please", "api_key"), "x"),
        _ => None,
    })
}

fn settings(fake: &FakeServer) -> String {
    let older = json!(["sh", "older.sh", "2025-06-18", "log"]);
    format!(
        "[[source]]\nname = \"new\"\nkind = \"mcp\"\nurl = \"{}\"\n\n[[source]]\nname = \"old\"\nkind = \"mcp\"\n\
         command = {older}\n",
        fake.url
    )
}

/// Sends `prompts/get` in revision 2026-07-28, from a client with these capabilities.
fn get(server: &Server, name: &str, capabilities: &Value, more: Value) -> Value {
    let mut params = more;
    params["name"] = json!(name);
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut answer = agent
        .post(&server.url)
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", MODERN)
        .header("Mcp-Method", "prompts/get")
        .header("Mcp-Name", name)
        .send(json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": params }).to_string())
        .expect("an answer");
    let text = answer.body_mut().read_to_string().expect("a text");
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
}

fn text(answer: &Value) -> &str {
    answer["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

// req: S-206, S-207, S-208
#[test]
fn questions_of_other_servers_reach_modern_callers_with_signed_state() {
    let fake = asking_server();
    let place = Workplace::new(&[("older.sh", LEGACY_SERVER)], &settings(&fake));
    let server = place.serve();
    eventually(|| names(&server), |names| names.len() == 6);
    let forms = json!({ "elicitation": { "form": {} } });
    let accepted = json!({ "action": "accept", "content": { "colour": "green" }, "other": 1 });

    // The other server answers with a question and a state of its own.
    let asked = get(&server, "new-colour", &forms, json!({}));
    let request = &asked["result"]["inputRequests"]["q"]["params"];
    assert_eq!(request["message"], FORM.replace("SOURCE", "new").replace("QUESTION", "Which colour?[2J"), "{asked}");
    assert_eq!(request["requestedSchema"]["properties"]["colour"]["enum"], json!(["red", "green"]), "{asked}");
    assert_eq!(request["requestedSchema"]["required"], json!(["colour"]), "{asked}");
    let state = asked["result"]["requestState"].as_str().expect("a state").to_owned();
    assert!(!state.contains("their state"), "{asked}");
    let with = |key: &str, state: &str| json!({ "requestState": state, "inputResponses": { key: accepted } });
    let answer = get(&server, "new-colour", &forms, with("q", &state));
    assert_eq!(text(&answer), r#"{"q":{"action":"accept","content":{"colour":"green"}}}"#);
    // Neither a changed state nor that of another prompt reaches the other server.
    for (name, state) in [("new-colour", format!("{state}A")), ("new-secret", state), ("new-colour", "e30.e30".into())]
    {
        let refused = get(&server, name, &forms, with("q", &state));
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("Invalid `requestState`"), "{name}: {refused}");
    }
    // Results without a state belong to no question.
    let again = get(&server, "new-colour", &forms, json!({ "inputResponses": { "q": accepted } }));
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");

    // An older server asks in the middle of its request, which is repeated with the answer.
    let asked = get(&server, "old-paint", &forms, json!({}));
    let request = &asked["result"]["inputRequests"]["question"]["params"];
    assert_eq!(request["message"], FORM.replace("SOURCE", "old").replace("QUESTION", "Which?"), "{asked}");
    let state = asked["result"]["requestState"].as_str().expect("a state").to_owned();
    let answer = get(&server, "old-paint", &forms, with("question", &state));
    assert_eq!(text(&answer), "[action:accept,content:colour:green]");
    let declined = json!({ "requestState": state, "inputResponses": { "question": { "action": "decline" } } });
    assert_eq!(text(&get(&server, "old-paint", &forms, declined)), "[action:decline]");

    let both = json!({ "elicitation": { "form": {}, "url": {} } });
    for (name, capabilities, expected) in [
        ("new-colour", &json!({}), "requires a client with forms"),
        ("old-paint", &json!({}), "requires a client with forms"),
        ("new-page", &forms, "requires a client with web pages"),
        ("new-page", &both, "sent a web page that is not at https:, which is not passed on"),
        ("new-secret", &forms, "sent a form that asks for an API key, which is not passed on"),
        ("new-huge", &forms, "whose state is larger than 65536 bytes"),
        ("new-endless", &forms, "asks again and again"),
    ] {
        let refused = get(&server, name, capabilities, json!({}));
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(expected), "{name}: {refused}");
    }

    // Reactions of users are counted, without their answers.
    let usage = format!("{}/api/v1/usage", server.url.trim_end_matches("/mcp"));
    let usage = ureq::get(&usage).call().expect("an answer").body_mut().read_to_string().expect("a text");
    assert!(!usage.contains("green"), "{usage}");
    let usage: Value = serde_json::from_str(&usage).expect("JSON");
    let forms = |name: &str| {
        let rows = usage["prompts"].as_array().expect("a list").iter();
        let mut forms = rows.filter(|row| row["name"] == name && row["outcome"] == "ok").map(|row| &row["forms"]);
        forms.next().unwrap_or_else(|| panic!("{usage}")).clone()
    };
    assert_eq!(forms("new-colour"), json!({ "accepted": 1, "declined": 0, "cancelled": 0 }));
    assert_eq!(forms("old-paint"), json!({ "accepted": 1, "declined": 1, "cancelled": 0 }));
}

/// A legacy client on stdio.
struct StdioClient {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl StdioClient {
    fn start(place: &Workplace) -> StdioClient {
        let mut command = place.command(&["serve", "--stdio"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it");
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        StdioClient { child, input, output: BufReader::new(output) }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("it reads");
    }

    /// Returns the next message that is no notification.
    fn next(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("a line") > 0, "the server has ended");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message.get("id").is_some() {
                return message;
            }
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }));
        self.next()
    }
}

// req: S-206
#[test]
fn questions_of_other_servers_reach_older_callers_within_the_request() {
    let fake = asking_server();
    let place = Workplace::new(&[("older.sh", LEGACY_SERVER)], &settings(&fake));
    let mut client = StdioClient::start(&place);
    let client_info = json!({ "name": "test", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-06-18", "capabilities": { "elicitation": {} }, "clientInfo": client_info });
    client.request("initialize", &params);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let listed = |client: &mut StdioClient| {
        client.request("prompts/list", &json!({}))["result"]["prompts"].as_array().map_or(0, Vec::len)
    };
    eventually(|| listed(&mut client), |count| *count == 6);
    for (name, expected) in [
        ("new-colour", r#"{"q":{"action":"accept","content":{"colour":"green"}}}"#),
        ("old-paint", "[action:accept,content:colour:green]"),
    ] {
        let asked = client.request("prompts/get", &json!({ "name": name }));
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        assert!(asked["params"]["requestedSchema"]["properties"]["colour"].is_object(), "{asked}");
        let result = json!({ "action": "accept", "content": { "colour": "green" } });
        client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }));
        assert_eq!(text(&client.next()), expected);
    }
    drop(client.input);
    ended(&mut client.child);
}
