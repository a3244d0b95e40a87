//! One prompt or resource in several rounds: the server asks, somebody
//! answers, and the same request goes out again with the answers
//! (specification 2026-07-28, *Multi round-trip requests*).
//!
//! All state travels with the requests, so going back is nothing more than
//! answering an earlier round once more. Servers of older revisions ask in the
//! middle of a request instead; there `conversation` answers, and there is no
//! way back.

use rmcp::{
    ServiceError,
    model::{
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequest, InputRequiredResult, InputResponses,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    },
};
use serde_json::{Map, Value};

use super::{
    Client, ClientError, PromptResult,
    error::complete,
    from_wire,
    question::{Answer, Answers},
};
use promptshelf_core::Variables;

/// The most rounds that are gone through; a guided prompt has a handful.
const MOST_ROUNDS: usize = 50;
/// The most questions in one round.
const MOST_QUESTIONS: usize = 20;
/// The most messages that a prompt can have.
const MOST_MESSAGES: usize = 10_000;

/// What one round of a request comes back with.
enum Turn<T> {
    Done(T),
    Asks(InputRequiredResult),
}

/// A round that has been answered.
struct Round {
    asked: InputRequiredResult,
    answers: Vec<Answer>,
}

impl Client {
    /// A prompt, filled in. What the server asks in between goes to the
    /// [`ElicitationHandler`](super::ElicitationHandler).
    ///
    /// # Errors
    ///
    /// When the server does not answer, answers with an error, asks without
    /// end, or somebody has cancelled.
    pub async fn get(&self, name: &str, arguments: &Variables) -> Result<PromptResult, ClientError> {
        let mut params = GetPromptRequestParams::new(name);
        if !arguments.is_empty() {
            let given: Map<String, Value> =
                arguments.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
            params = params.with_arguments(given);
        }
        let result: GetPromptResult = self
            .rounds(|state, responses| {
                let mut params = params.clone();
                params.request_state = state;
                params.input_responses = responses;
                async move {
                    Ok(match self.peer().get_prompt_once(params).await? {
                        GetPromptResponse::Complete(result) => {
                            Turn::Done(complete(result, |result| result.result_type.as_ref())?)
                        }
                        GetPromptResponse::InputRequired(asked) => Turn::Asks(asked),
                        _ => return Err(ServiceError::UnexpectedResponse),
                    })
                }
            })
            .await?;
        if result.messages.len() > MOST_MESSAGES {
            let many = result.messages.len();
            return Err(ClientError::Unreasonable(format!("the prompt has {many} messages")));
        }
        let raw = serde_json::to_value(&result).unwrap_or_default();
        let messages = result.messages.into_iter().map(from_wire::message).collect();
        Ok(PromptResult { description: result.description, messages, raw })
    }

    pub(super) async fn read_in_rounds(&self, uri: &str) -> Result<ReadResourceResult, ClientError> {
        let params = ReadResourceRequestParams::new(uri);
        self.rounds(|state, responses| {
            let mut params = params.clone();
            params.request_state = state;
            params.input_responses = responses;
            async move {
                Ok(match self.peer().read_resource_once(params).await? {
                    ReadResourceResponse::Complete(result) => {
                        Turn::Done(complete(result, |result| result.result_type.as_ref())?)
                    }
                    ReadResourceResponse::InputRequired(asked) => Turn::Asks(asked),
                    _ => return Err(ServiceError::UnexpectedResponse),
                })
            }
        })
        .await
    }

    async fn rounds<T, F, A>(&self, send: F) -> Result<T, ClientError>
    where
        F: Fn(Option<String>, Option<InputResponses>) -> A,
        A: Future<Output = Result<Turn<T>, ServiceError>>,
    {
        let mut answered: Vec<Round> = Vec::new();
        let mut turn = self.within(|| send(None, None)).await?;
        for _ in 0..MOST_ROUNDS {
            let mut asked = match turn {
                Turn::Done(result) => return Ok(result),
                Turn::Asks(asked) => asked,
            };
            let mut before = Vec::new();
            let answers = loop {
                match self.answers(&asked, before, !answered.is_empty()).await? {
                    Some(answers) => break answers,
                    None => match answered.pop() {
                        Some(round) => (asked, before) = (round.asked, round.answers),
                        None => return Err(ClientError::Cancelled),
                    },
                }
            };
            let keys = asked.input_requests.iter().flat_map(|requests| requests.keys().cloned());
            let wire = |answer: &Answer| serde_json::to_value(answer.clone().into_wire()).unwrap_or_default();
            let responses: InputResponses = keys.zip(answers.iter().map(wire)).collect();
            let responses = asked.input_requests.is_some().then_some(responses);
            turn = self.within(|| send(asked.request_state.clone(), responses.clone())).await?;
            answered.push(Round { asked, answers });
        }
        Err(ClientError::Unreasonable(format!("the server still asks after {MOST_ROUNDS} rounds")))
    }

    /// The answers of one round, in the order of its questions; `None` to go
    /// back to the round before.
    async fn answers(
        &self,
        asked: &InputRequiredResult,
        before: Vec<Answer>,
        mut can_go_back: bool,
    ) -> Result<Option<Vec<Answer>>, ClientError> {
        let Some(requests) = &asked.input_requests else {
            // The server only wants the request once more.
            return Ok(Some(Vec::new()));
        };
        if requests.len() > MOST_QUESTIONS {
            let many = requests.len();
            return Err(ClientError::Unreasonable(format!("the server asks {many} questions at once")));
        }
        let mut before = before.into_iter();
        let mut answers = Vec::new();
        for request in requests.values() {
            let InputRequest::Elicitation(request) = request else {
                let sentence = "the server wants a model or folders, which were not offered to it";
                return Err(ClientError::Unexpected(sentence.to_owned()));
            };
            let mut question = self.conversation.question(&request.params);
            question.before = before.next().and_then(accepted);
            question.can_go_back = can_go_back;
            match self.conversation.ask(question).await {
                Answer::Cancel => return Err(ClientError::Cancelled),
                Answer::Back => return Ok(None),
                answer => answers.push(answer),
            }
            // Back leads out of a round, so only its first question has it.
            can_go_back = false;
        }
        Ok(Some(answers))
    }
}

fn accepted(answer: Answer) -> Option<Answers> {
    match answer {
        Answer::Accept(values) => Some(values),
        _ => None,
    }
}
