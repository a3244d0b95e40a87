//! A fake MCP server with its authorization server: requirements set by the test, and recorded requests.

use std::{
    collections::HashMap,
    net::TcpListener,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use aws_lc_rs::digest::{SHA256, digest};
use axum::{
    Json, Router,
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

type Fields = HashMap<String, String>;

/// Faults and variations of the authorization server.
#[derive(Default)]
pub(crate) struct Behaviour {
    /// The redirect names another issuer.
    pub(crate) wrong_issuer: bool,
    /// The user denies consent.
    pub(crate) denies_consent: bool,
    /// The URL of the authorization page, if not the server's own.
    pub(crate) page: Option<String>,
    /// Registration issues a client secret, and the token endpoint requires it.
    pub(crate) secrets: bool,
    /// Tokens are issued already expired.
    pub(crate) expired_tokens: bool,
    /// The value of `code_challenge_methods_supported`, if not S256; null omits the member.
    pub(crate) challenge_methods: Option<Value>,
    /// None of the requested scopes is granted.
    pub(crate) grants_nothing: bool,
    /// The token endpoint takes the secret of a client in the header only.
    pub(crate) basic_only: bool,
    /// The issuer that the server claims in a document at a URL of its own, which it names as authorization server.
    pub(crate) claimed_issuer: Option<String>,
    /// Refusals have no `WWW-Authenticate`.
    pub(crate) no_challenge: bool,
    /// A fault of the token endpoint.
    pub(crate) token_fault: Option<TokenFault>,
}

/// An answer of a token endpoint that is broken or hostile.
#[derive(Clone, Copy)]
pub(crate) enum TokenFault {
    /// A redirect that repeats the request elsewhere.
    Redirect,
    /// An answer of 2 MiB.
    Huge,
    /// No JSON.
    Garbage,
}

/// The secret of a client that signs in as itself. Registered clients receive it, too.
pub(crate) const SECRET: &str = "between us";

#[derive(Default)]
pub(crate) struct Recorded {
    pub(crate) registered: Vec<Value>,
    pub(crate) authorized: Vec<Fields>,
    pub(crate) exchanged: Vec<Fields>,
    /// `Authorization` headers received at the token endpoint.
    pub(crate) basic: Vec<Option<String>>,
    /// Requests that followed a redirect of the token endpoint.
    pub(crate) stolen: usize,
    /// Scopes by token.
    pub(crate) tokens: HashMap<String, String>,
}

struct Inner {
    url: String,
    behaviour: Behaviour,
    /// Whether metadata is withheld, as by a server that wants tokens of its authorization server.
    withholds_metadata: AtomicBool,
    recorded: Mutex<Recorded>,
}

/// Both servers; they run until the test process ends.
pub(crate) struct Realm(Arc<Inner>);

impl Realm {
    pub(crate) fn start(behaviour: Behaviour) -> Realm {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("non-blocking mode");
        let url = format!("http://{}", listener.local_addr().expect("a bound listener"));
        let inner =
            Arc::new(Inner { url, behaviour, withholds_metadata: AtomicBool::default(), recorded: Mutex::default() });
        let app = Router::new()
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/.well-known/claimed", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/stolen", post(stolen))
            .route("/mcp", post(prompts))
            .route("/api/v1/channels", get(channels))
            .with_state(Arc::clone(&inner));
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                axum::serve(listener, app).await.expect("a running server");
            });
        });
        Realm(inner)
    }

    pub(crate) fn withhold_metadata(&self, withholds: bool) {
        self.0.withholds_metadata.store(withholds, Ordering::SeqCst);
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.0.url
    }

    pub(crate) fn mcp(&self) -> String {
        format!("{}/mcp", self.0.url)
    }

    pub(crate) fn host(&self) -> &str {
        self.0.url.trim_start_matches("http://")
    }

    pub(crate) fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.0.recorded.lock().expect("no panic")
    }
}

fn fields(text: &str) -> Fields {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

async fn resource(State(realm): State<Arc<Inner>>) -> Response {
    let server = match &realm.behaviour.claimed_issuer {
        Some(_) => format!("{}/.well-known/claimed", realm.url),
        None => realm.url.clone(),
    };
    published(&realm, json!({ "resource": format!("{}/mcp", realm.url), "authorization_servers": [server] }))
}

async fn metadata(State(realm): State<Arc<Inner>>) -> Response {
    let url = &realm.url;
    let page = realm.behaviour.page.clone().unwrap_or_else(|| format!("{url}/authorize"));
    let mut document = json!({
        "issuer": url, "authorization_endpoint": page, "token_endpoint": format!("{url}/token"),
        "registration_endpoint": format!("{url}/register"), "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"], "authorization_response_iss_parameter_supported": true,
    });
    if let Some(methods) = &realm.behaviour.challenge_methods {
        document["code_challenge_methods_supported"] = methods.clone();
    }
    if let Some(issuer) = &realm.behaviour.claimed_issuer {
        document["issuer"] = json!(issuer);
    }
    if realm.behaviour.basic_only {
        document["token_endpoint_auth_methods_supported"] = json!(["client_secret_basic"]);
    }
    document.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
    published(&realm, document)
}

fn published(realm: &Inner, document: Value) -> Response {
    match realm.withholds_metadata.load(Ordering::SeqCst) {
        true => StatusCode::NOT_FOUND.into_response(),
        false => Json(document).into_response(),
    }
}

async fn register(State(realm): State<Arc<Inner>>, Json(client): Json<Value>) -> Response {
    let mut recorded = realm.recorded.lock().expect("no panic");
    let mut answer = client.clone();
    recorded.registered.push(client);
    answer["client_id"] = json!(format!("client-{}", recorded.registered.len()));
    if realm.behaviour.secrets {
        answer["client_secret"] = json!(SECRET);
    }
    (StatusCode::CREATED, Json(answer)).into_response()
}

async fn authorize(State(realm): State<Arc<Inner>>, RawQuery(query): RawQuery) -> Redirect {
    let request = fields(&query.expect("one value"));
    let mut recorded = realm.recorded.lock().expect("no panic");
    let code = recorded.authorized.len();
    let issuer = if realm.behaviour.wrong_issuer { "https://evil.example" } else { &realm.url };
    let outcome = match realm.behaviour.denies_consent {
        true => "error=access_denied&error_description=Not%20today%1B%5B2J".to_owned(),
        false => format!("code={code}"),
    };
    let back = format!("{}?{outcome}&state={}&iss={issuer}", request["redirect_uri"], request["state"]);
    recorded.authorized.push(request);
    Redirect::to(&back)
}

async fn token(State(realm): State<Arc<Inner>>, headers: HeaderMap, body: String) -> Response {
    let request = fields(&body);
    let mut recorded = realm.recorded.lock().expect("no panic");
    let basic = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    recorded.basic.push(basic.clone());
    match realm.behaviour.token_fault {
        Some(TokenFault::Redirect) => return Redirect::temporary("/stolen").into_response(),
        Some(TokenFault::Huge) => return format!("{{\"access_token\":\"{}\"}}", "x".repeat(2 << 20)).into_response(),
        Some(TokenFault::Garbage) => return "no token today".into_response(),
        None => {}
    }
    let scope = match request["grant_type"].as_str() {
        "authorization_code" => {
            let page = &recorded.authorized[request["code"].parse::<usize>().expect("a code of ours")];
            let challenge = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, request["code_verifier"].as_bytes()));
            assert_eq!(
                (page["code_challenge"].as_str(), page["code_challenge_method"].as_str()),
                (&*challenge, "S256")
            );
            assert_eq!(page["redirect_uri"], request["redirect_uri"]);
            page.get("scope").cloned().unwrap_or_default()
        }
        "client_credentials" => {
            // `mirror:between us`, form-encoded before Base64.
            let is_basic = basic.as_deref() == Some("Basic bWlycm9yOmJldHdlZW4rdXM=");
            let is_in_body = request.get("client_secret").is_some_and(|secret| secret == SECRET);
            if !(is_basic || is_in_body && !realm.behaviour.basic_only) {
                return (StatusCode::UNAUTHORIZED, Json(json!({ "error": "invalid_client" }))).into_response();
            }
            request.get("scope").cloned().unwrap_or_default()
        }
        _ => recorded.tokens[&request["refresh_token"].replace("refresh", "token")].clone(),
    };
    let scope = if realm.behaviour.grants_nothing { "read".to_owned() } else { scope };
    let number = recorded.exchanged.len();
    recorded.tokens.insert(format!("token-{number}"), scope.clone());
    recorded.exchanged.push(request);
    Json(json!({
        "access_token": format!("token-{number}"), "refresh_token": format!("refresh-{number}"),
        "token_type": "Bearer", "expires_in": if realm.behaviour.expired_tokens { 1 } else { 3600 }, "scope": scope,
    }))
    .into_response()
}

async fn stolen(State(realm): State<Arc<Inner>>) -> Json<Value> {
    realm.recorded.lock().expect("no panic").stolen += 1;
    Json(json!({ "access_token": "token-0", "token_type": "Bearer" }))
}

/// Returns the refusal of a caller without a token, or without the scope `write` where it is needed.
fn refusal(realm: &Inner, headers: &HeaderMap, needs_write: bool) -> Option<Response> {
    let metadata = match realm.withholds_metadata.load(Ordering::SeqCst) {
        true => String::new(),
        false => format!(", resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"", realm.url),
    };
    let refuse = |status: StatusCode, challenge: &str| {
        if realm.behaviour.no_challenge {
            return Some(status.into_response());
        }
        Some((status, [(header::WWW_AUTHENTICATE, format!("Bearer {challenge}{metadata}"))]).into_response())
    };
    let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let scopes = token.and_then(|token| realm.recorded.lock().expect("no panic").tokens.get(token).cloned());
    match scopes {
        None => refuse(StatusCode::UNAUTHORIZED, "scope=\"read\""),
        Some(scopes) if needs_write && !scopes.split(' ').any(|scope| scope == "write") => {
            refuse(StatusCode::FORBIDDEN, "error=\"insufficient_scope\", scope=\"write\"")
        }
        Some(_) => None,
    }
}

/// The list of channels, for callers with the scope `write`.
async fn channels(State(realm): State<Arc<Inner>>, headers: HeaderMap) -> Response {
    refusal(&realm, &headers, true).unwrap_or_else(|| Json(json!({ "items": [], "next": null })).into_response())
}

async fn prompts(State(realm): State<Arc<Inner>>, headers: HeaderMap, Json(request): Json<Value>) -> Response {
    if let Some(refusal) = refusal(&realm, &headers, request["params"]["name"] == "written") {
        return refusal;
    }
    let text = |text: &str| json!([{ "role": "user", "content": { "type": "text", "text": text } }]);
    let mut result = match request["method"].as_str() {
        Some("server/discover") => json!({
            "supportedVersions": ["2026-07-28"], "capabilities": { "prompts": {} },
            "serverInfo": { "name": "realm", "version": "1" }, "ttlMs": 0, "cacheScope": "private",
        }),
        Some("prompts/list") => {
            json!({ "prompts": [{ "name": "open" }, { "name": "written" }], "ttlMs": 0, "cacheScope": "private" })
        }
        _ => json!({ "messages": text("Hello.") }),
    };
    result["resultType"] = json!("complete");
    Json(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).into_response()
}
