//! Lists of prompts and resources, and completion.

use futures_util::TryStreamExt;
use promptshelf_client::CompletionTarget;
use serde_json::json;

use crate::fake_server::{Reply, connect};

#[tokio::test]
async fn pages_are_followed_to_the_end() {
    let (client, received) = connect(|method, params| match (method, params["cursor"].as_str()) {
        ("prompts/list", None) => Some(Reply::Result(json!({
            "prompts": [{ "name": "one", "title": "One", "arguments": [{ "name": "code", "required": true }] }],
            "nextCursor": "2",
        }))),
        ("prompts/list", Some("2")) => Some(Reply::Result(json!({ "prompts": [{ "name": "two" }] }))),
        _ => None,
    })
    .await;
    let prompts = client.all_prompts().await.expect("two pages");
    assert_eq!(prompts.iter().map(|prompt| prompt.name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(prompts[0].title.as_deref(), Some("One"));
    assert!(prompts[0].arguments[0].required);
    assert_eq!(prompts[0].raw["arguments"][0]["name"], "code");
    assert_eq!(received.with_method("prompts/list").len(), 2);
}

#[tokio::test]
async fn server_without_prompts_has_an_empty_list() {
    let (client, _) = connect(|_, _| None).await;
    assert_eq!(client.all_prompts().await.expect("an empty list"), []);
}

#[tokio::test]
async fn resources_and_templates_are_listed() {
    let (client, _) = connect(|method, _| match method {
        "resources/list" => {
            Some(Reply::Result(json!({ "resources": [{ "uri": "docs://a", "name": "a", "size": 5 }] })))
        }
        "resources/templates/list" => {
            Some(Reply::Result(json!({ "resourceTemplates": [{ "uriTemplate": "logs://{day}", "name": "logs" }] })))
        }
        _ => None,
    })
    .await;
    let resources: Vec<_> = client.resources().try_collect().await.expect("a list");
    let templates: Vec<_> = client.resource_templates().try_collect().await.expect("a list");
    assert_eq!((resources[0].uri.as_str(), resources[0].size, resources[0].is_template), ("docs://a", Some(5), false));
    assert_eq!((templates[0].uri.as_str(), templates[0].is_template), ("logs://{day}", true));
}

#[tokio::test]
async fn completion_sends_the_context_and_returns_values() {
    let (client, received) = connect(|method, _| {
        let completion = json!({ "completion": { "values": ["rust", "ruby"], "total": 9, "hasMore": true } });
        (method == "completion/complete").then_some(Reply::Result(completion))
    })
    .await;
    let known = [("framework".to_owned(), "axum".to_owned())].into();
    let target = CompletionTarget::Prompt("review");
    let completion = client.complete(target, "language", "ru", &known).await.expect("values");
    assert_eq!(
        (completion.values, completion.total, completion.has_more),
        (vec!["rust".to_owned(), "ruby".to_owned()], Some(9), true)
    );
    let params = &received.with_method("completion/complete")[0];
    assert_eq!(params["ref"], json!({ "type": "ref/prompt", "name": "review" }));
    assert_eq!(params["argument"], json!({ "name": "language", "value": "ru" }));
    assert_eq!(params["context"]["arguments"], json!({ "framework": "axum" }));
}

#[tokio::test]
async fn server_information_is_available() {
    let (client, _) = connect(|_, _| None).await;
    assert_eq!(client.revision().as_deref(), Some("2026-07-28"));
    assert_eq!(client.label(), "server");
    assert!(client.has_prompts() && client.has_completions() && client.has_resources());
    assert!(!client.is_legacy() && !client.is_closed() && !client.has_signed_in());
}

#[tokio::test]
async fn odd_entry_costs_no_other_one_and_is_named() {
    let odd = [
        (json!({ "name": "x", "arguments": [{ "name": "a", "required": "true" }] }), "`x`"),
        (json!({ "name": "x", "arguments": {} }), "`x`"),
        (json!({ "name": "x", "description": 5 }), "`x`"),
        (json!({ "name": 5 }), "without a name"),
        (json!({ "title": "no name" }), "without a name"),
        (json!(5), "without a name"),
    ];
    for (entry, name) in odd {
        let shown = entry.to_string();
        let (client, received) = connect(move |method, _| {
            let prompts = json!([{ "name": "a" }, entry, { "name": "b" }]);
            (method == "prompts/list").then(|| Reply::Result(json!({ "prompts": prompts, "ttlMs": 60_000 })))
        })
        .await;
        let listing = client.prompt_listing().await.expect("a list");
        let names: Vec<&str> = listing.prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        assert_eq!(names, ["a", "b"], "{shown}");
        assert!(matches!(&listing.left_out[..], [left_out] if left_out.contains(name)), "{shown}: {listing:?}");
        assert_eq!(client.all_prompts().await.expect("a list"), listing.prompts, "{shown}");
        assert_eq!(received.with_method("prompts/list").len(), 4, "each list is read entry by entry after the SDK");
    }
}

#[tokio::test]
async fn list_without_odd_entries_is_cached() {
    let (client, received) = connect(|method, _| {
        let page = json!({ "prompts": [{ "name": "a" }], "ttlMs": 60_000 });
        (method == "prompts/list").then_some(Reply::Result(page))
    })
    .await;
    for _ in 0..2 {
        assert_eq!(client.prompt_listing().await.expect("a list").prompts.len(), 1);
    }
    assert_eq!(received.with_method("prompts/list").len(), 1);
}
