//! Conversion of a transcript's messages to the bytes and headers of a request.

use http::Method;
use promptshelf::mcp::Revision;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::script::Head;
use crate::wire::{Request, usual_headers};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Expands each `‹…›`. `named` returns the value that an earlier response bound to a name.
pub(crate) fn expand(text: &str, named: &dyn Fn(&str) -> Option<String>) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('‹') {
        out.extend_from_slice(before.as_bytes());
        let (inside, after) = after.split_once('›').ok_or("‹ without ›")?;
        rest = after;
        let times = inside.rsplit_once('×').and_then(|(what, times)| Some((what, times.parse::<usize>().ok()?)));
        if let Some((what, times)) = times {
            for turn in 0..times {
                match what.split_once('#') {
                    Some((left, right)) => out.extend_from_slice(format!("{left}{turn}{right}").as_bytes()),
                    None => out.extend_from_slice(what.as_bytes()),
                }
            }
        } else if let Some(byte) = inside.strip_prefix("0x") {
            out.push(u8::from_str_radix(byte, 16).map_err(|_| format!("{inside} is no byte"))?);
        } else {
            let value = named(inside).ok_or_else(|| format!("no earlier answer defined ‹{inside}›"))?;
            out.extend_from_slice(value.as_bytes());
        }
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// Puts a message onto one line and adds the members of every message. Other members stay as written, duplicate keys
/// included.
pub(crate) fn complete(text: &[u8], revision: Option<Revision>) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        params: Option<&'a RawValue>,
    }
    let elsewhere = |error: &dyn std::fmt::Display| format!("what is no JSON object goes into ~~~raw: {error}");
    let text = str::from_utf8(text).map_err(|error| elsewhere(&error))?;
    let line: String = text.lines().map(str::trim).collect();
    let message: Message<'_> = serde_json::from_str(&line).map_err(|error| elsewhere(&error))?;
    let body = line.strip_prefix('{').ok_or("a message begins with {")?;
    if !revision.is_some_and(Revision::is_modern) || line.contains("\"_meta\"") {
        return Ok(format!(r#"{{"jsonrpc":"2.0",{body}"#));
    }
    let body = match message.params.map(RawValue::get) {
        None => format!(r#"{},"params":{{{META}}}}}"#, body.strip_suffix('}').ok_or("a message ends with }")?),
        Some("{}") => body.replacen("\"params\":{}", &format!(r#""params":{{{META}}}"#), 1),
        Some(params) if params.starts_with('{') => body.replacen(params, &format!("{{{META},{}", &params[1..]), 1),
        Some(_) => body.to_owned(),
    };
    Ok(format!(r#"{{"jsonrpc":"2.0",{body}"#))
}

/// Returns the HTTP request that carries a message, with the headers that its revision requires.
pub(crate) fn request(body: Vec<u8>, head: &Head, revision: Option<Revision>) -> Request {
    let method = head.verb.clone().unwrap_or(Method::POST);
    let mut headers = usual_headers(&body, &method, revision.filter(|_| !head.bare).map(Revision::as_str));
    for (name, _) in &head.headers {
        headers.remove(name);
    }
    for (name, value) in &head.headers {
        headers.append(name, value.clone());
    }
    for name in &head.without {
        headers.remove(name);
    }
    Request { method, headers, body: body.into() }
}
