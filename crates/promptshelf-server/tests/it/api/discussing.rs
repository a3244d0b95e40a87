//! Comments on proposals, and the permissions that the page shows.

use serde_json::{Value, json};

use super::{BYE, HELLO, Server, policy_of, proposal, refused};

// req: S-171
#[tokio::test]
async fn comments_of_changes_that_were_replaced_are_refused() {
    let server = Server::prepared(&policy_of(1)).await;
    let (proposed, tag) = server.propose(BYE).await;
    let id = &proposed["id"];
    let path = format!("/proposals/{id}/comments");
    let comment = |text: &str| json!({ "digest": proposed["digest"], "text": text });
    let made = server.post("rita", &path, &comment("<script>alert(1)</script>")).await.expect(201).json();
    assert_eq!((&made["author"], &made["text"]), (&json!("rita"), &json!("<script>alert(1)</script>")));
    let answered = server.post("ada", &path, &comment("Because.")).await.expect(201).json();
    // Readers may read, and the author's name is that of the token.
    assert_eq!(server.post("reader", &path, &comment("Me too")).await.problem(), refused(403, "insufficient-scope"));
    let forged = json!({ "digest": proposed["digest"], "text": "x", "author": "root" });
    assert_eq!(server.post("rita", &path, &forged).await.problem(), refused(400, "invalid-request"));
    let listed = server.get("reader", &path).await.expect(200).json();
    assert_eq!(listed, json!({ "items": [made, answered], "next": null }));

    let body = proposal(1, &[("hello.md", Some(HELLO), Some("Other.\n"))]);
    server.put("ada", &format!("/proposals/{id}"), ("If-Match", &tag), &body).await.expect(200);
    assert_eq!(server.post("rita", &path, &comment("Late")).await.problem(), refused(409, "stale-comment"));
    let listed = server.get("reader", &path).await.expect(200).json();
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(2));
}

/// Every permission agrees with the operation that it is about.
#[tokio::test]
async fn permissions_name_the_reason_against_each_operation() {
    let mut policy = policy_of(1);
    policy["roles"]["review"] = json!(["editor"]);
    let server = Server::prepared(&policy).await;
    let (proposed, _) = server.propose(BYE).await;
    let path = format!("/proposals/{}", proposed["id"]);
    let permissions = async |caller: &str| server.get(caller, &format!("{path}/permissions")).await.expect(200).json();
    let allowed = |permissions: &Value| -> Vec<String> {
        let all = permissions.as_object().expect("an object").iter();
        let mut names: Vec<String> =
            all.filter(|(_, one)| one["allowed"] == true).map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names
    };
    let ada = permissions("ada").await;
    assert_eq!(allowed(&ada), ["change", "comment", "withdraw"]);
    assert_eq!(ada["approve"]["scopes"], json!(["library:review"]));
    let reason =
        |of: &Value, name: &str| (of[name]["reasons"][0]["code"].clone(), of[name]["reasons"][0]["values"].clone());
    assert_eq!(reason(&ada, "approve"), (json!("insufficient-scope"), json!({ "scopes": "library:review" })));
    assert_eq!(allowed(&permissions("rita").await), ["approve", "comment", "reject"]);
    let paul = permissions("paul").await;
    assert_eq!(allowed(&paul), ["approve", "comment", "reject"]);
    assert!(paul["publish"]["reason"].as_str().is_some_and(|reason| reason.contains("approval")), "{paul}");
    assert!(paul["withdraw"]["reason"].as_str().is_some_and(|reason| reason.contains("author")), "{paul}");
    assert_eq!(reason(&paul, "publish"), (json!("approvals-by-others"), json!({ "n": "1", "author": "ada" })));
    assert_eq!(reason(&paul, "withdraw").0, "not-author");
    let unread = permissions("without-publish").await;
    assert_eq!(reason(&unread, "approve"), (json!("insufficient-role"), json!({ "roles": "editor" })));
    assert!(unread["approve"]["reason"].as_str().is_some_and(|reason| reason.contains("editor")), "{unread}");
    assert_eq!(allowed(&permissions("admin").await), ["comment", "emergency"]);
    assert_eq!(allowed(&permissions("reader").await), [""; 0]);
    let wanted = async |caller: &str| {
        let listed = server.get(caller, "/reviews?state=open").await.expect(200).json();
        listed["items"][0]["reviewWanted"].as_bool()
    };
    assert_eq!(
        (wanted("rita").await, wanted("ada").await, wanted("reader").await),
        (Some(true), Some(false), Some(false))
    );
    let review = json!({ "verdict": "approve", "digest": proposed["digest"] });
    server.post("rita", &format!("{path}/reviews"), &review).await.expect(200);
    assert_eq!(wanted("rita").await, Some(false));
    assert_eq!(allowed(&permissions("paul").await), ["approve", "comment", "publish", "reject"]);
    server.post("paul", &format!("{path}/publish"), &json!({ "digest": proposed["digest"] })).await.expect(200);
    assert_eq!(allowed(&permissions("paul").await), [""; 0]);
    let channel = server.get("ada", "/channels/production/permissions").await.expect(200).json();
    assert_eq!((&channel["caller"], allowed(&channel)), (&json!("ada"), vec!["propose".to_owned()]));
}
