//! The headers that a well-behaved client sends with a message.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use promptshelf::mcp::Revision;
use serde::Deserialize;
use serde_json::Value;

static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
static MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
static MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Those that its revision demands; without one, those that carry any message.
pub(crate) fn usual_headers(body: &[u8], method: &Method, revision: Option<Revision>) -> HeaderMap {
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
    let asks = !revision.is_modern() && message.method.as_deref() == Some("initialize");
    // It asks which revision it is to be; no header can say so yet.
    if asks {
        return headers;
    }
    let params = message.params.unwrap_or_default();
    let said = params.meta.as_ref().and_then(|meta| meta["io.modelcontextprotocol/protocolVersion"].as_str());
    headers.insert(PROTOCOL_VERSION.clone(), encoded(said.unwrap_or(revision.as_str())));
    if !revision.is_modern() {
        return headers;
    }
    let name = match message.method.as_deref() {
        Some("prompts/get") => params.name,
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

/// A header's value, in Base64 where it could not be carried as it is.
fn encoded(value: &str) -> HeaderValue {
    let plain = value.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && value.trim() == value
        && !value.starts_with("=?base64?");
    let text = if plain { value.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(value)) };
    HeaderValue::from_str(&text).expect("printable characters")
}
