//! A fake MCP server with its authorization server: requirements set by the test, and recorded requests.

use std::{
    collections::HashMap,
    net::TcpListener,
    sync::{Arc, Mutex, MutexGuard},
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
pub(super) struct Ways {
    /// It answers in the name of another issuer.
    pub(super) wrong_issuer: bool,
    /// The person denies consent there.
    pub(super) declines: bool,
    /// Where its page is, if not at itself.
    pub(super) page: Option<String>,
    /// It gives clients secrets, and wants them back.
    pub(super) secrets: bool,
    /// Its tokens end at once.
    pub(super) short: bool,
    /// It grants none of the requested scopes.
    pub(super) stingy: bool,
}

#[derive(Default)]
pub(super) struct Book {
    pub(super) registered: Vec<Value>,
    pub(super) authorized: Vec<Fields>,
    pub(super) exchanged: Vec<Fields>,
    /// `Authorization` at the token endpoint.
    pub(super) basic: Vec<Option<String>>,
    /// The scopes of each token.
    tokens: HashMap<String, String>,
}

struct Inner {
    url: String,
    ways: Ways,
    book: Mutex<Book>,
}

/// Both servers, until the tests end.
pub(super) struct Realm(Arc<Inner>);

impl Realm {
    pub(super) fn start(ways: Ways) -> Realm {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("it can be shared");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let inner = Arc::new(Inner { url, ways, book: Mutex::default() });
        let app = Router::new()
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/mcp", post(prompts))
            .with_state(Arc::clone(&inner));
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("it is a listener");
                axum::serve(listener, app).await.expect("it serves");
            });
        });
        Realm(inner)
    }

    pub(super) fn mcp(&self) -> String {
        format!("{}/mcp", self.0.url)
    }

    pub(super) fn host(&self) -> &str {
        self.0.url.trim_start_matches("http://")
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().expect("nobody panics with it")
    }
}

fn fields(text: &str) -> Fields {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

async fn resource(State(realm): State<Arc<Inner>>) -> Json<Value> {
    Json(json!({ "resource": format!("{}/mcp", realm.url), "authorization_servers": [realm.url] }))
}

async fn metadata(State(realm): State<Arc<Inner>>) -> Json<Value> {
    let url = &realm.url;
    let page = realm.ways.page.clone().unwrap_or_else(|| format!("{url}/authorize"));
    Json(json!({
        "issuer": url, "authorization_endpoint": page, "token_endpoint": format!("{url}/token"),
        "registration_endpoint": format!("{url}/register"), "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"], "authorization_response_iss_parameter_supported": true,
    }))
}

async fn register(State(realm): State<Arc<Inner>>, Json(client): Json<Value>) -> Response {
    let mut book = realm.book.lock().expect("nobody panics with it");
    let mut answer = client.clone();
    book.registered.push(client);
    answer["client_id"] = json!(format!("client-{}", book.registered.len()));
    if realm.ways.secrets {
        answer["client_secret"] = json!("between us");
    }
    (StatusCode::CREATED, Json(answer)).into_response()
}

async fn authorize(State(realm): State<Arc<Inner>>, RawQuery(query): RawQuery) -> Redirect {
    let asked = fields(&query.expect("it has one"));
    let mut book = realm.book.lock().expect("nobody panics with it");
    let code = book.authorized.len();
    let issuer = if realm.ways.wrong_issuer { "https://evil.example" } else { &realm.url };
    let outcome = match realm.ways.declines {
        true => "error=access_denied&error_description=Not%20today%1B%5B2J".to_owned(),
        false => format!("code={code}"),
    };
    let back = format!("{}?{outcome}&state={}&iss={issuer}", asked["redirect_uri"], asked["state"]);
    book.authorized.push(asked);
    Redirect::to(&back)
}

async fn token(State(realm): State<Arc<Inner>>, headers: HeaderMap, body: String) -> Response {
    let asked = fields(&body);
    let mut book = realm.book.lock().expect("nobody panics with it");
    let basic = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    book.basic.push(basic);
    let scope = match asked["grant_type"].as_str() {
        "authorization_code" => {
            let page = &book.authorized[asked["code"].parse::<usize>().expect("a code of ours")];
            let challenge = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, asked["code_verifier"].as_bytes()));
            assert_eq!(
                (page["code_challenge"].as_str(), page["code_challenge_method"].as_str()),
                (&*challenge, "S256")
            );
            assert_eq!(page["redirect_uri"], asked["redirect_uri"]);
            page["scope"].clone()
        }
        _ => book.tokens[&asked["refresh_token"].replace("refresh", "token")].clone(),
    };
    let scope = if realm.ways.stingy { "read".to_owned() } else { scope };
    let number = book.exchanged.len();
    book.tokens.insert(format!("token-{number}"), scope.clone());
    book.exchanged.push(asked);
    Json(json!({
        "access_token": format!("token-{number}"), "refresh_token": format!("refresh-{number}"),
        "token_type": "Bearer", "expires_in": if realm.ways.short { 1 } else { 3600 }, "scope": scope,
    }))
    .into_response()
}

async fn prompts(State(realm): State<Arc<Inner>>, headers: HeaderMap, Json(request): Json<Value>) -> Response {
    let metadata = format!("resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"", realm.url);
    let refuse = |status: StatusCode, challenge: String| {
        (status, [(header::WWW_AUTHENTICATE, format!("Bearer {challenge}, {metadata}"))]).into_response()
    };
    let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let scopes = token.and_then(|token| realm.book.lock().expect("nobody panics with it").tokens.get(token).cloned());
    let Some(scopes) = scopes else { return refuse(StatusCode::UNAUTHORIZED, "scope=\"read\"".to_owned()) };
    if request["params"]["name"] == "written" && !scopes.split(' ').any(|scope| scope == "write") {
        let challenge = "error=\"insufficient_scope\", scope=\"write\"";
        return refuse(StatusCode::FORBIDDEN, challenge.to_owned());
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
