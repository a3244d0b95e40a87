//! Authentication by the running program: static tokens and tokens of an issuer.

pub(crate) mod issuer;
mod jwt;
mod refusals;
mod tokens;
mod trust;

use serde_json::{Value, json};

/// A response with its headers.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) challenge: Option<String>,
    pub(crate) headers: ureq::http::HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("JSON, and no {}", self.body))
    }

    pub(crate) fn prompts(&self) -> Vec<String> {
        let json = self.json();
        let prompts = json["result"]["prompts"].as_array().unwrap_or_else(|| panic!("a list, and no {json}"));
        prompts.iter().filter_map(|prompt| Some(prompt["name"].as_str()?.to_owned())).collect()
    }
}

/// Sends a request with headers, to a path below the endpoint.
pub(crate) fn ask_at(url: &str, path: &str, headers: &[(&str, &str)], method: &str, params: &Value) -> Answer {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut request = agent
        .post(format!("{url}{path}"))
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    read(request.send(message.to_string()).expect("the server answers"))
}

pub(crate) fn read(mut answer: ureq::http::Response<ureq::Body>) -> Answer {
    let challenge = answer.headers().get("www-authenticate").map(|value| value.to_str().expect("ASCII").to_owned());
    let body = answer.body_mut().read_to_string().expect("text");
    Answer { status: answer.status().as_u16(), challenge, headers: answer.headers().clone(), body }
}

/// Sends a request with a token.
pub(crate) fn ask(url: &str, token: &str, method: &str, params: &Value) -> Answer {
    ask_at(url, "", &[("Authorization", &format!("Bearer {token}"))], method, params)
}

/// A public prompt, a hidden one, and one that is listed without access.
pub(crate) const LIBRARY: &[(&str, &str)] = &[
    ("open.md", "---\ndescription: Open\n---\nOpen.\n"),
    ("hidden.md", "---\ndescription: Hidden\naccess: { roles: [editor] }\n---\nHidden.\n"),
    ("shown.md", "---\ndescription: Shown\naccess: { scopes: [\"prompts:write\"], visible: true }\n---\nShown.\n"),
];
