//! Policies and their history, and changes that open something.

use axum::http::Method;
use serde_json::{Value, json};

use super::{BYE, HELLO, Server, policy_of, proposal, refused, sign_in};

const POLICY: &str = "/channels/production/policy";

async fn set(server: &Server, caller: &str, policy: &Value) -> super::Answer {
    let tag = server.get("reader", POLICY).await.etag();
    server.put(caller, POLICY, ("If-Match", &tag), policy).await
}

// req: S-292
#[tokio::test]
async fn looser_policy_waits_for_the_approvals_of_the_present_one() {
    let server = Server::prepared(&policy_of(2)).await;
    let mut loose = policy_of(0);
    loose["message"] = json!("Quicker");
    let answer = set(&server, "admin", &loose).await.expect(202);
    let proposed = answer.json();
    assert_eq!((&proposed["kind"], &proposed["state"]), (&json!("policy"), &json!("open")));
    assert_eq!(
        (&proposed["policy"]["before"]["approvals"], &proposed["policy"]["after"]["approvals"]),
        (&json!(2), &json!(0))
    );
    let path = format!("/proposals/{}", proposed["id"]);
    assert_eq!(server.get("reader", &path).await.etag(), answer.etag());
    assert_eq!(server.get("reader", POLICY).await.json()["approvals"], 2);
    let review = json!({ "verdict": "approve", "digest": proposed["digest"] });
    let reviews = format!("{path}/reviews");
    assert_eq!(server.post("admin", &reviews, &review).await.problem(), refused(409, "policy"), "it is their own");
    server.post("rita", &reviews, &review).await.expect(200);
    assert_eq!(server.get("reader", POLICY).await.json()["approvals"], 2);
    let permissions = server.get("paul", &format!("{path}/permissions")).await.expect(200).json();
    assert_eq!((&permissions["approve"]["allowed"], &permissions["publish"]["allowed"]), (&json!(true), &json!(false)));
    let carried_out = server.post("paul", &reviews, &review).await.expect(200).json();
    assert_eq!(
        (&carried_out["proposal"]["state"], &carried_out["proposal"]["revision"]),
        (&json!("published"), &Value::Null)
    );
    assert_eq!(server.get("reader", POLICY).await.json()["approvals"], 0);
    // Stricter is done at once.
    set(&server, "admin", &policy_of(1)).await.expect(200);
    let history = server.get("reader", &format!("{POLICY}/history?limit=2")).await.expect(200).json();
    let told = |index: usize| {
        let change = &history["items"][index];
        (change["actor"].clone(), change["before"]["approvals"].clone(), change["after"]["approvals"].clone())
    };
    assert_eq!(told(0), (json!("admin"), json!(0), json!(1)));
    assert_eq!(told(1), (json!("admin"), json!(2), json!(0)));
    assert_eq!(history["items"][1]["approvedBy"], json!(["rita", "paul"]));
    assert_eq!(
        (&history["items"][1]["message"], &history["items"][1]["byOperator"]),
        (&json!("Quicker"), &json!(false))
    );
    let rest = server
        .get("reader", &format!("{POLICY}/history?cursor={}", history["next"].as_str().expect("a cursor")))
        .await
        .json();
    assert_eq!((rest["items"].as_array().map(Vec::len), &rest["next"]), (Some(1), &Value::Null));
    let records = server.records.all();
    let record = records.iter().find(|record| record["method"] == "api/set-policy" && record["message"] == "Quicker");
    let record = record.expect("a record");
    let values = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
    assert!(values("before").contains("\"approvals\":2") && values("after").contains("\"approvals\":0"), "{record}");
    // A revision has the policy that it met.
    let (seen, _) = server.propose(BYE).await;
    let review = json!({ "verdict": "approve", "digest": seen["digest"] });
    server.post("paul", &format!("/proposals/{}/reviews", seen["id"]), &review).await.expect(200);
    let revision = server.get("reader", "/channels/production/revisions/2").await.json();
    assert_eq!(revision["policy"]["approvals"], 1);
}

// req: S-292
#[tokio::test]
async fn emergency_carries_out_a_looser_policy_and_is_recorded() {
    let server = Server::prepared(&policy_of(1)).await;
    let proposed = set(&server, "admin", &policy_of(0)).await.expect(202).json();
    let path = format!("/proposals/{}/publish", proposed["id"]);
    let emergency = json!({ "digest": proposed["digest"], "emergency": "Nobody is here" });
    assert_eq!(server.post("paul", &path, &emergency).await.problem(), refused(403, "insufficient-scope"));
    server.post("admin", &path, &emergency).await.expect(200);
    let history = server.get("reader", &format!("{POLICY}/history?limit=1")).await.json();
    assert_eq!(history["items"][0]["emergency"], "Nobody is here");
}

// req: S-296
#[tokio::test]
async fn evaluation_without_settings_is_refused() {
    let server = Server::with(
        |builder| builder,
        |options| {
            options.sign_in = Some(sign_in());
            options.api = options.api.take().map(|api| api.evaluations(["quality".to_owned()]));
        },
    )
    .await;
    server.prepare(&policy_of(0)).await;
    let with = |name: &str| {
        let mut policy = policy_of(0);
        policy["evaluations"] = json!([name]);
        policy
    };
    let refusal = set(&server, "admin", &with("qualita")).await;
    assert_eq!(refusal.problem(), refused(400, "invalid-request"));
    assert!(refusal.text().contains("expected `quality`"), "{}", refusal.text());
    set(&server, "admin", &with("quality")).await.expect(200);
}

const RULE: &str = "[[access]]\nprompts = [\"hello\"]\nroles = [\"boss\"]\n";

// req: S-290
#[tokio::test]
async fn rollback_over_a_rule_waits_for_a_confirmation_by_name() {
    let server = Server::prepared(&policy_of(0)).await;
    let proposals = "/channels/production/proposals";
    let closed = proposal(1, &[("promptshelf.toml", None, Some(RULE))]);
    let published = server.post("paul", proposals, &closed).await.expect(201).json();
    assert_eq!(published["proposal"]["state"], "published", "closing opens nothing: {published}");
    let rollback = json!({ "to": 1, "message": "Back" });
    let open = server.post("paul", "/channels/production/rollback", &rollback).await.expect(201).json();
    let waiting = &open["proposal"];
    assert_eq!(waiting["state"], "open");
    let reason = &waiting["reasons"][0];
    assert_eq!((&reason["code"], &reason["values"]["name"]), (&json!("opening"), &json!("access-opened:hello")));
    let path = format!("/proposals/{}", waiting["id"]);
    let publish = json!({ "digest": waiting["digest"] });
    let refusal = server.post("paul", &format!("{path}/publish"), &publish).await;
    assert_eq!(refusal.problem(), refused(409, "policy"));
    let review =
        |confirmed: Value| json!({ "verdict": "approve", "digest": waiting["digest"], "confirmed": confirmed });
    let reviews = format!("{path}/reviews");
    let own = server.post("paul", &reviews, &review(json!(["access-opened:hello"]))).await;
    assert_eq!(own.problem(), refused(409, "policy"));
    server.post("rita", &reviews, &review(json!([]))).await.expect(200);
    assert_eq!(server.get("reader", &path).await.json()["reasons"][0]["code"], "opening");
    let may_approve =
        async || server.get("rita", &format!("{path}/permissions")).await.json()["approve"]["allowed"].clone();
    assert_eq!(may_approve().await, true, "the confirmation can follow");
    server.post("rita", &reviews, &review(json!(["access-opened:hello"]))).await.expect(200);
    assert_eq!(may_approve().await, false);
    server.post("paul", &format!("{path}/publish"), &publish).await.expect(200);
    assert_eq!(server.revision().await, 3);
    // Someone who may administer needs nobody, where the policy demands no approvals.
    server.post("admin", proposals, &proposal(3, &[("promptshelf.toml", None, Some(RULE))])).await.expect(201);
    let open = server.post("admin", "/channels/production/rollback", &rollback).await.expect(201).json();
    assert_eq!(
        (&open["proposal"]["state"], &open["proposal"]["effects"][0]["impact"]),
        (&json!("published"), &json!("opening"))
    );
}

// req: S-290
#[tokio::test]
async fn closed_text_in_an_open_prompt_is_noticed() {
    let server = Server::prepared(&policy_of(0)).await;
    let proposals = "/channels/production/proposals";
    let rule = "[[access]]\nfolders = [\"private\"]\nroles = [\"boss\"]\n";
    let files = [
        ("promptshelf.toml", None, Some(rule)),
        ("private/_wages.md", None, Some("Wages\n")),
        ("private/pay.md", None, Some("---\ndescription: Pays\n---\n{% include \"private/_wages.md\" %}\n")),
    ];
    let first = server.post("admin", proposals, &proposal(1, &files)).await.expect(201).json();
    assert_eq!(first["proposal"]["effects"], json!([]), "{first}");
    let closed = "---\ndescription: x\naccess:\n  roles: [boss]\n---\n{% include \"private/_wages.md\" %}\n";
    let same =
        server.post("paul", proposals, &proposal(2, &[("same.md", None, Some(closed))])).await.expect(201).json();
    assert_eq!(same["proposal"]["state"], "published", "the same people read it: {same}");
    let mut base = 3;
    for (path, text, name) in [
        (
            "open.md",
            "---\ndescription: x\n---\n{% include \"private/_wages.md\" %}\n",
            "content-opened:open:private/_wages.md",
        ),
        ("call.md", "---\ndescription: x\n---\n{{ prompt(\"private-pay\") }}\n", "content-opened:call:private-pay"),
    ] {
        let opening = proposal(base, &[(path, None, Some(text))]);
        let open = server.post("paul", proposals, &opening).await.expect(201).json();
        let waiting = &open["proposal"];
        let named: Vec<&Value> =
            waiting["effects"].as_array().into_iter().flatten().map(|effect| &effect["name"]).collect();
        assert!(waiting["state"] == "open" && named.contains(&&json!(name)), "{open}");
        let review = json!({ "verdict": "approve", "digest": waiting["digest"], "confirmed": named });
        server.post("rita", &format!("/proposals/{}/reviews", waiting["id"]), &review).await.expect(200);
        let publish = json!({ "digest": waiting["digest"] });
        server.post("paul", &format!("/proposals/{}/publish", waiting["id"]), &publish).await.expect(200);
        // What was confirmed once is not asked about with every later change.
        let longer = format!("{text}More.\n");
        let later = proposal(base + 1, &[(path, Some(text), Some(&longer))]);
        let later = server.post("paul", proposals, &later).await.expect(201).json();
        assert_eq!(later["proposal"]["state"], "published", "{later}");
        base += 2;
    }
}

// req: S-290
#[tokio::test]
async fn every_way_to_open_a_file_is_noticed() {
    let server = Server::prepared(&policy_of(0)).await;
    let proposals = "/channels/production/proposals";
    let wide = "[[access]]\nprompts = [\"hello\"]\nroles = [\"boss\", \"all\"]\n";
    let folder = "[[access]]\nfolders = [\"private\"]\nroles = [\"boss\"]\n";
    let private = "---\ndescription: Pays\naccess:\n  roles: [boss]\n---\nPay.\n";
    let public = "---\ndescription: Pays\n---\nPay.\n";
    let renamed = "---\nname: wages\ndescription: Pays\n---\nPay.\n";
    let attach = "---\ndescription: Plans\naccess:\n  roles: [boss]\nattach: [private/plan.txt]\n---\nPlan.\n";
    let mut base = 1;
    for (before, after, name) in [
        (("promptshelf.toml", RULE), ("promptshelf.toml", wide), "access-opened:hello"),
        (("promptshelf.toml", RULE), ("promptshelf.toml", "# none\n"), "access-opened:hello"),
        (("pay.md", private), ("pay.md", public), "access-opened:pay"),
        (("pay.md", private), ("pay.md", renamed), "access-opened:pay"),
        (("promptshelf.toml", folder), ("promptshelf.toml", "# none\n"), "file-opened:private/plan.txt"),
    ] {
        let plan = [("private/plan.txt", None, Some("Secret")), ("plan.md", None, Some(attach))];
        let first = (before.0, None, Some(before.1));
        let files: Vec<_> = if name.starts_with("file") { vec![first, plan[0], plan[1]] } else { vec![first] };
        server.post("admin", proposals, &proposal(base, &files)).await.expect(201);
        let change = proposal(base + 1, &[(after.0, Some(before.1), Some(after.1))]);
        let open = server.post("paul", proposals, &change).await.expect(201).json();
        let names: Vec<&str> = open["proposal"]["effects"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|effect| effect["impact"] == "opening")
            .filter_map(|effect| effect["name"].as_str())
            .collect();
        assert_eq!((&open["proposal"]["state"], &names[..]), (&json!("open"), &[name][..]), "{after:?}: {open}");
        let gone: Vec<_> = files.iter().map(|(path, _, text)| (*path, *text, None)).collect();
        server.post("admin", proposals, &proposal(base + 1, &gone)).await.expect(201);
        base += 2;
    }
    // A file that moves out of a closed folder.
    let files = [("promptshelf.toml", None, Some(folder)), ("private/pay.md", None, Some(public))];
    server.post("admin", proposals, &proposal(base, &files)).await.expect(201);
    let moved = [("private/pay.md", Some(public), None), ("pay.md", None, Some(public))];
    let open = server.post("paul", proposals, &proposal(base + 1, &moved)).await.expect(201).json();
    assert_eq!(open["proposal"]["state"], "open", "{open}");
    // Under another name, too.
    let moved = [("private/pay.md", Some(public), None), ("wages.md", None, Some(public))];
    let open = server.post("paul", proposals, &proposal(base + 1, &moved)).await.expect(201).json();
    assert_eq!(open["proposal"]["effects"][0]["name"], "file-opened:wages.md", "{open}");
}

// req: S-565
#[tokio::test]
async fn rollout_does_not_go_around_the_review() {
    let server = Server::prepared(&policy_of(1)).await;
    server.create("next", &policy_of(0)).await;
    let text = proposal(0, &[("hello.md", None, Some(BYE))]);
    server.post("admin", "/channels/next/proposals", &text).await.expect(201);
    let (rollouts, begin) = ("/channels/production/rollouts", json!({ "to": "next", "percent": 100 }));
    for caller in ["paul", "admin"] {
        let refusal = server.post(caller, rollouts, &begin).await;
        assert_eq!(refusal.problem(), refused(409, "policy"), "{caller}");
        assert!(refusal.text().contains("next asks for less than production (approvals"), "{}", refusal.text());
    }
    let path = "/channels/next/policy";
    let tag = server.get("admin", path).await.expect(200).etag();
    server.put("admin", path, ("If-Match", &tag), &policy_of(1)).await.expect(200);
    server.post("paul", rollouts, &begin).await.expect(201);
}

// req: S-505
#[tokio::test]
async fn rollout_opens_nothing_without_a_confirmation() {
    let server = Server::prepared(&policy_of(0)).await;
    let closed = "---\ndescription: Pays\naccess:\n  roles: [boss]\n---\nPay.\n";
    let open = "---\ndescription: Pays\n---\nPay.\n";
    server.create("next", &policy_of(0)).await;
    let pay = proposal(1, &[("pay.md", None, Some(closed))]);
    server.post("admin", "/channels/production/proposals", &pay).await.expect(201);
    let of_next = |base: u64, changes: &[(&str, Option<&str>, Option<&str>)]| proposal(base, changes);
    let first = of_next(0, &[("hello.md", None, Some(HELLO)), ("pay.md", None, Some(open))]);
    server.post("admin", "/channels/next/proposals", &first).await.expect(201);
    let rollouts = "/channels/production/rollouts";
    let begin = json!({ "to": "next", "percent": 100 });
    let refusal = server.post("paul", rollouts, &begin).await;
    assert_eq!(refusal.problem(), refused(409, "policy"));
    assert!(refusal.text().contains("access-opened:pay"), "{}", refusal.text());
    // With the rule, it begins; a revision without it ends it, whoever publishes that.
    let closing = of_next(1, &[("pay.md", Some(open), Some(closed))]);
    server.post("admin", "/channels/next/proposals", &closing).await.expect(201);
    server.post("paul", rollouts, &begin).await.expect(201);
    let phase = async || server.get("reader", rollouts).await.expect(200).json()["items"][0].clone();
    let other = of_next(2, &[("hello.md", Some(HELLO), Some(BYE))]);
    server.post("admin", "/channels/next/proposals", &other).await.expect(201);
    assert_eq!(phase().await["state"], "running");
    let opening = of_next(3, &[("pay.md", Some(closed), Some(open))]);
    server.post("admin", "/channels/next/proposals", &opening).await.expect(201);
    let stopped = phase().await;
    assert_eq!((&stopped["state"], &stopped["percent"]), (&json!("stopped"), &json!(0)), "{stopped}");
    assert!(stopped["reason"].as_str().is_some_and(|reason| reason.contains("access-opened:pay")), "{stopped}");
    // Nor does a stopped one go on with it.
    let resume = json!({ "to": "next", "percent": 10 });
    let refusal = server
        .send(
            &Method::PATCH,
            &super::at(rollouts),
            "paul",
            &[("Content-Type", "application/json")],
            resume.to_string().as_bytes(),
        )
        .await;
    assert_eq!(refusal.problem(), refused(409, "policy"));
}
