//! What clients are told about how to get a token: the challenge of a refusal
//! (RFC 6750) and the metadata of the protected resource (RFC 9728).

use axum::http::HeaderValue;
use serde_json::json;

use super::SignInOptions;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The value of `WWW-Authenticate`.
pub(super) fn challenge(
    options: &SignInOptions,
    error: Option<&str>,
    description: Option<&str>,
    scopes: &[String],
) -> Option<HeaderValue> {
    let metadata = metadata_url(options);
    // A client may acquire again later what it has; it is no scope of ours to ask for.
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).filter(|scope| *scope != "offline_access").collect();
    let scope = (!scopes.is_empty()).then(|| scopes.join(" "));
    let parameters = [
        ("error", error),
        ("error_description", description),
        ("resource_metadata", metadata.as_deref()),
        ("scope", scope.as_deref()),
    ];
    let written: Vec<String> =
        parameters.into_iter().filter_map(|(name, value)| Some(format!("{name}=\"{}\"", quotable(value?)))).collect();
    HeaderValue::from_str(format!("Bearer {}", written.join(", ")).trim_end()).ok()
}

/// A text without what would end a quoted string.
fn quotable(text: &str) -> String {
    text.chars().filter(|c| (' '..='~').contains(c) && !matches!(c, '"' | '\\')).collect()
}

/// The document that says which authorization server's tokens are taken.
pub(super) fn metadata(options: &SignInOptions) -> Option<String> {
    let (issuer, resource) = (options.issuer.as_ref()?, options.resource.as_ref()?);
    let mut document = json!({
        "resource": resource,
        "authorization_servers": [issuer.issuer],
        "bearer_methods_supported": ["header"],
    });
    let scopes: Vec<&String> = options.scopes_supported.iter().filter(|scope| *scope != "offline_access").collect();
    if !scopes.is_empty() {
        document["scopes_supported"] = json!(scopes);
    }
    Some(document.to_string())
}

/// Where that document stands: the well-known path is put between the host and
/// the path of the resource (RFC 9728, section 3.1).
pub(super) fn metadata_url(options: &SignInOptions) -> Option<String> {
    options.issuer.as_ref()?;
    let resource = options.resource.as_deref()?;
    let path = path_of(resource);
    let origin = resource.strip_suffix(path)?;
    Some(format!("{origin}{WELL_KNOWN}{}", path.trim_end_matches('/')))
}

/// A URL's path.
pub(super) fn path_of(url: &str) -> &str {
    let host = url.find("://").map_or(0, |scheme| scheme + 3);
    url[host..].find('/').map_or("", |slash| &url[host + slash..])
}
