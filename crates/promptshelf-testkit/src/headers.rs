//! The HTTP headers that a well-behaved client sends with a message.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde::Deserialize;
use serde_json::Value;

static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
static MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
static MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Whether a revision is of the modern era, without a handshake.
pub fn is_modern(revision: &str) -> bool {
    revision >= "2026-07-28"
}

/// Returns the headers that a revision requires; without a revision, those of any message.
pub fn usual_headers(body: &[u8], method: &Method, revision: Option<&str>) -> HeaderMap {
    #[derive(Default, Deserialize)]
    struct Message {
        method: Option<String>,
        params: Option<Params>,
    }
    #[derive(Default, Deserialize)]
    struct Params {
        name: Option<Value>,
        uri: Option<Value>,
        #[serde(rename = "_meta")]
        meta: Option<Value>,
    }
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    if *method == Method::GET {
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
    } else {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let message: Message = serde_json::from_slice(body).unwrap_or_default();
    let Some(revision) = revision else { return headers };
    // `initialize` negotiates the revision, so no header can name it yet.
    if !is_modern(revision) && message.method.as_deref() == Some("initialize") {
        return headers;
    }
    let params = message.params.unwrap_or_default();
    let in_body = params.meta.as_ref().and_then(|meta| meta["io.modelcontextprotocol/protocolVersion"].as_str());
    headers.insert(PROTOCOL_VERSION.clone(), encoded(in_body.unwrap_or(revision)));
    if !is_modern(revision) {
        return headers;
    }
    let name = match message.method.as_deref() {
        Some("prompts/get" | "tools/call") => params.name,
        Some("resources/read") => params.uri,
        _ => None,
    };
    if let Some(method) = message.method {
        headers.insert(MCP_METHOD.clone(), encoded(&method));
    }
    if let Some(Value::String(name)) = name {
        headers.insert(MCP_NAME.clone(), encoded(&name));
    }
    headers
}

/// Returns a header value, in Base64 if its characters require that.
fn encoded(value: &str) -> HeaderValue {
    let plain = value.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && value.trim() == value
        && !value.starts_with("=?base64?");
    let text = if plain { value.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(value)) };
    HeaderValue::from_str(&text).expect("printable characters")
}
