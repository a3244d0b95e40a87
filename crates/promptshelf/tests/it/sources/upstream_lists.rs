//! Lists of other MCP servers: names of any kind, single entries that cannot be used, and lists that break off.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};

use super::{HELLO, Workplace, eventually, get, names, prompts};
use crate::fake_server::FakeServer;

/// Names of arguments that no template could have.
const NAMES: [&str; 9] =
    ["project-id", "user.name", "1st", "名前", "items[]", "not", "two words", "LONG", "a\"b'c<d>&{{e}}"];

fn name(short: &str) -> String {
    if short == "LONG" { "x".repeat(200) } else { short.to_owned() }
}

fn source(url: &str) -> String {
    format!("[[source]]\nname = \"up\"\nkind = \"mcp\"\nurl = \"{url}\"\ninterval = \"1s\"\n")
}

// req: S-265
#[test]
fn names_of_arguments_are_passed_on_as_they_are() {
    let fake = FakeServer::start(|method, params| match method {
        "prompts/list" => {
            let prompt = |(number, short): (usize, &&str)| json!({ "name": format!("p{number}"), "arguments": [{ "name": name(short), "required": true }] });
            Some(json!({ "prompts": NAMES.iter().enumerate().map(prompt).collect::<Vec<_>>() }))
        }
        "prompts/get" => {
            let text = params["arguments"].to_string();
            Some(json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }] }))
        }
        "completion/complete" => Some(json!({ "completion": { "values": [params["argument"]["name"]] } })),
        _ => None,
    });
    let place = Workplace::new(&[], &source(&fake.url));
    let server = place.serve();
    eventually(|| names(&server), |names| names.len() == NAMES.len());
    for ((number, short), listed) in NAMES.iter().enumerate().zip(prompts(&server)) {
        let (prompt, name) = (format!("up-p{number}"), name(short));
        assert_eq!(listed["arguments"][0]["name"], json!(name), "{listed}");
        let answer = get(&server, &prompt, &json!({ &name: "value" }));
        let text = answer["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_default();
        assert_eq!(serde_json::from_str::<Value>(text).ok(), Some(json!({ &name: "value" })), "{answer}");
        let missing = get(&server, &prompt, &json!({}));
        assert!(missing["error"]["message"].is_string(), "{missing}");
        let reference = json!({ "type": "ref/prompt", "name": prompt });
        let params = json!({ "ref": reference, "argument": { "name": name, "value": "v" } });
        let completed = server.request("completion/complete", &params).1;
        assert_eq!(completed["result"]["completion"]["values"], json!([name]), "{completed}");
    }
    let state = place.state("up");
    assert_eq!((&state["state"], &state["problem"], &state["leftOut"]), (&json!("current"), &Value::Null, &json!([])));
}

// req: S-265
#[test]
fn entry_that_cannot_be_used_costs_only_itself() {
    let long = "n".repeat(5_000);
    let odd = [
        json!({ "name": long }),
        json!({ "name": "Two Words" }),
        json!({ "name": 7 }),
        json!({ "title": "None" }),
        json!("text"),
        json!({ "name": "arguments", "arguments": { "a": 1 } }),
        json!({ "name": "hidden", "arguments": [{ "name": "a\u{202e}b" }] }),
        json!({ "name": "twice", "arguments": [{ "name": "a" }, { "name": "a" }] }),
        json!({ "name": "many", "arguments": (0..300).map(|number| json!({ "name": format!("a{number}") })).collect::<Vec<_>>() }),
        json!({ "name": "good" }),
        json!({ "name": "x".repeat(126) }),
    ];
    let fake = FakeServer::start(move |method, _| match method {
        "prompts/list" => {
            let all = [json!({ "name": "good", "description": "First" }), json!({ "name": "other" })];
            Some(json!({ "prompts": all.iter().chain(&odd).collect::<Vec<_>>() }))
        }
        _ => None,
    });
    let place = Workplace::new(&[("prompts/hello.md", HELLO)], &source(&fake.url));
    let server = place.serve();
    eventually(|| names(&server), |names| *names == ["up-good", "up-other"]);
    let state =
        eventually(|| place.state("up"), |state| state["leftOut"].as_array().is_some_and(|all| all.len() == 11));
    assert_eq!((&state["state"], &state["problem"]), (&json!("current"), &Value::Null));
    let left_out = state["leftOut"].to_string();
    for part in [
        "has 5000 bytes; the limit is 1024",
        "the prompt `Two Words`: a prompt's name cannot contain ' '",
        "a prompt without a name: ",
        "the prompt `arguments`: invalid type",
        "the prompt `hidden`: the name of its argument `ab` has invisible characters",
        "the prompt `twice`: it has the argument `a` twice",
        "has 300 arguments; the limit is 256",
        "the second prompt `good`: its name is in the list already",
        "with the prefix of the source: a prompt's name cannot be longer than 128 bytes",
    ] {
        assert!(left_out.contains(part), "{part}: {left_out}");
    }
    let listed = place.run(&["source", "list"]);
    assert!(listed.contains("left out: the prompt `Two Words`: a prompt's name"), "{listed}");
}

// req: S-266
#[test]
fn list_that_breaks_off_loses_nothing_that_came() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let page = |name: &str, next: &str| Some(json!({ "prompts": [{ "name": name }], "nextCursor": next }));
    let fake = FakeServer::start(move |method, params| {
        if method != "prompts/list" {
            return None;
        }
        match params["cursor"].as_str() {
            None => page("one", "2"),
            Some("2") => page("two", "3"),
            // The third page came once.
            Some(_) if counted.fetch_add(1, Ordering::SeqCst) == 0 => Some(json!({ "prompts": [{ "name": "three" }] })),
            Some(_) => Some(json!({ "rpc-error": { "code": -32603, "message": "boom" } })),
        }
    });
    let place = Workplace::new(&[], &source(&fake.url));
    let server = place.serve();
    eventually(|| names(&server), |names| *names == ["up-one", "up-three", "up-two"]);
    let state = eventually(|| place.state("up"), |state| state["state"] == "behind");
    let problem = state["problem"].as_str().unwrap_or_default();
    assert!(problem.contains("breaks off after 2 prompts") && problem.contains("boom"), "{state}");
    assert_eq!(names(&server), ["up-one", "up-three", "up-two"], "what was listed before stays");
    let fresh = Workplace::new(&[], &source(&fake.url));
    let server = fresh.serve();
    eventually(|| names(&server), |names| *names == ["up-one", "up-two"]);
}

// req: S-266
#[test]
fn cursor_that_never_moves_costs_no_prompt() {
    let fake = FakeServer::start(|method, params| {
        (method == "prompts/list").then(|| {
            let name = if params["cursor"].is_null() { "one" } else { "two" };
            json!({ "prompts": [{ "name": name }], "nextCursor": "same" })
        })
    });
    let place = Workplace::new(&[], &source(&fake.url));
    let server = place.serve();
    eventually(|| names(&server), |names| *names == ["up-one", "up-two"]);
    let state = eventually(|| place.state("up"), |state| state["state"] == "behind");
    let problem = state["problem"].as_str().unwrap_or_default();
    assert!(problem.contains("after 2 prompts, which are served: the server's list is circular: page 2"), "{state}");
}

// req: S-267
#[test]
fn own_uris_and_unlisted_schemes_are_not_passed_on() {
    let uris =
        ["docs://guide", "skill://team/pdf/SKILL.md", "vscode:extension/evil", "memo://x", "notes://a", "notes://b"];
    let fake = FakeServer::start(move |method, params| match method {
        "prompts/list" => {
            let prompts = (0..uris.len()).map(|number| json!({ "name": format!("p{number}") }));
            Some(json!({ "prompts": prompts.collect::<Vec<_>>() }))
        }
        "prompts/get" => {
            let number: usize = params["name"].as_str()?.strip_prefix('p')?.parse().ok()?;
            let contents = json!({ "uri": uris[number], "text": "Evil" });
            let block = json!({ "type": "resource", "resource": contents });
            Some(json!({ "messages": [{ "role": "user", "content": block }] }))
        }
        "resources/list" => {
            let listed = ["notes://a", "docs://mine", "vscode:extension/evil", "skill://team/pdf/SKILL.md"];
            let resource = |uri: &str| json!({ "uri": uri, "name": "x" });
            Some(json!({ "resources": listed.map(resource) }))
        }
        _ => None,
    });
    let team = "[[source]]\nname = \"team\"\nkind = \"folder\"\npath = \"team\"\n\n";
    let manifest = "[[resources]]\nuri = \"docs://guide\"\nfile = \"guide.md\"\n";
    let files = [("team/hello.md", HELLO), ("team/promptshelf.toml", manifest), ("team/guide.md", "# Ours")];
    let place = Workplace::new(&files, &(team.to_owned() + &source(&fake.url)));
    let server = place.serve();
    eventually(|| names(&server), |names| names.iter().filter(|name| name.starts_with("up-p")).count() == uris.len());
    for (number, expected) in [
        (0, "belongs to this server"),
        (1, "scheme `skill:`"),
        (2, "scheme `vscode:`"),
        (3, "scheme `memo:`, which no resource in its list has"),
    ] {
        let answer = get(&server, &format!("up-p{number}"), &json!({}));
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains(expected)), "{answer}");
    }
    for number in [4, 5] {
        let answer = get(&server, &format!("up-p{number}"), &json!({}));
        assert_eq!(answer["result"]["messages"][0]["content"]["resource"]["uri"], uris[number], "{answer}");
    }
}
