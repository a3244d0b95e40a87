//! Requests to the API: tokens, waiting for a limit of the server, and answers as values.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, header};
use promptshelf_client::{ApiClient, ApiRequest, ApiResponse, ClientError, ServerUrl};
use promptshelf_store::Published;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    error::{invalid_answer, of_client, of_response, perhaps_too_large},
    model::Outcome,
};
use crate::{
    commands::channels::answer::Answer, connect::sign_in, environment, exit::Failure, output::visible_line,
    terminal::Progress,
};

/// The time limit for an answer. It is longer than that of a server, whose answer explains more.
const TIMEOUT: Duration = Duration::from_secs(90);
/// How often a request that a limit of the server refuses is sent again, and the longest wait for it.
const MAX_RETRIES: u32 = 10;
const MAX_WAIT: Duration = Duration::from_secs(60);
/// The size in bytes above which a server may refuse a body and close the connection before all of it is sent. The
/// refusal is lost then.
const LARGE_BODY: usize = 1 << 20;

pub(in crate::commands::channels) struct Remote {
    client: ApiClient,
}

pub(super) struct Request(ApiRequest);

impl Request {
    pub(super) fn new(method: Method, path: &str) -> Request {
        let path = format!("api/v1/{path}");
        Request(ApiRequest { method, path, query: Vec::new(), headers: Vec::new(), body: None })
    }

    fn query(mut self, query: Vec<(&'static str, String)>) -> Request {
        self.0.query = query.into_iter().map(|(name, value)| (name.into(), value)).collect();
        self
    }

    pub(super) fn body(mut self, body: &Value) -> Request {
        self.0.body = Some(body.to_string().into_bytes());
        self
    }

    pub(super) fn condition(mut self, (name, tag): (HeaderName, String)) -> Request {
        self.0.headers.extend(HeaderValue::try_from(tag).ok().map(|tag| (name, tag)));
        self
    }
}

impl Remote {
    /// Prepares requests to a server. The first request connects.
    pub(in crate::commands::channels) async fn new(server: ServerUrl) -> Result<Remote, Failure> {
        let token = environment::variable("PROMPTSHELF_TOKEN");
        let progress = Progress::new(visible_line(&server.to_string()).into_owned());
        let client = ApiClient::new(server, token.as_deref(), Some(&sign_in(&progress)), TIMEOUT).await?;
        Ok(Remote { client })
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str, query: Vec<(&'static str, String)>) -> Answer<T> {
        self.call(Request::new(Method::GET, path).query(query)).await
    }

    pub(super) async fn tagged<T: DeserializeOwned>(&self, path: &str) -> Answer<(T, String)> {
        let response = self.send(Request::new(Method::GET, path)).await?;
        let tag = response.headers.get(header::ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let tag = tag.ok_or_else(|| invalid_answer(self.client.server(), "it has no ETag"))?;
        Ok((self.parse(&response)?, tag))
    }

    pub(super) async fn call<T: DeserializeOwned>(&self, request: Request) -> Answer<T> {
        let response = self.send(request).await?;
        self.parse(&response)
    }

    pub(super) async fn change(&self, request: Request) -> Answer<Published> {
        let Outcome { proposal, prompts, findings, kept } = self.call(request).await?;
        Ok(Published { proposal, prompts, findings, kept })
    }

    pub(super) async fn send(&self, Request(request): Request) -> Answer<ApiResponse> {
        let server = self.client.server();
        let is_large = request.body.as_ref().is_some_and(|body| body.len() > LARGE_BODY);
        let failure = |error| match error {
            ClientError::Unreachable { reason, .. } if is_large => perhaps_too_large(server, &reason),
            error => of_client(error, server),
        };
        let mut retries = 0;
        loop {
            let response = self.client.send(&request).await.map_err(failure)?;
            match response.status {
                200..=299 => return Ok(response),
                429 if retries < MAX_RETRIES => match retry_after(&response) {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => return Err(of_response(&response, server)),
                },
                _ => return Err(of_response(&response, server)),
            }
            retries += 1;
        }
    }

    fn parse<T: DeserializeOwned>(&self, response: &ApiResponse) -> Answer<T> {
        serde_json::from_slice(&response.body).map_err(|error| invalid_answer(self.client.server(), &error.to_string()))
    }
}

/// Returns the wait that a server requests, if it is short enough.
fn retry_after(response: &ApiResponse) -> Option<Duration> {
    let seconds = response.headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds)).filter(|wait| *wait <= MAX_WAIT)
}
