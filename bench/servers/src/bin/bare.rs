//! The bare handler: the least that an axum application needs for these answers. It parses the envelope with serde,
//! concatenates strings, copies prepared list pages, and completes with the bare matcher. Over stdio it is a loop
//! over lines.
//!
//! It validates nothing: no headers, revisions, bounds or arguments.

use std::{borrow::Cow, collections::HashMap, io::Write as _, sync::Arc};

use anyhow::Result;
use axum::{Router, body::Body, extract::State, http::header, response::Response, routing::post};
use bench_servers::{Invocation, LISTED_ARGUMENTS, listed_description, listed_name, words};
use bytes::Bytes;
use nucleo_matcher::{
    Config, Matcher,
    pattern::{AtomKind, CaseMatching, Normalization, Pattern},
};
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize, Default)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<HashMap<Cow<'a, str>, Cow<'a, str>>>,
    #[serde(borrow)]
    cursor: Option<Cow<'a, str>>,
    #[serde(borrow)]
    argument: Option<Typed<'a>>,
}

#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    value: Cow<'a, str>,
}

#[derive(Serialize)]
struct Messages<'a> {
    messages: &'a [Message<'a>],
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Content<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Content<'a> {
    Text { text: Cow<'a, str> },
}

struct Shelf {
    invocation: Invocation,
    pages: HashMap<usize, Vec<u8>>,
    values: HashMap<&'static str, Vec<String>>,
}

impl Shelf {
    fn new(invocation: Invocation) -> Result<Shelf> {
        let arguments: Vec<_> = LISTED_ARGUMENTS
            .iter()
            .map(|(name, description, required)| json!({ "name": name, "description": description, "required": required }))
            .collect();
        let mut pages = HashMap::new();
        let mut begin = 0;
        while begin < invocation.prompts {
            let range = invocation.page(Some(&begin.to_string()));
            let prompts: Vec<_> = range
                .clone()
                .map(|at| json!({ "name": listed_name(at), "description": listed_description(at), "arguments": arguments }))
                .collect();
            let mut page = json!({ "prompts": prompts });
            if range.end < invocation.prompts {
                page["nextCursor"] = range.end.to_string().into();
            }
            pages.insert(begin, serde_json::to_vec(&page)?);
            begin = range.end;
        }
        let values = HashMap::from([("few", invocation.values("few")?), ("many", invocation.values("many")?)]);
        Ok(Shelf { pages, values, invocation })
    }

    fn answer(&self, body: &[u8]) -> Option<Vec<u8>> {
        let envelope: Envelope<'_> = serde_json::from_slice(body).ok()?;
        let params = envelope.params.unwrap_or_default();
        let mut out = Vec::with_capacity(1_024);
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(envelope.id?.get().as_bytes());
        out.extend_from_slice(br#","result":"#);
        match &*envelope.method {
            "prompts/get" => self.get(&params, &mut out)?,
            "prompts/list" => {
                let begin = self.invocation.page(params.cursor.as_deref()).start;
                out.extend_from_slice(self.pages.get(&begin)?);
            }
            "completion/complete" => self.complete(&params.argument?, &mut out)?,
            "initialize" => serde_json::to_writer(
                &mut out,
                &json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": { "prompts": {} },
                    "serverInfo": { "name": "bare", "version": "0" },
                }),
            )
            .ok()?,
            _ => return None,
        }
        out.push(b'}');
        Some(out)
    }

    fn get(&self, params: &Params<'_>, out: &mut Vec<u8>) -> Option<()> {
        let given = |name: &str| params.arguments.as_ref().and_then(|given| given.get(name)).map(|value| &**value);
        let text = |text| Message { role: "user", content: Content::Text { text } };
        let messages = match params.name.as_deref()? {
            "one" => vec![text([words::ONE_BEFORE, given("change")?, words::ONE_AFTER].concat().into())],
            _ => return None,
        };
        serde_json::to_writer(out, &Messages { messages: &messages }).ok()
    }

    fn complete(&self, typed: &Typed<'_>, out: &mut Vec<u8>) -> Option<()> {
        let values = self.values.get(&*typed.name)?;
        let pattern = Pattern::new(&typed.value, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy);
        let mut found = pattern.match_list(values, &mut Matcher::new(Config::DEFAULT));
        let total = found.len();
        found.truncate(100);
        let best: Vec<&str> = found.into_iter().map(|(value, _)| value.as_str()).collect();
        let result = json!({ "completion": { "values": best, "total": total, "hasMore": total > best.len() } });
        serde_json::to_writer(out, &result).ok()
    }

    fn over_stdio(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        for line in std::io::stdin().lines() {
            if let Some(mut answer) = self.answer(line?.as_bytes()) {
                answer.push(b'\n');
                out.write_all(&answer)?;
                out.flush()?;
            }
        }
        Ok(())
    }
}

async fn handle(State(shelf): State<Arc<Shelf>>, body: Bytes) -> Response {
    let mut response = match shelf.answer(&body) {
        Some(answer) => Response::new(Body::from(answer)),
        None => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = axum::http::StatusCode::BAD_REQUEST;
            response
        }
    };
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

#[tokio::main]
async fn main() -> Result<()> {
    let shelf = Shelf::new(Invocation::read()?)?;
    let port = shelf.invocation.port;
    if port == 0 {
        return shelf.over_stdio();
    }
    let routes = Router::new().route("/mcp", post(handle)).with_state(Arc::new(shelf));
    let listener =
        axum::serve::ListenerExt::tap_io(tokio::net::TcpListener::bind(("127.0.0.1", port)).await?, |stream| {
            // Small answers must not wait for an acknowledgement. The call fails on a closed socket, which needs no
            // option.
            stream.set_nodelay(true).ok();
        });
    Ok(axum::serve(listener, routes).await?)
}
