//! A test endpoint, and requests that are valid unless a test changes them.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use promptshelf_core::{CatalogHandle, Message, PromptDefinition, check};
use promptshelf_mcp::{HttpBody, HttpOptions, HttpService, Server};
use promptshelf_service::Service;
use serde_json::{Value, json};
use tower_service::Service as _;

use crate::library;

pub(super) const MODERN: &str = "2026-07-28";
pub(super) const VERSION: &str = "mcp-protocol-version";

/// An endpoint of the small library.
pub(super) struct Endpoint {
    pub(super) service: HttpService,
    pub(super) server: Server,
    pub(super) handle: CatalogHandle,
}

impl Endpoint {
    pub(super) fn new() -> Endpoint {
        Endpoint::with(HttpOptions::default())
    }

    /// Creates an endpoint of a server.
    pub(super) fn of(server: Server, handle: CatalogHandle, options: HttpOptions) -> Endpoint {
        Endpoint { service: server.http(options), server, handle }
    }

    /// Adds prompts with a non-ASCII name, with a panic and with a long text.
    pub(super) fn with(options: HttpOptions) -> Endpoint {
        let mut definitions = library::definitions("Greets someone", "first");
        definitions.prompts.push(PromptDefinition::template("grüße", "Grüß Gott.").description("Grüßt").into());
        definitions
            .prompts
            .push(PromptDefinition::new("panics", |_| panic!("a test wants it")).description("Panics").into());
        let long = |_: &_| Ok(vec![Message::user("x".repeat(7 << 20))]);
        definitions.prompts.push(PromptDefinition::new("long", long).description("Says much").into());
        let handle = CatalogHandle::new(check(definitions, None).catalog);
        Endpoint::of(Server::new(Service::new(handle.clone())), handle, options)
    }

    /// Sends a request, and returns the response with its unread body.
    pub(super) async fn open(&self, request: Request<Full<Bytes>>) -> Response<HttpBody> {
        self.service.clone().call(request).await.expect("no request fails")
    }

    /// Sends a request, and reads the response.
    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        let (head, body) = self.open(request).await.into_parts();
        let body = body.collect().await.expect("no body fails").to_bytes();
        Answer { status: head.status.as_u16(), headers: head.headers, body }
    }

    pub(super) async fn ask(&self, ask: Ask) -> Answer {
        self.send(ask.request()).await
    }
}

/// A response with its complete body.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("JSON, and no {:?}", self.body))
    }

    /// Returns the status, the error code and the ID of an error.
    #[track_caller]
    pub(super) fn error(&self) -> (u16, i64, Option<Value>) {
        let json = self.json();
        let code = json["error"]["code"].as_i64().unwrap_or_else(|| panic!("an error, and no {json}"));
        assert_eq!(self.headers["content-type"], "application/json");
        (self.status, code, json.get("id").cloned())
    }

    /// Returns the result of a successful response.
    #[track_caller]
    pub(super) fn result(&self) -> Value {
        let json = self.json();
        assert_eq!(self.status, 200, "{json}");
        json.get("result").cloned().unwrap_or_else(|| panic!("a result, and no {json}"))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("ASCII"))
    }
}

/// A request builder.
pub(super) struct Ask {
    method: Method,
    headers: HeaderMap,
    body: Bytes,
}

impl Ask {
    /// A request without a message.
    pub(super) fn verb(method: Method) -> Ask {
        Ask { method, headers: HeaderMap::new(), body: Bytes::new() }.header("host", "localhost:8000")
    }

    /// A message without a protocol version.
    pub(super) fn raw(body: impl Into<Bytes>) -> Ask {
        Ask { body: body.into(), ..Ask::verb(Method::POST) }
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
    }

    pub(super) fn message(message: &Value) -> Ask {
        Ask::raw(message.to_string())
    }

    /// A legacy request.
    pub(super) fn legacy(revision: &str, method: &str, params: &Value) -> Ask {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        Ask::message(&message).header(VERSION, revision)
    }

    /// A modern request with its required headers.
    pub(super) fn modern(method: &str, params: Value) -> Ask {
        let name = params.get("name").or(params.get("uri")).and_then(Value::as_str).map(str::to_owned);
        let message = modern(&json!(1), method, params);
        let ask = Ask::message(&message).header(VERSION, MODERN).header("mcp-method", method);
        match name {
            Some(name) => ask.header("mcp-name", &name),
            None => ask,
        }
    }

    pub(super) fn get_stream() -> Ask {
        Ask::verb(Method::GET).header("accept", "text/event-stream")
    }

    /// Replaces a header.
    pub(super) fn header(mut self, name: &'static str, value: &str) -> Ask {
        self.headers.insert(HeaderName::from_static(name), value_of(value));
        self
    }

    /// Adds a further header of the same name.
    pub(super) fn also(mut self, name: &'static str, value: &str) -> Ask {
        self.headers.append(HeaderName::from_static(name), value_of(value));
        self
    }

    pub(super) fn without(mut self, name: &str) -> Ask {
        self.headers.remove(name);
        self
    }

    pub(super) fn body(self, message: &Value) -> Ask {
        Ask { body: message.to_string().into(), ..self }
    }

    pub(super) fn request(self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body));
        *request.method_mut() = self.method;
        *request.headers_mut() = self.headers;
        request
    }
}

/// Returns a header value, ASCII or not.
fn value_of(text: &str) -> HeaderValue {
    HeaderValue::from_bytes(text.as_bytes()).expect("a header can hold it")
}

/// The body of a modern request.
pub(super) fn modern(id: &Value, method: &str, mut params: Value) -> Value {
    params["_meta"] = meta(MODERN);
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub(super) fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

pub(super) fn greet() -> Value {
    json!({ "name": "greet", "arguments": { "name": "Ada" } })
}

pub(super) fn initialize(revision: &str) -> Value {
    json!({
        "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    })
}

/// Returns the next chunk of a stream; `None` at its end.
pub(super) async fn piece(body: &mut HttpBody) -> Option<String> {
    let frame = body.frame().await?.expect("no body fails");
    Some(String::from_utf8(frame.into_data().expect("data").to_vec()).expect("UTF-8"))
}

/// Returns the next messages of a stream, without comments.
pub(super) async fn events(body: &mut HttpBody) -> Vec<Value> {
    loop {
        let piece = piece(body).await.expect("the stream goes on");
        let messages: Vec<Value> = piece
            .split_terminator("\n\n")
            .filter(|event| !event.starts_with(':'))
            .map(|event| {
                let data = event.strip_prefix("event: message\ndata: ").expect("an event with a message");
                serde_json::from_str(data).expect("JSON in one line")
            })
            .collect();
        if !messages.is_empty() {
            return messages;
        }
    }
}
