//! Results of evaluations, and the release gate.

use serde_json::{Value, json};

use super::{BYE, Server, policy_of, refused};

/// A result for the prompt of a proposal.
fn result(compared: &Value, score: f64) -> Value {
    let prompt = &compared["prompts"][0];
    json!({
        "evaluation": "quality",
        "prompt": prompt["name"],
        "digest": prompt["after"],
        "scores": { "score": score },
        "thresholds": { "score": 0.8 },
        "cases": [{ "name": "short", "score": score }],
        "model": "fake-1",
        "cost": 0.01,
    })
}

// req: S-197
#[tokio::test]
async fn only_the_scope_for_evaluations_opens_the_gate() {
    let mut policy = policy_of(0);
    policy["evaluations"] = json!(["quality"]);
    policy["noRegression"] = json!(true);
    let server = Server::prepared(&policy_of(0)).await;
    let tag = server.get("admin", "/channels/production/policy").await.etag();
    server.put("admin", "/channels/production/policy", ("If-Match", &tag), &policy).await.expect(200);
    let (proposed, _) = server.propose(BYE).await;
    let id = &proposed["id"];
    let lacks = proposed["lacks"][0].as_str().expect("a reason");
    assert!(lacks.contains(&format!("`promptshelf evaluate hello --evaluation quality --proposal {id}`")), "{lacks}");

    let (path, of_proposal) = ("/channels/production/evaluations", format!("/proposals/{id}/evaluations"));
    let compared = server.get("reader", &of_proposal).await.expect(200).json();
    assert_eq!((&compared["required"], &compared["noRegression"]), (&json!(["quality"]), &json!(true)));
    let seen = json!({ "digest": proposed["digest"] });
    let publish = async || server.post("paul", &format!("/proposals/{id}/publish"), &seen).await;
    assert_eq!(publish().await.problem(), refused(409, "policy"));
    // Authors, reviewers and publishers cannot store a result, and a runner cannot claim another name.
    for caller in ["ada", "rita", "paul", "without-evaluate"] {
        let answer = server.post(caller, path, &result(&compared, 1.0)).await;
        assert_eq!(answer.problem(), refused(403, "insufficient-scope"), "{caller}");
    }
    let mut forged = result(&compared, 1.0);
    forged["author"] = json!("root");
    assert_eq!(server.post("ci", path, &forged).await.problem(), refused(400, "invalid-request"));
    let mut other = result(&compared, 1.0);
    other["digest"] = json!("0".repeat(64));
    assert_eq!(server.post("ci", path, &other).await.problem(), refused(409, "stale-evaluation"));
    other["proposal"] = id.clone();
    assert_eq!(server.post("ci", path, &other).await.problem(), refused(409, "stale-evaluation"));
    let mut partial = result(&compared, 1.0);
    partial["scores"] = json!({ "other": 1 });
    assert_eq!(server.post("ci", path, &partial).await.problem(), refused(400, "invalid-request"));
    assert_eq!(server.get("reader", path).await.expect(200).json(), json!({ "items": [], "next": null }));

    let stored = server.post("ci", path, &result(&compared, 0.9)).await.expect(201).json();
    assert_eq!(
        (&stored["author"], &stored["passed"], &stored["model"]),
        (&json!("ci"), &json!(true), &json!("fake-1"))
    );
    let refusal = publish().await;
    let problem = refusal.json();
    assert!(problem["lacks"][0].as_str().is_some_and(|lack| lack.contains("served version of the prompt `hello`")));
    let mut live = result(&compared, 0.95);
    live["digest"] = compared["prompts"][0]["before"].clone();
    server.post("ci", path, &live).await.expect(201);
    assert!(publish().await.json()["lacks"][0].as_str().is_some_and(|lack| lack.contains("score 0.9, served 0.95")));
    server.post("ci", path, &result(&compared, 0.95)).await.expect(201);
    let after = server.get("reader", &of_proposal).await.expect(200).json();
    let change = &after["prompts"][0]["evaluations"][0];
    assert_eq!(
        (&change["before"]["scores"], &change["after"]["scores"]),
        (&json!({ "score": 0.95 }), &json!({ "score": 0.95 }))
    );
    publish().await.expect(200);
    let page = server.get("reader", &format!("{path}?limit=2")).await.expect(200).json();
    assert_eq!(page["items"].as_array().map(Vec::len), Some(2));
    let rest = server
        .get("reader", &format!("{path}?cursor={}", page["next"].as_str().expect("a cursor")))
        .await
        .expect(200)
        .json();
    assert_eq!((rest["items"].as_array().map(Vec::len), &rest["next"]), (Some(1), &Value::Null));
}
