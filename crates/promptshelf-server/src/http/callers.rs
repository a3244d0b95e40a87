//! Who asks, and from where: found out before a request reaches the endpoint.

use std::{
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
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
pub(super) struct AuthLayer(Arc<Desk>);

impl AuthLayer {
    pub(super) fn new(server: &Server, options: &Options) -> AuthLayer {
        #[cfg(not(feature = "sign-in"))]
        let _ = options;
        AuthLayer(Arc::new(Desk {
            service: server.service().clone(),
            #[cfg(feature = "sign-in")]
            sign_in: options.sign_in.clone(),
        }))
    }
}

impl<S> Layer<S> for AuthLayer {
    type Service = AuthService<S>;

    fn layer(&self, inner: S) -> AuthService<S> {
        AuthService { desk: Arc::clone(&self.0), inner }
    }
}

/// A service whose requests come with their caller.
#[derive(Clone)]
pub(super) struct AuthService<S> {
    desk: Arc<Desk>,
    inner: S,
}

impl<S, A, B> tower_service::Service<Request<A>> for AuthService<S>
where
    S: tower_service::Service<Request<A>, Response = Response<B>> + Clone + Unpin,
    S::Future: Unpin,
    A: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Telling<A, S, S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        let desk = Arc::clone(&self.desk);
        if desk.tell_at_once(&mut request) {
            return Telling { desk, step: Step::Answering(self.inner.call(request)) };
        }
        // The one that was asked whether it is ready goes along; its clone was not.
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        let told = Arc::clone(&desk).told(request);
        Telling { desk, step: Step::Asking(Box::pin(told), inner) }
    }
}

/// A request on its way to who asks, and from there to its answer.
pub(super) struct Telling<A, S, F> {
    desk: Arc<Desk>,
    step: Step<A, S, F>,
}

enum Step<A, S, F> {
    Asking(Pin<Box<dyn Future<Output = Request<A>> + Send>>, S),
    Answering(F),
}

impl<A, B, S> Future for Telling<A, S, S::Future>
where
    S: tower_service::Service<Request<A>, Response = Response<B>> + Unpin,
    S::Future: Unpin,
{
    type Output = Result<Response<B>, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Telling { desk, step } = self.get_mut();
        loop {
            match step {
                Step::Asking(asking, inner) => {
                    let request = ready!(asking.as_mut().poll(context));
                    *step = Step::Answering(inner.call(request));
                }
                Step::Answering(answering) => {
                    return Pin::new(answering).poll(context).map_ok(|mut response| {
                        desk.challenge_for(&mut response);
                        response
                    });
                }
            }
        }
    }
}

impl Desk {
    /// Tells who asks where nobody has to be asked for that.
    fn tell_at_once<A>(&self, request: &mut Request<A>) -> bool {
        #[cfg(feature = "sign-in")]
        if self.sign_in.is_some() {
            return false;
        }
        let address = address(request);
        let caller = self.admit(address).map(|()| Caller::anonymous());
        put(request, caller, address);
        true
    }

    /// The request, when it says who asks, or why that one may not.
    async fn told<A>(self: Arc<Desk>, mut request: Request<A>) -> Request<A> {
        let address = address(&request);
        let caller = self.caller(request.headers(), address).await;
        put(&mut request, caller, address);
        request
    }

    /// Before anything is computed for a caller.
    fn admit(&self, address: Option<IpAddr>) -> Result<(), Denial> {
        let admitted = address.map_or(Ok(()), |address| self.service.admit_address(address));
        admitted.map_err(|rejection| too_many(&rejection))
    }

    /// Tells who asks, if it may ask at all.
    async fn caller(&self, headers: &HeaderMap, address: Option<IpAddr>) -> Result<Caller, Denial> {
        self.admit(address)?;
        #[cfg(feature = "sign-in")]
        if let Some(sign_in) = &self.sign_in {
            return sign_in.caller(headers).await;
        }
        let _ = headers;
        Ok(Caller::anonymous())
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

fn address<A>(request: &Request<A>) -> Option<IpAddr> {
    request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip())
}

/// Puts who asks into a request, or why it may not.
fn put<A>(request: &mut Request<A>, caller: Result<Caller, Denial>, address: Option<IpAddr>) {
    match caller {
        Ok(caller) => drop(request.extensions_mut().insert(address.into_iter().fold(caller, Caller::at))),
        Err(denial) => drop(request.extensions_mut().insert(denial)),
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
