//! Discovery of a server's authorization server, and the requirements on its metadata.
//!
//! The SDK falls back to endpoints at the server's own origin if the server publishes no metadata (specification
//! 2025-03-26, *Fallbacks for Servers without Metadata Discovery*). Such endpoints may sign a user in, but they never
//! receive credentials of an earlier sign-in: a server could otherwise collect the refresh tokens of its authorization
//! server by not publishing it any more.

use std::time::Duration;

use rmcp::transport::auth::{AuthorizationManager, AuthorizationMetadata};
use url::Url;

use crate::{error::ClientError, http::http_client, secure_url::is_secure_url};

/// The largest metadata of an authorization server, in bytes.
const MAX_METADATA_BYTES: usize = 256 << 10;
/// The time for the metadata of an issuer, with all the URLs where it can be.
const METADATA_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct AuthorizationServer {
    pub(super) metadata: AuthorizationMetadata,
    /// Whether the server published it. Otherwise the endpoints are defaults.
    pub(super) is_published: bool,
}

impl AuthorizationServer {
    pub(super) async fn discover(
        manager: &AuthorizationManager,
        challenge: Option<&str>,
        server: &str,
    ) -> Result<AuthorizationServer, ClientError> {
        let found = manager.resolve_metadata_from_challenge(challenge).await.map_err(ClientError::sign_in)?;
        check_endpoints(&found.metadata, server)?;
        Ok(AuthorizationServer { is_published: found.source.is_discovered(), metadata: found.metadata })
    }

    /// Reads the metadata of an issuer at its own well-known URLs (RFC 8414, section 3.1).
    ///
    /// An MCP server can name a URL of its own below `/.well-known/` as its authorization server. The SDK does not compare
    /// the issuer of what it finds there, so that the server could give the name of another issuer to its own token
    /// endpoint. A secret is only sent to endpoints that its issuer publishes.
    pub(super) async fn of_issuer(issuer: &str) -> Result<AuthorizationMetadata, ClientError> {
        let read = tokio::time::timeout(METADATA_TIMEOUT, published_by(issuer)).await;
        read.unwrap_or(Err(ClientError::TimedOut { after: METADATA_TIMEOUT }))
    }

    /// Returns the placeholder of an unknown authorization server. Its name never resolves (RFC 6761, section 6.4).
    pub(super) fn unknown() -> AuthorizationServer {
        let mut metadata = AuthorizationMetadata::default();
        metadata.authorization_endpoint = "https://unknown.invalid/".to_owned();
        metadata.token_endpoint = "https://unknown.invalid/".to_owned();
        AuthorizationServer { metadata, is_published: false }
    }

    pub(super) fn issuer(&self) -> Option<&str> {
        self.metadata.issuer.as_deref().filter(|_| self.is_published)
    }

    pub(super) fn has_issued(&self, stored_issuer: Option<&str>) -> bool {
        self.issuer().is_some() && self.issuer() == stored_issuer
    }

    /// Requires PKCE with S256. Metadata without the member means that it is not supported (specification 2025-11-25,
    /// *Authorization Code Protection*).
    pub(super) fn check_pkce(&self) -> Result<(), ClientError> {
        let methods = self.metadata.code_challenge_methods_supported.as_deref().unwrap_or_default();
        if !self.is_published || methods.iter().any(|method| method == "S256") {
            return Ok(());
        }
        Err(ClientError::sign_in_failed(format!(
            "the authorization server {} does not announce PKCE with S256 (`code_challenge_methods_supported`), so an \
             authorization code could be stolen",
            self.metadata.issuer.as_deref().unwrap_or(&self.metadata.authorization_endpoint)
        )))
    }
}

async fn published_by(issuer: &str) -> Result<AuthorizationMetadata, ClientError> {
    let base = Url::parse(issuer)
        .map_err(|error| ClientError::sign_in_failed(format!("the issuer {issuer} is not a URL: {error}")))?;
    let client = http_client()?;
    let mut reason = "no metadata was found".to_owned();
    for url in well_known(&base) {
        match fetch(&client, url).await {
            Ok(metadata) if metadata.issuer.as_deref().is_some_and(|found| is_same_issuer(found, issuer)) => {
                check_endpoints(&metadata, issuer)?;
                return Ok(metadata);
            }
            Ok(_) => reason = "its metadata has another issuer".to_owned(),
            Err(error) => reason = error,
        }
    }
    Err(ClientError::sign_in_failed(format!(
        "the authorization server {issuer} does not publish its endpoints: {reason}"
    )))
}

/// Returns the URLs of an issuer's metadata: of OAuth, and of OpenID Connect in both forms.
fn well_known(issuer: &Url) -> [Url; 3] {
    let path = issuer.path().trim_end_matches('/');
    let at = |path: String| {
        let mut url = issuer.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.set_path(&path);
        url
    };
    [
        at(format!("/.well-known/oauth-authorization-server{path}")),
        at(format!("/.well-known/openid-configuration{path}")),
        at(format!("{path}/.well-known/openid-configuration")),
    ]
}

/// Compares issuers. Some servers publish theirs with a slash at the end, and are configured without it.
pub(super) fn is_same_issuer(one: &str, other: &str) -> bool {
    let without_slash = |issuer: &str| issuer.strip_suffix('/').unwrap_or(issuer).to_owned();
    without_slash(one) == without_slash(other)
}

async fn fetch(client: &reqwest::Client, url: Url) -> Result<AuthorizationMetadata, String> {
    let unreachable = |error: reqwest::Error| error.without_url().to_string();
    let mut response = client.get(url).send().await.map_err(unreachable)?;
    if !response.status().is_success() {
        return Err(format!("it answered with HTTP {}", response.status().as_u16()));
    }
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(unreachable)? {
        body.extend_from_slice(&part);
        if body.len() > MAX_METADATA_BYTES {
            return Err(format!("its metadata has more than {MAX_METADATA_BYTES} bytes"));
        }
    }
    serde_json::from_slice(&body).map_err(|error| format!("its metadata is malformed: {error}"))
}

/// Requires `https` for endpoints that are not on this machine: codes and tokens must be encrypted, and only web pages
/// may be opened.
fn check_endpoints(metadata: &AuthorizationMetadata, server: &str) -> Result<(), ClientError> {
    let endpoints = [&metadata.authorization_endpoint, &metadata.token_endpoint];
    for endpoint in endpoints.into_iter().chain(&metadata.registration_endpoint) {
        if !is_secure_url(endpoint) {
            return Err(ClientError::sign_in_failed(format!(
                "the authorization endpoint {endpoint} of {server} is not https"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn issuer_that_never_answers_is_given_up() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("http://{}", silent.local_addr().unwrap());
        let found = AuthorizationServer::of_issuer(&issuer).await;
        assert!(matches!(found, Err(ClientError::TimedOut { after: METADATA_TIMEOUT })), "{found:?}");
    }
}
