//! Pages that are opened before a prompt.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{get, legacy, reply, start, text};

fn connect(id: u32) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "prompts/get", "params": { "name": "connect" } })
}

/// 2025-11-25: the ID is unique in the server. Other revisions have none.
// req: I16
#[tokio::test]
async fn elicitation_ids_are_unique() {
    let mut ids = BTreeSet::new();
    for _ in 0..2 {
        let mut client = legacy("2025-11-25", json!({ "elicitation": { "url": {} } })).await;
        for number in 1..4 {
            let mut required = client.request(connect(number)).await;
            let id = required["params"].as_object_mut().and_then(|params| params.remove("elicitationId"));
            assert!(ids.insert(id.expect("an ID").to_string()), "{ids:?}");
            assert_eq!(
                required["params"],
                json!({ "mode": "url", "message": "Please connect.", "url": "https://example.org/connect" })
            );
            let done = client.request(reply(&required, &json!({ "action": "accept" }))).await;
            assert_eq!(text(&done), "Connected.");
        }
    }
}

// req: I4, X22
#[tokio::test]
async fn page_that_cannot_be_shown_is_refused_on_stdio() {
    let [none, forms, pages] = [json!({}), json!({ "elicitation": {} }), json!({ "elicitation": { "url": {} } })];
    for (revision, capabilities) in [
        ("2024-11-05", &none),
        ("2024-11-05", &pages),
        ("2025-03-26", &pages),
        ("2025-06-18", &none),
        ("2025-06-18", &forms),
        // This revision has no modes: each client with elicitation has forms only.
        ("2025-06-18", &pages),
        ("2025-11-25", &none),
        ("2025-11-25", &forms),
    ] {
        let mut client = legacy(revision, capabilities.clone()).await;
        let refused = client.request(connect(1)).await;
        assert_eq!(refused["error"]["code"], -32602, "{revision} {capabilities}: {refused}");
        assert!(refused["error"]["message"].to_string().contains("opens a web page first"), "{refused}");
    }
    let refused = start().request(get(1, json!({ "name": "connect" }), &forms)).await;
    assert_eq!(refused["error"]["code"], -32021);
}
