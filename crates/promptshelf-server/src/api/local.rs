//! The API of a store in this process, for the operator who has the store itself.
//!
//! The same handlers answer as over HTTP, with the same bounds, checks and records. The operator has all scopes and roles,
//! and a policy changes at once.

use std::{fmt, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    http::Request,
    response::Response,
};
use promptshelf_service::{Caller, Identity, Method, Recorder, Rejection, Service};
use promptshelf_source::{Files, MemoryTree};
use promptshelf_store::{Store, StoreError};
use promptshelf_wire::Document;
use tower::ServiceExt;

use super::{
    Api, ApiState,
    call::{Site, Trust},
    problem::{not_allowed, not_recorded, unknown},
    programs::{self, ProgramState},
    routes,
};
use crate::{
    OpenError,
    channels::StoreHandle,
    http::{Gate, Options},
    library::Library,
    usage::UsageLog,
};

/// The operator of a store.
#[derive(Clone)]
#[non_exhaustive]
pub struct Operator {
    /// The name in history and in the audit.
    pub name: String,
    /// The audit; none by default.
    pub audit: Option<Arc<dyn Recorder>>,
    /// The least number of callers that reports of usage show; all by default.
    pub min_callers: u64,
}

impl Operator {
    /// Creates an operator with the bounds of a server.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Operator {
        Operator { name: name.into(), audit: None, min_callers: 0 }
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operator({})", self.name)
    }
}

/// The operations on a store, called without HTTP.
#[derive(Clone)]
pub struct LocalApi {
    router: Router,
    service: Service,
    library: Library,
    caller: Caller,
}

/// The answer to a call.
#[derive(Debug)]
#[non_exhaustive]
pub struct LocalAnswer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: http::HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The error of the store behind a refusal, with the details that a server keeps for its log.
    pub error: Option<StoreError>,
}

impl fmt::Debug for LocalApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalApi({})", self.caller.name())
    }
}

impl LocalApi {
    /// Creates the API of an open store.
    ///
    /// # Errors
    ///
    /// None that an empty library can have.
    pub fn new(store: Store, api: impl FnOnce(StoreHandle) -> Api, operator: Operator) -> Result<LocalApi, OpenError> {
        let Operator { name, audit, min_callers } = operator;
        let builder = Library::builder().source(Files::tree(MemoryTree::default()));
        let library = match audit {
            Some(audit) => builder.audit(audit),
            None => builder,
        }
        .build()?;
        let handle = StoreHandle::of(store);
        let usage = UsageLog::reading(handle.clone(), min_callers);
        let mut options = Options { usage: Some(usage.clone()), ..Options::default() };
        // Lists of changes are bounded by the memory of this process alone.
        options.mcp.max_body_bytes = usize::MAX / 2;
        let service = library.service().clone();
        let site = Site {
            service: service.clone(),
            endpoint: library.server().http(options.mcp.clone()),
            trust: Trust::Operator,
            sign_in: None,
            channel_access: Arc::default(),
            source_access: None,
            reserved: Arc::default(),
            gate: Gate::new(&service),
        };
        let served = ProgramState::new(&library, vec![(None, library.clone())], &options, site.clone());
        let state = ApiState { api: api(handle), site, usage: Some(usage) };
        let router = programs::operations(Document::default())
            .into_router(served)
            .merge(routes::operations(Document::default()).into_router(state))
            .method_not_allowed_fallback(not_allowed)
            .fallback(unknown);
        let identity = Identity { key: format!("operator {name}"), name, ..Identity::default() };
        let caller = Caller::authenticated(Arc::new(identity));
        Ok(LocalApi { router, service, library, caller })
    }

    /// Calls an operation. The answer waits for its record, if the audit refuses what it cannot record.
    pub async fn call(&self, request: Request<Vec<u8>>) -> LocalAnswer {
        let mut request = request.map(Body::from);
        request.extensions_mut().insert(self.library.server().numbered(&self.caller));
        let confirmation = self.service.confirmation();
        let Ok(mut response) = self.router.clone().oneshot(request).await;
        if let Some(confirmation) = confirmation
            && response.status().is_success()
            && !confirmation.await
        {
            response = not_recorded(&response);
        }
        self.answer(response).await
    }

    async fn answer(&self, response: Response) -> LocalAnswer {
        let (mut head, body) = response.into_parts();
        let error = head.extensions.remove::<StoreError>();
        // The bodies of these responses are in memory.
        let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
        LocalAnswer { status: head.status.as_u16(), headers: head.headers, body, error }
    }

    /// Records an operation that is not one of the API, such as maintenance: its beginning too, if the audit refuses what it
    /// cannot record.
    ///
    /// # Errors
    ///
    /// [`Rejection::NotRecorded`].
    pub async fn record(&self, method: Method) -> Result<promptshelf_service::Operation, Rejection> {
        if !self.service.record_begin(&self.caller, method, None).await {
            return Err(Rejection::NotRecorded);
        }
        self.service.operation(&self.caller, method)
    }
}
