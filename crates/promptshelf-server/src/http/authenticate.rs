//! Authentication: identifies the caller of a request before it reaches the routes behind it.
//!
//! The refusal itself is written by those routes, after they have checked host and origin: a browser
//! may then read it. How a token becomes a caller is in `auth`.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use promptshelf_mcp::{
    RequestNumber,
    http::{Denial, ForeignRequest, RequiredScopes},
};
#[cfg(feature = "sign-in")]
use promptshelf_service::Few;
use promptshelf_service::{Caller, Rejection, Service, SlotHolder, format_seconds, whole_seconds};
use tokio::time::sleep;

#[cfg(feature = "sign-in")]
use super::auth::Refused;
use super::{budget::Exchange, options::Options};

/// The time before a refusal for too many requests is sent. Callers that repeat refused requests without waiting would
/// otherwise take most of a processor: with 16 connections, each refusal costs others as much as a small request.
const REFUSAL_DELAY: Duration = Duration::from_millis(100);

/// A refused sign-in; without the feature there is none.
#[cfg(not(feature = "sign-in"))]
enum Refused {}

/// Identifies the callers of one library. Clones share it.
#[derive(Clone)]
pub(super) struct Authentication(Arc<AuthState>);

struct AuthState {
    service: Service,
    #[cfg(feature = "sign-in")]
    sign_in: Option<super::auth::SignIn>,
    #[cfg(feature = "sign-in")]
    refusals: Few,
}

impl Authentication {
    pub(super) fn new(service: &Service, options: &Options) -> Authentication {
        #[cfg(not(feature = "sign-in"))]
        let _ = options;
        Authentication(Arc::new(AuthState {
            service: service.clone(),
            #[cfg(feature = "sign-in")]
            sign_in: options.sign_in.clone(),
            #[cfg(feature = "sign-in")]
            refusals: Few::default(),
        }))
    }

    /// Adds authentication to `routes`: each request has a [`Caller`] or a [`Denial`] among its extensions.
    pub(super) fn around(&self, routes: Router) -> Router {
        async fn pass(State(authentication): State<Authentication>, request: Request, next: Next) -> Response {
            authentication.answer(request, |request| next.run(request)).await
        }
        // axum refuses a layer around nothing; without the features that have such routes there are none.
        if routes.has_routes() {
            routes.route_layer(middleware::from_fn_with_state(self.clone(), pass))
        } else {
            routes
        }
    }

    /// Answers a request with `next`, which finds a [`Caller`] or a [`Denial`] among its extensions.
    pub(super) async fn answer<F>(&self, mut request: Request, next: impl FnOnce(Request) -> F) -> Response
    where
        F: Future<Output = Response>,
    {
        let state = &*self.0;
        let address = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
        let number = request.extensions().get::<RequestNumber>().copied();
        let origin = |caller| {
            let caller = address.into_iter().fold(caller, Caller::with_address);
            number.into_iter().fold(caller, |caller, number| number.of(caller))
        };
        let own = request.extensions().get::<Caller>().cloned();
        let refused = match state.caller(request.headers(), &origin(Caller::anonymous()), own).await {
            Ok(caller) => {
                let caller = state.admit(origin(caller), request.extensions().get());
                request.extensions_mut().insert(caller);
                None
            }
            Err((denial, refused)) => {
                request.extensions_mut().insert(denial);
                refused
            }
        };
        let confirmation = state.service.confirmation();
        #[cfg(feature = "channels")]
        let is_api = request.uri().path().starts_with("/api/");
        let mut response = next(request).await;
        // The routes check host and origin first: such a request is no attempt to sign in.
        match (response.extensions_mut().remove::<ForeignRequest>(), refused) {
            (Some(foreign), _) => {
                state.service.record_foreign_request(&origin(Caller::anonymous()), &foreign.host);
            }
            (None, Some(refused)) => state.record(refused, &origin(Caller::anonymous())),
            (None, None) => {}
        }
        if let Some(confirmation) = confirmation
            && response.status().is_success()
            && !confirmation.await
        {
            #[cfg(feature = "channels")]
            if is_api {
                return crate::api::not_recorded(&response);
            }
            return (StatusCode::SERVICE_UNAVAILABLE, format!("{}.\n", Rejection::NotRecorded)).into_response();
        }
        if let Some(RequiredScopes(scopes)) = response.extensions_mut().remove()
            && let Some(challenge) = state.challenge(&scopes)
        {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            sleep(REFUSAL_DELAY).await;
        }
        response
    }
}

impl AuthState {
    /// Identifies the caller, after the address limit: nothing is computed for an address that sends too much.
    /// Without sign-in it is the one that an application has put among the extensions, else an anonymous one.
    async fn caller(
        &self,
        headers: &HeaderMap,
        origin: &Caller,
        own: Option<Caller>,
    ) -> Result<Caller, (Denial, Option<Refused>)> {
        if let Some(address) = origin.address() {
            self.service.admit_address(address).map_err(|rejection| (too_many_requests(&rejection), None))?;
        }
        #[cfg(feature = "sign-in")]
        if let Some(sign_in) = &self.sign_in {
            return sign_in.caller(headers).await.map_err(|refused| (refused.denial.clone(), Some(refused)));
        }
        let _ = headers;
        Ok(own.unwrap_or_else(Caller::anonymous))
    }

    /// Records a refused sign-in in the audit, the metrics and the log.
    #[cfg(feature = "sign-in")]
    fn record(&self, refused: Refused, origin: &Caller) {
        let Refused { code, reason, claimed, detail, .. } = refused;
        self.service.record_refused_sign_in(origin, claimed.as_deref(), code, reason);
        self.sign_in.iter().for_each(|sign_in| sign_in.count_refused(code));
        // Every client asks without a token first, to learn how to sign in.
        if code == "no-token" {
            return;
        }
        if let Some(further) = self.refusals.admit() {
            let (request, address) = (origin.request_id(), origin.address().map(|address| address.to_string()));
            let detail = detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
            tracing::info!(request, code, address, claimed, further, "refused a sign-in: {reason}{detail}");
        }
    }

    #[cfg(not(feature = "sign-in"))]
    fn record(&self, refused: Refused, _: &Caller) {
        match refused {}
    }

    /// Reports an admitted caller to its exchange, which keeps the caller's slot until the response has been sent.
    fn admit(&self, caller: Caller, exchange: Option<&Arc<Exchange>>) -> Caller {
        let Some(exchange) = exchange else { return caller };
        let slot = self.service.has_limits().then(SlotHolder::default);
        exchange.admit(slot.clone());
        match slot {
            Some(slot) => caller.with_slot_holder(slot),
            None => caller,
        }
    }

    /// The challenge for a caller without the scopes that a request takes.
    fn challenge(&self, scopes: &[String]) -> Option<HeaderValue> {
        #[cfg(feature = "sign-in")]
        if let Some(sign_in) = &self.sign_in {
            return sign_in.insufficient_scope(scopes);
        }
        let _ = scopes;
        None
    }
}

fn too_many_requests(rejection: &Rejection) -> Denial {
    let wait = match rejection {
        Rejection::TooManyRequests { retry_after } => whole_seconds(*retry_after),
        _ => 1,
    };
    let message = format!("Too many requests from this address; try again in {}", format_seconds(wait));
    Denial { retry_after: Some(wait), ..Denial::new(StatusCode::TOO_MANY_REQUESTS, message) }
}
