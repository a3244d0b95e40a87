//! Why a token is not accepted.

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenError {
    /// It is malformed, expired, forged, or meant for another server. The sentence may be shown to the caller.
    Invalid(&'static str),
    /// It cannot be verified now, because the issuer's keys are unavailable.
    Unavailable,
}
