//! Fetches the keys of an authorization server. Nothing that a caller sends decides which URL is fetched.

use std::{error::Error as _, time::Duration};

use reqwest::{Certificate, Client, redirect::Policy};
use serde_json::Value;

use super::{
    options::IssuerOptions,
    url::{is_loopback, path_of},
};

const TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes that are read of a document.
const MAX_BYTES: usize = 1 << 20;

/// Fetches the issuer's keys, the document of RFC 7517.
pub(super) async fn keys(options: &IssuerOptions) -> Result<Value, String> {
    let client = client(options.ca_certificates.as_deref(), &options.issuer)?;
    let uri = match &options.jwks_uri {
        // The operator has named it, so it can be on this machine although the issuer is not.
        Some(uri) if uri.starts_with("https://") || is_loopback(uri) => uri.clone(),
        Some(uri) => return Err(insecure(uri)),
        None => discover(&client, &options.issuer).await?,
    };
    get(&client, &uri).await
}

/// Discovers the URL of the keys, by RFC 8414 or OpenID Connect Discovery.
async fn discover(client: &Client, issuer: &str) -> Result<String, String> {
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
            return Err(insecure(&url));
        }
        match get(client, &url).await {
            // Otherwise one authorization server could impersonate another (RFC 8414, section 3.3).
            Ok(document) if document["issuer"] != issuer => {
                reasons.push(format!("{url}: the document is of another issuer than {issuer}"));
            }
            Ok(document) => match document["jwks_uri"].as_str() {
                Some(uri) if is_safe(uri, issuer) => return Ok(uri.to_owned()),
                Some(uri) => return Err(insecure(uri)),
                None => reasons.push(format!("{url}: `jwks_uri` is missing")),
            },
            Err(reason) => reasons.push(reason),
        }
    }
    Err(reasons.join("; "))
}

/// Returns whether a discovered URL may be fetched: https, or this machine if the operator's issuer is there too.
fn is_safe(url: &str, issuer: &str) -> bool {
    url.starts_with("https://") || (is_loopback(url) && is_loopback(issuer))
}

fn insecure(url: &str) -> String {
    format!("expected an https URL, got {url}")
}

async fn get(client: &Client, url: &str) -> Result<Value, String> {
    let failed = |error: reqwest::Error| format!("{url}: {}", reason(&error));
    // A proxy of the environment cannot reach this machine.
    let request = client.get(url).header("Accept", "application/json");
    let mut response = request.send().await.and_then(reqwest::Response::error_for_status).map_err(failed)?;
    // Redirects are not followed, and are not errors for the HTTP client.
    if !response.status().is_success() {
        return Err(format!("{url}: expected status 200, got {}", response.status().as_u16()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if bytes.len() + chunk.len() > MAX_BYTES {
            return Err(format!("{url}: the document has more than {MAX_BYTES} bytes"));
        }
        bytes.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&bytes).map_err(|error| format!("{url}: invalid JSON: {error}"))
}

/// Creates a client that trusts the system's certificate authorities (or those of `SSL_CERT_FILE`) and further ones, as
/// PEM. A new client for each fetch knows authorities that were added meanwhile.
pub(super) fn client(ca_certificates: Option<&[u8]>, issuer: &str) -> Result<Client, String> {
    let further = Certificate::from_pem_bundle(ca_certificates.unwrap_or_default());
    let further = further.map_err(|error| format!("invalid certificates: {}", reason(&error)))?;
    if ca_certificates.is_some() && further.is_empty() {
        return Err("expected certificates as PEM, with the line `-----BEGIN CERTIFICATE-----`".to_owned());
    }
    let builder = Client::builder()
        .tls_certs_merge(further)
        .timeout(TIMEOUT)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .http1_only()
        .user_agent(concat!("promptshelf/", env!("CARGO_PKG_VERSION")));
    // A proxy of the environment cannot reach this machine's loopback addresses.
    let builder = if is_loopback(issuer) { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| format!("cannot use the certificate authorities: {}", reason(&error)))
}

/// Returns the innermost reason of an error, which names the cause, with the remedy for an unknown authority.
fn reason(error: &reqwest::Error) -> String {
    let mut reason = match error.status() {
        Some(status) => format!("status {}", status.as_u16()),
        None if error.is_timeout() => format!("no answer within {} s", TIMEOUT.as_secs()),
        None => error.to_string(),
    };
    let mut cause = error.source();
    while let Some(inner) = cause {
        reason = inner.to_string();
        cause = inner.source();
    }
    if reason.contains("UnknownIssuer") {
        reason.push_str(
            " (the system does not trust the authority of this certificate: add it to the system's store, or name its \
             file as `ca-file` in [auth])",
        );
    }
    reason
}
