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
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::Sse;
use tokio::sync::watch;

type Events = BoxStream<'static, Result<Sse, SseError>>;

/// An HTTP client whose stream waits until it is wanted.
#[derive(Clone)]
pub(super) struct Unasked<C> {
    pub(super) client: C,
    pub(super) is_heard: watch::Receiver<bool>,
}

impl<C: StreamableHttpClient + Sync> StreamableHttpClient for Unasked<C> {
    type Error = C::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<C::Error>> {
        self.client.post_message(uri, message, session, token, headers).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        most: usize,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<C::Error>> {
        self.client.post_message_with_max_sse_event_size(uri, message, session, token, headers, most).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), StreamableHttpError<C::Error>> {
        self.client.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, StreamableHttpError<C::Error>> {
        self.until_wanted(last_event.as_deref()).await?;
        self.client.get_stream(uri, session, last_event, token, headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        most: usize,
    ) -> Result<Events, StreamableHttpError<C::Error>> {
        self.until_wanted(last_event.as_deref()).await?;
        self.client.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, most).await
    }
}

impl<C: StreamableHttpClient> Unasked<C> {
    /// Waits until somebody hears what is said unasked. The rest of an answer,
    /// which is asked for with the event that was seen last, waits for nobody.
    async fn until_wanted(&self, last_event: Option<&str>) -> Result<(), StreamableHttpError<C::Error>> {
        if last_event.is_none() && self.is_heard.clone().wait_for(|is_heard| *is_heard).await.is_err() {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(())
    }
}
