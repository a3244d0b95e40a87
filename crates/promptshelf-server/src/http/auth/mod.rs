//! Signing in: a token becomes a caller, or a reason why not.
//!
//! Static tokens are known by their digests; JWTs of an OAuth 2.1 authorization
//! server are checked here, without asking that server for each. The refusal of
//! a request is only prepared here: the endpoint gives it, after it has checked
//! host and origin, so that a browser may read it.
//!
//! What is deliberately not here: handing tokens out, sessions, and what a
//! caller may do.

mod challenge;
mod fetch;
mod jwt;
mod keys;
mod tokens;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::SystemTime,
};

use axum::http::{HeaderMap, StatusCode, header};
use promptshelf_mcp::http::Denial;
use promptshelf_service::{Caller, Identity, Revocation};

use self::{jwt::Verifier, tokens::Tokens};
pub use self::{
    jwt::{Algorithm, IssuerOptions},
    tokens::{StaticToken, digest_of, random_token},
};

/// Longer tokens are not looked at.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// How callers sign in.
#[derive(Clone, Debug, Default)]
pub struct SignInOptions {
    /// The exact URL under which clients reach the MCP endpoint.
    pub resource: Option<String>,
    /// Tokens that this server itself knows.
    pub tokens: Vec<StaticToken>,
    /// The authorization server whose tokens are taken.
    pub issuer: Option<IssuerOptions>,
    /// Scopes without which nothing at all is answered.
    pub required_scopes: Vec<String>,
    /// Scopes that clients can ask the authorization server for.
    pub scopes_supported: Vec<String>,
    /// Scopes that a broader one stands for.
    pub implies: BTreeMap<String, Vec<String>>,
    /// The public client that the page is at the authorization server. Without
    /// one, people bring a token to the page.
    pub page_client_id: Option<String>,
}

/// Tells callers by their tokens. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SignIn(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: SignInOptions,
    tokens: Tokens,
    verifier: Option<Arc<Verifier>>,
}

/// Why a token is not taken.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
    /// It is no token, has expired, is not for this server, or is forged. The
    /// sentence may be shown to whoever brought it.
    Invalid(&'static str),
    /// It cannot be judged now, because the issuer's keys cannot be had.
    Unavailable,
}

impl SignIn {
    /// Makes ready to take tokens. Nothing is fetched before the first one.
    #[must_use]
    pub fn new(options: SignInOptions) -> SignIn {
        let tokens = Tokens::new(&options.tokens, None);
        let verifier = verifier(&options);
        SignIn(Arc::new(Inner { options, tokens, verifier }))
    }

    /// Makes ready to take other tokens in the place of this one. Who has come
    /// with a token that is as it was goes on; whose token has changed, or is
    /// taken no more, is withdrawn, and open streams end.
    #[must_use]
    pub fn replaced_by(&self, options: SignInOptions) -> SignIn {
        let before = &self.0;
        let same_terms =
            options.required_scopes == before.options.required_scopes && options.implies == before.options.implies;
        let tokens = Tokens::new(&options.tokens, Some(&before.tokens).filter(|_| same_terms));
        let same_issuer = options.issuer == before.options.issuer && options.resource == before.options.resource;
        // The issuer's keys are known already.
        let verifier = match &before.verifier {
            Some(known) if same_terms && same_issuer => Some(Arc::clone(known)),
            _ => verifier(&options),
        };
        before.tokens.withdraw_but(&tokens);
        if let Some(known) = &before.verifier
            && !verifier.as_ref().is_some_and(|verifier| Arc::ptr_eq(verifier, known))
        {
            known.standing.withdraw();
        }
        SignIn(Arc::new(Inner { options, tokens, verifier }))
    }

    /// What is published about the authorization server, if there is one.
    pub(super) fn metadata(&self) -> Option<String> {
        challenge::metadata(&self.0.options)
    }

    /// The path under which it is published.
    pub(super) fn metadata_path(&self) -> Option<String> {
        challenge::metadata_url(&self.0.options).map(|url| challenge::path_of(&url).to_owned())
    }

    /// How people sign in on the page.
    #[cfg(feature = "web")]
    pub(super) fn on_page(&self) -> crate::web::PageSignIn {
        let options = &self.0.options;
        let issuer = options.issuer.as_ref().filter(|_| options.page_client_id.is_some());
        let origin = |issuer: &IssuerOptions| {
            issuer.issuer.strip_suffix(challenge::path_of(&issuer.issuer)).unwrap_or_default().to_owned()
        };
        crate::web::PageSignIn {
            is_needed: true,
            client_id: issuer.and_then(|_| options.page_client_id.clone()),
            issuer_origin: issuer.map(origin),
        }
    }

    /// Tells who asks, by the header `Authorization` alone: never by a query.
    pub(super) async fn caller(&self, headers: &HeaderMap) -> Result<Caller, Denial> {
        let Some(token) = bearer(headers).map_err(|reason| self.malformed(reason))? else {
            return Err(self.deny(StatusCode::UNAUTHORIZED, None, "Sign in to use this server"));
        };
        let (identity, standing) = match self.identify(token).await {
            Ok(identified) => identified,
            Err(Refused::Invalid(reason)) => {
                tracing::debug!(reason, "a token was refused");
                return Err(self.deny(StatusCode::UNAUTHORIZED, Some("invalid_token"), reason));
            }
            Err(Refused::Unavailable) => {
                let message = "Tokens cannot be checked at the moment; try again later";
                return Err(Denial { retry_after: Some(5), ..Denial::new(StatusCode::SERVICE_UNAVAILABLE, message) });
            }
        };
        let required = &self.0.options.required_scopes;
        if !required.iter().all(|scope| identity.scopes.contains(scope)) {
            let challenge = self.insufficient_scope(required);
            let message = "The token does not permit to use this server";
            return Err(Denial { challenge, ..Denial::new(StatusCode::FORBIDDEN, message) });
        }
        Ok(Caller::known(Arc::new(identity)).while_in(standing))
    }

    /// The challenge for a request that takes more scopes than its token has.
    /// What every request takes is part of it.
    pub(super) fn insufficient_scope(&self, scopes: &[String]) -> Option<axum::http::HeaderValue> {
        let all: BTreeSet<&String> = self.0.options.required_scopes.iter().chain(scopes).collect();
        let all: Vec<String> = all.into_iter().cloned().collect();
        challenge::challenge(&self.0.options, Some("insufficient_scope"), None, &all)
    }

    async fn identify(&self, token: &str) -> Result<(Identity, Revocation), Refused> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Refused::Invalid("The token is too long"));
        }
        let (mut identity, standing) = match (self.0.tokens.find(token, SystemTime::now()), &self.0.verifier) {
            (Some(identified), _) => identified?,
            (None, Some(verifier)) => (verifier.verify(token).await?, verifier.standing.clone()),
            (None, None) => return Err(Refused::Invalid("The token is not known")),
        };
        imply(&self.0.options.implies, &mut identity.scopes);
        Ok((identity, standing))
    }

    fn deny(&self, status: StatusCode, error: Option<&'static str>, message: &'static str) -> Denial {
        let options = &self.0.options;
        let description = error.map(|_| message);
        let challenge = challenge::challenge(options, error, description, &options.required_scopes);
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

/// Adds what broader scopes stand for, and what those stand for.
fn imply(implies: &BTreeMap<String, Vec<String>>, scopes: &mut Vec<String>) {
    let mut next = 0;
    while let Some(scope) = scopes.get(next) {
        let narrower: Vec<String> =
            implies.get(scope).into_iter().flatten().filter(|scope| !scopes.contains(scope)).cloned().collect();
        scopes.extend(narrower);
        next += 1;
    }
}

/// The token that a request brings. `None` when it brings no credentials that
/// could be meant for here.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, &'static str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err("The header Authorization is there twice");
    }
    let Ok(text) = value.to_str() else { return Err("The header Authorization is malformed") };
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Ok(None);
    }
    let token = token.trim();
    // What a token can be made of (RFC 6750, section 2.1).
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    if token.is_empty() || !token.bytes().all(is_token) {
        return Err("The header Authorization holds no token");
    }
    Ok(Some(token))
}

#[cfg(test)]
mod tests;
