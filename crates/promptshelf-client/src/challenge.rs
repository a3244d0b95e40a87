//! Authentication challenges: HTTP 401 and 403 with `WWW-Authenticate`, found among the causes of SDK errors.

use std::error::Error;

use rmcp::{
    service::ClientInitializeError,
    transport::{
        auth::WWWAuthenticateParams,
        streamable_http_client::{AuthRequiredError, InsufficientScopeError},
    },
};
use url::Url;

use crate::error::{ClientError, causes};

/// A challenge of a server in place of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Challenge {
    /// The value of `WWW-Authenticate`.
    pub(crate) header: String,
    /// With 403 the missing scopes, if named; `None` with 401.
    forbidden: Option<Option<String>>,
}

impl Challenge {
    pub(crate) fn find(error: &(dyn Error + 'static)) -> Option<Challenge> {
        causes(error).find_map(|cause| {
            if let Some(AuthRequiredError { www_authenticate_header: header, .. }) = cause.downcast_ref() {
                return Some(Challenge { header: header.clone(), forbidden: None });
            }
            let InsufficientScopeError { www_authenticate_header: header, required_scope, .. } =
                cause.downcast_ref()?;
            Some(Challenge { header: header.clone(), forbidden: Some(required_scope.clone()) })
        })
    }

    pub(crate) fn of_connect(error: &ClientInitializeError) -> Option<Challenge> {
        match error {
            ClientInitializeError::TransportError { error, .. } => Challenge::find(&*error.error),
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => Challenge::of_connect(fallback),
            _ => None,
        }
    }

    /// Finds a challenge in an answer: every 401, and a 403 that names missing scopes.
    pub(crate) fn of_status(status: u16, header: Option<&str>, url: &Url) -> Option<Challenge> {
        let header = header.unwrap_or_default();
        let forbidden = match status {
            401 => None,
            403 => {
                let params = WWWAuthenticateParams::parse(header, url);
                Some(params.is_insufficient_scope().then_some(params.scope)?)
            }
            _ => return None,
        };
        Some(Challenge { header: header.to_owned(), forbidden })
    }

    pub(crate) fn for_scopes(scopes: &[String]) -> Challenge {
        Challenge { header: "Bearer error=\"insufficient_scope\"".to_owned(), forbidden: Some(Some(scopes.join(" "))) }
    }

    pub(crate) fn is_forbidden(&self) -> bool {
        self.forbidden.is_some()
    }

    pub(crate) fn scopes(&self) -> Vec<String> {
        self.forbidden.iter().flatten().flat_map(|scopes| scopes.split_whitespace().map(str::to_owned)).collect()
    }

    /// Returns the error for a caller who cannot sign in.
    pub(crate) fn to_error(&self) -> ClientError {
        match &self.forbidden {
            Some(scope) => ClientError::Forbidden { scope: scope.clone() },
            None => ClientError::AuthenticationRequired,
        }
    }
}
