//! Sign-in: a bearer token becomes a caller, or a reason for the refusal.
//!
//! Static tokens and shared ones, such as those of a store, are compared with stored digests; JWT access tokens of an OAuth 2.1 authorization
//! server are verified with its keys, without a request to that server for each. A refusal is only
//! prepared here: the routes write it after they have checked host and origin, so that a browser may
//! read it.
//!
//! Issuing tokens, sessions and permissions are deliberately elsewhere.

mod challenge;
mod fetch;
mod jwt;
mod keys;
mod metadata;
mod options;
mod shared_tokens;
mod sign_in;
mod token_error;
mod tokens;
mod url;

pub(super) use self::sign_in::Refused;
pub use self::{
    keys::{KeyFetches, KeySet},
    options::{Algorithm, IssuerOptions, SignInOptions, StaticToken},
    shared_tokens::{SharedToken, SharedTokens},
    sign_in::SignIn,
    tokens::{digest_of, random_token},
};

#[cfg(test)]
mod tests;
