//! Who asks, and from where: found out before a request reaches the endpoint.

use std::{
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

#[cfg(feature = "sign-in")]
use axum::Router;
use axum::{
    extract::{ConnectInfo, Request},
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};
use promptshelf_mcp::{
    Server,
    http::{Denial, RequiredScopes},
};
use promptshelf_service::{Caller, Rejection, Service};
use tower_layer::Layer;

use super::Options;

/// What callers are told apart by.
struct Desk {
    service: Service,
    #[cfg(feature = "sign-in")]
    sign_in: Option<super::auth::SignIn>,
}

/// Tells who asks, for whatever it is put around: the endpoint, and what else
/// has data.
#[derive(Clone)]
pub(super) struct TellApart(Arc<Desk>);

impl TellApart {
    pub(super) fn new(server: &Server, options: &Options) -> TellApart {
        #[cfg(not(feature = "sign-in"))]
        let _ = options;
        TellApart(Arc::new(Desk {
            service: server.service().clone(),
            #[cfg(feature = "sign-in")]
            sign_in: options.sign_in.clone(),
        }))
    }
}

impl<S> Layer<S> for TellApart {
    type Service = ToldApart<S>;

    fn layer(&self, inner: S) -> ToldApart<S> {
        ToldApart { desk: Arc::clone(&self.0), inner }
    }
}

/// A service whose requests come with their caller.
#[derive(Clone)]
pub(super) struct ToldApart<S> {
    desk: Arc<Desk>,
    inner: S,
}

impl<S, B> tower_service::Service<Request> for ToldApart<S>
where
    S: tower_service::Service<Request, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let desk = Arc::clone(&self.desk);
        // The one that was asked whether it is ready goes along; its clone was not.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        Box::pin(async move {
            desk.tell(&mut request).await;
            let mut response = inner.call(request).await?;
            desk.challenge_for(&mut response);
            Ok(response)
        })
    }
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

    /// Puts who asks into a request, or why it may not.
    async fn tell(&self, request: &mut Request) {
        let address = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
        match self.caller(request.headers(), address).await {
            Ok(caller) => {
                let caller = address.into_iter().fold(caller, Caller::at);
                request.extensions_mut().insert(caller);
            }
            Err(denial) => {
                request.extensions_mut().insert(denial);
            }
        }
    }

    fn challenge_for<B>(&self, response: &mut Response<B>) {
        if let Some(RequiredScopes(scopes)) = response.extensions_mut().remove()
            && let Some(challenge) = self.challenge(&scopes)
        {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
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
pub(super) fn metadata(sign_in: &super::auth::SignIn) -> Router {
    use axum::routing::{MethodRouter, get};

    const ROOT: &str = "/.well-known/oauth-protected-resource";
    let routes = Router::new();
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
