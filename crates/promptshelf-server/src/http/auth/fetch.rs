//! Asks the authorization server where its keys are and what they are. Nothing
//! that a caller says decides what is fetched.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use ureq::{
    Agent,
    tls::{RootCerts, TlsConfig},
};

const PATIENCE: Duration = Duration::from_secs(5);
const MAX_BYTES: u64 = 1 << 20;

/// The issuer's keys, as the document of RFC 7517. Blocks.
pub(super) fn keys(issuer: &str, jwks_uri: Option<&str>) -> Result<Value, String> {
    let agent = agent(is_loopback(issuer));
    let uri = match jwks_uri {
        Some(uri) => uri.to_owned(),
        None => discover(&agent, issuer)?,
    };
    if !is_safe(&uri, issuer) {
        return Err(format!("{uri} is not https"));
    }
    get(&agent, &uri)
}

/// Where the keys are: by OpenID Connect's discovery, or by RFC 8414.
fn discover(agent: &Agent, issuer: &str) -> Result<String, String> {
    let base = issuer.trim_end_matches('/');
    let path = super::challenge::path_of(base);
    let origin = base.strip_suffix(path).unwrap_or(base);
    let mut places = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{base}/.well-known/openid-configuration"),
    ];
    if !path.is_empty() {
        places.push(format!("{origin}/.well-known/openid-configuration{path}"));
    }
    let mut reasons = Vec::new();
    for place in places {
        if !is_safe(&place, issuer) {
            return Err(format!("{place} is not https"));
        }
        match get(agent, &place) {
            // Otherwise one server could speak for another (RFC 8414, section 3.3).
            Ok(document) if document["issuer"] != issuer => {
                reasons.push(format!("{place} speaks for another issuer"));
            }
            Ok(document) => match document["jwks_uri"].as_str() {
                Some(uri) => return Ok(uri.to_owned()),
                None => reasons.push(format!("{place} names no keys")),
            },
            Err(reason) => reasons.push(reason),
        }
    }
    Err(reasons.join("; "))
}

/// Whether an address may be asked: with https, or on this machine if that is
/// where the operator says that the issuer is.
fn is_safe(url: &str, issuer: &str) -> bool {
    url.starts_with("https://") || (is_loopback(url) && is_loopback(issuer))
}

/// Whether a URL is `http` on this machine.
pub(super) fn is_loopback(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

fn get(agent: &Agent, url: &str) -> Result<Value, String> {
    let failed = |error: ureq::Error| format!("{url}: {error}");
    let mut answer = agent.get(url).header("Accept", "application/json").call().map_err(failed)?;
    let text = answer.body_mut().with_config().limit(MAX_BYTES).read_to_string().map_err(failed)?;
    serde_json::from_str(&text).map_err(|_| format!("{url} gives no JSON"))
}

fn agent(is_local: bool) -> Agent {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::WebPki)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .build();
    let config = Agent::config_builder().tls_config(tls).timeout_global(Some(PATIENCE)).max_redirects(0);
    // No proxy leads back to this machine.
    let config = if is_local { config.proxy(None) } else { config };
    config.build().into()
}
