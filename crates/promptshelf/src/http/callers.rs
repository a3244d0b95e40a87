//! Who asks, and from where: found out before a request reaches the endpoint.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::{
    Router,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::Response,
};
use promptshelf_mcp::{
    Server,
    http::{Denial, RequiredScopes},
};
use promptshelf_service::{Caller, Rejection, Service};

use super::Options;

/// What callers are told apart by.
struct Desk {
    service: Service,
    #[cfg(feature = "sign-in")]
    sign_in: Option<super::auth::SignIn>,
}

/// Puts around the endpoint, and what else has data, what tells callers apart,
/// and beside it what clients read to sign in.
pub(super) fn around(endpoint: Router, server: &Server, options: &Options) -> Router {
    #[cfg(not(feature = "sign-in"))]
    let _ = options;
    let desk = Desk {
        service: server.service().clone(),
        #[cfg(feature = "sign-in")]
        sign_in: options.sign_in.clone(),
    };
    let endpoint = endpoint.route_layer(middleware::from_fn_with_state(Arc::new(desk), told_apart));
    #[cfg(feature = "sign-in")]
    if let Some(sign_in) = &options.sign_in {
        return metadata(endpoint, sign_in);
    }
    endpoint
}

impl Desk {
    /// Tells who asks, if it may ask at all.
    async fn caller(&self, headers: &HeaderMap, address: Option<IpAddr>) -> Result<Caller, Denial> {
        // Before anything is computed for it.
        if let Some(Err(rejection)) = address.map(|address| self.service.admit_address(address)) {
            return Err(too_many(&rejection));
        }
        #[cfg(feature = "sign-in")]
        if let Some(sign_in) = &self.sign_in {
            return sign_in.caller(headers).await;
        }
        let _ = headers;
        Ok(Caller::anonymous())
    }

    /// What a client that lacks a scope is told.
    fn challenge(&self, scopes: &[String]) -> Option<HeaderValue> {
        #[cfg(feature = "sign-in")]
        if let Some(sign_in) = &self.sign_in {
            return sign_in.insufficient_scope(scopes);
        }
        let _ = scopes;
        None
    }
}

async fn told_apart(State(desk): State<Arc<Desk>>, mut request: Request, next: Next) -> Response {
    let address = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
    match desk.caller(request.headers(), address).await {
        Ok(caller) => {
            let caller = address.into_iter().fold(caller, Caller::at);
            request.extensions_mut().insert(caller);
        }
        Err(denial) => {
            request.extensions_mut().insert(denial);
        }
    }
    let mut response = next.run(request).await;
    if let Some(RequiredScopes(scopes)) = response.extensions_mut().remove()
        && let Some(challenge) = desk.challenge(&scopes)
    {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

fn too_many(rejection: &Rejection) -> Denial {
    let retry_after = match rejection {
        Rejection::TooManyRequests { retry_after } => retry_after.as_secs() + 1,
        _ => 1,
    };
    let denial = Denial::new(StatusCode::TOO_MANY_REQUESTS, "Too many requests from this address; try again later");
    Denial { retry_after: Some(retry_after), ..denial }
}

/// The document of RFC 9728, at both of its places, for everybody.
#[cfg(feature = "sign-in")]
fn metadata(routes: Router, sign_in: &super::auth::SignIn) -> Router {
    use axum::routing::{MethodRouter, get};

    const ROOT: &str = "/.well-known/oauth-protected-resource";
    let (Some(document), Some(path)) = (sign_in.metadata(), sign_in.metadata_path()) else { return routes };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
    ];
    let asked_before = [
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
        (header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET")),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("mcp-protocol-version")),
    ];
    let answer: MethodRouter =
        get(move || std::future::ready((headers, document))).options(move || std::future::ready(asked_before));
    let routes = routes.route(ROOT, answer.clone());
    if path == ROOT { routes } else { routes.route(&path, answer) }
}
