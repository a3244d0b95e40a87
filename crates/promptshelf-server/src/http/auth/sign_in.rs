//! The sign-in as a whole: from the header `Authorization` to a caller or a refusal.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::SystemTime,
};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use promptshelf_mcp::http::Denial;
use promptshelf_service::{Caller, Identity, Revocation};

use super::{
    challenge::challenge, jwt::Verifier, metadata, options::SignInOptions, token_error::TokenError, tokens::Tokens,
};

/// The most bytes of a token; longer ones are refused unread.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// Authenticates callers by their bearer tokens. Cheap to clone.
///
/// ```
/// use promptshelf_server::http::auth::{SignIn, SignInOptions, StaticToken, digest_of, random_token};
///
/// # fn main() -> std::io::Result<()> {
/// let token = random_token()?;
/// let mut options = SignInOptions::default();
/// options.tokens.push(StaticToken {
///     name: "ada".to_owned(),
///     sha256: digest_of(&token),
///     scopes: vec!["prompts:read".to_owned()],
///     roles: vec!["editor".to_owned()],
///     expires: None,
/// });
/// let sign_in = SignIn::new(options);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SignIn(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    options: SignInOptions,
    tokens: Tokens,
    pub(super) verifier: Option<Arc<Verifier>>,
}

impl SignIn {
    /// Prepares the sign-in. The issuer's keys are fetched when the first token needs them.
    #[must_use]
    pub fn new(options: SignInOptions) -> SignIn {
        let tokens = Tokens::new(&options.tokens, None);
        let verifier = verifier(&options);
        SignIn(Arc::new(Inner { options, tokens, verifier }))
    }

    /// Prepares a sign-in with other options in place of this one. Callers whose token is accepted
    /// unchanged keep their streams; the others are revoked, and their open streams end.
    #[must_use]
    pub fn replaced_by(&self, options: SignInOptions) -> SignIn {
        let previous = &self.0;
        let same_terms =
            options.required_scopes == previous.options.required_scopes && options.implies == previous.options.implies;
        let tokens = Tokens::new(&options.tokens, Some(&previous.tokens).filter(|_| same_terms));
        let same_issuer = options.issuer == previous.options.issuer && options.resource == previous.options.resource;
        // Keeps the cached keys of an unchanged issuer.
        let verifier = match &previous.verifier {
            Some(verifier) if same_terms && same_issuer => Some(Arc::clone(verifier)),
            _ => verifier(&options),
        };
        previous.tokens.revoke_except(&tokens);
        if let Some(replaced) = &previous.verifier
            && !verifier.as_ref().is_some_and(|verifier| Arc::ptr_eq(verifier, replaced))
        {
            replaced.revocation.revoke();
        }
        SignIn(Arc::new(Inner { options, tokens, verifier }))
    }

    /// The routes of the protected resource's metadata (RFC 9728), empty without an authorization server.
    pub(in crate::http) fn metadata_routes(&self) -> axum::Router {
        metadata::routes(&self.0.options)
    }

    /// Returns the sign-in options of the page.
    #[cfg(feature = "web")]
    pub(in crate::http) fn on_page(&self) -> crate::web::PageSignIn {
        let options = &self.0.options;
        let issuer = options.issuer.as_ref().filter(|_| options.page_client_id.is_some());
        let origin = |issuer: &super::options::IssuerOptions| {
            issuer.issuer.strip_suffix(super::url::path_of(&issuer.issuer)).unwrap_or_default().to_owned()
        };
        crate::web::PageSignIn {
            is_required: true,
            client_id: issuer.and_then(|_| options.page_client_id.clone()),
            issuer_origin: issuer.map(origin),
        }
    }

    /// Authenticates by the header `Authorization` alone, never by a query parameter.
    pub(in crate::http) async fn caller(&self, headers: &HeaderMap) -> Result<Caller, Denial> {
        let Some(token) = bearer(headers).map_err(|reason| self.malformed(reason))? else {
            return Err(self.deny(StatusCode::UNAUTHORIZED, None, "Sign in to use this server"));
        };
        let (identity, revocation) = match self.identify(token).await {
            Ok(identified) => identified,
            Err(TokenError::Invalid(reason)) => {
                tracing::debug!(reason, "refused a token");
                return Err(self.deny(StatusCode::UNAUTHORIZED, Some("invalid_token"), reason));
            }
            Err(TokenError::Unavailable) => {
                let message = "Tokens cannot be verified at the moment; try again later";
                return Err(Denial { retry_after: Some(5), ..Denial::new(StatusCode::SERVICE_UNAVAILABLE, message) });
            }
        };
        let required = &self.0.options.required_scopes;
        if !required.iter().all(|scope| identity.scopes.contains(scope)) {
            let challenge = self.insufficient_scope(required);
            let message = "The token lacks a scope that this server requires";
            return Err(Denial { challenge, ..Denial::new(StatusCode::FORBIDDEN, message) });
        }
        Ok(Caller::authenticated(Arc::new(identity)).with_revocation(revocation))
    }

    /// Returns the challenge for a request that needs more scopes than its token has. It includes the
    /// scopes that every request needs.
    pub(in crate::http) fn insufficient_scope(&self, scopes: &[String]) -> Option<HeaderValue> {
        let all: BTreeSet<&String> = self.0.options.required_scopes.iter().chain(scopes).collect();
        let all: Vec<String> = all.into_iter().cloned().collect();
        challenge(&self.0.options, Some("insufficient_scope"), None, &all)
    }

    async fn identify(&self, token: &str) -> Result<(Identity, Revocation), TokenError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::Invalid("The token is too long"));
        }
        let (mut identity, revocation) = match (self.0.tokens.find(token, SystemTime::now()), &self.0.verifier) {
            (Some(identified), _) => identified?,
            (None, Some(verifier)) => (verifier.verify(token).await?, verifier.revocation.clone()),
            (None, None) => return Err(TokenError::Invalid("The token is unknown")),
        };
        imply(&self.0.options.implies, &mut identity.scopes);
        Ok((identity, revocation))
    }

    fn deny(&self, status: StatusCode, error: Option<&'static str>, message: &'static str) -> Denial {
        let options = &self.0.options;
        let description = error.map(|_| message);
        let challenge = challenge(options, error, description, &options.required_scopes);
        Denial { challenge, ..Denial::new(status, message) }
    }

    fn malformed(&self, reason: &'static str) -> Denial {
        self.deny(StatusCode::BAD_REQUEST, Some("invalid_request"), reason)
    }
}

fn verifier(options: &SignInOptions) -> Option<Arc<Verifier>> {
    let issuer = options.issuer.as_ref()?;
    Some(Arc::new(Verifier::new(issuer, options.resource.as_deref())))
}

/// Adds the narrower scopes that each scope includes, transitively. Cycles end.
pub(super) fn imply(implies: &BTreeMap<String, Vec<String>>, scopes: &mut Vec<String>) {
    let mut next = 0;
    while let Some(scope) = scopes.get(next) {
        let narrower: Vec<String> =
            implies.get(scope).into_iter().flatten().filter(|scope| !scopes.contains(scope)).cloned().collect();
        scopes.extend(narrower);
        next += 1;
    }
}

/// Returns the request's bearer token; `None` without credentials or with those of another scheme.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, &'static str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err("The header Authorization must occur only once");
    }
    let Ok(text) = value.to_str() else { return Err("The header Authorization must be ASCII text") };
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Ok(None);
    }
    let token = token.trim();
    // The characters of a token: RFC 6750, section 2.1.
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    if token.is_empty() || !token.bytes().all(is_token) {
        return Err("The header Authorization must hold a bearer token");
    }
    Ok(Some(token))
}
