//! The challenge of a refusal (RFC 6750): the value of `WWW-Authenticate`, from which a client learns
//! how to obtain a token.

use axum::http::HeaderValue;

use super::{metadata, options::SignInOptions};

/// Returns the value of `WWW-Authenticate`.
pub(super) fn challenge(
    options: &SignInOptions,
    error: Option<&str>,
    description: Option<&str>,
    scopes: &[String],
) -> Option<HeaderValue> {
    let metadata = metadata::document_url(options);
    // `offline_access` asks the authorization server for a refresh token; it is not a scope of this resource.
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).filter(|scope| *scope != "offline_access").collect();
    let scope = (!scopes.is_empty()).then(|| scopes.join(" "));
    let parameters = [
        ("error", error),
        ("error_description", description),
        ("resource_metadata", metadata.as_deref()),
        ("scope", scope.as_deref()),
    ];
    let parameters: Vec<String> =
        parameters.into_iter().filter_map(|(name, value)| Some(format!("{name}=\"{}\"", quotable(value?)))).collect();
    HeaderValue::from_str(format!("Bearer {}", parameters.join(", ")).trim_end()).ok()
}

/// Removes the characters that would end a quoted string.
fn quotable(text: &str) -> String {
    text.chars().filter(|c| (' '..='~').contains(c) && !matches!(c, '"' | '\\')).collect()
}
