//! Provenance of prompts in `_meta`, and guided prompts that continue on another replica of a channel.

use std::sync::Arc;

use promptshelf_core::{
    ArgumentDefinition, Catalog, CatalogHandle, CatalogProvenance, CommitProvenance, Definitions, PromptDefinition,
    PromptProvenance, Provenance, check,
};
use promptshelf_mcp::{Server, StateKey};
use promptshelf_service::Service;
use serde_json::{Value, json};

use crate::stdio::Client;

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// Returns two prompts from a channel and one from another source.
fn definitions(text: &str, question: &str) -> Definitions {
    let mut hello = PromptDefinition::template("hello", text).description("Greets");
    hello.meta.insert("com.example/owner".to_owned(), json!("docs"));
    hello.arguments.push(ArgumentDefinition::new("token").description("Token"));
    hello.arguments[0].sensitive = true;
    let mut guided = PromptDefinition::template("guided", "{{ name }}").description("Asks");
    guided.arguments.push(ArgumentDefinition::new("name").description(question).required().ask());
    let own = PromptDefinition::template("own", "Own").description("From the configuration");
    let mut all = Definitions::from_iter([hello, guided]).of_source(0);
    all.merge(Definitions::from_iter([own]).of_source(1));
    all
}

fn provenance(revision: u64, is_shown: bool) -> CatalogProvenance {
    let mut provenance = Provenance::new("production", revision);
    let approvers = ["Ada", "Eve\",\"x\":\"\u{202e}\n<script>"];
    provenance.extend([
        ("hello", PromptProvenance::new(3, [0xab; 32], approvers)),
        // A prompt of this name comes from another source.
        ("own", PromptProvenance::new(9, [0; 32], ["Mallory"])),
    ]);
    CatalogProvenance { source: 0, provenance: Arc::new(provenance), is_shown }
}

fn catalog(definitions: Definitions, revision: u64, is_shown: bool) -> Catalog {
    let checked = check(definitions, None);
    let catalog = checked.catalog.with_generation(Some(revision));
    catalog.with_provenance(Some(provenance(revision, is_shown)))
}

fn client(catalog: Catalog) -> Client {
    let handle = CatalogHandle::new(catalog);
    let key = StateKey::from_secret(b"a secret that replicas share");
    Client::of(Server::with_state_key(Service::new(handle.clone()), key), handle)
}

async fn ask(client: &mut Client, revision: &str, method: &str, mut params: Value) -> Value {
    if revision == "2026-07-28" {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        });
    }
    client.request(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await
}

async fn initialized(catalog: Catalog, revision: &str) -> Client {
    let mut client = client(catalog);
    if revision != "2026-07-28" {
        let params =
            json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        client.request(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
    }
    client
}

fn expected(revision: u64) -> Value {
    json!({
        "dev.promptshelf/version": 3,
        "dev.promptshelf/digest": "ab".repeat(32),
        "dev.promptshelf/channel": "production",
        "dev.promptshelf/revision": revision,
        "dev.promptshelf/approvedBy": ["Ada", "Eve\",\"x\":\"<script>"],
    })
}

fn merged(mut all: Value, more: &Value) -> Value {
    let more = more.as_object().expect("an object").clone();
    all.as_object_mut().expect("an object").extend(more);
    all
}

// req: S-92
#[tokio::test]
async fn lists_and_results_of_a_channel_carry_the_provenance() {
    for revision in REVISIONS {
        let mut client = initialized(catalog(definitions("Hello!", "Name"), 7, true), revision).await;
        let list = ask(&mut client, revision, "prompts/list", json!({})).await;
        let entry = |name: &str| {
            let prompts = list["result"]["prompts"].as_array().expect("prompts");
            prompts.iter().find(|prompt| prompt["name"] == name).expect("the prompt")["_meta"].clone()
        };
        // Entries have `_meta` since 2025-06-18, results in each revision.
        let has_entry_meta = revision >= "2025-06-18";
        let own = json!({ "com.example/owner": "docs", "promptshelf/sensitive": ["token"] });
        assert_eq!(entry("hello"), if has_entry_meta { merged(own, &expected(7)) } else { Value::Null }, "{revision}");
        assert_eq!(entry("own"), Value::Null, "{revision}: it does not come from the channel");
        let unknown = json!({ "dev.promptshelf/channel": "production", "dev.promptshelf/revision": 7 });
        assert_eq!(entry("guided"), if has_entry_meta { unknown } else { Value::Null }, "{revision}");

        let got = ask(&mut client, revision, "prompts/get", json!({ "name": "hello" })).await;
        let mut meta = got["result"]["_meta"].clone();
        let server = meta.as_object_mut().expect("an object").remove("io.modelcontextprotocol/serverInfo");
        assert_eq!((meta, server.is_some()), (expected(7), revision == "2026-07-28"), "{revision}");
        assert_eq!(got["result"]["messages"][0]["content"]["text"], "Hello!", "{revision}");
    }
}

#[tokio::test]
async fn provenance_is_hidden_if_the_operator_says_so() {
    for revision in REVISIONS {
        let mut client = initialized(catalog(definitions("Hello!", "Name"), 7, false), revision).await;
        for (method, params) in [("prompts/list", json!({})), ("prompts/get", json!({ "name": "hello" }))] {
            let answer = ask(&mut client, revision, method, params).await;
            assert!(!answer.to_string().contains("dev.promptshelf"), "{revision} {method} {answer}");
        }
    }
}

#[tokio::test]
async fn lists_have_the_revision_of_their_catalog() {
    let mut client = client(catalog(definitions("Hello!", "Name"), 7, true));
    let revision_of = |answer: &Value| answer["result"]["prompts"][1]["_meta"]["dev.promptshelf/revision"].clone();
    assert_eq!(revision_of(&ask(&mut client, "2026-07-28", "prompts/list", json!({})).await), json!(7));
    // The same revision with other access rules, a later one, and an earlier one after a restore.
    for revision in [7, 8, 2] {
        let change = client.handle.replace(catalog(definitions("Hello!", "Name"), revision, true));
        assert_eq!((change.generation, change.prompts), (revision, false), "only the number of the revision differs");
        let list = ask(&mut client, "2026-07-28", "prompts/list", json!({})).await;
        assert_eq!(revision_of(&list), json!(revision));
        assert_eq!(ask(&mut client, "2026-07-28", "prompts/list", json!({})).await, list, "from the cache");
    }
}

// req: I13, S-91
#[tokio::test]
async fn guided_prompt_continues_on_another_replica_across_a_publish() {
    let replica = |text: &str, question: &str, revision| client(catalog(definitions(text, question), revision, true));
    let mut first = replica("Hello!", "Name", 7);
    let question = ask(&mut first, "2026-07-28", "prompts/get", json!({ "name": "guided" })).await;
    let key = question["result"]["inputRequests"].as_object().expect("a question").keys().next().expect("one").clone();
    let state = &question["result"]["requestState"];
    let again = |state: &Value| {
        let answer = json!({ (key.clone()): { "action": "accept", "content": { "name": "Ada" } } });
        json!({ "name": "guided", "inputResponses": answer, "requestState": state })
    };
    // The same revision, and one that changed another prompt.
    for mut second in [replica("Hello!", "Name", 7), replica("Good day!", "Name", 8)] {
        let done = ask(&mut second, "2026-07-28", "prompts/get", again(state)).await;
        assert_eq!(done["result"]["messages"][0]["content"]["text"], "Ada", "{done}");
    }
    // A revision that changed this one, wherever the prompt was begun.
    let mut ahead = replica("Hello!", "Full name", 8);
    let refused = ask(&mut ahead, "2026-07-28", "prompts/get", again(state)).await;
    let message = "The prompt has changed since it was begun; begin again without `requestState`";
    assert_eq!(refused["error"], json!({ "code": -32602, "message": message }));
    let question = ask(&mut ahead, "2026-07-28", "prompts/get", json!({ "name": "guided" })).await;
    let refused = ask(&mut first, "2026-07-28", "prompts/get", again(&question["result"]["requestState"])).await;
    assert_eq!(refused["error"]["message"], message);
}

#[tokio::test]
async fn prompts_of_a_repository_carry_source_commit_and_signer() {
    let catalog = |id: &str| {
        let commit = CommitProvenance::new("https://git.example/a.git", id).author("Eve").signed_by("ada\u{202e}\n@b");
        let provenance = Arc::new(Provenance::of_commit(commit).with_source("platform"));
        let catalog = check(definitions("Hello!", "Name"), None).catalog;
        catalog.with_provenance(Some(CatalogProvenance { source: 0, provenance, is_shown: true }))
    };
    let mut client = client(catalog("4b825dc6"));
    let meta = async |client: &mut Client| {
        let got = ask(client, "2026-07-28", "prompts/get", json!({ "name": "hello" })).await;
        let mut meta = got["result"]["_meta"].clone();
        meta.as_object_mut().expect("an object").remove("io.modelcontextprotocol/serverInfo");
        meta
    };
    let expected = |id: &str| {
        json!({
            "dev.promptshelf/source": "platform",
            "dev.promptshelf/commit": id,
            "dev.promptshelf/signer": "ada@b",
        })
    };
    assert_eq!(meta(&mut client).await, expected("4b825dc6"), "the URL and the author are not for clients");
    let change = client.handle.replace(catalog("d1a7bf29"));
    assert!(!change.prompts, "another commit alone is no reason to read the list again");
    assert_eq!(meta(&mut client).await, expected("d1a7bf29"));
}
