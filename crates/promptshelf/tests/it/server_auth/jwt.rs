//! Access tokens of an issuer: valid ones, and every kind of invalid one.

use std::{
    io::{BufRead, BufReader},
    thread,
    time::Duration,
};

use base64::Engine as _;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use promptshelf::http::auth::{IssuerOptions, SignIn, SignInOptions};
use serde_json::{Value, json};
use tower_service::Service as _;

use super::{
    LIBRARY, ask, ask_at,
    issuer::{Issuer, Key, RESOURCE, now},
    read,
};
use crate::program::{Server, library};

const METADATA: &str = "https://prompts.example/.well-known/oauth-protected-resource/team/mcp";

fn server(issuer: &Issuer, auth: &str) -> Server {
    let folder = library(LIBRARY);
    std::fs::write(folder.path().join("server.toml"), auth).expect("written");
    Server::of(&folder, &["--issuer", &issuer.url, "--resource", RESOURCE])
}

fn part(value: &Value) -> String {
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value.to_string())
}

fn with(mut claims: Value, name: &str, value: Value) -> Value {
    match value {
        Value::Null => drop(claims.as_object_mut().expect("an object").remove(name)),
        value => claims[name] = value,
    }
    claims
}

// req: N17, P4, P9, P10, R-9, S-9, S-10, X25
#[test]
fn only_valid_tokens_are_accepted() {
    let (key, rsa, other) = (Key::elliptic("one"), Key::rsa("two"), Key::elliptic("one"));
    let issuer = Issuer::start(&[&key, &rsa]);
    let server = server(&issuer, "");
    let list = json!({});
    for right in [&key, &rsa] {
        let answer = ask(&server.url, &right.sign(&issuer.claims()), "prompts/list", &list);
        assert_eq!(answer.prompts(), ["hidden", "open", "shown"]);
    }
    let several = with(issuer.claims(), "aud", json!(["https://other.example", RESOURCE]));
    assert_eq!(ask(&server.url, &key.sign(&several), "prompts/list", &list).status, 200);

    let claims = issuer.claims();
    let signed = key.sign(&claims);
    let pieces: Vec<&str> = signed.split('.').collect();
    let header = |value: Value| format!("{}.{}.{}", part(&value), pieces[1], pieces[2]);
    let secret = |bytes: &[u8]| {
        let header = Header { kid: Some("one".into()), ..Header::new(Algorithm::HS256) };
        encode(&header, &claims, &EncodingKey::from_secret(bytes)).expect("a token")
    };
    let public = key.public();
    let point = public["x"].as_str().expect("a coordinate").as_bytes().to_vec();
    let typed =
        |typ: &str| encode(&Header { typ: Some(typ.into()), ..key.header() }, &claims, &key.secret).expect("a token");
    let critical = Header { crit: Some(vec!["exp".into()]), ..key.header() };
    let embedded = Header { jwk: serde_json::from_value(other.public()).ok(), ..other.header() };
    let elsewhere = Header { jku: Some("http://127.0.0.1:1/keys".into()), ..other.header() };
    let hostile = [
        ("no token at all", "a.b.c".to_owned()),
        ("another key with the same id", other.sign(&claims)),
        ("a key that is not known", Key::elliptic("three").sign(&claims)),
        ("a key that the token brings itself", encode(&embedded, &claims, &other.secret).expect("a token")),
        ("a key that the token points to", encode(&elsewhere, &claims, &other.secret).expect("a token")),
        ("another audience", key.sign(&with(claims.clone(), "aud", json!("https://other.example/mcp")))),
        (
            "an audience that only begins like ours",
            key.sign(&with(claims.clone(), "aud", json!("https://prompts.example"))),
        ),
        ("no audience", key.sign(&with(claims.clone(), "aud", Value::Null))),
        ("another issuer", key.sign(&with(claims.clone(), "iss", json!("https://other.example")))),
        ("several issuers", key.sign(&with(claims.clone(), "iss", json!([issuer.url, "https://other.example"])))),
        ("no issuer", key.sign(&with(claims.clone(), "iss", Value::Null))),
        ("expired", key.sign(&with(claims.clone(), "exp", json!(now() - 120)))),
        ("no end", key.sign(&with(claims.clone(), "exp", Value::Null))),
        ("an end that is no number", key.sign(&with(claims.clone(), "exp", json!("tomorrow")))),
        ("not valid yet", key.sign(&with(claims.clone(), "nbf", json!(now() + 300)))),
        ("no subject", key.sign(&with(claims.clone(), "sub", Value::Null))),
        ("the algorithm none", header(json!({ "alg": "none", "kid": "one" }))),
        ("none, and no signature", format!("{}.{}.", part(&json!({ "alg": "none" })), pieces[1])),
        ("None, in other letters", header(json!({ "alg": "nOnE", "kid": "one" }))),
        ("an algorithm that is confused with ours", header(json!({ "alg": "RS256", "kid": "one" }))),
        ("the public key as a shared secret", secret(&point)),
        ("the public key's document as a shared secret", secret(public.to_string().as_bytes())),
        ("an empty secret", secret(b"")),
        ("another type", typed("secevent+jwt")),
        ("something critical that is not understood", encode(&critical, &claims, &key.secret).expect("a token")),
        (
            "other claims under the same signature",
            format!("{}.{}.{}", pieces[0], part(&with(claims.clone(), "sub", json!("root"))), pieces[2]),
        ),
        ("a signature that is cut", signed[..signed.len() - 4].to_owned()),
        ("a huge one", key.sign(&with(claims.clone(), "padding", json!("x".repeat(20 << 10))))),
        ("a deep one", format!("{}.{}.{}", pieces[0], part(&json!("[".repeat(9_000))), pieces[2])),
    ];
    for (what, token) in hostile {
        let refused = ask(&server.url, &token, "prompts/list", &list);
        let challenge = refused.challenge.unwrap_or_default();
        assert_eq!(refused.status, 401, "{what}: {}", refused.body);
        assert!(challenge.starts_with("Bearer error=\"invalid_token\""), "{what}: {challenge}");
        assert!(challenge.contains(&format!("resource_metadata=\"{METADATA}\"")), "{what}: {challenge}");
        assert!(!refused.body.contains("open"), "{what}: {}", refused.body);
    }
    // RFC 9068 requires no `nbf`.
    let without_nbf = key.sign(&with(claims, "nbf", Value::Null));
    assert_eq!(ask(&server.url, &without_nbf, "prompts/list", &list).status, 200);
    assert_eq!(ask(&server.url, &signed, "prompts/list", &list).status, 200, "the server is as it was");
}

// req: P9
#[test]
fn only_public_signing_keys_are_used() {
    let key = Key::elliptic("one");
    let issuer = Issuer::start(&[&key]);
    let mut encryption = key.public();
    encryption["use"] = json!("enc");
    let shared = json!({ "kty": "oct", "kid": "shared", "k": "c2VjcmV0", "alg": "HS256" });
    issuer.publish_raw(json!({ "keys": [encryption, shared, { "kty": "new" }, 7] }));
    let server = server(&issuer, "");
    let header = Header { kid: Some("shared".into()), ..Header::new(Algorithm::HS256) };
    let forged = encode(&header, &issuer.claims(), &EncodingKey::from_secret(b"secret")).expect("a token");
    for token in [key.sign(&issuer.claims()), forged] {
        assert_eq!(ask(&server.url, &token, "prompts/list", &json!({})).status, 401);
    }
}

// req: P14, R-9, S-11
#[test]
fn keys_are_fetched_only_when_they_change() {
    let (old, new) = (Key::elliptic("old"), Key::elliptic("new"));
    let issuer = Issuer::start(&[&old]);
    let server = server(&issuer, "");
    let url = &server.url;
    let status = |key: &Key| ask(url, &key.sign(&issuer.claims()), "prompts/list", &json!({})).status;
    // Of several concurrent requests one fetches the keys, and the others wait for it.
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(status(&old), 200));
        }
    });
    assert_eq!(issuer.fetches(), 1);
    issuer.publish(&[&old, &new]);
    for _ in 0..20 {
        assert_eq!(status(&Key::elliptic("made up")), 401);
    }
    assert!(issuer.fetches() <= 2, "{}", issuer.fetches());
    // Known keys stay in use while the issuer is unreachable.
    issuer.set_up(false);
    assert_eq!(status(&old), 200);
    assert!(!issuer.received_token(), "no token is sent to the issuer");
}

/// The clock is the test's own; the issuer is a real HTTP server.
// req: S-12
#[tokio::test(start_paused = true)]
async fn rotated_keys_are_fetched_after_cool_down() {
    const SECOND: Duration = Duration::from_secs(1);
    let (old, new) = (Key::elliptic("old"), Key::elliptic("new"));
    let issuer = Issuer::start(&[&old]);
    let mut options = SignInOptions::default();
    options.resource = Some(RESOURCE.to_owned());
    options.issuer = Some(IssuerOptions::new(issuer.url.clone()));
    let sign_in = SignIn::new(options);
    let library = promptshelf::Library::builder().build().expect("a library");
    let mut options = promptshelf::http::Options::default();
    options.sign_in = Some(sign_in);
    let routes = promptshelf::http::router(&library, &options);
    let status = async |key: &Key| {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        let request = http::Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {}", key.sign(&issuer.claims())))
            .body(axum::body::Body::from(message.to_string()))
            .expect("a request");
        routes.clone().call(request).await.expect("an answer").status().as_u16()
    };
    assert_eq!((status(&old).await, issuer.fetches()), (200, 1));
    issuer.publish(&[&new]);
    tokio::time::advance(9 * SECOND).await;
    assert_eq!((status(&new).await, issuer.fetches()), (401, 1), "the cool-down is not over");
    assert_eq!(status(&old).await, 200);
    tokio::time::advance(2 * SECOND).await;
    assert_eq!((status(&new).await, issuer.fetches()), (200, 2));
    assert_eq!((status(&old).await, issuer.fetches()), (401, 2), "withdrawn keys are not accepted");

    issuer.set_up(false);
    tokio::time::advance(23 * 60 * 60 * SECOND).await;
    assert_eq!(status(&new).await, 200, "the issuer is away");
    tokio::time::advance(2 * 60 * 60 * SECOND).await;
    assert_eq!(status(&new).await, 503, "for too long");
    issuer.set_up(true);
    tokio::time::advance(11 * SECOND).await;
    assert_eq!(status(&new).await, 200);
}

#[test]
fn unreachable_issuer_means_unavailable() {
    let key = Key::elliptic("one");
    let issuer = Issuer::start(&[&key]);
    issuer.set_up(false);
    let server = server(&issuer, "");
    let answer = ask(&server.url, &key.sign(&issuer.claims()), "prompts/list", &json!({}));
    assert_eq!(answer.status, 503);
    assert!(answer.headers.contains_key("retry-after"));
}

// req: N17, P3, P4, P5, P6, P7, P10, P11, P12, P13, P16, X25
#[test]
fn scopes_are_requested_incrementally() {
    let key = Key::elliptic("one");
    let issuer = Issuer::start(&[&key]);
    let server = server(
        &issuer,
        "[auth]\nrequired-scopes = [\"prompts:read\"]\nscopes-supported = [\"prompts:read\", \"prompts:write\", \
         \"offline_access\"]\n[auth.implies]\n\"prompts:admin\" = [\"prompts:write\"]\n\"prompts:write\" = [\"prompts:read\"]\n",
    );
    let token = |scope: &str| key.sign(&with(issuer.claims(), "scope", json!(scope)));
    let get = |scope: &str| ask(&server.url, &token(scope), "prompts/get", &json!({ "name": "shown" }));

    let none = ask_at(&server.url, "", &[], "prompts/list", &json!({}));
    let expected = format!("Bearer resource_metadata=\"{METADATA}\", scope=\"prompts:read\"");
    assert_eq!((none.status, none.challenge), (401, Some(expected)));

    let few = get("other");
    let challenge = few.challenge.expect("a challenge");
    assert_eq!(few.status, 403);
    assert!(challenge.contains("error=\"insufficient_scope\"") && challenge.contains("scope=\"prompts:read\""));

    let more = get("prompts:read");
    let challenge = more.challenge.as_deref().expect("a challenge");
    assert_eq!(more.status, 403);
    assert!(challenge.contains("scope=\"prompts:read prompts:write\""), "all that it takes: {challenge}");
    assert_eq!(more.json()["error"]["data"], json!({ "requiredScopes": ["prompts:write"] }));

    for enough in ["prompts:write", "prompts:admin", "prompts:admin other"] {
        assert_eq!(get(enough).status, 200, "{enough}");
    }

    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    for path in ["", "/team/mcp"] {
        let url = server.url.replace("/mcp", &format!("/.well-known/oauth-protected-resource{path}"));
        let document = read(agent.get(url).call().expect("the server answers"));
        assert_eq!(document.headers["access-control-allow-origin"], "*");
        assert_eq!(
            document.json(),
            json!({ "resource": RESOURCE, "authorization_servers": [issuer.url], "bearer_methods_supported": ["header"],
                    "scopes_supported": ["prompts:read", "prompts:write"] })
        );
    }
}

// req: P19, S-13, X23
#[test]
fn stream_ends_with_its_token() {
    let key = Key::elliptic("one");
    let issuer = Issuer::start(&[&key]);
    let server = server(&issuer, "[auth]\nleeway = 1\n");
    let token = key.sign(&with(issuer.claims(), "exp", json!(now() + 1)));
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    let params = json!({ "notifications": { "promptsListChanged": true }, "_meta": meta });
    let message = json!({ "jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": params });
    let agent: ureq::Agent =
        ureq::Agent::config_builder().timeout_global(Some(crate::program::PATIENCE)).build().into();
    let stream = agent
        .post(&server.url)
        .header("Authorization", format!("Bearer {token}"))
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "subscriptions/listen")
        .send(message.to_string())
        .expect("a stream");
    let lines: Vec<String> = BufReader::new(stream.into_body().into_reader()).lines().map_while(Result::ok).collect();
    let messages: Vec<Value> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|text| serde_json::from_str(text).expect("JSON"))
        .collect();
    let last = messages.last().expect("messages");
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(5), &json!("complete")), "{messages:?}");
    assert_eq!(ask(&server.url, &token, "prompts/list", &json!({})).status, 401);
}
