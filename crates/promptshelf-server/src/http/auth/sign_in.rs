//! The sign-in as a whole: from the header `Authorization` to a caller or a refusal.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use promptshelf_mcp::http::Denial;
use promptshelf_service::{BlockedNames, Caller, Identity, Revocation};

use super::{
    challenge::challenge,
    jwt::{Verifier, claimed_name},
    keys::KeyFetches,
    metadata,
    options::SignInOptions,
    shared_tokens::SharedTokens,
    token_error::TokenError,
    tokens::{PREFIX, Tokens},
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
    /// Shared with the sign-ins that replace this one, so that open streams follow the newest list.
    blocked: BlockedNames,
    refused: Arc<RefusedSignIns>,
}

/// The refusal of a request, with the facts for its record. It never holds a token.
pub(in crate::http) struct Refused {
    pub(in crate::http) denial: Denial,
    pub(in crate::http) code: &'static str,
    pub(in crate::http) reason: &'static str,
    pub(in crate::http) claimed: Option<String>,
    /// What was expected and found, for the log alone.
    pub(in crate::http) detail: Option<String>,
}

#[derive(Debug, Default)]
struct RefusedSignIns(Mutex<BTreeMap<&'static str, u64>>);

impl RefusedSignIns {
    fn count(&self, code: &'static str) {
        *self.0.lock().entry(code).or_default() += 1;
    }
}

impl SignIn {
    /// The names of the callers with static tokens.
    #[cfg(feature = "channels")]
    pub(in crate::http) fn token_names(&self) -> impl Iterator<Item = &String> {
        self.0.options.tokens.iter().map(|token| &token.name)
    }

    /// Returns scopes with all that they include.
    #[cfg(feature = "channels")]
    pub(crate) fn implied(&self, mut scopes: Vec<String>) -> Vec<String> {
        imply(&self.0.options.implies, &mut scopes);
        scopes
    }

    /// Prepares the sign-in. The issuer's keys are fetched when the first token needs them, or by
    /// [`follow_keys`](SignIn::follow_keys).
    #[must_use]
    pub fn new(options: SignInOptions) -> SignIn {
        let tokens = Tokens::new(&options.tokens, None);
        let verifier = verifier(&options);
        let blocked = BlockedNames::new(&options.blocked_subjects);
        SignIn(Arc::new(Inner { options, tokens, verifier, blocked, refused: Arc::default() }))
    }

    /// Fetches the issuer's keys now, and again every ten minutes. Until they are there, tokens of the issuer cannot be
    /// verified, and [`missing_keys`](SignIn::missing_keys) has the reason. Further calls do nothing. Needs a tokio runtime.
    pub fn follow_keys(&self) {
        self.0.verifier.iter().for_each(|verifier| verifier.keys.follow());
    }

    /// Fetches the issuer's keys once more, in the background. Needs a tokio runtime.
    pub fn fetch_keys(&self) {
        self.0.verifier.iter().for_each(|verifier| verifier.keys.fetch_now());
    }

    /// Returns why no token of the issuer can be verified; `None` if there is no issuer, or its keys are known.
    #[must_use]
    pub fn missing_keys(&self) -> Option<String> {
        let verifier = self.0.verifier.as_ref()?;
        let reason = verifier.keys.missing()?;
        let issuer = self.0.options.issuer.as_ref().map(|issuer| issuer.issuer.as_str()).unwrap_or_default();
        Some(format!("the keys of {issuer} are missing: {reason}"))
    }

    /// Returns the age of the issuer's keys; `None` for configured ones, and while there are none.
    #[must_use]
    pub fn key_age(&self) -> Option<Duration> {
        self.0.verifier.as_ref()?.keys.age()
    }

    /// Returns how often the issuer's keys were fetched; `None` if there is no issuer.
    #[must_use]
    pub fn key_fetches(&self) -> Option<KeyFetches> {
        self.0.verifier.as_ref().map(|verifier| verifier.keys.fetches())
    }

    /// Returns how many requests were refused, by reason.
    #[must_use]
    pub fn refused(&self) -> Vec<(&'static str, u64)> {
        let counts = self.0.refused.0.lock();
        counts.iter().map(|(code, count)| (*code, *count)).collect()
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
        if !same_terms {
            options.shared_tokens.iter().for_each(SharedTokens::revoke_streams);
        }
        let (blocked, refused) = (previous.blocked.clone(), Arc::clone(&previous.refused));
        blocked.replace(&options.blocked_subjects);
        SignIn(Arc::new(Inner { options, tokens, verifier, blocked, refused }))
    }

    /// The routes of the protected resource's metadata (RFC 9728), empty without an authorization server.
    pub(in crate::http) fn metadata_routes(&self) -> axum::Router {
        metadata::routes(&self.0.options)
    }

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

    /// Counts a refused sign-in, for the metrics.
    pub(in crate::http) fn count_refused(&self, code: &'static str) {
        self.0.refused.count(code);
    }

    /// Authenticates by the header `Authorization` alone, never by a query parameter.
    pub(in crate::http) async fn caller(&self, headers: &HeaderMap) -> Result<Caller, Refused> {
        let refused = |denial, code, reason, claimed| Refused { denial, code, reason, claimed, detail: None };
        let token = match bearer(headers) {
            Ok(Some(token)) => token,
            Ok(None) => {
                let reason = "Sign in to use this server";
                return Err(refused(self.deny(StatusCode::UNAUTHORIZED, None, reason), "no-token", reason, None));
            }
            Err(reason) => {
                let denial = self.deny(StatusCode::BAD_REQUEST, Some("invalid_request"), reason);
                return Err(refused(denial, "malformed-header", reason, None));
            }
        };
        let (identity, revocation) = match self.identify(token).await {
            Ok(identified) => identified,
            Err(TokenError { code, reason, is_unavailable }) => {
                let denial = if is_unavailable {
                    Denial { retry_after: Some(5), ..Denial::new(StatusCode::SERVICE_UNAVAILABLE, reason) }
                } else {
                    self.deny(StatusCode::UNAUTHORIZED, Some("invalid_token"), reason)
                };
                let claim = self.0.options.issuer.as_ref().map_or("sub", |issuer| issuer.user_claim.as_str());
                let token = Some(token).filter(|token| token.len() <= MAX_TOKEN_BYTES);
                let refused = refused(denial, code, reason, token.and_then(|token| claimed_name(token, claim)));
                let detail = token.and_then(|token| self.0.verifier.as_ref()?.mismatch(token, code));
                return Err(Refused { detail, ..refused });
            }
        };
        // `token list` shows the names of tokens of the store without their beginning.
        let token = identity.name.strip_prefix(STORE_CALLER);
        let names: Vec<String> =
            [&*identity.name, subject(&identity)].into_iter().chain(token).map(str::to_owned).collect();
        if self.0.blocked.contains_any(&names) {
            let reason = "This account is blocked on this server";
            let denial = self.deny(StatusCode::UNAUTHORIZED, Some("invalid_token"), reason);
            return Err(refused(denial, "blocked-subject", reason, Some(identity.name)));
        }
        let required = &self.0.options.required_scopes;
        if !required.iter().all(|scope| identity.scopes.contains(scope)) {
            let challenge = self.insufficient_scope(required);
            let reason = "The token lacks a scope that this server requires";
            let denial = Denial { challenge, ..Denial::new(StatusCode::FORBIDDEN, reason) };
            return Err(refused(denial, "insufficient-scope", reason, Some(identity.name)));
        }
        let revocation = revocation.unless_blocked(&self.0.blocked, names.into());
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
            return Err(TokenError::invalid("long-token", "The token is too long"));
        }
        let (now, shared) = (SystemTime::now(), &self.0.options.shared_tokens);
        let found = self.0.tokens.find(token, now);
        let found = found.or_else(|| shared.as_ref().and_then(|shared| shared.find(token, now)));
        let (mut identity, revocation) = match (found, &self.0.verifier) {
            (Some(identified), _) => identified?,
            (None, Some(verifier)) if !token.starts_with(PREFIX) => {
                let identity = verifier.verify(token).await?;
                if is_kept_for_tokens(&identity.name) {
                    let reason = "The account has a name of those that are kept for tokens of a store";
                    return Err(TokenError::invalid("reserved-name", reason));
                }
                (identity, verifier.revocation.clone())
            }
            (None, _) => {
                return Err(TokenError::invalid("unknown-token", "The token is unknown, or has been revoked"));
            }
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
}

/// The beginning of the names of callers with a token of a store. At some issuers people choose their names.
const STORE_CALLER: &str = "token/";

/// Whether a name is meant for a token of a store, however it is written.
fn is_kept_for_tokens(name: &str) -> bool {
    promptshelf_core::identity(name).starts_with(STORE_CALLER)
}

fn verifier(options: &SignInOptions) -> Option<Arc<Verifier>> {
    let issuer = options.issuer.as_ref()?;
    Some(Arc::new(Verifier::new(issuer, options.resource.as_deref())))
}

fn subject(identity: &Identity) -> &str {
    identity.key.rsplit_once('\n').map_or("", |(_, subject)| subject)
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

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-491
    #[test]
    fn names_of_tokens_are_kept_however_they_are_written() {
        for name in
            ["token/ci", "ｔoken/ci", "TOKEN/ci", "token／ci", " token/ci", "to\u{200b}ken/ci", "ｔｏｋｅｎ／ｃｉ"]
        {
            assert!(is_kept_for_tokens(name), "{name}");
        }
        for name in ["ada", "token", "tokens/ci", "my-token/ci", "ada/token"] {
            assert!(!is_kept_for_tokens(name), "{name}");
        }
    }
}
