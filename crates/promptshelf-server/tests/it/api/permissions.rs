//! Sign-in, scopes, roles, limits and audit.

use std::{num::NonZeroU32, sync::Arc};

use axum::http::Method;
use promptshelf_core::Access;
use promptshelf_server::http::auth::{SignIn, SignInOptions, StaticToken, digest_of};
use promptshelf_service::Limits;
use serde_json::{Value, json};

use super::{
    BYE, HELLO, SCOPES, Server, at,
    document::{operations, reads},
    policy_of, proposal, refused, sign_in,
};

// req: S-99
#[tokio::test]
async fn every_operation_needs_a_token() {
    let server = Server::prepared(&policy_of(0)).await;
    for operation in operations(&server).await {
        for caller in ["", "unknown"] {
            let answer = server.send(&operation.method, &operation.path, caller, &[], b"").await;
            assert_eq!(answer.problem(), refused(401, "sign-in-required"), "{operation:?}");
            assert!(answer.header("www-authenticate").starts_with("Bearer"), "{answer:?}");
        }
    }
    assert_eq!(server.revision().await, 1);
}

// req: S-100
#[tokio::test]
async fn every_operation_needs_each_of_its_scopes() {
    let server = Server::prepared(&policy_of(0)).await;
    let before = server.get("reader", "/channels/production").await.json();
    for operation in operations(&server).await {
        // Programs may use what `/mcp` permits them to use.
        let is_for_programs = operation.document["tags"][0] == "programs";
        assert_eq!(operation.scopes.is_empty(), is_for_programs, "{operation:?}");
        for scope in &operation.scopes {
            assert!(SCOPES.contains(&&**scope), "{scope}");
            let without = format!("without-{}", scope.trim_start_matches("library:"));
            // A caller without this scope may have those of another set.
            let has_other = operation.alternatives.iter().any(|other| !other.contains(scope));
            for caller in [&*without, "stranger"].into_iter().filter(|caller| !has_other || *caller == "stranger") {
                let answer = server.send(&operation.method, &operation.path, caller, &[], b"").await;
                assert_eq!(answer.problem(), refused(403, "insufficient-scope"), "{caller} {operation:?}");
                let mut scopes = operation.scopes.clone();
                scopes.sort_unstable();
                let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{}\"", scopes.join(" "));
                assert_eq!(answer.header("www-authenticate"), challenge, "{operation:?}");
            }
        }
    }
    assert_eq!(server.get("reader", "/channels/production").await.json(), before);
}

#[tokio::test]
async fn policy_names_the_roles_that_may_use_a_channel() {
    let mut policy = policy_of(0);
    policy["roles"] =
        json!({ "propose": ["writer"], "review": ["editor"], "publish": ["admin"], "administer": ["admin"] });
    let server = Server::prepared(&policy).await;
    let body = proposal(1, &[("hello.md", Some(HELLO), Some(BYE))]);
    let path = "/channels/production/proposals";
    let role = refused(403, "insufficient-role");
    assert_eq!(server.post("bob", path, &body).await.problem(), role);
    let rollback = json!({ "to": 1, "message": "Back" });
    assert_eq!(server.post("bob", "/channels/production/rollback", &rollback).await.problem(), role);
    let promote = json!({ "from": "production", "message": "Copy" });
    assert_eq!(server.post("bob", "/channels/production/promote", &promote).await.problem(), role);
    let check = json!({ "channel": "production", "changes": [] });
    assert_eq!(server.post("bob", "/check", &check).await.problem(), role);
    let (proposed, _) = server.propose(BYE).await;
    let path = format!("/proposals/{}", proposed["id"]);
    let review = json!({ "verdict": "approve", "digest": proposed["digest"] });
    assert_eq!(server.post("without-publish", &format!("{path}/reviews"), &review).await.problem(), role);
    let seen = json!({ "digest": proposed["digest"] });
    // paul has the scope and not the role: his approval does not publish either.
    let reviewed = server.post("paul", &format!("{path}/reviews"), &review).await.expect(200).json();
    assert_eq!(reviewed["proposal"]["state"], "open");
    assert_eq!(server.post("paul", &format!("{path}/publish"), &seen).await.problem(), role);
    let tag = server.get("reader", "/channels/production/policy").await.etag();
    let refusal = server.put("without-read", "/channels/production/policy", ("If-Match", &tag), &policy_of(0)).await;
    assert_eq!(refusal.problem(), role);
    server.post("admin", &format!("{path}/publish"), &seen).await.expect(200);
}

/// The operator's rule for a channel holds here as it does for MCP.
// req: S-96, S-173
#[tokio::test]
async fn hidden_channel_equals_missing_channel() {
    let hide = |options: &mut promptshelf_server::http::Options| {
        options.sign_in = Some(sign_in());
        let access = Access { roles: vec!["admin".to_owned()], ..Access::default() };
        for name in ["secret", "missing"] {
            options.channel_access.insert(name.to_owned(), Arc::new(access.clone()));
        }
    };
    let server = Server::with(|builder| builder, hide).await;
    for channel in ["secret", "open"] {
        server.create(channel, &policy_of(0)).await;
        let body = proposal(0, &[("hello.md", None, Some(HELLO))]);
        server.post("admin", &format!("/channels/{channel}/proposals"), &body).await.expect(201);
    }
    for (caller, shown) in [("paul", vec![2]), ("admin", vec![2, 1])] {
        let all = server.get(caller, "/proposals").await.expect(200).json();
        let ids: Vec<u64> = all["items"].as_array().expect("a list").iter().filter_map(|p| p["id"].as_u64()).collect();
        assert_eq!(ids, shown, "{caller}");
    }
    assert_eq!(server.get("paul", "/proposals?channel=secret").await.problem(), refused(404, "not-found"));
    let promote = |from: &str| json!({ "from": from, "message": "Copy" });
    let check = |channel: &str| json!({ "channel": channel, "changes": [] });
    let operations = operations(&server).await;
    let reads = reads(&operations).into_iter();
    let paths: Vec<_> = reads.filter_map(|(_, path)| path.strip_prefix("/channels/production")).collect();
    assert!(paths.len() >= 10, "{paths:?}");
    for path in paths {
        let secret = server.get("paul", &format!("/channels/secret{path}")).await;
        assert_eq!(secret.problem(), refused(404, "not-found"), "{path}");
        let missing = server.get("paul", &format!("/channels/missing{path}")).await;
        assert_eq!(secret.text().replace("secret", "missing"), missing.text(), "{path}");
    }
    for (path, body) in [
        ("/channels/open/promote", promote("secret")),
        ("/channels/secret/promote", promote("open")),
        ("/check", check("secret")),
        ("/proposals/1/publish", json!({ "digest": super::digest("") })),
        ("/channels/secret/contents", json!({ "paths": ["hello.md"] })),
        ("/channels/secret/uploads", json!({ "contents": [] })),
        ("/proposals/1/comments", json!({ "digest": super::digest(""), "text": "Hm." })),
        ("/compare", json!({ "after": { "proposal": { "id": 1 } } })),
        ("/compare", json!({ "after": { "revision": { "channel": "secret" } } })),
        ("/compare", json!({ "after": { "changes": { "channel": "secret", "changes": [] } } })),
        ("/compare", json!({ "after": { "rollback": { "channel": "secret", "to": 1 } } })),
        ("/compare", json!({ "after": { "promote": { "from": "secret", "to": "open" } } })),
        ("/compare", json!({ "after": { "promote": { "from": "open", "to": "secret" } } })),
        ("/compare", json!({ "before": { "channel": "secret" }, "after": { "revision": { "channel": "open" } } })),
    ] {
        assert_eq!(server.post("paul", path, &body).await.problem(), refused(404, "not-found"), "{path}");
    }
    for path in [
        "/proposals/1",
        "/proposals/1/contents",
        "/proposals/1/comments",
        "/proposals/1/permissions",
        "/channels/open/diff?from=0&toChannel=secret",
    ] {
        assert_eq!(server.get("paul", path).await.problem(), refused(404, "not-found"), "{path}");
    }
    for path in ["/reviews", "/standings"] {
        let listed = server.get("paul", path).await.expect(200);
        assert!(listed.text().contains("open") && !listed.text().contains("secret"), "{path}: {}", listed.text());
        assert!(server.get("admin", path).await.expect(200).text().contains("secret"), "{path}");
    }
    let listed = server.get("paul", "/channels").await.expect(200).json();
    assert_eq!((listed["items"].as_array().map(Vec::len), &listed["items"][0]["name"]), (Some(1), &json!("open")));
    let listed = server.get("admin", "/channels").await.expect(200).json();
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(2));
}

/// A text of a hidden channel can be neither read by its digest nor confirmed by a guess, and no version number tells
/// about it.
// req: S-306, S-500
#[tokio::test]
async fn hidden_contents_cannot_be_named_guessed_or_confirmed() {
    let hide = |options: &mut promptshelf_server::http::Options| {
        options.sign_in = Some(sign_in());
        let access = Access { roles: vec!["admin".to_owned()], ..Access::default() };
        options.channel_access.insert("secret".to_owned(), Arc::new(access));
    };
    let server = Server::with(|builder| builder, hide).await;
    const PLAN: &str = "The merger\n";
    for (channel, text) in [("open", HELLO), ("secret", PLAN), ("secret", BYE)] {
        if text != BYE {
            server.create(channel, &policy_of(0)).await;
        }
        let (base, before) = if text == BYE { (1, Some(PLAN)) } else { (0, None) };
        let body = proposal(base, &[("hello.md", before, Some(text))]);
        server.post("admin", &format!("/channels/{channel}/proposals"), &body).await.expect(201);
    }
    let named = |digest: &str, path: &str| json!([{ "path": path, "before": null, "content": { "digest": digest } }]);
    let known = super::digest(PLAN);
    let unknown = super::digest("Another text\n");
    for (caller, path) in [("ada", "/channels/open/proposals"), ("ada", "/check"), ("ada", "/compare")] {
        let answers = [&known, &unknown].map(|digest| {
            let changes = named(digest, "other.md");
            match path {
                "/check" => json!({ "channel": "open", "changes": changes }),
                "/compare" => json!({ "after": { "changes": { "channel": "open", "changes": changes } } }),
                _ => json!({ "base": 1, "message": "A guess", "dryRun": true, "changes": changes }),
            }
        });
        let [hidden, missing] =
            [server.post(caller, path, &answers[0]).await, server.post(caller, path, &answers[1]).await];
        assert_eq!(hidden.problem(), refused(404, "not-found"), "{path}");
        assert_eq!(hidden.text().replace(&known, &unknown), missing.text(), "{path}");
    }
    // Own uploads, and what the caller may read, can be named.
    let uploaded = json!({ "contents": [{ "text": "Another text\n" }] });
    server.post("ada", "/channels/open/uploads", &uploaded).await.expect(200);
    let body = |digest: &str| json!({ "channel": "open", "changes": named(digest, "other.md") });
    server.post("ada", "/check", &body(&unknown)).await.expect(200);
    assert_eq!(server.post("bob", "/check", &body(&unknown)).await.problem(), refused(404, "not-found"));
    server.post("bob", "/check", &body(&super::digest(HELLO))).await.expect(200);
    server.post("admin", "/check", &body(&known)).await.expect(200);
    // A guess gets the same number as any other text, also when it is published: the hidden channel has two.
    let number = async |text: &str, dry_run: bool| {
        let mut body = proposal(1, &[("hello.md", Some(HELLO), Some(text))]);
        body["dryRun"] = json!(dry_run);
        let outcome = server.post("ada", "/channels/open/proposals", &body).await.json();
        outcome["prompts"][0]["version"].clone()
    };
    assert_eq!(number(PLAN, true).await, number("Another text\n", true).await);
    assert_eq!(number(PLAN, false).await, number("Another text\n", false).await);
    let evaluations = server.get("ada", "/proposals/4/evaluations").await.expect(200).json();
    assert_eq!(evaluations["prompts"][0]["version"], 0, "{evaluations}");
    let mut before = HELLO;
    for (base, text, expected) in [(1, "Another text\n", 2), (2, PLAN, 3), (3, BYE, 4)] {
        let body = proposal(base, &[("hello.md", Some(before), Some(text))]);
        let published = server.post("admin", "/channels/open/proposals", &body).await.expect(201).json();
        assert_eq!(published["prompts"][0]["version"], expected, "{text}");
        before = text;
    }
}

#[tokio::test]
async fn without_sign_in_every_caller_may_do_everything() {
    let server = Server::with(|builder| builder, |_| {}).await;
    server.put("", "/channels/production/policy", ("If-None-Match", "*"), &policy_of(0)).await.expect(201);
    let body = proposal(0, &[("hello.md", None, Some(HELLO))]);
    let published = server.post("", "/channels/production/proposals", &body).await.expect(201).json();
    assert_eq!(
        (&published["proposal"]["state"], &published["proposal"]["author"]),
        (&json!("published"), &json!("anonymous"))
    );
}

#[tokio::test]
async fn requests_are_limited_with_those_of_mcp() {
    let limits = Limits { requests_per_minute: NonZeroU32::new(3).expect("not zero"), ..Limits::default() };
    let server = Server::with(|builder| builder.limits(limits), |options| options.sign_in = Some(sign_in())).await;
    for _ in 0..3 {
        server.get("reader", "/channels").await.expect(200);
    }
    let refusal = server.get("reader", "/channels").await;
    assert_eq!(refusal.problem(), refused(429, "too-many-requests"));
    assert!(refusal.header("retry-after").parse::<u64>().is_ok_and(|seconds| seconds > 0));
    let list = br#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#;
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2025-06-18"),
    ];
    let mcp = server.send(&Method::POST, "/mcp", "reader", &headers, list).await;
    assert!(mcp.text().contains("Too many requests"), "{mcp:?}");
    server.get("ada", "/channels").await.expect(200);
}

// req: S-104
#[tokio::test]
async fn every_operation_is_recorded_without_contents_and_tokens() {
    let server = Server::prepared(&policy_of(1)).await;
    let (proposed, _) = server.propose("---\ndescription: Greets\n---\nA secret text.\n").await;
    let path = format!("/proposals/{}", proposed["id"]);
    let review = json!({ "verdict": "approve", "digest": proposed["digest"], "note": "A private note" });
    server.post("paul", &format!("{path}/reviews"), &review).await.expect(200);
    server.get("stranger", "/channels").await.expect(403);
    server.get("reader", "/channels/production/files/none.md").await.expect(404);
    let records = server.records.all();
    let find = |caller: &str, method: &str| -> Value {
        let found = records.iter().rfind(|record| record["caller"] == caller && record["method"] == method);
        found.unwrap_or_else(|| panic!("no record of {method} by {caller}: {records:?}")).clone()
    };
    let propose = find("ada", "api/propose");
    assert_eq!((&propose["outcome"], &propose["channel"]), (&json!("ok"), &json!("production")));
    assert_eq!((&propose["proposal"], &propose["address"]), (&proposed["id"], &json!("127.0.0.1")));
    assert!(propose["request"].is_string() && propose["milliseconds"].is_number());
    let review = find("paul", "api/review");
    assert_eq!((&review["verdict"], &review["revision"]), (&json!("approve"), &json!(2)));
    assert_eq!(find("stranger", "api/channels")["outcome"], "insufficient-scope");
    let file = find("reader", "api/file");
    assert_eq!((&file["outcome"], &file["path"]), (&json!("not-found"), &json!("none.md")));
    let all = format!("{records:?}");
    for secret in ["psk_", "A secret text", "A private note"] {
        assert!(!all.contains(secret), "{secret}");
    }
    // The response names the record.
    let answer = server.send(&Method::GET, &at("/channels"), "reader", &[], b"").await.expect(200);
    let record = server.records.all().pop().expect("a record");
    assert_eq!(record["request"], answer.header("x-request-id"));
}

// req: S-506
#[tokio::test]
async fn no_token_takes_the_name_of_another_caller() {
    let server = Server::with(
        |builder| builder,
        |options| {
            options.sign_in = Some(sign_in());
            let access = Access { users: vec!["token/boss".to_owned()], ..Access::default() };
            options.channel_access.insert("vault".to_owned(), Arc::new(access));
            options.reserved_names = vec!["token/Häd".to_owned()];
        },
    )
    .await;
    let store = server.store().await;
    let actor = promptshelf_store::Actor {
        name: "operator".to_owned(),
        may_publish: true,
        may_administer: true,
        review_roles: None,
    };
    for (name, revoked) in [("robot", false), ("straße", true)] {
        let new = promptshelf_store::NewToken { name: name.to_owned(), ..Default::default() };
        let digest = promptshelf_store::Digest::of(name.as_bytes());
        let info = store.create_token(&new, digest, &actor, true).await.expect("by the operator");
        if revoked {
            store.revoke_token(info.id, &actor).await.expect("it is there");
        }
    }
    let create = async |name: &str| server.post("admin", "/tokens", &json!({ "name": name })).await;
    for name in ["boss", "Boss", "ＢＯＳＳ", "häd", "rita", "ADMIN", "robot", "ＲＯＢＯＴ", "STRASSE"] {
        assert_eq!(create(name).await.problem(), refused(403, "not-grantable"), "{name}");
    }
    create("own").await.expect(201);
    create("own").await.expect(201);
    let other = server.post("without-read", "/tokens", &json!({ "name": "own" })).await;
    assert_eq!(other.problem(), refused(403, "not-grantable"));
}

/// Numbers of proposals and rollouts of hidden channels tell nothing.
// req: S-507
#[tokio::test]
async fn proposals_and_rollouts_of_hidden_channels_equal_missing_ones() {
    let hide = |options: &mut promptshelf_server::http::Options| {
        options.sign_in = Some(sign_in());
        let access = Access { roles: vec!["admin".to_owned()], ..Access::default() };
        options.channel_access.insert("secret".to_owned(), Arc::new(access));
    };
    let server = Server::with(|builder| builder, hide).await;
    for channel in ["production", "secret", "next"] {
        server.create(channel, &policy_of(0)).await;
        let first = proposal(0, &[("hello.md", None, Some(HELLO))]);
        server.post("admin", &format!("/channels/{channel}/proposals"), &first).await.expect(201);
    }
    let result = |id: u64| {
        json!({ "evaluation": "q", "prompt": "hello", "digest": super::digest(HELLO), "scores": {}, "thresholds": {},
                "tolerance": 0, "cases": [], "model": null, "cost": null, "seconds": 0, "proposal": id })
    };
    // Proposal 2 is that of the hidden channel.
    let answers = [2, 99].map(|id| (id, result(id)));
    let mut seen = Vec::new();
    for (id, body) in answers {
        let answer = server.post("ci", "/channels/production/evaluations", &body).await;
        assert_eq!(answer.problem(), refused(404, "not-found"), "{}", answer.text());
        seen.push(answer.text().replace(&id.to_string(), "N"));
    }
    assert_eq!(seen[0], seen[1]);
    let rollouts = "/channels/production/rollouts";
    server.post("admin", rollouts, &json!({ "to": "secret" })).await.expect(201);
    let refusal = server.post("paul", rollouts, &json!({ "to": "next" })).await;
    assert_eq!(refusal.problem(), refused(409, "state"));
    assert!(!refusal.text().contains("secret"), "{}", refusal.text());
    // It does not exist for the caller: nothing is said of it, and nothing suggested that the caller cannot do.
    assert!(refusal.text().contains("cannot begin now"), "{}", refusal.text());
    let seen = server.post("admin", rollouts, &json!({ "to": "next" })).await;
    assert!(seen.text().contains("has a rollout that is not over"), "{}", seen.text());
}

// req: S-601
#[tokio::test]
async fn promotion_does_not_name_a_hidden_channel() {
    let hide = |options: &mut promptshelf_server::http::Options| {
        options.sign_in = Some(sign_in());
        let access = Access { roles: vec!["admin".to_owned()], ..Access::default() };
        options.channel_access.insert("vault".to_owned(), Arc::new(access));
    };
    let server = Server::with(|builder| builder, hide).await;
    for channel in ["production", "vault"] {
        server.create(channel, &policy_of(0)).await;
        let first = proposal(0, &[("hello.md", None, Some(HELLO))]);
        server.post("admin", &format!("/channels/{channel}/proposals"), &first).await.expect(201);
    }
    let tag = server.get("admin", "/channels/production/policy").await.etag();
    server.put("admin", "/channels/production/policy", ("If-Match", &tag), &policy_of(1)).await.expect(200);
    let rollouts = "/channels/production/rollouts";
    let tag = server.get("admin", "/channels/vault/policy").await.etag();
    let text = proposal(1, &[("hello.md", Some(HELLO), Some(BYE))]);
    server.post("admin", "/channels/vault/proposals", &text).await.expect(201);
    server.put("admin", "/channels/vault/policy", ("If-Match", &tag), &policy_of(1)).await.expect(200);
    server.post("admin", rollouts, &json!({ "to": "vault" })).await.expect(201);
    let promote = json!({ "from": "vault", "message": "" });
    let waiting = server.post("admin", "/channels/production/promote", &promote).await.expect(201).json();
    let id = waiting["proposal"]["id"].as_u64().expect("a number");
    assert_eq!(waiting["proposal"]["source"]["channel"], "vault", "who sees the channel sees the source");
    let stop = json!({ "state": "stopped", "to": "vault" });
    let headers = [("Content-Type", "application/json")];
    let at = super::at(rollouts);
    server.send(&axum::http::Method::PATCH, &at, "admin", &headers, stop.to_string().as_bytes()).await.expect(200);
    let path = format!("/proposals/{id}");
    let present = server.get("paul", &path).await.expect(200).json();
    let digest = &present["digest"];
    assert_eq!(present["message"], "Promote all files");
    assert_eq!(present["reasons"][1]["code"], "rollout-stopped", "{present}");
    let review = json!({ "verdict": "approve", "digest": digest });
    let tag = server.get("paul", &path).await.etag();
    let reviewed = server.post("paul", &format!("{path}/reviews"), &review).await.expect(200);
    assert_ne!(reviewed.etag(), tag);
    assert_eq!(reviewed.etag(), server.get("paul", &path).await.etag(), "it is the tag of what the caller reads");
    let publish = json!({ "digest": digest });
    let mut answers = vec![reviewed, server.post("paul", &format!("{path}/publish"), &publish).await];
    for path in [
        path.clone(),
        format!("{path}/contents"),
        format!("{path}/permissions"),
        "/proposals".to_owned(),
        "/channels/production/proposals".to_owned(),
        "/reviews".to_owned(),
        "/rollouts".to_owned(),
    ] {
        answers.push(server.get("paul", &path).await.expect(200));
    }
    for answer in answers {
        assert!(!answer.text().contains("vault"), "{}", answer.text());
    }
    assert!(server.get("admin", &path).await.expect(200).text().contains("vault"));
    let again = json!({ "from": "vault", "message": "" });
    let second =
        server.post("admin", "/channels/production/promote", &again).await.expect(201).json()["proposal"].clone();
    let review = json!({ "verdict": "approve", "digest": second["digest"] });
    let published = server.post("paul", &format!("/proposals/{}/reviews", second["id"]), &review).await.expect(200);
    assert_eq!(published.json()["proposal"]["state"], "published", "{}", published.text());
    let history = server.get("paul", "/channels/production/revisions").await.expect(200);
    assert!(!published.text().contains("vault") && !history.text().contains("vault"), "{}", history.text());
}

// req: S-509
#[tokio::test]
async fn the_character_nul_is_refused_like_any_mistake() {
    let server = Server::prepared(&policy_of(0)).await;
    for path in [
        "/standings?text=%00",
        "/standings?after=%00",
        "/channels/production/revisions?prompt=%00",
        "/channels/production/evaluations?prompt=%00",
        "/channels/production/evaluations?evaluation=%00",
        "/channels/production/files/a%00.md",
        "/channels/a%00",
    ] {
        let answer = server.get("reader", path).await;
        assert!([400, 404].contains(&answer.status), "{path}: {answer:?}");
    }
}

/// A scope that includes another one gives its rights.
// req: S-598
#[tokio::test]
async fn no_token_gets_review_or_administration_by_a_scope_that_includes_it() {
    let sign_in = || {
        let mut options = SignInOptions::default();
        options.tokens = vec![StaticToken {
            name: "admin".to_owned(),
            sha256: digest_of("psk_admin"),
            scopes: ["library:read", "library:admin", "lead", "reads"].map(str::to_owned).to_vec(),
            roles: Vec::new(),
            expires: None,
        }];
        options.implies = [("lead", "deputy"), ("deputy", "library:review"), ("reads", "library:read")]
            .map(|(broad, narrow)| (broad.to_owned(), vec![narrow.to_owned()]))
            .into();
        SignIn::new(options)
    };
    let server = Server::with(|builder| builder, |options| options.sign_in = Some(sign_in())).await;
    let create = async |scope: &str| server.post("admin", "/tokens", &json!({ "name": "t", "scopes": [scope] })).await;
    assert_eq!(create("lead").await.problem(), refused(403, "not-grantable"));
    create("reads").await.expect(201);
}

/// A request that is refused before its operation begins takes time, too.
// req: S-24
#[tokio::test]
async fn refused_requests_count_for_their_caller() {
    let limits = Limits { requests_per_minute: NonZeroU32::new(3).expect("not zero"), ..Limits::default() };
    let server = Server::with(|builder| builder.limits(limits), |options| options.sign_in = Some(sign_in())).await;
    server.get("reader", "/prompts?bogus=1").await.expect(400);
    server.get("reader", "/nowhere").await.expect(404);
    let json = [("Content-Type", "application/json")];
    server.send(&Method::POST, &at("/prompts/hello/render"), "reader", &json, b"{").await.expect(400);
    assert_eq!(server.get("reader", "/prompts?bogus=1").await.problem(), refused(429, "too-many-requests"));
    assert_eq!(server.get("reader", "/channels").await.problem(), refused(429, "too-many-requests"));
    server.get("ada", "/channels").await.expect(200);
}
