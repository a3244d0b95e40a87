//! One road to a store: the operations of the API, on a server or in this process.
//!
//! Refusals become the errors of a store, wherever they come from.

use std::{path::PathBuf, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, Request, header};
use promptshelf_client::{ApiClient, ApiRequest, ClientError, Endpoint, ServerUrl};
use promptshelf_core::Definitions;
use promptshelf_server::{
    api::{Api, LocalApi, Operator},
    http::auth::random_token,
};
use promptshelf_service::{AuditFile, AuditFileOptions, Recorder};
use promptshelf_source::Fixed;
use promptshelf_store::{Store, StoreError};
use promptshelf_wire::{Operation, Page, Problem, RawBody};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{access::user, checker_with};
use crate::{
    connect::{self, sign_in},
    environment,
    exit::{Exit, Failure},
    output::visible_line,
    settings::{LocalSettings, ServerFileLocation},
    terminal::Progress,
};

/// The time limit for an answer of a server. It is longer than that of a server, whose answer explains more.
const TIMEOUT: Duration = Duration::from_secs(90);

/// How often a request that a limit of the server refuses is sent again, and the longest wait for it.
const MAX_RETRIES: u32 = 10;

const MAX_WAIT: Duration = Duration::from_secs(60);

/// How often a change whose answer was lost is sent again, and the wait before.
const MAX_LOST: u32 = 2;
const LOST_WAIT: Duration = Duration::from_secs(1);
const KEY: &str = "idempotency-key";

/// The number of items of a page.
pub(super) const PAGE: usize = 500;

/// The most items of a whole list.
const MAX_ITEMS: usize = 1_000_000;

/// The size in bytes above which a server may refuse a body and close the connection before all of it is sent. The
/// refusal is lost then.
const LARGE_BODY: usize = 1 << 20;

pub(super) type Answer<T> = Result<T, CallError>;

#[derive(Clone, Debug)]
pub(super) enum CallError {
    /// An error of the store; a server's answers become the same errors.
    Store(StoreError),
    /// An error that a store does not have, such as a missing scope.
    Other(Failure),
}

impl From<StoreError> for CallError {
    fn from(error: StoreError) -> CallError {
        CallError::Store(error)
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        match error {
            CallError::Store(error) => error.into(),
            CallError::Other(failure) => failure,
        }
    }
}

impl CallError {
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, CallError::Store(StoreError::Conflict { .. }))
    }

    /// Names the object of a precondition that was not met.
    pub(super) fn about(self, what: impl Into<String>) -> CallError {
        match self {
            CallError::Store(StoreError::Changed { .. }) => StoreError::Changed { what: what.into() }.into(),
            error => error,
        }
    }
}

/// The operations of a store. A server authenticates the caller; in this process it is the operator.
pub(super) enum Connection {
    Server(Box<ApiClient>),
    Store(Box<LocalStore>),
}

pub(super) struct LocalStore {
    pub(super) store: Store,
    pub(super) api: LocalApi,
    audit: Option<Arc<AuditFile>>,
}

impl LocalStore {
    pub(super) async fn close(&self) {
        self.store.close().await;
        if let Some(audit) = self.audit.clone() {
            tokio::task::spawn_blocking(move || audit.flush()).await.ok();
        }
    }
}

/// The caller of a store that is opened here.
#[derive(Clone, Debug)]
pub(super) struct LocalCaller {
    /// The name in history and in the audit; by default that of the user.
    pub(super) name: Option<String>,
    pub(super) config: Option<PathBuf>,
    pub(super) min_callers: u64,
}

impl Default for LocalCaller {
    fn default() -> LocalCaller {
        LocalCaller { name: None, config: None, min_callers: u64::MAX }
    }
}

impl LocalCaller {
    /// Connects to a store that `open` opens. The operator's audit and bounds hold.
    pub(super) async fn open(&self, open: impl AsyncFnOnce() -> Result<Store, Failure>) -> Result<LocalStore, Failure> {
        let location = ServerFileLocation::find(self.config.as_deref(), &environment::variable);
        let LocalSettings { audit, evaluations, rollout, access } =
            LocalSettings::read(&location, &environment::variable)?;
        let audit = audit.map(open_audit).transpose()?;
        let store = open().await?;
        let mut operator = Operator::new(self.name.clone().or_else(user).unwrap_or_else(|| "operator".to_owned()));
        operator.audit = audit.clone().map(|audit| audit as Arc<dyn Recorder>);
        operator.min_callers = self.min_callers;
        let rules = Fixed::new(Definitions { access, ..Definitions::default() });
        let checker = Arc::new(checker_with(self.config.as_deref()).rules(rules));
        let api = |handle| evaluations.into_iter().fold(Api::new(handle, checker).rollout(rollout), Api::evaluations);
        let api = LocalApi::new(store.clone(), api, operator)?;
        Ok(LocalStore { store, api, audit })
    }
}

fn open_audit(options: AuditFileOptions) -> Result<Arc<AuditFile>, Failure> {
    let path = options.path.clone();
    let opened = AuditFile::open(options);
    opened
        .map(Arc::new)
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot write the audit file {}: {error}", path.display())))
}

struct Reply {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    /// The error behind a refusal, if it is in this process.
    error: Option<StoreError>,
}

impl Connection {
    /// Prepares requests to a server. The first request connects.
    pub(super) async fn to_server(server: ServerUrl) -> Result<Connection, Failure> {
        let token = environment::variable("PROMPTSHELF_TOKEN");
        let progress = Progress::new(visible_line(&server.to_string()).into_owned());
        let client = ApiClient::new(server, token.as_deref(), Some(&sign_in(&progress)), TIMEOUT).await?;
        Ok(Connection::Server(Box::new(client)))
    }

    /// Closes the connections, and writes the last records. SQLite then removes the files next to the store.
    pub(super) async fn close(&self) {
        if let Connection::Store(local) = self {
            local.close().await;
        }
    }

    /// The name of the store or the server, without a password.
    pub(super) fn name(&self) -> String {
        match self {
            Connection::Server(client) => client.server().to_string(),
            Connection::Store(local) => local.store.url().to_string(),
        }
    }

    pub(super) async fn get<O>(&self, operation: &O) -> Answer<O::Answer>
    where
        O: Operation<Answer: DeserializeOwned>,
    {
        self.parse(&self.call(operation, &(), None, None).await?)
    }

    pub(super) async fn query<O>(&self, operation: &O, query: &O::Query) -> Answer<O::Answer>
    where
        O: Operation<Query: Serialize, Answer: DeserializeOwned>,
    {
        self.parse(&self.call(operation, query, None, None).await?)
    }

    /// Gets a page of a list.
    pub(super) async fn page<O>(
        &self,
        operation: &O,
        query: &O::Query,
        cursor: Option<&String>,
        limit: usize,
    ) -> Answer<O::Answer>
    where
        O: Operation<Query: Serialize, Answer: DeserializeOwned>,
    {
        let mut query = serde_json::to_value(query).unwrap_or_default();
        (query["cursor"], query["limit"]) = (json!(cursor), json!(limit));
        self.parse(&self.call(operation, &query, None, None).await?)
    }

    /// Gets a list page by page, until there are `limit` items.
    pub(super) async fn items<O, T>(&self, operation: &O, query: &O::Query, limit: usize) -> Answer<Vec<T>>
    where
        O: Operation<Query: Serialize, Answer = Page<T>>,
        T: DeserializeOwned,
    {
        let (mut items, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.page(operation, query, cursor.as_ref(), (limit - items.len()).min(PAGE)).await?;
            items.extend(page.items.into_iter().take(limit - items.len()));
            match page.next.filter(|next| cursor.as_ref() != Some(next)) {
                Some(next) if items.len() < limit => cursor = Some(next),
                _ => return Ok(items),
            }
        }
    }

    /// Gets a whole list.
    pub(super) async fn all<O, T>(&self, operation: &O) -> Answer<Vec<T>>
    where
        O: Operation<Query: Serialize + Default, Answer = Page<T>>,
        T: DeserializeOwned,
    {
        self.items(operation, &O::Query::default(), MAX_ITEMS).await
    }

    /// Gets an answer with its tag.
    pub(super) async fn tagged<O>(&self, operation: &O) -> Answer<(O::Answer, String)>
    where
        O: Operation<Answer: DeserializeOwned>,
    {
        let reply = self.call(operation, &(), None, None).await?;
        let tag = reply.headers.get(header::ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let tag = tag.ok_or_else(|| self.invalid_answer("it has no ETag"))?;
        Ok((self.parse(&reply)?, tag))
    }

    pub(super) async fn send<O>(&self, operation: &O, body: &O::Body) -> Answer<O::Answer>
    where
        O: Operation<Body: Serialize, Answer: DeserializeOwned>,
    {
        self.send_if(operation, body, None).await
    }

    /// Sends a change, on a condition about the present state.
    pub(super) async fn send_if<O>(
        &self,
        operation: &O,
        body: &O::Body,
        condition: Option<(HeaderName, String)>,
    ) -> Answer<O::Answer>
    where
        O: Operation<Body: Serialize, Answer: DeserializeOwned>,
    {
        let body = serde_json::to_vec(body).map_err(|error| self.invalid_answer(&error.to_string()))?;
        self.parse(&self.call(operation, &(), Some(body), condition).await?)
    }

    /// Deletes something, on a condition about its present state.
    pub(super) async fn delete<O>(&self, operation: &O, tag: Option<String>) -> Answer<O::Answer>
    where
        O: Operation<Answer: DeserializeOwned>,
    {
        let condition = tag.map(|tag| (header::IF_MATCH, tag));
        self.parse(&self.call(operation, &(), None, condition).await?)
    }

    /// Gets an answer that is no JSON.
    pub(super) async fn bytes<O: Operation<Query: Serialize>>(
        &self,
        operation: &O,
        query: &O::Query,
    ) -> Answer<Vec<u8>> {
        Ok(self.call(operation, query, None, None).await?.body)
    }

    /// Calls an operation without a body, and discards the answer.
    pub(super) async fn run<O: Operation>(&self, operation: &O) -> Answer<()> {
        self.call(operation, &(), None, None).await.map(drop)
    }

    async fn call<O: Operation>(
        &self,
        operation: &O,
        query: &impl Serialize,
        body: Option<Vec<u8>>,
        condition: Option<(HeaderName, String)>,
    ) -> Answer<Reply> {
        // A change never loses its condition.
        let condition = condition.map(|(name, tag)| HeaderValue::try_from(tag).map(|tag| (name, tag))).transpose();
        let condition = condition.map_err(|_| self.invalid_answer("its ETag is not one"))?.into_iter().collect();
        let query = pairs(&serde_json::to_value(query).unwrap_or_default());
        let (method, path) = (O::SPEC.method, operation.path());
        let path = path.trim_start_matches('/').to_owned();
        let mut headers: Vec<(HeaderName, HeaderValue)> = condition;
        if O::SPEC.happens_once()
            && let Some(key) = random_token().ok().and_then(|key| HeaderValue::try_from(key).ok())
        {
            headers.push((HeaderName::from_static(KEY), key));
        }
        self.exchange(ApiRequest { method, path, query, headers, body }).await
    }

    /// Sends bytes, which may be sent again if the answer is lost.
    pub(super) async fn send_bytes<O>(&self, operation: &O, query: &O::Query, body: Vec<u8>) -> Answer<O::Answer>
    where
        O: Operation<Query: Serialize, Body = RawBody, Answer: DeserializeOwned>,
    {
        let query = pairs(&serde_json::to_value(query).unwrap_or_default());
        let path = operation.path().trim_start_matches('/').to_owned();
        let headers = vec![(header::CONTENT_TYPE, HeaderValue::from_static(RawBody::MEDIA_TYPE))];
        let request = ApiRequest { method: O::SPEC.method, path, query, headers, body: Some(body) };
        self.parse(&self.exchange(request).await?)
    }

    async fn exchange(&self, request: ApiRequest) -> Answer<Reply> {
        let reply = match self {
            Connection::Server(client) => self.sent(client, &request).await?,
            Connection::Store(local) => called(&local.api, request).await,
        };
        match reply.status {
            200..=299 => Ok(reply),
            _ => Err(self.refusal(reply)),
        }
    }

    async fn sent(&self, client: &ApiClient, request: &ApiRequest) -> Answer<Reply> {
        let is_large = request.body.as_ref().is_some_and(|body| body.len() > LARGE_BODY);
        let failure = |error| match error {
            ClientError::Unreachable { reason, .. } if is_large => self.perhaps_too_large(&reason),
            error => of_client(error, client.server()),
        };
        let is_repeatable = request.headers.iter().any(|(name, _)| name == KEY || name == header::CONTENT_TYPE);
        let (mut retries, mut lost) = (0, 0);
        loop {
            let response = match client.send(request).await {
                Ok(response) if is_repeatable && lost < MAX_LOST && matches!(response.status, 502 | 504) => Err(None),
                Err(error) if is_repeatable && lost < MAX_LOST && is_lost(&error) => Err(Some(error)),
                answered => Ok(answered.map_err(failure)?),
            };
            let Ok(response) = response else {
                // The change happens once, however often it is sent.
                lost += 1;
                tokio::time::sleep(LOST_WAIT).await;
                continue;
            };
            let reply = Reply { status: response.status, headers: response.headers, body: response.body, error: None };
            let is_refused = matches!(reply.status, 409 | 429);
            match retry_after(&reply).filter(|_| is_refused && retries < MAX_RETRIES) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Ok(reply),
            }
            retries += 1;
        }
    }

    fn parse<T: DeserializeOwned>(&self, reply: &Reply) -> Answer<T> {
        serde_json::from_slice(&reply.body).map_err(|error| self.invalid_answer(&error.to_string()))
    }

    /// Converts an answer that is not a success.
    fn refusal(&self, reply: Reply) -> CallError {
        let name = self.name();
        if let Some(error) = reply.error {
            return error.into();
        }
        let kind = reply.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let problem: Option<Problem> =
            kind.starts_with("application/problem+json").then(|| serde_json::from_slice(&reply.body).ok()).flatten();
        match (problem, reply.status) {
            (Some(problem), status) => self.of_problem(problem, status),
            (None, 404 | 405) => no_api(&name),
            (None, 413) => too_large(&name),
            (None, status @ (408 | 502..=504)) => unreachable(format!("{name} answered with status {status}")),
            (None, status) => failed(format!("{name} answered with status {status}")),
        }
    }

    fn of_problem(&self, problem: Problem, status: u16) -> CallError {
        let name = self.name();
        let kind = problem.name().to_owned();
        let Problem { detail, paths, revision, lacks, reasons, .. } = problem;
        let store = match &*kind {
            "not-found" => match detail.strip_suffix(" does not exist") {
                Some("This path of the API") => return no_api(&name),
                what => StoreError::NotFound { what: what.unwrap_or(&detail).to_owned() },
            },
            "conflict" => {
                StoreError::Conflict { paths: paths.unwrap_or_default(), revision: revision.unwrap_or_default() }
            }
            "policy" => StoreError::Policy { lacks: lacks.unwrap_or_default(), reasons },
            "unchanged" => StoreError::Unchanged { reason: detail },
            "state" | "not-author" => StoreError::State { reason: detail },
            // The caller of the operation names the changed object.
            "precondition-failed" | "stale-review" | "stale-evaluation" => StoreError::Changed { what: String::new() },
            "invalid-request" => StoreError::InvalidInput { reason: detail },
            "insufficient-role" => return CallError::Other(Failure::new(Exit::Policy, detail)),
            "insufficient-scope" | "not-grantable" | "sign-in-required" | "foreign-request" => {
                return CallError::Other(Failure::new(Exit::SignIn, detail));
            }
            "too-large" => return too_large(&name),
            "store-unreachable" => {
                return unreachable(format!("{name} cannot reach its database; nothing was changed, try again later"));
            }
            "not-recorded" => return CallError::Other(Failure::new(Exit::Failed, detail).help(NOT_RECORDED)),
            _ if matches!(status, 503 | 504) => return unreachable(format!("{name}: {detail}")),
            _ => return failed(format!("{name} answered with status {status}: {detail}")),
        };
        store.into()
    }

    fn invalid_answer(&self, reason: &str) -> CallError {
        failed(format!("the answer of {} is not that of the API: {reason}", self.name()))
    }

    /// The error of a connection that ended while a large request was sent.
    fn perhaps_too_large(&self, reason: &str) -> CallError {
        let name = self.name();
        let message = format!("{name} ended the connection, perhaps because a request was too large: {reason}");
        CallError::Other(Failure::new(Exit::Store, message).help(SMALLER))
    }
}

const NOT_RECORDED: &str = "the audit file needs space, or permission to be written: see its path in [audit]";

/// Whether a request may have reached the server, and its answer got lost.
fn is_lost(error: &ClientError) -> bool {
    match error {
        ClientError::TimedOut { .. } => true,
        ClientError::Unreachable { source, .. } => {
            let cause = source.as_ref().and_then(|source| source.downcast_ref::<reqwest::Error>());
            cause.is_some_and(|cause| !cause.is_connect())
        }
        _ => false,
    }
}

/// Calls an operation in this process.
async fn called(api: &LocalApi, request: ApiRequest) -> Reply {
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&request.query).finish();
    let mut local = Request::new(request.body.unwrap_or_default());
    *local.method_mut() = request.method;
    // Names in paths are encoded.
    *local.uri_mut() = format!("/{}?{query}", request.path).parse().unwrap_or_default();
    local.headers_mut().extend(request.headers);
    if !local.body().is_empty() && !local.headers().contains_key(header::CONTENT_TYPE) {
        local.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let answer = api.call(local).await;
    Reply { status: answer.status, headers: answer.headers, body: answer.body.to_vec(), error: answer.error }
}

/// Returns the parameters of a query, without those that are missing.
fn pairs(query: &Value) -> Vec<(std::borrow::Cow<'static, str>, String)> {
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let members = query.as_object().into_iter().flatten();
    members.filter_map(|(name, value)| Some((name.clone().into(), text(value)?))).collect()
}

/// Returns the wait that a server requests, if it is short enough.
fn retry_after(reply: &Reply) -> Option<Duration> {
    let seconds = reply.headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds)).filter(|wait| *wait <= MAX_WAIT)
}

fn of_client(error: ClientError, server: &ServerUrl) -> CallError {
    match error {
        ClientError::Unreachable { reason, .. } => unreachable(format!("{server} does not answer: {reason}")),
        ClientError::TimedOut { .. } => unreachable(format!("{server} does not answer: {error}")),
        error => {
            let (endpoint, has_token) = endpoint(server);
            let is_forbidden = matches!(error, ClientError::Forbidden { .. });
            let failure = connect::failure(error, Some(&endpoint));
            CallError::Other(if is_forbidden && has_token {
                failure.help("the token in PROMPTSHELF_TOKEN needs all of them")
            } else {
                failure
            })
        }
    }
}

/// Returns the endpoint of the sign-in, and whether there is a token in its place.
fn endpoint(server: &ServerUrl) -> (Endpoint, bool) {
    let endpoint = server.endpoint();
    match environment::variable("PROMPTSHELF_TOKEN") {
        Some(token) => (endpoint.clone().bearer(&token).unwrap_or(endpoint), true),
        None => (endpoint, false),
    }
}

fn no_api(name: &str) -> CallError {
    let failure = Failure::new(Exit::Store, format!("{name} has no API of a store"));
    CallError::Other(failure.help(
        "the API belongs to a server of a channel, with sign-in or `serve --api`; a server of an older release lacks parts",
    ))
}

fn unreachable(reason: String) -> CallError {
    StoreError::Unreachable { reason, source: None }.into()
}

fn failed(message: String) -> CallError {
    CallError::Other(Failure::new(Exit::Failed, message))
}

const SMALLER: &str =
    "split the change, or remove a large file; the operator can raise `max-body-bytes` in server.toml";

fn too_large(name: &str) -> CallError {
    let failure = Failure::new(Exit::Failed, format!("a request is larger than {name} accepts"));
    CallError::Other(failure.help(SMALLER))
}

/// Returns the states of the sources of a server, as `promptshelf source list --json` prints them.
pub(crate) async fn remote_sources(url: &str) -> Result<Value, Failure> {
    let server = Connection::to_server(url.parse::<ServerUrl>()?).await?;
    let sources = server.all(&promptshelf_wire::op::ListSources {}).await?;
    Ok(json!({ "sources": sources }))
}

/// Lets a server read a source again.
pub(crate) async fn refresh_remote_source(url: &str, name: &str) -> Result<(), Failure> {
    let server = Connection::to_server(url.parse::<ServerUrl>()?).await?;
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) {
        let message = format!("a source cannot have the name {}", visible_line(name));
        return Err(Failure::new(Exit::NotFound, message).help("`promptshelf source list` shows the names"));
    }
    Ok(server.run(&promptshelf_wire::op::RefreshSource { source: name.to_owned() }).await?)
}
