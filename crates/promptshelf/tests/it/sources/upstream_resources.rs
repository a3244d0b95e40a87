//! Resources of other MCP servers, which their prompts link to.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{HELLO, Workplace, eventually, get, names};
use crate::{fake_server::FakeServer, program::Server};

/// A server with prompts that link to a resource each, and a list of resources. Records the URIs that are read.
fn linking_server(prompts: &'static [&'static str], reads: &Arc<Mutex<Vec<String>>>) -> FakeServer {
    let reads = Arc::clone(reads);
    FakeServer::start(move |method, params| {
        let resource = |uri: &str| json!({ "uri": uri, "name": "x" });
        match method {
            "prompts/list" => {
                let prompts: Vec<Value> = prompts.iter().map(|name| json!({ "name": name })).collect();
                Some(json!({ "prompts": prompts }))
            }
            "prompts/get" => {
                let uri = format!("docs://{}", params["name"].as_str().unwrap_or_default());
                let link = json!({ "type": "resource_link", "uri": uri, "name": "x" });
                Some(json!({ "messages": [{ "role": "user", "content": link }] }))
            }
            "resources/list" => {
                let listed = ["docs://listed", "file:///etc/passwd", "library://team/hello.md"].map(resource);
                Some(json!({ "resources": listed }))
            }
            "resources/read" => {
                let uri = params["uri"].as_str().unwrap_or_default();
                reads.lock().expect("no panic").push(uri.to_owned());
                let text = if uri == "docs://huge" { "x".repeat(17 << 20) } else { format!("\u{202e}Of {uri}") };
                Some(json!({ "contents": [{ "uri": uri, "mimeType": "text/markdown", "text": text }] }))
            }
            _ => None,
        }
    })
}

fn read(server: &Server, uri: &str) -> Value {
    server.request("resources/read", &json!({ "uri": uri })).1
}

// req: S-209
#[test]
fn linked_and_listed_resources_can_be_read_as_their_prompts_can() {
    let reads = Arc::default();
    let (fake, open) = (linking_server(&["hidden", "huge", "shown"], &reads), linking_server(&["other"], &reads));
    let settings = format!(
        "[[source]]\nname = \"team\"\nkind = \"folder\"\npath = \"team\"\n\n\
         [[source]]\nname = \"up\"\nkind = \"mcp\"\nurl = \"{}\"\n\n\
         [[access]]\nprompts = [\"up-hidden\"]\nroles = [\"staff\"]\n",
        fake.url
    );
    let place = Workplace::new(&[("team/hello.md", HELLO)], &settings);
    let server = place.serve();
    eventually(|| names(&server), |names| names.len() == 3);
    assert_eq!(read(&server, "docs://shown")["error"]["message"], "Resource not found: docs://shown");
    assert_eq!(get(&server, "up-shown", &json!({}))["error"], Value::Null);
    let contents = read(&server, "docs://shown")["result"]["contents"][0].clone();
    assert_eq!((&contents["text"], &contents["mimeType"]), (&json!("Of docs://shown"), &json!("text/markdown")));
    let meta = json!({ "dev.promptshelf/source": "up", "dev.promptshelf/foreign": true });
    assert_eq!(contents["_meta"], meta, "{contents}");
    get(&server, "up-huge", &json!({}));
    assert!(read(&server, "docs://huge")["error"]["message"].is_string());

    // A prompt that is hidden could link to it. URIs of this server, of the disk, and others are never passed on.
    reads.lock().expect("no panic").clear();
    for uri in ["docs://listed", "docs://hidden", "docs://other", "file:///etc/passwd", "library://team/hello.md"] {
        let refused = read(&server, uri);
        assert_eq!(refused["error"]["message"], format!("Resource not found: {uri}"), "{refused}");
    }
    assert_eq!(*reads.lock().expect("no panic"), Vec::<String>::new());
    let of_both = format!("[[source]]\nname = \"open\"\nkind = \"mcp\"\nurl = \"{}\"\n", open.url);
    let place = Workplace::new(&[], &of_both);
    let server = place.serve();
    let listed = || read(&server, "docs://listed")["result"]["contents"][0]["text"].clone();
    eventually(listed, |text| *text == json!("Of docs://listed"));
}
