//! The HTTP client below the SDK's Streamable HTTP transport: redirects, headers, reading answers, and a notification
//! stream that is opened on demand.
//!
//! The SDK's own client refuses answers with a media type in capitals, batches, and events with unknown fields.
//!
//! Before revision 2026-07-28 the notification stream is a request of its own (specification 2025-11-25, *Transports,
//! Listening for Messages from the Server*; clients MAY send it), and the SDK sends it with every session. A program
//! that gets one prompt has no use for it.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    future::Future,
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, stream, stream::BoxStream};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use reqwest::{RequestBuilder, Response};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, JsonRpcRequest, RequestId, ServerJsonRpcMessage,
    },
    transport::{
        AuthClient, WWWAuthenticateParams,
        common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE},
        streamable_http_client::{
            AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
            StreamableHttpError, StreamableHttpPostResponse as PostResponse,
        },
    },
};
use sse_stream::Sse;
use tokio::sync::watch;

use crate::{
    client_handler::ProbeOutcome, closing::Open, error::ClientError, events::events, reconnection::Reconnection,
    tolerance, transport::probe_error,
};

/// The time after which a connection is not used again. Servers close idle connections after five seconds or more, and
/// a request on one that is being closed would be lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

const MAX_REDIRECTS: usize = 10;
/// The largest answer that is no event stream, and the largest event, in bytes.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// The largest body of an HTTP error, in bytes.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// The time for the end of a session, for which the user waits.
const DELETE_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) type Events = BoxStream<'static, Result<Sse, SseError>>;

type HttpError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// A client with or without authorization. One type for both compiles the SDK's generic code once.
#[derive(Clone)]
pub(crate) enum HttpClient {
    Plain(Messages),
    Authorized(AuthClient<Messages>),
}

/// The HTTP client of a connection.
#[derive(Clone)]
pub(crate) struct HttpTransport {
    pub(crate) client: HttpClient,
    pub(crate) wants_notifications: watch::Receiver<bool>,
    /// The time for the answer to `server/discover`.
    pub(crate) probe_timeout: Duration,
    pub(crate) probe: ProbeOutcome,
    pub(crate) reconnection: Reconnection,
    pub(crate) _open: Open,
}

impl StreamableHttpClient for HttpTransport {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<PostResponse, HttpError> {
        let probe = match &message {
            JsonRpcMessage::Request(request) if matches!(request.request, ClientRequest::DiscoverRequest(_)) => {
                Some(request.id.clone())
            }
            _ => None,
        };
        let posting = async {
            match &self.client {
                HttpClient::Plain(client) => client.post_message(uri, message, session, token, headers).await,
                HttpClient::Authorized(client) => client.post_message(uri, message, session, token, headers).await,
            }
        };
        match probe {
            Some(id) => {
                let answer = probed(self.probe_timeout, id, posting).await;
                self.probe.note(match &answer {
                    Ok(PostResponse::Json(message, _)) => Some(message),
                    _ => None,
                });
                answer
            }
            None => posting.await,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpError> {
        let deleting = async {
            match &self.client {
                HttpClient::Plain(client) => client.delete_session(uri, session, token, headers).await,
                HttpClient::Authorized(client) => client.delete_session(uri, session, token, headers).await,
            }
        };
        tokio::time::timeout(DELETE_TIMEOUT, deleting).await.unwrap_or(Err(HttpError::ControlRequestTimeout))
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, HttpError> {
        self.wait_until_wanted(last_event.as_deref()).await?;
        self.reconnection.wait().await;
        let events = match &self.client {
            HttpClient::Plain(client) => client.get_stream(uri, session, last_event, token, headers).await?,
            HttpClient::Authorized(client) => client.get_stream(uri, session, last_event, token, headers).await?,
        };
        Ok(self.reconnection.follow(events))
    }
}

/// Waits for the answer to `server/discover`, also on a stream. Without one in time, the server counts as one of an older
/// revision.
async fn probed(
    timeout: Duration,
    id: RequestId,
    posting: impl Future<Output = Result<PostResponse, HttpError>>,
) -> Result<PostResponse, HttpError> {
    let answered = async {
        match posting.await? {
            stream @ PostResponse::Sse(..) => {
                let (message, session) = stream.expect_initialized::<reqwest::Error>().await?;
                Ok(PostResponse::Json(message, session))
            }
            other => Ok(other),
        }
    };
    let answer = tokio::time::timeout(timeout, answered).await;
    answer.unwrap_or_else(|_| Ok(PostResponse::Json(probe_error(id), None)))
}

impl HttpTransport {
    /// Waits until notifications are wanted. The rest of an interrupted answer, requested with the last event's id,
    /// does not wait.
    async fn wait_until_wanted(&self, last_event: Option<&str>) -> Result<(), HttpError> {
        if last_event.is_none() && self.wants_notifications.clone().wait_for(|wanted| *wanted).await.is_err() {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(())
    }
}

/// The messages of an endpoint, over plain HTTP requests.
#[derive(Clone)]
pub(crate) struct Messages(pub(crate) reqwest::Client);

impl Messages {
    async fn send(
        request: RequestBuilder,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Response, HttpError> {
        let mut request = request;
        for (name, value) in headers {
            if name == header::ACCEPT || [HEADER_SESSION_ID, HEADER_LAST_EVENT_ID].iter().any(|it| name == *it) {
                return Err(HttpError::ReservedHeaderConflict(name.to_string()));
            }
            request = request.header(name, value);
        }
        if let Some(session) = session {
            request = request.header(HEADER_SESSION_ID, &*session);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let response = request.header(header::ACCEPT, format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}"));
        let response = response.send().await?;
        let (status, challenge) = (response.status(), response.headers().get(header::WWW_AUTHENTICATE));
        let challenge = challenge.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        match (status, challenge) {
            // Without a challenge the sign-in looks for the server's metadata at the well-known URLs.
            (StatusCode::UNAUTHORIZED, challenge) => {
                Err(HttpError::AuthRequired(AuthRequiredError::new(challenge.unwrap_or_default())))
            }
            (StatusCode::FORBIDDEN, Some(challenge)) => {
                let scope = WWWAuthenticateParams::parse(&challenge, response.url()).scope;
                Err(HttpError::InsufficientScope(InsufficientScopeError::new(challenge, scope)))
            }
            _ => Ok(response),
        }
    }
}

impl StreamableHttpClient for Messages {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<PostResponse, HttpError> {
        let has_session = session.is_some();
        let request = self.0.post(&*uri).json(&message);
        let response = Messages::send(request, session, token, headers).await?;
        let status = response.status();
        let is_request = matches!(message, JsonRpcMessage::Request(_));
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return if is_request {
                Err(unexpected(format!("HTTP {status} has no answer")))
            } else {
                Ok(PostResponse::Accepted)
            };
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(HttpError::SessionExpired);
        }
        if !status.is_success() {
            return refused(response, &message, has_session).await;
        }
        if !is_request && response.content_length() == Some(0) {
            return Ok(PostResponse::Accepted);
        }
        let new_session = response.headers().get(HEADER_SESSION_ID).and_then(|value| value.to_str().ok());
        let new_session = new_session.map(str::to_owned);
        match media_type(&response) {
            Some(Media::Events) => Ok(PostResponse::Sse(events(response, MAX_ANSWER_BYTES), new_session)),
            Some(Media::Json) => {
                let body = body(response, MAX_ANSWER_BYTES).await?;
                match tolerance::messages(&body) {
                    Ok(messages) => complete_answer(&message, messages, new_session),
                    Err(_) if !is_request => Ok(PostResponse::Accepted),
                    Err(error) => Err(unexpected(format!("the server's answer is no message of JSON-RPC: {error}"))),
                }
            }
            None => Err(unexpected_media_type(&response)),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpError> {
        let response = Messages::send(self.0.delete(&*uri), Some(session), token, headers).await?;
        // A server may leave the end of sessions to itself.
        if response.status() != StatusCode::METHOD_NOT_ALLOWED {
            response.error_for_status()?;
        }
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, HttpError> {
        let mut request = self.0.get(&*uri);
        if let Some(last_event) = last_event {
            request = request.header(HEADER_LAST_EVENT_ID, last_event);
        }
        let response = Messages::send(request, session, token, headers).await?;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            return Err(HttpError::ServerDoesNotSupportSse);
        }
        if let Some(error) = status_error(response.status(), response.headers()) {
            return Err(error.into());
        }
        let response = response.error_for_status()?;
        match media_type(&response) {
            Some(Media::Events) => Ok(events(response, MAX_ANSWER_BYTES)),
            _ => Err(unexpected_media_type(&response)),
        }
    }
}

/// Returns the JSON-RPC error in an answer with a status of failure, or the status.
async fn refused(
    response: Response,
    message: &ClientJsonRpcMessage,
    has_session: bool,
) -> Result<PostResponse, HttpError> {
    let status = response.status();
    let is_json = matches!(media_type(&response), Some(Media::Json));
    let is_probe =
        matches!(message, JsonRpcMessage::Request(JsonRpcRequest { request: ClientRequest::DiscoverRequest(_), .. }));
    let failure = status_error(status, response.headers());
    if let Some(failure) = failure
        && (!is_json || is_probe || status.is_client_error())
    {
        return Err(failure.into());
    }
    let failure = status_error(status, response.headers());
    let body = match body(response, MAX_ERROR_BYTES).await {
        Ok(body) => body,
        Err(error @ HttpError::ResponseBodyTooLarge { .. }) => return Err(failure.map_or(error, HttpError::from)),
        Err(_) => Vec::new(),
    };
    let error = tolerance::messages(&body).ok().and_then(|mut messages| match messages.pop()? {
        JsonRpcMessage::Error(error) if messages.is_empty() => Some(error),
        _ => None,
    });
    let shown = || format!("HTTP {status}: {}", String::from_utf8_lossy(&body));
    match message {
        // Servers of older revisions refuse the first request with any status, and an error without its identifier.
        JsonRpcMessage::Request(request)
            if is_probe && !has_session && status.is_client_error() && status != StatusCode::FORBIDDEN =>
        {
            let error = error.map_or_else(|| ErrorData::invalid_request(shown(), None), |error| error.error);
            Ok(PostResponse::Json(ServerJsonRpcMessage::error(error, Some(request.id.clone())), None))
        }
        _ => match (error, failure) {
            (Some(error), _) if is_json && status != StatusCode::FORBIDDEN => {
                // Whatever its identifier is, the refusal is about this request.
                Ok(PostResponse::Json(answering(message, ServerJsonRpcMessage::error(error.error, None)), None))
            }
            (_, Some(failure)) => Err(failure.into()),
            _ => Err(unexpected(shown())),
        },
    }
}

/// Returns the messages of a whole answer. If none of them answers the request, none will.
fn complete_answer(
    message: &ClientJsonRpcMessage,
    mut messages: Vec<ServerJsonRpcMessage>,
    session: Option<String>,
) -> Result<PostResponse, HttpError> {
    if messages.len() == 1 {
        messages = vec![answering(message, messages.remove(0))];
    }
    if let JsonRpcMessage::Request(request) = message
        && !messages.iter().any(|answer| answered_request(answer) == Some(&request.id))
    {
        return Err(unexpected("the server's answer does not match the request".to_owned()));
    }
    if messages.len() == 1 {
        Ok(PostResponse::Json(messages.remove(0), session))
    } else {
        Ok(PostResponse::Sse(batch(messages), session))
    }
}

fn answered_request(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

/// Gives an error without an identifier that of the request which it answers (specification 2025-11-25, *Sending Messages to the
/// Server*).
fn answering(message: &ClientJsonRpcMessage, answer: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    match (message, answer) {
        (JsonRpcMessage::Request(request), JsonRpcMessage::Error(error)) if error.id.is_none() => {
            ServerJsonRpcMessage::error(error.error, Some(request.id.clone()))
        }
        (_, answer) => answer,
    }
}

/// Returns the failure of a server that may answer the same request later.
fn status_error(status: StatusCode, headers: &HeaderMap) -> Option<HttpStatusError> {
    let retry_after = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let is_temporary = status.is_server_error()
        || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS);
    is_temporary.then(|| HttpStatusError::new(status.as_u16(), retry_after))
}

enum Media {
    Json,
    Events,
}

fn content_type(response: &Response) -> Option<Cow<'_, str>> {
    response.headers().get(header::CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()))
}

fn media_type(response: &Response) -> Option<Media> {
    let content_type = content_type(response)?;
    match content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        JSON_MIME_TYPE => Some(Media::Json),
        EVENT_STREAM_MIME_TYPE => Some(Media::Events),
        _ => None,
    }
}

fn unexpected_media_type(response: &Response) -> HttpError {
    HttpError::UnexpectedContentType(content_type(response).map(Cow::into_owned))
}

fn unexpected(reason: String) -> HttpError {
    HttpError::UnexpectedServerResponse(reason.into())
}

async fn body(mut response: Response, max_size: usize) -> Result<Vec<u8>, HttpError> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await? {
        if body.len() + bytes.len() > max_size {
            return Err(HttpError::ResponseBodyTooLarge { max_size });
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

/// Returns the messages of a batch as a stream, which the SDK reads to its end.
fn batch(messages: Vec<ServerJsonRpcMessage>) -> Events {
    let texts = messages.into_iter().filter_map(|message| serde_json::to_string(&message).ok());
    stream::iter(texts.map(|text| Ok(Sse::default().data(text))).collect::<Vec<_>>()).boxed()
}

/// Creates an HTTP client that follows a redirect only within the origin and with method and body (307, 308). Any
/// other redirect would send headers to another origin or lose the message.
pub(crate) fn http_client() -> Result<reqwest::Client, ClientError> {
    let redirects = reqwest::redirect::Policy::custom(|attempt| {
        let keeps_message = matches!(attempt.status().as_u16(), 307 | 308);
        let same_origin = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
        if attempt.previous().len() > MAX_REDIRECTS {
            attempt.error("too many redirects")
        } else if keeps_message && same_origin {
            attempt.follow()
        } else {
            attempt.stop()
        }
    });
    let client = reqwest::Client::builder().pool_idle_timeout(IDLE_TIMEOUT).redirect(redirects).build();
    client.map_err(|error| ClientError::Unreachable {
        reason: format!("no HTTP client can be created: {error}"),
        source: Some(Box::new(error)),
    })
}

/// Converts the headers of an endpoint. Their values can be secrets and are marked as such.
pub(crate) fn header_map(headers: &BTreeMap<String, String>) -> Result<HashMap<HeaderName, HeaderValue>, ClientError> {
    let header = |(name, value): (&String, &String)| {
        let invalid = || ClientError::InvalidEndpoint(format!("the header {name} is malformed"));
        let header = HeaderName::try_from(name.as_str()).map_err(|_| invalid())?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| invalid())?;
        value.set_sensitive(true);
        Ok((header, value))
    };
    headers.iter().map(header).collect()
}
