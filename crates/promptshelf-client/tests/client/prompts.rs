//! Getting prompts and reading resources.

use promptshelf_client::{ContentBlock, ResourceBody, Role};
use serde_json::json;

use crate::fake_server::{Reply, connect};

#[tokio::test]
async fn every_kind_of_content_is_decoded() {
    let (client, received) = connect(|method, _| {
        let user = |content| json!({ "role": "user", "content": content });
        let messages = json!([
            user(json!({ "type": "text", "text": "Look", "annotations": { "audience": ["assistant"], "priority": 0.5 } })),
            user(json!({ "type": "image", "data": "AAEC", "mimeType": "image/png" })),
            user(json!({ "type": "audio", "data": "AAEC", "mimeType": "audio/wav" })),
            user(json!({ "type": "resource", "resource": { "uri": "docs://a", "text": "Be brief." } })),
            { "role": "assistant", "content": { "type": "resource_link", "uri": "docs://b", "name": "b" } },
        ]);
        (method == "prompts/get").then(|| Reply::Result(json!({ "description": "d", "messages": messages })))
    })
    .await;
    let values = [("code".to_owned(), "x".to_owned())].into();
    let result = client.get("review", &values).await.expect("a prompt");
    assert_eq!(result.description.as_deref(), Some("d"));
    let kinds: Vec<&str> = result.messages.iter().map(|message| message.content.kind()).collect();
    assert_eq!(kinds, ["text", "image", "audio", "resource", "resource_link"]);
    assert_eq!(result.messages[4].role, Role::Assistant);
    let ContentBlock::Text(text) = &result.messages[0].content else { panic!("expected a text") };
    assert_eq!((text.annotations.audience.as_slice(), text.annotations.priority), (&[Role::Assistant][..], Some(0.5)));
    let ContentBlock::Image(image) = &result.messages[1].content else { panic!("expected an image") };
    assert_eq!((image.data.as_slice(), image.mime_type.as_str()), (&[0, 1, 2][..], "image/png"));
    let ContentBlock::Resource(resource) = &result.messages[3].content else { panic!("expected a resource") };
    assert_eq!(resource.contents.mime_type, "text/plain");
    let params = &received.with_method("prompts/get")[0];
    assert_eq!((&params["name"], &params["arguments"]), (&json!("review"), &json!({ "code": "x" })));
}

#[tokio::test]
async fn malformed_block_does_not_affect_the_others() {
    let (client, _) = connect(|method, _| {
        let image = json!({ "type": "image", "data": "%%%", "mimeType": "image/png" });
        let text = json!({ "type": "text", "text": "kept" });
        let messages = json!([{ "role": "user", "content": image }, { "role": "user", "content": text }]);
        (method == "prompts/get").then(|| Reply::Result(json!({ "messages": messages })))
    })
    .await;
    let messages = client.get("x", &[].into()).await.expect("a prompt").messages;
    let texts: Vec<&str> = messages
        .iter()
        .map(|message| match &message.content {
            ContentBlock::Text(text) => text.text.as_str(),
            other => panic!("expected a text, got {other:?}"),
        })
        .collect();
    assert_eq!(texts, ["[an image, image/png, that is not valid base64]", "kept"]);
}

#[tokio::test]
async fn unknown_role_or_kind_costs_only_its_block() {
    let (client, _) = connect(|method, _| {
        let text = |role: &str, text: &str| json!({ "role": role, "content": { "type": "text", "text": text } });
        let user = |content| json!({ "role": "user", "content": content });
        let messages = json!([
            text("user", "first"),
            text("system", "lost"),
            user(json!({ "type": "video", "data": "AAEC" })),
            { "role": "assistant", "content": { "type": "image", "data": 7 } },
            user(json!({ "type": "text", "text": "annotated", "annotations": { "audience": ["everyone"] } })),
            "no message",
            text("assistant", "last"),
        ]);
        (method == "prompts/get").then(|| Reply::Result(json!({ "description": "d", "messages": messages })))
    })
    .await;
    let result = client.get("x", &[].into()).await.expect("a prompt");
    let shown: Vec<(&str, &str)> = result
        .messages
        .iter()
        .map(|message| match &message.content {
            ContentBlock::Text(text) => (message.role.as_str(), text.text.as_str()),
            other => panic!("expected a text, got {other:?}"),
        })
        .collect();
    let expected = [
        ("user", "first"),
        ("user", "[a message with the unknown role \"system\"]"),
        ("user", "[content of the unknown type \"video\"]"),
        ("assistant", "[content of the type \"image\" that does not follow the protocol]"),
        ("user", "annotated"),
        ("user", "[a message that does not follow the protocol]"),
        ("assistant", "last"),
    ];
    assert_eq!(shown, expected);
    assert_eq!(result.description.as_deref(), Some("d"));
    assert_eq!(result.raw["messages"][2]["content"]["type"], "video");
}

#[tokio::test]
async fn unknown_contents_cost_only_their_part() {
    let (client, _) = connect(|method, params| {
        let contents = json!([
            { "uri": params["uri"], "mimeType": "text/markdown", "text": "# Style" },
            { "uri": "docs://stream", "stream": [1, 2] },
            "no contents",
            { "uri": params["uri"], "blob": "AAEC" },
        ]);
        (method == "resources/read").then(|| Reply::Result(json!({ "contents": contents })))
    })
    .await;
    let result = client.read("docs://style").await.expect("a resource");
    let unknown = ResourceBody::Text("[contents of an unknown type]".to_owned());
    let bodies: Vec<&ResourceBody> = result.contents.iter().map(|contents| &contents.body).collect();
    let (text, blob) = (ResourceBody::Text("# Style".to_owned()), ResourceBody::Blob(vec![0, 1, 2]));
    assert_eq!(bodies, [&text, &unknown, &unknown, &blob]);
    assert_eq!(result.contents[1].uri, "docs://stream");
    assert_eq!(result.raw["contents"][1]["stream"], json!([1, 2]));
}

#[tokio::test]
async fn resources_are_read_as_text_and_bytes() {
    let (client, _) = connect(|method, params| {
        let contents = json!([
            { "uri": params["uri"], "mimeType": "text/markdown", "text": "# Style" },
            { "uri": params["uri"], "mimeType": "nonsense", "blob": "AAEC" },
        ]);
        (method == "resources/read").then(|| Reply::Result(json!({ "contents": contents })))
    })
    .await;
    let result = client.read("docs://style").await.expect("a resource");
    assert_eq!(result.contents[0].body, ResourceBody::Text("# Style".to_owned()));
    assert_eq!(result.contents[0].mime_type, "text/markdown");
    assert_eq!(result.contents[1].body, ResourceBody::Blob(vec![0, 1, 2]));
    assert_eq!(result.contents[1].mime_type, "application/octet-stream");
    assert_eq!(result.raw["contents"][0]["uri"], "docs://style");
}
