//! Arbitrary values of `requestState` and `inputResponses`. A state that the server did not issue is rejected.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (state, responses) = text.split_once('\n').unwrap_or((&text, "{}"));
    let responses: Value = serde_json::from_str(responses).unwrap_or_else(|_| json!({ "basics": responses }));
    let ask = |params: Value| {
        let (headers, body) = shelf::modern("prompts/get", params);
        let answer = shelf::post(headers, body).expect("no stream");
        answer.check();
        serde_json::from_slice::<Value>(&answer.body).expect("JSON")
    };
    let forged = ask(json!({ "name": "setup", "requestState": state, "inputResponses": responses }));
    assert_eq!(forged["error"]["code"], -32602, "{forged}");
    let asked = ask(json!({ "name": "setup" }));
    // A valid state with arbitrary responses.
    ask(json!({ "name": "setup", "requestState": asked["result"]["requestState"], "inputResponses": responses }));
    let mut changed = asked["result"]["requestState"].as_str().expect("a state").to_owned();
    changed.truncate(bytes.len() % changed.len());
    changed.push_str(state);
    if changed != asked["result"]["requestState"] {
        let refused = ask(json!({ "name": "setup", "requestState": changed }));
        assert_eq!(refused["error"]["message"], forged["error"]["message"], "all rejected states have the same message");
    }
});
