//! Confidentiality of outputs: secrets and contents enter through every input, and no log, record, metric or trace
//! may contain them.

use std::fs;

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use super::{Collector, end, measured, modern, scrape};
use crate::{
    program::{Server, library, promptshelf},
    server_auth::{
        Answer, ask_at,
        issuer::{Issuer, Key, RESOURCE},
    },
};

const PROMPT: &str = "---\ndescription: Greets\narguments:\n  - name: password\n    description: Password\n    \
                      sensitive: true\n    maxLength: 40\n  - name: text\n    description: Text\n  - name: count\n    \
                      description: Count\n    type: integer\n---\n{{ password }} {{ text }} {{ count }}\n";
const FAILING: &str = "---\ndescription: Fails\narguments:\n  - name: password\n    description: Password\n    \
                       sensitive: true\n  - name: text\n    description: Text\n---\n{% for i in range(50000) %}\
                       {% for j in range(50000) %}{{ password }}{{ text }}{% endfor %}{% endfor %}\n";
const GUIDED: &str = "---\ndescription: Asks\narguments:\n  - name: text\n    description: Text\n    required: true\n    \
                      ask: true\n---\n{{ text }}\n";

/// Values that must not occur in any output, with their kind.
const SECRETS: &[(&str, &str)] = &[
    ("a made-up token", "secret-bearer-0001"),
    ("a token in the query", "secret-query-0002"),
    ("a cookie", "secret-cookie-0003"),
    ("a sensitive value", "secret-password-0004"),
    ("a value", "private-words-0005"),
    ("what is completed", "private-typing-0006"),
    ("an answer to a form", "private-answer-0007"),
    ("baggage", "private-baggage-0008"),
    ("the key that servers share", "secret-state-key-0009"),
    ("what the collector wants to hear", "secret-collector-0010"),
];

fn secret(about: &str) -> &'static str {
    SECRETS.iter().find(|(known, _)| *known == about).expect("a secret of this name").1
}

/// Sends every request that contains a secret, and returns the responses.
fn send_every_secret(server: &Server, token: &str) -> Vec<Answer> {
    let url = &server.url;
    let bearer = |token: &str| format!("Bearer {token}");
    let own = bearer(token);
    let (password, text) = (secret("a sensitive value"), secret("a value"));
    let baggage = format!("user={}", secret("baggage"));
    let headers: &[(&str, &str)] = &[("Authorization", &own), ("baggage", &baggage)];
    let both = json!({ "password": password, "text": text });
    let long = json!({ "password": password.repeat(3), "text": text });
    let wrong = json!({ "password": password, "text": text, "count": text });
    let meta = json!({ "baggage": baggage, "tracestate": "a=b" });
    let mut answers = Vec::new();
    for (name, arguments) in [("good", &both), ("good", &long), ("good", &wrong), ("failing", &both), ("guided", &both)]
    {
        let params = json!({ "name": name, "arguments": arguments });
        answers.push(ask_at(url, "", headers, "prompts/get", &params));
        answers.push(modern(url, "prompts/get", params, meta.clone(), headers));
    }
    let responses = json!({ "step-1": { "action": "accept", "content": { "text": secret("an answer to a form") } } });
    let answered =
        json!({ "name": "guided", "inputResponses": responses, "requestState": secret("an answer to a form") });
    answers.push(modern(url, "prompts/get", answered, meta, headers));
    let typed = secret("what is completed");
    let completed = json!({
        "ref": { "type": "ref/prompt", "name": "good" }, "argument": { "name": "text", "value": typed },
        "context": { "arguments": { "password": password, "text": typed } },
    });
    answers.push(ask_at(url, "", headers, "completion/complete", &completed));
    answers.push(ask_at(url, "", headers, "logging/setLevel", &json!({ "level": text, "_meta": { "x": password } })));
    let query = format!("?access_token={}", secret("a token in the query"));
    answers.push(ask_at(url, &query, &[], "prompts/list", &json!({})));
    let cookie = format!("token={}", secret("a cookie"));
    answers.push(ask_at(url, "", &[("Cookie", &cookie)], "prompts/list", &json!({})));
    answers.push(ask_at(url, "", &[("Authorization", &bearer(secret("a made-up token")))], "prompts/list", &json!({})));
    answers.push(ask_at(url, "", &[("Authorization", &own), ("Origin", "https://elsewhere.example")], "x", &both));
    answers.push(ask_at(url, "", &[("Authorization", &own), ("Mcp-Protocol-Version", "1999-01-01")], "x", &both));
    answers
}

// req: S-27
#[test]
fn no_output_contains_secrets_or_contents() {
    let folder = library(&[("good.md", PROMPT), ("failing.md", FAILING), ("guided.md", GUIDED)]);
    let made = promptshelf().args(["token", "new", "ada", "--json"]).output().expect("the program runs");
    let made: Value = serde_json::from_slice(&made.stdout).expect("JSON");
    let token = made["token"].as_str().expect("a token");
    fs::write(folder.path().join("tokens"), made["store"].as_str().expect("a line")).expect("written");
    let key = Key::elliptic("one");
    let issuer = Issuer::start(&[&key]);
    let (signed, mut claims) = (key.sign(&issuer.claims()), issuer.claims());
    claims["exp"] = json!(1);
    let expired = key.sign(&claims);
    let forged = Header { kid: Some("one".into()), ..Header::new(Algorithm::HS256) };
    let forged = jsonwebtoken::encode(&forged, &issuer.claims(), &EncodingKey::from_secret(b"x")).expect("a token");
    let collector = Collector::start();

    let mut command = promptshelf();
    command.args(["serve", "prompts", "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]);
    command.args(["--traces", &collector.url, "--audit", "audit.jsonl", "--log", "trace", "--log-format", "json"]);
    command.args(["--tokens", "tokens", "--issuer", &issuer.url, "--resource", RESOURCE]).current_dir(folder.path());
    command.env("PROMPTSHELF_STATE_KEY", secret("the key that servers share"));
    let headers = format!("api-key={}", secret("what the collector wants to hear"));
    command.env("OTEL_EXPORTER_OTLP_HEADERS", headers);
    let (mut server, metrics) = measured(Server::start(command));

    let mut answers = send_every_secret(&server, token);
    answers.extend(send_every_secret(&server, &signed));
    for refused in [&expired, &forged] {
        let answer = crate::server_auth::ask(&server.url, refused, "prompts/list", &json!({}));
        assert_eq!(answer.status, 401);
        answers.push(answer);
    }
    let figures = scrape(&metrics);
    end(&mut server);

    let records = fs::read_to_string(folder.path().join("audit.jsonl")).expect("the file");
    let log: String = std::iter::once(std::mem::take(&mut server.startup_log)).chain(server.log.iter()).collect();
    let traces: String =
        collector.bodies().iter().map(|(_, body)| String::from_utf8_lossy(body).into_owned()).collect();
    // No output is empty.
    assert!(figures.contains("promptshelf_requests_total{method=\"prompts/get\",outcome=\"ok\"}"), "{figures}");
    assert!(
        records.contains("\"outcome\":\"unusable-arguments\"") && records.contains("\"caller\":\"ada\""),
        "{records}"
    );
    assert!(log.contains("TRACE"), "{log}");
    assert!(traces.contains("prompts/get") && traces.contains("render"), "{traces}");
    let authenticated = collector.bodies().iter().any(|(headers, _)| headers.get("api-key").is_some());
    assert!(authenticated, "the configured header reaches the collector");

    let mut secrets = SECRETS.to_vec();
    // A signature alone identifies a token, and so does a token without its signature.
    let parts = [token, &signed, &expired, &forged]
        .into_iter()
        .flat_map(|token| [token].into_iter().chain(token.rsplit_once('.').map(|(_, last)| last)));
    secrets.extend(parts.map(|part| ("a token", part)));
    for (place, text) in [("log", &log), ("audit", &records), ("metrics", &figures), ("traces", &traces)] {
        for (about, secret) in &secrets {
            let line = text.lines().find(|line| line.contains(secret));
            assert!(line.is_none(), "{about} is in the {place}: {}", line.unwrap_or_default());
        }
    }
    // Outside of messages, a response may contain the caller's own words but no sensitive values.
    for answer in answers.iter().filter(|answer| !answer.body.contains("\"messages\"")) {
        assert!(!answer.body.contains(secret("a sensitive value")), "{}", answer.body);
        assert!(!answer.body.contains(token) && !answer.body.contains(&signed), "{}", answer.body);
    }
}
