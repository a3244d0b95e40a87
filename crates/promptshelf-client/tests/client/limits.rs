//! Limits for the answers of servers.

use promptshelf_client::{ClientError, CompletionTarget, ConnectOptions};
use serde_json::{Value, json};

use crate::fake_server::{Reply, connect, connect_with};

fn prompts(prompts: Value, next: Option<&str>) -> Option<Reply> {
    let mut page = json!({ "prompts": prompts });
    if let Some(next) = next {
        page["nextCursor"] = json!(next);
    }
    Some(Reply::Result(page))
}

#[tokio::test]
async fn circular_list_is_ended() {
    let (client, _) =
        connect(
            |method, _| {
                if method == "prompts/list" { prompts(json!([{ "name": "x" }]), Some("again")) } else { None }
            },
        )
        .await;
    let error = client.all_prompts().await.expect_err("a circular list");
    assert!(matches!(&error, ClientError::LimitExceeded(reason) if reason.contains("circular")), "{error}");
}

#[tokio::test]
async fn entries_of_a_list_are_limited() {
    let three = json!([{ "name": "a" }, { "name": "b" }, { "name": "c" }]);
    for (limit, fits) in [(3, true), (2, false)] {
        let three = three.clone();
        let reply = move |method: &str, _: &Value| {
            if method == "prompts/list" { prompts(three.clone(), None) } else { None }
        };
        let (client, _) = connect_with(ConnectOptions::new().max_list_entries(limit), reply).await;
        assert_eq!(client.all_prompts().await.is_ok(), fits);
    }
}

#[tokio::test]
async fn prompts_with_long_names_and_many_arguments_are_left_out() {
    let arguments: Vec<Value> = (0..257).map(|index| json!({ "name": format!("a{index}") })).collect();
    for entry in [json!({ "name": "x".repeat(1025) }), json!({ "name": "x", "arguments": arguments })] {
        let (client, _) =
            connect(move |method, _| if method == "prompts/list" { prompts(json!([entry]), None) } else { None }).await;
        let listing = client.prompt_listing().await.expect("a list");
        assert_eq!((listing.prompts.len(), listing.left_out.len()), (0, 1));
    }
}

#[tokio::test]
async fn long_descriptions_are_truncated() {
    let (client, _) = connect(|method, _| {
        if method == "prompts/list" {
            prompts(json!([{ "name": "x", "description": "ü".repeat(20_000) }]), None)
        } else {
            None
        }
    })
    .await;
    let prompts = client.all_prompts().await.expect("a list");
    let description = prompts[0].description.as_deref().expect("a description");
    assert!(description.len() <= (16 << 10) + '…'.len_utf8() && description.ends_with('…'));
}

#[tokio::test]
async fn messages_and_values_are_limited() {
    let (client, _) = connect(|method, _| match method {
        "prompts/get" => {
            let message = json!({ "role": "user", "content": { "type": "text", "text": "x" } });
            Some(Reply::Result(json!({ "messages": vec![message; 10_001] })))
        }
        "completion/complete" => Some(Reply::Result(json!({ "completion": { "values": vec!["x"; 150] } }))),
        _ => None,
    })
    .await;
    assert!(matches!(client.get("x", &[].into()).await, Err(ClientError::LimitExceeded(_))));
    let completion = client.complete(CompletionTarget::Prompt("x"), "a", "", &[].into()).await.expect("values");
    assert!(completion.values.len() == 100 && completion.has_more);
}
