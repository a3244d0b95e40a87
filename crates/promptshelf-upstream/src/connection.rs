//! The connection to another server, and the calls over it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use promptshelf_client::{
    Arguments, Client, ClientError, CompletionTarget, ConnectOptions, Endpoint, PromptListing, ResourceInfo,
};
use promptshelf_core::{BoxFuture, RemoteAnswer, RemoteInput, RenderError, Variables};
use tokio::{sync::Notify, time::timeout};

use crate::{
    breaker::Breaker,
    convert::{self, Refused},
    credentials::UpstreamCredentials,
    definition::visible,
    known_resources::KnownResources,
    questions::{Questions, Reply},
    replay::Replay,
};

const MAX_REASON: usize = 300;

const LIST_ANSWERS: u32 = 6;

pub(crate) struct Connection {
    name: String,
    endpoint: Endpoint,
    credentials: UpstreamCredentials,
    timeout: Duration,
    max_prompts: usize,
    client: Mutex<Option<Client>>,
    replay: Arc<Replay>,
    questions: Questions,
    pub(crate) resources: KnownResources,
    breaker: Breaker,
    pub(crate) broken: Notify,
}

impl Connection {
    pub(crate) fn new(
        name: String,
        endpoint: Endpoint,
        credentials: UpstreamCredentials,
        timeout: Duration,
        max_prompts: usize,
    ) -> Connection {
        Connection {
            name,
            endpoint,
            credentials,
            timeout,
            max_prompts,
            client: Mutex::default(),
            replay: Arc::default(),
            questions: Questions::default(),
            resources: KnownResources::default(),
            breaker: Breaker::default(),
            broken: Notify::new(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn questions(&self) -> &Questions {
        &self.questions
    }

    /// Returns the number of questions that belong to no request.
    pub(crate) fn declined(&self) -> u64 {
        self.replay.declined()
    }

    pub(crate) fn client(&self) -> Option<Client> {
        let client = self.client.lock();
        client.clone().filter(|client| !client.is_closed())
    }

    fn set_client(&self, client: Option<Client>) {
        *self.client.lock() = client;
    }

    /// Lists the prompts, over a new connection where needed. If the list breaks off, the pages that came count.
    pub(crate) async fn list(&self) -> Result<Received, String> {
        self.questions.close_idle();
        let (mut listing, mut connected) = (PromptListing::default(), None);
        let most = self.timeout * LIST_ANSWERS;
        let listed = timeout(most, async {
            let client = match self.client() {
                Some(client) => client,
                None => self.connect(Arc::clone(&self.replay)).await?,
            };
            connected = Some(client.clone());
            // The operator decides how often the list is read, not the other server.
            client.forget_cached().await;
            collect_prompts(&client, &mut listing).await.map_err(|error| reason(&error))?;
            // Prompts can only link to resources of its kinds, so that they have to be known first.
            self.list_resources(&client).await;
            Ok(())
        });
        let listed = listed.await;
        let listed = listed.unwrap_or_else(|_| Err(format!("its list did not end within {} s", most.as_secs())));
        let problem = listed.err();
        match (connected, problem) {
            (Some(client), problem) if problem.is_none() || !listing.prompts.is_empty() && !listing.is_too_long => {
                self.set_client(Some(client.clone()));
                self.breaker.succeed();
                let came = listing.prompts.len();
                let prompts = if came == 1 { "prompt, which is" } else { "prompts, which are" };
                let problem =
                    problem.map(|problem| format!("its list breaks off after {came} {prompts} served: {problem}"));
                Ok(Received { client, listing, problem })
            }
            (_, problem) => {
                self.set_client(None);
                Err(problem.unwrap_or_default())
            }
        }
    }

    /// Lists the resources that can be read. Without an answer the last list stays: prompts do not depend on it.
    async fn list_resources(&self, client: &Client) {
        if client.has_resources() {
            match timeout(self.timeout, all_resources(client)).await {
                Ok(Ok(resources)) => self.resources.set_listed(resources),
                Ok(Err(error)) => tracing::debug!(source = self.name, "no list of resources: {}", reason(&error)),
                Err(_) => tracing::debug!(source = self.name, "the list of resources takes too long"),
            }
        }
    }

    pub(crate) async fn connect(&self, replay: Arc<Replay>) -> Result<Client, String> {
        // The label is part of messages, and a command line can contain secrets.
        let options = ConnectOptions::new().label(&*self.name).timeout(self.timeout);
        let options = options.max_list_entries(self.max_prompts).elicitation_handler(replay);
        let (options, endpoint) = self.credentials.apply(options, self.endpoint.clone())?;
        connect(options, &endpoint).await.map_err(|error| reason(&error))
    }

    pub(crate) fn unavailable(&self, problem: &str) -> RenderError {
        RenderError::Unavailable(format!("the server of the source {} {problem}", self.name))
    }

    /// Passes on `prompts/get`. The answer can be a question to the user of the caller.
    pub(crate) async fn get(
        &self,
        prompt: &str,
        arguments: &Arguments,
        input: &RemoteInput,
    ) -> Result<RemoteAnswer, RenderError> {
        let unavailable = |problem: &str| self.unavailable(problem);
        let client = self.client().filter(|_| self.breaker.admits(Instant::now()));
        let Some(client) = client else {
            self.broken.notify_one();
            return Err(unavailable("does not answer at present; try again later"));
        };
        let answer = timeout(self.timeout, self.answer(&client, prompt, arguments, input)).await;
        match answer.unwrap_or(Err(ClientError::TimedOut { after: self.timeout })) {
            Ok(answer) => {
                self.breaker.succeed();
                let refused = |refused: Refused| unavailable(&format!("sent {}, which is not passed on", refused.0));
                match answer {
                    Reply::Complete(result) => {
                        let messages = convert::messages(result.messages, &self.resources.schemes());
                        let messages = messages.map_err(refused)?;
                        self.resources.note(prompt, &messages);
                        Ok(RemoteAnswer::Messages(messages))
                    }
                    Reply::Asked(question) => question.map(RemoteAnswer::InputRequired).map_err(refused),
                    Reply::Unaskable(what) => Err(RenderError::Rejected(format!(
                        "the server of the source {} asks the user for input, which requires a client with {what}",
                        self.name
                    ))),
                    Reply::Outdated => Err(RenderError::Rejected(
                        "the other server asks another question than the one that was answered; begin again".to_owned(),
                    )),
                }
            }
            Err(error @ ClientError::ErrorResponse { .. }) => {
                self.breaker.succeed();
                if error.is_invalid_params() {
                    Err(RenderError::Rejected(reason(&error)))
                } else {
                    Err(unavailable(&format!("answered with an error: {}", reason(&error))))
                }
            }
            Err(error) => {
                self.note_failure();
                // The breaker bounds the lines.
                tracing::warn!(source = self.name, "the server of a source did not answer: {}", reason(&error));
                // Hosts and ports of other servers are no business of callers.
                let names_host = matches!(error, ClientError::Unreachable { .. } | ClientError::SignInFailed { .. });
                Err(unavailable(&if names_host {
                    "did not answer; the log of this server has the reason".to_owned()
                } else {
                    format!("did not answer: {}", reason(&error))
                }))
            }
        }
    }

    /// Passes on `completion/complete`. A missing answer means an empty list of suggestions.
    pub(crate) async fn complete(
        &self,
        prompt: &str,
        argument: &str,
        typed: &str,
        known: Variables,
    ) -> (Vec<String>, usize) {
        let client = self.client().filter(|client| client.has_completions() && self.breaker.admits(Instant::now()));
        let Some(client) = client else { return (Vec::new(), 0) };
        let target = CompletionTarget::Prompt(prompt);
        match timeout(self.timeout, client.complete(target, argument, typed, &known)).await {
            Ok(Ok(found)) => {
                self.breaker.succeed();
                let values: Vec<String> = found.values.iter().map(|value| visible(value)).collect();
                let total =
                    found.total.map_or(0, |total| total as usize).max(values.len() + usize::from(found.has_more));
                (values, total)
            }
            Ok(Err(ClientError::ErrorResponse { .. })) => (Vec::new(), 0),
            _ => {
                self.note_failure();
                (Vec::new(), 0)
            }
        }
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn admits(&self, now: Instant) -> bool {
        self.breaker.admits(now)
    }

    pub(crate) fn note_success(&self) {
        self.breaker.succeed();
    }

    pub(crate) fn note_failure(&self) {
        self.breaker.fail(Instant::now());
        self.broken.notify_one();
    }
}

/// Connects, as a future whose type names no lifetime inside.
fn connect(options: ConnectOptions, endpoint: &Endpoint) -> BoxFuture<'_, Result<Client, ClientError>> {
    Box::pin(options.connect(endpoint))
}

pub(crate) struct Received {
    pub(crate) client: Client,
    pub(crate) listing: PromptListing,
    /// The reason why it is not the whole list.
    pub(crate) problem: Option<String>,
}

/// Lists all prompts, as a future whose type names no lifetime of the stream inside.
fn collect_prompts<'c>(client: &'c Client, listing: &'c mut PromptListing) -> BoxFuture<'c, Result<(), ClientError>> {
    Box::pin(client.collect_prompts(listing))
}

/// Lists all resources and templates, as a future whose type names no lifetime of the stream inside. A server without
/// templates answers with an error.
fn all_resources(client: &Client) -> BoxFuture<'_, Result<Vec<ResourceInfo>, ClientError>> {
    Box::pin(async move {
        let mut all = client.all_resources().await?;
        all.extend(client.all_resource_templates().await.unwrap_or_default());
        Ok(all)
    })
}

/// Returns the text of an error, which can contain text of the server, in visible characters and bounded.
pub(crate) fn reason(error: &ClientError) -> String {
    let text: String = match error {
        ClientError::ErrorResponse { message, .. } => visible(message),
        other => visible(&other.to_string()),
    };
    let text = text.replace(['\n', '\t'], " ");
    match text.char_indices().nth(MAX_REASON) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
