//! Analyses of unsaved files of a channel, whose analyzer stays between edits.

use serde_json::{Value, json};

use super::{BYE, HELLO, Server, policy_of, proposal};

async fn analyze(server: &Server, caller: &str, path: &str, changes: Value) -> Value {
    let body = json!({ "path": path, "changes": changes, "arguments": {} });
    server.post(caller, "/channels/production/analysis", &body).await.expect(200).json()
}

fn text(result: &Value) -> &Value {
    &result["messages"][0]["content"]["text"]
}

// req: S-237
#[tokio::test]
async fn each_analysis_begins_with_the_newest_revision() {
    let server = Server::prepared(&policy_of(0)).await;
    let caller = "---\ndescription: Calls\n---\n{{ prompt(\"hello\") }}\n";
    let calls = json!([{ "path": "caller.md", "content": { "text": caller } }]);
    let draft = HELLO.replace("hello", "my draft");
    let own = json!([{ "path": "hello.md", "content": { "text": draft } }, calls[0]]);
    assert_eq!(text(&analyze(&server, "ada", "caller.md", own.clone()).await), "Say my draft.");
    // Another author, and the same one without the draft, get the published text, also where theirs is broken.
    let other = analyze(&server, "admin", "caller.md", calls.clone()).await;
    assert_eq!(text(&other), "Say hello.", "{other}");
    analyze(&server, "ada", "caller.md", own).await;
    let broken = json!([{ "path": "hello.md", "content": { "text": "---\ndescription: [\n---\n" } }, calls[0]]);
    let broken = analyze(&server, "admin", "caller.md", broken).await;
    assert!(broken["diagnostics"]["hello.md"].is_array(), "{broken}");
    assert!(!broken.to_string().contains("my draft"), "{broken}");
    // A deleted file, and one that is not text.
    let deleted = json!([{ "path": "hello.md", "content": null }, calls[0]]);
    assert!(analyze(&server, "ada", "caller.md", deleted).await["diagnostics"]["caller.md"].is_array());
    let binary = json!([{ "path": "hello.md", "content": { "base64": "/w==" } }, calls[0]]);
    assert!(analyze(&server, "ada", "caller.md", binary).await["diagnostics"].to_string().contains("UTF-8"));
    assert_eq!(text(&analyze(&server, "ada", "caller.md", calls.clone()).await), "Say hello.");
    // A publish in between.
    let published = proposal(1, &[("hello.md", Some(HELLO), Some(BYE))]);
    server.post("admin", "/channels/production/proposals", &published).await.expect(201);
    assert_eq!(text(&analyze(&server, "ada", "caller.md", calls).await), "Say goodbye.");
}

// req: S-164
#[tokio::test]
async fn preview_of_a_channel_reads_nothing_of_the_server() {
    let outside = tempfile::TempDir::new().expect("a folder");
    let place = outside.path().display().to_string();
    std::fs::write(outside.path().join("secret.txt"), "outside-secret").expect("written");
    let server = Server::prepared(&policy_of(0)).await;
    let manifest = format!("[roots.out]\npath = {place:?}\n");
    for body in [
        "{{ attach(\"out/secret.txt\") }}",
        "{{ attach(\"../secret.txt\") }}",
        &format!("{{{{ attach(\"{place}/secret.txt\") }}}}"),
        &format!("{{% include \"{place}/secret.txt\" %}}"),
        "{{ attach(\"file:///etc/passwd\") }}",
        "{{ env.PATH }}{{ environ }}{{ self }}{{ config }}",
    ] {
        let text = format!("---\ndescription: Spies\ntests: [{{ name: spy, golden: ../secret.txt }}]\n---\n{body}\n");
        let changes = json!([
            { "path": "promptshelf.toml", "content": { "text": manifest } },
            { "path": "spy.md", "content": { "text": text } },
        ]);
        let question = json!({ "path": "spy.md", "changes": changes, "arguments": {}, "tests": true });
        let answer = server.post("ada", "/channels/production/analysis", &question).await.expect(200);
        for secret in ["outside-secret", "root:", "/usr/bin"] {
            assert!(!answer.text().contains(secret), "{body}: {}", answer.text());
        }
    }
}
