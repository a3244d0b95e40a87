//! The HTTP client below the SDK's Streamable HTTP transport: redirects, headers, and a notification stream that is
//! opened on demand.
//!
//! Before revision 2026-07-28 the notification stream is a request of its own (specification 2025-11-25, *Transports,
//! Listening for Messages from the Server*; clients MAY send it), and the SDK sends it with every session. A program
//! that gets one prompt has no use for it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::{
    model::ClientJsonRpcMessage,
    transport::{
        AuthClient,
        streamable_http_client::{SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse},
    },
};
use sse_stream::Sse;
use tokio::sync::watch;

use crate::error::ClientError;

/// The time after which a connection is not used again. Servers close idle connections after five seconds or more, and
/// a request on one that is being closed would be lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

const MAX_REDIRECTS: usize = 10;

type Events = BoxStream<'static, Result<Sse, SseError>>;

/// A client with or without authorization. One type for both compiles the SDK's generic code once.
#[derive(Clone)]
pub(crate) enum HttpClient {
    Plain(reqwest::Client),
    Authorized(AuthClient<reqwest::Client>),
}

/// An HTTP client whose notification stream opens once notifications are wanted.
#[derive(Clone)]
pub(crate) struct HttpTransport {
    pub(crate) client: HttpClient,
    pub(crate) wants_notifications: watch::Receiver<bool>,
}

impl StreamableHttpClient for HttpTransport {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<reqwest::Error>> {
        match &self.client {
            HttpClient::Plain(client) => client.post_message(uri, message, session, token, headers).await,
            HttpClient::Authorized(client) => client.post_message(uri, message, session, token, headers).await,
        }
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        max_size: usize,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<reqwest::Error>> {
        match &self.client {
            HttpClient::Plain(client) => {
                client.post_message_with_max_sse_event_size(uri, message, session, token, headers, max_size).await
            }
            HttpClient::Authorized(client) => {
                client.post_message_with_max_sse_event_size(uri, message, session, token, headers, max_size).await
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), StreamableHttpError<reqwest::Error>> {
        match &self.client {
            HttpClient::Plain(client) => client.delete_session(uri, session, token, headers).await,
            HttpClient::Authorized(client) => client.delete_session(uri, session, token, headers).await,
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, StreamableHttpError<reqwest::Error>> {
        self.wait_until_wanted(last_event.as_deref()).await?;
        match &self.client {
            HttpClient::Plain(client) => client.get_stream(uri, session, last_event, token, headers).await,
            HttpClient::Authorized(client) => client.get_stream(uri, session, last_event, token, headers).await,
        }
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        max_size: usize,
    ) -> Result<Events, StreamableHttpError<reqwest::Error>> {
        self.wait_until_wanted(last_event.as_deref()).await?;
        match &self.client {
            HttpClient::Plain(client) => {
                client.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, max_size).await
            }
            HttpClient::Authorized(client) => {
                client.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, max_size).await
            }
        }
    }
}

impl HttpTransport {
    /// Waits until notifications are wanted. The rest of an interrupted answer, requested with the last event's id,
    /// does not wait.
    async fn wait_until_wanted(&self, last_event: Option<&str>) -> Result<(), StreamableHttpError<reqwest::Error>> {
        if last_event.is_none() && self.wants_notifications.clone().wait_for(|wanted| *wanted).await.is_err() {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(())
    }
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
