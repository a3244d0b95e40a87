//! Prompts as tools and skills, served from files that change.

use std::fs;

use serde_json::{Value, json};

use crate::program::{Folder, Pipes, Server, library, promptshelf, shown};

const HELLO: &str =
    "---\ndescription: Greets\ntool: true\narguments:\n  - name: who\n    required: true\n---\nHello {{ who }}.";
const SKILL: &str = "---\nname: greet\ndescription: How to greet\n---\nSee words.md.";

fn start(folder: &Folder, more: &[&str]) -> Pipes {
    let mut command = promptshelf();
    command.args(["serve", "prompts", "--stdio"]).args(more).current_dir(folder.path());
    Pipes::start(command)
}

fn use_prompt(pipes: &mut Pipes, id: u32) -> Value {
    let arguments = json!({ "name": "hello", "arguments": { "who": "Ada" } });
    pipes.request(id, "tools/call", &json!({ "name": "use_prompt", "arguments": arguments }))["result"].clone()
}

/// Reads notifications until one has this method.
fn notified(pipes: &Pipes, method: &str) {
    loop {
        let message: Value = serde_json::from_str(&pipes.line()).expect("JSON");
        assert_eq!(message.get("id"), None, "{message}");
        if message["method"] == method {
            return;
        }
    }
}

#[test]
fn tools_without_a_prompt_for_them_are_noted() {
    let folder = library(&[("hello.md", &HELLO.replace("tool: true\n", ""))]);
    let noted = |folder: &Folder| {
        let mut command = promptshelf();
        command.args(["serve", "prompts", "--stdio", "--tools"]).current_dir(folder.path());
        shown(command, "").contains("no prompt has `tool: true`")
    };
    assert!(noted(&folder));
    folder.write("prompts/hello.md", HELLO);
    assert!(!noted(&folder));
}

// req: S-121, Y20
#[test]
fn tools_and_skills_follow_the_files_and_are_recorded() {
    let folder = library(&[("hello.md", HELLO), ("greet/SKILL.md", SKILL), ("greet/words.md", "Hi")]);
    let mut pipes = start(&folder, &["--tools", "--audit", "audit.jsonl"]);
    let initialized = pipes.initialize();
    let capabilities = &initialized["result"]["capabilities"];
    assert_eq!(capabilities["tools"], json!({ "listChanged": true }));
    assert_eq!(capabilities["extensions"]["io.modelcontextprotocol/skills"], json!({ "directoryRead": true }));
    assert_eq!(use_prompt(&mut pipes, 1)["content"][0]["text"], "Hello Ada.");

    let skill = json!({ "uri": "skill://greet/SKILL.md" });
    let before = pipes.request(2, "skills/get", &skill)["result"]["skill"]["resources"].clone();
    assert_eq!(before.as_array().map(Vec::len), Some(2));
    fs::write(folder.path().join("prompts/greet/words.md"), "Good morning").expect("a file");
    notified(&pipes, "notifications/resources/list_changed");
    let after = pipes.request(3, "skills/get", &skill)["result"]["skill"]["resources"].clone();
    assert_eq!((&before[0], after[1]["size"].as_u64()), (&after[0], Some(12)));

    // Another type changes the schema of the tool, and nothing in `prompts/list`.
    fs::write(
        folder.path().join("prompts/hello.md"),
        HELLO.replace("required: true", "required: true\n    maxLength: 9"),
    )
    .expect("a file");
    notified(&pipes, "notifications/tools/list_changed");
    fs::write(folder.path().join("prompts/hello.md"), HELLO.replace("tool: true\n", "")).expect("a file");
    notified(&pipes, "notifications/tools/list_changed");
    let withdrawn = use_prompt(&mut pipes, 4);
    assert_eq!(
        (&withdrawn["isError"], &withdrawn["content"][0]["text"]),
        (&json!(true), &json!("Unknown prompt: hello"))
    );
    pipes.rest();

    let audit = fs::read_to_string(folder.path().join("audit.jsonl")).expect("an audit");
    let records: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let outcomes = |prompt: &str| -> Vec<(&str, &str)> {
        let of_prompt = records.iter().filter(|record| record["prompt"] == prompt);
        let texts = of_prompt
            .map(|record| (record["via"].as_str().unwrap_or_default(), record["outcome"].as_str().unwrap_or_default()));
        texts.collect()
    };
    assert_eq!(outcomes("hello"), [("tool", "ok"), ("", "unknown-prompt")], "{audit}");
    assert!(records.iter().any(|record| record["method"] == "skill" && record["outcome"] == "ok"), "{audit}");
    assert!(!audit.contains("Ada"), "no contents");
}

#[test]
fn without_the_flag_there_are_no_tools() {
    let folder = library(&[("hello.md", HELLO)]);
    let mut pipes = start(&folder, &[]);
    assert_eq!(pipes.initialize()["result"]["capabilities"]["tools"], json!({}));
    assert_eq!(pipes.request(1, "tools/list", &json!({}))["result"]["tools"], json!([]));
    let call = json!({ "name": "use_prompt", "arguments": { "name": "hello" } });
    assert_eq!(pipes.request(2, "tools/call", &call)["error"]["code"], -32602);
}

/// Sends a request to another path of a server.
fn at(server: &Server, path: &str, headers: &[(&str, &str)]) -> (u16, Vec<(String, String)>, String) {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let url = format!("http://{}{path}", server.authority());
    let request = headers.iter().fold(agent.get(url), |request, (name, value)| request.header(*name, *value));
    let mut answer = request.call().expect("the server answers");
    let text = |value: &ureq::http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let headers = answer.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    (answer.status().as_u16(), headers, answer.body_mut().read_to_string().expect("text"))
}

const TWO: &str = "---\ndescription: Reviews\narguments:\n  - name: language\n  - name: code\n    required: true\n---\n\
    {{ language }}: {{ code }}{{ role(\"assistant\") }}Fine.";

// req: S-126
#[test]
fn profile_changes_results_at_its_own_path() {
    let settings = "[profiles.plain]\nflatten-roles = true\nmerge-blocks = true\none-argument = true\n";
    let folder = library(&[("Two.x.md", TWO), ("../server.toml", settings)]);
    let mut server = Server::of(&folder, &[]);
    let names = |server: &Server| {
        server.request("prompts/list", &json!({})).1["result"]["prompts"][0]["arguments"].as_array().map(Vec::len)
    };
    let get = |server: &Server| {
        let params = json!({ "name": "Two.x", "arguments": { "code": "language=rust x" } });
        server.request("prompts/get", &params).1["result"]["messages"].clone()
    };
    assert_eq!((names(&server), get(&server).as_array().map(Vec::len)), (Some(2), Some(2)));
    let own = server.url.clone();
    server.url = own.replace("/mcp", "/profiles/plain/mcp");
    assert_eq!(names(&server), Some(1));
    let messages = get(&server);
    assert_eq!(
        messages,
        json!([{ "role": "user", "content": { "type": "text", "text": "[user]\nrust: x\n\n[assistant]\nFine." } }])
    );
    server.url = own.replace("/mcp", "/profiles/other/mcp");
    assert_eq!(server.request("prompts/list", &json!({})).0, 404);
}

// req: S-127
#[test]
fn discovery_documents_are_served_when_asked_for() {
    let folder = library(&[("hello.md", HELLO)]);
    let server = Server::of(&folder, &[]);
    for path in ["/mcp/server-card", "/.well-known/ai-catalog.json"] {
        assert_eq!(at(&server, path, &[]).0, 404, "off by default");
    }
    let settings = "[discovery]\nserver-card = true\ncatalog = true\n";
    let about = "[server]\nname = \"team prompts\"\ndescription = \"For the team\"\n";
    let folder = library(&[("hello.md", HELLO), ("promptshelf.toml", about), ("../server.toml", settings)]);
    let server = Server::of(&folder, &[]);
    let (status, headers, body) = at(&server, "/mcp/server-card", &[("Origin", "https://elsewhere.example")]);
    let header = |headers: &[(String, String)], name: &str| {
        headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    assert_eq!((status, header(&headers, "content-type").as_str()), (200, "application/mcp-server-card+json"));
    assert_eq!(header(&headers, "access-control-allow-origin"), "*");
    let card: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(card["remotes"][0]["url"], server.url);
    assert_eq!((&card["name"], &card["description"]), (&json!("127.0.0.1/team-prompts"), &json!("For the team")));
    assert!(!body.contains("hello"), "no prompts");
    let etag = header(&headers, "etag");
    assert!(etag.len() > 10 && etag.starts_with('"'), "strong: {etag}");
    let (status, headers, body) = at(&server, "/mcp/server-card", &[("If-None-Match", &etag)]);
    assert_eq!((status, header(&headers, "etag"), body.as_str()), (304, etag, ""));
    let (status, _, body) = at(&server, "/.well-known/ai-catalog.json", &[]);
    let catalog: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, &catalog["entries"][0]["url"]), (200, &json!(format!("{}/server-card", server.url))));
    assert_eq!(at(&server, "/mcp/server-card", &[("Host", "evil.example")]).0, 403, "no foreign host in the text");
}
