//! A call of an operation: what every operation has in common. [`Operations`] mounts handlers; before one runs, path and
//! query are read, scopes, limits and the channel are checked, and its record in the audit begins.

use std::{
    collections::{HashMap, HashSet},
    ops::Deref,
    sync::Arc,
    time::Instant,
};

use axum::{
    Router,
    body::Bytes,
    extract::{FromRequestParts, Path, Query, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, request::Parts},
    response::{IntoResponse, Response},
    routing::{MethodFilter, on},
};
use parking_lot::Mutex;
use promptshelf_core::{Access, Interrupt, identity};
use promptshelf_mcp::HttpService;
use promptshelf_service::{
    Caller, Method, Rejection, Service, outcome_at_drop,
    pool::{self, Amount},
};
use promptshelf_store::{Actor, ChannelName, Digest, PolicyRoles, Reason, StoreError, TOKEN_CALLER};
use promptshelf_wire::{Document, Nothing, Operation, PREFIX, RawBody, Scope};
use serde::{Serialize, de::DeserializeOwned};
use tracing::Instrument as _;

use super::{
    ApiState,
    etag::{self, Tag},
    once::{self, Claimed},
    problem::Problem,
    request::Paging,
};
use crate::{
    channels::StoreHandle,
    http::{Gate, auth::SignIn},
};

/// The size of a body from which on it is read on a thread that answers no requests.
const LARGE_BODY: usize = 128 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Callers sign in: their scopes and roles decide.
    SignIn,
    Everyone,
    /// The only caller operates the store itself: all scopes and roles, and policies change at once.
    Operator,
}

#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) service: Service,
    pub(crate) endpoint: HttpService,
    pub(crate) trust: Trust,
    pub(crate) sign_in: Option<SignIn>,
    pub(crate) channel_access: Arc<HashMap<String, Arc<Access>>>,
    pub(crate) source_access: Option<Arc<Access>>,
    /// The identities of callers in the operator's rules and tokens.
    pub(crate) reserved: Arc<HashSet<String>>,
    pub(crate) gate: Gate,
}

impl Site {
    /// Whether a channel exists for a caller. The channel need not be served at present.
    pub(super) fn shows(&self, caller: &Caller, channel: &str) -> bool {
        self.access(channel).is_none_or(|access| caller.meets(access))
    }

    fn access(&self, channel: &str) -> Option<&Arc<Access>> {
        self.channel_access.get(channel).or(self.source_access.as_ref())
    }

    /// Whether the operator means someone by the name of a token, or by that of its caller.
    pub(super) fn is_reserved(&self, token: &str) -> bool {
        [token.to_owned(), format!("{TOKEN_CALLER}{token}")].iter().any(|name| self.reserved.contains(&identity(name)))
    }

    /// Returns the scopes that a token with these scopes gives its caller.
    pub(super) fn implied(&self, scopes: &[String]) -> Vec<String> {
        self.sign_in.as_ref().map_or_else(|| scopes.to_vec(), |sign_in| sign_in.implied(scopes.to_vec()))
    }

    /// Whether a caller has a scope, which need not be one of the API.
    pub(super) fn grants(&self, caller: &Caller, scope: &str) -> bool {
        self.trust != Trust::SignIn
            || caller.identity().is_some_and(|identity| identity.scopes.iter().any(|own| own == scope))
    }
}

pub(super) trait Part: Clone + Send + Sync + 'static {
    fn site(&self) -> &Site;

    /// The store that keeps the first answers to changes.
    fn store(&self) -> Option<&StoreHandle> {
        None
    }
}

pub(super) struct Operations<S> {
    router: Router<S>,
    document: Document,
}

impl<S: Part> Operations<S> {
    pub(super) fn new(document: Document) -> Operations<S> {
        Operations { router: Router::new(), document }
    }

    pub(super) fn on<O, F, Fut>(mut self, handler: F) -> Operations<S>
    where
        O: Operation<Query: DeserializeOwned> + DeserializeOwned,
        F: Fn(Call<O, S>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        self.document.add::<O>();
        let serve = move |State(state): State<S>, request: Request| {
            let handler = handler.clone();
            async move {
                let mut response = serve(state, request, handler).await.unwrap_or_else(Problem::into_response);
                if O::SPEC.is_change() && response.status().is_success() {
                    response.extensions_mut().insert(MadeChange);
                }
                response
            }
        };
        // Every declared method is one of axum's.
        let method = MethodFilter::try_from(O::SPEC.method).unwrap_or(MethodFilter::GET);
        self.router = self.router.route(&format!("{PREFIX}{}", O::SPEC.path), on(method, serve));
        self
    }

    pub(super) fn into_router(self, state: S) -> Router {
        self.router.with_state(state)
    }

    pub(super) fn into_document(self) -> Document {
        self.document
    }
}

/// Marks the response to a change that was made.
#[derive(Clone, Copy)]
pub(super) struct MadeChange;

pub(super) type Answer = Result<Response, Problem>;

async fn serve<O, S, F, Fut>(state: S, request: Request, handler: F) -> Answer
where
    O: Operation<Query: DeserializeOwned> + DeserializeOwned,
    S: Part,
    F: Fn(Call<O, S>) -> Fut + Send + 'static,
    Fut: Future<Output = Answer> + Send + 'static,
{
    let (mut head, body) = request.into_parts();
    let Path(path) = Path::<O>::from_request_parts(&mut head, &())
        .await
        .map_err(|rejection| Problem::invalid(format!("The path is invalid: {}", rejection.body_text())))?;
    let (paging, others) =
        if O::SPEC.is_page() { Paging::read(&head.uri, path.path())? } else { (Paging::default(), head.uri.clone()) };
    let Query(query) = Query::try_from_uri(&others)
        .map_err(|rejection| Problem::invalid(format!("The query is invalid: {}", rejection.body_text())))?;
    let caller = head.extensions.get().cloned().unwrap_or_else(Caller::anonymous);
    let headers = head.headers.clone();
    let body = Mutex::new(Some(Request::from_parts(head, body)));
    let context = Context { record: begin::<O>(state.site(), &caller)?, state, caller };
    let record = Arc::clone(&context.record);
    let call = Call { path, query, paging, headers, body, context };
    let admitted = match call.admit(&call.path) {
        Ok(()) => call.record_begin(&call.path).await,
        Err(problem) => Err(problem),
    };
    let claimed = match admitted {
        Ok(()) => once::claim(&call).await,
        Err(problem) => Err(problem),
    };
    let end = move |answer: &Answer| record.end(answer.as_ref().err().map_or("ok", Problem::name));
    let answer = match claimed {
        Ok(Claimed::Unkeyed) => handler(call).await,
        Ok(Claimed::Answered(answer)) => Ok(answer),
        Err(problem) => Err(problem),
        // It goes on without its caller, so that the caller can ask for the answer again.
        Ok(Claimed::First(first)) => {
            let changing = async move {
                let answer = first.keep(handler(call).await).await;
                end(&answer);
                answer
            };
            return tokio::spawn(changing.in_current_span()).await.unwrap_or_else(|_| Err(Problem::internal()));
        }
    };
    end(&answer);
    answer
}

pub(super) struct Call<O: Operation, S = ApiState> {
    pub(super) path: O,
    pub(super) query: O::Query,
    /// Which page of a list.
    pub(super) paging: Paging,
    pub(super) headers: HeaderMap,
    body: Mutex<Option<Request>>,
    context: Context<S>,
}

impl<O: Operation, S> Deref for Call<O, S> {
    type Target = Context<S>;

    fn deref(&self) -> &Context<S> {
        &self.context
    }
}

impl<O: Operation, S: Part> Call<O, S> {
    /// Reads the body, which can be read once.
    async fn read(&self) -> Result<(Parts, Bytes), Problem> {
        let request = self.body.lock().take().ok_or_else(Problem::internal)?;
        let (head, body) = request.into_parts();
        let is_raw = std::any::TypeId::of::<O::Body>() == std::any::TypeId::of::<RawBody>();
        let media_type = if is_raw { RawBody::MEDIA_TYPE } else { "application/json" };
        let bytes = self.state.site().endpoint.read_body(&head, body, media_type).await;
        Ok((head, bytes.map_err(|denial| Problem::denied(&denial))?))
    }

    /// Returns the digest of everything that a request asks for. Its body can be read afterwards.
    pub(super) async fn digest(&self) -> Result<Digest, Problem> {
        let header = |name| self.headers.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
        let has_body = std::any::TypeId::of::<O::Body>() != std::any::TypeId::of::<Nothing>();
        let body = if has_body {
            let (head, bytes) = self.read().await?;
            *self.body.lock() = Some(Request::from_parts(head, bytes.clone().into()));
            bytes
        } else {
            Bytes::new()
        };
        let path = self.path.path();
        let method = O::SPEC.method;
        let parts = [method.as_str().as_bytes(), path.as_bytes(), header("if-match"), header("if-none-match"), &body];
        Ok(Digest::of(&parts.join(&0)))
    }

    /// Reads a body that is no JSON.
    pub(super) async fn bytes(&self) -> Result<Bytes, Problem> {
        Ok(self.read().await?.1)
    }

    pub(super) async fn body(&self) -> Result<O::Body, Problem>
    where
        O::Body: DeserializeOwned + Send + 'static,
    {
        let (_, bytes) = self.read().await?;
        let is_large = bytes.len() > LARGE_BODY;
        let read = move |_: &Interrupt| serde_json::from_slice(&bytes);
        let body = if is_large {
            pool::run(self.caller(), Amount::Small, read).await.map_err(|_| Problem::internal())?
        } else {
            read(&Interrupt::brief())
        };
        body.map_err(|error| Problem::invalid(format!("The body is invalid: {error}")))
    }

    /// The answer of the operation. That to a `GET` is a 304 if the caller has it.
    pub(super) fn answer(&self, answer: &O::Answer) -> Answer
    where
        O::Answer: Serialize,
    {
        if O::SPEC.method == axum::http::Method::GET {
            etag::json(&self.headers, answer)
        } else {
            self.changed(StatusCode::OK, answer, answer)
        }
    }

    pub(super) fn created(&self, answer: &O::Answer) -> Answer
    where
        O::Answer: Serialize,
    {
        self.changed(StatusCode::CREATED, answer, answer)
    }

    /// The answer to a change. Its tag is that of `tagged`: the answer to a later `GET`.
    pub(super) fn changed(&self, status: StatusCode, answer: &O::Answer, tagged: &impl Serialize) -> Answer
    where
        O::Answer: Serialize,
    {
        etag::tagged(status, answer, &etag::represent(tagged)?.1)
    }

    pub(super) fn tagged(&self, status: StatusCode, answer: &O::Answer, tag: &Tag) -> Answer
    where
        O::Answer: Serialize,
    {
        etag::tagged(status, answer, tag)
    }
}

pub(super) struct Context<S = ApiState> {
    pub(super) state: S,
    caller: Caller,
    record: Arc<Record>,
}

impl<S: Part> Context<S> {
    fn admit<O: Operation>(&self, operation: &O) -> Result<(), Problem> {
        if !O::SPEC.is_recorded() {
            return Ok(());
        }
        let sets = O::SPEC.scopes;
        if !sets.iter().any(|set| set.iter().all(|scope| self.has(*scope))) {
            self.require(sets.first().copied().unwrap_or_default())?;
        }
        let Some(channel) = operation.channel() else { return Ok(()) };
        self.note("channel", channel.as_str());
        self.require_channel(channel)
    }

    /// Records a change before it is made, if the audit refuses what it cannot record.
    async fn record_begin<O: Operation>(&self, operation: &O) -> Result<(), Problem> {
        if !O::SPEC.is_change() || !O::SPEC.is_recorded() {
            return Ok(());
        }
        let channel = operation.channel().map(ChannelName::as_str);
        let method = Method::Api(O::SPEC.audit);
        if self.state.site().service.record_begin(&self.caller, method, channel).await {
            Ok(())
        } else {
            Err(Rejection::NotRecorded.into())
        }
    }

    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(super) fn name(&self) -> &str {
        self.caller.name()
    }

    pub(super) fn trust(&self) -> Trust {
        self.state.site().trust
    }

    pub(super) fn sees(&self, channel: &ChannelName) -> bool {
        self.state.site().shows(&self.caller, channel.as_str())
    }

    /// Refuses a hidden channel like one that does not exist.
    pub(super) fn require_channel(&self, channel: &ChannelName) -> Result<(), Problem> {
        let site = self.state.site();
        let access = site.access(channel.as_str());
        if !access.is_some_and(|access| site.gate.log_refusal(&self.caller, channel.as_str(), access)) {
            return Ok(());
        }
        Err(StoreError::NotFound { what: format!("the channel `{channel}`") }.into())
    }

    pub(super) fn has(&self, scope: Scope) -> bool {
        self.grants(scope.as_str())
    }

    /// Whether the caller has a scope, which need not be one of the API.
    pub(super) fn grants(&self, scope: &str) -> bool {
        self.state.site().grants(&self.caller, scope)
    }

    pub(super) fn require(&self, scopes: &[Scope]) -> Result<(), Problem> {
        if scopes.iter().all(|scope| self.has(*scope)) {
            return Ok(());
        }
        Err(Problem::insufficient_scope(scopes.iter().map(|scope| scope.as_str().to_owned()).collect()))
    }

    /// Whether the caller has one of the roles; any caller has if the list is empty.
    pub(super) fn has_role(&self, roles: &[String]) -> bool {
        self.trust() != Trust::SignIn
            || roles.is_empty()
            || self.caller.identity().is_some_and(|identity| identity.roles.iter().any(|own| roles.contains(own)))
    }

    /// Checks that the caller has one of the roles that the policy of a channel names for `what`.
    pub(super) fn require_role(&self, roles: &[String], what: &str) -> Result<(), Problem> {
        self.missing_role(roles, what).map_or(Ok(()), |reason| Err(Problem::insufficient_role(reason)))
    }

    /// Returns the reason against a caller without a role.
    pub(super) fn missing_role(&self, roles: &[String], what: &str) -> Option<Reason> {
        if self.has_role(roles) {
            return None;
        }
        let roles = roles.join(", ");
        let text = format!("The policy of the channel lets only these roles {what}: {roles}");
        Some(Reason::new("insufficient-role", text).with("roles", roles))
    }

    /// The caller as an actor who publishes nothing.
    pub(super) fn actor(&self) -> Actor {
        Actor { name: self.name().to_owned(), may_publish: false, may_administer: false, review_roles: None }
    }

    /// The caller as an actor, with the rights that scopes and the roles of a policy give.
    pub(super) fn actor_under(&self, roles: &PolicyRoles) -> Actor {
        Actor {
            may_publish: self.has(Scope::Publish) && self.has_role(&roles.publish),
            may_administer: self.has(Scope::Admin) && self.has_role(&roles.administer),
            review_roles: (self.trust() == Trust::SignIn).then(|| roles.review.clone()),
            ..self.actor()
        }
    }

    pub(super) fn note(&self, key: &'static str, text: &str) {
        self.record.change(|record| record.note(key, text));
    }

    pub(super) fn note_number(&self, key: &'static str, number: u64) {
        self.record.change(|record| record.note_number(key, number));
    }
}

/// The record of a call in the audit, and its measurement. Both end once, even if the call is dropped.
#[derive(Debug)]
struct Record {
    record: Mutex<Option<promptshelf_service::Operation>>,
    measured: Mutex<Option<Measured>>,
}

fn begin<O: Operation>(site: &Site, caller: &Caller) -> Result<Arc<Record>, Problem> {
    let measured = Measured::start(&site.service, O::SPEC.audit);
    if !O::SPEC.is_recorded() {
        return Ok(Arc::new(Record { record: Mutex::default(), measured: Mutex::new(measured) }));
    }
    match site.service.operation(caller, Method::Api(O::SPEC.audit)) {
        Ok(record) => Ok(Arc::new(Record { record: Mutex::new(Some(record)), measured: Mutex::new(measured) })),
        Err(rejection) => {
            let problem = Problem::from(rejection);
            measured.into_iter().for_each(|measured| measured.end(problem.name()));
            Err(problem)
        }
    }
}

impl Record {
    fn change(&self, change: impl FnOnce(&mut promptshelf_service::Operation)) {
        if let Some(record) = &mut *self.record.lock() {
            change(record);
        }
    }

    fn end(&self, outcome: &'static str) {
        let record = self.record.lock().take();
        record.into_iter().for_each(|record| record.end(outcome));
        let measured = self.measured.lock().take();
        measured.into_iter().for_each(|measured| measured.end(outcome));
    }
}

/// A request whose outcome and duration are reported to the observer at its end, for the metrics.
#[derive(Debug)]
pub(super) struct Measured {
    service: Service,
    method: &'static str,
    outcome: &'static str,
    started: Instant,
}

impl Measured {
    /// Starts the measurement, if there is an observer. `method` is one of a closed set.
    pub(super) fn start(service: &Service, method: &'static str) -> Option<Measured> {
        service.observer()?;
        Some(Measured { service: service.clone(), method, outcome: "cancelled", started: Instant::now() })
    }

    pub(super) fn end(mut self, outcome: &'static str) {
        self.outcome = outcome;
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        if let Some(observer) = self.service.observer() {
            observer.answered(self.method, outcome_at_drop(self.outcome), self.started.elapsed());
        }
    }
}
