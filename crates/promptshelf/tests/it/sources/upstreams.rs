//! Other MCP servers as sources: hostile ones, approvals, loops and credentials.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use super::{HELLO, Workplace, eventually, get, names, prompts};
use crate::{
    client_auth::realm::{Behaviour, Realm, SECRET},
    fake_server::FakeServer,
};

fn upstream(name: &str, url: &str, more: &str) -> String {
    format!("[[source]]\nname = \"{name}\"\nkind = \"mcp\"\nurl = \"{url}\"\ninterval = \"1s\"\n{more}\n\n")
}

/// Returns the URL of a server that handles each connection with a function.
fn raw_server(handle: impl Fn(std::net::TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("a bound listener"));
    let handle = Arc::new(handle);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle(stream));
        }
    });
    url
}

// req: S-152, S-153
#[test]
fn hostile_servers_harm_no_other_source() {
    let prompt = |name: &str| json!({ "name": name, "title": "T\u{1b}]0;x\u{7}\u{202e}" });
    let cursors = FakeServer::start(move |method, _| {
        (method == "prompts/list").then(|| json!({ "prompts": [prompt("x")], "nextCursor": "again" }))
    });
    let many = FakeServer::of((0..5).map(|number| json!({ "name": format!("p{number}") })).collect(), json!([]));
    let link = json!({ "type": "resource_link", "uri": "javascript:alert(1)", "name": "x" });
    let links = FakeServer::of(json!([prompt("x")]), json!([{ "role": "user", "content": link }]));
    let count = AtomicUsize::new(0);
    let changing = FakeServer::start(move |method, _| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        (method == "prompts/list").then(|| json!({ "prompts": [prompt(&format!("p{number}"))] }))
    });
    let failing = FakeServer::start(move |method, _| match method {
        "prompts/list" => Some(json!({ "prompts": [prompt("x"), { "name": "a b" }, { "name": "" }] })),
        "prompts/get" => Some(json!({ "rpc-error": { "code": -32603, "message": "boom\u{1b}[2J" } })),
        _ => None,
    });
    let hanging = raw_server(|mut stream| {
        // Takes everything and never answers.
        std::io::copy(&mut stream, &mut std::io::sink()).ok();
    });
    let dying = raw_server(|mut stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{\"jsonrpc\"";
        if stream.read(&mut [0; 1024]).is_ok_and(|read| read > 0) {
            stream.write_all(head.as_bytes()).ok();
        }
    });
    let flooding = raw_server(|mut stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000000\r\n\r\n";
        if stream.read(&mut [0; 1 << 16]).is_ok_and(|read| read > 0) && stream.write_all(head.as_bytes()).is_ok() {
            while stream.write_all(&[b' '; 1 << 16]).is_ok() {}
        }
    });
    let mut settings = upstream("cursors", &cursors.url, "") + &upstream("many", &many.url, "max-prompts = 3");
    settings += &upstream("flooding", &flooding, "");
    settings += &(upstream("links", &links.url, "") + &upstream("changing", &changing.url, ""));
    settings += &(upstream("failing", &failing.url, "") + &upstream("dying", &dying, "timeout = \"2s\""));
    for number in 0..5 {
        settings += &upstream(&format!("hanging{number}"), &hanging, "timeout = \"2s\"");
    }
    let folders: Vec<String> = (0..9).map(|number| format!("f{number}")).collect();
    for folder in &folders {
        settings += &format!("[[source]]\nname = \"{folder}\"\nkind = \"folder\"\npath = \"prompts\"\n\n");
    }
    let place = Workplace::new(&[("prompts/hello.md", HELLO)], &settings);
    let server = place.serve();
    let served = names(&server);
    for folder in &folders {
        assert!(served.contains(&format!("{folder}-hello")), "{served:?}");
    }
    eventually(
        || names(&server),
        |names| names.contains(&"links-x".to_owned()) && names.contains(&"failing-x".to_owned()),
    );
    assert!(!names(&server).iter().any(|name| name.starts_with("failing-a") || name == "failing-"));
    let listed = prompts(&server);
    let titles: Vec<_> = listed.iter().filter_map(|prompt| prompt["title"].as_str()).collect();
    assert!(!titles.is_empty() && titles.iter().all(|title| *title == "T]0;x"), "{titles:?}");

    let answer = get(&server, "links-x", &json!({}));
    let expected = "The prompt links-x cannot be rendered at present: the server of the source links sent a URI with the \
                    scheme `javascript:`, which is not passed on";
    assert_eq!((answer["error"]["code"].as_i64(), answer["error"]["message"].as_str()), (Some(-32603), Some(expected)));
    let answer = get(&server, "failing-x", &json!({}));
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("answered with an error: boom[2J"), "{answer}");

    for (name, problem) in [
        ("many", "3"),
        ("hanging0", "within"),
        ("hanging4", "within"),
        ("dying", "the connection ended in the middle of an answer"),
        ("flooding", "exceeds 16777216 bytes"),
    ] {
        let state = eventually(|| place.state(name), |state| state["state"] == "failed");
        assert!(state["problem"].as_str().is_some_and(|text| text.contains(problem)), "{state}");
    }
    // The pages that came are served, with the reason why there are no more.
    let state = eventually(|| place.state("cursors"), |state| state["state"] == "behind");
    assert!(state["problem"].as_str().is_some_and(|text| text.contains("circular")), "{state}");
    assert!(names(&server).contains(&"cursors-x".to_owned()));
    let left_out = place.state("failing")["leftOut"].to_string();
    assert!(left_out.contains("the prompt `a b`: a prompt's name cannot contain ' '"), "{left_out}");
    assert!(left_out.contains("a prompt's name cannot be empty"), "{left_out}");
    // A list that always differs is read ever more rarely, and is served as it is.
    let changed = eventually(|| names(&server), |names| names.iter().any(|name| name.starts_with("changing-p")));
    assert_eq!(changed.iter().filter(|name| name.starts_with("changing-")).count(), 1);
}

// req: S-154
#[test]
fn changed_definitions_wait_for_approval() {
    let description = Arc::new(Mutex::new("one"));
    let shown = Arc::clone(&description);
    let fake = FakeServer::start(move |method, _| match method {
        "prompts/list" => {
            let description = *shown.lock().expect("no panic");
            let more = if description == "one" { None } else { Some(json!({ "name": "new" })) };
            let listed = [json!({ "name": "p", "description": description })].into_iter().chain(more);
            Some(json!({ "prompts": listed.collect::<Vec<_>>() }))
        }
        "prompts/get" => Some(json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "x" } }] })),
        _ => None,
    });
    let place = Workplace::new(&[], &upstream("up", &fake.url, "approve-changes = true"));
    let server = place.serve();
    let served = || prompts(&server).iter().map(|prompt| prompt["description"].clone()).collect::<Vec<_>>();
    eventually(served, |served| *served == [json!("one")]);
    let nothing = place.run(&["source", "approve", "up"]);
    assert!(nothing.contains("No definition of the source up waits"), "{nothing}");

    *description.lock().expect("no panic") = "two";
    let state = eventually(|| place.state("up"), |state| state["state"] == "behind");
    assert!(state["problem"].as_str().is_some_and(|problem| problem.starts_with("2 new or changed")), "{state}");
    assert_eq!(served(), [json!("one")]);
    let refused = get(&server, "up-p", &json!({}));
    assert!(refused["error"]["message"].as_str().is_some_and(|text| text.contains("approval")), "{refused}");

    let dry = place.run(&["source", "approve", "up", "--dry-run"]);
    assert!(dry.contains("2 definitions would be approved"), "{dry}");
    let approved = place.run(&["source", "approve", "up"]);
    let lines = ["-  \"description\": \"one\"", "+  \"description\": \"two\"", "new (new)", "Approved 2 definitions."];
    assert!(lines.iter().all(|line| approved.contains(line)), "{approved}");
    eventually(served, |served| served.contains(&json!("two")) && served.len() == 2);
    let answer = get(&server, "up-p", &json!({}));
    assert_eq!(answer["result"]["messages"][0]["content"]["text"], "x", "{answer}");
    eventually(|| place.state("up"), |state| state["state"] == "current");
}

// req: S-155
#[test]
fn prompts_that_come_back_are_left_out() {
    let via = Arc::new(Mutex::new(Value::Null));
    let sent = Arc::clone(&via);
    let fake = FakeServer::start(move |method, _| {
        let via = sent.lock().expect("no panic").clone();
        let far: Vec<_> = (0..4).map(|number| format!("server{number}")).collect();
        let prompt = |name: &str, via: Value| json!({ "name": name, "_meta": { "dev.promptshelf/via": via } });
        let far = json!(far);
        (method == "prompts/list")
            .then(|| json!({ "prompts": [{ "name": "own" }, prompt("back", via), prompt("far", far)] }))
    });
    let place = Workplace::new(&[], &upstream("up", &fake.url, ""));
    let server = place.serve();
    // Before the other server has passed it on, the prompt does not name this server.
    let listed = eventually(|| prompts(&server), |prompts| prompts.len() == 2);
    let ids = listed[0]["_meta"]["dev.promptshelf/via"].clone();
    assert_eq!(ids.as_array().map(Vec::len), Some(1), "{listed:?}");
    let ready = || {
        let url = format!("http://{}/readyz", server.authority());
        ureq::get(url).call().expect("an answer").body_mut().read_to_string().expect("text")
    };
    let far = place.state("up")["leftOut"].to_string();
    assert!(far.contains("`far`") && far.contains("4 servers"), "{far}");
    assert_eq!((ready().as_str(), &place.state("up")["warning"]), ("ready\n", &Value::Null));
    *via.lock().expect("no panic") = ids;
    eventually(|| names(&server), |names| *names == ["up-own"]);
    // The loop is named, and its source is current all the same.
    let state = eventually(|| place.state("up"), |state| state["warning"].is_string());
    let warning = state["warning"].as_str().expect("text");
    assert!(warning.contains("loop between servers") && warning.contains("`back`"), "{warning}");
    assert_eq!((&state["state"], &state["problem"]), (&json!("current"), &Value::Null), "{state}");
    assert!(place.run(&["source", "list"]).contains("warning: there is a loop"));
    assert_eq!(ready(), "ready\na source needs a change by the operator; the log has the reason\n");
    *via.lock().expect("no panic") = Value::Null;
    eventually(|| place.state("up"), |state| state["warning"].is_null());
    let mut log = String::new();
    let logged = || {
        log.extend(server.log.try_iter());
        log.clone()
    };
    let log = eventually(logged, |log| log.contains("the loop between servers is gone"));
    assert!(log.contains("are left out (1, such as `back`)"), "{log}");
}

// req: S-156
#[test]
fn own_token_is_sent_and_never_that_of_the_caller() {
    let fake = FakeServer::start(|method, params| match method {
        "prompts/list" => Some(json!({ "prompts": [{ "name": "p" }] })),
        "prompts/get" => {
            let seen = params["(headers)"].to_string();
            Some(json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": seen } }] }))
        }
        _ => None,
    });
    let settings = upstream("up", &fake.url, "credentials = { file = \"token\" }");
    let place = Workplace::new(&[("token", "own-token\n")], &settings);
    let server = place.serve();
    eventually(|| names(&server), |names| *names == ["up-p"]);
    let mut answer = ureq::post(&server.url)
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("Authorization", "Bearer callers-token")
        .header("X-Api-Key", "callers-key")
        .send(json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": { "name": "up-p" } }).to_string())
        .expect("an answer");
    let text = answer.body_mut().read_to_string().expect("a text");
    assert!(text.contains("Bearer own-token"), "{text}");
    assert!(!text.contains("callers-"), "{text}");
    let output = place.run(&["source", "list"]);
    assert!(!output.contains("own-token") && !server.startup_log.contains("own-token"), "{output}");
}

// req: S-156
#[test]
fn server_signs_in_as_an_oauth_client() {
    let realm = Realm::start(Behaviour::default());
    let oauth = format!(
        "oauth = {{ issuer = \"{}\", client-id = \"mirror\", client-secret = {{ file = \"secret\" }}, scopes = [\"read\"] }}",
        realm.issuer()
    );
    let settings = upstream("up", &realm.mcp(), &oauth);
    let place = Workplace::new(&[("secret", "a wrong secret\n")], &settings);
    let server = place.serve();
    let listed = || place.run(&["source", "list"]);
    eventually(listed, |listed| listed.contains("invalid_client"));
    assert!(!listed().contains("a wrong secret"), "{}", listed());
    // The secret is replaced, and needs no restart.
    place.0.write("secret", &format!("{SECRET}\n"));
    eventually(|| names(&server), |names| *names == ["up-open", "up-written"]);
    let hello = |got: &Value| got["result"]["messages"][0]["content"]["text"] == "Hello.";
    let got = get(&server, "up-open", &json!({}));
    assert!(hello(&got), "{got}");
    // The server forgets its tokens.
    realm.recorded().tokens.clear();
    let got = get(&server, "up-open", &json!({}));
    assert!(hello(&got), "{got}");
    let recorded = realm.recorded();
    assert!(recorded.exchanged.iter().all(|request| request["scope"] == "read" && request["resource"] == realm.mcp()));
    assert!(!listed().contains(SECRET) && !server.startup_log.contains(SECRET), "{}", listed());
}
