//! Discovery of a server's authorization server, and the requirements on its metadata.
//!
//! The SDK falls back to endpoints at the server's own origin if the server publishes no metadata (specification
//! 2025-03-26, *Fallbacks for Servers without Metadata Discovery*). Such endpoints may sign a user in, but they never
//! receive credentials of an earlier sign-in: a server could otherwise collect the refresh tokens of its authorization
//! server by not publishing it any more.

use rmcp::transport::auth::{AuthorizationManager, AuthorizationMetadata};

use crate::{error::ClientError, secure_url::is_secure};

/// The authorization server of an MCP server.
pub(super) struct AuthorizationServer {
    pub(super) metadata: AuthorizationMetadata,
    /// Whether the server published it. Otherwise the endpoints are defaults.
    pub(super) is_published: bool,
}

impl AuthorizationServer {
    /// Discovers the authorization server, beginning with the challenge of a refused request.
    ///
    /// # Errors
    ///
    /// [`ClientError::SignInFailed`] if the metadata cannot be fetched, or names endpoints without `https`.
    pub(super) async fn discover(
        manager: &AuthorizationManager,
        challenge: Option<&str>,
        server: &str,
    ) -> Result<AuthorizationServer, ClientError> {
        let found = manager.resolve_metadata_from_challenge(challenge).await.map_err(ClientError::sign_in)?;
        check_endpoints(&found.metadata, server)?;
        Ok(AuthorizationServer { is_published: found.source.is_discovered(), metadata: found.metadata })
    }

    /// Returns the placeholder of an unknown authorization server. Its name never resolves (RFC 6761, section 6.4).
    pub(super) fn unknown() -> AuthorizationServer {
        let mut metadata = AuthorizationMetadata::default();
        metadata.authorization_endpoint = "https://unknown.invalid/".to_owned();
        metadata.token_endpoint = "https://unknown.invalid/".to_owned();
        AuthorizationServer { metadata, is_published: false }
    }

    /// Returns the issuer that the server published.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.metadata.issuer.as_deref().filter(|_| self.is_published)
    }

    /// Returns whether it issued the credentials that were stored with this issuer.
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

/// Requires `https` for endpoints that are not on this machine: codes and tokens must be encrypted, and only web pages
/// may be opened.
fn check_endpoints(metadata: &AuthorizationMetadata, server: &str) -> Result<(), ClientError> {
    let endpoints = [&metadata.authorization_endpoint, &metadata.token_endpoint];
    for endpoint in endpoints.into_iter().chain(&metadata.registration_endpoint) {
        if !is_secure(endpoint) {
            return Err(ClientError::sign_in_failed(format!(
                "the authorization endpoint {endpoint} of {server} is not https"
            )));
        }
    }
    Ok(())
}
