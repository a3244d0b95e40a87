//! Basic authentication with a token as the password, for clients that know nothing else.
//!
//! The credentials become a bearer token before authentication, which then looks at them as at any other. The user name
//! must be the name of the token.

use axum::{
    Router,
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use promptshelf_mcp::http::Denial;
use promptshelf_service::Caller;

#[derive(Clone, Debug)]
struct UserName(String);

pub(super) fn named(routes: Router) -> Router {
    routes.layer(middleware::from_fn(check_name))
}

pub(super) fn translated(routes: Router) -> Router {
    routes.layer(middleware::from_fn(translate))
}

async fn translate(mut request: Request, next: Next) -> Response {
    let mut values = request.headers().get_all(header::AUTHORIZATION).iter();
    let only = values.next().filter(|_| values.next().is_none());
    if let Some((name, token)) = only.and_then(credentials)
        && let Ok(mut bearer) = HeaderValue::try_from(format!("Bearer {token}"))
    {
        bearer.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, bearer);
        request.extensions_mut().insert(UserName(name));
    }
    next.run(request).await
}

/// Reads a user name and a password (RFC 7617); `None` for other schemes and malformed credentials.
fn credentials(value: &HeaderValue) -> Option<(String, String)> {
    let (scheme, encoded) = value.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (name, token) = decoded.split_once(':')?;
    Some((name.to_owned(), token.to_owned()))
}

async fn check_name(mut request: Request, next: Next) -> Response {
    let extensions = request.extensions_mut();
    let is_other = match (extensions.get::<UserName>(), extensions.get::<Caller>().and_then(Caller::identity)) {
        // The name of a token of the store has a prefix, with which it is a caller.
        (Some(UserName(name)), Some(identity)) => {
            *name != identity.name && identity.name.strip_prefix("token/") != Some(name.as_str())
        }
        _ => false,
    };
    if is_other {
        let message = "The user name of basic authentication must be the name of the token";
        extensions.insert(Denial::new(StatusCode::UNAUTHORIZED, message));
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_may_contain_colons_and_other_schemes_are_left_alone() {
        let read = |text: &str| credentials(&HeaderValue::try_from(text).expect("a value"));
        let encoded = STANDARD.encode("ada:psk_a:b");
        let expected = Some(("ada".to_owned(), "psk_a:b".to_owned()));
        assert_eq!(read(&format!("basic {encoded}")), expected);
        for other in ["Bearer abc", "Basic", "Basic !!!", "Basic YWRh", "Basic /////w=="] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
