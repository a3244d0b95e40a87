//! Why a token is not accepted.

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenError {
    pub(super) code: &'static str,
    pub(super) reason: &'static str,
    /// Whether the token cannot be judged now: the issuer's keys or the store's tokens are not known.
    pub(super) is_unavailable: bool,
}

impl TokenError {
    pub(super) const fn invalid(code: &'static str, reason: &'static str) -> TokenError {
        TokenError { code, reason, is_unavailable: false }
    }

    pub(super) const fn unavailable(code: &'static str) -> TokenError {
        let reason = "Tokens cannot be verified at the moment; try again later";
        TokenError { code, reason, is_unavailable: true }
    }
}
