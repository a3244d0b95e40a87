//! Multi round-trip requests: the server answers with elicitations, and the request is sent again with the user's input
//! (specification 2026-07-28, *Multi round-trip requests*).
//!
//! The state travels with the requests, so that going back repeats an earlier round with new values. Servers of older
//! revisions elicit in the middle of a request; `client_handler` responds there, and going back is impossible.

use rmcp::{
    ServiceError,
    model::{GetPromptRequestParams, InputRequest, InputRequiredResult, InputResponses, ReadResourceRequestParams},
};
use serde_json::{Map, Value};

use crate::{
    client::Client,
    elicitation::{Elicitation, ElicitationResponse, FormValues},
    error::ClientError,
    model::{Arguments, PromptResult, ReadResult},
    prompt_request::{PromptAnswer, get_prompt},
    read_request::{ReadAnswer, read_resource},
};

/// The most rounds of one request; a guided prompt has about five.
const MAX_ROUNDS: usize = 50;
const MAX_ELICITATIONS: usize = 20;
const MAX_MESSAGES: usize = 10_000;

/// The answer to one request for a prompt ([`Client::get_round`]).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PromptRound {
    /// The prompt.
    Complete(PromptResult),
    /// The server requires input.
    InputRequired {
        /// The elicitations by key, at most 20.
        requests: Vec<(String, Elicitation)>,
        /// The state for the next request.
        state: Option<String>,
    },
}

enum Outcome<T> {
    Complete(T),
    InputRequired(InputRequiredResult),
}

struct Round {
    required: InputRequiredResult,
    responses: Vec<ElicitationResponse>,
}

impl Client {
    /// Gets a prompt. Elicitations of the server are passed to the
    /// [`ElicitationHandler`](crate::ElicitationHandler), for at most 50 rounds.
    ///
    /// # Errors
    ///
    /// - [`ClientError::ErrorResponse`] if the server rejects the request: see
    ///   [`is_invalid_params`](ClientError::is_invalid_params) for unknown names and invalid arguments;
    /// - [`ClientError::Cancelled`] if the user cancelled an elicitation;
    /// - [`ClientError::TimedOut`], [`ClientError::Unreachable`], [`ClientError::InvalidResponse`] and
    ///   [`ClientError::LimitExceeded`] for failures of the connection or of the server;
    /// - [`ClientError::AuthenticationRequired`], [`ClientError::Forbidden`] and [`ClientError::SignInFailed`] if the
    ///   server does not grant access.
    pub async fn get(&self, name: &str, arguments: &Arguments) -> Result<PromptResult, ClientError> {
        let params = prompt_params(name, arguments);
        let result: PromptResult = self
            .in_rounds(|state, responses| {
                let mut params = params.clone();
                params.request_state = state;
                params.input_responses = responses;
                async move {
                    Ok(match get_prompt(self.peer(), params).await? {
                        PromptAnswer::Complete(result) => Outcome::Complete(result),
                        PromptAnswer::InputRequired(required) => Outcome::InputRequired(required),
                    })
                }
            })
            .await?;
        within_limit(result)
    }

    /// Sends one request for a prompt to a server of revision 2026-07-28 or later, and leaves elicitations to the caller:
    /// the next request has the state of the answer, and for each key an `ElicitResult` in `responses`. Servers of older
    /// revisions elicit through the [`ElicitationHandler`](crate::ElicitationHandler).
    ///
    /// # Errors
    ///
    /// Those of [`get`](Client::get).
    pub async fn get_round(
        &self,
        name: &str,
        arguments: &Arguments,
        state: Option<&str>,
        responses: &Map<String, Value>,
    ) -> Result<PromptRound, ClientError> {
        let mut params = prompt_params(name, arguments);
        params.request_state = state.map(str::to_owned);
        params.input_responses = (!responses.is_empty())
            .then(|| responses.iter().map(|(key, value)| (key.clone(), value.clone())).collect());
        let required = match self.request(|| get_prompt(self.peer(), params.clone())).await? {
            PromptAnswer::Complete(result) => return within_limit(result).map(PromptRound::Complete),
            PromptAnswer::InputRequired(required) => required,
        };
        let requests = required.input_requests.iter().flatten();
        let requests = requests.map(|(key, request)| match request {
            InputRequest::Elicitation(request) => Ok((key.clone(), self.handler().elicitation(&request.params))),
            _ => Err(undeclared()),
        });
        let requests = requests.collect::<Result<Vec<_>, _>>()?;
        check_count(requests.len())?;
        Ok(PromptRound::InputRequired { requests, state: required.request_state })
    }

    /// Reads a resource. Elicitations of the server are handled as in [`get`](Client::get).
    ///
    /// # Errors
    ///
    /// Those of [`get`](Client::get). Before revision 2026-07-28 the error code of an unknown URI is `-32002`.
    pub async fn read(&self, uri: &str) -> Result<ReadResult, ClientError> {
        let params = ReadResourceRequestParams::new(uri);
        self.in_rounds(|state, responses| {
            let mut params = params.clone();
            params.request_state = state;
            params.input_responses = responses;
            async move {
                Ok(match read_resource(self.peer(), params).await? {
                    ReadAnswer::Complete(result) => Outcome::Complete(result),
                    ReadAnswer::InputRequired(required) => Outcome::InputRequired(required),
                })
            }
        })
        .await
    }

    /// Sends a request until its result is complete. Responses of earlier rounds are kept for going back.
    async fn in_rounds<T, F, A>(&self, send: F) -> Result<T, ClientError>
    where
        F: Fn(Option<String>, Option<InputResponses>) -> A,
        A: Future<Output = Result<Outcome<T>, ServiceError>>,
    {
        let mut rounds: Vec<Round> = Vec::new();
        let mut outcome = self.request(|| send(None, None)).await?;
        for _ in 0..MAX_ROUNDS {
            let mut required = match outcome {
                Outcome::Complete(result) => return Ok(result),
                Outcome::InputRequired(required) => required,
            };
            let mut previous = Vec::new();
            let responses = loop {
                match self.elicit(&required, previous, !rounds.is_empty()).await? {
                    Some(responses) => break responses,
                    None => match rounds.pop() {
                        Some(round) => (required, previous) = (round.required, round.responses),
                        None => return Err(ClientError::Cancelled),
                    },
                }
            };
            let keys = required.input_requests.iter().flat_map(|requests| requests.keys().cloned());
            let to_wire =
                |response: &ElicitationResponse| serde_json::to_value(response.clone().into_wire()).unwrap_or_default();
            let inputs: InputResponses = keys.zip(responses.iter().map(to_wire)).collect();
            let inputs = required.input_requests.is_some().then_some(inputs);
            outcome = self.request(|| send(required.request_state.clone(), inputs.clone())).await?;
            rounds.push(Round { required, responses });
        }
        Err(ClientError::LimitExceeded(format!("the server requires more input after {MAX_ROUNDS} rounds")))
    }

    /// Handles the elicitations of one round, in order; returns `None` to go back to the previous round.
    async fn elicit(
        &self,
        required: &InputRequiredResult,
        previous: Vec<ElicitationResponse>,
        mut can_go_back: bool,
    ) -> Result<Option<Vec<ElicitationResponse>>, ClientError> {
        let Some(requests) = &required.input_requests else {
            // The server requires only that the request is repeated with its state.
            return Ok(Some(Vec::new()));
        };
        check_count(requests.len())?;
        let mut previous = previous.into_iter();
        let mut responses = Vec::new();
        for request in requests.values() {
            let InputRequest::Elicitation(request) = request else {
                return Err(undeclared());
            };
            let mut elicitation = self.handler().elicitation(&request.params);
            elicitation.previous = previous.next().and_then(accepted);
            elicitation.can_go_back = can_go_back;
            match self.handler().elicit(elicitation).await {
                ElicitationResponse::Cancel => return Err(ClientError::Cancelled),
                ElicitationResponse::Back => return Ok(None),
                response => responses.push(response),
            }
            // Going back leaves the round, so only its first form allows it.
            can_go_back = false;
        }
        Ok(Some(responses))
    }
}

fn prompt_params(name: &str, arguments: &Arguments) -> GetPromptRequestParams {
    let params = GetPromptRequestParams::new(name);
    if arguments.is_empty() {
        return params;
    }
    let values: Map<String, Value> =
        arguments.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
    params.with_arguments(values)
}

fn within_limit(result: PromptResult) -> Result<PromptResult, ClientError> {
    let count = result.messages.len();
    if count <= MAX_MESSAGES {
        Ok(result)
    } else {
        Err(ClientError::LimitExceeded(format!("the prompt has {count} messages; the limit is {MAX_MESSAGES}")))
    }
}

fn check_count(count: usize) -> Result<(), ClientError> {
    if count <= MAX_ELICITATIONS {
        Ok(())
    } else {
        Err(ClientError::LimitExceeded(format!(
            "the server requires {count} inputs at once; the limit is {MAX_ELICITATIONS}"
        )))
    }
}

fn undeclared() -> ClientError {
    ClientError::invalid_response("the server requests sampling or roots, which this client does not declare")
}

fn accepted(response: ElicitationResponse) -> Option<FormValues> {
    match response {
        ElicitationResponse::Accept(values) => Some(values),
        _ => None,
    }
}
