//! The stream for what a server says unasked is opened once somebody hears it.
//!
//! In the older era it is a request of its own (specification 2025-11-25,
//! *Transports, Listening for Messages from the Server*; clients MAY make it),
//! which the SDK makes with every session. One prompt, got and printed, has no
//! use for it, and it would run beside the one request that counts.

use std::{collections::HashMap, sync::Arc};

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

type Events = BoxStream<'static, Result<Sse, SseError>>;

/// What requests are sent with. One type for both, so that all that the SDK
/// makes of a client is in the binary once.
#[derive(Clone)]
pub(super) enum HttpClient {
    Plain(reqwest::Client),
    SignedIn(AuthClient<reqwest::Client>),
}

/// An HTTP client whose stream waits until it is wanted.
#[derive(Clone)]
pub(super) struct Unasked {
    pub(super) client: HttpClient,
    pub(super) is_heard: watch::Receiver<bool>,
}

impl StreamableHttpClient for Unasked {
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
            HttpClient::SignedIn(client) => client.post_message(uri, message, session, token, headers).await,
        }
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        most: usize,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<reqwest::Error>> {
        match &self.client {
            HttpClient::Plain(client) => {
                client.post_message_with_max_sse_event_size(uri, message, session, token, headers, most).await
            }
            HttpClient::SignedIn(client) => {
                client.post_message_with_max_sse_event_size(uri, message, session, token, headers, most).await
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
            HttpClient::SignedIn(client) => client.delete_session(uri, session, token, headers).await,
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
        self.until_wanted(last_event.as_deref()).await?;
        match &self.client {
            HttpClient::Plain(client) => client.get_stream(uri, session, last_event, token, headers).await,
            HttpClient::SignedIn(client) => client.get_stream(uri, session, last_event, token, headers).await,
        }
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        most: usize,
    ) -> Result<Events, StreamableHttpError<reqwest::Error>> {
        self.until_wanted(last_event.as_deref()).await?;
        match &self.client {
            HttpClient::Plain(client) => {
                client.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, most).await
            }
            HttpClient::SignedIn(client) => {
                client.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, most).await
            }
        }
    }
}

impl Unasked {
    /// Waits until somebody hears what is said unasked. The rest of an answer,
    /// which is asked for with the event that was seen last, waits for nobody.
    async fn until_wanted(&self, last_event: Option<&str>) -> Result<(), StreamableHttpError<reqwest::Error>> {
        if last_event.is_none() && self.is_heard.clone().wait_for(|is_heard| *is_heard).await.is_err() {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(())
    }
}
