//! Fetches the keys of an authorization server. Nothing that a caller sends decides which URL is fetched.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use ureq::{
    Agent,
    tls::{RootCerts, TlsConfig},
};

use super::url::{is_loopback, path_of};

/// The time that one HTTP request may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes that are read of a document.
const MAX_BYTES: u64 = 1 << 20;

/// Fetches the issuer's keys, the document of RFC 7517. Blocks.
///
/// # Errors
///
/// Sentences for the log, one for each URL that was tried.
pub(super) fn keys(issuer: &str, jwks_uri: Option<&str>) -> Result<Value, String> {
    let agent = agent(is_loopback(issuer));
    let uri = match jwks_uri {
        Some(uri) => uri.to_owned(),
        None => discover(&agent, issuer)?,
    };
    if !is_safe(&uri, issuer) {
        return Err(format!("expected an https URL, got {uri}"));
    }
    get(&agent, &uri)
}

/// Discovers the URL of the keys, by RFC 8414 or OpenID Connect Discovery.
fn discover(agent: &Agent, issuer: &str) -> Result<String, String> {
    let base = issuer.trim_end_matches('/');
    let path = path_of(base);
    let origin = base.strip_suffix(path).unwrap_or(base);
    let mut urls = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{base}/.well-known/openid-configuration"),
    ];
    if !path.is_empty() {
        urls.push(format!("{origin}/.well-known/openid-configuration{path}"));
    }
    let mut reasons = Vec::new();
    for url in urls {
        if !is_safe(&url, issuer) {
            return Err(format!("expected an https URL, got {url}"));
        }
        match get(agent, &url) {
            // Otherwise one authorization server could impersonate another (RFC 8414, section 3.3).
            Ok(document) if document["issuer"] != issuer => {
                reasons.push(format!("{url}: the document is of another issuer than {issuer}"));
            }
            Ok(document) => match document["jwks_uri"].as_str() {
                Some(uri) => return Ok(uri.to_owned()),
                None => reasons.push(format!("{url}: `jwks_uri` is missing")),
            },
            Err(reason) => reasons.push(reason),
        }
    }
    Err(reasons.join("; "))
}

/// Returns whether a URL may be fetched: https, or this machine if the operator's issuer is there too.
fn is_safe(url: &str, issuer: &str) -> bool {
    url.starts_with("https://") || (is_loopback(url) && is_loopback(issuer))
}

fn get(agent: &Agent, url: &str) -> Result<Value, String> {
    let failed = |error: ureq::Error| format!("{url}: {error}");
    let mut response = agent.get(url).header("Accept", "application/json").call().map_err(failed)?;
    let text = response.body_mut().with_config().limit(MAX_BYTES).read_to_string().map_err(failed)?;
    serde_json::from_str(&text).map_err(|error| format!("{url}: invalid JSON: {error}"))
}

fn agent(is_local: bool) -> Agent {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::WebPki)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .build();
    let config = Agent::config_builder().tls_config(tls).timeout_global(Some(TIMEOUT)).max_redirects(0);
    // A proxy of the environment cannot reach this machine's loopback addresses.
    let config = if is_local { config.proxy(None) } else { config };
    config.build().into()
}
